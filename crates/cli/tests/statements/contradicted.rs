//! Where the dates of backups contradict the log of their database, nobody knows which state is the newest.

use rusqlite::Connection;
use windlass_media::craft::{self, Medium, Set};

use crate::log_backups::{chain, insert, last};
use crate::sqlbackup;
use crate::support::{Place, succeed};

/// An engine database with one backup, and a medium of the same recovery fork that is older by its log and newer
/// by its date, as after a clock was set back.
fn place() -> Place {
    let place = Place::new();
    succeed(
        &place,
        "CREATE DATABASE own ON (NAME = a, FILENAME = 'd:\\a.mdf') LOG ON (NAME = l, FILENAME = 'd:\\a.ldf')
         BACKUP DATABASE own TO DISK = 'd:\\temp\\1.bak'",
    );
    let real = set_of(&place, "temp/1.bak");
    let mut set = Set::full("own", &[7; 300_000]);
    let made = &mut set.configuration;
    made.family_guid = real.family_guid;
    made.database_guid = real.database_guid;
    made.recovery_fork_guid = real.recovery_fork_guid;
    made.source_kind = real.source_kind;
    made.server.clone_from(&real.server);
    made.machine.clone_from(&real.machine);
    made.files[0]
        .physical_name
        .clone_from(&real.files[0].physical_name);
    made.first_lsn.vlf = real.first_lsn.vlf - 1;
    made.last_lsn = made.first_lsn;
    made.started = real.finished.map(after);
    made.finished = made.started;
    made.time_zone = real.time_zone;
    std::fs::write(place.path("temp/2.bak"), Medium::new().with(&set).bytes()).expect("a medium");
    place
}

fn after(moment: windlass_base::Moment) -> windlass_base::Moment {
    windlass_base::Moment::new(moment.to_civil() + std::time::Duration::from_secs(60))
}

pub(crate) fn set_of(place: &Place, name: &str) -> windlass_media::SetConfiguration {
    let medium = std::fs::read(place.path(name)).expect("the medium");
    craft::sets(&medium).remove(0)
}

#[test]
fn neither_restore_nor_latest_chooses_one_and_expire_keeps_both() {
    let place = place();
    let restore = ["restore", "temp/1.bak", "temp/2.bak", "--to", "x.db"];
    let run = place.run(&restore);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("Msg 50220"), "{}", run.err);
    let latest = "RESTORE DATABASE trial FROM DISK = 'd:\\temp\\*.bak' SOURCE = 'own' LATEST_FULL \
                  WITH MOVE 'a' TO 'd:\\t.mdf', MOVE 'l' TO 'd:\\t.ldf'";
    let (lines, ..) = sqlbackup::report(&sqlbackup::run(&place, latest));
    assert!(lines.contains("newer by its LSN"), "{lines}");
    let run = place.run(&["expire", "temp", "--last", "1", "--delete"]);
    assert!(
        run.out.contains("newer by its LSN"),
        "{} {}",
        run.out,
        run.err
    );
    for name in ["1", "2"] {
        assert!(place.path(&format!("temp/{name}.bak")).exists(), "{name}");
    }
    let check = ["check", "--media", "temp", "--rpo", "9000d", "--json"];
    assert_warned(&place.run(&check));
    let load = "RESTORE VERIFYONLY FROM DISK = 'd:\\temp\\2.bak' WITH LOADHISTORY";
    succeed(&place, load);
    let check = ["check", "--database", "own", "--json"];
    assert_warned(&crate::support::on(&place, &check));
}

#[track_caller]
fn assert_warned(run: &crate::support::Run) {
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    let verdict: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    let reasons = verdict["checked"].as_array().expect("subjects").iter();
    let reasons = reasons.filter_map(|subject| subject["reasons"].as_array());
    let mut reasons = reasons.flatten();
    let is_it = |reason: &serde_json::Value| reason["reason"] == "order-contradicted";
    let reason = reasons.find(|reason| is_it(reason)).expect("a reason");
    assert_eq!(reason["number"], 50220);
}

#[test]
fn a_restore_begins_a_new_recovery_fork() {
    let place = Place::new();
    succeed(
        &place,
        "CREATE DATABASE own ON (NAME = a, FILENAME = 'd:\\a.mdf') LOG ON (NAME = l, FILENAME = 'd:\\a.ldf')
         BACKUP DATABASE own TO DISK = 'd:\\temp\\1.bak'
         BACKUP DATABASE own TO DISK = 'd:\\temp\\2.bak'
         RESTORE DATABASE own FROM DISK = 'd:\\temp\\1.bak' WITH REPLACE
         BACKUP DATABASE own TO DISK = 'd:\\temp\\3.bak'",
    );
    let [first, second, third] =
        ["1", "2", "3"].map(|name| set_of(&place, &format!("temp/{name}.bak")));
    assert_eq!(first.recovery_fork_guid, second.recovery_fork_guid);
    assert_ne!(second.recovery_fork_guid, third.recovery_fork_guid);
    assert_eq!(second.family_guid, third.family_guid);
}

/// Moves the dates of the history's backups ahead, as if the clock had been wrong when they were made.
fn date_ahead(place: &Place) {
    let catalog = Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    catalog
        .execute_batch(
            "UPDATE own_backupset SET last_lsn = '4000000000000000000000001',
             backup_finish_date = datetime(backup_finish_date, '+5 hours')",
        )
        .expect("other dates");
}

#[test]
fn a_backup_says_that_an_earlier_one_is_dated_later_and_continues_its_lsns() {
    for create in [
        "CREATE DATABASE own ON (NAME = a, FILENAME = 'd:\\a.mdf') LOG ON (NAME = l, FILENAME = 'd:\\a.ldf')",
        "CREATE DATABASE own ON (FILENAME = 'd:\\app.db') FOR ATTACH",
    ] {
        let place = Place::new();
        let backup = |name: &str| {
            let backup =
                format!("BACKUP DATABASE own TO DISK = 'd:\\temp\\{name}.bak' WITH FORMAT");
            succeed(&place, &backup);
            set_of(&place, &format!("temp/{name}.bak"))
        };
        succeed(&place, create);
        assert_eq!(backup("1").contradicted_until, None);
        assert_eq!(backup("2").contradicted_until, None);
        date_ahead(&place);
        let last = backup("3");
        assert!(last.contradicted_until.is_some(), "{create}");
        // Those of the page engine are its log's.
        let is_sqlite = create.ends_with("ATTACH");
        assert_eq!(last.last_lsn.vlf >= 4_000_000_000, is_sqlite, "{create}");
    }
}

/// Moves the date of the only set of a medium by hours, as if the clock had been wrong: of a page engine database, also
/// the one in its description.
fn redate(place: &Place, name: &str, hours: i64) {
    let mut medium = std::fs::read(place.path(name)).expect("the medium");
    let set = craft::sets(&medium).remove(0);
    let described = windlass_source::engine::describe(&set.source_description);
    craft::redate(&mut medium, hours, described.ok().map(|of| of.ended_ms()));
    assert_ne!(craft::sets(&medium)[0].finished, set.finished);
    std::fs::write(place.path(name), medium).expect("the medium");
}

#[test]
fn one_log_backup_with_the_clock_ahead_keeps_no_one_from_restoring_what_is_behind_it() {
    let place = Place::new();
    chain(&place, 4);
    std::fs::create_dir_all(place.path("media")).expect("a folder");
    for file in ["full.bak", "1.trn", "2.trn", "3.trn", "4.trn"] {
        let to = place.path(&format!("media/{file}"));
        std::fs::rename(place.path(file), to).expect("moved");
    }
    redate(&place, "media/2.trn", 5);
    let held = |name: &str| std::fs::rename(place.path(&format!("media/{name}")), place.path(name));
    let back = |name: &str| std::fs::rename(place.path(name), place.path(&format!("media/{name}")));
    let restore = |options: &[&str]| {
        let always = ["restore", "media", "--to", "x.db", "--replace"];
        place.run(&[&always, options].concat())
    };
    let run = restore(&["--latest"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let ship = ["ship", "media", "--to", "standby.db", "--once"];
    let run = place.run(&ship);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.starts_with("5 backup sets"), "{}", run.out);
    // As long as it is the last one, nobody can tell whether it is newer than what it does not continue; its LSNs can be told.
    held("3.trn").and(held("4.trn")).expect("moved");
    let run = restore(&["--latest"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    succeed(
        &place,
        "BACKUP DATABASE Shop TO DISK = 'D:\\media\\other.bak' WITH COPY_ONLY",
    );
    let run = restore(&["--latest"]);
    assert!(run.err.contains("50066"), "{}{}", run.out, run.err);
    std::fs::remove_file(place.path("media/other.bak")).expect("a file");
    let lsn = set_of(&place, "media/1.trn").last_lsn;
    let run = restore(&["--at", &format!("lsn:{lsn}")]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    back("3.trn").and(back("4.trn")).expect("moved");
    // What shows its place is kept with it.
    succeed(
        &place,
        "BACKUP DATABASE Shop TO DISK = 'D:\\media\\full2.bak'",
    );
    let doubtful = place.run(&["expire", "media", "--last", "1", "--delete"]);
    assert_eq!(doubtful.code, Some(1), "{}", doubtful.out);
    let kept = |name: &str| place.path(&format!("media/{name}")).exists();
    assert_eq!(["2.trn", "3.trn", "4.trn"].map(kept), [true, true, false]);
    let run = restore(&["--latest"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
}

/// What continues it shows that it is the older, with no earlier backup beside it.
#[test]
fn a_full_backup_with_the_clock_ahead_keeps_no_one_from_restoring_what_is_based_on_it() {
    for with_differential in [false, true] {
        let place = Place::new();
        chain(&place, 2);
        let folder = place.path("media");
        std::fs::create_dir_all(&folder).expect("a folder");
        if with_differential {
            insert(&place, 3);
            let differential = "BACKUP DATABASE Shop TO DISK = 'd:\\d.bak' WITH DIFFERENTIAL";
            succeed(&place, differential);
            std::fs::rename(place.path("d.bak"), folder.join("d.bak")).expect("moved");
        }
        for file in ["full.bak", "1.trn", "2.trn"] {
            std::fs::rename(place.path(file), folder.join(file)).expect("moved");
        }
        redate(&place, "media/full.bak", 5);
        let restore = ["restore", "media", "--to", "x.db"];
        let run = place.run(&restore);
        assert_eq!(run.code, Some(0), "{with_differential}: {}", run.err);
        let ship = ["ship", "media", "--to", "standby.db", "--once"];
        let run = place.run(&ship);
        assert_eq!(run.code, Some(0), "{with_differential}: {}", run.err);
        // Another full backup may be older or newer than it.
        let full = "BACKUP DATABASE Shop TO DISK = 'd:\\media\\full2.bak'";
        succeed(&place, full);
        for file in ["1.trn", "2.trn", "d.bak"] {
            let _absent = std::fs::remove_file(folder.join(file));
        }
        let run = place.run(&restore);
        assert!(run.err.contains("50066"), "{}{}", run.out, run.err);
    }
}

/// Commits and two backups of one second, with a restore to before the commits in between.
#[test]
fn of_two_states_of_one_second_the_one_behind_the_restore_is_the_newer() {
    let place = Place::new();
    chain(&place, 0);
    std::fs::create_dir_all(place.path("media")).expect("a folder");
    // Until both are of one second; as a rule they are at once.
    for round in 0..20 {
        // What is undone is longer than what comes after it.
        (1..=3).for_each(|row| insert(&place, row));
        succeed(
            &place,
            "BACKUP DATABASE Shop TO DISK = 'D:\\media\\undone.bak' WITH FORMAT
             RESTORE DATABASE Shop FROM DISK = 'D:\\full.bak' WITH REPLACE
             BACKUP DATABASE Shop TO DISK = 'D:\\media\\good.bak' WITH FORMAT",
        );
        let [undone, good] =
            ["undone", "good"].map(|name| set_of(&place, &format!("media/{name}.bak")));
        if undone.finished == good.started && undone.last_lsn > good.last_lsn {
            break;
        }
        assert!(round < 19, "no two backups were of one second");
    }
    let dry_run = ["restore", "media", "--to", "r.db", "--dry-run", "--tsql"];
    let run = place.succeed(&dry_run);
    assert!(run.out.contains("good.bak"), "{}", run.out);
    let run = place.run(&["expire", "media", "--last", "1", "--delete"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(place.path("media/good.bak").exists());
    assert!(
        !place.path("media/undone.bak").exists(),
        "{}{}",
        run.out,
        run.err
    );
}

/// The machine's snapshot is put back, and a backup was made in between that the log has passed since.
#[test]
fn a_backup_of_a_history_that_was_left_takes_no_part_in_the_one_that_replaced_it() {
    const MAKE_CERTIFICATE: &str = "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'Correct horse 1 battery'\n\
         CREATE CERTIFICATE BackupCert WITH SUBJECT = 'Backups', EXPIRY_DATE = '20990101'";
    const ENCRYPTED: &str =
        "WITH ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = BackupCert)";
    let kinds = [
        ("INIT", ""),
        ("DIFFERENTIAL", ""),
        ("COPY_ONLY", ""),
        // Nobody else than the instance can look into the log.
        ("DIFFERENTIAL", ENCRYPTED),
    ];
    for (kind, encryption) in kinds {
        let place = Place::new();
        succeed(&place, MAKE_CERTIFICATE);
        chain(&place, 1);
        let of_machine = ["shop.mdf", "shop.ldf", "instance/windlass.catalog"];
        let copied = of_machine.map(|file| std::fs::read(place.path(file)).expect("a file"));
        insert(&place, 2);
        std::fs::create_dir_all(place.path("media")).expect("a folder");
        let back_up = format!("BACKUP DATABASE Shop TO DISK = 'D:\\media\\left.bak' WITH {kind}");
        succeed(&place, &back_up);
        for (file, bytes) in of_machine.iter().zip(&copied) {
            std::fs::write(place.path(file), bytes).expect("put back");
        }
        (3..=9).for_each(|row| insert(&place, row));
        for file in ["3.trn", "4.trn"] {
            succeed(
                &place,
                &format!("BACKUP LOG Shop TO DISK = 'D:\\media\\{file}' {encryption}"),
            );
            insert(&place, 10);
        }
        for file in ["full.bak", "1.trn"] {
            std::fs::rename(place.path(file), place.path(&format!("media/{file}"))).expect("moved");
        }
        let [left, log] =
            ["left.bak", "3.trn"].map(|name| set_of(&place, &format!("media/{name}")));
        assert!(log.first_lsn < left.last_lsn && left.last_lsn < log.last_lsn);
        let restore = || {
            let arguments = ["restore", "media", "--to", "r.db", "--replace"];
            place.run(&[&arguments[..], &["--instance", "instance"]].concat())
        };
        let latest = |name: &str| {
            let command = format!(
                "RESTORE DATABASE {name} FROM DISK = [media/*] SOURCE = 'Shop' LATEST_ALL WITH \
                 MOVE 'Shop' TO '{name}.mdf', MOVE 'Shop_log' TO '{name}.ldf'"
            );
            place.succeed(&["sqlbackup", "-SQL", &command, "--instance", "instance"]);
            assert_eq!(last(&place, name), 10, "{kind}");
        };
        let run = restore();
        assert_eq!(run.code, Some(0), "{kind}: {}", run.err);
        latest("Before");
        place.succeed(&["expire", "media", "--last", "1", "--delete"]);
        let run = restore();
        assert_eq!(run.code, Some(0), "{kind}: {}", run.err);
        latest("After");
        let attach = "CREATE DATABASE R ON (FILENAME = 'D:\\r.db') LOG ON (FILENAME = 'D:\\r.db-log') FOR ATTACH";
        succeed(&place, attach);
        assert_eq!(last(&place, "R"), 10, "{kind}");
    }
}
