//! Spools that are cut off, flipped, or lose parts.

use std::path::{Path, PathBuf};

use windlass_media::WalPosition;

use super::range::find;
use super::reader::segments;
use super::record::{Commit, Gap, Moment, Span, State};
use super::*;
use crate::Error;

const PAGE_BYTES: u32 = 512;

fn position(frame: u32) -> WalPosition {
    WalPosition {
        salt: [1; 8],
        frame,
        checksum: [frame, 7],
        commits: frame,
    }
}

/// A moment that ends at `frame`, of one page and two commits.
fn add(spool: &mut SpoolWriter, frame: u32) {
    let content = [frame as u8; PAGE_BYTES as usize];
    let records = spool.pages(PAGE_BYTES, &[1], &mut |_| &content).unwrap();
    let commit = |frame| Commit {
        frame,
        checksum: position(frame).checksum,
    };
    let moment = Moment {
        time_us: u64::from(frame) * 1000,
        from: position(frame - 2),
        to: position(frame),
        page_bytes: PAGE_BYTES,
        page_count: 1,
        commit_number: u64::from(frame),
        records,
        spans: vec![Span {
            salt: [1; 8],
            is_begin: false,
            commits: vec![commit(frame - 1), commit(frame)],
        }],
    };
    spool.moment(&moment).unwrap();
}

fn open(folder: &Path) -> SpoolWriter {
    SpoolWriter::open(folder, Path::new("/a.db"), None)
        .unwrap()
        .0
}

/// A spool with the moments 4, 6, 8 of a start at 2; its only segment.
fn made(folder: &Path) -> PathBuf {
    let mut spool = open(folder);
    let state = State {
        position: position(2),
        time_us: 2000,
        commit_number: 2,
        inode: 5,
    };
    spool.start(state).unwrap();
    for frame in [4, 6, 8] {
        add(&mut spool, frame);
    }
    spool.sync().unwrap();
    drop(spool);
    segments(folder).unwrap().remove(0).1
}

fn number(folder: &Path, base: u32, stop: Stop) -> Result<u64, Error> {
    find(folder, &position(base), stop).map(|reach| reach.commit_number)
}

#[test]
fn a_backup_is_tied_to_any_commit_and_to_no_other_state() {
    let folder = tempfile::tempdir().unwrap();
    made(folder.path());
    for base in 2..=8 {
        assert_eq!(
            number(folder.path(), base, Stop::Latest).unwrap(),
            8,
            "{base}"
        );
    }
    let other = WalPosition {
        checksum: [5, 8],
        ..position(5)
    };
    for wrong in [position(1), position(9), other] {
        let error = find(folder.path(), &wrong, Stop::Latest).unwrap_err();
        assert!(
            matches!(error, Error::Spool(SpoolError::NotTied { .. })),
            "{error}"
        );
    }
    let at = |base, stop| number(folder.path(), base, stop).ok();
    assert_eq!(at(3, Stop::Time(7999)), Some(6));
    assert_eq!(at(3, Stop::Time(6000)), Some(6));
    assert_eq!(
        at(3, Stop::Time(3999)),
        None,
        "in the middle of the first moment"
    );
    assert_eq!(
        at(4, Stop::Time(5000)),
        Some(4),
        "the state of the backup itself"
    );
    assert_eq!(at(2, Stop::Time(8001)), None, "behind the end");
    assert_eq!(at(2, Stop::Commit(6)), Some(6));
    for between in [5, 9] {
        let error = number(folder.path(), 2, Stop::Commit(between)).unwrap_err();
        assert!(error.to_string().contains("Nearest before"), "{error}");
    }
    assert_eq!(at(8, Stop::Commit(6)), None, "before the backup");
}

#[test]
fn nothing_is_restored_across_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    made(folder.path());
    let mut spool = open(folder.path());
    let gap = Gap {
        from_us: 8500,
        to_us: 10_000,
        from: position(8),
        to: position(20),
        inode: 5,
        reason: "of this test".to_owned(),
    };
    spool.gap(&gap).unwrap();
    add(&mut spool, 22);
    spool.sync().unwrap();
    let at = |base, stop| number(folder.path(), base, stop);
    assert!(at(2, Stop::Latest).is_err());
    assert!(
        at(2, Stop::Time(9000))
            .unwrap_err()
            .to_string()
            .contains("of this test")
    );
    assert!(at(2, Stop::Commit(22)).is_err());
    assert_eq!(at(2, Stop::Time(8500)).unwrap(), 8);
    assert_eq!(at(2, Stop::Commit(8)).unwrap(), 8);
    assert_eq!(at(20, Stop::Latest).unwrap(), 22);
    let (listed, rest) = list(folder.path()).unwrap();
    assert_eq!((listed.len(), rest), (3, 0));
}

#[test]
fn a_cut_end_is_continued_and_a_flipped_bit_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let whole = std::fs::read(&path).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for length in (100..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let Ok(reached) = number(folder.path(), 2, Stop::Latest) else {
            continue;
        };
        seen.insert(reached);
        // The next follower continues behind the last moment.
        let (mut spool, continued) =
            SpoolWriter::open(folder.path(), Path::new("/a.db"), None).unwrap();
        let state = continued.unwrap().state;
        assert_eq!(u64::from(state.position.frame), reached);
        add(&mut spool, state.position.frame + 2);
        spool.sync().unwrap();
        assert_eq!(number(folder.path(), 2, Stop::Latest).unwrap(), reached + 2);
        drop(spool);
        std::fs::remove_file(&segments(folder.path()).unwrap()[1].1).unwrap();
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [2, 4, 6]);
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        std::fs::write(&path, &flipped).unwrap();
        let walked = || -> Result<u64, Error> {
            let reach = find(folder.path(), &position(2), Stop::Latest)?;
            let mut records = Records::open(folder.path())?;
            while let Some(found) = records.next()? {
                records.body(&found)?;
            }
            // Only the end can be missing, and that is told.
            assert!(
                reach.commit_number == 8 || reach.rest_bytes > 0,
                "byte {at}"
            );
            Ok(reach.commit_number)
        };
        assert!(walked().map_or(true, |reached| reached < 8), "byte {at}");
    }
}

#[test]
fn a_folder_has_one_follower_and_one_database() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(folder.path());
    let again = SpoolWriter::open(folder.path(), Path::new("/a.db"), None).unwrap_err();
    assert!(
        matches!(again, Error::Spool(SpoolError::InUse { .. })),
        "{again}"
    );
    drop(spool);
    let other = SpoolWriter::open(folder.path(), Path::new("/b.db"), None).unwrap_err();
    assert!(
        matches!(other, Error::Spool(SpoolError::OfOther { .. })),
        "{other}"
    );
}

#[test]
fn a_time_that_is_not_unique_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(folder.path());
    let state = State {
        position: position(2),
        time_us: 2000,
        commit_number: 2,
        inode: 5,
    };
    spool.start(state).unwrap();
    add(&mut spool, 4);
    let change = ClockChange {
        from_us: 4500,
        to_us: 5500,
    };
    spool.clock(change).unwrap();
    add(&mut spool, 6);
    spool.sync().unwrap();
    drop(spool);
    // Another follower continues behind it.
    let mut spool = open(folder.path());
    add(&mut spool, 8);
    spool.sync().unwrap();
    let at = |stop| number(folder.path(), 2, stop);
    assert_eq!(at(Stop::Time(4500)).unwrap(), 4);
    let error = at(Stop::Time(5000)).unwrap_err();
    assert!(error.to_string().contains("clock was changed"), "{error}");
    assert_eq!(at(Stop::Time(7000)).unwrap(), 6);
    assert_eq!(at(Stop::Commit(6)).unwrap(), 6);
    assert_eq!(at(Stop::Latest).unwrap(), 8);
}
