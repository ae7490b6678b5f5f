//! No flipped bit and no cut goes unnoticed, and nothing that is damaged makes the program fall.

use std::path::Path;
use std::process::Stdio;

use crate::support::{
    Store, backup_arguments, command, make_database, media, restore_arguments, shown, succeed,
    windlass,
};

/// Two striped sets of a small database, of different codecs.
struct Sets {
    store: Store,
    /// All media.
    devices: Vec<String>,
    /// Arguments of `verify` for each set.
    verified: Vec<Vec<String>>,
}

impl Sets {
    /// On the same two files, or each on two objects.
    fn new(folder: &Path, store: Store) -> Self {
        let database = folder.join("app.db");
        let connection = rusqlite::Connection::open(&database).expect("a database");
        connection
            .execute_batch("CREATE TABLE t(a, b); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) INSERT INTO t SELECT i, hex(i * 7919) || ' some text ' || i FROM n;")
            .expect("rows");
        drop(connection);
        let mut sets = Self {
            store,
            devices: Vec::new(),
            verified: Vec::new(),
        };
        for (codec, name, position) in [("zstd", "first", "1"), ("none", "second", "2")] {
            let (place, position) = match store {
                Store::Files => (folder.to_owned(), position),
                Store::Objects => (folder.join(name), "1"),
            };
            let devices = store.media(&place, 2);
            succeed(&backup_arguments(
                &shown(&database),
                &devices,
                &["--compress", codec, "--name", name],
            ));
            let verify = ["verify", "--set", position].map(str::to_owned);
            sets.verified.push([&verify[..], &devices].concat());
            for device in devices {
                if !sets.devices.contains(&device) {
                    sets.devices.push(device);
                }
            }
        }
        sets
    }

    fn contents(&self) -> Vec<Vec<u8>> {
        let devices = self.devices.iter();
        devices.map(|device| self.store.read(device)).collect()
    }

    /// Whether any of the commands that look at media reports a problem. None may die.
    fn is_reported(&self, context: &str) -> bool {
        let reports = |arguments: &[&str]| {
            let output = windlass(arguments);
            assert!(
                matches!(output.status.code(), Some(0 | 1)),
                "{context}: {:?}",
                output.status
            );
            !output.status.success()
        };
        let mut reported = false;
        for verify in &self.verified {
            let verify: Vec<_> = verify.iter().map(String::as_str).collect();
            reported |= reports(&verify);
        }
        if !reported {
            for device in &self.devices {
                reported |= reports(&["header", device]);
            }
        }
        reported
    }
}

fn flip_bits(count: usize, store: Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = Sets::new(folder.path(), store);
    let devices = &sets.devices;
    let whole = sets.contents();
    assert!(
        !sets.is_reported("untouched"),
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
        store.write(&devices[family], &damaged);
        let context = format!(
            "round {round}: bit {} of byte {} in family {family}",
            bit % 8,
            bit / 8
        );
        assert!(sets.is_reported(&context), "unnoticed: {context}");
        store.write(&devices[family], &whole[family]);
    }
}

#[test]
fn flipped_bits_are_reported() {
    flip_bits(60, Store::Files);
    flip_bits(20, Store::Objects);
}

#[test]
#[ignore = "thousands of runs of the program"]
fn slow_two_thousand_flipped_bits_are_reported() {
    flip_bits(2000, Store::Files);
    flip_bits(2000, Store::Objects);
}

fn cut(step: usize, store: Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = Sets::new(folder.path(), store);
    let first = &sets.devices[0];
    let whole = store.read(first);
    for end in (0..whole.len()).step_by(step) {
        store.write(first, &whole[..end]);
        assert!(
            sets.is_reported(&format!("cut at {end}")),
            "unnoticed: cut at {end}"
        );
    }
}

#[test]
fn cuts_are_reported() {
    cut(7 * 4096, Store::Files);
    cut(7 * 4096, Store::Objects);
}

#[test]
#[ignore = "one run of the program for each block"]
fn slow_a_cut_at_every_block_is_reported() {
    cut(512, Store::Files);
    cut(512, Store::Objects);
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

fn refuse_arbitrary_bytes(store: Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let medium = store.medium(folder.path(), "x.bak");
    for content in [
        &b""[..],
        b"TAPE",
        &[0; 4096],
        &[0xFF; 100_000],
        b"SQLite format 3\0",
    ] {
        store.write(&medium, content);
        for what in ["verify", "header", "files", "label"] {
            let output = command(&[what, &medium])
                .stderr(Stdio::piped())
                .output()
                .expect("the program");
            assert_eq!(output.status.code(), Some(1), "{what}");
            assert!(!output.stderr.is_empty(), "{what} says why");
        }
    }
}

#[test]
fn arbitrary_files_are_refused_with_a_message() {
    refuse_arbitrary_bytes(Store::Files);
    refuse_arbitrary_bytes(Store::Objects);
}
