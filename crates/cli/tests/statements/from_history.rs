//! `windlass restore` without media: from those that the history of the instance names.

use crate::log_backups::{chain, insert, last};
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
    let (data, log) = (place.text("copy.db"), place.text("copy.db-log"));
    succeed(
        place,
        &format!(
            "CREATE DATABASE Copy ON (FILENAME = '{data}') LOG ON (FILENAME = '{log}') FOR ATTACH"
        ),
    );
    let found = last(place, "Copy");
    succeed(place, "EXEC sp_detach_db 'Copy'");
    for file in [data, log] {
        std::fs::remove_file(file).expect("a file of the copy");
    }
    found
}

#[test]
fn the_newest_state_or_a_moment_is_restored_from_what_the_history_names() {
    let place = Place::new();
    chain(&place, 2);
    for how in [&["--latest", "--of", "Shop"][..], &["--of", "Shop"]] {
        let run = restore(&place, how);
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert_eq!(restored(&place), 2);
    }
    let header = succeed(&place, "RESTORE HEADERONLY FROM DISK = 'D:\\1.trn'").results();
    let end = format!("lsn:{}", header[0][0]["LastLSN"].as_str().expect("an LSN"));
    let run = restore(&place, &["--at", &end, "--of", "Shop"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(restored(&place), 1);
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
