//! `windlass restore` without media: from those that the history of the instance names.

use crate::log_backups::{back_up_log, chain, insert, last_of_file};
use crate::support::{Place, Run, on, succeed};

/// A restore to `copy.db`, from what the history of the instance names.
fn restore(place: &Place, how: &[&str]) -> Run {
    on(place, &[&["restore", "--to", "copy.db"][..], how].concat())
}

#[track_caller]
fn refused(place: &Place, how: &[&str], said: &str) {
    let run = restore(place, how);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.err.contains(said), "{}", run.err);
    assert!(!place.path("copy.db").exists());
}

/// What the restored file holds; it is deleted again.
fn restored(place: &Place) -> serde_json::Value {
    let found = last_of_file(place, "copy.db");
    for file in ["copy.db", "copy.db-log"] {
        std::fs::remove_file(place.path(file)).expect("a file of the copy");
    }
    found
}

/// A restore that succeeds, and the last row of what it restores.
#[track_caller]
fn gives(place: &Place, how: &[&str], last: u32) -> Run {
    let run = restore(place, how);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(restored(place), last, "{how:?}");
    run
}

#[test]
fn the_newest_state_or_a_moment_is_restored_from_what_the_history_names() {
    let place = Place::new();
    chain(&place, 2);
    for how in [&["--latest", "--of", "Shop"][..], &["--of", "Shop"]] {
        gives(&place, how, 2);
    }
    let header = succeed(&place, "RESTORE HEADERONLY FROM DISK = 'D:\\1.trn'").results();
    let end = format!("lsn:{}", header[0][0]["LastLSN"].as_str().expect("an LSN"));
    gives(&place, &["--at", &end, "--of", "Shop"], 1);
}

#[test]
fn an_older_state_is_not_taken_for_the_newest_where_the_newest_backup_is_gone() {
    let place = Place::new();
    chain(&place, 2);
    std::fs::rename(place.path("2.trn"), place.path("elsewhere")).expect("moved");
    refused(&place, &["--latest", "--of", "Shop"], "50324");
    std::fs::rename(place.path("elsewhere"), place.path("2.trn")).expect("moved");
    insert(&place, 3);
    let stripes = "BACKUP LOG Shop TO DISK = 'D:\\3a.trn', DISK = 'D:\\3b.trn'";
    succeed(&place, stripes);
    std::fs::remove_file(place.path("3b.trn")).expect("a stripe");
    let half = restore(&place, &["--of", "Shop"]);
    assert_eq!(half.code, Some(1), "{}{}", half.out, half.err);
}

#[test]
fn an_older_backup_under_the_name_of_the_newest_is_not_taken_for_it() {
    let place = Place::new();
    chain(&place, 2);
    let newest = std::fs::read(place.path("2.trn")).expect("the newest");
    for older in ["1.trn", "full.bak"] {
        std::fs::copy(place.path(older), place.path("2.trn")).expect("copied over");
        refused(&place, &["--latest", "--of", "Shop"], "50324");
        let drill = on(&place, &["drill", "Shop", "--scratch", "."]);
        assert_eq!(drill.code, Some(1), "{}", drill.out);
        assert!(drill.err.contains("50324"), "{}", drill.err);
    }
    std::fs::write(place.path("2.trn"), newest).expect("put back");
    gives(&place, &["--latest", "--of", "Shop"], 2);
}

#[test]
fn a_newest_backup_that_another_database_has_overwritten_is_missed_until_it_is_put_back() {
    let place = Place::new();
    chain(&place, 2);
    succeed(
        &place,
        "CREATE DATABASE Other ON (FILENAME = 'D:\\other.mdf') LOG ON (FILENAME = 'D:\\other.ldf')",
    );
    let newest = std::fs::read(place.path("2.trn")).expect("the newest");
    succeed(
        &place,
        "BACKUP DATABASE Other TO DISK = 'D:\\2.trn' WITH INIT",
    );
    refused(&place, &["--of", "Shop"], "50324");
    std::fs::write(place.path("2.trn"), newest).expect("put back");
    gives(&place, &["--of", "Shop"], 2);
    // An older state of a file, to which another database appends.
    std::fs::copy(place.path("1.trn"), place.path("2.trn")).expect("copied over");
    succeed(&place, "BACKUP DATABASE Other TO DISK = 'D:\\2.trn'");
    refused(&place, &["--of", "Shop"], "50324");
}

#[test]
fn what_the_history_was_told_to_forget_is_not_restored_from_it() {
    let place = Place::new();
    chain(&place, 2);
    succeed(
        &place,
        "EXEC msdb.dbo.sp_delete_database_backuphistory 'Shop'",
    );
    refused(&place, &["--of", "Shop"], "50293");
}

#[test]
fn a_medium_that_cannot_be_read_is_missed_only_where_it_is_needed() {
    let place = Place::new();
    chain(&place, 1);
    let stripes = "BACKUP DATABASE Shop TO DISK = 'D:\\a.bak', DISK = 'D:\\b.bak' WITH COPY_ONLY";
    succeed(&place, stripes);
    std::fs::remove_file(place.path("b.bak")).expect("a stripe");
    insert(&place, 2);
    let mirrors =
        "BACKUP DATABASE Shop TO DISK = 'D:\\2.bak' MIRROR TO DISK = 'D:\\m.bak' WITH FORMAT";
    succeed(&place, mirrors);
    for bad in ["full.bak", "2.bak"] {
        std::fs::write(place.path(bad), "no backup").expect("a file");
        let run = gives(&place, &["--of", "Shop"], 2);
        assert!(run.err.contains(bad), "{}", run.err);
    }
    std::fs::write(place.path("m.bak"), "no backup").expect("a file");
    refused(&place, &["--of", "Shop"], "50324");
    refused(&place, &["--of", "Shop"], "m.bak");
}

#[test]
fn no_restore_overwrites_a_backup_or_a_catalog() {
    let place = Place::new();
    chain(&place, 1);
    // SQL Server's, compressed.
    std::fs::write(place.path("server.bak"), b"MSSQLBAK and more").expect("a file");
    for target in [
        "full.bak",
        "1.trn",
        "server.bak",
        "instance/windlass.catalog",
    ] {
        let before = std::fs::read(place.path(target)).expect("a file");
        for how in [&["--of", "Shop"][..], &["full.bak", "1.trn"]] {
            let arguments = [&["restore", "--replace", "--to", target][..], how].concat();
            let run = on(&place, &arguments);
            assert_eq!(run.code, Some(1), "{target}: {}", run.out);
            let after = std::fs::read(place.path(target)).expect("a file");
            assert!(before == after, "{target}: {}", run.err);
        }
    }
    let left = std::fs::read_dir(place.path("")).expect("a folder");
    let mut left = left.map(|entry| entry.expect("a file").file_name());
    assert!(left.all(|name| !name.to_string_lossy().contains("windlass-")));
}

/// A media set has at most 64 families; the media of a database are as many as it has backups.
#[test]
fn the_history_may_name_more_media_than_a_media_set_has() {
    let place = Place::new();
    chain(&place, 0);
    for number in 1..=65 {
        if number == 65 {
            insert(&place, number);
        }
        back_up_log(&place, &format!("{number}.trn"));
    }
    gives(&place, &["--of", "Shop"], 65);
    let logs: Vec<String> = (1..=65).map(|number| format!("{number}.trn")).collect();
    let mut named: Vec<&str> = logs.iter().map(String::as_str).collect();
    named.push("full.bak");
    gives(&place, &named, 65);
}

#[test]
fn what_the_history_does_not_know_is_said() {
    let place = Place::new();
    chain(&place, 1);
    refused(&place, &["--of", "Nosuch"], "50293");
    let nobody = restore(&place, &["--latest"]);
    assert_eq!(nobody.code, Some(2), "{}", nobody.err);
    assert!(nobody.err.contains("Give --of NAME"), "{}", nobody.err);
    let without = place.run(&["restore", "--of", "Shop", "--to", "copy.db"]);
    assert_eq!(without.code, Some(2), "{}", without.err);
}
