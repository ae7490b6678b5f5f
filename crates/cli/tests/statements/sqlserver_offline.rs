//! Backups of SQL Server databases that a restore has registered, and that are offline.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;

use crate::sqlserver::sample;
use crate::support::{Place, Run, flip_bit};

const LAB: &str = "sql2008r2_lab_DoubleDiffing__difftest";

/// A place in which `x`, of a full backup and its differential, is offline.
fn offline() -> Option<Place> {
    let full = sample(&format!("{LAB}-full.bak"))?;
    let last = sample(&format!("{LAB}-diff2.bak"))?;
    let place = Place::new();
    succeed(
        &place,
        &format!(
            "RESTORE DATABASE x FROM DISK = '{full}', DISK = '{last}' \
             WITH MOVE 'doublediff' TO 'd:\\x.mdf', MOVE 'doublediff_log' TO 'd:\\x.ldf'"
        ),
    );
    Some(place)
}

fn sql(place: &Place, text: &str) -> Run {
    place.sql_with(&["--instance", &place.text("instance")], text)
}

fn succeed(place: &Place, text: &str) -> Run {
    let run = sql(place, text);
    assert_eq!(run.code, Some(0), "{text}: {}", run.err);
    run
}

fn refuse(place: &Place, text: &str, why: &str) {
    let run = sql(place, text);
    assert_eq!(run.code, Some(1), "{text}: {}", run.err);
    assert!(run.err.contains(why), "{text}: {}", run.err);
}

fn read(place: &Place, name: &str) -> Vec<u8> {
    std::fs::read(place.path(name)).expect(name)
}

const MOVES: &str = "MOVE 'doublediff' TO 'd:\\y.mdf', MOVE 'doublediff_log' TO 'd:\\y.ldf'";

#[test]
fn an_offline_database_is_backed_up_and_comes_back_byte_for_byte() {
    let Some(place) = offline() else { return };
    let made = succeed(&place, "BACKUP DATABASE x TO DISK = 'd:\\x.wl'");
    for said in ["file 'doublediff'", "file 'doublediff_log'"] {
        assert!(made.err.contains(said), "{}", made.err);
    }
    let checked = succeed(&place, "RESTORE VERIFYONLY FROM DISK = 'd:\\x.wl'");
    assert!(checked.err.contains("is valid"), "{}", checked.err);
    let list = |what: &str| {
        place.succeed(&["--json", what, "x.wl"]).results()[0]
            .as_array()
            .expect("rows")
            .clone()
    };
    let header = &list("header")[0];
    assert_eq!(header["SourceProduct"], "SQL Server");
    assert_eq!(header["DatabaseName"], "x");
    assert_eq!(header["BackupType"], 1);
    assert_eq!(header["IsCopyOnly"], true);
    assert_eq!(header["HasBackupChecksums"], true);
    // What the server said in the full backup.
    let original = sample(&format!("{LAB}-full.bak")).expect("it was there");
    let original = place.succeed(&["--json", "header", &original]).results();
    let original = &original[0][0];
    for column in ["DatabaseVersion", "FamilyGUID"] {
        assert_eq!(header[column], original[column], "{column}");
    }
    let files = list("files");
    let types: Vec<_> = files.iter().map(|file| file["Type"].as_str()).collect();
    assert_eq!(types, [Some("D"), Some("L")]);
    // Under another name, beside it; the original stays as it is.
    succeed(
        &place,
        &format!("RESTORE DATABASE y FROM DISK = 'd:\\x.wl' WITH {MOVES}"),
    );
    for (one, other) in [("x.mdf", "y.mdf"), ("x.ldf", "y.ldf")] {
        assert!(read(&place, one) == read(&place, other), "{other}");
    }
    let states = succeed(
        &place,
        "SELECT name, state_desc FROM sys.databases WHERE name IN ('x', 'y') ORDER BY name",
    );
    assert_eq!(states.out.matches("OFFLINE").count(), 2, "{}", states.out);
    let log = std::fs::metadata(place.path("y.ldf")).expect("a log");
    assert!(log.blocks() * 512 < log.len(), "its zeros take no space");
    // Over itself, where it is: only when told to.
    std::fs::write(place.path("x.ldf"), "gone").expect("a file");
    let again = "RESTORE DATABASE x FROM DISK = 'd:\\x.wl'";
    refuse(&place, again, "REPLACE");
    succeed(&place, &format!("{again} WITH REPLACE"));
    assert!(read(&place, "x.ldf") == read(&place, "y.ldf"));
    // The copy can be backed up in turn, and the history knows both.
    succeed(&place, "BACKUP DATABASE y TO DISK = 'd:\\y.wl'");
    let history = succeed(
        &place,
        "SELECT count(*) FROM msdb.dbo.backupset \
         WHERE database_name IN ('x', 'y') AND type = 'D' AND is_copy_only = 1",
    );
    let count = history.out.lines().nth(2).map(str::trim);
    assert_eq!(count, Some("2"), "{}", history.out);
}

#[test]
fn stripes_and_a_passphrase_and_a_folder_serve_an_offline_database_too() {
    let Some(place) = offline() else { return };
    std::fs::write(place.path("secret"), "correct horse\n").expect("a passphrase");
    let instance = place.text("instance");
    let keys = ["--passphrase-file", "secret"];
    place.succeed(
        &[
            &[
                "backup",
                "x",
                "--instance",
                &instance,
                "--to",
                "1.wl",
                "--to",
                "2.wl",
            ],
            &keys[..],
        ]
        .concat(),
    );
    let media = ["restore", "2.wl", "1.wl"];
    let closed = place.run(&[&media[..], &["--to", "files"]].concat());
    assert_ne!(closed.code, Some(0), "{}", closed.err);
    std::fs::create_dir(place.path("files")).expect("a folder");
    let opened = [&media[..], &["--to", "files"], &keys].concat();
    place.succeed(&opened);
    assert!(read(&place, "files/doublediff.mdf") == read(&place, "x.mdf"));
    assert!(read(&place, "files/doublediff_log.ldf") == read(&place, "x.ldf"));
    let there = place.run(&opened);
    assert_eq!(there.code, Some(1), "{}", there.err);
}

#[test]
fn what_has_no_meaning_for_an_offline_database_is_refused_with_the_reason() {
    let Some(place) = offline() else { return };
    let full_only = "nothing to make a differential or log backup of";
    refuse(
        &place,
        "BACKUP DATABASE x TO DISK = 'd:\\x.wl' WITH DIFFERENTIAL",
        full_only,
    );
    refuse(&place, "BACKUP LOG x TO DISK = 'd:\\x.wl'", full_only);
    let instance = place.text("instance");
    for option in ["--integrity=quick", "--as-is"] {
        let words = [
            "backup",
            "x",
            "--instance",
            &instance,
            "--to",
            "x.wl",
            option,
        ];
        let refused = place.run(&words);
        assert_eq!(refused.code, Some(1), "{option}: {}", refused.err);
        assert!(refused.err.contains("no meaning"), "{}", refused.err);
    }
    assert!(!place.path("x.wl").exists());
    succeed(&place, "BACKUP DATABASE x TO DISK = 'd:\\x.wl'");
    let from = "RESTORE DATABASE y FROM DISK = 'd:\\x.wl'";
    refuse(&place, from, "Nothing says where file 'doublediff' goes");
    for with in ["NORECOVERY", "STANDBY = 'd:\\s.tmp'"] {
        refuse(
            &place,
            &format!("{from} WITH {with}, {MOVES}"),
            "no other backup can be restored over it",
        );
    }
    refuse(
        &place,
        &format!("{from} WITH MOVE 'none' TO 'd:\\n.mdf', {MOVES}"),
        "not part of database",
    );
    refuse(
        &place,
        &format!(
            "{from} WITH MOVE 'doublediff' TO 'd:\\app.db', MOVE 'doublediff_log' TO 'd:\\y.ldf'"
        ),
        "app.db",
    );
    refuse(
        &place,
        &format!(
            "{from} WITH MOVE 'doublediff' TO 'd:\\y.mdf', MOVE 'doublediff_log' TO 'd:\\y.mdf'"
        ),
        "the same target",
    );
    // Neither a SQLite file nor SQL Server's take each other's names.
    place.succeed(&["backup", "app.db", "--to", "app.wl"]);
    refuse(
        &place,
        "RESTORE DATABASE x FROM DISK = 'd:\\app.wl' WITH REPLACE",
        "is one of SQL Server",
    );
    for left in ["y.mdf", "y.ldf", "n.mdf"] {
        assert!(!place.path(left).exists(), "{left}");
    }
    let drill = place.run(&["drill", "--from", "x.wl", "--instance", &instance, "x"]);
    assert_ne!(drill.code, Some(0), "{}", drill.out);
    let unpack = place.run(&["unpack", "x.wl", "--to", "z.bak"]);
    assert!(unpack.err.contains("copied"), "{}", unpack.err);
}

#[test]
fn damaged_and_missing_pages_of_an_offline_database_stop_its_backup() {
    let Some(place) = offline() else { return };
    let whole = read(&place, "x.mdf");
    let backup = "BACKUP DATABASE x TO DISK = 'd:\\x.wl' WITH INIT";
    succeed(&place, "BACKUP DATABASE x TO DISK = 'd:\\good.wl'");
    // A page of the file with a checksum: its first.
    flip_bit(&place.path("x.mdf"), 9 * 8192 + 4000);
    refuse(&place, backup, "page (1:9)");
    assert!(!place.path("x.wl").exists());
    let accepted = succeed(&place, &format!("{backup}, CONTINUE_AFTER_ERROR"));
    assert!(accepted.err.contains("(1:9)"), "{}", accepted.err);
    let header = place.succeed(&["--json", "header", "x.wl"]).results();
    assert_eq!(header[0][0]["IsDamaged"], true);
    // It is known to be damaged until it is restored, and again if that is from what was damaged.
    let over = |media: &str, with: &str| {
        succeed(
            &place,
            &format!("RESTORE DATABASE x FROM DISK = 'd:\\{media}' WITH REPLACE{with}"),
        );
        std::fs::remove_file(place.path("x.wl")).expect("it");
        succeed(&place, &format!("{backup}, CONTINUE_AFTER_ERROR"));
        let header = place.succeed(&["--json", "header", "x.wl"]).results();
        header[0][0]["IsDamaged"].clone()
    };
    std::fs::copy(place.path("x.wl"), place.path("bad.wl")).expect("a copy");
    assert_eq!(over("good.wl", ""), false);
    assert_eq!(over("bad.wl", ""), true);
    assert_eq!(over("good.wl", ""), false);
    // An extent of the system tables becomes a hole, which has no page with a checksum.
    std::fs::write(place.path("x.mdf"), &whole).expect("a file");
    std::fs::remove_file(place.path("x.wl")).expect("it");
    let mut file = File::options()
        .write(true)
        .open(place.path("x.mdf"))
        .expect("a file");
    file.seek(SeekFrom::Start(16 * 8192)).expect("an offset");
    file.write_all(&vec![0; 65536]).expect("zeros");
    drop(file);
    let holed = std::process::Command::new("fallocate")
        .args(["--dig-holes", &place.text("x.mdf")])
        .status();
    let has_holes = holed.is_ok_and(|status| status.success());
    let stored = std::fs::metadata(place.path("x.mdf")).expect("it").blocks() * 512;
    assert!(!has_holes || stored < whole.len() as u64, "a hole");
    refuse(&place, backup, "page (1:");
    // Another file in its place, one that is cut, and none.
    std::fs::write(place.path("x.mdf"), &whole[8192..]).expect("a file");
    refuse(&place, backup, "is not data file 1");
    std::fs::write(place.path("x.mdf"), &whole[..100_000]).expect("a file");
    refuse(&place, backup, "is not one of pages");
    std::fs::write(place.path("x.mdf"), "").expect("a file");
    refuse(&place, backup, "x.mdf");
    std::fs::remove_file(place.path("x.ldf")).expect("it");
    refuse(&place, backup, "x.ldf");
    assert!(!place.path("x.wl").exists());
}

#[test]
fn a_flipped_bit_on_the_media_leaves_no_file_of_an_offline_database() {
    let Some(place) = offline() else { return };
    succeed(&place, "BACKUP DATABASE x TO DISK = 'd:\\x.wl'");
    let bytes = std::fs::metadata(place.path("x.wl"))
        .expect("the media")
        .len();
    flip_bit(&place.path("x.wl"), bytes / 2);
    let from = format!("RESTORE DATABASE y FROM DISK = 'd:\\x.wl' WITH {MOVES}");
    let run = sql(&place, &from);
    assert_eq!(run.code, Some(1), "{}", run.err);
    let mut left = place.files("");
    left.retain(|name| name.starts_with("y."));
    assert!(left.is_empty(), "{left:?}");
}
