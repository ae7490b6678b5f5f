//! SQL Server backups on Windlass media, there and back, through the program.

use std::path::Path;

use serde_json::Value as Json;

use crate::sqlserver::sample;
use crate::support::{Place, flip_bit};

const MANIFEST: &str = "MANIFEST.md";
const LAB: &str = "sql2008r2_lab_";

/// The files of the samples, each with all its stripes.
fn backups() -> Option<Vec<Vec<String>>> {
    let manifest = sample(MANIFEST)?;
    let folder = Path::new(&manifest).parent()?;
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path().display().to_string())
        .filter(|path| path.contains(".bak") || path.contains(".trn"))
        .collect();
    names.sort();
    let mut backups: Vec<Vec<String>> = Vec::new();
    for name in names {
        let second = name.contains("__Stripe2__");
        let of_first = |backup: &&mut Vec<String>| {
            let is_log = |name: &str| name.contains(".trn");
            backup[0].contains("__Stripe1__") && is_log(&backup[0]) == is_log(&name)
        };
        match backups.iter_mut().find(of_first).filter(|_| second) {
            Some(backup) => backup.push(name),
            None => backups.push(vec![name]),
        }
    }
    assert!(backups.len() >= 38, "{} backups", backups.len());
    Some(backups)
}

fn words<'w>(first: &[&'w str], names: &'w [String], option: &'w str) -> Vec<&'w str> {
    let given = names.iter().flat_map(|name| match option {
        "" => vec![name.as_str()],
        option => vec![option, name.as_str()],
    });
    first.iter().copied().chain(given).collect()
}

/// The rows of a command with `--json`.
fn rows(place: &Place, words: &[&str]) -> Vec<Json> {
    let mut with_json = vec!["--json"];
    with_json.extend(words);
    place.succeed(&with_json).results()[0]
        .as_array()
        .expect("rows")
        .clone()
}

/// Checks that the addresses in a plain file are its own.
fn check_addresses(bytes: &[u8]) {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let tag = |at: usize| bytes.get(at..at + 4).unwrap_or_default();
    let (mut sets, mut marks, mut ends) = (0, Vec::new(), Vec::new());
    for at in (0..bytes.len()).step_by(512) {
        match tag(at) {
            b"SSET" if word(at + 0x50) == at as u64 => sets += 1,
            b"ESET" => ends.push((at, word(at + 0x3C))),
            b"SFMB" => {
                let newest = word(at + 0x48);
                assert_eq!(
                    newest,
                    marks.last().copied().unwrap_or(0),
                    "filemark at {at}"
                );
                assert_eq!(bytes[at + 6] & 4, 0, "it announces no index");
                marks.push(at as u64);
            }
            _ => {}
        }
    }
    assert_eq!((sets, marks.len()), (1, 3));
    let [first, second] = ends[..] else {
        panic!("{ends:?}");
    };
    assert_eq!((first.1, second.1), (0, first.0 as u64));
}

#[test]
fn every_sample_comes_back_byte_for_byte_and_a_compressed_one_as_a_plain_file() {
    let Some(backups) = backups() else { return };
    let place = Place::new();
    let mut plain = 0;
    for (index, files) in backups.iter().enumerate() {
        let media = format!("{index}.wl");
        let mut pack = words(&["repack"], files, "");
        pack.extend([
            "--to",
            &media,
            "--compress",
            "zstd:low",
            "--continue-after-error",
        ]);
        place.succeed(&pack);
        let back: Vec<String> = (0..files.len())
            .map(|n| format!("{index}-{n}.out"))
            .collect();
        place.succeed(&words(&["unpack", &media], &back, "--to"));
        for (file, back) in files.iter().zip(&back) {
            let original = std::fs::read(file).expect("the original");
            let found = std::fs::read(place.path(back)).expect("what was unpacked");
            if original.starts_with(b"TAPE") {
                assert!(original == found, "{file}");
                plain += 1;
                continue;
            }
            check_addresses(&found);
            place.succeed(&["verify", back]);
            let sizes = ["Compressed", "CompressedBackupSize", "CompressionAlgorithm"];
            let listed = |file: &str| {
                let mut rows = rows(&place, &["header", file]);
                for row in &mut rows {
                    for column in sizes {
                        row[column].take();
                    }
                }
                rows
            };
            assert_eq!(listed(file), listed(back), "{file}");
        }
    }
    assert_eq!(plain, 34, "plain samples");
}

#[test]
fn media_say_of_a_copied_set_what_sql_server_says_of_the_original() {
    let Some(file) = sample(&format!(
        "{LAB}db1__DIFF__SQL2008_db1_DIFF_20170518_041819.bak"
    )) else {
        return;
    };
    let place = Place::new();
    place.succeed(&["repack", &file, "--to", "x.wl"]);
    let (was, is) = (
        rows(&place, &["header", &file]),
        rows(&place, &["header", "x.wl"]),
    );
    for column in [
        "BackupType",
        "ServerName",
        "DatabaseName",
        "DatabaseVersion",
        "FirstLSN",
        "LastLSN",
        "CheckpointLSN",
        "DatabaseBackupLSN",
        "DifferentialBaseLSN",
        "DifferentialBaseGUID",
        "BackupSetGUID",
        "BackupStartDate",
        "BackupFinishDate",
        "Collation",
        "RecoveryModel",
        "HasBackupChecksums",
        "SoftwareVersionMajor",
    ] {
        assert!(!was[0][column].is_null(), "{column}");
        assert_eq!(was[0][column], is[0][column], "{column}");
    }
    assert_eq!(is[0]["CompressionAlgorithm"], "ZSTD");
    assert_eq!(is[0]["SourceProduct"], "SQL Server");
    assert_eq!(
        rows(&place, &["files", &file]),
        rows(&place, &["files", "x.wl"])
    );
    place.succeed(&["verify", "x.wl"]);
    for words in [
        vec!["restore", "x.wl", "--to", "x.mdf"],
        vec!["restore", "x.wl", "--set", "1", "--to", "x.mdf"],
    ] {
        let refused = place.run(&words);
        assert_eq!(refused.code, Some(1));
        assert!(refused.err.contains("windlass unpack"), "{}", refused.err);
    }
    assert!(!place.path("x.mdf").exists());
}

#[test]
fn stripes_are_packed_encrypted_into_other_stripes_and_come_back_in_their_order() {
    let stripes = [1, 2].map(|number| {
        let second = if number == 1 { "" } else { "1" };
        sample(&format!(
            "{LAB}RestoreTimeStripe__Stripe{number}__RestoreTimeStripe{second}.bak"
        ))
    });
    let [Some(first), Some(second)] = stripes else {
        return;
    };
    let place = Place::new();
    std::fs::write(place.path("secret"), "correct horse\n").expect("a passphrase");
    let one = place.run(&["repack", &second, "--to", "x.wl"]);
    assert_eq!(one.code, Some(1));
    assert!(
        one.err.contains("media family 1 of 2 is missing"),
        "{}",
        one.err
    );
    assert!(one.err.contains("Msg 3132"), "{}", one.err);
    assert!(!place.path("x.wl").exists());
    let to = [
        "--to",
        "1.wl",
        "--to",
        "2.wl",
        "--to",
        "3.wl",
        "--passphrase-file",
        "secret",
    ];
    place.succeed(&[&["repack", &second, &first][..], &to].concat());
    let media = ["unpack", "3.wl", "1.wl", "2.wl"];
    let closed = place.run(&[&media[..], &["--to", "a", "--to", "b"]].concat());
    assert!(closed.err.contains("passphrase"), "{}", closed.err);
    let single = place.run(&[&media[..], &["--to", "a", "--passphrase-file", "secret"]].concat());
    assert!(single.err.contains("2 media families"), "{}", single.err);
    assert!(!place.path("a").exists() && !place.path("b").exists());
    let both = ["--to", "a", "--to", "b", "--passphrase-file", "secret"];
    place.succeed(&[&media[..], &both].concat());
    for (file, back) in [(first, "a"), (second, "b")] {
        let same = std::fs::read(file).expect("the original")
            == std::fs::read(place.path(back)).expect("the copy");
        assert!(same, "{back}");
    }
}

#[test]
fn media_with_sets_of_several_files_give_back_each_by_one_of_its_sets() {
    let names = ["sql2008r2_Employee_2sets_4k.bak", "sql2012_pubs_a.bak"];
    let [Some(two), Some(pubs)] = names.map(sample) else {
        return;
    };
    let place = Place::new();
    place.succeed(&["repack", &two, "--to", "x.wl"]);
    place.succeed(&["repack", &pubs, "--to", "x.wl"]);
    let several = place.run(&["unpack", "x.wl", "--to", "a"]);
    assert!(
        several.err.contains("begin at sets 1, 3"),
        "{}",
        several.err
    );
    for (set, file) in [("2", &two), ("1", &two), ("3", &pubs)] {
        place.succeed(&["unpack", "x.wl", "--set", set, "--to", "a", "--replace"]);
        let same = std::fs::read(file).expect("the original")
            == std::fs::read(place.path("a")).expect("the copy");
        assert!(same, "{set}");
    }
    let kept = place.run(&["unpack", "x.wl", "--set", "3", "--to", "a"]);
    assert_eq!(kept.code, Some(1), "{}", kept.err);
    assert!(kept.err.contains("--replace overwrites it"), "{}", kept.err);
    assert!(!kept.err.contains("MOVE"), "{}", kept.err);
    place.succeed(&["backup", "app.db", "--to", "x.wl"]);
    let own = place.run(&["unpack", "x.wl", "--set", "4", "--to", "b"]);
    assert!(
        own.err.contains("not copied from a file of SQL Server"),
        "{}",
        own.err
    );
}

#[test]
fn a_damaged_page_stops_a_repack_unless_damage_is_accepted_and_then_it_is_said() {
    let Some(file) = sample("sql2008r2_CorruptDB.bak") else {
        return;
    };
    let place = Place::new();
    let stopped = place.run(&["repack", &file, "--to", "x.wl"]);
    assert_eq!(stopped.code, Some(1));
    assert!(stopped.err.contains("page 1:283"), "{}", stopped.err);
    assert!(!place.path("x.wl").exists());
    let accepted = place.succeed(&["repack", &file, "--to", "x.wl", "--continue-after-error"]);
    assert!(accepted.err.contains("page 1:283"), "{}", accepted.err);
    assert_eq!(rows(&place, &["header", "x.wl"])[0]["IsDamaged"], true);
}

#[test]
fn a_repack_writes_to_no_file_of_sql_server_and_an_unpack_to_no_medium() {
    let Some(file) = sample("sql2016_BackupTestDb_log.bak") else {
        return;
    };
    let place = Place::new();
    std::fs::copy(&file, place.path("own.bak")).expect("a copy");
    for words in [
        vec!["repack", "own.bak", "--to", "own.bak"],
        vec!["repack", "own.bak", "--to", "own.bak", "--format"],
    ] {
        let refused = place.run(&words);
        assert_eq!(refused.code, Some(1), "{}", refused.err);
    }
    place.succeed(&["repack", "own.bak", "--to", "x.wl"]);
    let refused = place.run(&["unpack", "x.wl", "--to", "x.wl", "--replace"]);
    assert!(refused.err.contains("it is the backup"), "{}", refused.err);
    let twice = place.run(&["repack", "own.bak", "own.bak", "--to", "y.wl"]);
    assert_eq!(twice.code, Some(1), "{}", twice.err);
    let same = std::fs::read(&file).expect("the original")
        == std::fs::read(place.path("own.bak")).expect("the copy");
    assert!(same);
}

#[test]
fn a_flipped_bit_on_the_media_is_found_before_the_file_gets_its_name() {
    let Some(file) = sample("sql2016_BackupTestDb_diff.bak") else {
        return;
    };
    let place = Place::new();
    place.succeed(&["repack", &file, "--to", "x.wl"]);
    let bytes = std::fs::metadata(place.path("x.wl"))
        .expect("the media")
        .len();
    flip_bit(&place.path("x.wl"), bytes / 2);
    let refused = place.run(&["unpack", "x.wl", "--to", "a"]);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    let left: Vec<_> = std::fs::read_dir(place.path(""))
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| name.to_string_lossy().starts_with('a') && name != "app.db")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_copied_differential_finds_its_copied_base_and_both_are_kept() {
    let name = |kind: &str| format!("sql2016_BackupTestDb_{kind}.bak");
    let (Some(full), Some(differential)) = (sample(&name("full")), sample(&name("diff"))) else {
        return;
    };
    let place = Place::new();
    std::fs::create_dir(place.path("d")).expect("a folder");
    let check = ["check", "--media", "d", "--rpo", "1000000h"];
    place.succeed(&["repack", &differential, "--to", "d/diff.wl"]);
    let alone = place.run(&check);
    assert_eq!(alone.code, Some(2), "{}", alone.out);
    place.succeed(&["repack", &full, "--to", "d/full.wl"]);
    let both = place.run(&check);
    assert_eq!(both.code, Some(0), "{}", both.out);
    let kept = place.run(&["expire", "d", "--last", "1", "--delete"]);
    assert_eq!(kept.code, Some(0), "{}{}", kept.out, kept.err);
    // The same again, elsewhere: they are copies of one set, and either one serves.
    place.succeed(&["repack", &full, "--to", "d/again.wl"]);
    place.succeed(&["expire", "d", "--last", "1", "--delete"]);
    assert!(place.path("d/diff.wl").exists());
    let either = ["d/full.wl", "d/again.wl"].map(|name| place.path(name).exists());
    assert!(either.contains(&true));
    let left = place.run(&check);
    assert_eq!(left.code, Some(0), "{}", left.out);
}

#[test]
fn an_unpack_refuses_a_name_beside_which_a_log_was_left() {
    let Some(file) = sample("sql2016_BackupTestDb_log.bak") else {
        return;
    };
    let place = Place::new();
    place.succeed(&["repack", &file, "--to", "x.wl"]);
    for left in ["x.db-wal", "x.db-journal"] {
        std::fs::write(place.path(left), "left").expect("a file");
        let refused = place.run(&["unpack", "x.wl", "--to", "x.db"]);
        assert_eq!(refused.code, Some(1), "{}", refused.out);
        assert!(refused.err.contains(left), "{}", refused.err);
        assert!(!place.path("x.db").exists());
        std::fs::remove_file(place.path(left)).expect("it");
    }
    place.succeed(&["unpack", "x.wl", "--to", "x.db"]);
}
