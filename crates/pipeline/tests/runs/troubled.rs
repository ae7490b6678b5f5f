//! Snapshots of databases in trouble: disks that fail, pages that are damaged, ranges that come twice.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use windlass_base::page::pages_of;
use windlass_base::{FileId, FilePage};
use windlass_io::DirectFile;
use windlass_source::{DatabaseIdentity, FileRanges, Position, Snapshot, SourceFile};

/// A snapshot with troubles of choice; with none, it is the one inside.
#[derive(Debug)]
pub(crate) struct Troubled {
    pub(crate) inner: Box<dyn Snapshot>,
    pub(crate) identity: DatabaseIdentity,
    pub(crate) position: Position,
    /// Where the disk has an unreadable sector.
    pub(crate) unreadable_at: Option<u64>,
    /// Whether reads go one by one instead of through a queue.
    pub(crate) is_unlocated: bool,
    /// Pages whose own checksums are wrong.
    pub(crate) bad_pages: Range<u64>,
    /// What is to be read of its file, instead of all.
    pub(crate) ranges: Option<Vec<Range<u64>>>,
}

impl Troubled {
    pub(crate) fn new(inner: Box<dyn Snapshot>) -> Self {
        Self {
            identity: inner.identity().clone(),
            position: inner.position(),
            inner,
            unreadable_at: None,
            is_unlocated: false,
            bad_pages: 0..0,
            ranges: None,
        }
    }

    fn outcome(&self, offset: u64, bytes: usize) -> io::Result<()> {
        let read = offset..offset + bytes as u64;
        match self.unreadable_at {
            Some(at) if read.contains(&at) => Err(io::Error::from_raw_os_error(5)),
            _ => Ok(()),
        }
    }
}

impl Snapshot for Troubled {
    fn identity(&self) -> &DatabaseIdentity {
        &self.identity
    }
    fn position(&self) -> Position {
        self.position
    }
    fn files(&self) -> &[SourceFile] {
        self.inner.files()
    }
    fn ranges(&self, file_id: u16) -> Vec<Range<u64>> {
        let all = || self.inner.ranges(file_id);
        self.ranges.clone().unwrap_or_else(all)
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
        match self.is_unlocated {
            true => Ok(None),
            false => self.inner.located(file_id, offset, bytes),
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
    fn check_pages(
        &self,
        file_id: u16,
        offset: u64,
        bytes: &[u8],
        on_bad: &mut dyn FnMut(FilePage),
    ) {
        assert_eq!(file_id, 1);
        let pages = pages_of(offset)..pages_of(offset + bytes.len() as u64);
        let is_within = |page: &u64| pages.contains(page);
        let named = |page| FilePage {
            file_id: FileId(file_id),
            page,
        };
        let bad = self.bad_pages.clone().filter(is_within);
        bad.map(named).for_each(on_bad);
    }
    fn has_page_checksums(&self) -> bool {
        true
    }
    fn close(&self) -> Result<(), windlass_source::Error> {
        self.inner.close()
    }
}
