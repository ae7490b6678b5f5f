//! Restore of single pages into a database in use, from the full backup that its differential map
//! counts from.
//!
//! There are no log backups, so no page can be rolled forward. What makes the restore sound is the
//! differential map: an extent that is not marked was not changed since the base, so its pages are now
//! what they were at the end of that backup: their bytes in the set, with the log of the set repeated
//! on top. The log matters where the database itself came from a restore of the set: then the map
//! begins empty at the end of the backup, not at the beginning of its copy.
//!
//! ```text
//!  begin_page_restore      take, apply_log          finish
//!  what may be asked? -->  (nothing is locked) -->  writer's token, checkpoint lock, asked again
//!                                                   --> write, sync --> pool forgets the pages
//! ```
//!
//! Invariants:
//! - All pages or none: whatever refuses does so before the first write.
//! - A marked extent is never written, nor a page that is dirty.
//! - No commit, no checkpoint and no copy of the data files goes on while pages are written: the
//!   token keeps commits out, the checkpoint lock the others, because a backup begins with a checkpoint.
//! - Readers go on. What they see of a page during the write is what they saw before, or what is right.
//! - A crash leaves each page as it was, restored, or torn between the two; a torn page fails its
//!   checksum and is restored again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use windlass_base::{FileId, Guid};
use windlass_io::AlignedBuffer;

use super::follow::LogFollower;
use super::offline::index_of;
use super::{BackupDescription, BackupRange};
use crate::database::Database;
use crate::error::{EngineError, PageRefusal, Result};
use crate::files::extent_of;
use crate::log::record::Record;
use crate::options::PAGE_SIZE;
use windlass_base::page::checksum;

/// The log's number.
const LOG_FILE_ID: u32 = FileId::LOG.0 as u32;

/// Between two looks whether the writer has ended.
const WRITER_POLL: Duration = Duration::from_millis(5);

/// A page as users name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FilePage {
    /// Number of the file, as in [`crate::FileDescription::file_id`].
    pub file_id: u32,
    /// Page within the file, from 0.
    pub page: u64,
}

impl fmt::Display for FilePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}:{})", self.file_id, self.page)
    }
}

/// A page that is asked for.
#[derive(Debug)]
struct Wanted {
    name: FilePage,
    /// As the set has it, once that was read.
    content: Option<Box<[u8]>>,
}

/// A restore of pages under way. Dropped before [`PageRestore::finish`], it changes nothing.
#[derive(Debug)]
pub struct PageRestore {
    database: Arc<Database>,
    set: Guid,
    /// By page of the database.
    pages: BTreeMap<u32, Wanted>,
    /// The same by the names users give them.
    names: BTreeMap<FilePage, u32>,
    follower: LogFollower,
}

/// Keeps write transactions out.
struct WriterToken<'a>(&'a Database);

impl Drop for WriterToken<'_> {
    fn drop(&mut self) {
        self.0.writing.store(false, Ordering::Release);
    }
}

impl Database {
    /// Begins to restore `pages` from the full backup `set`, which `description` describes. Pages that
    /// are named twice are restored once.
    ///
    /// # Errors
    /// [`EngineError::NotTheBase`], [`EngineError::PageRefused`], [`EngineError::PagesChanged`];
    /// [`PageRestore::finish`] asks again.
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
        let wanted = |(&name, &page): (&FilePage, &u32)| {
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

    /// Pages of the database in a data file, to be named in [`Database::begin_page_restore`]; the number
    /// of the database's page is not the file's when there are several files.
    fn page_named(&self, name: FilePage) -> Result<u32> {
        let refuse = |refusal| EngineError::PageRefused {
            database: self.name.clone(),
            page: name,
            refusal,
        };
        if name.file_id == LOG_FILE_ID {
            return Err(refuse(PageRefusal::InLog));
        }
        let index = index_of(name.file_id).ok_or_else(|| refuse(PageRefusal::BeyondEnd))?;
        let specs = self.data.specs();
        let pages = specs
            .get(index)
            .map_or(0, |spec| spec.size / PAGE_SIZE as u64);
        if name.page >= pages {
            return Err(refuse(PageRefusal::BeyondEnd));
        }
        let place = BackupRange {
            file: index,
            offset: name.page * PAGE_SIZE as u64,
            bytes: PAGE_SIZE,
        };
        match self.data.page_at(&place, 0) {
            page if page > 0 && page <= self.versions.latest().page_count => Ok(page),
            _ => Err(refuse(PageRefusal::BeyondEnd)),
        }
    }

    fn not_the_base(&self, set: Guid) -> EngineError {
        EngineError::NotTheBase {
            database: self.name.clone(),
            set,
            base: self.differential_base().0,
        }
    }

    /// Waits for the write transaction that is open, and keeps further ones out.
    fn keep_writers_out(&self, patience: Duration) -> Result<WriterToken<'_>> {
        let begun = Instant::now();
        while self.writing.swap(true, Ordering::Acquire) {
            if begun.elapsed() >= patience {
                return Err(EngineError::Busy {
                    database: self.name.clone(),
                });
            }
            std::thread::sleep(WRITER_POLL);
        }
        Ok(WriterToken(self))
    }
}

impl PageRestore {
    /// Whether the set can serve the pages now.
    fn check(&self) -> Result<()> {
        let database = &self.database;
        if self.set.is_nil() || database.differential_base().0 != self.set {
            return Err(database.not_the_base(self.set));
        }
        let page_count = database.versions.latest().page_count;
        let maps = database.maps.lock();
        let mut changed = Vec::new();
        for (&page, wanted) in &self.pages {
            if page > page_count {
                return Err(self.refuse(wanted, PageRefusal::BeyondEnd));
            }
            let pool = &database.shared.pool;
            let is_dirty = pool.look(database.key(page), |_, first| first.is_some());
            if maps.current.is_set(extent_of(page)) || is_dirty == Some(true) {
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

    /// Whether a stretch of a data file has one of the pages in it.
    pub fn wants(&self, file_id: u32, offset: u64, bytes: u64) -> bool {
        self.names_in(file_id, offset, bytes).next().is_some()
    }

    /// The pages that lie whole in a stretch of a data file.
    fn names_in(
        &self,
        file_id: u32,
        offset: u64,
        bytes: u64,
    ) -> impl Iterator<Item = (FilePage, u32)> {
        let page_bytes = PAGE_SIZE as u64;
        let first = offset.div_ceil(page_bytes);
        let end = (offset.saturating_add(bytes) / page_bytes).max(first);
        let name = |page| FilePage { file_id, page };
        let range = self.names.range(name(first)..name(end));
        range.map(|(&name, &page)| (name, page))
    }

    /// Takes the pages out of a stretch of a data file as the set has it.
    pub fn take(&mut self, file_id: u32, offset: u64, bytes: &[u8]) {
        let found: Vec<_> = self.names_in(file_id, offset, bytes.len() as u64).collect();
        for (name, page) in found {
            let start = (name.page * PAGE_SIZE as u64 - offset) as usize;
            if let Some(wanted) = self.pages.get_mut(&page) {
                wanted.content = Some(bytes[start..start + PAGE_SIZE].into());
            }
        }
    }

    /// Takes the next bytes of the set's log and repeats what is about the pages. All pages have been
    /// taken before.
    ///
    /// # Errors
    /// When the log is damaged.
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

    /// Writes the pages, durably, and returns how many they were. Waits for an open write transaction
    /// as long as `patience`.
    ///
    /// # Errors
    /// Before anything is written: [`EngineError::Busy`], [`EngineError::BackupRunning`], those of
    /// [`Database::begin_page_restore`], a log that lacks its end, pages that the set lacks or holds
    /// damaged. After that only those of the operating system; the restore may be repeated.
    pub fn finish(self, patience: Duration) -> Result<u64> {
        self.follower.check_end()?;
        let database = Arc::clone(&self.database);
        let _writers = database.keep_writers_out(patience)?;
        let _checkpointing = database.checkpointing.lock();
        database.check_online()?;
        // A backup that begins now waits for the lock with its checkpoint, before it copies anything.
        if database.copies.load(Ordering::Acquire) > 0 {
            return Err(EngineError::BackupRunning {
                database: database.name.clone(),
            });
        }
        self.check()?;
        self.verify()?;
        database.shared.dispenser.drain(database.number);
        let mut aligned = AlignedBuffer::new(PAGE_SIZE);
        for (&page, wanted) in &self.pages {
            if let Some(content) = &wanted.content {
                aligned[..PAGE_SIZE].copy_from_slice(content);
                database.data.write(page, &aligned[..PAGE_SIZE])?;
            }
        }
        database
            .data
            .sync()
            .map_err(|error| database.go_offline(error))?;
        for &page in self.pages.keys() {
            database.shared.pool.replaced(database.key(page));
        }
        if self.pages.contains_key(&1) {
            database.note_checksums(database.versions.latest().page_count)?;
        }
        Ok(self.pages.len() as u64)
    }

    /// Refuses pages that the set does not hold, or holds damaged.
    fn verify(&self) -> Result<()> {
        let first = self.pages.get(&1).and_then(|w| w.content.as_deref());
        let have_checksums = match first {
            Some(first) => checksum::is_reserved(first),
            None => self.database.checksums.load(Ordering::Relaxed),
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
