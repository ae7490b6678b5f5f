//! Disks that fail during reads: the cause is reported, and nothing is lost or left behind.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use windlass_codec::Compression;
use windlass_io::DirectFile;
use windlass_pipeline::{Error, MediaSet, Unobserved, backup};
use windlass_source::{DatabaseIdentity, FileRanges, Position, Snapshot, SourceFile};

use crate::support::{self, devices, request, snapshot};

/// A snapshot on a disk with an unreadable sector.
#[derive(Debug)]
struct Unreadable {
    inner: Box<dyn Snapshot>,
    at: u64,
    /// Whether reads go through a queue, or one by one.
    located: bool,
}

impl Unreadable {
    fn outcome(&self, offset: u64, bytes: usize) -> io::Result<()> {
        if (offset..offset + bytes as u64).contains(&self.at) {
            return Err(io::Error::from_raw_os_error(5));
        }
        Ok(())
    }
}

impl Snapshot for Unreadable {
    fn identity(&self) -> &DatabaseIdentity {
        self.inner.identity()
    }
    fn position(&self) -> Position {
        self.inner.position()
    }
    fn files(&self) -> &[SourceFile] {
        self.inner.files()
    }
    fn ranges(&self, file_id: u16) -> Vec<Range<u64>> {
        self.inner.ranges(file_id)
    }
    fn narrow(&mut self, ranges: FileRanges) {
        self.inner.narrow(ranges);
    }
    fn located(
        &self,
        file_id: u16,
        offset: u64,
        bytes: usize,
    ) -> Result<Option<Arc<DirectFile>>, windlass_source::Error> {
        match self.located {
            true => self.inner.located(file_id, offset, bytes),
            false => Ok(None),
        }
    }
    fn amend(
        &self,
        file_id: u16,
        offset: u64,
        buffer: &mut [u8],
        outcome: io::Result<usize>,
    ) -> Result<(), windlass_source::Error> {
        let outcome = self.outcome(offset, buffer.len()).and(outcome);
        self.inner.amend(file_id, offset, buffer, outcome)
    }
    fn read(
        &self,
        file_id: u16,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<(), windlass_source::Error> {
        match self.outcome(offset, buffer.len()) {
            Ok(()) => self.inner.read(file_id, offset, buffer),
            Err(error) => self.inner.amend(file_id, offset, buffer, Err(error)),
        }
    }
    fn check_pages(&self, file_id: u16, offset: u64, bytes: &[u8], on_bad: &mut dyn FnMut(u64)) {
        self.inner.check_pages(file_id, offset, bytes, on_bad);
    }
    fn has_page_checksums(&self) -> bool {
        self.inner.has_page_checksums()
    }
    fn close(&self) -> Result<(), windlass_source::Error> {
        self.inner.close()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_unreadable_sector_of_the_database_ends_the_backup_and_leaves_earlier_sets() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("app.db");
    support::make_database(&database, 20_000);
    let size = std::fs::metadata(&database).unwrap().len();
    let devices = devices(folder.path(), &["1.bak", "2.bak"]);
    let first = request(&devices, Compression::ZSTD_LOW);
    backup(&first, snapshot(&database), &Unobserved).unwrap();
    let (before, bytes) = (
        names(folder.path()),
        std::fs::read(&devices[0].path).unwrap(),
    );
    for (at, located) in [
        (0, true),
        (size / 2, true),
        (size - 1, true),
        (size / 2, false),
    ] {
        for compression in [Compression::NONE, Compression::ZSTD_LOW] {
            let broken = Unreadable {
                inner: snapshot(&database),
                at,
                located,
            };
            let error = backup(
                &request(&devices, compression),
                Box::new(broken),
                &Unobserved,
            )
            .unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::Source(_)), "{text}");
            assert!(text.contains("app.db") && text.contains("read"), "{text}");
        }
    }
    assert_eq!(names(folder.path()), before, "nothing is left behind");
    assert!(
        std::fs::read(&devices[0].path).unwrap() == bytes,
        "cut back to the first set"
    );
    let media = MediaSet::open(&devices).unwrap();
    let target = folder.path().join("copy.db");
    support::restore_to(&media, 1, &target, windlass_source::Recovery::Recovery).unwrap();
    assert!(std::fs::read(&target).unwrap() == std::fs::read(&database).unwrap());
}
