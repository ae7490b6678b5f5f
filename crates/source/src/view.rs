//! A modified view of a snapshot: other names of its files, or fewer of their bytes.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use windlass_base::Guid;
use windlass_engine::PhaseReport;
use windlass_io::DirectFile;

use crate::{
    Content, DatabaseIdentity, Ending, Error, LogPiece, Position, Snapshot, SourceFile, WritersHeld,
};

/// Ranges of files, by file number.
pub type FileRanges = Vec<(u16, Vec<Range<u64>>)>;

/// A snapshot with some answers replaced.
#[derive(Debug)]
pub struct View {
    inner: Box<dyn Snapshot>,
    files: Vec<SourceFile>,
    ranges: Option<FileRanges>,
}

impl View {
    /// Renames the file of a single-file database to the name with which it was registered, because
    /// a plain database file has no logical name. Databases of several files know their names.
    pub fn named(inner: Box<dyn Snapshot>, logical_name: &str) -> Self {
        let mut files = inner.files().to_vec();
        if let [file] = files.as_mut_slice() {
            logical_name.clone_into(&mut file.logical_name);
        }
        Self {
            inner,
            files,
            ranges: None,
        }
    }

    /// Restricts the snapshot to some ranges; each obeys the rules of [`Snapshot::ranges`].
    pub fn sampled(inner: Box<dyn Snapshot>, ranges: FileRanges) -> Self {
        Self {
            files: inner.files().to_vec(),
            inner,
            ranges: Some(ranges),
        }
    }
}

impl Snapshot for View {
    fn identity(&self) -> &DatabaseIdentity {
        self.inner.identity()
    }

    fn position(&self) -> Position {
        self.inner.position()
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn content(&self) -> Content {
        self.inner.content()
    }

    fn is_frozen(&self) -> bool {
        self.inner.is_frozen()
    }

    fn ranges(&self, file_id: u16) -> Vec<Range<u64>> {
        match &self.ranges {
            None => self.inner.ranges(file_id),
            Some(ranges) => {
                let known = ranges.iter().find(|(id, _)| *id == file_id);
                known.map(|(_, ranges)| ranges.clone()).unwrap_or_default()
            }
        }
    }

    fn located(
        &self,
        file_id: u16,
        offset: u64,
        bytes: usize,
    ) -> Result<Option<Arc<DirectFile>>, Error> {
        self.inner.located(file_id, offset, bytes)
    }

    fn amend(
        &self,
        file_id: u16,
        offset: u64,
        buffer: &mut [u8],
        outcome: io::Result<usize>,
    ) -> Result<(), Error> {
        self.inner.amend(file_id, offset, buffer, outcome)
    }

    fn check_pages(&self, file_id: u16, offset: u64, bytes: &[u8], on_bad: &mut dyn FnMut(u64)) {
        self.inner.check_pages(file_id, offset, bytes, on_bad);
    }

    fn has_page_checksums(&self) -> bool {
        self.inner.has_page_checksums()
    }

    fn tracks_changes(&self) -> bool {
        self.inner.tracks_changes()
    }

    fn phases(&self) -> Option<Arc<Mutex<Vec<PhaseReport>>>> {
        self.inner.phases()
    }

    fn writers_held(&self) -> Option<WritersHeld> {
        self.inner.writers_held()
    }

    fn finish_data(&self) -> Result<(), Error> {
        self.inner.finish_data()
    }

    fn read_log(&self, buffer: &mut [u8]) -> Result<Option<LogPiece>, Error> {
        self.inner.read_log(buffer)
    }

    fn ending(&self) -> Result<Option<Ending>, Error> {
        self.inner.ending()
    }

    fn close(&self) -> Result<(), Error> {
        self.inner.close()
    }

    fn complete(&self, set: Guid) -> Result<(), Error> {
        self.inner.complete(set)
    }
}
