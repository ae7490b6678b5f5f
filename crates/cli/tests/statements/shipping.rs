//! `windlass ship`: a copy that is kept current from log backups.

use windlass_base::size::counted;

use crate::log_backups::{back_up_log, chain, insert, last, last_of_file};
use crate::sqlite_logs;
use crate::support::{Place, Run, on, registered, succeed, well};

/// A round from the folder `media` to a copy of its own.
fn ship(place: &Place, options: &[&str]) -> Run {
    std::fs::create_dir_all(place.path("standby")).expect("a folder");
    let round = ["ship", "media", "--of", "Shop", "--to", "standby/shop.db"];
    place.run(&[&round, options].concat())
}

/// A round that fails and says why.
#[track_caller]
fn refused(place: &Place, how: &str, said: &[&str]) {
    let round = ship(place, &[how]);
    assert_eq!(round.code, Some(1), "{how}: {}", round.out);
    for said in said {
        assert!(round.err.contains(said), "{how}: {}", round.err);
    }
}

fn move_to_media(place: &Place, file: &str) {
    std::fs::create_dir_all(place.path("media")).expect("a folder");
    std::fs::rename(place.path(file), place.path(&format!("media/{file}"))).expect("moved");
}

/// What the promoted copy holds.
fn promoted(place: &Place) -> serde_json::Value {
    last_of_file(place, "standby/shop.db")
}

#[test]
fn each_round_applies_what_is_new_until_the_copy_is_promoted() {
    let place = Place::new();
    chain(&place, 1);
    move_to_media(&place, "full.bak");
    move_to_media(&place, "1.trn");
    let first = ship(&place, &["--once"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert!(
        first.out.starts_with("2 backup sets restored"),
        "{}",
        first.out
    );
    let nothing = ship(&place, &["--once"]);
    assert!(
        nothing.out.starts_with("0 backup sets restored"),
        "{}{}",
        nothing.out,
        nothing.err
    );
    for number in 2..=4 {
        insert(&place, number);
        back_up_log(&place, &format!("{number}.trn"));
    }
    // A copy that came too early: the log between is missing, which a later round has.
    move_to_media(&place, "3.trn");
    let gap = ship(&place, &["--once"]);
    assert_eq!(gap.code, Some(1), "{}", gap.out);
    assert!(gap.err.contains("50296"), "{}", gap.err);
    move_to_media(&place, "2.trn");
    let both = ship(&place, &["--once"]);
    assert!(
        both.out.starts_with("2 backup sets restored"),
        "{}{}",
        both.out,
        both.err
    );
    // A differential or a newer full backup is not needed, and no obstacle.
    succeed(
        &place,
        "BACKUP DATABASE Shop TO DISK = 'D:\\media\\full2.bak'",
    );
    insert(&place, 5);
    back_up_log(&place, "5.trn");
    move_to_media(&place, "4.trn");
    move_to_media(&place, "5.trn");
    let run = ship(&place, &["--promote"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(promoted(&place), 5);
    let over = ship(&place, &["--once"]);
    assert_eq!(over.code, Some(1), "{}", over.out);
    assert!(over.err.contains("50301"), "{}", over.err);
    assert_eq!(promoted(&place), 5);
}

#[test]
fn a_delay_holds_log_backups_back() {
    let place = Place::new();
    chain(&place, 2);
    for file in ["full.bak", "1.trn", "2.trn"] {
        move_to_media(&place, file);
    }
    let held = ship(&place, &["--once", "--delay", "4h"]);
    assert_eq!(held.code, Some(0), "{}", held.err);
    assert_eq!(held.out.trim_end(), "0 backup sets restored");
    assert!(
        held.err.contains("No full backup is as old as"),
        "{}",
        held.err
    );
    let run = ship(&place, &["--once"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    insert(&place, 3);
    back_up_log(&place, "3.trn");
    move_to_media(&place, "3.trn");
    let held = ship(&place, &["--once", "--delay", "4h"]);
    assert!(
        held.out.starts_with("0 backup sets"),
        "{}{}",
        held.out,
        held.err
    );
    let run = ship(&place, &["--promote"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(promoted(&place), 3);
}

#[test]
fn of_rounds_at_the_same_time_each_goes_on_or_says_that_a_restore_is_under_way() {
    let place = Place::new();
    chain(&place, 4);
    for file in ["full.bak", "1.trn", "2.trn", "3.trn", "4.trn"] {
        move_to_media(&place, file);
    }
    let rounds: Vec<Run> = std::thread::scope(|scope| {
        let begun: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| ship(&place, &["--once"])))
            .collect();
        begun
            .into_iter()
            .map(|round| round.join().expect("a round"))
            .collect()
    });
    for round in &rounds {
        let is_told = round.code == Some(1) && round.err.contains("Msg 50006,");
        assert!(round.code == Some(0) || is_told, "{}", round.err);
    }
    well(
        &place,
        &[
            "ship",
            "media",
            "--of",
            "Shop",
            "--to",
            "standby/shop.db",
            "--promote",
        ],
    );
    assert_eq!(promoted(&place), 4);
}

#[test]
fn a_registered_copy_is_restoring_until_then() {
    let place = Place::new();
    chain(&place, 1);
    move_to_media(&place, "full.bak");
    move_to_media(&place, "1.trn");
    std::fs::create_dir(place.path("standby")).expect("a folder");
    let round = [
        "ship",
        "media",
        "--to",
        "standby/shop.db",
        "--database",
        "Standby",
    ];
    well(&place, &[&round[..], &["--once"]].concat());
    let refused = crate::support::sql(&place, "USE Standby");
    assert_eq!(refused.numbers(), [927], "{}", refused.err);
    well(&place, &[&round[..], &["--promote"]].concat());
    assert_eq!(last(&place, "Standby"), 1);
}

#[test]
fn what_has_no_log_is_not_shipped() {
    let place = Place::new();
    well(&place, &["backup", "app.db", "--to", "app.bak"]);
    let run = on(&place, &["ship", "app.bak", "--to", "copy.db", "--once"]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.err.contains("50297"), "{}", run.err);
    assert!(!place.path("copy.db").exists());
}

#[test]
fn a_copy_does_not_follow_a_history_that_the_database_has_left() {
    let place = Place::new();
    chain(&place, 2);
    for file in ["full.bak", "1.trn", "2.trn"] {
        move_to_media(&place, file);
    }
    well(
        &place,
        &[
            "ship",
            "media/full.bak",
            "media/1.trn",
            "--of",
            "Shop",
            "--to",
            "standby.db",
            "--once",
        ],
    );
    succeed(
        &place,
        "RESTORE DATABASE Shop FROM DISK = 'D:\\media\\full.bak' WITH REPLACE, NORECOVERY
         RESTORE LOG Shop FROM DISK = 'D:\\media\\1.trn' WITH RECOVERY
         BACKUP DATABASE Shop TO DISK = 'D:\\media\\full2.bak'",
    );
    for end in ["--once", "--promote"] {
        let round = ["ship", "media", "--of", "Shop", "--to", "standby.db", end];
        let run = on(&place, &round);
        assert_eq!(run.code, Some(1), "{end}: {}", run.out);
        assert!(run.err.contains("50300"), "{end}: {}", run.err);
    }
    // What is left of a striped backup of the new history tells as much.
    std::fs::rename(place.path("media/full2.bak"), place.path("full2.bak")).expect("moved");
    for (what, with) in [
        ("DATABASE", ""),
        ("DATABASE", " WITH DIFFERENTIAL"),
        ("LOG", ""),
    ] {
        succeed(
            &place,
            &format!("BACKUP {what} Shop TO DISK = 'D:\\media\\a', DISK = 'D:\\b'{with}"),
        );
        for end in ["--once", "--promote"] {
            let round = ["ship", "media", "--of", "Shop", "--to", "standby.db", end];
            let run = on(&place, &round);
            assert_eq!(run.code, Some(1), "{what}{with}, {end}: {}", run.out);
            assert!(
                run.err.contains("50300"),
                "{what}{with}, {end}: {}",
                run.err
            );
        }
        for stripe in ["media/a", "b"] {
            std::fs::remove_file(place.path(stripe)).expect("a stripe");
        }
    }
    std::fs::rename(place.path("full2.bak"), place.path("media/full2.bak")).expect("moved");
    // Nor does it begin there, if the full backup made since is elsewhere.
    back_up_log(&place, "3.trn");
    move_to_media(&place, "3.trn");
    std::fs::rename(place.path("media/full2.bak"), place.path("full2.bak")).expect("moved");
    for end in ["--once", "--promote"] {
        let round = ["ship", "media", "--of", "Shop", "--to", "new.db", end];
        let run = on(&place, &round);
        assert_eq!(run.code, Some(1), "{end}: {}", run.out);
        assert!(run.err.contains("50300"), "{end}: {}", run.err);
    }
    assert!(!place.path("new.db").exists());
    // 2.trn has what the restore has undone; what was there before it can be had.
    well(&place, &["restore", "--to", "standby.db"]);
}

#[test]
fn a_copied_copy_is_not_continued_and_the_first_one_is() {
    let place = Place::new();
    chain(&place, 2);
    for file in ["full.bak", "1.trn"] {
        move_to_media(&place, file);
    }
    assert_eq!(ship(&place, &["--once"]).code, Some(0));
    std::fs::create_dir(place.path("copied")).expect("a folder");
    for entry in std::fs::read_dir(place.path("standby")).expect("the folder") {
        let entry = entry.expect("a file");
        let to = place.path("copied").join(entry.file_name());
        std::fs::copy(entry.path(), to).expect("a copy");
    }
    let commands = [
        &["restore", "--to", "copied/shop.db"][..],
        &[
            "ship",
            "media",
            "--of",
            "Shop",
            "--to",
            "copied/shop.db",
            "--once",
        ],
        &["restore", "media/2.trn", "--to", "copied/shop.db"],
    ];
    move_to_media(&place, "2.trn");
    for command in commands {
        let run = place.run(command);
        assert_eq!(run.code, Some(1), "{command:?}: {}", run.out);
        assert!(run.err.contains("50299"), "{command:?}: {}", run.err);
    }
    let run = ship(&place, &["--promote"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(promoted(&place), 2);
    // There, it can be begun again.
    place.succeed(&["restore", "media/full.bak", "--to", "copied/shop.db"]);
}

/// The copy of a SQLite file.
fn ship_app(place: &Place, options: &[&str]) -> Run {
    std::fs::create_dir_all(place.path("standby")).expect("a folder");
    let round = ["ship", "media", "--of", "app", "--to", "standby/app.db"];
    place.run(&[&round, options].concat())
}

#[test]
fn a_sqlite_file_is_shipped_by_its_log_backups() {
    let place = registered();
    let application = sqlite_logs::chain(&place, 2);
    let back_up = |number: u32| {
        sqlite_logs::step(&application, number);
        succeed(
            &place,
            &format!("BACKUP LOG app TO DISK = 'd:\\{number}.trn'"),
        );
    };
    let restored = |count: u32| {
        let run = ship_app(&place, &["--once"]);
        let starts = format!("{} restored; reached 20", counted(count, "backup set"));
        assert!(run.out.starts_with(&starts), "{}{}", run.out, run.err);
    };
    move_to_media(&place, "full.bak");
    let without_logs = ship_app(&place, &["--once"]);
    assert!(
        without_logs.err.contains("50323"),
        "{}{}",
        without_logs.out,
        without_logs.err
    );
    move_to_media(&place, "1.trn");
    restored(2);
    restored(0);
    back_up(3);
    move_to_media(&place, "3.trn");
    let gap = ship_app(&place, &["--once"]);
    assert!(gap.err.contains("50296"), "{}{}", gap.out, gap.err);
    move_to_media(&place, "2.trn");
    restored(2);
    back_up(4);
    move_to_media(&place, "4.trn");
    let run = ship_app(&place, &["--promote"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(sqlite_logs::last(&place, "standby/app.db"), 4);
    let over = ship_app(&place, &["--once"]);
    assert!(over.err.contains("50301"), "{}{}", over.out, over.err);
}

#[test]
fn a_gap_in_the_log_of_a_sqlite_file_stops_the_copy() {
    let place = registered();
    let application = sqlite_logs::chain(&place, 1);
    move_to_media(&place, "full.bak");
    move_to_media(&place, "1.trn");
    assert_eq!(ship_app(&place, &["--once"]).code, Some(0));
    sqlite_logs::lose(&application);
    succeed(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\diff.bak' WITH DIFFERENTIAL",
    );
    sqlite_logs::step(&application, 2);
    succeed(&place, "BACKUP LOG app TO DISK = 'd:\\2.trn'");
    for file in ["diff.bak", "2.trn"] {
        move_to_media(&place, file);
    }
    let run = ship_app(&place, &["--once"]);
    assert!(run.err.contains("50296"), "{}{}", run.out, run.err);
    // What was reached can be had all the same.
    place.succeed(&["restore", "--to", "standby/app.db"]);
    assert_eq!(sqlite_logs::last(&place, "standby/app.db"), 1);
}

#[test]
fn a_copy_that_begins_before_a_missing_log_backup_says_so() {
    let place = Place::new();
    chain(&place, 3);
    for name in ["full.bak", "1.trn", "3.trn"] {
        move_to_media(&place, name);
    }
    for how in ["--once", "--once", "--promote"] {
        let round = ship(&place, &[how]);
        assert_eq!(round.code, Some(1), "{how}: {}", round.out);
        assert!(round.err.contains("50296"), "{how}: {}", round.err);
    }
    move_to_media(&place, "2.trn");
    let promotion = ship(&place, &["--promote"]);
    assert_eq!(promotion.code, Some(0), "{}", promotion.err);
    assert_eq!(promoted(&place), 3);
}

#[test]
fn a_newer_log_backup_that_cannot_be_read_is_named_and_keeps_a_copy_from_being_promoted() {
    let place = Place::new();
    chain(&place, 2);
    for name in ["full.bak", "1.trn", "2.trn"] {
        move_to_media(&place, name);
    }
    let cut = place.path("media/2.trn");
    let whole = std::fs::read(&cut).expect("a log backup");
    let zero = vec![0; whole.len()];
    for (what, left, number) in [
        ("cut off", &whole[..whole.len() * 2 / 3], "50313"),
        ("cut to its beginning", &whole[..4096], "50316"),
        ("zero", &zero, "50316"),
        ("empty", &[], "50316"),
    ] {
        std::fs::write(&cut, left).expect("damaged");
        for how in ["--once", "--once", "--promote"] {
            println!("{what}");
            refused(&place, how, &[number, "2.trn"]);
        }
    }
    std::fs::write(&cut, &whole).expect("whole");
    let promotion = ship(&place, &["--promote"]);
    assert_eq!(promotion.code, Some(0), "{}", promotion.err);
    assert_eq!(promoted(&place), 2);
}

#[test]
fn a_log_backup_that_lacks_a_stripe_keeps_a_copy_from_being_promoted() {
    let place = Place::new();
    chain(&place, 1);
    for name in ["full.bak", "1.trn"] {
        move_to_media(&place, name);
    }
    insert(&place, 2);
    let striped = "BACKUP LOG Shop TO DISK = 'd:\\media\\2a.trn', DISK = 'd:\\media\\2b.trn'";
    succeed(&place, striped);
    std::fs::rename(place.path("media/2b.trn"), place.path("2b.trn")).expect("moved");
    for how in ["--once", "--once", "--promote"] {
        refused(&place, how, &["50313", "2a.trn", "only 1 of the 2"]);
    }
    move_to_media(&place, "2b.trn");
    let promotion = ship(&place, &["--promote"]);
    assert_eq!(promotion.code, Some(0), "{}", promotion.err);
    assert_eq!(promoted(&place), 2);
}

#[test]
fn a_copy_is_not_promoted_before_a_state_to_which_no_log_backup_leads() {
    let place = Place::new();
    chain(&place, 1);
    insert(&place, 2);
    for name in ["full.bak", "1.trn"] {
        move_to_media(&place, name);
    }
    assert_eq!(ship(&place, &["--once"]).code, Some(0));
    for (file, with) in [("diff.bak", " WITH DIFFERENTIAL"), ("new.bak", "")] {
        let newer = format!("BACKUP DATABASE Shop TO DISK = 'd:\\media\\{file}'{with}");
        succeed(&place, &newer);
        let round = ship(&place, &["--once"]);
        assert_eq!(round.code, Some(0), "{file}: {}", round.err);
        assert!(
            round.err.contains("has a later state"),
            "{file}: {}",
            round.err
        );
        refused(&place, "--promote", &["50318", file]);
    }
    back_up_log(&place, "2.trn");
    move_to_media(&place, "2.trn");
    let promotion = ship(&place, &["--promote"]);
    assert_eq!(promotion.code, Some(0), "{}", promotion.err);
    assert!(!promotion.err.contains("5031"), "{}", promotion.err);
    assert_eq!(promoted(&place), 2);
}

/// Of a file, its position in the log tells whether there is anything behind the copy.
#[test]
fn a_copy_of_a_sqlite_file_is_promoted_if_nothing_was_committed_since() {
    let place = registered();
    let application = sqlite_logs::chain(&place, 1);
    for name in ["full.bak", "1.trn"] {
        move_to_media(&place, name);
    }
    assert_eq!(ship_app(&place, &["--once"]).code, Some(0));
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let full = |name: &str| {
        succeed(
            &place,
            &format!("BACKUP DATABASE app TO DISK = 'd:\\media\\{name}'"),
        );
    };
    full("same.bak");
    let round = ship_app(&place, &["--once"]);
    assert!(!round.err.contains("later state"), "{}", round.err);
    sqlite_logs::step(&application, 2);
    full("newer.bak");
    let promotion = ship_app(&place, &["--promote"]);
    assert!(promotion.err.contains("50318"), "{}", promotion.err);
    std::fs::remove_file(place.path("media/newer.bak")).expect("a file");
    let promotion = ship_app(&place, &["--promote"]);
    assert_eq!(promotion.code, Some(0), "{}", promotion.err);
    assert_eq!(sqlite_logs::last(&place, "standby/app.db"), 1);
}

/// A chain whose first log backup is elsewhere, and whose differential comes late, damaged at first: rounds stop where those
/// do that are killed behind the full backup, or while the differential is applied.
fn differential_in_part(place: &Place, round: &dyn Fn(&str) -> Run, log: &dyn Fn()) {
    let database = match place.path("shop.mdf").exists() {
        true => "Shop",
        false => "app",
    };
    succeed(
        place,
        &format!("BACKUP DATABASE {database} TO DISK = 'd:\\diff.bak' WITH DIFFERENTIAL"),
    );
    log();
    for name in ["full.bak", "2.trn"] {
        move_to_media(place, name);
    }
    let run = round("--once");
    assert!(run.err.contains("50296"), "{}{}", run.out, run.err);
    move_to_media(place, "diff.bak");
    let differential = place.path("media/diff.bak");
    let whole = std::fs::read(&differential).expect("it");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    std::fs::write(&differential, damaged).expect("damaged");
    for _ in 0..2 {
        let run = round("--once");
        assert_eq!(run.code, Some(1), "{}", run.out);
        assert!(run.err.contains("diff.bak"), "{}", run.err);
        assert!(!run.err.contains("50296"), "{}", run.err);
        assert!(!run.err.contains("50006"), "{}", run.err);
    }
    std::fs::write(&differential, whole).expect("whole");
    let run = round("--promote");
    assert_eq!(run.code, Some(0), "{}", run.err);
}

#[test]
fn a_copy_to_which_a_differential_was_applied_in_part_is_begun_again() {
    let place = Place::new();
    chain(&place, 1);
    let log = || {
        insert(&place, 2);
        back_up_log(&place, "2.trn");
    };
    differential_in_part(&place, &|how| ship(&place, &[how]), &log);
    assert_eq!(promoted(&place), 2);

    let place = registered();
    let application = sqlite_logs::chain(&place, 1);
    let log = || {
        sqlite_logs::step(&application, 2);
        succeed(&place, "BACKUP LOG app TO DISK = 'd:\\2.trn'");
    };
    differential_in_part(&place, &|how| ship_app(&place, &[how]), &log);
    assert_eq!(sqlite_logs::last(&place, "standby/app.db"), 2);
}

/// What the state of a copy says while a differential is applied to it.
#[test]
fn a_copy_of_a_sqlite_file_that_a_killed_round_has_left_in_part_is_begun_again() {
    let place = registered();
    let application = sqlite_logs::chain(&place, 1);
    sqlite_logs::step(&application, 2);
    let differential = "BACKUP DATABASE app TO DISK = 'd:\\diff.bak' WITH DIFFERENTIAL";
    succeed(&place, differential);
    for name in ["full.bak", "1.trn", "diff.bak"] {
        move_to_media(&place, name);
    }
    assert_eq!(ship_app(&place, &["--once"]).code, Some(0));
    let state = place.path("standby/app.db.windlass-restoring.json");
    let text = std::fs::read_to_string(&state).expect("its state");
    let torn = text.replace("\"ready\"", "\"applying\"");
    assert_ne!(torn, text);
    std::fs::write(&state, torn).expect("its state");
    let round = ship_app(&place, &["--promote"]);
    assert_eq!(round.code, Some(0), "{}", round.err);
    assert_eq!(sqlite_logs::last(&place, "standby/app.db"), 2);
}
