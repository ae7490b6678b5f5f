//! Restores single pages of a database in use, from the full backup that is the base of its
//! differential map.
//!
//! No log backup is needed; with them, pages are rolled forward from any full backup ([`crate::backup::page_roll`]). The
//! restore is correct because of the differential map: an extent that is not marked has not changed since the base, so its pages
//! now equal their state at the end of that backup: their bytes in the set, with the set's log
//! replayed on top. The log matters if the database itself was restored from the set: then the map
//! starts empty at the end of the backup, not at the start of its copy.
//!
//! ```text
//!  begin_page_restore      take, apply_log          finish
//!  check the pages   -->  (nothing is locked) -->  writer's token, checkpoint lock, check again
//!                                                   --> write, sync --> pool drops the pages
//! ```
//!
//! Invariants:
//! - All pages are restored or none: every check that can refuse comes before the first write.
//! - A page in a marked extent is never written, nor a dirty page.
//! - No commit, checkpoint or copy of the data files runs while pages are written: the token keeps
//!   commits out, and the checkpoint lock the others, because a backup starts with a checkpoint.
//! - Readers continue. During the write they see the page either as before or restored.
//! - A crash leaves each page as it was, restored, or torn; a torn page fails its checksum and is
//!   restored again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use windlass_base::page::{PAGE_BYTES, checksum};
use windlass_base::{FileId, FilePage, Guid, PageNumber};
use windlass_io::AlignedBuffer;

use super::Database;
use crate::backup::BackupDescription;
use crate::backup::follow::LogFollower;
use crate::error::{EngineError, PageRefusal, Result};
use crate::log::record::Record;

/// The pages that are completely inside a range of a data file.
pub(crate) fn names_in(
    names: &BTreeMap<FilePage, PageNumber>,
    file_id: FileId,
    offset: u64,
    bytes: u64,
) -> impl Iterator<Item = (FilePage, PageNumber)> {
    let page_bytes = PAGE_BYTES as u64;
    let first = offset.div_ceil(page_bytes);
    let end = (offset.saturating_add(bytes) / page_bytes).max(first);
    let name = |page| FilePage { file_id, page };
    let range = names.range(name(first)..name(end));
    range.map(|(&name, &page)| (name, page))
}

#[derive(Debug)]
struct Wanted {
    name: FilePage,
    /// Its content in the set, once read.
    content: Option<Box<[u8]>>,
}

/// A page restore in progress. Dropping it before [`PageRestore::finish`] changes nothing.
#[derive(Debug)]
pub struct PageRestore {
    database: Arc<Database>,
    set: Guid,
    /// By page of the database.
    pages: BTreeMap<PageNumber, Wanted>,
    /// The same pages by the names that users give them.
    names: BTreeMap<FilePage, PageNumber>,
    follower: LogFollower,
}

impl Database {
    /// Starts to restore `pages` from the full backup `set` with the description `description`. A
    /// page that is listed twice is restored once.
    ///
    /// # Errors
    /// [`EngineError::NotTheBase`], [`EngineError::PageRefused`], [`EngineError::PagesChanged`];
    /// [`PageRestore::finish`] checks again.
    pub fn begin_page_restore(
        self: &Arc<Self>,
        description: &BackupDescription,
        set: Guid,
        pages: &[FilePage],
    ) -> Result<PageRestore> {
        self.check_online()?;
        if description.is_differential() || description.guid() != self.guid {
            return Err(self.not_the_base(set));
        }
        let mut names = BTreeMap::new();
        for &name in pages {
            names.insert(name, self.page_named(name)?);
        }
        let wanted = |(&name, &page): (&FilePage, &PageNumber)| {
            let content = None;
            (page, Wanted { name, content })
        };
        let restore = PageRestore {
            database: Arc::clone(self),
            set,
            pages: names.iter().map(wanted).collect(),
            names,
            follower: LogFollower::new(description),
        };
        restore.check()?;
        Ok(restore)
    }

    /// The page of the database at a place in a data file.
    pub(super) fn page_named(&self, name: FilePage) -> Result<PageNumber> {
        let refuse = |refusal| EngineError::PageRefused {
            database: self.name.clone(),
            page: name,
            refusal,
        };
        if name.file_id == FileId::LOG {
            return Err(refuse(PageRefusal::InLog));
        }
        let specs = self.data.specs();
        let index = name.file_id.data_index();
        let pages = index
            .and_then(|index| specs.get(index))
            .map_or(0, |spec| spec.size / PAGE_BYTES as u64);
        if name.page >= pages {
            return Err(refuse(PageRefusal::BeyondEnd));
        }
        let page_count = self.versions.latest().page_count;
        let offset = name.byte_offset(PAGE_BYTES);
        let page = self.data.page_at(name.file_id, offset);
        page.filter(|page| page.is_within(page_count))
            .ok_or_else(|| refuse(PageRefusal::BeyondEnd))
    }

    fn not_the_base(&self, set: Guid) -> EngineError {
        EngineError::NotTheBase {
            database: self.name.clone(),
            set,
            base: self.differential_base().set,
        }
    }
}

impl PageRestore {
    /// Checks whether the set can be used for the pages now.
    fn check(&self) -> Result<()> {
        let database = &self.database;
        if self.set.is_nil() || database.differential_base().set != self.set {
            return Err(database.not_the_base(self.set));
        }
        let page_count = database.versions.latest().page_count;
        let map = database.maps.current();
        let mut changed = Vec::new();
        for (&page, wanted) in &self.pages {
            if !page.is_within(page_count) {
                return Err(self.refuse(wanted, PageRefusal::BeyondEnd));
            }
            let pool = &database.shared.pool;
            let is_dirty = pool.look(database.key(page), |_, first| first.is_some());
            if map.is_set(page.extent()) || is_dirty == Some(true) {
                changed.push(wanted.name);
            }
        }
        if changed.is_empty() {
            return Ok(());
        }
        changed.sort_unstable();
        Err(EngineError::PagesChanged {
            database: database.name.clone(),
            pages: changed,
        })
    }

    fn refuse(&self, wanted: &Wanted, refusal: PageRefusal) -> EngineError {
        EngineError::PageRefused {
            database: self.database.name.clone(),
            page: wanted.name,
            refusal,
        }
    }

    /// The pages, each once, in order.
    pub fn pages(&self) -> impl Iterator<Item = FilePage> {
        self.names.keys().copied()
    }

    /// Whether a range of a data file contains one of the pages.
    pub fn wants(&self, file_id: FileId, offset: u64, bytes: u64) -> bool {
        names_in(&self.names, file_id, offset, bytes)
            .next()
            .is_some()
    }

    /// Takes the pages out of a range of a data file, as read from the set.
    pub fn take(&mut self, file_id: FileId, offset: u64, bytes: &[u8]) {
        let found: Vec<_> = names_in(&self.names, file_id, offset, bytes.len() as u64).collect();
        for (name, page) in found {
            let start = (name.byte_offset(PAGE_BYTES) - offset) as usize;
            if let Some(wanted) = self.pages.get_mut(&page) {
                wanted.content = Some(bytes[start..start + PAGE_BYTES].into());
            }
        }
    }

    /// Takes the next bytes of the set's log and replays the records of the pages. Call it after
    /// all pages have been taken.
    ///
    /// # Errors
    /// The log is damaged.
    pub fn apply_log(&mut self, bytes: &[u8]) -> Result<()> {
        let Self {
            follower, pages, ..
        } = self;
        follower.feed(bytes, &mut |page, record: &Record<'_>| {
            let content = pages.get_mut(&page).and_then(|w| w.content.as_mut());
            if let Some(content) = content {
                record.apply_to(content);
            }
            Ok(())
        })
    }

    /// Writes and syncs the pages, and returns their number. Waits up to `patience` for an open
    /// write transaction.
    ///
    /// # Errors
    /// Before anything is written: [`EngineError::Busy`], [`EngineError::BackupRunning`], the
    /// errors of [`Database::begin_page_restore`], an incomplete log, pages that are missing or
    /// damaged in the set. After that, only errors of the operating system; the restore can be
    /// repeated.
    pub fn finish(self, patience: Duration) -> Result<u64> {
        self.follower.check_end()?;
        let database = Arc::clone(&self.database);
        let writer = database.writer.take_within(patience);
        let writer = writer.ok_or_else(|| database.busy())?;
        let checkpointing = database.checkpointer.lock();
        database.check_online()?;
        // The checkpoint of a backup that starts now waits for this lock before the backup copies
        // anything.
        if database.copies.any() {
            return Err(EngineError::BackupRunning {
                database: database.name.clone(),
            });
        }
        self.check()?;
        self.verify()?;
        database.shared.dispenser.drain(database.number);
        let mut aligned = AlignedBuffer::new(PAGE_BYTES);
        for (&page, wanted) in &self.pages {
            if let Some(content) = &wanted.content {
                aligned[..PAGE_BYTES].copy_from_slice(content);
                database.data.write(page, &aligned[..PAGE_BYTES])?;
            }
        }
        let synced = database.data.sync();
        synced.map_err(|error| database.log.fail(error))?;
        for &page in self.pages.keys() {
            database.shared.pool.replaced(database.key(page));
        }
        if self.pages.contains_key(&PageNumber::FIRST) {
            database.note_checksums(&writer, database.versions.latest().page_count)?;
            // The header knows its first bytes.
            database.advance_redo(&checkpointing)?;
        }
        Ok(self.pages.len() as u64)
    }

    /// Fails for pages that the set does not contain or that are damaged in it.
    fn verify(&self) -> Result<()> {
        let first = self
            .pages
            .get(&PageNumber::FIRST)
            .and_then(|w| w.content.as_deref());
        let have_checksums = match first {
            Some(first) => checksum::is_reserved(first),
            None => self.database.checksums.are_on(),
        };
        for wanted in self.pages.values() {
            let content = wanted.content.as_deref();
            let content = content.ok_or_else(|| self.refuse(wanted, PageRefusal::NotInSet))?;
            let damage = checksum::mismatch(content).filter(|_| have_checksums);
            if let Some((expected, found)) = damage {
                return Err(self.refuse(wanted, PageRefusal::Damaged { expected, found }));
            }
        }
        Ok(())
    }
}
