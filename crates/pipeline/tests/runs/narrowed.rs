//! UTF-16 text is narrowed on its way to the media and wide again after it, in every kind of set; a filter
//! that is unknown, wrong or damaged is refused.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use windlass_base::{PAGE_BYTES, PageNumber, checksum};
use windlass_codec::{Compression, Encoder, Filter, Stored};
use windlass_crypt::{Cipher, Identity, KeyRing, Recipient, SigningKey};
use windlass_engine::BackupMode;
use windlass_pipeline::{
    Damage, Encryption, MediaSet, OnDamage, ReadKeys, ReadRequest, Unobserved, backup, restore,
    restore_selected, verify,
};
use windlass_source::Recovery;
use windlass_source::engine::EngineSnapshot;
use windlass_source::sqlite::SqliteTarget;

use crate::coverage::{outcome, refused};
use crate::crafted::Crafted;
use crate::engine;
use crate::support::{
    Everything, Folder, back_up, devices, read_request, request, restore_request, restore_to, same,
};

/// A database with some MB of text in UTF-16.
fn text() -> Folder {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("app.db");
    make(&database);
    Folder { folder, database }
}

fn make(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size = 8192; PRAGMA encoding = 'UTF-16le';
             CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
             INSERT INTO t SELECT i, 'the same words again and again, ' || hex(randomblob(200)) FROM n",
        )
        .unwrap();
}

#[test]
fn text_is_narrowed_and_comes_back_with_every_algorithm_that_takes_it() {
    let Folder { folder, database } = text();
    let target = folder.path().join("restored.db");
    for compression in Compression::ALL {
        let devices = devices(folder.path(), &[&format!("{compression}.bak")]);
        let report = back_up(&database, &request(&devices, compression));
        let (narrowed, all) = (report.set.narrowed_bytes, report.set.backup_bytes);
        match Filter::NARROW.is_taken_by(compression.algorithm) {
            true => assert!(
                narrowed * 10 > all * 9,
                "{compression}: {narrowed} of {all}"
            ),
            false => assert_eq!(narrowed, 0, "{compression}"),
        }
        let media = MediaSet::open(&devices).unwrap();
        assert_eq!(media.set(1).unwrap().configuration.narrowed_bytes, narrowed);
        verify(&media, 1, &read_request(), &Unobserved).unwrap();
        restore_to(&media, 1, &target, Recovery::Recovery).unwrap();
        assert!(same(&database, &target), "{compression}");
    }
}

#[test]
fn an_encrypted_and_signed_set_is_narrowed_before_it_is_compressed_and_sealed() {
    let Folder { folder, database } = text();
    let devices = devices(folder.path(), &["1.bak", "2.bak"]);
    let identity = Arc::new(Identity::create("Backup", 365).unwrap());
    let signing = Arc::new(SigningKey::generate().unwrap());
    let signer = signing.signer();
    let mut wanted = request(&devices, Compression::ZSTD_LOW);
    wanted.encryption = Some(Encryption {
        algorithm: Cipher::Aes256,
        recipients: vec![Recipient::Certificate(identity.certificate().clone())],
    });
    wanted.signing = Some(signing);
    let report = back_up(&database, &wanted);
    assert!(report.set.narrowed_bytes > 0 && report.set.stored_bytes < report.set.backup_bytes);
    let request = ReadRequest {
        keys: ReadKeys {
            ring: Arc::new(KeyRing {
                identities: vec![identity],
                ..KeyRing::default()
            }),
            signed_by: vec![signer],
            ..ReadKeys::default()
        },
        ..read_request()
    };
    let media = MediaSet::open(&devices).unwrap();
    let target = folder.path().join("restored.db");
    let begun = SqliteTarget::begin(&restore_request(&media, 1, &target).unwrap()).unwrap();
    restore(&media, 1, &request, &begun, &Unobserved).unwrap();
    windlass_source::RestoreTarget::finish(Box::new(begun), Recovery::Recovery).unwrap();
    assert!(same(&database, &target));
}

#[test]
fn text_in_a_database_of_the_page_engine_is_narrowed() {
    let folder = tempfile::tempdir().unwrap();
    let database = engine::create(folder.path());
    let text: Vec<u8> = (0..PAGE_BYTES)
        .map(|at| if at % 2 == 0 { b'w' } else { 0 })
        .collect();
    let mut writer = database.begin_write(&database.begin_read()).unwrap();
    for page in PageNumber::all(600) {
        writer.write_page(page, &text).unwrap();
    }
    writer.commit().unwrap();
    let devices = devices(folder.path(), &["1.bak", "2.bak"]);
    let snapshot = EngineSnapshot::open(&database, BackupMode::Full).unwrap();
    let wanted = request(&devices, Compression::ZSTD_MEDIUM);
    let report = backup(&wanted, Box::new(snapshot), &Unobserved).unwrap();
    assert!(report.set.narrowed_bytes > 600 * PAGE_BYTES as u64 / 2);
    let read = outcome(&devices, &read_request()).unwrap();
    assert_eq!(read.processed_bytes, report.processed_bytes);
}

#[test]
fn a_method_that_is_unknown_is_named() {
    let Folder { folder, database } = text();
    let devices = devices(folder.path(), &["1.bak"]);
    back_up(&database, &request(&devices, Compression::ZSTD_LOW));
    let family = std::fs::read(devices[0].file().unwrap()).unwrap();
    for (part, codec, filter) in [("filter", 2, 77), ("codec", 77, 1), ("codec", 77, 77)] {
        std::fs::write(devices[0].file().unwrap(), &family).unwrap();
        let mut crafted = Crafted::of(&devices, 1);
        let made = Filter::from_id(crafted.chunks[1].header.filter).unwrap();
        assert!(made.is_narrowed);
        crafted.chunks[1].header.codec = codec;
        crafted.chunks[1].header.filter = filter;
        crafted.write();
        let damage = refused(&devices);
        let text = damage.to_string();
        assert!(
            matches!(
                damage,
                Damage::UnknownMethod {
                    ordinal: 1,
                    number: 77,
                    ..
                }
            ),
            "{text}"
        );
        assert!(
            text.contains(&format!("{part} 77")) && text.contains("newer version"),
            "{text}"
        );
        let media = MediaSet::open(&devices).unwrap();
        let chosen = &mut Everything(0);
        let chosen = restore_selected(&media, 1, &read_request(), chosen, &Unobserved);
        assert!(chosen.unwrap_err().to_string().contains(&text));
    }
}

#[test]
fn damage_within_narrowed_text_is_an_error_with_its_range() {
    let Folder { folder, database } = text();
    let devices = devices(folder.path(), &["1.bak"]);
    back_up(&database, &request(&devices, Compression::ZSTD_LOW));
    let family = std::fs::read(devices[0].file().unwrap()).unwrap();
    // What a compressor makes of bytes that are no narrowed form.
    let mut forged = vec![0; 100_000];
    let mut encoder = Encoder::new(Compression::ZSTD_LOW, forged.len()).unwrap();
    let stored = encoder.encode(&[0x77; 100_000], &mut forged).unwrap();
    let Stored::Compressed {
        bytes,
        filter: Filter::NONE,
    } = stored
    else {
        panic!("{stored:?}");
    };
    forged.truncate(bytes);
    for (filter, payload) in [(Filter::NARROW, Some(forged)), (Filter::NONE, None)] {
        std::fs::write(devices[0].file().unwrap(), &family).unwrap();
        let mut crafted = Crafted::of(&devices, 1);
        let chunk = &mut crafted.chunks[1];
        if let Some(payload) = payload {
            chunk.payload = payload;
        }
        let header = &mut chunk.header;
        header.filter = filter.id();
        header.stored_bytes = chunk.payload.len() as u32;
        header.stored_checksum = checksum(&chunk.payload);
        let run = header.runs[0];
        crafted.write();
        let damage = refused(&devices);
        assert!(
            matches!(damage, Damage::Undecodable { ordinal: 1, .. }),
            "{damage}"
        );
        let carry_on = ReadRequest {
            on_damage: OnDamage::Continue,
            ..read_request()
        };
        let report = outcome(&devices, &carry_on).unwrap();
        let named: Vec<_> = report.damaged.ranges.named.iter().collect();
        assert_eq!(
            (named.len(), named[0].offset, named[0].bytes),
            (1, run.offset, run.bytes.into())
        );
    }
}
