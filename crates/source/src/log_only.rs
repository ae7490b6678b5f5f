//! Log backups as snapshots: a log, and no data.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use windlass_base::{FilePage, Guid};
use windlass_io::DirectFile;
use windlass_media::WalPosition;

use crate::{
    DatabaseIdentity, Ending, Error, FileRanges, LogPiece, Position, Snapshot, SourceFile,
};

/// A log backup, of which a [`Snapshot`] is made. What it reads has checksums, which its copy verifies.
pub(crate) trait LogOnly: Send + Sync + fmt::Debug {
    fn identity(&self) -> &DatabaseIdentity;
    fn position(&self) -> Position;

    /// See [`Snapshot::wal_position`].
    fn wal_position(&self) -> Option<WalPosition> {
        None
    }

    /// The files of the database, the log among them.
    fn files(&self) -> &[SourceFile];

    /// See [`Snapshot::finish_data`]: the copy of the log begins.
    fn begin_copy(&self) {}

    /// See [`Snapshot::read_log`].
    fn read_log(&self, buffer: &mut [u8]) -> Result<Option<LogPiece>, Error>;

    /// See [`Snapshot::ending`].
    fn ending(&self) -> Ending;

    /// See [`Snapshot::complete`].
    fn complete(&self) -> Result<(), Error>;
}

fn no_data(file_id: u16, offset: u64, bytes: usize) -> Error {
    Error::OutOfRange {
        file_id,
        offset,
        bytes: bytes as u64,
        size_bytes: 0,
    }
}

impl<T: LogOnly> Snapshot for T {
    fn identity(&self) -> &DatabaseIdentity {
        LogOnly::identity(self)
    }

    fn position(&self) -> Position {
        LogOnly::position(self)
    }

    fn wal_position(&self) -> Option<WalPosition> {
        LogOnly::wal_position(self)
    }

    fn files(&self) -> &[SourceFile] {
        LogOnly::files(self)
    }

    fn ranges(&self, _file_id: u16) -> Vec<Range<u64>> {
        Vec::new()
    }

    fn narrow(&mut self, _ranges: FileRanges) {}

    fn located(
        &self,
        file_id: u16,
        offset: u64,
        bytes: usize,
    ) -> Result<Option<Arc<DirectFile>>, Error> {
        Err(no_data(file_id, offset, bytes))
    }

    fn amend(
        &self,
        file_id: u16,
        offset: u64,
        buffer: &mut [u8],
        _outcome: io::Result<usize>,
    ) -> Result<(), Error> {
        Err(no_data(file_id, offset, buffer.len()))
    }

    fn check_pages(
        &self,
        _file_id: u16,
        _offset: u64,
        _bytes: &[u8],
        _on_bad: &mut dyn FnMut(FilePage),
    ) {
    }

    fn has_page_checksums(&self) -> bool {
        true
    }

    fn tracks_changes(&self) -> bool {
        true
    }

    fn finish_data(&self) -> Result<(), Error> {
        self.begin_copy();
        Ok(())
    }

    fn read_log(&self, buffer: &mut [u8]) -> Result<Option<LogPiece>, Error> {
        LogOnly::read_log(self, buffer)
    }

    fn ending(&self) -> Result<Option<Ending>, Error> {
        Ok(Some(LogOnly::ending(self)))
    }

    fn close(&self) -> Result<(), Error> {
        // The log is held, and all of it was checked.
        Ok(())
    }

    fn complete(&self, _set: Guid) -> Result<(), Error> {
        LogOnly::complete(self)
    }
}
