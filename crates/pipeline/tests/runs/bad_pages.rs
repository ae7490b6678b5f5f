//! Pages whose own checksums are wrong, and what SQLite's check found: a backup stops, or says so.

use windlass_base::PAGE_BYTES;
use windlass_codec::Compression;
use windlass_pipeline::{
    BackupRequest, DamagedPage, Error, Integrity, OnDamage, Unobserved, backup,
};
use windlass_source::Depth;

use crate::coverage::{EXTENT, in_extents};
use crate::support::{Folder, back_up, devices, prepared, request, snapshot};
use crate::troubled::Troubled;

fn checking(request: BackupRequest, on_damage: OnDamage) -> BackupRequest {
    BackupRequest {
        checksum: true,
        on_damage,
        ..request
    }
}

#[test]
fn a_page_with_a_wrong_checksum_stops_a_backup_that_asks_for_checksums() {
    let Folder { folder, database } = prepared(3000);
    let devices = devices(folder.path(), &["1.bak"]);
    let broken = || Troubled {
        bad_pages: 19..21,
        ..Troubled::new(snapshot(&database))
    };
    let plain = in_extents(request(&devices, Compression::NONE));
    let wanted = checking(plain.clone(), OnDamage::Stop);
    let error = backup(&wanted, Box::new(broken()), &Unobserved).unwrap_err();
    let Error::PageDamaged(DamagedPage { page, offset, file }) = &error else {
        panic!("{error}");
    };
    assert_eq!(page.to_string(), "(1:19)");
    assert_eq!(*offset, 19 * PAGE_BYTES as u64);
    assert!(file.ends_with("app.db"), "{file}");
    assert!(!devices[0].file().unwrap().exists(), "no media");
    // Without the option nothing is reported.
    let report = backup(&plain, Box::new(broken()), &Unobserved).unwrap();
    assert!(report.damaged.is_empty() && !report.set.is_damaged);
}

#[test]
fn damaged_pages_are_counted_up_to_a_bound_and_flag_the_set() {
    let Folder { folder, database } = prepared(20_000);
    let devices = devices(folder.path(), &["1.bak"]);
    let wanted = checking(request(&devices, Compression::NONE), OnDamage::Continue);
    for (bad, named) in [(1, 1), (999, 999), (1001, 1000), (1400, 1000)] {
        let broken = Troubled {
            bad_pages: 0..bad,
            ..Troubled::new(snapshot(&database))
        };
        let found = backup(&wanted, Box::new(broken), &Unobserved).unwrap();
        assert_eq!(found.damaged.len(), named);
        assert!(found.set.is_damaged && found.set.has_checksums);
    }
    let sound = backup(&wanted, snapshot(&database), &Unobserved).unwrap();
    assert!(sound.damaged.is_empty() && !sound.set.is_damaged);
}

#[test]
fn findings_of_sqlites_check_flag_the_set() {
    let Folder { folder, database } = prepared(300);
    let devices = devices(folder.path(), &["1.bak"]);
    for findings in [0, 1, 3] {
        let checked = BackupRequest {
            integrity: Some(Integrity {
                depth: Depth::Quick,
                findings,
            }),
            ..request(&devices, Compression::NONE)
        };
        let set = back_up(&database, &checked).set;
        assert_eq!(set.is_damaged, findings > 0);
        assert_eq!(set.seen.integrity_findings, findings);
    }
}

#[test]
fn a_range_that_comes_twice_ends_the_backup_and_is_named() {
    let Folder { folder, database } = prepared(3000);
    let devices = devices(folder.path(), &["1.bak"]);
    let twice = Troubled {
        ranges: Some(vec![0..4 * EXTENT, 3 * EXTENT..4 * EXTENT]),
        ..Troubled::new(snapshot(&database))
    };
    let wanted = in_extents(request(&devices, Compression::NONE));
    let error = backup(&wanted, Box::new(twice), &Unobserved).unwrap_err();
    let Error::StoredTwice(ranges) = &error else {
        panic!("{error}");
    };
    assert_eq!((ranges.count, ranges.bytes), (1, EXTENT));
    assert_eq!(ranges.named[0].offset, 3 * EXTENT);
    assert!(!devices[0].file().unwrap().exists(), "no media");
}
