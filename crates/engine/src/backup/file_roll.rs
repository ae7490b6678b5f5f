//! Restores whole data files of a closed database from a full backup, and rolls them forward with log backups and the log
//! of the database.
//!
//! ```text
//!  begin               FileRollLog (each log backup)       finish
//!  the files from      the records of their pages in       the rest from the log of the database;
//!  the full backup     a whole, unbroken log               verify, stamp; the caller renames them
//! ```
//!
//! The files wait beside the old ones in between, and the database may be used meanwhile, if it can be. As for pages
//! ([`super::page_roll`]), the log backups and the tail of the log have every change since the full backup.
//!
//! Invariants:
//! - Each log continues the one before: the same recovery fork, and the checksum of the last block.
//! - Applying a log again, up to the same point or further, gives the same files, whatever part of it a crash has left in
//!   them: records say what bytes become, not how they change.
//! - A page counts as known when the set or an image in the log has it. At the end all pages in use are. Until then the
//!   log may change one that is not: it was at another place when the set was made, and was cut off since.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::bytes::Writer;
use windlass_base::{ExtentNumber, FileId, Guid, Lsn, PageNumber};

use super::BackupDescription;
use super::follow::LogFollower;
use super::offline::{ClosedDatabase, extents_in, read_log};
use super::roll_forward::{Reached, RollForward, Scanned};
use super::roll_state::{Pages, RollState, check_continued};
use super::staged::{Opening, RestoredFile, StagedFiles};
use super::stop::StopAt;
use crate::error::{EngineError, LogRefusal, PageRefusal, Result};
use crate::log::block::HEADER_BYTES;
use crate::log::reader::LogReader;
use crate::log::record::{Record, Records};
use crate::storage::{FileSystem, OpenMode, StorageFile};

const MAGIC: &[u8; 8] = b"WLFILE01";

/// Where the files of a database are.
#[derive(Debug, Clone, Copy)]
pub struct FilePlaces<'a> {
    pub files: &'a Arc<dyn FileSystem>,
    /// Opens temporary files, and nobody else's.
    pub own: &'a dyn FileSystem,
    pub log: &'a Path,
    /// Returns the temporary path for a file.
    pub beside: fn(&Path) -> PathBuf,
}

/// Data files, restored up to a position of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRoll {
    roll: RollState,
    known: Pages,
    /// The numbers of their temporary files in the file system, 0 if unknown.
    files: BTreeMap<FileId, u64>,
}

/// The read of a full backup, from which the files begin.
#[derive(Debug)]
pub struct FileRollBegin {
    roll: FileRoll,
    files: StagedFiles,
    follower: LogFollower,
    commit_ms: Option<u64>,
}

/// A log backup that is being applied to the files.
#[derive(Debug)]
pub struct FileRollLog {
    roll: FileRoll,
    files: StagedFiles,
    log: BackupDescription,
    scan: RollForward,
    follower: LogFollower,
}

/// How a restore of files has ended.
#[derive(Debug)]
pub enum FilesEnd {
    /// The files are complete, and held while this is.
    Sealed(Box<FilesSealed>),
    /// Nothing was changed: log backups are needed up to here.
    LogNeeded(Lsn),
}

/// Complete files, to be renamed.
#[derive(Debug)]
pub struct FilesSealed {
    files: StagedFiles,
    restored: Vec<RestoredFile>,
}

impl FileRollBegin {
    /// Starts to restore the data files `file_ids` from the full backup with the description `state`.
    ///
    /// # Errors
    /// [`EngineError::InUse`], [`EngineError::NoLogChain`], [`EngineError::LogRefused`] for a set of another history; those
    /// of the operating system.
    pub fn begin(
        places: FilePlaces<'_>,
        state: &BackupDescription,
        file_ids: &[FileId],
    ) -> Result<Self> {
        let (log, closed) = closed(places)?;
        check(&closed, state)?;
        if state.is_log() {
            let what = "a restore of data files begins with a full backup";
            return Err(EngineError::Invalid(what.to_owned()));
        }
        if let Some(unknown) = (file_ids.iter()).find(|id| {
            id.data_index()
                .is_none_or(|index| index >= state.data_files().len())
        }) {
            return Err(EngineError::Invalid(format!(
                "the backup has no data file {unknown} of database '{}'",
                closed.header.name
            )));
        }
        let wanted = extents_in(&closed, file_ids)?;
        let how = (&places.beside as &dyn Fn(&Path) -> PathBuf, &Opening::New);
        Ok(Self {
            files: StagedFiles::open(Arc::clone(places.files), log, &closed, wanted, how)?,
            follower: LogFollower::new(state),
            commit_ms: None,
            roll: FileRoll {
                roll: RollState {
                    state: state.clone(),
                    reached: Reached::default(),
                },
                known: Pages::default(),
                files: file_ids.iter().map(|&id| (id, 0)).collect(),
            },
        })
    }

    /// Whether the data file is one of those being restored.
    pub fn wants(&self, file_id: FileId) -> bool {
        self.files.wants(file_id)
    }

    /// Writes a range of a data file.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn write(&mut self, file_id: FileId, offset: u64, bytes: &[u8]) -> Result<()> {
        let FileRoll { roll, known, .. } = &mut self.roll;
        let (regions, page_count) = (&roll.state.header.regions, roll.state.page_count());
        for extent in self.files.write(file_id, offset, bytes)? {
            if self.files.is_where_it_was(regions, extent) {
                // What the set has behind the end of its database is none of its pages.
                pages_of(extent, page_count).for_each(|page| known.set(page));
            }
        }
        Ok(())
    }

    /// Takes the next bytes of the set's log. Call it after all file ranges have been written.
    ///
    /// # Errors
    /// The log is damaged; those of the operating system.
    pub fn apply_log(&mut self, bytes: &[u8]) -> Result<()> {
        let Self {
            roll,
            files,
            follower,
            commit_ms,
        } = self;
        follower.feed_records(bytes, &mut |record| {
            if let Record::Commit { unix_ms, .. } = *record {
                *commit_ms = (*commit_ms).max(Some(unix_ms));
            }
            roll.apply(files, record)
        })
    }

    /// The names of the files, each with its pages.
    pub fn pages(&self) -> Vec<(String, u64)> {
        self.files.pages()
    }

    /// The files as of the end of the backup, synced; they stay from here on.
    ///
    /// # Errors
    /// The log is incomplete; a page within the set is not in it.
    pub fn settle(mut self) -> Result<FileRoll> {
        self.follower.check_end()?;
        let state = &self.roll.roll.state;
        let is_in_set = |extent| self.files.is_where_it_was(&state.header.regions, extent);
        self.roll
            .check_known(&self.files, is_in_set, state.page_count())?;
        self.roll.roll.reached = Reached {
            checksum: self.follower.checksum(),
            unix_ms: self.commit_ms.unwrap_or(self.roll.roll.state.ended_ms()),
            applied: 0,
        };
        self.files.sync()?;
        self.roll.note_numbers(&self.files)?;
        self.files.keep();
        Ok(self.roll)
    }
}

impl FileRoll {
    /// The position of the log up to which they are restored.
    pub fn reached_lsn(&self) -> Lsn {
        self.roll.state.last_lsn()
    }

    /// Identity of the history that they belong to.
    pub fn recovery_fork(&self) -> Guid {
        self.roll.state.recovery_fork()
    }

    pub fn file_ids(&self) -> impl Iterator<Item = FileId> {
        self.files.keys().copied()
    }

    /// The names of the files in the database, by their numbers.
    pub fn names(&self) -> Vec<String> {
        let described = self.roll.state.data_files();
        let name = |id: &FileId| Some(described.get(id.data_index()?)?.logical_name.clone());
        self.files.keys().filter_map(name).collect()
    }

    fn apply(&mut self, files: &mut StagedFiles, record: &Record<'_>) -> Result<()> {
        let (Record::PageImage { page, .. } | Record::PageRanges { page, .. }) = *record else {
            return Ok(());
        };
        if let (Record::PageImage { .. }, true) = (record, files.has(page)) {
            self.known.set(page);
        }
        match self.known.is_set(page) {
            true => files.apply(page, record),
            false => Ok(()),
        }
    }

    /// Fails if a page of the first `page_count`, in the extents that count, is not known.
    fn check_known(
        &self,
        files: &StagedFiles,
        counts: impl Fn(ExtentNumber) -> bool,
        page_count: u32,
    ) -> Result<()> {
        let extents = files.extents().filter(|&extent| counts(extent));
        let pages = extents.flat_map(|extent| pages_of(extent, page_count));
        // What was cut off since is no page any more.
        let mut pages = pages.filter(|&page| files.has(page));
        match pages.find(|&page| !self.known.is_set(page)) {
            None => Ok(()),
            Some(page) => Err(unknown(files, page)),
        }
    }

    fn note_numbers(&mut self, files: &StagedFiles) -> Result<()> {
        for (&id, number) in &mut self.files {
            *number = files.number(id)?;
        }
        Ok(())
    }

    /// Opens the files again. Fails if other files have their names by now.
    fn reopen(
        &self,
        places: FilePlaces<'_>,
    ) -> Result<(StagedFiles, ClosedDatabase, Arc<dyn StorageFile>)> {
        let (log, closed) = closed(places)?;
        check(&closed, &self.roll.state)?;
        let ids: Vec<FileId> = self.file_ids().collect();
        let wanted = extents_in(&closed, &ids)?;
        let again = Opening::Again(places.own);
        let how = (&places.beside as &dyn Fn(&Path) -> PathBuf, &again);
        let held = Arc::clone(&log);
        let files = StagedFiles::open(Arc::clone(places.files), log, &closed, wanted, how)?;
        for (&id, &number) in &self.files {
            if files.number(id)? != number {
                return Err(EngineError::Invalid(format!(
                    "another program has replaced the temporary file of data file {id} of database '{}': begin its \
                     restore again",
                    closed.header.name
                )));
            }
        }
        Ok((files, closed, held))
    }

    /// Starts to apply a log backup.
    ///
    /// # Errors
    /// [`EngineError::LogRefused`], [`EngineError::InUse`]; the files are not there any more.
    pub fn begin_log(self, places: FilePlaces<'_>, log: &BackupDescription) -> Result<FileRollLog> {
        let (files, ..) = self.reopen(places)?;
        let RollState { state, reached } = &self.roll;
        Ok(FileRollLog {
            scan: RollForward::begin(state, *reached, log, StopAt::End)?,
            follower: LogFollower::new(log),
            log: log.clone(),
            files,
            roll: self,
        })
    }

    /// Rolls the files forward to the end of the log of the database, if that has the rest, and completes them.
    ///
    /// # Errors
    /// [`EngineError::InUse`], pages that are damaged or unknown, those of [`FileRollBegin::begin`].
    pub fn finish(mut self, places: FilePlaces<'_>) -> Result<FilesEnd> {
        let (mut files, closed, log) = self.reopen(places)?;
        let from = self.roll.state.end();
        let tail = closed.header.tail.map(|tail| tail.start);
        if let Some(tail) = tail.filter(|tail| from < *tail) {
            return Ok(FilesEnd::LogNeeded(tail.lsn(1)));
        }
        let (guid, vlfs) = (closed.header.guid, &closed.header.vlfs);
        let mut reader = LogReader::new(log, places.log, guid, vlfs, from);
        if let Some(checksum) = self.roll.reached.checksum {
            reader = reader.after(checksum);
        }
        let mut reached = from;
        while reached < closed.end {
            let Some((block, bytes)) = reader.next()? else {
                break;
            };
            let records = &bytes[HEADER_BYTES..HEADER_BYTES + block.payload as usize];
            for record in Records::new(records) {
                let record = record.ok_or_else(|| EngineError::Corrupt {
                    path: places.log.to_owned(),
                    what: format!("block {:?} has an invalid record", block.position),
                })?;
                self.apply(&mut files, &record)?;
            }
            reached = block.end();
        }
        if reached != closed.end {
            return Err(EngineError::LogRefused {
                database: closed.header.name.clone(),
                refusal: LogRefusal::Discontinuous {
                    reached: reached.lsn(1),
                },
            });
        }
        self.check_known(&files, |_| true, closed.page_count)?;
        let restored = files.seal()?;
        let sealed = FilesSealed { files, restored };
        Ok(FilesEnd::Sealed(Box::new(sealed)))
    }

    /// To be kept until the next log backup.
    ///
    /// # Errors
    /// The description cannot be stored.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = Writer::default();
        out.0.extend_from_slice(MAGIC);
        self.roll.encode(&mut out)?;
        out.u64(self.roll.reached.applied);
        out.u32(self.files.len() as u32);
        for (id, number) in &self.files {
            out.u16(id.0);
            out.u64(*number);
        }
        out.u32(self.known.bytes().len() as u32);
        out.0.extend_from_slice(self.known.bytes());
        let sum = windlass_base::checksum(&out.0);
        out.u64(sum);
        Ok(out.0)
    }

    /// Reads what [`FileRoll::encode`] wrote.
    ///
    /// # Errors
    /// It is damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || {
            let what = "the state of an unfinished restore of files is damaged: begin it again";
            EngineError::Invalid(what.to_owned())
        };
        let (mut roll, mut input) = RollState::open(*MAGIC, bytes).ok_or_else(damaged)?;
        let mut parse = || {
            roll.reached.applied = input.u64()?;
            let mut files = BTreeMap::new();
            for _ in 0..input.u32()? {
                files.insert(FileId(input.u16()?), input.u64()?);
            }
            let length = input.u32()? as usize;
            let known = Pages::of(input.take(length)?);
            Some((files, known))
        };
        let (files, known) = parse().ok_or_else(damaged)?;
        Ok(Self { roll, known, files })
    }
}

impl FileRollLog {
    /// Looks at the next bytes of the log. All of it is looked at before any is applied.
    ///
    /// # Errors
    /// The log is damaged, or does not continue the files.
    pub fn scan(&mut self, bytes: &[u8]) -> Result<()> {
        self.scan.scan(bytes)
    }

    /// All of the log was looked at. Returns the state to store before any of it is applied: a crash may leave some of it
    /// in the files.
    ///
    /// # Errors
    /// It is not complete, or does not continue the files.
    pub fn scanned(&self) -> Result<FileRoll> {
        let Scanned { end, .. } = self.scan.scanned()?;
        let mut roll = self.roll.clone();
        roll.roll.reached.applied = roll.roll.reached.applied.max(end.0);
        Ok(roll)
    }

    /// Applies the next bytes of the log.
    ///
    /// # Errors
    /// The log is not the one that was scanned; those of the operating system.
    pub fn apply(&mut self, bytes: &[u8]) -> Result<()> {
        let Self {
            roll,
            files,
            follower,
            ..
        } = self;
        let from = roll.roll.state.end();
        follower.feed_blocks(bytes, &mut |block, records| {
            if block.position < from {
                return Ok(());
            }
            for record in Records::new(records).flatten() {
                if let Record::Commit { unix_ms, .. } = record {
                    roll.roll.reached.unix_ms = roll.roll.reached.unix_ms.max(unix_ms);
                }
                roll.apply(files, &record)?;
            }
            roll.roll.reached.checksum = Some(block.checksum);
            Ok(())
        })
    }

    /// The files as of the end of the log, synced.
    ///
    /// # Errors
    /// Not all of the log was applied; those of the operating system.
    pub fn settle(mut self) -> Result<FileRoll> {
        self.follower.check_end()?;
        self.files.sync()?;
        self.roll.roll.advance(&self.log);
        Ok(self.roll)
    }
}

impl FilesSealed {
    pub fn restored(&self) -> &[RestoredFile] {
        &self.restored
    }

    /// A file, held while it is open.
    pub fn file(&self, file_id: FileId) -> Option<Arc<dyn StorageFile>> {
        self.files.file(file_id)
    }
}

/// Locks the log of the database, and reads its state.
fn closed(places: FilePlaces<'_>) -> Result<(Arc<dyn StorageFile>, ClosedDatabase)> {
    let path = places.log;
    let log = places.files.open(path, OpenMode::Existing);
    let log = log.map_err(|error| EngineError::io("open", path, error))?;
    log.lock_exclusive()
        .map_err(|error| EngineError::lock(path, error))?;
    let closed = read_log(&log, path)?;
    closed.check_layout()?;
    Ok((log, closed))
}

/// Fails if the log of a database does not lead on from a state.
fn check(closed: &ClosedDatabase, state: &BackupDescription) -> Result<()> {
    let header = &closed.header;
    let own = (header.guid, header.recovery_fork);
    check_continued(
        (&header.name, header.recovery_model),
        header.tail,
        own,
        state,
    )
}

fn pages_of(extent: ExtentNumber, page_count: u32) -> impl Iterator<Item = PageNumber> {
    (0..extent.pages_within(page_count)).filter_map(move |index| extent.page(index))
}

fn unknown(files: &StagedFiles, page: PageNumber) -> EngineError {
    files.refused(page.extent(), page.index_in_extent(), PageRefusal::NotInSet)
}
