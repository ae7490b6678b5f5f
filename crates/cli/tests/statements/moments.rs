//! Restores to a moment: the command finds the backups that lead there, in folders too.

use serde_json::Value as Json;

use crate::log_backups::{back_up_log, chain, insert, last};
use crate::support::{Place, Run, ask, flip_bit, on, succeed, well};

/// The time between two commits.
pub(crate) fn between(place: &Place) -> String {
    let pause = std::time::Duration::from_millis(30);
    std::thread::sleep(pause);
    let at = ask(place, "instance", "SELECT sysdatetime() AS at");
    std::thread::sleep(pause);
    at[0]["at"].as_str().expect("a time")[..23].replace('T', " ")
}

/// Restores from the place's folder.
fn restore(place: &Place, options: &[&str]) -> Run {
    let to = ["--to", "copy/copy.db", "--database", "Copy", "--replace"];
    std::fs::create_dir_all(place.path("copy")).expect("a folder");
    on(place, &[&["restore", "media"], &to[..], options].concat())
}

/// Backups of several kinds in the folder `media`, and the times between their commits.
fn history() -> (Place, Vec<String>) {
    let place = Place::new();
    std::fs::create_dir(place.path("media")).expect("a folder");
    chain(&place, 0);
    let moved = place.path("media/full.bak");
    std::fs::rename(place.path("full.bak"), moved).expect("moved");
    let mut times = Vec::new();
    for number in 1..=4 {
        insert(&place, number);
        times.push(between(&place));
        if number == 3 {
            succeed(
                &place,
                "BACKUP DATABASE Shop TO DISK = 'D:\\media\\diff.bak' WITH DIFFERENTIAL",
            );
        }
        if number % 2 == 0 {
            insert(&place, number * 10);
            back_up_log(&place, &format!("media\\{number}.trn"));
        }
    }
    (place, times)
}

#[test]
fn a_moment_is_reached_through_the_backups_that_lead_there() {
    let (place, times) = history();
    for (at, expected) in times.iter().zip([1, 2, 20, 40]) {
        let run = restore(&place, &["--at", at]);
        assert_eq!(run.code, Some(0), "{at}: {}", run.err);
        let found = last(&place, "Copy");
        // The rows 3 and 4 are smaller than row 20.
        let expected = if expected == 40 { 20 } else { expected };
        assert_eq!(found, expected, "{at}: {}", run.err);
    }
    let count = |at: &str| {
        let run = restore(&place, &["--at", at]);
        assert_eq!(run.code, Some(0), "{at}: {}", run.err);
        ask(
            &place,
            "instance",
            "USE Copy\nGO\nSELECT count(*) AS n FROM t",
        )[0]["n"]
            .clone()
    };
    let counts: Vec<Json> = times.iter().map(|at| count(at)).collect();
    assert_eq!(counts, [2, 3, 5, 6]);
    // The differential ends after the second moment, so it is not on the way there.
    let run = restore(&place, &["--at", &times[1]]);
    assert!(run.err.contains("it ends after the moment"), "{}", run.err);
    let run = restore(&place, &["--at", &times[3]]);
    assert!(run.err.contains("(differential"), "{}", run.err);
}

/// Central Europe, whose clocks are set back on 25 October 2026.
const ZONE: (&str, &str) = ("TZ", "CET-1CEST,M3.5.0,M10.5.0/3");

#[test]
fn a_local_time_that_comes_twice_is_told_with_both_offsets() {
    let place = Place::new();
    let at = |at: &str| {
        let words = ["restore", "media", "--to", "x.db", "--at", at];
        let run = place.command(&words).env(ZONE.0, ZONE.1).output();
        Run::of(&run.expect("the program runs"))
    };
    let run = at("2026-10-25 02:30");
    assert_eq!(run.code, Some(2), "{}", run.err);
    for told in [
        "it comes twice",
        "'2026-10-25 02:30:00+02:00' for the first",
        "'2026-10-25 02:30:00+01:00' for the second",
    ] {
        assert!(run.err.contains(told), "{told}: {}", run.err);
    }
    let run = at("2026-03-29 02:30");
    assert!(run.err.contains("no such time"), "{}", run.err);
    // What it proposes is a moment: only the media are missing.
    let run = at("2026-10-25 02:30:00+01:00");
    assert_eq!(run.code, Some(1), "{}", run.err);
}

#[test]
fn stopat_takes_the_first_of_two_times_and_says_so_and_an_offset_names_the_other() {
    let place = Place::new();
    let numbers = |stop: &str| {
        let script = format!(
            "RESTORE DATABASE x FROM DISK = 'd:\\nosuch.bak' WITH STOPAT = '{stop}', NORECOVERY"
        );
        std::fs::write(place.path("script.sql"), script).expect("the script");
        let words = ["sql", "-i", "script.sql", "--json", "--drive", "d=."];
        let run = place.command(&words).env(ZONE.0, ZONE.1).output();
        let run = Run::of(&run.expect("the program runs"));
        let told = "The first is taken: 2026-10-25 02:30:00+02:00. For the second, write '2026-10-25 02:30:00+01:00'.";
        assert_eq!(
            run.err.contains(told),
            stop.len() == 19,
            "{stop}: {}",
            run.err
        );
        run.numbers()
    };
    assert_eq!(numbers("2026-10-25 02:30:00"), [50321, 3201, 3013]);
    for one in [
        "2026-10-25 02:30:00+01:00",
        "2026-10-25 02:30:00 +01:00",
        "2026-10-25T01:30:00Z",
        "2026-10-25 03:30:00.0",
    ] {
        assert_eq!(numbers(one), [3201, 3013], "{one}");
    }
}

#[test]
fn an_lsn_is_reached_as_well() {
    let (place, _) = history();
    let lsn = ask(
        &place,
        "instance",
        "SELECT first_lsn AS lsn FROM msdb.dbo.backupset WHERE type = 'L' ORDER BY backup_set_id DESC LIMIT 1",
    );
    let lsn = format!("lsn:{}", lsn[0]["lsn"]).replace('"', "");
    let run = restore(&place, &["--at", &lsn]);
    assert_eq!(run.code, Some(0), "{lsn}: {}", run.err);
    assert_eq!(last(&place, "Copy"), 20);
}

#[test]
fn what_leads_nowhere_is_said_with_the_nearest_states_and_nothing_is_restored() {
    let (place, times) = history();
    let refused = |at: &str, why: &[&str]| {
        let run = restore(&place, &["--at", at]);
        assert_eq!(run.code, Some(1), "{at}: {}", run.err);
        assert!(run.err.contains("50290"), "{}", run.err);
        for why in why {
            assert!(run.err.contains(why), "{why}: {}", run.err);
        }
        assert!(!place.path("copy/copy.db").exists());
    };
    refused("2020-01-01", &["the nearest state after it", "(full"]);
    refused(
        "2199-01-01",
        &["no log backup ends after it", "before it is"],
    );
    std::fs::remove_file(place.path("media/2.trn")).expect("removed");
    refused(&times[1], &["the log before it is missing"]);
    std::fs::remove_file(place.path("media/4.trn")).expect("removed");
    refused(&times[1], &["there are no log backups"]);
}

#[test]
fn a_folder_holds_other_things_too() {
    let (place, times) = history();
    well(&place, &["backup", "app.db", "--to", "media/other.bak"]);
    std::fs::write(place.path("media/notes.txt"), "nothing of ours").expect("written");
    std::fs::write(place.path("media/broken.trn"), [0; 4096]).expect("written");
    // There are two databases in the folder, and neither is called Copy.
    let run = restore(&place, &["--at", &times[1]]);
    assert!(run.err.contains("50060"), "{}", run.err);
    let run = restore(&place, &["--of", "Shop", "--at", &times[1]]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("broken.trn"), "{}", run.err);
    assert!(!run.err.contains("notes.txt"), "{}", run.err);
    assert_eq!(last(&place, "Copy"), 2);
    let run = restore(&place, &["--of", "Nobody"]);
    assert!(run.err.contains("50061"), "{}", run.err);
    // Damage in the log that is needed is found when it is read.
    let damaged = place.path("media/2.trn");
    let bytes = std::fs::metadata(&damaged).expect("it is there").len();
    flip_bit(&damaged, bytes / 2);
    let run = restore(&place, &["--of", "Shop", "--at", &times[1]]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    let empty = on(&place, &["restore", "copy", "--to", "x.db"]);
    assert_eq!(empty.code, Some(1), "{}", empty.err);
}

#[test]
fn a_database_without_a_log_has_only_the_states_of_its_backups() {
    let place = Place::new();
    std::fs::create_dir(place.path("media")).expect("a folder");
    well(&place, &["backup", "app.db", "--to", "media/app.bak"]);
    let run = restore(&place, &["--at", "2199-01-01"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    for text in ["there are no log backups", "the nearest state before it"] {
        assert!(run.err.contains(text), "{}", run.err);
    }
}

#[test]
fn each_file_can_be_moved_without_a_name_for_the_database() {
    let (place, _) = history();
    let (data, log) = (place.text("moved.db"), place.text("moved.log"));
    let moves = [format!("Shop={data}"), format!("Shop_log={log}")];
    let run = place.run(&["restore", "media", "--move", &moves[0], "--move", &moves[1]]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let attached = format!(
        "CREATE DATABASE Moved ON (FILENAME = '{data}') LOG ON (FILENAME = '{log}') FOR ATTACH"
    );
    succeed(&place, &attached);
    assert_eq!(last(&place, "Moved"), 40);
}

#[test]
fn a_moment_without_a_later_commit_is_reached_by_the_logs_behind_it_or_by_their_end() {
    let place = Place::new();
    std::fs::create_dir(place.path("media")).expect("a folder");
    chain(&place, 1);
    for file in ["full.bak", "1.trn"] {
        std::fs::rename(place.path(file), place.path(&format!("media/{file}"))).expect("moved");
    }
    let idle = between(&place);
    back_up_log(&place, "media\\2.trn");
    // No log backup says by a commit that the moment is reached, so only the clock of the last one does.
    let run = restore(&place, &["--at", &idle]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    for text in ["more roll forward", "which no other backup contradicts"] {
        assert!(run.err.contains(text), "{text}: {}", run.err);
    }
    assert_eq!(last(&place, "Copy"), 1);
    back_up_log(&place, "media\\3.trn");
    insert(&place, 2);
    back_up_log(&place, "media\\4.trn");
    // The commit in a later log backup is later than the moment.
    let run = restore(&place, &["--at", &idle]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(!run.err.contains("which no other"), "{}", run.err);
    assert_eq!(last(&place, "Copy"), 1);
}
