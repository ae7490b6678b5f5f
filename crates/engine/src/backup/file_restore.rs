//! Restores whole data files that are damaged or lost, from the full backup that is the base of the
//! database's differential map, while the database is closed.
//!
//! The argument is the same as in [`crate::database::page_restore`]: an extent that is not marked has not
//! changed since the end of that backup. The map is read from the log file, because a database with
//! a lost file cannot be opened: from the record of the last checkpoint and the commits after it,
//! as in recovery.
//!
//! Invariants:
//! - Nothing is restored unless no extent of the files is marked and the log has no records of
//!   their pages to replay; opening the database then replays only records of other files.
//! - The log file is locked and not written. New files are written under temporary names next to
//!   the old ones; the caller renames them one by one, because each is valid by itself.
//! - The set contains every extent in use, and every page has a valid checksum if the database uses
//!   page checksums.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::{ExtentNumber, FileId, Guid, PageNumber};

use super::BackupDescription;
use super::follow::LogFollower;
use super::offline::{extents_of, read_log};
use crate::database::{make_file, refuse_leftovers};
use crate::differential::ExtentMap;
use crate::error::{EngineError, PageRefusal, Result};
use crate::files::{EXTENT_BYTES, extent_at, locate_extent, locate_page};
use crate::log::header::{Header, Region};
use crate::log::record::Record;
use crate::options::FileSpec;
use crate::stamps::{Moment, fingerprint};
use crate::storage::{FileSystem, OpenMode, StorageFile};
use windlass_base::page::{PAGE_BYTES, checksum};

/// Pages kept in memory while the log is replayed.
const PAGES_KEPT: usize = 4096;

/// Bytes verified at once.
const VERIFY_BYTES: usize = 1 << 20;

/// A restored file, ready to be renamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredFile {
    pub file_id: FileId,
    pub logical_name: String,
    /// The temporary file.
    pub staged: PathBuf,
    /// The path it is renamed to.
    pub path: PathBuf,
    pub pages: u64,
}

/// A file that is being restored.
#[derive(Debug)]
struct Staged {
    spec: FileSpec,
    path: PathBuf,
    file: Arc<dyn StorageFile>,
    /// Extents read from the set.
    written: ExtentMap,
    /// Extents in use.
    extents: Vec<ExtentNumber>,
}

#[derive(Debug)]
pub struct FileRestore {
    database: String,
    regions: Vec<Region>,
    page_count: u32,
    /// Whether the only file was closed as a plain SQLite file, whose length equals its pages.
    is_plain: bool,
    /// The last checkpoint, which the files' stamps name.
    moment: Moment,
    first_file: PathBuf,
    files: Arc<dyn FileSystem>,
    /// By file index.
    staged: BTreeMap<usize, Staged>,
    pages: BTreeMap<PageNumber, Box<[u8]>>,
    follower: LogFollower,
    /// Held because any process that opens the database locks its log.
    _log: Arc<dyn StorageFile>,
    /// Locked to keep SQLite away from the files that are replaced.
    _replaced: Vec<Arc<dyn StorageFile>>,
}

impl FileRestore {
    /// Starts to restore the data files `file_ids` of the database whose log is at `log_path`, from
    /// the full backup `set` with the description `description`. `beside` returns the temporary
    /// path for a file.
    ///
    /// # Errors
    /// [`EngineError::InUse`], [`EngineError::NotTheBase`], [`EngineError::PagesChanged`] with the
    /// first page of each changed extent; errors of the operating system.
    pub fn begin(
        files: Arc<dyn FileSystem>,
        log_path: &Path,
        description: &BackupDescription,
        set: Guid,
        file_ids: &[FileId],
        beside: &dyn Fn(&Path) -> PathBuf,
    ) -> Result<Self> {
        let fail = |error| EngineError::io("open", log_path, error);
        let log = files.open(log_path, OpenMode::Existing).map_err(fail)?;
        log.lock_exclusive()
            .map_err(|error| EngineError::lock(log_path, error))?;
        let closed = read_log(&log, log_path)?;
        let header = &closed.header;
        let is_base = header.base.set == set && !set.is_nil() && header.guid == description.guid();
        if description.is_differential() || !is_base {
            return Err(EngineError::NotTheBase {
                database: header.name.clone(),
                set,
                base: header.base.set,
            });
        }
        let wanted = extents_of(&closed, file_ids)?;
        let replaced = check_existing(files.as_ref(), header, wanted.keys())?;
        let mut restore = Self {
            database: header.name.clone(),
            regions: header.regions.clone(),
            page_count: closed.page_count,
            is_plain: is_plain(header),
            moment: Moment::of(header),
            first_file: header.files[0].path.clone(),
            files,
            staged: BTreeMap::new(),
            pages: BTreeMap::new(),
            follower: LogFollower::new(description),
            _log: log,
            _replaced: replaced,
        };
        // From here on, the new files are removed if one of them fails.
        for (index, extents) in wanted {
            let made = Staged::make(restore.files.as_ref(), header, index, extents, beside)?;
            restore.staged.insert(index, made);
        }
        Ok(restore)
    }

    /// Whether the data file is one of those being restored.
    pub fn wants(&self, file_id: FileId) -> bool {
        file_id
            .data_index()
            .is_some_and(|index| self.staged.contains_key(&index))
    }

    /// A file that is being restored, held while it is open.
    pub fn file(&self, file_id: FileId) -> Option<Arc<dyn StorageFile>> {
        let staged = self.staged.get(&file_id.data_index()?)?;
        Some(Arc::clone(&staged.file))
    }

    /// The paths that the files get in the end.
    pub fn targets(&self) -> impl Iterator<Item = (FileId, &Path)> {
        let targets = self.staged.iter();
        targets.map(|(&index, staged)| (FileId::of_data(index), staged.spec.path.as_path()))
    }

    /// Writes a range of a data file.
    pub fn write(&mut self, file_id: FileId, offset: u64, bytes: &[u8]) -> Result<()> {
        let Some(staged) = file_id
            .data_index()
            .and_then(|index| self.staged.get_mut(&index))
        else {
            return Ok(());
        };
        staged
            .file
            .write_at(bytes, offset)
            .map_err(|error| EngineError::io("write", &staged.path, error))?;
        let whole = offset.div_ceil(EXTENT_BYTES)..(offset + bytes.len() as u64) / EXTENT_BYTES;
        for at in whole.map(|extent| extent * EXTENT_BYTES) {
            let extent = extent_at(&self.regions, file_id, at);
            // What lies beyond the extents in use is not needed.
            if let Some(extent) = extent.filter(|extent| extent.pages_within(self.page_count) > 0) {
                staged.written.set(extent);
            }
        }
        Ok(())
    }

    /// Takes the next bytes of the set's log and replays the records of the restored files. Call it
    /// after all file ranges have been written.
    pub fn apply_log(&mut self, bytes: &[u8]) -> Result<()> {
        let Self {
            follower,
            regions,
            staged,
            pages,
            page_count,
            ..
        } = self;
        follower.feed(
            bytes,
            &mut |page, record| match page.is_within(*page_count) {
                false => Ok(()),
                true => apply_record(regions, staged, pages, page, record),
            },
        )
    }

    /// Verifies and syncs the files, once everything has been written. The caller can rename them
    /// then, before this value is dropped.
    ///
    /// # Errors
    /// The log is incomplete, the set lacks an extent, or it contains damaged pages.
    pub fn settle(&mut self) -> Result<Vec<RestoredFile>> {
        self.follower.check_end()?;
        write_pages(&self.regions, &self.staged, &mut self.pages)?;
        let have_checksums = self.have_checksums()?;
        for (&index, staged) in &self.staged {
            for &extent in &staged.extents {
                if !staged.written.is_set(extent) {
                    return Err(self.refused(extent, 0, PageRefusal::NotInSet));
                }
            }
            if have_checksums {
                self.verify(staged)?;
            }
            let fail = |error| EngineError::io("sync", &staged.path, error);
            if self.is_plain {
                let bytes = u64::from(self.page_count) * PAGE_BYTES as u64;
                staged.file.set_len(bytes).map_err(fail)?;
            }
            let file = staged.file.as_ref();
            self.moment
                .stamp_file(&self.regions, index, file, &staged.path)?;
            file.sync().map_err(fail)?;
            self.files.sync_folder_of(&staged.path).map_err(fail)?;
        }
        let restored = self.staged.iter().map(|(&index, staged)| RestoredFile {
            file_id: FileId::of_data(index),
            logical_name: staged.spec.logical_name.clone(),
            staged: staged.path.clone(),
            path: staged.spec.path.clone(),
            pages: self.pages_in(staged),
        });
        Ok(restored.collect())
    }

    fn pages_in(&self, staged: &Staged) -> u64 {
        let pages = |extent: &ExtentNumber| u64::from(extent.pages_within(self.page_count));
        staged.extents.iter().map(pages).sum()
    }

    /// Whether the database uses page checksums: page 1 says so, wherever it is at this point.
    fn have_checksums(&self) -> Result<bool> {
        let mut head = [0; 100];
        let fail = |error| EngineError::io("read", &self.first_file, error);
        match self.staged.get(&0) {
            Some(first) => first.file.read_at(&mut head, 0).map_err(fail)?,
            // If the first file is also lost, it is restored by another statement.
            None if !self.files.exists(&self.first_file) => return Ok(false),
            None => self
                .files
                .open(&self.first_file, OpenMode::Existing)
                .and_then(|file| file.read_at(&mut head, 0))
                .map_err(fail)?,
        };
        Ok(checksum::is_reserved(&head))
    }

    fn verify(&self, staged: &Staged) -> Result<()> {
        let mut bytes = vec![0; VERIFY_BYTES.min(EXTENT_BYTES as usize)];
        for &extent in &staged.extents {
            let (_, at) = locate_extent(&self.regions, extent);
            let read = staged.file.read_at(&mut bytes, at.byte_offset());
            let length = read.map_err(|error| EngineError::io("read", &staged.path, error))?;
            bytes[length..].fill(0);
            let pages = bytes.chunks_exact(PAGE_BYTES);
            for (index, page) in (0..extent.pages_within(self.page_count)).zip(pages) {
                if let Some((expected, found)) = checksum::mismatch(page) {
                    let refusal = PageRefusal::Damaged { expected, found };
                    return Err(self.refused(extent, index, refusal));
                }
            }
        }
        Ok(())
    }

    /// About the page with `index` pages before it in its extent.
    fn refused(&self, extent: ExtentNumber, index: u32, refusal: PageRefusal) -> EngineError {
        let (file_index, at) = locate_extent(&self.regions, extent);
        EngineError::PageRefused {
            database: self.database.clone(),
            page: at.page(file_index, index),
            refusal,
        }
    }
}

impl Drop for FileRestore {
    fn drop(&mut self) {
        for staged in self.staged.values() {
            // Files that were renamed no longer have this name, which may be another restore's by now; the
            // others are unused.
            let _left = self.files.discard(&staged.path, staged.file.as_ref());
        }
    }
}

impl Staged {
    fn make(
        files: &dyn FileSystem,
        header: &Header,
        index: usize,
        extents: Vec<ExtentNumber>,
        beside: &dyn Fn(&Path) -> PathBuf,
    ) -> Result<Self> {
        let spec = header.files[index].clone();
        let path = beside(&spec.path);
        let place = FileSpec {
            path: path.clone(),
            ..spec.clone()
        };
        let file = make_file(files, &place, OpenMode::Claim)?;
        Ok(Self {
            spec,
            path,
            file,
            written: ExtentMap::default(),
            extents,
        })
    }
}

fn is_plain(header: &Header) -> bool {
    header.clean && header.files.len() == 1
}

/// Checks the existing files: none may be in use or changed by another program.
fn check_existing<'a>(
    files: &dyn FileSystem,
    header: &Header,
    indexes: impl Iterator<Item = &'a usize>,
) -> Result<Vec<Arc<dyn StorageFile>>> {
    let mut kept = Vec::new();
    for &index in indexes {
        let path = &header.files[index].path;
        if is_plain(header) {
            refuse_leftovers(files, path)?;
        }
        if !files.exists(path) {
            continue;
        }
        let fail = |error| EngineError::io("open", path, error);
        let file = files.open(path, OpenMode::Existing).map_err(fail)?;
        file.lock_database()
            .map_err(|error| EngineError::lock(path, error))?;
        if is_plain(header) && fingerprint(file.as_ref(), path)? != header.fingerprint {
            return Err(EngineError::Corrupt {
                path: path.clone(),
                what:
                    "its header or its length differs from when the database was closed: another \
                       program may have written to it since, and no backup has those changes; \
                       restore the whole database, or remove the file first"
                        .to_owned(),
            });
        }
        kept.push(file);
    }
    Ok(kept)
}

/// The file of a page, if it is being restored, and the page's byte offset in it.
fn place<'a>(
    regions: &[Region],
    staged: &'a BTreeMap<usize, Staged>,
    page: PageNumber,
) -> (Option<&'a Staged>, u64) {
    let (index, offset) = locate_page(regions, page);
    (staged.get(&index), offset)
}

/// Replays a record on its page, if that page is in a file being restored.
fn apply_record(
    regions: &[Region],
    files: &BTreeMap<usize, Staged>,
    pages: &mut BTreeMap<PageNumber, Box<[u8]>>,
    page: PageNumber,
    record: &Record<'_>,
) -> Result<()> {
    let (Some(staged), offset) = place(regions, files, page) else {
        return Ok(());
    };
    if pages.len() >= PAGES_KEPT {
        write_pages(regions, files, pages)?;
    }
    let content = match pages.entry(page) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => {
            let mut content = vec![0; PAGE_BYTES].into_boxed_slice();
            let read = staged.file.read_at(&mut content, offset);
            read.map_err(|error| EngineError::io("read", &staged.path, error))?;
            entry.insert(content)
        }
    };
    record.apply_to(content);
    Ok(())
}

fn write_pages(
    regions: &[Region],
    staged: &BTreeMap<usize, Staged>,
    pages: &mut BTreeMap<PageNumber, Box<[u8]>>,
) -> Result<()> {
    for (page, content) in std::mem::take(pages) {
        if let (Some(staged), offset) = place(regions, staged, page) {
            let written = staged.file.write_at(&content, offset);
            written.map_err(|error| EngineError::io("write", &staged.path, error))?;
        }
    }
    Ok(())
}
