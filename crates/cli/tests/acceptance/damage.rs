//! No flipped bit and no cut goes unnoticed, and nothing that is damaged makes the program fall.

use std::path::Path;
use std::process::Stdio;

use crate::support::{
    backup_arguments, command, make_database, media, restore_arguments, shown, succeed, windlass,
};

/// Two striped sets of a small database, of different codecs, one of them differential.
fn small_media(folder: &Path) -> Vec<String> {
    let database = folder.join("app.db");
    let connection = rusqlite::Connection::open(&database).expect("a database");
    connection
        .execute_batch("CREATE TABLE t(a, b); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) INSERT INTO t SELECT i, hex(i * 7919) || ' some text ' || i FROM n;")
        .expect("rows");
    drop(connection);
    let devices = media(folder, 2);
    succeed(&backup_arguments(
        &shown(&database),
        &devices,
        &["--compress", "zstd", "--name", "first"],
    ));
    succeed(&backup_arguments(
        &shown(&database),
        &devices,
        &["--compress", "none", "--name", "second"],
    ));
    devices
}

/// Whether any of the commands that look at media reports a problem. None may die.
fn is_reported(devices: &[String], context: &str) -> bool {
    let mut reported = false;
    for position in ["1", "2"] {
        let mut arguments = vec!["verify"];
        arguments.extend(devices.iter().map(String::as_str));
        arguments.extend(["--set", position]);
        let output = windlass(&arguments);
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{context}: {:?}",
            output.status
        );
        reported |= !output.status.success();
    }
    if !reported {
        for device in devices {
            let output = windlass(&["header", device]);
            assert!(
                matches!(output.status.code(), Some(0 | 1)),
                "{context}: {:?}",
                output.status
            );
            reported |= !output.status.success();
        }
    }
    reported
}

fn flip_bits(count: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let devices = small_media(folder.path());
    let whole: Vec<Vec<u8>> = devices
        .iter()
        .map(|device| std::fs::read(device).expect("media"))
        .collect();
    assert!(
        !is_reported(&devices, "untouched"),
        "the undamaged media are good"
    );
    let mut state = 88_172_645_463_325_252_u64;
    for round in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let family = (state >> 8) as usize % devices.len();
        let bit = (state >> 16) as usize % (whole[family].len() * 8);
        let mut damaged = whole[family].clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&devices[family], &damaged).expect("media");
        let context = format!(
            "round {round}: bit {} of byte {} in family {family}",
            bit % 8,
            bit / 8
        );
        assert!(is_reported(&devices, &context), "unnoticed: {context}");
        std::fs::write(&devices[family], &whole[family]).expect("media");
    }
}

#[test]
fn flipped_bits_are_reported() {
    flip_bits(60);
}

#[test]
#[ignore = "two thousand runs of the program"]
fn slow_two_thousand_flipped_bits_are_reported() {
    flip_bits(2000);
}

fn cut(step: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let devices = small_media(folder.path());
    let whole = std::fs::read(&devices[0]).expect("media");
    for end in (0..whole.len()).step_by(step) {
        std::fs::write(&devices[0], &whole[..end]).expect("media");
        assert!(
            is_reported(&devices, &format!("cut at {end}")),
            "unnoticed: cut at {end}"
        );
    }
}

#[test]
fn cuts_are_reported() {
    cut(7 * 4096);
}

#[test]
#[ignore = "one run of the program for each block"]
fn slow_a_cut_at_every_block_is_reported() {
    cut(512);
}

#[test]
fn an_interrupted_append_leaves_earlier_sets_and_the_media_appendable() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("app.db");
    make_database(&database, 2, "wal");
    let devices = media(folder.path(), 2);
    succeed(&backup_arguments(
        &shown(&database),
        &devices,
        &["--compress", "zstd"],
    ));
    let length = |device: &String| std::fs::metadata(device).expect("media").len();
    let good: Vec<u64> = devices.iter().map(length).collect();
    succeed(&backup_arguments(
        &shown(&database),
        &devices,
        &["--compress", "zstd"],
    ));
    // No end is written before all data are durable, so neither stripe has more than a part of them.
    for (device, good) in devices.iter().zip(good) {
        let both = length(device);
        let file = std::fs::OpenOptions::new().write(true).open(device);
        let file = file.expect("media");
        file.set_len(good + (both - good) / 2).expect("cut");
    }

    let first = folder.path().join("first.db");
    succeed(&restore_arguments(
        &devices,
        &shown(&first),
        &["--set", "1"],
    ));
    let second = shown(&folder.path().join("second.db"));
    let output = windlass(&restore_arguments(&devices, &second, &["--set", "2"]));
    assert!(
        !output.status.success(),
        "the interrupted set is not restored"
    );
    succeed(&backup_arguments(
        &shown(&database),
        &devices,
        &["--compress", "zstd"],
    ));
    succeed(&restore_arguments(&devices, &second, &["--set", "2"]));
    assert!(std::fs::read(&first).unwrap() == std::fs::read(&second).unwrap());
}

#[test]
fn arbitrary_files_are_refused_with_a_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.bak");
    for content in [
        &b""[..],
        b"TAPE",
        &[0; 4096],
        &[0xFF; 100_000],
        b"SQLite format 3\0",
    ] {
        std::fs::write(&path, content).expect("a file");
        for what in ["verify", "header", "files", "label"] {
            let output = command(&[what, &shown(&path)])
                .stderr(Stdio::piped())
                .output()
                .expect("the program");
            assert_eq!(output.status.code(), Some(1), "{what}");
            assert!(!output.stderr.is_empty(), "{what} says why");
        }
    }
}
