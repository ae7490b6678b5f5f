//! A database of an instance: its parts, and how it is created, opened and closed.
//!
//! Each part keeps its fields to itself and states its invariants:
//!
//! | part | what it owns |
//! |---|---|
//! | [`writer`] | the writer's token: one writer at a time |
//! | [`commit`] | the commit gate; how a transaction becomes visible and durable |
//! | [`checkpoint`] | the lock of checkpoints; the recovery writer |
//! | [`stored`] | the header in the log file |
//! | [`checksums`] | whether pages carry checksums |
//! | [`copies`] | backups that copy the data files |
//! | [`log_chain`] | the recovery model; the chain of log backups |
//! | [`crate::log::writer`] | the log; whether the database is offline |
//! | [`crate::files`], [`crate::dirty`], [`crate::versions`], [`crate::differential`] | data files, dirty page lists, old page versions, differential map |
//!
//! The other modules use these parts: [`create`] (with [`content`]) and [`recovery`] (which opens), [`add_file`],
//! [`transaction`] and [`read`], [`flush`] (page writes), [`foreign`] (changes by another SQLite), [`backup`],
//! [`log_backup`], [`page_restore`] and [`counters`].
//!
//! Locks, in locking order: writer's token, checkpoint, log chain, commit gate, header, log, a partition of the
//! pool, dirty page lists. Never two of the same kind at once.

mod add_file;
pub(crate) mod backup;
pub(crate) mod checkpoint;
mod checksums;
mod commit;
pub(crate) mod content;
mod copies;
pub(crate) mod counters;
mod create;
mod flush;
mod foreign;
pub(crate) mod log_backup;
mod log_chain;
pub(crate) mod page_finish;
pub(crate) mod page_restore;
pub(crate) mod read;
mod recovery;
mod stored;
#[cfg(test)]
mod tests;
pub(crate) mod transaction;
mod writer;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use windlass_base::{FileId, FilePage, Guid, PageNumber};

use self::checkpoint::Checkpointer;
use self::checksums::PageChecksums;
use self::commit::Commits;
use self::copies::Copies;
use self::log_chain::LogChain;
use self::stored::StoredHeader;
use self::writer::{Writer, WriterToken};
use crate::differential::DifferentialMaps;
use crate::dirty::DirtyPages;
use crate::error::{EngineError, Result};
use crate::files::{DataFile, DataFiles, extents_used};
use crate::instance::Shared;
use crate::log::header::Header;
use crate::log::writer::{Log, Resume};
use crate::options::FileSpec;
use crate::pool::{DatabaseNumber, PageKey};
use crate::stamps::fingerprint;
use crate::storage::{FileSystem, OpenMode, StorageFile};
use crate::versions::{Commit, Versions};
use windlass_base::page::{EXTENT_PAGES, PAGE_BYTES};

/// An open database of an instance.
#[derive(Debug)]
pub struct Database {
    number: DatabaseNumber,
    name: String,
    guid: Guid,
    recovery_fork: Guid,
    is_read_only: bool,
    /// Identity of this opening, once something was committed in it.
    opening: OnceLock<Guid>,
    shared: Arc<Shared>,
    data: DataFiles,
    log: Log,
    header: StoredHeader,
    dirty: Arc<DirtyPages>,
    versions: Versions,
    maps: DifferentialMaps,
    writer: Writer,
    commits: Commits,
    checkpointer: Checkpointer,
    checksums: PageChecksums,
    copies: Arc<Copies>,
    log_chain: LogChain,
    /// The last damaged page that was read.
    damage: Mutex<Option<EngineError>>,
    figures: counters::Figures,
}

/// Completes a new file at a temporary path, before it gets its name.
pub type Dress<'a> = dyn Fn(&Path) -> std::io::Result<()> + 'a;

/// A file of a database, for views and backups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDescription {
    pub file_id: FileId,
    pub is_log: bool,
    /// Names, size now, growth.
    pub spec: FileSpec,
}

impl FileDescription {
    /// The log has the number 2.
    pub(crate) fn list(data: Vec<FileSpec>, log: FileSpec) -> Vec<Self> {
        let data = data.into_iter().enumerate();
        let mut files: Vec<_> = data
            .map(|(index, spec)| Self {
                file_id: FileId::of_data(index),
                is_log: false,
                spec,
            })
            .collect();
        let log = Self {
            file_id: FileId::LOG,
            is_log: true,
            spec: log,
        };
        files.insert(files.len().min(1), log);
        files
    }
}

impl Database {
    /// Puts the parts together. `header` is that of the log file, or about to be its first.
    fn assemble(
        shared: Arc<Shared>,
        number: DatabaseNumber,
        header: Header,
        data: DataFiles,
        log_file: Arc<dyn StorageFile>,
        resume: Resume,
    ) -> Self {
        let (path, vlfs) = (&header.log.path, header.vlfs.clone());
        let log = Log::resume(Arc::clone(&log_file), path, header.guid, vlfs, resume);
        Self {
            number,
            name: header.name.clone(),
            guid: header.guid,
            recovery_fork: header.recovery_fork,
            is_read_only: false,
            opening: OnceLock::new(),
            data,
            log,
            dirty: Arc::new(DirtyPages::new(shared.options.schedulers)),
            versions: Versions::new(Commit {
                sequence: header.sequence,
                page_count: header.page_count,
            }),
            maps: DifferentialMaps::default(),
            writer: Writer::default(),
            commits: Commits::default(),
            checkpointer: Checkpointer::new(header.target_recovery_ms),
            checksums: PageChecksums::default(),
            copies: Arc::default(),
            log_chain: LogChain::default(),
            damage: Mutex::default(),
            figures: counters::Figures::default(),
            header: StoredHeader::new(log_file, header),
            shared,
        }
    }

    /// Name within the instance.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn guid(&self) -> Guid {
        self.guid
    }

    /// Identity of its history since it was created or last restored: within it, LSNs only grow.
    pub fn recovery_fork(&self) -> Guid {
        self.recovery_fork
    }

    pub(crate) fn number(&self) -> DatabaseNumber {
        self.number
    }

    fn key(&self, page: PageNumber) -> PageKey {
        PageKey {
            database: self.number,
            page,
        }
    }

    /// Device and inode of the first data file, as it is open; `None` if its storage has none.
    pub fn first_file(&self) -> Option<(u64, u64)> {
        let file = self.data.direct(FileId::of_data(0)).ok()??;
        let found = file.as_file().metadata().ok()?;
        Some((found.dev(), found.ino()))
    }

    /// All files: data files and log.
    pub fn files(&self) -> Vec<FileDescription> {
        FileDescription::list(self.data.specs(), self.header.log_spec())
    }

    /// The pages of each data file that are in use, up to the last one.
    pub fn pages_used(&self) -> Vec<(FileId, u64)> {
        let extents = self.versions.latest().page_count.div_ceil(EXTENT_PAGES);
        let (files, regions) = (self.data.specs().len(), self.data.regions());
        let used = extents_used(&regions, files, extents)
            .into_iter()
            .enumerate();
        used.map(|(index, extents)| {
            (
                FileId::of_data(index),
                u64::from(extents) * u64::from(EXTENT_PAGES),
            )
        })
        .collect()
    }

    /// The pages in the buffer pool, and whether each has changed since it was written.
    pub fn buffers(&self) -> Vec<(FilePage, bool)> {
        let cached = self.shared.pool.cached(self.number).into_iter();
        cached
            .map(|(page, is_dirty)| {
                let place = self.data.place(page);
                let file_id = FileId::of_data(place.index);
                (
                    FilePage::at_byte(file_id, place.offset, PAGE_BYTES),
                    is_dirty,
                )
            })
            .collect()
    }

    /// Path of the log file, as [`crate::OpenDatabase`] needs it.
    pub fn log_path(&self) -> PathBuf {
        self.header.log_path()
    }

    /// Fails if the database is offline.
    fn check_online(&self) -> Result<()> {
        self.log.check_online(&self.name)
    }

    /// Whether, and why, the database is offline.
    pub fn offline_reason(&self) -> Option<&str> {
        self.log.offline_reason()
    }

    /// Whether it was opened for readers only.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn check_writable(&self) -> Result<()> {
        match self.is_read_only {
            true => Err(EngineError::ReadOnly {
                database: self.name.clone(),
            }),
            false => self.check_online(),
        }
    }

    fn writer_token(&self) -> Result<WriterToken> {
        self.writer.try_take().ok_or_else(|| self.busy())
    }

    fn busy(&self) -> EngineError {
        EngineError::Busy {
            database: self.name.clone(),
        }
    }

    /// Closes the database. All data is then in the data files; a single data file is a plain
    /// SQLite database of exactly its pages, unless the log was too full for the checkpoint.
    ///
    /// # Errors
    /// [`EngineError::Busy`] if a write transaction is open.
    pub fn close(&self) -> Result<()> {
        let _writer = self.writer_token()?;
        self.check_online()?;
        let is_full = match self.checkpoint() {
            // The log waits for its backup, and says the rest when the database is opened again.
            Err(EngineError::LogFull { .. }) if self.log.tail().is_some() => true,
            checkpoint => {
                checkpoint?;
                false
            }
        };
        let _checkpointing = self.checkpointer.lock();
        self.shared.dispenser.drain(self.number);
        let latest = self.versions.latest();
        if let Some(file) = self.data.single()
            && !self.copies.any()
            && !is_full
        {
            let bytes = u64::from(latest.page_count) * PAGE_BYTES as u64;
            let outcome = file.set_len(bytes).and_then(|()| file.sync());
            let path = self.data.path(0);
            outcome.map_err(|error| self.log.fail(EngineError::io("cut", &path, error)))?;
            let fingerprint = fingerprint(file.as_ref(), &path)?;
            self.header.write(&self.log, &self.data, |header| {
                header.fingerprint = fingerprint;
                header.clean = true;
            })?;
        }
        // Last, so that an earlier failure keeps its own reason.
        self.header.close(&self.log);
        let pages = latest.page_count.max(self.header.page_count());
        self.shared.pool.forget(self.number, PageNumber::all(pages));
        // Background work may keep the files open a moment longer.
        self.data.unlock()?;
        let fail = |error| EngineError::lock(&self.log_path(), error);
        self.header.unlock().map_err(fail)
    }
}

pub use create::{NewDatabase, complete_creation};
pub(crate) use create::{Origin, make_file};
pub(crate) use foreign::refuse_leftovers;

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
