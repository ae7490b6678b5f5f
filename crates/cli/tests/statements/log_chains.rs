//! Chains of log backups that are encrypted, signed, watched over, expired and killed.

use std::process::Stdio;
use std::time::Instant;

use crate::log_backups::{
    MAKE, MOVE, back_up_log, chain, insert, last, refused, restore_full, restore_log,
};
use crate::support::{Place, ask, on, sql, succeed, well};

const PASSWORD: &str = "Correct-Horse-Battery";

const ENCRYPTION: &str = "ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = c)";

/// A moment behind everything that was committed, as T-SQL writes it.
fn moment(place: &Place) -> String {
    let pause = std::time::Duration::from_millis(30);
    std::thread::sleep(pause);
    let at = ask(place, "instance", "SELECT sysdatetime() AS at");
    std::thread::sleep(pause);
    at[0]["at"].as_str().expect("a time")[..23].replace('T', " ")
}

#[test]
fn an_encrypted_chain_needs_its_key_at_each_step_and_a_plain_log_is_less_protected() {
    let place = Place::new();
    succeed(
        &place,
        &format!(
            "{MAKE}\nCREATE MASTER KEY ENCRYPTION BY PASSWORD = '{PASSWORD}'
CREATE CERTIFICATE c WITH SUBJECT = 'c', EXPIRY_DATE = '20990101'
BACKUP CERTIFICATE c TO FILE = 'D:\\c.cer' WITH PRIVATE KEY (FILE = 'D:\\c.pvk', ENCRYPTION BY PASSWORD = '{PASSWORD}')
BACKUP DATABASE Shop TO DISK = 'D:\\full.bak' WITH FORMAT, {ENCRYPTION}"
        ),
    );
    insert(&place, 1);
    let log =
        |file: u32| format!("BACKUP LOG Shop TO DISK = 'D:\\{file}.trn' WITH FORMAT, {ENCRYPTION}");
    succeed(&place, &log(1));
    insert(&place, 987_654);
    let at = moment(&place);
    insert(&place, 987_655);
    succeed(&place, &log(2));
    insert(&place, 987_656);
    back_up_log(&place, "3.trn");
    let bytes = std::fs::read(place.path("2.trn")).expect("the file");
    assert!(!bytes.windows(4).any(|window| window == b"WLB1"));
    // Without the key: nothing is written, and the sequence stays open for those who have it.
    let elsewhere =
        |text: &str| place.sql_with(&["--json", "--instance", &place.text("other")], text);
    let full = format!("RESTORE DATABASE Copy FROM DISK = 'D:\\full.bak' WITH NORECOVERY, {MOVE}");
    refused(&elsewhere(&full), &[33111, 3013]);
    assert!(!place.path("copy.mdf.windlass-restoring").exists());
    let keys = format!(
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'another'
CREATE CERTIFICATE c FROM FILE = 'D:\\c.cer' WITH PRIVATE KEY (FILE = 'D:\\c.pvk', DECRYPTION BY PASSWORD = '{PASSWORD}')"
    );
    let run = elsewhere(&format!("{keys}\n{full}\nDROP CERTIFICATE c"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    refused(&elsewhere(&restore_log(1, "NORECOVERY")), &[33111, 3013]);
    let run = elsewhere(&format!(
        "{}\n{}",
        keys.split_once('\n')
            .map_or("", |(_, certificate)| certificate),
        restore_log(1, "NORECOVERY")
    ));
    assert_eq!(run.code, Some(0), "{}", run.err);
    // What is not encrypted does not follow, unless that is said.
    let stop = format!("STOPAT = '{at}'");
    let run = elsewhere(&restore_log(2, &format!("RECOVERY, {stop}")));
    assert_eq!(run.code, Some(0), "{}", run.err);
    let found = elsewhere("USE Copy\nGO\nSELECT max(n) AS n FROM t").results();
    assert_eq!(found[0][0]["n"], 987_654);
    restore_full(&place);
    succeed(&place, &restore_log(1, "NORECOVERY"));
    succeed(&place, &restore_log(2, "NORECOVERY"));
    let plain = sql(&place, &restore_log(3, "RECOVERY"));
    assert!(plain.numbers().ends_with(&[3013]), "{}", plain.err);
    assert!(plain.numbers().contains(&50029), "{}", plain.err);
    succeed(&place, &restore_log(3, "RECOVERY, ALLOW_UNENCRYPTED"));
    assert_eq!(last(&place, "Copy"), 987_656);
}

#[test]
fn a_signed_chain_is_restored_by_those_who_ask_for_its_signature_and_by_no_other_key() {
    let place = Place::new();
    for key in ["ours", "theirs"] {
        place.succeed(&["signing-key", key]);
    }
    let signed = "SIGN_WITH = 'D:\\ours'";
    succeed(
        &place,
        &format!("{MAKE}\nBACKUP DATABASE Shop TO DISK = 'D:\\full.bak' WITH {signed}"),
    );
    for number in 1..=2 {
        insert(&place, number);
        succeed(
            &place,
            &format!("BACKUP LOG Shop TO DISK = 'D:\\{number}.trn' WITH {signed}"),
        );
    }
    insert(&place, 3);
    back_up_log(&place, "3.trn");
    let by = |key: &str| format!("SIGNED_BY = 'D:\\{key}.pub'");
    succeed(
        &place,
        &format!(
            "RESTORE VERIFYONLY FROM DISK = 'D:\\1.trn' WITH {}",
            by("ours")
        ),
    );
    restore_full(&place);
    for (log, key) in [(1, "theirs"), (3, "ours")] {
        let run = sql(
            &place,
            &restore_log(log, &format!("NORECOVERY, {}", by(key))),
        );
        refused(&run, &[50043, 3013]);
    }
    succeed(
        &place,
        &restore_log(1, &format!("NORECOVERY, {}", by("ours"))),
    );
    // A byte of a signed set is changed.
    let path = place.path("2.trn");
    let whole = std::fs::read(&path).expect("the set");
    crate::support::flip_bit(&path, whole.len() as u64 / 2);
    let run = sql(
        &place,
        &restore_log(2, &format!("RECOVERY, {}", by("ours"))),
    );
    assert!(run.numbers().ends_with(&[3013]), "{}", run.err);
    std::fs::write(&path, whole).expect("the set");
    succeed(
        &place,
        &restore_log(2, &format!("RECOVERY, {}", by("ours"))),
    );
    assert_eq!(last(&place, "Copy"), 2);
}

#[test]
fn what_watches_over_backups_knows_chains_of_logs() {
    let place = Place::new();
    chain(&place, 3);
    let check = |further: &[&str]| {
        let check = ["check", "--database", "Shop", "--rpo", "1h"];
        on(&place, &[&check[..], further].concat())
    };
    let run = check(&[]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let history = well(&place, &["history"]);
    assert_eq!(history.out.matches("log").count(), 3, "{}", history.out);
    let rpo = well(&place, &["history", "--rpo", "1h"]);
    assert!(rpo.out.contains("kept"), "{}", rpo.out);
    let report = well(&place, &["report", "--rpo", "1h", "Shop"]);
    assert!(report.out.contains("Last log"), "{}", report.out);
    well(&place, &["doctor"]);
    well(&place, &["verify", "2.trn"]);
    // A log in the middle is lost: what follows it leads nowhere.
    std::fs::rename(place.path("2.trn"), place.path("gone")).expect("moved");
    let run = check(&["--json"]);
    assert_eq!(run.code, Some(1), "{}\n{}", run.out, run.err);
    assert!(run.out.contains("backups-lost"), "{}", run.out);
    let report = on(&place, &["report", "--rpo", "1h"]);
    // The log that is lost, and the one after it.
    let mut rows = report.out.lines().filter(|line| line.starts_with("Shop"));
    let row = rows.next().unwrap_or_default().trim_end();
    assert!(row.ends_with(" 2"), "{}", report.out);
    std::fs::rename(place.path("gone"), place.path("2.trn")).expect("moved");
    assert_eq!(check(&[]).code, Some(0));
    // A verification that finds it damaged counts as well.
    let path = place.path("2.trn");
    let whole = std::fs::read(&path).expect("the set");
    crate::support::flip_bit(&path, whole.len() as u64 / 2);
    assert_ne!(on(&place, &["verify", "2.trn"]).code, Some(0));
    assert_eq!(check(&[]).code, Some(2));
    std::fs::write(&path, whole).expect("the set");
    well(&place, &["verify", "2.trn"]);
    assert_eq!(check(&[]).code, Some(0));
}

/// The state of a database, if there is one.
fn state(place: &Place, name: &str) -> Option<String> {
    let text = format!("SELECT state_desc AS state FROM sys.databases WHERE name = '{name}'");
    let found = ask(place, "instance", &text);
    let found = found
        .first()
        .map(|row| row["state"].as_str().map(str::to_owned));
    found.flatten()
}

#[test]
fn a_sequence_that_was_killed_anywhere_goes_on_or_is_begun_again_and_ends_at_the_end() {
    const ROUNDS: u32 = 24;
    const LOGS: u32 = 3;
    let place = Place::new();
    succeed(
        &place,
        &format!("{MAKE}\nBACKUP DATABASE Shop TO DISK = 'D:\\full.bak'"),
    );
    for number in 1..=LOGS {
        succeed(
            &place,
            &format!(
                "USE Shop\nGO\nCREATE TABLE many{number}(b)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
INSERT INTO many{number} SELECT randomblob(2000) FROM n
INSERT INTO t VALUES ({number})"
            ),
        );
        back_up_log(&place, &format!("{number}.trn"));
    }
    let steps: Vec<String> = (1..=LOGS)
        .map(|log| {
            restore_log(
                log,
                if log == LOGS {
                    "RECOVERY"
                } else {
                    "NORECOVERY"
                },
            )
        })
        .collect();
    let all = format!(
        "RESTORE DATABASE Copy FROM DISK = 'D:\\full.bak' WITH NORECOVERY, REPLACE, {MOVE}\n{}",
        steps.join("\n")
    );
    std::fs::write(place.path("all.sql"), &all).expect("the script");
    let (drive, instance) = (format!("d={}", place.text("")), place.text("instance"));
    let arguments = [
        "sql",
        "-i",
        "all.sql",
        "--drive",
        &drive,
        "--instance",
        &instance,
    ];
    let begun = Instant::now();
    place.succeed(&arguments);
    let whole = begun.elapsed();
    assert_eq!(last(&place, "Copy"), LOGS);
    let mut continued = 0;
    for round in 0..ROUNDS {
        let mut child = place
            .command(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        std::thread::sleep(whole.mul_f32(0.1) + whole * round / ROUNDS);
        child.kill().expect("it ends");
        child.wait().expect("it ends");
        if state(&place, "Copy").as_deref() == Some("RESTORING") {
            let mut is_open = true;
            for log in 1..=LOGS {
                let run = sql(&place, &restore_log(log, "NORECOVERY"));
                match run.numbers().as_slice() {
                    // In it already.
                    [4326, 3013] => {}
                    // The full backup was not whole yet.
                    [3117, 3013] => is_open = false,
                    numbers => {
                        assert_eq!(run.code, Some(0), "{round}: {numbers:?} {}", run.err);
                        continued += 1;
                    }
                }
            }
            match is_open {
                true => drop(succeed(&place, "RESTORE DATABASE Copy WITH RECOVERY")),
                false => drop(succeed(&place, &all)),
            }
        }
        // Whole before or after; never in between.
        assert_eq!(last(&place, "Copy"), LOGS, "{round}");
    }
    assert!(continued > 0, "no kill hit a sequence");
}

#[test]
fn expire_deletes_no_log_that_a_promised_state_needs() {
    let place = Place::new();
    chain(&place, 2);
    succeed(&place, "BACKUP DATABASE Shop TO DISK = 'D:\\full2.bak'");
    insert(&place, 3);
    back_up_log(&place, "3.trn");
    insert(&place, 4);
    back_up_log(&place, "4.trn");
    let folder = place.text("");
    let left = || {
        let names = std::fs::read_dir(place.path("")).expect("the folder");
        let names = names.flatten().map(|entry| entry.file_name());
        let mut names: Vec<String> = names
            .map(|name| name.to_string_lossy().into_owned())
            .filter(|name| {
                let path = std::path::Path::new(name);
                path.extension()
                    .is_some_and(|is| is == "bak" || is == "trn")
            })
            .collect();
        names.sort();
        names
    };
    // Every moment of the last day is promised.
    well(&place, &["expire", &folder, "--within", "1", "--delete"]);
    assert_eq!(left().len(), 6);
    // Only the newest state is: it needs the second full backup, and the logs after it.
    well(&place, &["expire", &folder, "--last", "1", "--delete"]);
    assert_eq!(left(), ["3.trn", "4.trn", "full2.bak"]);
    succeed(
        &place,
        &format!(
            "RESTORE DATABASE Copy FROM DISK = 'D:\\full2.bak' WITH NORECOVERY, REPLACE, {MOVE}"
        ),
    );
    succeed(&place, &restore_log(3, "NORECOVERY"));
    succeed(&place, &restore_log(4, "RECOVERY"));
    assert_eq!(last(&place, "Copy"), 4);
}

#[test]
fn a_differential_begins_a_chain_and_4214_says_why_there_is_none() {
    let place = Place::new();
    chain(&place, 1);
    succeed(
        &place,
        "ALTER DATABASE Shop SET RECOVERY SIMPLE\nALTER DATABASE Shop SET RECOVERY FULL",
    );
    let log = "BACKUP LOG Shop TO DISK = 'D:\\2.trn'";
    refused(&sql(&place, log), &[4214, 50235, 3013]);
    succeed(
        &place,
        "BACKUP DATABASE Shop TO DISK = 'D:\\diff.bak' WITH DIFFERENTIAL",
    );
    insert(&place, 2);
    succeed(&place, log);
    restore_full(&place);
    succeed(
        &place,
        "RESTORE DATABASE Copy FROM DISK = 'D:\\diff.bak' WITH NORECOVERY",
    );
    succeed(&place, &restore_log(2, "RECOVERY"));
    assert_eq!(last(&place, "Copy"), 2);
}

/// A statement that would overwrite what is in no backup.
fn is_kept(place: &Place) {
    let over = "RESTORE DATABASE Shop FROM DISK = 'D:\\full.bak'";
    refused(&sql(place, over), &[3159, 3013]);
}

#[test]
fn a_log_that_cannot_be_read_may_hold_what_is_in_no_backup() {
    let place = Place::new();
    chain(&place, 1);
    insert(&place, 2);
    let log = place.path("shop.ldf");
    let whole = std::fs::read(&log).expect("the log");
    let blocks = || {
        let found = whole.windows(4).enumerate();
        let found = found.filter(|(at, bytes)| at % 512 == 0 && bytes == b"WLB1");
        found.map(|(at, _)| at).collect::<Vec<_>>()
    };
    std::fs::rename(&log, place.path("gone")).expect("moved");
    is_kept(&place);
    std::fs::rename(place.path("gone"), &log).expect("moved");
    let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        std::fs::write(&log, bytes).expect("the log");
        is_kept(&place);
    };
    damaged(&|bytes| bytes[..131_072].fill(0));
    damaged(&|bytes| {
        for at in blocks() {
            bytes[at..at + 512].fill(0);
        }
    });
    damaged(&|bytes| {
        for at in blocks() {
            bytes[at + 60] ^= 4;
        }
    });
    std::fs::write(&log, &whole).expect("the log");
    assert_eq!(last(&place, "Shop"), 2);
    is_kept(&place);
    // What another program has written is in no log backup either.
    let other = rusqlite::Connection::open(place.path("shop.mdf")).expect("a database");
    other
        .execute_batch("INSERT INTO t VALUES (3)")
        .expect("a row");
    drop(other);
    assert_eq!(last(&place, "Shop"), 3);
    is_kept(&place);
    refused(
        &sql(&place, "BACKUP LOG Shop TO DISK = 'D:\\2.trn'"),
        &[4214, 50235, 3013],
    );
    succeed(&place, "BACKUP DATABASE Shop TO DISK = 'D:\\full2.bak'");
    succeed(&place, "RESTORE DATABASE Shop FROM DISK = 'D:\\full.bak'");
    assert_eq!(last(&place, "Shop"), 0);
}

#[test]
fn after_another_restore_to_an_earlier_state_a_full_backup_is_base_and_begin_of_the_chain() {
    let place = Place::new();
    succeed(
        &place,
        &format!("{MAKE}\nBACKUP DATABASE Shop TO DISK = 'D:\\copy.bak' WITH COPY_ONLY"),
    );
    let back = "RESTORE DATABASE Shop FROM DISK = 'D:\\copy.bak' WITH REPLACE";
    succeed(&place, back);
    for number in 1..=20 {
        insert(&place, number);
    }
    succeed(&place, "BACKUP DATABASE Shop TO DISK = 'D:\\f1.bak'");
    succeed(&place, back);
    // Its LSN is lower than that of the other history.
    succeed(&place, "BACKUP DATABASE Shop TO DISK = 'D:\\f2.bak'");
    insert(&place, 30);
    back_up_log(&place, "1.trn");
    insert(&place, 31);
    succeed(
        &place,
        "BACKUP DATABASE Shop TO DISK = 'D:\\d.bak' WITH DIFFERENTIAL
RESTORE DATABASE Shop FROM DISK = 'D:\\f2.bak' WITH NORECOVERY, REPLACE
RESTORE DATABASE Shop FROM DISK = 'D:\\d.bak'",
    );
    assert_eq!(last(&place, "Shop"), 31);
}

fn log(file: &str, how: &str) -> String {
    format!("BACKUP LOG Shop TO DISK = 'D:\\{file}' WITH {how}")
}

fn back_up(place: &Place, file: &str, how: &str) {
    let script = format!("BACKUP DATABASE Shop TO DISK = 'D:\\{file}' WITH {how}");
    succeed(place, &script);
}

#[test]
fn a_log_backup_does_not_overwrite_what_its_restore_needs() {
    let place = Place::new();
    succeed(&place, MAKE);
    back_up(&place, "full.bak", "INIT");
    insert(&place, 1);
    for how in ["INIT", "FORMAT", "INIT, COPY_ONLY", "INIT, NORECOVERY"] {
        refused(&sql(&place, &log("full.bak", how)), &[50369, 3013]);
    }
    assert_eq!(last(&place, "Shop"), 1);
    succeed(&place, &log("1.trn", "INIT"));
    insert(&place, 2);
    refused(&sql(&place, &log("1.trn", "INIT")), &[50369, 3013]);
    // A differential elsewhere leads on without the first log backup.
    back_up(&place, "d.bak", "DIFFERENTIAL");
    insert(&place, 3);
    succeed(&place, &log("1.trn", "INIT"));
    refused(&sql(&place, &log("full.bak", "INIT")), &[50369, 3013]);
    succeed(
        &place,
        "RESTORE DATABASE Shop FROM DISK = 'D:\\full.bak' WITH NORECOVERY, REPLACE
RESTORE DATABASE Shop FROM DISK = 'D:\\d.bak' WITH NORECOVERY
RESTORE LOG Shop FROM DISK = 'D:\\1.trn'",
    );
    assert_eq!(last(&place, "Shop"), 3);
    // So does a full one, and then the earlier ones can go.
    back_up(&place, "full2.bak", "INIT");
    insert(&place, 4);
    succeed(&place, &log("full.bak", "INIT"));
    // Unless the newer ones are gone by now.
    std::fs::remove_file(place.path("full2.bak")).expect("removed");
    insert(&place, 5);
    refused(&sql(&place, &log("full.bak", "INIT")), &[50369, 3013]);
}

/// With other names and places of its files, and without the base of a differential.
#[test]
fn what_a_log_backup_needs_is_known_by_its_chain() {
    let place = Place::new();
    succeed(&place, MAKE);
    back_up(&place, "f1.bak", "INIT");
    insert(&place, 1);
    succeed(&place, &log("1.trn", "INIT"));
    // Sets that are copies belong to no chain.
    for _ in 0..2 {
        succeed(&place, &log("copy.trn", "COPY_ONLY, INIT"));
    }
    back_up(&place, "copy.bak", "COPY_ONLY, INIT");
    succeed(&place, &log("copy.bak", "COPY_ONLY, INIT"));
    back_up(&place, "f2.bak", "INIT");
    insert(&place, 2);
    back_up(&place, "d2.bak", "DIFFERENTIAL, INIT");
    // Without the second full backup, the first one and its log backup lead to the newest state.
    std::fs::rename(place.path("f2.bak"), place.path("away.bak")).expect("moved");
    refused(&sql(&place, &log("1.trn", "INIT")), &[50369, 3013]);
    std::fs::rename(place.path("away.bak"), place.path("f2.bak")).expect("moved");
    std::fs::remove_file(place.path("f1.bak")).expect("removed");
    std::fs::rename(place.path("f2.bak"), place.path("away.bak")).expect("moved");
    // Behind the full backup that was moved away, and before which there is none, it leads nowhere.
    succeed(&place, &log("1.trn", "INIT"));
    succeed(
        &place,
        "EXEC sp_detach_db 'Shop'
CREATE DATABASE Other ON (FILENAME = 'D:\\shop.mdf') LOG ON (FILENAME = 'D:\\shop.ldf') FOR ATTACH",
    );
    std::fs::rename(place.path("away.bak"), place.path("f2.bak")).expect("moved");
    let log = "BACKUP LOG Other TO DISK = 'D:\\f2.bak' WITH INIT";
    refused(&sql(&place, log), &[50369, 3013]);
}
