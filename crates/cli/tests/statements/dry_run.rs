//! A dry run says what would be done, and changes nothing at all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::sales::MAKE;
use crate::support::{Place, Run, succeed};

/// Every file below a folder: its length, when it was changed, what is in it.
type Tree = BTreeMap<PathBuf, (u64, SystemTime, Vec<u8>)>;

fn tree(folder: &Path) -> Tree {
    let mut found = Tree::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let metadata = path.symlink_metadata().expect("it");
            let modified = metadata.modified().expect("a time");
            if metadata.is_dir() {
                folders.push(path.clone());
                found.insert(path, (0, modified, Vec::new()));
            } else {
                let content = std::fs::read(&path).expect("a file");
                found.insert(path, (metadata.len(), modified, content));
            }
        }
    }
    found
}

fn assert_same(before: &Tree, after: &Tree, arguments: &[&str]) {
    let names = |tree: &Tree| tree.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(before), names(after), "{arguments:?}");
    for (path, file) in before {
        assert!(
            file == &after[path],
            "{arguments:?} changed {}",
            path.display()
        );
    }
}

/// Runs a command that must leave the whole place as it is.
#[track_caller]
fn dry(place: &Place, arguments: &[&str]) -> Run {
    let before = tree(&place.path("."));
    let run = place.run(&[arguments, &["--dry-run"]].concat());
    assert_same(&before, &tree(&place.path(".")), arguments);
    run
}

/// An instance with a database of each kind, backups of both, a copy in the queue.
fn place() -> Place {
    let place = Place::new();
    succeed(
        &place,
        &format!(
            "EXEC sp_attach_db 'app', 'd:\\app.db'
GO
BACKUP DATABASE app TO DISK = 'd:\\temp\\1.bak' WITH COMPRESSION
BACKUP DATABASE app TO DISK = 'd:\\temp\\1.bak'
BACKUP DATABASE app TO DISK = 'd:\\temp\\1.bak' WITH DIFFERENTIAL
BACKUP DATABASE app TO DISK = 'd:\\temp\\2.bak'
{MAKE}
BACKUP DATABASE Sales TO DISK = 'd:\\temp\\s.bak'
BACKUP DATABASE Sales TO DISK = 'd:\\temp\\s.bak' WITH DIFFERENTIAL
GO
USE master"
        ),
    );
    std::fs::create_dir(place.path("deep")).expect("a folder");
    let wal = rusqlite::Connection::open(place.path("other.db")).expect("a connection");
    wal.pragma_update(None, "journal_mode", "WAL").expect("WAL");
    drop(wal);
    let copy = format!(
        "BACKUP DATABASE other TO DISK = '{}' WITH COPYTO = '{}'",
        place.text("temp/o.bak"),
        place.text("away")
    );
    let attach = ["--attach", "other=other.db", "--instance", "instance"];
    place.run(&[&["sqlbackup", "-S", &copy], &attach[..]].concat());
    place
}

#[test]
fn no_dry_run_changes_anything() {
    let place = place();
    let on = ["--instance", "instance"];
    let sqlbackup = |command: &str| command.replace("d:\\", &place.text(""));
    let nightly = sqlbackup(
        "BACKUP DATABASES [*] TO DISK = 'd:\\deep/<AUTO>' WITH VERIFY, COPYTO = 'd:\\copies/<DATABASE>', ERASEFILES = 1, LOGTO = 'd:\\b.log'",
    );
    let test = sqlbackup(
        "RESTORE DATABASE t FROM DISK = 'd:\\temp/2.bak' WITH MOVE 'app' TO 'd:\\t.db', CHECKDB, DROPDB",
    );
    let cases: [(&[&str], &str); 14] = [
        (&["backup", "app", "--to", "new.bak"], "make '"),
        (
            &["backup", "app", "--to", "temp/1.bak"],
            "append set 4 to '",
        ),
        (
            &["backup", "app", "--to", "temp/1.bak", "--init"],
            "overwrite the sets in '",
        ),
        (
            &["backup", "app", "--to", "temp/1.bak", "--differential"],
            "append set 4",
        ),
        (
            &["backup", "Sales", "--to", "n1.bak", "--to", "n2.bak"],
            "n2.bak'",
        ),
        (
            &[
                "backup",
                "other.db",
                "--to",
                "new.bak",
                "--compress",
                "none",
            ],
            "make '",
        ),
        (&["restore", "temp/1.bak", "--to", "copy.db"], "make '"),
        (
            &["restore", "temp/1.bak", "--to", "other.db", "--replace"],
            "replace '",
        ),
        (
            &["restore", "temp/s.bak", "--to", "s.mdf", "--database", "S2"],
            "make '",
        ),
        (&["verify", "temp/1.bak"], "would"),
        (
            &["expire", "temp", "--last", "1", "--delete"],
            "would be freed",
        ),
        (&["copies", "--run", "--now"], "would copy"),
        (&["sqlbackup", "-S", &nightly], "would"),
        (&["sqlbackup", "-S", &test], "would"),
    ];
    for (arguments, reported) in cases {
        let run = dry(&place, &[arguments, &on[..]].concat());
        let said = format!("{}{}", run.out, run.err);
        assert_eq!(run.code, Some(0), "{arguments:?}: {said}");
        assert!(said.contains(reported), "{arguments:?}: {said}");
    }
}

#[test]
fn a_dry_run_prints_the_statement_the_plan_and_estimates() {
    let place = place();
    let run = dry(
        &place,
        &["backup", "app.db", "--to", "x.bak", "--compress", "zstd"],
    );
    let statement = run.out.lines().last().expect("T-SQL");
    assert!(
        statement.starts_with("BACKUP DATABASE app TO DISK"),
        "{}",
        run.out
    );
    for reported in [
        "frame buffers",
        "estimate: 1 samples of 1 MB",
        "a dry run takes no locks",
        "Dry run: nothing was changed.",
    ] {
        assert!(run.err.contains(reported), "{reported}: {}", run.err);
    }
    let run = dry(&place, &["backup", "app.db", "--to", "x.bak", "--json"]);
    let objects: Vec<serde_json::Value> = serde_json::Deserializer::from_str(&run.out)
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("JSON");
    assert!(objects[0]["tsql"].is_string(), "{}", run.out);
    assert!(objects[1]["estimated_write_bytes"].as_u64() < objects[1]["read_bytes"].as_u64());
    assert!(objects[1]["plan"]["threads"]["because"].is_string());
}

#[test]
fn a_dry_run_refuses_what_the_run_would_refuse() {
    let place = place();
    let cases: [&[&str]; 5] = [
        &["backup", "nosuch.db", "--to", "x.bak"],
        &["backup", "app.db", "--to", "other.db"],
        &["backup", "other.db", "--to", "x.bak", "--differential"],
        &["restore", "temp/1.bak", "--to", "other.db"],
        &["verify", "temp/1.bak", "--set", "9"],
    ];
    for arguments in cases {
        assert_eq!(dry(&place, arguments).code, Some(1), "{arguments:?}");
    }
    // An instance that is not there is not made.
    let run = dry(
        &place,
        &["backup", "app.db", "--to", "x.bak", "--instance", "none"],
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
}

#[test]
fn a_dry_run_of_a_differential_sees_that_the_media_of_its_base_are_gone() {
    let place = place();
    let on = ["--instance", "instance"];
    let backup = |name: &'static str, base: &[&'static str]| {
        let arguments = ["backup", name, "--to", "d.bak", "--differential", "--json"];
        dry(&place, &[&arguments, base, &on].concat())
    };
    let numbers = |run: &Run| run.numbers();
    for name in ["app", "Sales"] {
        assert_eq!(backup(name, &[]).code, Some(0), "{name}");
    }
    for media in ["1.bak", "2.bak", "s.bak"] {
        let (from, to) = (format!("temp/{media}"), format!("away-{media}"));
        std::fs::rename(place.path(&from), place.path(&to)).expect("it goes");
    }
    for name in ["app", "Sales"] {
        assert_eq!(numbers(&backup(name, &[])), [50012, 3013], "{name}");
        let anyway = backup(name, &["--base-missing-ok"]);
        assert_eq!(
            (anyway.code, numbers(&anyway)),
            (Some(0), vec![50013]),
            "{name}"
        );
    }
    assert_eq!(backup("app", &["--base", "away-2.bak"]).code, Some(0));
    assert_eq!(backup("app", &["--base", "nosuch.bak"]).code, Some(1));
    // The command names the full backup that it would make instead.
    let command = format!(
        "BACKUP DATABASE app TO DISK = [{}] WITH DIFFERENTIAL, FULLIFREQUIRED",
        place.text("f.bak")
    );
    let run = dry(&place, &[&["sqlbackup", "-S", &command], &on[..]].concat());
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(!run.out.contains("DIFFERENTIAL"), "{}", run.out);
}

#[test]
fn a_dry_run_restores_no_single_pages() {
    let place = place();
    let before = tree(&place.path("."));
    let instance = place.path("instance");
    let instance = windlass_instance::Instance::rehearsal(Some(&instance)).expect("an instance");
    let mut session = windlass_instance::Session::new(instance).rehearsing();
    let mut reported = windlass_instance::Collected::default();
    for part in ["PAGE = '1:9'", "FILE = 's'"] {
        let text = format!(
            "RESTORE DATABASE Sales {part} FROM DISK = '{}'",
            place.text("temp/s.bak")
        );
        session.execute_batch(&text, 1, &mut reported);
    }
    assert_same(&before, &tree(&place.path(".")), &["RESTORE", "PAGE"]);
    let numbers: Vec<u32> = (reported.messages.iter())
        .map(|message| message.number)
        .collect();
    assert_eq!(numbers, [50005, 3013, 50005, 3013]);
}

/// Nothing is locked or made by asking.
#[test]
fn a_dry_run_says_who_has_the_database_locked_now() {
    let place = Place::new();
    let connection = rusqlite::Connection::open(place.path("app.db")).expect("a database");
    let backup = ["backup", "app.db", "--to", "x.bak", "--dry-run"];
    let restore = [
        "restore",
        "y.bak",
        "--to",
        "app.db",
        "--replace",
        "--dry-run",
    ];
    place.succeed(&["backup", "app.db", "--to", "y.bak"]);
    let who = format!("wait for process {}", std::process::id());
    for (statement, is_read, is_written) in [
        ("BEGIN EXCLUSIVE", true, true),
        // Its readers go on.
        ("BEGIN IMMEDIATE", false, true),
        ("BEGIN; SELECT count(*) FROM t", false, true),
        ("BEGIN", false, false),
    ] {
        let mut prepared = statement.split("; ");
        let begin = prepared.next().expect("a statement");
        connection.execute_batch(begin).expect("a transaction");
        let select = prepared
            .next()
            .map(|select| connection.prepare(select).expect("it"));
        let mut select = select;
        let mut rows = select
            .as_mut()
            .map(|select| select.query([]).expect("rows"));
        if let Some(rows) = &mut rows {
            rows.next().expect("a row");
        }
        let files = || {
            std::fs::read_dir(place.path(""))
                .expect("the folder")
                .count()
        };
        let before = files();
        let run = place.run(&backup);
        assert_eq!(run.err.contains(&who), is_read, "{statement}: {}", run.err);
        let run = place.run(&restore);
        assert_eq!(
            run.err.contains(&who),
            is_written,
            "{statement}: {}",
            run.err
        );
        assert_eq!(files(), before);
        drop(rows);
        drop(select);
        connection.execute_batch("COMMIT").expect("its end");
    }
}

#[test]
fn the_statements_of_a_dry_run_restore_the_same_database() {
    let place = Place::new();
    crate::log_backups::chain(&place, 2);
    let to = place.text("copy.db");
    let command = ["restore", "full.bak", "2.trn", "1.trn", "--to", &to];
    let run = place.run(&[&command[..], &["--dry-run"]].concat());
    let statements = run
        .out
        .lines()
        .skip_while(|line| !line.starts_with("RESTORE"));
    let statements = statements.collect::<Vec<_>>().join("\n");
    assert_eq!(statements.matches("RESTORE ").count(), 3, "{}", run.out);
    assert!(!place.path("copy.db").exists());
    succeed(&place, &statements);
    assert!(place.path("copy.db").exists() && place.path("copy.db-log").exists());
    assert_eq!(crate::log_backups::last(&place, "copy"), 2);
}

#[test]
fn what_the_run_would_refuse_the_dry_run_refuses() {
    let place = Place::new();
    std::fs::write(
        place.path("text.db"),
        "no database, only a text of some length\n".repeat(50),
    )
    .expect("a file");
    let whole = std::fs::read(place.path("app.db")).expect("a file");
    std::fs::write(place.path("cut.db"), &whole[..whole.len() / 2]).expect("a file");
    for (database, to, number) in [
        ("app.db", "nosuch/x.bak", 3201),
        ("app.db", "nosuch/<DATABASE>.bak", 3201),
        ("app.db", "nosuch/<DATABASE>/x.bak", 3201),
        ("text.db", "x.bak", 50050),
        ("cut.db", "x.bak", 50053),
    ] {
        let arguments = ["backup", database, "--to", to, "--json"];
        let said = dry(&place, &arguments);
        assert_eq!(said.code, Some(1), "{arguments:?}: {}", said.out);
        assert!(
            said.numbers().contains(&number),
            "{arguments:?}: {}",
            said.err
        );
        let done = place.run(&arguments);
        assert_eq!(done.numbers(), said.numbers(), "{arguments:?}");
    }
    for (database, to, how) in [
        ("app.db", "temp/<DATABASE>/x.bak", &[][..]),
        ("text.db", "temp/x.bak", &["--as-is"]),
        ("cut.db", "temp/y.bak", &["--continue-after-error"]),
    ] {
        let said = dry(&place, &[&["backup", database, "--to", to], how].concat());
        assert_eq!(said.code, Some(0), "{database}: {}", said.err);
    }
}
