//! The header in the log file, and every change of it.
//!
//! Invariants:
//! - Each header written has a higher number than the one before, and is durable before the call
//!   that changed it returns. Changes that [`StoredHeader::rebase`] and [`StoredHeader::note_tail`] note become
//!   durable with the next header.
//! - Nothing is written once the database is offline: after a close, its files may belong to
//!   another process. A failed write takes it offline.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use windlass_base::Guid;

use super::commit::Gate;
use super::log_backup::now_ms;
use crate::error::{EngineError, Result};
use crate::files::DataFiles;
use crate::log::Tail;
use crate::log::header::{DifferentialBase, Header};
use crate::log::writer::Log;
use crate::options::{FileSpec, RecoveryModel};
use crate::storage::StorageFile;

#[derive(Debug)]
pub(super) struct StoredHeader {
    file: Arc<dyn StorageFile>,
    header: Mutex<Header>,
    /// The latest time of a commit, in milliseconds since 1970, UTC.
    last_ms: AtomicU64,
}

impl StoredHeader {
    /// `header` is the one in `file`, or about to be its first.
    pub(super) fn new(file: Arc<dyn StorageFile>, header: Header) -> Self {
        let last_ms = AtomicU64::new(header.last_ms);
        let header = Mutex::new(header);
        Self {
            file,
            header,
            last_ms,
        }
    }

    /// The time of a commit, in milliseconds since 1970, UTC: as the clock has it, even if it was set back.
    pub(super) fn commit_time(&self, _gate: &Gate<'_>) -> u64 {
        let now = now_ms();
        self.note_time(now);
        now
    }

    /// The time of the end of a backup: no commit in it is later. What a backup says does not last: its clock may have
    /// been wrong, and later commits have times of their own.
    pub(super) fn end_time(&self, _gate: &Gate<'_>) -> u64 {
        now_ms().max(self.last_ms.load(Ordering::Acquire))
    }

    /// A commit was made at this time.
    pub(super) fn note_time(&self, unix_ms: u64) {
        self.last_ms.fetch_max(unix_ms, Ordering::AcqRel);
    }

    /// Forgets the times of earlier commits.
    pub(super) fn forget_time(&self, _gate: &Gate<'_>) {
        self.last_ms.store(0, Ordering::Release);
    }

    /// Applies `change` to the header and makes it durable, with the files and virtual log files as
    /// they are now.
    pub(super) fn write(
        &self,
        log: &Log,
        data: &DataFiles,
        change: impl FnOnce(&mut Header),
    ) -> Result<()> {
        let mut header = self.header.lock();
        // Checked under the lock, which a close takes last.
        log.check_online(&header.name)?;
        self.refresh(&mut header, log, data);
        change(&mut header);
        header.counter += 1;
        header
            .store(self.file.as_ref(), &header.log.path)
            .map_err(|error| log.fail(error))
    }

    /// The header that would be written now.
    pub(super) fn current(&self, log: &Log, data: &DataFiles) -> Header {
        let mut header = self.header.lock();
        self.refresh(&mut header, log, data);
        header.clone()
    }

    /// Closes the log while no header is being written.
    pub(super) fn close(&self, log: &Log) {
        let header = self.header.lock();
        log.fail(EngineError::Offline {
            database: header.name.clone(),
            reason: "it was closed".to_owned(),
        });
    }

    /// Sets the identity of the opening that the next header contains.
    pub(super) fn opens(&self, opening: Guid) {
        self.header.lock().opening = opening;
    }

    /// Sets the differential base that the next header contains.
    pub(super) fn rebase(&self, base: DifferentialBase) {
        self.header.lock().base = base;
    }

    pub(super) fn base(&self) -> DifferentialBase {
        self.header.lock().base
    }

    /// Sets the tail that the next header contains.
    pub(super) fn note_tail(&self, tail: Option<Tail>) {
        self.header.lock().tail = tail;
    }

    pub(super) fn recovery_model(&self) -> RecoveryModel {
        self.header.lock().recovery_model
    }

    /// Pages of the database at the last checkpoint.
    pub(super) fn page_count(&self) -> u32 {
        self.header.lock().page_count
    }

    pub(super) fn log_spec(&self) -> FileSpec {
        self.header.lock().log.clone()
    }

    pub(super) fn log_path(&self) -> PathBuf {
        self.header.lock().log.path.clone()
    }

    /// Releases the lock of the log file.
    pub(super) fn unlock(&self) -> std::io::Result<()> {
        self.file.unlock()
    }

    fn refresh(&self, header: &mut Header, log: &Log, data: &DataFiles) {
        header.files = data.specs();
        // A file that was added since the last checkpoint is new.
        header.lengths.resize(header.files.len(), 0);
        header.regions = data.regions();
        header.vlfs = log.vlfs();
        header.last_ms = match header.recovery_model {
            RecoveryModel::Full => self.last_ms.load(Ordering::Acquire),
            RecoveryModel::Simple => 0,
        };
    }
}
