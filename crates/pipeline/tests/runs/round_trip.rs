//! Backup, verify, restore, differential, damage, full disks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use windlass_base::{Digest, Guid};
use windlass_codec::Compression;
use windlass_device::DeviceAddress;
use windlass_pipeline::{
    BackupKind, Damage, DifferentialBase, DigestFile, Error, MediaSet, Observer, OnDamage,
    Overwrite, ReadRequest, Unobserved, backup, extract_digests, verify,
};
use windlass_source::Recovery;

use crate::support::{
    Folder, back_up, devices, make_database, prepared, read_request, request, restore_to, same,
    snapshot,
};

#[test]
fn every_algorithm_and_level_on_one_media_set_restores_byte_for_byte() {
    let Folder { folder, database } = prepared(3000);
    let devices = devices(folder.path(), &["1.bak", "2.bak", "3.bak"]);
    let all = [
        Compression::NONE,
        Compression::MS_XPRESS,
        Compression::ZSTD_LOW,
        Compression::ZSTD_MEDIUM,
        Compression::ZSTD_HIGH,
        Compression::QAT_DEFLATE,
    ];
    for (index, compression) in all.into_iter().enumerate() {
        let report = back_up(&database, &request(&devices, compression));
        assert_eq!(usize::from(report.set.position), index + 1);
        assert_eq!(
            report.processed_bytes,
            std::fs::metadata(&database).unwrap().len()
        );
    }
    let mut shuffled = devices.clone();
    shuffled.rotate_left(1);
    let media = MediaSet::open(&shuffled).unwrap();
    assert_eq!(media.sets().len(), all.len());
    for position in 1..=all.len() as u16 {
        verify(&media, position, &read_request(), &Unobserved).unwrap();
        let target = folder.path().join(format!("{position}.db"));
        restore_to(&media, position, &target, Recovery::Recovery).unwrap();
        assert!(same(&database, &target), "set {position}");
    }
}

/// Uncompressed chunks are written from the buffers they were read into: with two of these the reader waits
/// for the writer to give one back, while the writer waits for a chunk.
#[test]
fn two_buffers_suffice_for_chunks_that_are_written_from_where_they_were_read() {
    let Folder { folder, database } = prepared(6000);
    for (round, names) in [&["1.bak"][..], &["2.bak", "3.bak", "4.bak"]]
        .into_iter()
        .cycle()
        .take(20)
        .enumerate()
    {
        let devices = devices(folder.path(), names);
        let mut request = request(&devices, Compression::NONE);
        request.media.overwrite = Overwrite::Format;
        request.tuning.buffer_count = Some(2);
        request.tuning.transfer_bytes = Some(64 << 10);
        let report = back_up(&database, &request);
        assert_eq!(report.plan.frame_buffers.value, 2, "round {round}");
        verify(
            &MediaSet::open(&devices).unwrap(),
            1,
            &read_request(),
            &Unobserved,
        )
        .unwrap();
    }
}

#[test]
fn a_differential_stores_what_changed_and_restores_onto_its_base() {
    let Folder { folder, database } = prepared(6000);
    let devices = devices(folder.path(), &["1.bak", "2.bak"]);
    let mut full = request(&devices, Compression::ZSTD_LOW);
    full.digests_to = Some(folder.path().to_owned());
    let full_report = back_up(&database, &full);
    let connection = Connection::open(&database).unwrap();
    connection.execute_batch("UPDATE t SET body = 'changed' WHERE id = 17; INSERT INTO t(body) SELECT body FROM t LIMIT 900").unwrap();
    drop(connection);

    let kept = windlass_pipeline::digests::path(folder.path(), full_report.set.set_guid);
    let digests = DigestFile::open(&kept).unwrap();
    let media = MediaSet::open(&devices).unwrap();
    let extracted = extract_digests(&media, 1, &folder.path().join("extracted")).unwrap();
    assert_eq!(extracted.set_guid(), full_report.set.set_guid);
    assert!(
        same(&kept, &folder.path().join("extracted")),
        "media carry the same digests"
    );
    drop(media);

    let mut differential = request(&devices, Compression::ZSTD_LOW);
    let (set_guid, lsn) = (full_report.set.set_guid, full_report.set.checkpoint_lsn);
    differential.kind = BackupKind::Differential(DifferentialBase {
        set_guid,
        lsn,
        digests: Some(Arc::new(digests)),
    });
    let report = back_up(&database, &differential);
    assert!(
        report.processed_bytes < full_report.processed_bytes,
        "{} of {}",
        report.processed_bytes,
        full_report.processed_bytes
    );

    let media = MediaSet::open(&devices).unwrap();
    verify(&media, 2, &read_request(), &Unobserved).unwrap();
    let target = folder.path().join("copy.db");
    restore_to(&media, 1, &target, Recovery::NoRecovery).unwrap();
    assert!(!target.exists(), "NORECOVERY leaves nothing that opens");
    restore_to(&media, 2, &target, Recovery::Recovery).unwrap();
    assert!(same(&database, &target));
}

/// Nothing is ever compared with a copy-only backup: its extents are not digested.
#[test]
fn a_copy_only_backup_carries_no_digests() {
    let Folder { folder, database } = prepared(2000);
    let devices = devices(folder.path(), &["1.bak"]);
    for copy_only in [false, true] {
        let mut request = request(&devices, Compression::ZSTD_LOW);
        request.copy_only = copy_only;
        request.digests_to = copy_only.then(|| folder.path().join("digests"));
        back_up(&database, &request);
    }
    assert!(!folder.path().join("digests").exists());
    let media = MediaSet::open(&devices).unwrap();
    let found = |position: u16| {
        let path = folder.path().join(format!("{position}"));
        let file = extract_digests(&media, position, &path).unwrap();
        let mut digests = Vec::new();
        file.read(1, 0, &mut digests, 4).map(|()| digests)
    };
    let none = Digest([0; Digest::BYTES]);
    assert!(found(1).unwrap().iter().all(|digest| *digest != none));
    assert!(found(2).is_err());
    restore_to(
        &media,
        2,
        &folder.path().join("copy.db"),
        Recovery::Recovery,
    )
    .unwrap();
    assert!(same(&database, &folder.path().join("copy.db")));
}

#[test]
fn mirrors_are_identical_and_either_restores() {
    let Folder { folder, database } = prepared(2000);
    let first = devices(folder.path(), &["1.bak", "2.bak"]);
    let mirror = devices(folder.path(), &["m1.bak", "m2.bak"]);
    let mut mirrored = request(&first, Compression::ZSTD_LOW);
    mirrored.media.mirrors = vec![mirror.clone()];
    let refused = backup(&mirrored, snapshot(&database), &Unobserved);
    assert!(matches!(refused, Err(Error::MirrorNeedsFormat)));
    mirrored.media.overwrite = Overwrite::Format;
    back_up(&database, &mirrored);
    assert!(
        same(first[0].file().unwrap(), mirror[0].file().unwrap())
            && same(first[1].file().unwrap(), mirror[1].file().unwrap())
    );
    mirrored.media.overwrite = Overwrite::Append;
    back_up(&database, &mirrored);
    let mixed = [first[0].clone(), mirror[1].clone()];
    let media = MediaSet::open(&mixed).unwrap();
    restore_to(
        &media,
        2,
        &folder.path().join("copy.db"),
        Recovery::Recovery,
    )
    .unwrap();
    assert!(same(&database, &folder.path().join("copy.db")));
}

#[test]
fn a_mirror_that_lost_data_is_not_appended_to() {
    let Folder { folder, database } = prepared(200);
    let first = devices(folder.path(), &["1.bak"]);
    let mirror = devices(folder.path(), &["m1.bak"]);
    let mut mirrored = request(&first, Compression::NONE);
    mirrored.media.mirrors = vec![mirror.clone()];
    mirrored.media.overwrite = Overwrite::Format;
    back_up(&database, &mirrored);
    mirrored.media.overwrite = Overwrite::Append;
    back_up(&database, &mirrored);
    let whole = std::fs::read(mirror[0].file().unwrap()).unwrap();
    for cut in [whole.len() / 4, whole.len() / 2] {
        std::fs::write(mirror[0].file().unwrap(), &whole[..whole.len() - cut]).unwrap();
        let refused = backup(&mirrored, snapshot(&database), &Unobserved);
        assert!(
            matches!(refused, Err(Error::FamilyBehind { .. })),
            "{refused:?}"
        );
        assert!(
            std::fs::read(first[0].file().unwrap()).unwrap() == whole,
            "the good copy is untouched"
        );
    }
}

#[test]
fn stripes_are_checked_to_belong_together() {
    let Folder { folder, database } = prepared(500);
    let (one, other) = (
        devices(folder.path(), &["1.bak", "2.bak"]),
        devices(folder.path(), &["3.bak", "4.bak"]),
    );
    back_up(&database, &request(&one, Compression::NONE));
    back_up(&database, &request(&other, Compression::NONE));
    let open = |devices: &[&DeviceAddress]| {
        let devices: Vec<_> = devices.iter().map(|device| (*device).clone()).collect();
        MediaSet::open(&devices).map(drop).unwrap_err()
    };
    assert!(matches!(
        open(&[&one[0]]),
        Error::FamiliesMissing {
            expected: 2,
            provided: 1,
            ..
        }
    ));
    assert!(matches!(
        open(&[&one[0], &other[1]]),
        Error::OtherMediaSet { .. }
    ));
    assert!(matches!(
        open(&[&one[0], &one[0]]),
        Error::FamilyTwice { .. }
    ));
    let fewer = backup(
        &request(&one[..1], Compression::NONE),
        snapshot(&database),
        &Unobserved,
    );
    assert!(matches!(fewer, Err(Error::FamiliesMissing { .. })));
    let mut three = one.clone();
    three.push(DeviceAddress::disk(folder.path().join("5.bak")));
    let more = backup(
        &request(&three, Compression::NONE),
        snapshot(&database),
        &Unobserved,
    );
    assert!(more.is_err());
}

#[test]
fn a_database_is_never_overwritten_by_a_backup() {
    let Folder { folder, database } = prepared(50);
    let other = folder.path().join("other.db");
    make_database(&other, 50);
    let before = std::fs::read(&other).unwrap();
    for overwrite in [Overwrite::Append, Overwrite::Initialize, Overwrite::Format] {
        let mut request = request(&[DeviceAddress::disk(&other)], Compression::NONE);
        request.media.overwrite = overwrite;
        let refused = backup(&request, snapshot(&database), &Unobserved);
        assert!(matches!(refused, Err(Error::Device(_))), "{refused:?}");
        assert!(std::fs::read(&other).unwrap() == before);
    }
}

#[test]
fn nul_counts_and_keeps_nothing() {
    let Folder { folder, database } = prepared(500);
    let report = back_up(
        &database,
        &request(&[DeviceAddress::nul()], Compression::ZSTD_LOW),
    );
    assert!(report.set.stored_bytes > 0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn an_unexpired_set_is_not_overwritten_unless_skip() {
    let Folder { folder, database } = prepared(100);
    let devices = devices(folder.path(), &["1.bak"]);
    let mut dated = request(&devices, Compression::NONE);
    dated.expires = "2999-01-01".parse().ok();
    back_up(&database, &dated);
    dated.media.overwrite = Overwrite::Initialize;
    assert!(matches!(
        backup(&dated, snapshot(&database), &Unobserved),
        Err(Error::NotExpired { .. })
    ));
    dated.media.skip_checks = true;
    back_up(&database, &dated);
    let media = MediaSet::open(&devices).unwrap();
    assert_eq!(media.sets().len(), 1);
}

#[test]
fn damage_is_found_and_named() {
    let Folder { folder, database } = prepared(3000);
    let devices = devices(folder.path(), &["1.bak"]);
    back_up(&database, &request(&devices, Compression::ZSTD_LOW));
    let mut bytes = std::fs::read(devices[0].file().unwrap()).unwrap();
    let chunk = bytes
        .windows(4)
        .position(|window| window == b"WLDT")
        .unwrap();
    bytes[chunk + 20_000] ^= 0x10;
    std::fs::write(devices[0].file().unwrap(), &bytes).unwrap();
    let media = MediaSet::open(&devices).unwrap();
    let found = verify(&media, 1, &read_request(), &Unobserved);
    assert!(
        matches!(
            &found,
            Err(Error::SetDamaged {
                damage: Damage::Checksum { .. },
                ..
            })
        ),
        "{found:?}"
    );
    let target = folder.path().join("copy.db");
    assert!(restore_to(&media, 1, &target, Recovery::Recovery).is_err());
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(
        left, 2,
        "database and media: a failed restore leaves nothing"
    );
    let carry_on = ReadRequest {
        on_damage: OnDamage::Continue,
        ..read_request()
    };
    let damaged = verify(&media, 1, &carry_on, &Unobserved).unwrap().damaged;
    assert_eq!(damaged.count, 1);
    assert!(matches!(damaged.first, Some((_, Damage::Checksum { .. }))));
}

struct CancelAt(u64, AtomicU64);

impl Observer for CancelAt {
    fn progress(&self, done: u64, _total: u64, _stored: u64) {
        self.1.store(done, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.1.load(Ordering::Relaxed) >= self.0
    }
}

#[test]
fn a_cancelled_backup_leaves_what_was_there() {
    let Folder { folder, database } = prepared(6000);
    let devices = devices(folder.path(), &["1.bak", "2.bak"]);
    back_up(&database, &request(&devices, Compression::ZSTD_LOW));
    let before: Vec<_> = devices
        .iter()
        .map(|device| std::fs::read(device.file().unwrap()).unwrap())
        .collect();
    for overwrite in [Overwrite::Append, Overwrite::Initialize, Overwrite::Format] {
        let mut again = request(&devices, Compression::MS_XPRESS);
        again.media.overwrite = overwrite;
        let outcome = backup(&again, snapshot(&database), &CancelAt(1, AtomicU64::new(0)));
        assert!(matches!(outcome, Err(Error::Cancelled)));
        let after: Vec<_> = devices
            .iter()
            .map(|device| std::fs::read(device.file().unwrap()).unwrap())
            .collect();
        assert!(before == after, "{overwrite:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}

#[test]
fn a_database_of_no_bytes_survives() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("empty.db");
    std::fs::write(&database, b"").unwrap();
    let devices = devices(folder.path(), &["1.bak"]);
    back_up(&database, &request(&devices, Compression::ZSTD_LOW));
    let media = MediaSet::open(&devices).unwrap();
    let target = folder.path().join("copy.db");
    restore_to(&media, 1, &target, Recovery::Recovery).unwrap();
    assert_eq!(std::fs::metadata(&target).unwrap().len(), 0);
}

#[test]
fn a_guid_names_the_set() {
    let Folder { folder, database } = prepared(10);
    let devices = devices(folder.path(), &["1.bak"]);
    let report = back_up(&database, &request(&devices, Compression::NONE));
    assert_ne!(report.set.set_guid, Guid::NIL);
    assert_eq!(
        MediaSet::open(&devices)
            .unwrap()
            .set(1)
            .unwrap()
            .configuration,
        report.set
    );
}
