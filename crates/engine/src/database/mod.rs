//! A database of an instance: its parts, and how it is created, opened and closed.
//!
//! Parts: [`transaction`] what readers and the writer hold, [`commit`] how a transaction becomes
//! durable and visible, [`flush`] page writes, [`checkpoint`] and [`recovery`], [`foreign`] changes
//! made by another SQLite, [`backup`].
//!
//! Locks, in locking order: checkpoint, commit gate, header, log, a partition of the pool, dirty
//! page lists. Never two of the same kind at once.
//!
//! Invariants:
//! - One write transaction at a time; `writing` is its token.
//! - The commit gate is held from the check for dirty pages until all pages of the commit are on
//!   the lists, and while a checkpoint takes its redo start. No redo start can therefore pass a
//!   page of a commit in progress.
//! - Offline is final: the files are as a crash would leave them, and opening them recovers.

pub(crate) mod checkpoint;
mod commit;
pub(crate) mod counters;
mod create;
mod flush;
mod foreign;
mod recovery;
pub(crate) mod transaction;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use windlass_base::{Guid, Lsn};

use crate::backup::SyncObject;
use crate::differential::DifferentialMaps;
use crate::dirty::DirtyPages;
use crate::error::{EngineError, Result};
use crate::files::{DataFile, DataFiles};
use crate::instance::Shared;
use crate::log::Position;
use crate::log::header::Header;
use crate::log::vlf::Vlf;
use crate::log::writer::Log;
use crate::options::{FileSpec, PAGE_SIZE};
use crate::pool::PageKey;
use crate::storage::{FileSystem, OpenMode, StorageFile};
use crate::versions::Versions;

/// An open database of an instance.
#[derive(Debug)]
pub struct Database {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) guid: Guid,
    pub(crate) shared: Arc<Shared>,
    pub(crate) data: DataFiles,
    pub(crate) log: Log,
    pub(crate) log_file: Arc<dyn StorageFile>,
    pub(crate) dirty: Arc<DirtyPages>,
    pub(crate) versions: Versions,
    pub(crate) maps: Mutex<DifferentialMaps>,
    pub(crate) header: Mutex<Stored>,
    pub(crate) gate: Mutex<()>,
    pub(crate) checkpointing: Mutex<()>,
    pub(crate) writing: AtomicBool,
    pub(crate) checksums: AtomicBool,
    pub(crate) target_recovery_ms: AtomicU64,
    pub(crate) offline: OnceLock<String>,
    /// The last damaged page that was read.
    pub(crate) damage: Mutex<Option<EngineError>>,
    /// Copies of the data files in progress, during which the files must not be truncated.
    pub(crate) copies: AtomicU32,
    /// Backups that record which extents are written.
    pub(crate) syncs: Mutex<Vec<Weak<SyncObject>>>,
    pub(crate) figures: counters::Figures,
}

/// The stored header, with the changes to be stored next.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) counter: u64,
    pub(crate) epoch: u32,
    pub(crate) redo: Position,
    pub(crate) checkpoint: Position,
    pub(crate) page_count: u32,
    pub(crate) sequence: u64,
    pub(crate) base: (Guid, Lsn),
    pub(crate) log: FileSpec,
    pub(crate) clean: bool,
    pub(crate) fingerprint: (u64, u64),
}

/// A file of a database, for views and backups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDescription {
    /// Number of the file: the first data file is 1, the log 2, further data files 3 and on, as in
    /// SQL Server.
    pub file_id: u32,
    /// Whether it is the log.
    pub is_log: bool,
    /// Names, size now, growth.
    pub spec: FileSpec,
}

impl Database {
    /// Name within the instance.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its identity.
    pub fn guid(&self) -> Guid {
        self.guid
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn key(&self, page: u32) -> PageKey {
        PageKey {
            database: self.number,
            page,
        }
    }

    /// All files: data files and log.
    pub fn files(&self) -> Vec<FileDescription> {
        let log = FileDescription {
            file_id: 2,
            is_log: true,
            spec: self.header.lock().log.clone(),
        };
        let data = self.data.specs().into_iter().enumerate();
        let mut files: Vec<_> = data
            .map(|(index, spec)| FileDescription {
                file_id: file_id(index),
                is_log: false,
                spec,
            })
            .collect();
        files.insert(1, log);
        files
    }

    /// Path of the log file, as [`crate::OpenDatabase`] needs it.
    pub fn log_path(&self) -> PathBuf {
        self.header.lock().log.path.clone()
    }

    /// Fails if the database is offline.
    pub(crate) fn check_online(&self) -> Result<()> {
        match self.offline.get() {
            None => Ok(()),
            Some(reason) => Err(EngineError::Offline {
                database: self.name.clone(),
                reason: reason.clone(),
            }),
        }
    }

    /// Takes the database offline permanently because of `error`, and returns the error.
    pub(crate) fn go_offline(&self, error: EngineError) -> EngineError {
        self.log.fail(&error);
        // The first reason is kept.
        let _kept = self.offline.set(error.to_string());
        error
    }

    /// Whether, and why, the database is offline.
    pub fn offline_reason(&self) -> Option<&str> {
        self.offline.get().map(String::as_str)
    }

    /// Takes the last damaged page that a reader found, because SQLite passes on only that a read
    /// failed.
    pub fn take_damage(&self) -> Option<EngineError> {
        self.damage.lock().take()
    }

    /// Sets indirect checkpoints with this target, or automatic ones (`None`).
    pub fn set_target_recovery_time(&self, target: Option<Duration>) -> Result<()> {
        self.check_online()?;
        let milliseconds = target.map_or(0, |target| target.as_millis().max(1) as u64);
        self.target_recovery_ms
            .store(milliseconds, Ordering::Relaxed);
        self.store_header(&mut self.header.lock(), None)
    }

    /// The target of indirect checkpoints; `None` for automatic ones.
    pub fn target_recovery_time(&self) -> Option<Duration> {
        match self.target_recovery_ms.load(Ordering::Relaxed) {
            0 => None,
            milliseconds => Some(Duration::from_millis(milliseconds)),
        }
    }

    /// Writes and syncs the header from `stored`. `vlfs` is given if they are about to change.
    pub(crate) fn store_header(&self, stored: &mut Stored, vlfs: Option<&[Vlf]>) -> Result<()> {
        // Checked under the header's lock: after a close, the files may belong to another process.
        self.check_online()?;
        stored.counter += 1;
        let header = self.header_of(stored, vlfs);
        header
            .store(self.log_file.as_ref(), &stored.log.path)
            .map_err(|error| self.go_offline(error))
    }

    /// The header that would be stored now.
    pub(crate) fn header_of(&self, stored: &Stored, vlfs: Option<&[Vlf]>) -> Header {
        Header {
            counter: stored.counter,
            guid: self.guid,
            name: self.name.clone(),
            epoch: stored.epoch,
            clean: stored.clean,
            fingerprint: stored.fingerprint,
            page_count: stored.page_count,
            sequence: stored.sequence,
            redo: stored.redo,
            checkpoint: stored.checkpoint,
            base: stored.base,
            target_recovery_ms: self.target_recovery_ms.load(Ordering::Relaxed),
            log: stored.log.clone(),
            files: self.data.specs(),
            regions: self.data.regions(),
            vlfs: vlfs.map_or_else(|| self.log.vlfs(), <[Vlf]>::to_vec),
        }
    }

    /// Adds a data file. Extents not yet used are spread over all files from then on.
    pub fn add_file(&self, spec: &FileSpec) -> Result<()> {
        self.check_online()?;
        if self.data.specs().len() >= 1000 {
            return Err(EngineError::Invalid(
                "a database has at most 1000 files".to_owned(),
            ));
        }
        let file = create::make_file(self.shared.files.as_ref(), spec)?;
        file.lock_database()
            .map_err(|error| EngineError::lock(&spec.path, error))?;
        // The header is stored under the gate, so that no commit uses the new extents before they
        // are durable.
        let _gate = self.gate.lock();
        let page_count = self
            .versions
            .pages_visible()
            .max(self.header.lock().page_count);
        self.data.add(
            DataFile {
                spec: spec.clone(),
                file,
            },
            page_count,
        );
        self.store_header(&mut self.header.lock(), None)
    }

    /// Closes the database. All data is then in the data files; a single data file is a plain
    /// SQLite database of exactly its pages.
    ///
    /// # Errors
    /// [`EngineError::Busy`] if a write transaction is open.
    pub fn close(&self) -> Result<()> {
        if self.writing.swap(true, Ordering::Acquire) {
            return Err(EngineError::Busy {
                database: self.name.clone(),
            });
        }
        let outcome = self.close_alone();
        self.writing.store(false, Ordering::Release);
        outcome
    }

    fn close_alone(&self) -> Result<()> {
        self.check_online()?;
        self.checkpoint()?;
        let _checkpointing = self.checkpointing.lock();
        self.shared.dispenser.drain(self.number);
        let latest = self.versions.latest();
        if let Some(file) = self.data.single()
            && self.copies.load(Ordering::Acquire) == 0
        {
            let bytes = u64::from(latest.page_count) * PAGE_SIZE as u64;
            let outcome = file.set_len(bytes).and_then(|()| file.sync());
            let path = self.data.path(0);
            outcome.map_err(|error| self.go_offline(EngineError::io("cut", &path, error)))?;
            let mut stored = self.header.lock();
            stored.fingerprint = create::fingerprint(file.as_ref(), &path)?;
            stored.clean = true;
            self.store_header(&mut stored, None)?;
        }
        let pages = {
            let stored = self.header.lock();
            // Set last, so that an earlier failure keeps its own reason.
            let _kept = self.offline.set("it was closed".to_owned());
            latest.page_count.max(stored.page_count)
        };
        self.shared.pool.forget(self.number, 1..=pages);
        // Background work may keep the files open a moment longer.
        self.data.unlock()?;
        let fail = |error| EngineError::lock(&self.log_path(), error);
        self.log_file.unlock().map_err(fail)
    }
}

pub(crate) use create::{fingerprint, make_file};
pub(crate) use foreign::refuse_leftovers;

/// Number of a data file by its index, as SQL Server counts: the log is number 2.
pub(crate) fn file_id(index: usize) -> u32 {
    if index == 0 { 1 } else { index as u32 + 2 }
}

/// Opens the data files listed in a header, at other paths if `paths` is given.
pub(crate) fn open_files(
    system: &dyn FileSystem,
    name: &str,
    header: &Header,
    paths: &[PathBuf],
) -> Result<DataFiles> {
    if !paths.is_empty() && paths.len() != header.files.len() {
        return Err(EngineError::Invalid(format!(
            "database '{name}' has {} data files, but {} places are given",
            header.files.len(),
            paths.len()
        )));
    }
    let mut files = Vec::new();
    for (index, spec) in header.files.iter().enumerate() {
        let mut spec = spec.clone();
        if let Some(path) = paths.get(index) {
            spec.path.clone_from(path);
        }
        let file = system
            .open(&spec.path, OpenMode::Existing)
            .map_err(|error| EngineError::io("open", &spec.path, error))?;
        files.push(DataFile { spec, file });
    }
    DataFiles::new(name, files, header.regions.clone())
}
