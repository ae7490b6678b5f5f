//! Where the dates of backups contradict the log of their database, nobody knows which state is the newest.

use rusqlite::Connection;
use windlass_media::craft::{self, Medium, Set};

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

fn set_of(place: &Place, name: &str) -> windlass_media::SetConfiguration {
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
