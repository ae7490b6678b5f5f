//! What an attacker can do who can write backup files but has no key.

use windlass_base::{EXTENT_BYTES, Guid};
use windlass_device::DeviceAddress;
use windlass_media::craft::{Chunk, Medium, Set};
use windlass_media::{DatabaseFile, FORMAT_VERSION, MediaHeader, SetConfiguration, SetType};
use windlass_pipeline::MediaSet;

use crate::support::{Place, rows, sql};

const FORGED: &[u8] = b"FORGED PAGE";
const FORGED_AT: usize = 3 * 4096;

/// What the clear headers of a set say.
fn headers(place: &Place, medium: &str) -> (MediaHeader, SetConfiguration) {
    let media = MediaSet::open(&[DeviceAddress::disk(place.path(medium))]).expect("the medium");
    let set = media.set(1).expect("its set").configuration;
    (media.header().clone(), set)
}

/// Writes a medium with one plain set that holds `content` at `offset` of the first file. All its checksums
/// are right.
fn write_plain(place: &Place, medium: &str, set: SetConfiguration, offset: u64, content: &[u8]) {
    let header = MediaHeader {
        format_version: FORMAT_VERSION,
        media_set_guid: Guid::random(),
        family_count: 1,
        family_number: 1,
        mirror_count: 1,
        block_bytes: 4096,
        media_family_id: 7,
        created: set.started,
        media_name: String::new(),
        media_description: String::new(),
        software_version: "0.1.0".to_owned(),
    };
    let set = SetConfiguration {
        is_final: false,
        compression: 0,
        compression_level: 0,
        key_block: Vec::new(),
        authentication: Vec::new(),
        binding: Vec::new(),
        chunk_headers: Vec::new(),
        signature: Vec::new(),
        ..set
    };
    let set = Set {
        configuration: set,
        chunks: vec![Chunk::new(offset, content)],
        ending: |_| {},
    };
    let bytes = Medium::begin(&header).with(&set).bytes();
    std::fs::write(place.path(medium), bytes).expect("the medium");
}

/// A plain differential that fits the encrypted full backup on `full`, made from its headers alone.
fn forge_differential(place: &Place, full: &str, medium: &str) {
    let (_, base) = headers(place, full);
    // The first extent: a header that passes for a database's, and a page.
    let mut extent = b"SQLite format 3\0\x10\0".to_vec();
    extent.resize(EXTENT_BYTES, 0);
    extent[FORGED_AT..FORGED_AT + FORGED.len()].copy_from_slice(FORGED);
    let set = SetConfiguration {
        set_guid: Guid::random(),
        set_type: SetType::Differential,
        differential_base_guid: base.set_guid,
        differential_base_lsn: base.checkpoint_lsn,
        ..base
    };
    write_plain(place, medium, set, 0, &extent);
}

/// A place with an encrypted full backup `full.bak`, its genuine differential `diff.bak`, and `forged.bak`.
fn place() -> Place {
    let place = Place::new();
    std::fs::write(place.path("key"), "correct horse battery staple").expect("a passphrase");
    let instance = place.text("instance");
    let run = |further: &[&str]| {
        let mut arguments = vec!["--instance", instance.as_str(), "backup", "app.db"];
        arguments.extend(["--passphrase-file", "key"]);
        arguments.extend(further);
        place.succeed(&arguments)
    };
    run(&["--to", "full.bak"]);
    rusqlite::Connection::open(place.path("app.db"))
        .and_then(|database| database.execute("DELETE FROM t WHERE id > 350", []))
        .expect("a change");
    run(&["--to", "diff.bak", "--differential"]);
    forge_differential(&place, "full.bak", "forged.bak");
    place
}

fn begin(place: &Place) {
    let arguments = ["restore", "full.bak", "--to", "x.db", "--no-recovery"];
    place.succeed(&[&arguments[..], &["--passphrase-file", "key"]].concat());
}

#[test]
fn a_plain_differential_upon_an_encrypted_full_is_refused_and_costs_nothing() {
    let place = place();
    begin(&place);
    for further in [&[][..], &["--passphrase-file", "key"]] {
        let run = place.run(&[&["restore", "forged.bak", "--to", "x.db"], further].concat());
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains("not encrypted"), "{}", run.err);
    }
    // A key that was forgotten, a wrong one, a damaged header: all leave what was restored.
    std::fs::write(place.path("other"), "another passphrase").expect("a passphrase");
    let mut damaged = std::fs::read(place.path("diff.bak")).expect("the medium");
    let name = damaged.windows(7).rposition(|bytes| bytes == b"/app.db");
    damaged[name.expect("the final configuration")] ^= 1;
    std::fs::write(place.path("damaged.bak"), damaged).expect("a medium");
    for arguments in [
        &["restore", "diff.bak", "--to", "x.db"][..],
        &[
            "restore",
            "diff.bak",
            "--to",
            "x.db",
            "--passphrase-file",
            "other",
        ],
        &[
            "restore",
            "damaged.bak",
            "--to",
            "x.db",
            "--passphrase-file",
            "key",
        ],
    ] {
        let run = place.run(arguments);
        assert_eq!(run.code, Some(1), "{arguments:?} {}", run.err);
    }
    place.succeed(&[
        "restore",
        "diff.bak",
        "--to",
        "x.db",
        "--passphrase-file",
        "key",
    ]);
    assert_eq!(rows(&place.path("x.db")), 350);
}

#[test]
fn a_plain_differential_is_applied_when_that_is_said_by_name() {
    let place = place();
    begin(&place);
    place.succeed(&[
        "restore",
        "forged.bak",
        "--to",
        "x.db",
        "--allow-unencrypted",
    ]);
    let restored = std::fs::read(place.path("x.db")).expect("the database");
    assert!(restored[FORGED_AT..].starts_with(FORGED));
}

#[test]
fn statements_refuse_a_plain_differential_upon_an_encrypted_full() {
    let place = place();
    let script = |options: &str| {
        format!(
            "RESTORE DATABASE x FROM DISK = 'd:\\forged.bak' WITH MOVE 'app' TO 'd:\\x.db'{options}"
        )
    };
    place.succeed(
        &[
            &["--instance", &place.text("instance")][..],
            &["restore", "full.bak", "--database", "x", "--to", "x.db"],
            &["--no-recovery", "--passphrase-file", "key"],
        ]
        .concat(),
    );
    assert_eq!(sql(&place, &script("")).numbers(), [50029, 3013]);
    assert_eq!(
        sql(&place, &script(", ALLOW_UNENCRYPTED")).numbers(),
        [4035, 3014]
    );
}

#[test]
fn pages_and_files_come_only_from_a_set_as_protected_as_the_base_was() {
    let place = Place::new();
    let made = "CREATE DATABASE e ON (NAME = 'e', FILENAME = 'd:\\e.mdf')
             LOG ON (NAME = 'e_log', FILENAME = 'd:\\e.ldf')
         GO
         USE e
         GO
         CREATE TABLE t(a)";
    sql(&place, made);
    std::fs::write(place.path("key"), "correct horse battery staple").expect("a passphrase");
    let instance = place.text("instance");
    let backup = ["--instance", &instance, "backup", "e", "--to", "e.bak"];
    place.succeed(&[&backup[..], &["--passphrase-file", "key"]].concat());
    // The same set, as its headers say, without a key.
    let (_, base) = headers(&place, "e.bak");
    write_plain(&place, "forged.bak", base, 0, &[7; EXTENT_BYTES]);
    for part in ["PAGE = '1:0'", "FILE = 'e'"] {
        let script = format!("RESTORE DATABASE e {part} FROM DISK = 'd:\\forged.bak'");
        assert_eq!(sql(&place, &script).numbers(), [50029, 3013], "{part}");
    }
}

#[test]
fn a_setting_refuses_every_plain_restore() {
    let place = place();
    place.succeed(&["backup", "other.db", "--to", "plain.bak"]);
    let restore = "RESTORE DATABASE y FROM DISK = 'd:\\plain.bak' WITH MOVE 'other' TO 'd:\\y.db'";
    let script = format!(
        "EXEC sp_configure 'restores must be encrypted', 1
         RECONFIGURE
         GO
         RESTORE VERIFYONLY FROM DISK = 'd:\\plain.bak'
         {restore}
         {restore}, ALLOW_UNENCRYPTED"
    );
    assert_eq!(
        sql(&place, &script).numbers(),
        [15457, 3262, 50030, 3013, 50030, 3013]
    );
    assert!(!place.path("y.db").exists());
    std::fs::write(place.path("c.toml"), "restores_must_be_encrypted = true").expect("settings");
    let run = place.run(&["--config", "c.toml", "restore", "plain.bak", "--to", "y.db"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("Msg 50030"), "{}", run.err);
    place.succeed(&["restore", "plain.bak", "--to", "y.db"]);
}

#[test]
fn a_backup_chooses_neither_a_path_nor_a_content_that_is_no_database() {
    let place = Place::new();
    let cron = b"* * * * * root id > /tmp/owned\n";
    let file = DatabaseFile {
        file_id: 1,
        logical_name: "evil".to_owned(),
        physical_name: place.text("crond"),
        size_bytes: cron.len() as u64,
        page_bytes: 4096,
        ..DatabaseFile::default()
    };
    let set = SetConfiguration {
        set_guid: Guid::random(),
        set_type: SetType::Full,
        database: "evil".to_owned(),
        started: "2026-11-20 21:00:01".parse().ok(),
        family_guid: Guid::random(),
        files: vec![file],
        ..SetConfiguration::default()
    };
    write_plain(&place, "cron.bak", set, 0, cron);
    place.succeed(&["verify", "cron.bak"]);
    let run = place.run(&[
        "restore",
        "cron.bak",
        "--database",
        "shop",
        "--instance",
        "i",
    ]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("Give --to FILE"), "{}", run.err);
    let run = place.run(&["restore", "cron.bak", "--to", "crond"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(
        run.err.contains("does not begin with a SQLite"),
        "{}",
        run.err
    );
    let numbers = sql(&place, "RESTORE DATABASE shop FROM DISK = 'd:\\cron.bak'").numbers();
    assert_eq!(numbers, [50028, 3013]);
    assert!(!place.path("crond").exists());
    assert!(!place.path("crond.windlass-restoring").exists());
    place.succeed(&["restore", "cron.bak", "--to", "crond", "--as-is"]);
    assert_eq!(std::fs::read(place.path("crond")).expect("the file"), cron);
}
