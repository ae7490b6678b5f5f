//! Recreates a database: data files from ranges, then the log replayed on top, then a new log file.
//!
//! Invariants:
//! - Until [`Restore::finish`] there is no log file, and the files cannot be opened as a database.
//! - The log must reach the end named in the description; otherwise the restore does not finish.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::sync::Arc;

use super::follow::LogFollower;
use super::roll_forward::Reached;
use super::{BackupDescription, BackupRange};
use crate::database::{make_file, open_files};
use crate::error::{EngineError, Result};
use crate::files::{DataFile, DataFiles};
use crate::log::Position;
use crate::log::header::{DifferentialBase, Header, LOG_AREA};
use crate::log::record::{Group, Record};
use crate::log::vlf::divide;
use crate::log::writer::{AppendError, Log, NoRoom, Resume, zero};
use crate::opening;
use crate::options::FileSpec;
use crate::stamps::Moment;
use crate::storage::{FileSystem, OpenMode, StorageFile};
use windlass_base::Guid;
use windlass_base::page::{PAGE_BYTES, PageNumber};

pub(super) type Pages = BTreeMap<PageNumber, Box<[u8]>>;

/// Pages kept in memory while the log is replayed.
const PAGES_KEPT: usize = 4096;

/// The files of a restored database, still open and held.
#[derive(Debug)]
pub struct RestoredFiles {
    /// In file order.
    pub data: Vec<Arc<dyn StorageFile>>,
    pub log: Arc<dyn StorageFile>,
}

#[derive(Debug)]
pub struct Restore {
    files: Arc<dyn FileSystem>,
    header: Header,
    end: Position,
    data: DataFiles,
    follower: LogFollower,
    pages: Pages,
    /// When the end was determined, in milliseconds since 1970, UTC; 0 if unknown.
    ended_ms: u64,
    /// Time of the last commit in the log.
    commit_ms: Option<u64>,
    /// The final names of the files, data files and log.
    names: Option<(Vec<PathBuf>, PathBuf)>,
}

impl Restore {
    /// Creates the data files of a full backup, at `places` in file order, or at their original
    /// paths.
    pub fn begin(
        files: Arc<dyn FileSystem>,
        description: &BackupDescription,
        places: &[PathBuf],
    ) -> Result<Self> {
        if description.is_differential() || description.is_log() {
            return Err(EngineError::Invalid(
                "only a full backup is restored without another one".to_owned(),
            ));
        }
        let header = placed(description, places)?;
        let mut made = Made::none(files.as_ref());
        let mut data = Vec::new();
        for spec in &header.files {
            let file = made.make(spec)?;
            let spec = spec.clone();
            data.push(DataFile { spec, file });
        }
        let data = DataFiles::new(&header.name, data, header.regions.clone())?;
        made.keep();
        Ok(Self::over(files, header, data, description))
    }

    /// Continues with the data files of an earlier restore, using another backup of the database: a
    /// differential one, or the same one again.
    pub fn onto(
        files: Arc<dyn FileSystem>,
        description: &BackupDescription,
        places: &[PathBuf],
    ) -> Result<Self> {
        let header = placed(description, places)?;
        let mut made = Made::none(files.as_ref());
        for spec in &header.files {
            // The file was added after the base.
            if !files.exists(&spec.path) {
                made.make(spec)?;
            }
        }
        let data = open_files(files.as_ref(), &header.name, &header, &[])?;
        made.keep();
        Ok(Self::over(files, header, data, description))
    }

    fn over(
        files: Arc<dyn FileSystem>,
        header: Header,
        data: DataFiles,
        description: &BackupDescription,
    ) -> Self {
        Self {
            files,
            header,
            end: description.end(),
            data,
            follower: LogFollower::new(description),
            ended_ms: description.ended_ms,
            pages: BTreeMap::new(),
            commit_ms: None,
            names: None,
        }
    }

    /// Continues with data files that a log backup has rolled forward; only [`Restore::finish`] is left.
    pub(super) fn rolled(
        files: Arc<dyn FileSystem>,
        header: Header,
        data: DataFiles,
        state: &BackupDescription,
    ) -> Self {
        let mut restore = Self::over(files, header, data, state);
        restore.follower.skip();
        restore
    }

    /// How far the restore goes, once its log has been applied.
    pub fn reached(&self) -> Reached {
        Reached {
            checksum: self.follower.checksum(),
            unix_ms: self.commit_ms.unwrap_or(self.ended_ms),
            applied: 0,
        }
    }

    /// Continues with data files that an earlier restore settled; only [`Restore::finish`] is left.
    pub fn resume(
        files: Arc<dyn FileSystem>,
        description: &BackupDescription,
        places: &[PathBuf],
    ) -> Result<Self> {
        let mut restore = Self::onto(files, description, places)?;
        restore.follower.skip();
        Ok(restore)
    }

    /// Records the final names of the files in the database: a caller that restores to temporary
    /// names renames the files afterwards.
    pub fn rename_to(&mut self, data: &[PathBuf], log: PathBuf) {
        self.names = Some((data.to_vec(), log));
    }

    /// The data files, in file order.
    pub fn data_files(&self) -> Vec<Arc<dyn StorageFile>> {
        self.data.handles()
    }

    /// The first page of the database, where every SQLite looks for its header; `None` for an empty
    /// database.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn first_page(&self) -> Result<Option<Vec<u8>>> {
        if self.header.page_count == 0 {
            return Ok(None);
        }
        let mut content = vec![0; PAGE_BYTES];
        self.data.read(PageNumber::FIRST, &mut content)?;
        Ok(Some(content))
    }

    /// Writes a range. Can be called from several threads.
    pub fn write_range(&self, range: &BackupRange, bytes: &[u8]) -> Result<()> {
        self.data.write_range(range, bytes)
    }

    /// Takes the next bytes of the log and replays the complete records.
    pub fn apply_log(&mut self, bytes: &[u8]) -> Result<()> {
        let Self {
            follower,
            data,
            pages,
            commit_ms,
            ..
        } = self;
        follower.feed_records(bytes, &mut |record| match *record {
            Record::PageImage { page, .. } | Record::PageRanges { page, .. } => {
                apply_record(data, pages, page, record)
            }
            Record::Commit { unix_ms, .. } => {
                *commit_ms = (*commit_ms).max(Some(unix_ms));
                Ok(())
            }
            // The files and their regions are those of the description.
            _ => Ok(()),
        })
    }

    /// Syncs the data files, once everything has been written. Further restores can follow, or
    /// [`Restore::finish`].
    ///
    /// # Errors
    /// The log does not reach the end of the backup.
    pub fn settle(&mut self) -> Result<()> {
        self.follower.check_end()?;
        write_pages(&self.data, &mut self.pages)?;
        self.data.sync()
    }

    /// Settles, and creates the log file at the path in `log`: the database can then be opened.
    /// `base` is the set it was restored from, on which differential backups may be based. Returns the
    /// files, which are held while they are open.
    pub fn finish(
        mut self,
        name: &str,
        log: &FileSpec,
        base: Option<DifferentialBase>,
    ) -> Result<RestoredFiles> {
        self.settle()?;
        let path = &log.path;
        let fail = |error| EngineError::io("create", path, error);
        let file = self.files.open(path, OpenMode::CreateNew).map_err(fail)?;
        zero(file.as_ref(), 0, log.size).map_err(fail)?;
        let vlfs = divide(LOG_AREA, log.size.saturating_sub(LOG_AREA));
        let resume = Resume {
            position: self.end,
            previous: 0,
            epoch: self.header.epoch + 1,
            redo: self.end,
            tail: None,
        };
        let guid = self.header.guid;
        let writer = Log::resume(Arc::clone(&file), path, guid, vlfs, resume);
        let mut group = Group::default();
        let identity = Guid::random();
        group.checkpoint(self.end, identity, &[]);
        let appended = match writer.append(&group, self.header.sequence, 0) {
            Ok(appended) => appended,
            Err(AppendError::Failed(error)) => return Err(error),
            Err(AppendError::NoRoom(NoRoom { needed, .. })) => {
                return Err(EngineError::Invalid(format!(
                    "a log of {} bytes is too small: {needed} more are needed",
                    log.size
                )));
            }
        };
        writer.flush_to(appended.end)?;
        let moment = Moment {
            guid,
            position: appended.first,
            identity,
        };
        let (fingerprint, lengths) = moment.mark(&self.data, self.header.page_count)?;
        self.data.sync()?;
        let opening = self.last_opening()?;
        let (specs, log_spec) = self.final_specs(log);
        let header = Header {
            counter: 1,
            recovery_fork: Guid::random(),
            opening,
            // The chain of the new history begins with its first backup.
            tail: None,
            last_ms: 0,
            name: name.to_owned(),
            epoch: resume.epoch,
            clean: false,
            fingerprint,
            lengths,
            checkpoint_identity: identity,
            redo: appended.first,
            checkpoint: appended.first,
            base: base.unwrap_or_default(),
            log: log_spec,
            files: specs,
            vlfs: writer.vlfs(),
            ..self.header
        };
        header.store(file.as_ref(), path)?;
        self.files.sync_folder_of(path).map_err(fail)?;
        Ok(RestoredFiles {
            data: self.data.handles(),
            log: file,
        })
    }
}

impl Restore {
    /// The last opening of the database whose pages these are; nil if none.
    fn last_opening(&self) -> Result<Guid> {
        let first = self.first_page()?;
        Ok(first.as_deref().and_then(opening::of).unwrap_or(Guid::NIL))
    }

    /// The data files and the log under their final names.
    fn final_specs(&self, log: &FileSpec) -> (Vec<FileSpec>, FileSpec) {
        let (mut specs, mut log) = (self.data.specs(), log.clone());
        if let Some((data, name)) = &self.names {
            for (spec, name) in specs.iter_mut().zip(data) {
                spec.path.clone_from(name);
            }
            log.path.clone_from(name);
        }
        (specs, log)
    }
}

/// New files, which are removed unless they are kept.
struct Made<'a> {
    files: &'a dyn FileSystem,
    paths: Vec<PathBuf>,
}

impl<'a> Made<'a> {
    fn none(files: &'a dyn FileSystem) -> Self {
        let paths = Vec::new();
        Self { files, paths }
    }

    fn make(&mut self, spec: &FileSpec) -> Result<Arc<dyn StorageFile>> {
        let file = make_file(self.files, spec, OpenMode::CreateNew)?;
        self.paths.push(spec.path.clone());
        Ok(file)
    }

    fn keep(mut self) {
        self.paths.clear();
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        for path in &self.paths {
            // The first error is the one to report.
            let _gone = self.files.remove(path);
        }
    }
}

/// Replays a record on its page.
pub(super) fn apply_record(
    data: &DataFiles,
    pages: &mut Pages,
    page: PageNumber,
    record: &Record<'_>,
) -> Result<()> {
    if pages.len() >= PAGES_KEPT {
        write_pages(data, pages)?;
    }
    let content = match pages.entry(page) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => {
            let mut content = vec![0; PAGE_BYTES].into_boxed_slice();
            if matches!(record, Record::PageRanges { .. }) {
                data.read(page, &mut content)?;
            }
            entry.insert(content)
        }
    };
    record.apply_to(content);
    Ok(())
}

pub(super) fn write_pages(data: &DataFiles, pages: &mut Pages) -> Result<()> {
    for (page, content) in std::mem::take(pages) {
        data.write(page, &content)?;
    }
    Ok(())
}

/// The header from the description, with the files at other paths.
fn placed(description: &BackupDescription, places: &[PathBuf]) -> Result<Header> {
    let mut header = description.header.clone();
    if !places.is_empty() && places.len() != header.files.len() {
        return Err(EngineError::Invalid(format!(
            "the backup has {} data files, but {} places are given",
            header.files.len(),
            places.len()
        )));
    }
    for (spec, place) in header.files.iter_mut().zip(places) {
        spec.path.clone_from(place);
    }
    Ok(header)
}
