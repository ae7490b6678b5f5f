//! Slips of the hand and of the clock: what the program must not destroy, and not call well.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;

use rusqlite::Connection;

use crate::support::{Place, on, registered as place, rows, sql, succeed, well};

fn bytes(place: &Place, name: &str) -> Vec<u8> {
    std::fs::read(place.path(name)).expect("the file")
}

#[test]
fn a_copy_goes_over_no_database_and_is_not_the_backup_itself() {
    let place = place();
    std::fs::create_dir(place.path("copies")).expect("a folder");
    std::fs::copy(place.path("other.db"), place.path("copies/free.bak")).expect("a copy");
    let (app, free) = (bytes(&place, "app.db"), bytes(&place, "copies/free.bak"));
    for (name, folder, reason) in [
        // A registered database, one that is not, what SQLite would take for a part, and itself.
        ("temp/app.db", ".", "used by database"),
        (
            "temp/free.bak",
            "copies",
            "a SQLite database and not a backup",
        ),
        ("temp/self.bak", "temp", "the backup itself"),
    ] {
        let command = format!(
            "BACKUP DATABASE app TO DISK = '{}' WITH COPYTO = '{}', FILEOPTIONS = 4",
            place.text(name),
            place.text(folder)
        );
        let run = on(&place, &["sqlbackup", "--sql", &command]);
        assert!(run.out.contains("was not copied"), "{name}: {}", run.out);
        assert!(run.out.contains(reason), "{name}: {}", run.out);
    }
    assert!(
        bytes(&place, "app.db") == app,
        "the database is what it was"
    );
    assert!(bytes(&place, "copies/free.bak") == free);
}

#[test]
fn reports_metrics_and_logs_go_over_no_database_and_no_backup() {
    let place = place();
    well(&place, &["backup", "app", "--to", "a.bak"]);
    for name in ["app.db", "a.bak"] {
        let before = bytes(&place, name);
        for arguments in [
            vec!["report", "--to", name],
            vec!["metrics", "--output", name],
            vec!["check", "--log-file", name],
        ] {
            let run = on(&place, &arguments);
            assert_ne!(run.code, Some(0), "{arguments:?}: {}", run.err);
            assert!(run.err.contains("holds data and no text"), "{}", run.err);
        }
        let command = format!(
            "BACKUP DATABASE app TO DISK = 'b.bak' WITH INIT, LOGTO = '{}'",
            place.text(name)
        );
        let run = on(&place, &["sqlbackup", "--sql", &command]);
        assert!(run.out.contains("was not written"), "{}", run.out);
        assert!(bytes(&place, name) == before, "{name} is what it was");
    }
    // A report replaces the previous one. The other database was never backed up, which is reported too.
    for _ in 0..2 {
        let run = on(&place, &["report", "--to", "report.html"]);
        assert_eq!((run.code, run.err.as_str()), (Some(1), ""));
    }
}

#[test]
fn a_file_that_is_named_twice_is_refused_at_once_whatever_its_spelling() {
    let place = Place::new();
    std::os::unix::fs::symlink("temp", place.path("link")).expect("a link");
    let there = place.text("x.bak");
    for files in [
        ["--to x.bak", "--to ./x.bak"],
        ["--to x.bak", "--to temp/../x.bak"],
        ["--to temp/x.bak", "--to link/x.bak"],
        ["--to x.bak", "--mirror x.bak --format"],
        ["--to x.bak", &format!("--to {there}")],
    ] {
        for command in ["backup app.db", "repack app.db"] {
            let line = format!("{command} {}", files.join(" "));
            let run = place.run(&line.split(' ').collect::<Vec<_>>());
            assert_eq!(run.code, Some(2), "{line}: {}", run.err);
            assert!(run.err.contains("are the same file"), "{line}: {}", run.err);
        }
    }
    assert!(!place.path("x.bak").exists() && !place.path("temp/x.bak").exists());
    place.succeed(&["backup", "app.db", "--to", "NUL", "--to", "NUL"]);
}

#[test]
fn a_backup_does_not_take_a_name_that_an_unfinished_file_would_have() {
    let place = Place::new();
    for name in [
        "x.bak.windlass-new",
        "x.db.windlass-restoring",
        "x.bak.windlass-copy",
    ] {
        let run = place.run(&["backup", "app.db", "--to", name]);
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(
            run.err.contains("give the backup another name"),
            "{}",
            run.err
        );
    }
    place.succeed(&["backup", "app.db", "--to", "x.bak"]);
    let run = place.run(&["restore", "x.bak", "--to", "x.db.windlass-restoring"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
}

#[test]
fn a_database_of_the_page_engine_is_restored_over_itself_by_plain_commands() {
    let place = Place::new();
    succeed(
        &place,
        "CREATE DATABASE own ON (NAME = own, FILENAME = 'D:\\own.db') LOG ON (NAME = own_log, FILENAME = 'D:\\own.db-log')
GO
USE own
GO
CREATE TABLE t(x); INSERT INTO t VALUES (7)",
    );
    place.succeed(&["backup", "own.db", "--to", "own.bak"]);
    place.succeed(&["restore", "own.bak", "--to", "copy.db"]);
    let run = place.run(&["restore", "own.bak", "--to", "copy.db"]);
    assert_eq!(run.code, Some(1), "not without --replace: {}", run.err);
    place.succeed(&["restore", "own.bak", "--to", "copy.db", "--replace"]);
    // A log next to another database does not belong to this one.
    let run = place.run(&[
        "restore",
        "own.bak",
        "--move",
        "own=new.db",
        "--move",
        "own_log=app.db-log",
    ]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("for part of"), "{}", run.err);
}

#[test]
fn media_that_are_named_as_base_must_be_those_that_an_engine_database_counts_from() {
    let place = place();
    succeed(
        &place,
        "CREATE DATABASE own\nGO\nUSE own\nGO\nCREATE TABLE t(x)",
    );
    well(&place, &["backup", "own", "--to", "1.bak"]);
    well(&place, &["backup", "own", "--to", "2.bak", "--copy-only"]);
    let run = on(
        &place,
        &[
            "backup",
            "own",
            "--to",
            "d.bak",
            "--differential",
            "--base",
            "2.bak",
        ],
    );
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("named as base do not hold"), "{}", run.err);
    well(
        &place,
        &[
            "backup",
            "own",
            "--to",
            "d.bak",
            "--differential",
            "--base",
            "1.bak",
        ],
    );
}

#[test]
fn a_database_is_not_kept_by_the_backups_of_another_that_had_its_name() {
    let place = place();
    well(&place, &["backup", "app", "--to", "a.bak"]);
    assert_eq!(on(&place, &["check", "--database", "app"]).code, Some(0));
    succeed(
        &place,
        "EXEC sp_detach_db 'app'\nEXEC sp_detach_db 'other'\nEXEC sp_attach_db 'app', 'd:\\other.db'",
    );
    let run = on(&place, &["check", "--database", "app"]);
    assert_eq!(run.code, Some(2), "{}", run.out);
    assert!(run.out.contains("never been backed up"), "{}", run.out);
    assert!(
        on(&place, &["doctor"])
            .out
            .contains("has never been backed up")
    );
    assert_eq!(on(&place, &["history", "--rpo", "24h"]).code, Some(1));
    let metrics = well(&place, &["metrics"]).out;
    assert!(
        metrics.contains("windlass_database_restorable{database=\"app\"} 0"),
        "{metrics}"
    );
    assert!(
        well(&place, &["history"]).out.contains("a.bak"),
        "the history has it still"
    );
    well(&place, &["backup", "app", "--to", "new.bak"]);
    assert_eq!(on(&place, &["check", "--database", "app"]).code, Some(0));
    // Dropped and created again.
    succeed(&place, "CREATE DATABASE own");
    well(&place, &["backup", "own", "--to", "own.bak"]);
    assert_eq!(on(&place, &["check", "--database", "own"]).code, Some(0));
    succeed(&place, "DROP DATABASE own\nCREATE DATABASE own");
    assert_eq!(on(&place, &["check", "--database", "own"]).code, Some(2));
}

#[test]
fn a_backup_that_is_dated_in_the_future_says_nothing_of_today() {
    let place = place();
    well(&place, &["backup", "app", "--to", "a.bak"]);
    let catalog = Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    let shift = "UPDATE own_backupset SET backup_start_date = '2185-05-02 21:56:17', \
                 backup_finish_date = '2185-05-02 21:56:18'";
    catalog.execute(shift, []).expect("a shift");
    let run = on(&place, &["check", "--database", "app"]);
    assert_eq!(run.code, Some(2), "{}", run.out);
    assert!(run.out.contains("in the future"), "{}", run.out);
    assert_eq!(on(&place, &["history", "--rpo", "24h"]).code, Some(1));
    assert_eq!(on(&place, &["doctor"]).code, Some(1));
    // One of today counts, although the other is the newer one by its date.
    well(&place, &["backup", "app", "--to", "b.bak"]);
    let run = on(&place, &["check", "--database", "app"]);
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.out);
    assert!(!run.out.contains("-1"), "no age is negative: {}", run.out);
}

#[test]
fn doctor_does_not_call_an_instance_absent_that_it_may_not_see() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = place();
    let mut command = place.command(&["doctor", "--instance", "instance"]);
    command.uid(65534).gid(65534);
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path("."), open).expect("its mode");
    let output = command.output().expect("it runs");
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert!(!reported.contains("does not exist yet"), "{reported}");
}

#[test]
fn restoring_a_sql_server_backup_goes_over_no_registered_database_no_open_one_and_not_the_backup() {
    let Some(sample) = crate::sqlserver::sample("sql2008r2_Northwind.bak") else {
        return;
    };
    let place = place();
    std::fs::copy(sample, place.path("x.bak")).expect("a copy");
    let free = place.path("free.db");
    std::fs::copy(place.path("other.db"), &free).expect("a copy");
    let before: Vec<Vec<u8>> = ["app.db", "x.bak", "free.db"]
        .map(|name| bytes(&place, name))
        .into();
    let restore = |data: &str, log: &str| {
        sql(
            &place,
            &format!(
                "RESTORE DATABASE nw FROM DISK = 'd:\\x.bak' WITH REPLACE, MOVE 'Northwind' TO 'd:\\{data}', \
                 MOVE 'Northwind_log' TO 'd:\\{log}'"
            ),
        )
    };
    assert_eq!(restore("app.db", "x.ldf").numbers()[0], 1834);
    assert_eq!(restore("new.mdf", "x.bak").numbers()[0], 50020);
    assert_eq!(restore("app.db-wal", "x.ldf").numbers()[0], 50020);
    let user = Connection::open(&free).expect("somebody");
    user.execute_batch("BEGIN; SELECT * FROM sqlite_schema")
        .expect("a reader");
    assert_eq!(restore("free.db", "x.ldf").numbers()[0], 3101);
    drop(user);
    for (name, before) in ["app.db", "x.bak", "free.db"].iter().zip(before) {
        assert!(bytes(&place, name) == before, "{name} is what it was");
    }
    // A folder that is not there is no fault of the backup.
    let run = place.run(&["restore", "x.bak", "--to", "nowhere"]);
    assert_eq!(run.code, Some(1));
    assert!(!run.err.contains("Msg 3189"), "{}", run.err);
    // A dry run writes nothing; what a killed run left is no obstacle; what was private stays so.
    std::fs::create_dir(place.path("files")).expect("a folder");
    place.succeed(&["restore", "x.bak", "--to", "files", "--dry-run"]);
    assert_eq!(
        std::fs::read_dir(place.path("files")).expect("it").count(),
        0
    );
    std::fs::write(place.path("files/Northwind.mdf.windlass-restoring"), "half").expect("a rest");
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(place.path("x.bak"), private).expect("its mode");
    place.succeed(&["restore", "x.bak", "--to", "files"]);
    let made = std::fs::metadata(place.path("files/Northwind.mdf")).expect("the file");
    assert_eq!(made.permissions().mode() & 0o777, 0o600);
    assert_eq!(
        std::fs::read_dir(place.path("files")).expect("it").count(),
        2
    );
    assert_eq!(rows(&place.path("app.db")), 400);
}

#[test]
fn a_restore_that_was_killed_while_it_named_its_files_is_completed_by_whoever_comes_next() {
    let place = place();
    succeed(
        &place,
        "CREATE DATABASE own ON (NAME = a, FILENAME = 'D:\\a.mdf'), (NAME = b, FILENAME = 'D:\\b.ndf')
LOG ON (NAME = l, FILENAME = 'D:\\l.ldf')
GO
USE own
GO
CREATE TABLE t(x); INSERT INTO t VALUES (7)
GO
USE master
GO
BACKUP DATABASE own TO DISK = 'd:\\own.bak'
GO
USE own
GO
INSERT INTO t VALUES (8)",
    );
    let count = |place: &Place| {
        let run = succeed(place, "USE own\nGO\nSELECT count(*) AS n FROM t");
        run.results()[0][0]["n"].as_i64()
    };
    let restore = "RESTORE DATABASE own FROM DISK = 'd:\\own.bak' WITH REPLACE";
    let stage = |name: &str| format!("{name}.windlass-restoring");
    let rename = |from: &str, to: &str| {
        std::fs::rename(place.path(from), place.path(to)).expect("a rename");
    };
    // What a killed run leaves, put together from a whole restore and one that waits.
    let killed = |is_old_log_there: bool, named: &[&str]| {
        succeed(&place, &format!("{restore}, NORECOVERY"));
        let state = std::fs::read_to_string(place.path("l.ldf.windlass-state")).expect("a state");
        succeed(&place, "RESTORE DATABASE own WITH RECOVERY");
        let placing = state.replace(r#""ready""#, r#""placing""#);
        assert_ne!(placing, state);
        std::fs::write(place.path("l.ldf.windlass-state"), placing).expect("a state");
        for name in ["a.mdf", "b.ndf", "l.ldf"] {
            if is_old_log_there {
                std::fs::copy(place.path(name), place.path(&stage(name))).expect("a copy");
            } else if !named.contains(&name) {
                rename(name, &stage(name));
            }
        }
    };
    let left = || {
        let entries = std::fs::read_dir(place.path(".")).expect("the folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        names
            .filter(|name| name.to_string_lossy().contains("windlass-"))
            .count()
    };
    assert_eq!(count(&place), Some(2));
    for named in [&[][..], &["a.mdf"], &["a.mdf", "b.ndf"]] {
        killed(false, named);
        assert_eq!(count(&place), Some(1), "{named:?}");
        assert_eq!(left(), 0, "{named:?}");
        killed(false, named);
        succeed(&place, restore);
        assert_eq!(count(&place), Some(1), "{named:?}");
        killed(false, named);
        succeed(
            &place,
            "DROP DATABASE own\nGO\nRESTORE DATABASE own FROM DISK = 'd:\\own.bak'",
        );
        assert_eq!(left(), 0, "{named:?}");
    }
    // The old database is unchanged and stays; the next restore removes the unfinished files next to it.
    killed(true, &[]);
    succeed(&place, "USE own\nGO\nINSERT INTO t VALUES (9), (10)");
    assert_eq!(count(&place), Some(3));
    succeed(&place, restore);
    assert_eq!((count(&place), left()), (Some(1), 0));
}

#[test]
fn an_older_copy_of_a_medium_that_was_put_back_and_appended_to_does_not_keep_what_it_lost() {
    let place = place();
    well(&place, &["backup", "app", "--to", "a.bak"]);
    std::fs::copy(place.path("a.bak"), place.path("older.bak")).expect("a copy");
    well(&place, &["backup", "app", "--to", "a.bak"]);
    assert_eq!(on(&place, &["check", "--database", "app"]).code, Some(0));
    std::fs::copy(place.path("older.bak"), place.path("a.bak")).expect("a copy");
    // Without the instance: it does not hear of these, and the file is longer than it was.
    place.succeed(&["backup", "app.db", "--to", "a.bak"]);
    place.succeed(&["backup", "app.db", "--to", "a.bak"]);
    let run = on(&place, &["check", "--database", "app"]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(
        run.out.contains("does not hold this backup any more"),
        "{}",
        run.out
    );
    let run = on(
        &place,
        &["backup", "app", "--to", "d.bak", "--differential"],
    );
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("50012"), "{}", run.err);
}

#[test]
fn a_database_that_lost_files_or_was_dropped_in_part_can_be_dropped() {
    let place = place();
    let files = ["l.ldf", "a.mdf", "b.ndf"];
    let create = "CREATE DATABASE own ON (NAME = a, FILENAME = 'D:\\a.mdf'), (NAME = b, FILENAME = 'D:\\b.ndf') \
                  LOG ON (NAME = l, FILENAME = 'D:\\l.ldf')";
    // A killed DROP leaves what follows in its order, a mistake anything.
    for missing in 0..8_u32 {
        succeed(&place, create);
        for (bit, name) in files.iter().enumerate() {
            if missing & (1 << bit) != 0 {
                std::fs::remove_file(place.path(name)).expect("it");
            }
        }
        succeed(&place, "DROP DATABASE own");
        for name in files {
            assert!(!place.path(name).exists(), "{name} of {missing}");
        }
    }
    // Somebody else has it open.
    succeed(&place, create);
    let mut other = place
        .command(&["sql", "--instance", "instance"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = other.stdin.take().expect("its input");
    std::io::Write::write_all(&mut stdin, b"USE own\nGO\nSELECT 1 AS one\nGO\n")
        .expect("it listens");
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(other.stdout.take().expect("its output"));
    while !line.contains("one") {
        line.clear();
        assert_ne!(
            std::io::BufRead::read_line(&mut stdout, &mut line).expect("a line"),
            0
        );
    }
    let run = sql(&place, "DROP DATABASE own");
    assert_eq!(run.numbers(), [3702], "{}", run.err);
    assert!(files.iter().all(|name| place.path(name).exists()));
    drop(stdin);
    assert!(other.wait().expect("it ends").success());
    succeed(&place, "DROP DATABASE own");
}

/// For both kinds of databases.
#[test]
fn dropping_an_unfinished_restore_says_what_older_database_is_left_and_that_can_be_attached() {
    let place = place();
    succeed(
        &place,
        "CREATE DATABASE own ON (NAME = a, FILENAME = 'D:\\a.mdf') LOG ON (NAME = l, FILENAME = 'D:\\l.ldf')",
    );
    for (name, attach, files) in [
        ("app", "(FILENAME = 'd:\\app.db')", vec!["app.db"]),
        (
            "own",
            "(FILENAME = 'd:\\a.mdf') LOG ON (FILENAME = 'd:\\l.ldf')",
            vec!["a.mdf", "l.ldf"],
        ),
    ] {
        let run = succeed(
            &place,
            &format!(
                "BACKUP DATABASE {name} TO DISK = 'd:\\{name}.bak'
                 RESTORE DATABASE {name} FROM DISK = 'd:\\{name}.bak' WITH NORECOVERY, REPLACE
                 GO
                 DROP DATABASE {name}"
            ),
        );
        assert!(run.err.contains("no longer registered"), "{}", run.err);
        for file in files {
            assert!(run.err.contains(&place.text(file)), "{}", run.err);
        }
        succeed(
            &place,
            &format!("CREATE DATABASE {name} ON {attach} FOR ATTACH"),
        );
    }
    let run = succeed(
        &place,
        "RESTORE DATABASE n FROM DISK = 'd:\\app.bak' WITH MOVE 'app' TO 'd:\\n.db', NORECOVERY
         GO
         DROP DATABASE n",
    );
    assert!(!run.err.contains("no longer registered"), "{}", run.err);
}

#[test]
fn whoever_completes_a_killed_restore_late_leaves_what_came_after_it_alone() {
    let place = place();
    succeed(
        &place,
        "CREATE DATABASE own ON (NAME = a, FILENAME = 'D:\\a.mdf') LOG ON (NAME = l, FILENAME = 'D:\\l.ldf')
         BACKUP DATABASE own TO DISK = 'd:\\own.bak'
         RESTORE DATABASE own FROM DISK = 'd:\\own.bak' WITH REPLACE, NORECOVERY",
    );
    let state = place.path("l.ldf.windlass-state");
    let ready = std::fs::read_to_string(&state).expect("a state");
    succeed(&place, "RESTORE DATABASE own WITH RECOVERY");
    // As a killed restore leaves it.
    std::fs::write(&state, ready.replace(r#""ready""#, r#""placing""#)).expect("a state");
    let files = ["a.mdf", "l.ldf"].map(|name| {
        let (named, staged) = (
            place.path(name),
            place.path(&format!("{name}.windlass-restoring")),
        );
        std::fs::rename(&named, &staged).expect("a rename");
        (named, staged)
    });
    // Somebody completes it, and has this late comer wait.
    let claim = std::fs::File::create(place.path("l.ldf.windlass-redo")).expect("a file");
    claim.lock().expect("a lock");
    let late = place
        .command(&["sql", "--instance", "instance", "-Q", "USE own"])
        .spawn();
    std::thread::sleep(std::time::Duration::from_millis(120));
    for (named, staged) in &files {
        std::fs::rename(staged, named).expect("a rename");
    }
    std::fs::copy(&files[0].0, &files[0].1).expect("another restore");
    std::fs::write(&state, &ready).expect("its state");
    drop(claim);
    let _ended = late.expect("it starts").wait().expect("it ends");
    assert_eq!(std::fs::read_to_string(&state).expect("the state"), ready);
    assert!(files[0].1.exists());
}

/// In the words of a restore of our own that lost data.
#[test]
fn a_damaged_sql_server_backup_is_written_only_where_that_is_asked_for_and_never_called_a_success()
{
    let Some(sample) = crate::sqlserver::sample("sql2008r2_Northwind.bak") else {
        return;
    };
    let place = place();
    std::fs::copy(sample, place.path("x.bak")).expect("a copy");
    let middle = std::fs::metadata(place.path("x.bak")).expect("it").len() / 2;
    crate::support::flip_bit(&place.path("x.bak"), middle);
    std::fs::create_dir(place.path("files")).expect("a folder");
    let restore = |further: &[&str]| {
        let arguments = ["restore", "x.bak", "--to", "files", "--json"];
        place.run(&[&arguments, further].concat())
    };
    let count = || std::fs::read_dir(place.path("files")).expect("it").count();
    let run = restore(&[]);
    assert_eq!((run.code, count()), (Some(1), 0), "{}", run.err);
    assert!(run.numbers().contains(&3189), "{}", run.err);
    let run = restore(&["--continue-after-error"]);
    assert_eq!((run.code, count()), (Some(1), 2), "{}", run.err);
    assert!(run.numbers().contains(&3189), "{}", run.err);
    assert!(
        run.err.contains("Damaged, and written unchanged"),
        "{}",
        run.err
    );
}

#[test]
fn a_packed_file_and_a_backup_are_no_database_and_are_called_what_they_are() {
    let place = place();
    std::fs::write(place.path("app.bak.gz"), b"\x1F\x8B\x08\x00 and more").expect("a file");
    place.succeed(&["backup", "app.db", "--to", "app.bak"]);
    for (arguments, said) in [
        (
            ["restore", "app.bak.gz"],
            "it is packed with gzip. Unpack it first.",
        ),
        (
            ["backup", "app.bak.gz"],
            "It is packed with gzip. Unpack it first.",
        ),
        (["backup", "app.bak"], "It begins as a backup does"),
    ] {
        let run = place.run(&[&arguments[..], &["--to", "x"]].concat());
        assert_eq!(run.code, Some(1), "{arguments:?}");
        assert!(run.err.contains(said), "{arguments:?}: {}", run.err);
        assert!(!place.path("x").exists());
    }
}

#[test]
fn what_was_meant_is_named_by_every_command() {
    let place = place();
    place.succeed(&["backup", "app.db", "--to", "app.bak"]);
    let level =
        "BACKUP DATABASE app TO DISK = 'x' WITH COMPRESSION (ALGORITHM = ZSTD, LEVEL = ULTRA)";
    for (arguments, said) in [
        (&["tune", "ap.db"][..], "/app.db'?"),
        (&["demo", "ap.db"], "/app.db'?"),
        (&["inspect", "ap.bak"], "/app.bak'?"),
        (
            &["sql", "--attach", "app=ap.db", "-Q", "SELECT 1"],
            "/app.db'?",
        ),
        (
            &["sql", "-Q", level],
            "The choices are LOW, MEDIUM, HIGH or AUTO.",
        ),
        (
            &["sqlbackup", "-SQL", "BACKUP DATABSE app TO DISK = 'x'"],
            "Did you mean DATABASE?",
        ),
        (&["restore"], "windlass restore BACKUP --to FILE"),
        (
            &["restore", "app.bak", "copy.db"],
            "If 'copy.db' is to be the database: --to copy.db",
        ),
        (&["verify", "NUL"], "Nothing is ever stored in it."),
    ] {
        let run = place.run(arguments);
        assert!(run.code == Some(1) || run.code == Some(2), "{arguments:?}");
        let both = format!("{}{}", run.out, run.err);
        assert!(both.contains(said), "{arguments:?}: {both}");
    }
}
