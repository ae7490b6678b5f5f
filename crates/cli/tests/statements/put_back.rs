//! Files of a database that were put back from a copy: two histories in one recovery fork, with one LSN for two logs.

use std::process::Command;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::contradicted::set_of;
use crate::log_backups::{chain, insert, last};
use crate::moments::between;
use crate::sqlite_logs;
use crate::support::{Place, Run, registered, succeed};

const OF_MACHINE: [&str; 3] = ["shop.mdf", "shop.ldf", "instance/windlass.catalog"];

fn copied(place: &Place) -> Vec<Vec<u8>> {
    let files = OF_MACHINE.iter();
    let files = files.map(|file| std::fs::read(place.path(file)).expect("a file"));
    files.collect()
}

fn put_back(place: &Place, files: &[Vec<u8>]) {
    for (file, bytes) in OF_MACHINE.iter().zip(files) {
        std::fs::write(place.path(file), bytes).expect("put back");
    }
}

fn move_to_media(place: &Place, names: &[&str]) {
    std::fs::create_dir_all(place.path("media")).expect("a folder");
    for name in names {
        std::fs::rename(place.path(name), place.path(&format!("media/{name}"))).expect("moved");
    }
}

fn back_up(place: &Place, what: &str, file: &str, options: &str) {
    let to = format!("TO DISK = 'D:\\media\\{file}' WITH INIT{options}");
    succeed(place, &format!("BACKUP {what} Shop {to}"));
}

/// Restores from the media, and attaches the files.
fn restored(place: &Place, name: &str, options: &[&str]) -> serde_json::Value {
    let file = format!("{name}.db");
    let base = ["restore", "media", "--to", &file, "--instance", "instance"];
    let run = place.run(&[&base[..], options].concat());
    assert_eq!(run.code, Some(0), "{name}: {}{}", run.out, run.err);
    let attach = format!(
        "CREATE DATABASE {name} ON (FILENAME = 'D:\\{name}.db') LOG ON (FILENAME = 'D:\\{name}.db-log') FOR ATTACH"
    );
    succeed(place, &attach);
    last(place, name)
}

#[test]
fn a_moment_is_that_of_the_log_in_which_it_is_and_an_lsn_in_two_histories_is_refused() {
    let place = Place::new();
    chain(&place, 1);
    let files = copied(&place);
    move_to_media(&place, &["full.bak", "1.trn"]);
    (2..=9).for_each(|row| insert(&place, row));
    let in_left = between(&place);
    insert(&place, 10);
    back_up(&place, "LOG", "left.trn", "");
    put_back(&place, &files);
    insert(&place, 20);
    let in_living = between(&place);
    insert(&place, 21);
    back_up(&place, "LOG", "3.trn", "");
    (22..=40).for_each(|row| insert(&place, row));
    back_up(&place, "LOG", "4.trn", "");
    let [left, third, fourth] =
        ["left.trn", "3.trn", "4.trn"].map(|name| set_of(&place, &format!("media/{name}")));
    assert!(third.last_lsn < left.last_lsn && left.last_lsn < fourth.last_lsn);
    assert_eq!(restored(&place, "InLeft", &["--at", &in_left]), 9);
    assert_eq!(restored(&place, "InLiving", &["--at", &in_living]), 20);
    let lsn = format!("lsn:{}", third.first_lsn);
    let run = place.run(&["restore", "media", "--to", "x.db", "--at", &lsn]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.err.contains("is in two histories"), "{}", run.err);
}

/// All sets on one medium: their order there is that of their times.
#[test]
fn shipping_follows_the_history_that_went_on() {
    let place = Place::new();
    chain(&place, 0);
    std::fs::create_dir_all(place.path("ship")).expect("a folder");
    let back_up = |what: &str| {
        let to = "TO DISK = 'D:\\ship\\m.bak' WITH NOINIT";
        succeed(&place, &format!("BACKUP {what} Shop {to}"));
    };
    back_up("DATABASE");
    insert(&place, 1);
    back_up("LOG");
    let files = copied(&place);
    (2..=9).for_each(|row| insert(&place, row));
    back_up("LOG");
    let medium = std::fs::read(place.path("ship/m.bak")).expect("the medium");
    put_back(&place, &files);
    std::fs::write(place.path("ship/m.bak"), medium).expect("the medium");
    insert(&place, 20);
    back_up("LOG");
    let ship = [
        "ship",
        "ship",
        "--to",
        "s.db",
        "--once",
        "--instance",
        "instance",
    ];
    let promote = [
        "ship",
        "ship",
        "--to",
        "s.db",
        "--promote",
        "--instance",
        "instance",
    ];
    for arguments in [ship, ship, promote] {
        let run = place.run(&arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {}{}", run.out, run.err);
    }
    let attach = "CREATE DATABASE S ON (FILENAME = 'D:\\s.db') LOG ON (FILENAME = 'D:\\s.db-log') FOR ATTACH";
    succeed(&place, attach);
    assert_eq!(last(&place, "S"), 20);
}

#[test]
fn without_a_key_to_the_log_whatever_may_lead_into_it_stays() {
    let place = Place::new();
    succeed(
        &place,
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'Correct horse 1 battery'
         CREATE CERTIFICATE BackupCert WITH SUBJECT = 'Backups', EXPIRY_DATE = '20990101'",
    );
    chain(&place, 1);
    move_to_media(&place, &["full.bak"]);
    let files = copied(&place);
    insert(&place, 2);
    back_up(&place, "DATABASE", "left1.bak", ", DIFFERENTIAL");
    put_back(&place, &files);
    (20..=23).for_each(|row| insert(&place, row));
    back_up(&place, "DATABASE", "own.bak", ", DIFFERENTIAL");
    let files = copied(&place);
    (3..=6).for_each(|row| insert(&place, row));
    back_up(&place, "DATABASE", "left2.bak", ", DIFFERENTIAL");
    put_back(&place, &files);
    (24..=40).for_each(|row| insert(&place, row));
    let key = ", ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = BackupCert)";
    back_up(&place, "LOG", "2.trn", key);
    let [one, own, two, log] = ["left1.bak", "own.bak", "left2.bak", "2.trn"]
        .map(|name| set_of(&place, &format!("media/{name}")).last_lsn);
    assert!(one < own && own < two && two < log);
    assert_eq!(restored(&place, "Before", &[]), 40);
    place.succeed(&["expire", "media", "--last", "1", "--delete"]);
    assert_eq!(restored(&place, "After", &[]), 40);
}

/// A commit in `app.db`, whose log is left as it is when the application ends.
fn commit(place: &Place, number: u32) {
    let application = Connection::open(place.path("app.db")).expect("the database");
    let leaves_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    application.set_db_config(leaves_log, true).expect("set");
    let manual = "PRAGMA wal_autocheckpoint = 0; PRAGMA journal_mode = WAL;
                  CREATE TABLE IF NOT EXISTS step(n INTEGER)";
    application.execute_batch(manual).expect("WAL mode");
    sqlite_logs::step(&application, number);
}

/// Copies the file, its log and the instance, between folders of the place. Files that are there stay the same ones.
fn copy_files(place: &Place, from: &str, to: &str) {
    let script = format!(
        "mkdir -p {to} && rm -rf {to}/instance && cp -p {from}/app.db* {to}/ && cp -a {from}/instance {to}/"
    );
    let copied = Command::new("sh")
        .args(["-c", &script])
        .current_dir(place.path("."))
        .status();
    assert!(copied.expect("a shell").success());
}

/// Restores `app` from the media: the newest step in it.
fn newest_of_file(place: &Place, name: &str) -> i64 {
    let file = format!("{name}.db");
    place.succeed(&["restore", "media", "--to", &file]);
    sqlite_logs::last(place, &file)
}

#[test]
fn of_a_file_that_was_put_back_the_log_tells_which_states_are_of_its_history() {
    let place = registered();
    commit(&place, 0);
    std::fs::create_dir_all(place.path("media")).expect("a folder");
    let back_up = |what: &str, file: &str, options: &str| {
        let to = format!("TO DISK = 'd:\\media\\{file}' WITH INIT{options}");
        succeed(&place, &format!("BACKUP {what} app {to}"));
    };
    succeed(&place, "ALTER DATABASE app SET RECOVERY FULL");
    back_up("DATABASE", "1.bak", "");
    commit(&place, 1);
    back_up("LOG", "2.trn", "");
    copy_files(&place, ".", "kept");
    commit(&place, 2);
    back_up("DATABASE", "3left.bak", ", DIFFERENTIAL");
    copy_files(&place, "kept", ".");
    commit(&place, 20);
    back_up("LOG", "4.trn", "");
    commit(&place, 21);
    back_up("LOG", "5.trn", "");
    assert_eq!(newest_of_file(&place, "before"), 21);
    let without_place = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env("TMPDIR", place.path("nowhere"));
        Run::of(&command.output().expect("the program runs"))
    };
    for how in ["--dry-run", "--latest"] {
        let run = without_place(&["restore", "media", "--to", "none.db", how]);
        assert_eq!(run.code, Some(1), "{}", run.out);
        for said in ["50319", "4.trn", "nowhere", "TMPDIR"] {
            assert!(run.err.contains(said), "{said}: {}", run.err);
        }
    }
    // Nor is there, if the log does not fit.
    let limited = place.command(&["restore", "media", "--to", "none.db", "--dry-run"]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"]);
    command.arg(limited.get_program()).args(limited.get_args());
    let environment = limited.get_envs();
    command.envs(environment.filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(limited.get_current_dir().expect("a folder"));
    let run = Run::of(&command.output().expect("the program runs"));
    assert_eq!(run.code, Some(1), "{}", run.out);
    for said in ["50319", "File too large"] {
        assert!(run.err.contains(said), "{said}: {}", run.err);
    }
    let run = without_place(&["expire", "media", "--last", "1", "--delete"]);
    assert!(run.err.contains("50319"), "{}", run.err);
    assert_eq!(newest_of_file(&place, "still"), 21);
    place.succeed(&["expire", "media", "--last", "1", "--delete"]);
    assert_eq!(newest_of_file(&place, "after"), 21);
}

#[test]
fn a_copy_of_a_file_that_was_put_back_does_not_stay_with_the_history_that_was_left() {
    let place = registered();
    commit(&place, 0);
    std::fs::create_dir_all(place.path("media")).expect("a folder");
    let back_up = |what: &str, file: &str| {
        let to = format!("TO DISK = 'd:\\media\\{file}' WITH INIT");
        succeed(&place, &format!("BACKUP {what} app {to}"));
    };
    succeed(&place, "ALTER DATABASE app SET RECOVERY FULL");
    back_up("DATABASE", "1.bak");
    commit(&place, 1);
    back_up("LOG", "2.trn");
    copy_files(&place, ".", "kept");
    commit(&place, 2);
    back_up("LOG", "3left.trn");
    place.succeed(&["ship", "media", "--to", "s.db", "--once"]);
    copy_files(&place, "kept", ".");
    for (number, log) in [(20, "4.trn"), (21, "5.trn")] {
        commit(&place, number);
        back_up("LOG", log);
        for how in ["--once", "--promote"] {
            let run = place.run(&["ship", "media", "--to", "s.db", how]);
            assert_eq!(run.code, Some(1), "{log}, {how}: {}", run.out);
            assert!(run.err.contains("50300"), "{log}, {how}: {}", run.err);
        }
    }
}
