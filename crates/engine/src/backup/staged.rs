//! New data files of a closed database, which are made next to the old ones.
//!
//! [`super::file_restore`] fills them from one set; [`super::file_roll`] from a full backup and the log after it.
//!
//! Invariants:
//! - The log file is locked and not written, and nobody else has the old files open. The new files have temporary names;
//!   the caller renames them one by one, because each is valid by itself.
//! - They are sealed only if every page has a valid checksum, where the database uses page checksums.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::{ExtentNumber, FileId, PageNumber};

use super::offline::ClosedDatabase;
use crate::database::{make_file, refuse_leftovers};
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

/// How the new files are opened.
pub(super) enum Opening<'a> {
    /// They are created, and removed again unless they are kept.
    New,
    /// Those of an earlier step, through a file system that opens nobody else's.
    Again(&'a dyn FileSystem),
}

/// A file that is being made.
#[derive(Debug)]
struct Staged {
    spec: FileSpec,
    path: PathBuf,
    file: Arc<dyn StorageFile>,
    /// Extents in use.
    extents: Vec<ExtentNumber>,
    /// Least length, bytes: the last checkpoint names it.
    bytes: u64,
}

#[derive(Debug)]
pub(super) struct StagedFiles {
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
    is_kept: bool,
    /// Held because any process that opens the database locks its log.
    _log: Arc<dyn StorageFile>,
    /// Locked to keep SQLite away from the files that are replaced.
    _replaced: Vec<Arc<dyn StorageFile>>,
}

impl StagedFiles {
    /// Opens or creates the files `wanted`, each with its extents in use, of the database whose locked log is `log`.
    /// `beside` returns the temporary path for a file.
    pub(super) fn open(
        files: Arc<dyn FileSystem>,
        log: Arc<dyn StorageFile>,
        closed: &ClosedDatabase,
        wanted: BTreeMap<usize, Vec<ExtentNumber>>,
        (beside, opening): (&dyn Fn(&Path) -> PathBuf, &Opening<'_>),
    ) -> Result<Self> {
        let header = &closed.header;
        let replaced = check_existing(files.as_ref(), header, wanted.keys().copied())?;
        let mut made = Self {
            database: header.name.clone(),
            regions: header.regions.clone(),
            page_count: closed.page_count,
            is_plain: is_plain(header),
            moment: Moment::of(header),
            first_file: header.files[0].path.clone(),
            files,
            staged: BTreeMap::new(),
            pages: BTreeMap::new(),
            is_kept: matches!(opening, Opening::Again(_)),
            _log: log,
            _replaced: replaced,
        };
        // From here on, the new files are removed if one of them fails.
        for (index, extents) in wanted {
            let spec = header.files[index].clone();
            let path = beside(&spec.path);
            let place = FileSpec {
                path: path.clone(),
                ..spec.clone()
            };
            let file = match opening {
                Opening::New => make_file(made.files.as_ref(), &place, OpenMode::Claim)?,
                Opening::Again(own) => own
                    .open(&path, OpenMode::Existing)
                    .map_err(|error| EngineError::io("open", &path, error))?,
            };
            let staged = Staged {
                spec,
                path,
                file,
                extents,
                bytes: header.lengths.get(index).copied().unwrap_or(0),
            };
            made.staged.insert(index, staged);
        }
        Ok(made)
    }

    /// Whether the data file is one of those.
    pub(super) fn wants(&self, file_id: FileId) -> bool {
        file_id
            .data_index()
            .is_some_and(|index| self.staged.contains_key(&index))
    }

    /// A file that is being made, held while it is open.
    pub(super) fn file(&self, file_id: FileId) -> Option<Arc<dyn StorageFile>> {
        let staged = self.staged.get(&file_id.data_index()?)?;
        Some(Arc::clone(&staged.file))
    }

    /// The number of a file in its file system, 0 if unknown.
    pub(super) fn number(&self, file_id: FileId) -> Result<u64> {
        let Some(file) = self.file(file_id).and_then(|file| file.direct()) else {
            return Ok(0);
        };
        file.number()
            .map_err(|error| EngineError::io("examine", file.path(), error))
    }

    /// The paths that the files get in the end.
    pub(super) fn targets(&self) -> impl Iterator<Item = (FileId, &Path)> {
        let targets = self.staged.iter();
        targets.map(|(&index, staged)| (FileId::of_data(index), staged.spec.path.as_path()))
    }

    /// Extents in use, of all of the files.
    pub(super) fn extents(&self) -> impl Iterator<Item = ExtentNumber> {
        self.staged
            .values()
            .flat_map(|staged| staged.extents.iter().copied())
    }

    /// Writes a range of a data file. Returns the extents in use that it has whole.
    pub(super) fn write(
        &self,
        file_id: FileId,
        offset: u64,
        bytes: &[u8],
    ) -> Result<impl Iterator<Item = ExtentNumber>> {
        let staged = file_id
            .data_index()
            .and_then(|index| self.staged.get(&index));
        if let Some(staged) = staged {
            let written = staged.file.write_at(bytes, offset);
            written.map_err(|error| EngineError::io("write", &staged.path, error))?;
        }
        let whole = offset.div_ceil(EXTENT_BYTES)..(offset + bytes.len() as u64) / EXTENT_BYTES;
        let is_wanted = staged.is_some();
        let extents = whole
            .filter(move |_| is_wanted)
            .filter_map(move |extent| extent_at(&self.regions, file_id, extent * EXTENT_BYTES));
        // What lies beyond the extents in use is not needed.
        Ok(extents.filter(|extent| extent.pages_within(self.page_count) > 0))
    }

    /// Whether a page is in one of the files, and in use.
    pub(super) fn has(&self, page: PageNumber) -> bool {
        page.is_within(self.page_count)
            && self
                .staged
                .contains_key(&locate_page(&self.regions, page).0)
    }

    /// Whether an extent was at the same place with other regions. If not, it was cut off since, and is a new one.
    pub(super) fn is_where_it_was(&self, regions: &[Region], extent: ExtentNumber) -> bool {
        locate_extent(&self.regions, extent) == locate_extent(regions, extent)
    }

    /// Replays a record on its page, if that page is in one of the files.
    pub(super) fn apply(&mut self, page: PageNumber, record: &Record<'_>) -> Result<()> {
        let (index, offset) = locate_page(&self.regions, page);
        if !self.staged.contains_key(&index) || !page.is_within(self.page_count) {
            return Ok(());
        }
        if self.pages.len() >= PAGES_KEPT {
            self.write_pages()?;
        }
        let Some(staged) = self.staged.get(&index) else {
            return Ok(());
        };
        let content = match self.pages.entry(page) {
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

    fn write_pages(&mut self) -> Result<()> {
        for (page, content) in std::mem::take(&mut self.pages) {
            let (index, offset) = locate_page(&self.regions, page);
            if let Some(staged) = self.staged.get(&index) {
                let written = staged.file.write_at(&content, offset);
                written.map_err(|error| EngineError::io("write", &staged.path, error))?;
            }
        }
        Ok(())
    }

    /// Syncs what was written, for a later step.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.write_pages()?;
        for staged in self.staged.values() {
            let synced = staged.file.sync();
            synced.map_err(|error| EngineError::io("sync", &staged.path, error))?;
            self.sync_name(staged)?;
        }
        Ok(())
    }

    fn sync_name(&self, staged: &Staged) -> Result<()> {
        let synced = self.files.sync_folder_of(&staged.path);
        synced.map_err(|error| EngineError::io("sync", &staged.path, error))
    }

    /// From here on they stay.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Verifies, stamps and syncs the files, which are complete. The caller can rename them then, before this value is
    /// dropped.
    pub(super) fn seal(&mut self) -> Result<Vec<RestoredFile>> {
        self.write_pages()?;
        let have_checksums = self.have_checksums()?;
        for (&index, staged) in &self.staged {
            if have_checksums {
                self.verify(staged)?;
            }
            let fail = |error| EngineError::io("sync", &staged.path, error);
            if self.is_plain {
                let bytes = u64::from(self.page_count) * PAGE_BYTES as u64;
                staged.file.set_len(bytes).map_err(fail)?;
            }
            // Pages that only the log has do not fill their extent.
            if staged.file.len().map_err(fail)? < staged.bytes {
                staged.file.set_len(staged.bytes).map_err(fail)?;
            }
            let file = staged.file.as_ref();
            self.moment
                .stamp_file(&self.regions, index, file, &staged.path)?;
            file.sync().map_err(fail)?;
            self.sync_name(staged)?;
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

    /// The names of the files, each with its pages.
    pub(super) fn pages(&self) -> Vec<(String, u64)> {
        let of = |staged: &Staged| (staged.spec.logical_name.clone(), self.pages_in(staged));
        self.staged.values().map(of).collect()
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
    pub(super) fn refused(
        &self,
        extent: ExtentNumber,
        index: u32,
        refusal: PageRefusal,
    ) -> EngineError {
        let (file_index, at) = locate_extent(&self.regions, extent);
        EngineError::PageRefused {
            database: self.database.clone(),
            page: at.page(file_index, index),
            refusal,
        }
    }
}

impl Drop for StagedFiles {
    fn drop(&mut self) {
        for staged in self.staged.values().filter(|_| !self.is_kept) {
            // Files that were renamed no longer have this name, which may be another restore's by now; the
            // others are unused.
            let _left = self.files.discard(&staged.path, staged.file.as_ref());
        }
    }
}

fn is_plain(header: &Header) -> bool {
    header.clean && header.files.len() == 1
}

/// Checks the existing files: none may be in use or changed by another program.
pub(crate) fn check_existing(
    files: &dyn FileSystem,
    header: &Header,
    indexes: impl Iterator<Item = usize>,
) -> Result<Vec<Arc<dyn StorageFile>>> {
    let mut kept = Vec::new();
    for index in indexes {
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
