//! A set is complete if its chunks cover its content exactly once: media with any other coverage, but
//! otherwise correct, are refused by verification and by restore.

use std::path::Path;
use std::sync::Arc;

use windlass_codec::Compression;
use windlass_device::DeviceAddress;
use windlass_engine::BackupMode;
use windlass_media::ChunkKind;
use windlass_pipeline::{
    BackupKind, BackupRequest, Damage, DifferentialBase, Error, MediaSet, OnDamage, ReadReport,
    ReadRequest, Tuning, Unobserved, backup, extract_digests, restore, verify,
};
use windlass_source::engine::EngineSnapshot;
use windlass_source::{Error as SourceError, RestoreTarget};

use crate::crafted::Crafted;
use crate::support::{Folder, devices, prepared, read_request, request, snapshot};

pub(crate) const EXTENT: u64 = 65536;

/// A target that takes everything and keeps nothing.
#[derive(Debug)]
struct Sink;

impl RestoreTarget for Sink {
    fn write(&self, _file_id: u16, _offset: u64, _bytes: &[u8]) -> Result<(), SourceError> {
        Ok(())
    }

    fn finish(self: Box<Self>, _recovery: windlass_source::Recovery) -> Result<(), SourceError> {
        Ok(())
    }

    fn abandon(self: Box<Self>) -> Result<(), SourceError> {
        Ok(())
    }
}

/// What verification and restore say, which is the same.
pub(crate) fn outcome(
    devices: &[DeviceAddress],
    request: &ReadRequest,
) -> Result<ReadReport, Error> {
    let media = MediaSet::open(devices).unwrap();
    let verified = verify(&media, 1, request, &Unobserved);
    let restored = restore(&media, 1, request, &Sink, &Unobserved);
    match (&verified, &restored) {
        (Ok(_), Ok(_)) => {}
        (Err(verified), Err(restored)) => {
            assert_eq!(reported(verified), reported(restored));
        }
        _ => panic!("verification: {verified:?}, restore: {restored:?}"),
    }
    verified
}

/// What is said of an error; of two chunks of one range, the thread that is later names its own.
fn reported(error: &Error) -> String {
    match error {
        Error::SetDamaged {
            damage: Damage::Overlap { .. },
            ..
        } => "two chunks of one range".to_owned(),
        error => error.to_string(),
    }
}

pub(crate) fn refused(devices: &[DeviceAddress]) -> Damage {
    match outcome(devices, &read_request()).unwrap_err() {
        Error::SetDamaged { damage, .. } => damage,
        error => panic!("{error}"),
    }
}

pub(crate) fn in_extents(request: BackupRequest) -> BackupRequest {
    BackupRequest {
        tuning: Tuning {
            transfer_bytes: Some(EXTENT as u32),
            ..Tuning::default()
        },
        ..request
    }
}

/// Takes one chunk out, makes everything agree, and returns where it came from.
fn drop_chunk(devices: &[DeviceAddress], index: usize) -> (u16, u64, u64) {
    let mut crafted = Crafted::of(devices, 1);
    let header = crafted.chunks.remove(index).header;
    crafted.agree();
    crafted.write();
    let bytes = header.runs.iter().map(|run| u64::from(run.bytes)).sum();
    (header.file_id, header.runs[0].offset, bytes)
}

fn assert_missing(devices: &[DeviceAddress], (file_id, offset, bytes): (u16, u64, u64)) {
    let damage = refused(devices);
    let Damage::Missing(missing) = &damage else {
        panic!("{damage}");
    };
    let first = &missing.named[0];
    assert_eq!((missing.count, missing.bytes), (1, bytes));
    assert_eq!(
        (first.file_id, first.offset, first.bytes),
        (file_id, offset, bytes)
    );
    let reported = damage.to_string();
    let range = format!("bytes {offset} to {}", offset + bytes - 1);
    assert!(
        reported.contains(&range) && reported.contains("file '"),
        "{reported}"
    );
}

#[test]
fn a_full_set_that_lacks_a_chunk_is_refused_with_file_and_range() {
    let Folder { folder, database } = prepared(3000);
    for (names, compression) in [
        (&["1.bak"][..], Compression::NONE),
        (&["2.bak", "3.bak"], Compression::ZSTD_LOW),
    ] {
        let devices = devices(folder.path(), names);
        let wanted = in_extents(request(&devices, compression));
        backup(&wanted, snapshot(&database), &Unobserved).unwrap();
        let families: Vec<_> = devices
            .iter()
            .map(|device| std::fs::read(device.file().unwrap()).unwrap())
            .collect();
        let count = Crafted::of(&devices, 1).chunks.len();
        let mut untouched = Crafted::of(&devices, 1);
        untouched.agree();
        untouched.write();
        outcome(&devices, &read_request()).unwrap();
        for index in [0, count / 2, count - 1] {
            for (device, family) in devices.iter().zip(&families) {
                std::fs::write(device.file().unwrap(), family).unwrap();
            }
            let lost = drop_chunk(&devices, index);
            assert_missing(&devices, lost);
        }
    }
}

#[test]
fn an_engine_set_that_lacks_data_or_log_is_refused_with_file_and_range() {
    let folder = tempfile::tempdir().unwrap();
    let database = crate::engine::create(folder.path());
    let devices = devices(folder.path(), &["1.bak", "2.bak"]);
    let open = || Box::new(EngineSnapshot::open(&database, BackupMode::Full).unwrap());
    let wanted = in_extents(request(&devices, Compression::ZSTD_LOW));
    let fresh = || {
        for device in &devices {
            std::fs::remove_file(device.file().unwrap()).ok();
        }
        backup(&wanted, open(), &Unobserved).unwrap()
    };
    let report = fresh();
    let data = report.set.files.iter().filter(|file| !file.is_log);
    for file in data {
        assert!(
            !file.held.is_empty() && file.backup_bytes < file.size_bytes,
            "unallocated extents are left out, and the set says so"
        );
    }
    outcome(&devices, &read_request()).unwrap();
    for (file_id, kind) in [
        (1, ChunkKind::Data),
        (3, ChunkKind::Data),
        (2, ChunkKind::Log),
    ] {
        fresh();
        let chunks = Crafted::of(&devices, 1).chunks;
        let of_file = |chunk: &&crate::crafted::Chunk| {
            chunk.header.file_id == file_id && chunk.header.kind == kind
        };
        let first = chunks
            .iter()
            .filter(of_file)
            .map(|chunk| chunk.header.ordinal);
        let index = first.min().unwrap() as usize;
        let lost = drop_chunk(&devices, index);
        assert_missing(&devices, lost);
    }
}

#[test]
fn a_chunk_that_repeats_another_or_lies_between_extents_is_refused() {
    let Folder { folder, database } = prepared(3000);
    let devices = devices(folder.path(), &["1.bak"]);
    let wanted = in_extents(request(&devices, Compression::NONE));
    backup(&wanted, snapshot(&database), &Unobserved).unwrap();
    let family = std::fs::read(devices[0].file().unwrap()).unwrap();

    let mut crafted = Crafted::of(&devices, 1);
    let again = crafted.chunks[3].clone();
    crafted.chunks.push(again);
    crafted.agree();
    crafted.write();
    assert!(matches!(refused(&devices), Damage::Overlap { .. }));

    std::fs::write(devices[0].file().unwrap(), &family).unwrap();
    let mut crafted = Crafted::of(&devices, 1);
    crafted.chunks[3].header.runs[0].offset = 5 * EXTENT;
    crafted.agree();
    crafted.write();
    assert!(matches!(refused(&devices), Damage::Overlap { .. }));

    std::fs::write(devices[0].file().unwrap(), &family).unwrap();
    let mut crafted = Crafted::of(&devices, 1);
    crafted.chunks[3].header.runs[0].offset += 512;
    crafted.agree();
    crafted.write();
    assert!(matches!(refused(&devices), Damage::ForeignChunk { .. }));

    std::fs::write(devices[0].file().unwrap(), &family).unwrap();
    let mut crafted = Crafted::of(&devices, 1);
    crafted.set.files[0].backup_bytes -= 1;
    crafted.write();
    assert!(matches!(refused(&devices), Damage::Coverage { .. }));

    std::fs::write(devices[0].file().unwrap(), &family).unwrap();
    let mut crafted = Crafted::of(&devices, 1);
    crafted.set.files[0].held = vec![9];
    crafted.write();
    assert!(matches!(refused(&devices), Damage::HeldUnreadable { .. }));
}

/// A differential alone on its media, of a database in which two stretches changed.
fn differential(folder: &Path, database: &Path) -> Vec<DeviceAddress> {
    let full = devices(folder, &["full.bak"]);
    let report = backup(
        &request(&full, Compression::NONE),
        snapshot(database),
        &Unobserved,
    )
    .unwrap();
    let connection = rusqlite::Connection::open(database).unwrap();
    connection
        .execute_batch("UPDATE t SET body = 'new' WHERE id IN (1, 1500, 1501, 2900)")
        .unwrap();
    drop(connection);
    let media = MediaSet::open(&full).unwrap();
    let digests = extract_digests(&media, 1, &folder.join("digests")).unwrap();
    let devices = devices(folder, &["diff.bak"]);
    let wanted = BackupRequest {
        kind: BackupKind::Differential(DifferentialBase {
            set_guid: report.set.set_guid,
            lsn: report.set.checkpoint_lsn,
            digests: Some(Arc::new(digests)),
        }),
        ..in_extents(request(&devices, Compression::NONE))
    };
    backup(&wanted, snapshot(database), &Unobserved).unwrap();
    devices
}

#[test]
fn a_differential_holds_exactly_the_runs_that_it_names() {
    let Folder { folder, database } = prepared(3000);
    let devices = differential(folder.path(), &database);
    outcome(&devices, &read_request()).unwrap();
    let family = std::fs::read(devices[0].file().unwrap()).unwrap();
    let whole = Crafted::of(&devices, 1);
    assert!(whole.chunks.len() > 2 && !whole.set.files[0].held.is_empty());

    for index in 0..whole.chunks.len() {
        std::fs::write(devices[0].file().unwrap(), &family).unwrap();
        let lost = drop_chunk(&devices, index);
        assert_missing(&devices, lost);
    }

    let mut more = Crafted::of(&devices, 1);
    more.chunks.clone_from(&whole.chunks);
    let mut added = more.chunks[0].clone();
    added.header.runs[0].offset = 7 * EXTENT;
    more.chunks.push(added);
    more.agree();
    more.write();
    let damage = refused(&devices);
    assert!(matches!(damage, Damage::Unexpected(_)), "{damage}");

    let mut beyond = Crafted::of(&devices, 1);
    beyond.chunks.clone_from(&whole.chunks);
    let size = beyond.set.files[0].size_bytes;
    beyond.chunks[0].header.runs[0].offset = size.next_multiple_of(EXTENT);
    beyond.agree();
    beyond.write();
    assert!(matches!(refused(&devices), Damage::ForeignChunk { .. }));
}

#[test]
fn carrying_on_names_what_is_damaged_and_what_is_missing_and_hides_nothing() {
    let Folder { folder, database } = prepared(3000);
    let devices = devices(folder.path(), &["1.bak"]);
    let wanted = in_extents(request(&devices, Compression::NONE));
    backup(&wanted, snapshot(&database), &Unobserved).unwrap();
    let mut crafted = Crafted::of(&devices, 1);
    // Two chunks dropped, as the set's own count shows, and one flipped.
    let place = |index: usize| {
        let run = crafted.chunks[index].header.runs[0];
        (run.offset, u64::from(run.bytes))
    };
    let (flipped, mut dropped) = (place(9), [place(4), place(20)]);
    dropped.sort_unstable();
    crafted.chunks[9].payload[100] ^= 1;
    crafted.chunks.remove(20);
    crafted.chunks.remove(4);
    crafted.write();
    let carry_on = ReadRequest {
        on_damage: OnDamage::Continue,
        ..read_request()
    };
    let report = outcome(&devices, &carry_on).unwrap();
    let named = |ranges: &windlass_pipeline::FileRanges| -> Vec<(u64, u64)> {
        let named = ranges.named.iter();
        named.map(|range| (range.offset, range.bytes)).collect()
    };
    let damaged = &report.damaged;
    assert_eq!((damaged.count, damaged.missing_count), (1, 2));
    assert_eq!(named(&damaged.ranges), [flipped]);
    assert_eq!(named(&damaged.missing), dropped);
    assert!(!damaged.is_empty());
    assert!(matches!(
        outcome(&devices, &read_request()),
        Err(Error::SetDamaged {
            damage: Damage::Checksum { .. } | Damage::Missing(_),
            ..
        })
    ));
}
