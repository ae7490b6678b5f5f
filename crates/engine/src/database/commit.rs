//! Makes a transaction durable and visible.
//!
//! Under the commit gate, in this order: register in the prepare-to-dirty list; save the versions
//! that readers may need; write the group (a whole page if the page is clean, byte ranges if it is
//! dirty); mark the differential map; append; install the pages; publish. After releasing the gate:
//! wait for the log.
//!
//! Invariants:
//! - Every change before the append can be undone; any failure after it takes the database offline.
//! - A page logged by ranges is dirty, in the pool and on the lists, from the position of its whole
//!   image on, even if its write completed between the check and the install.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use windlass_base::Lsn;

use super::Database;
use crate::error::{EngineError, Result};
use crate::files::extent_of;
use crate::log::Position;
use crate::log::record::Group;
use crate::log::writer::{AppendError, Appended};
use crate::options::PAGE_SIZE;
use crate::pool::Change;
use crate::versions::{Blocked, Commit};
use windlass_base::page::checksum;

type Pages = BTreeMap<u32, Box<[u8]>>;

/// Share of the log in use at which a checkpoint is requested.
const LOG_USED_PERCENT: u64 = 70;

/// A transaction being committed: the pages that really change, and the images that ranges refer
/// to.
struct Prepared {
    group: Group,
    /// Each page, with the position of its whole image when it was logged by ranges.
    changes: Vec<(u32, Option<Position>)>,
    /// Pages whose old content readers may need.
    replaced: Vec<u32>,
}

impl Database {
    /// Runs everything up to and including the publication. `None` if nothing changed.
    pub(super) fn commit_pages(
        &self,
        mut pages: Pages,
        base: Commit,
        page_count: u32,
    ) -> Result<Option<Appended>> {
        self.check_online()?;
        let before = self.checksums.load(Ordering::Relaxed);
        let after = self.stamp(&mut pages, base, page_count)?;
        if before != after {
            self.figures
                .checksum_changes
                .fetch_add(1, Ordering::Relaxed);
        }
        // While pages with and without checksums are mixed, none is checked.
        self.checksums.store(before && after, Ordering::Relaxed);
        let outcome = self.commit_stamped(&pages, base, page_count);
        let now = if outcome.is_ok() { after } else { before };
        self.checksums.store(now, Ordering::Relaxed);
        outcome
    }

    fn commit_stamped(
        &self,
        pages: &Pages,
        base: Commit,
        page_count: u32,
    ) -> Result<Option<Appended>> {
        let next = Commit {
            sequence: base.sequence + 1,
            page_count,
        };
        let mut grown = false;
        for attempt in 0.. {
            let outcome = self.try_commit(pages, base, next)?;
            let (needed, free) = match outcome {
                Ok(appended) => return Ok(appended),
                Err(room) => room,
            };
            // A checkpoint frees most of the log; the rest must come from growth.
            if attempt == 0 {
                self.checkpoint()?;
            } else if grown {
                return Err(self.log_full(needed, free, "its size does not suffice"));
            } else {
                grown = true;
                self.grow_log(needed, free)?;
            }
        }
        Ok(None)
    }

    /// Waits for the log, after releasing the writer's token.
    pub(super) fn finish_commit(&self, appended: Option<Appended>, sequence: u64) -> Result<Lsn> {
        let (end, lsn) = match appended {
            Some(appended) => (appended.end, appended.lsn),
            None => (self.log.end(), self.log.end().lsn(0)),
        };
        self.flush_log(end)?;
        self.figures
            .durable_sequence
            .fetch_max(sequence, Ordering::AcqRel);
        let (used, size) = self.log.usage();
        if used * 100 > size * LOG_USED_PERCENT && !self.log.is_held() {
            if self.shared.options.background {
                self.shared.wake();
            } else {
                // The commit is durable; if the checkpoint fails, the next one will report it.
                let _failed = self.checkpoint();
            }
        }
        Ok(lsn)
    }

    /// Waits until the log is on disk up to `end`; a failure takes the database offline.
    pub(crate) fn flush_log(&self, end: Position) -> Result<()> {
        self.log
            .flush_to(end)
            .map_err(|error| self.go_offline(error))
    }

    /// Waits until commit `sequence`, which was published, is on disk.
    pub(super) fn wait_durable(&self, sequence: u64) -> Result<()> {
        let durable = self.figures.durable_sequence.load(Ordering::Acquire);
        if durable >= sequence {
            return Ok(());
        }
        let (latest, end) = {
            let _gate = self.gate.lock();
            (self.versions.latest().sequence, self.log.end())
        };
        self.flush_log(end)?;
        self.figures
            .durable_sequence
            .fetch_max(latest, Ordering::AcqRel);
        Ok(())
    }

    /// Writes page checksums if page 1 reserves space for them, and returns whether it does. When
    /// checksums are turned on, the pages not in the transaction also get theirs.
    fn stamp(&self, pages: &mut Pages, base: Commit, page_count: u32) -> Result<bool> {
        let before = self.checksums.load(Ordering::Relaxed);
        let after = match pages.get(&1) {
            Some(first) => checksum::is_reserved(first),
            None => before && page_count > 0,
        };
        if after && !before {
            for page in 2..=page_count.min(base.page_count) {
                if let Entry::Vacant(entry) = pages.entry(page) {
                    let mut content = vec![0; PAGE_SIZE].into_boxed_slice();
                    self.read_current(page, 0, &mut content, false)?;
                    entry.insert(content);
                }
            }
        }
        if after {
            for page in pages.values_mut() {
                checksum::stamp(page);
            }
        }
        Ok(after)
    }

    /// Reads from page 1 whether the database uses page checksums.
    pub(crate) fn note_checksums(&self, page_count: u32) -> Result<()> {
        let mut head = [0; 100];
        if page_count > 0 {
            self.read_current(1, 0, &mut head, false)?;
        }
        self.checksums
            .store(checksum::is_reserved(&head), Ordering::Relaxed);
        Ok(())
    }

    /// Tries once. The inner `Err` has the bytes needed and free if the log has no space.
    fn try_commit(
        &self,
        pages: &Pages,
        base: Commit,
        next: Commit,
    ) -> Result<std::result::Result<Option<Appended>, (u64, u64)>> {
        let _gate = self.gate.lock();
        self.check_online()?;
        self.data.ensure(next.page_count)?;
        let number = self.dirty.prepare(self.dirty.redo_start(self.log.end()));
        let outcome = self.commit_in_gate(pages, base, next);
        self.dirty.finish(number);
        outcome
    }

    fn commit_in_gate(
        &self,
        pages: &Pages,
        base: Commit,
        next: Commit,
    ) -> Result<std::result::Result<Option<Appended>, (u64, u64)>> {
        let mut prepared = self.prepare(pages, base.page_count);
        if prepared.changes.is_empty() && base.page_count == next.page_count {
            return Ok(Ok(None));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix_ms = now.map_or(0, |since| since.as_millis() as u64);
        prepared.group.commit(next.page_count, unix_ms);
        let blocked = self.save_versions(&prepared.replaced, next.sequence)?;
        {
            let mut maps = self.maps.lock();
            for &(page, _) in &prepared.changes {
                maps.mark(extent_of(page));
            }
        }
        let reserve = self.checkpoint_reserve();
        let appended = match self.log.append(&prepared.group, next.sequence, reserve) {
            Ok(appended) => appended,
            Err(error) => {
                self.versions.discard(next.sequence);
                return match error {
                    AppendError::Full { needed, free } => Ok(Err((needed, free))),
                    AppendError::Failed(error) => Err(self.go_offline(error)),
                };
            }
        };
        self.versions.start(next.sequence);
        self.install(pages, &prepared.changes, appended)
            .map_err(|error| self.go_offline(error))?;
        match blocked {
            Some(blocked) => blocked.publish(next),
            None => self.versions.publish(next),
        }
        self.figures.commits.fetch_add(1, Ordering::Relaxed);
        Ok(Ok(Some(appended)))
    }

    /// Writes the group's pages, without those that do not change.
    fn prepare(&self, pages: &Pages, page_count: u32) -> Prepared {
        let visible = self.versions.pages_visible();
        let mut prepared = Prepared {
            group: Group::default(),
            changes: Vec::new(),
            replaced: Vec::new(),
        };
        for (&page, content) in pages {
            let group = &mut prepared.group;
            let looked = self
                .shared
                .pool
                .look(self.key(page), |old, first| match first {
                    Some(first) => (group.page_change(page, old, content), Some(first)),
                    None => (old != content.as_ref(), None),
                });
            match looked {
                // Equal to the stored content. A page that was cut off and added again may differ
                // on disk.
                Some((false, _)) if page <= page_count => continue,
                Some((true, Some(first))) => prepared.changes.push((page, Some(first))),
                _ => {
                    group.page_image(page, content);
                    prepared.changes.push((page, None));
                }
            }
            if page <= visible {
                prepared.replaced.push(page);
            }
        }
        prepared
    }

    /// Saves the replaced content that readers may need. If it exceeds the limit and there are no
    /// readers, new readers are blocked until the commit is published.
    fn save_versions(&self, replaced: &[u32], sequence: u64) -> Result<Option<Blocked<'_>>> {
        let limit = self.shared.options.version_bytes_max;
        let bytes = replaced.len() as u64 * PAGE_SIZE as u64 + self.versions.bytes();
        if bytes > limit {
            let blocked = self.versions.block();
            // The one reader is the transaction itself.
            if blocked.reader_count() > 1 {
                return Err(EngineError::VersionsFull {
                    database: self.name.clone(),
                    limit,
                });
            }
            return Ok(Some(blocked));
        }
        let mut content = [0; PAGE_SIZE];
        for &page in replaced {
            if let Err(error) = self.read_current(page, 0, &mut content, true) {
                // A damaged page may be replaced; only a reader that needs it gets the error.
                if !matches!(error, EngineError::PageChecksum { .. }) {
                    self.versions.discard(sequence);
                    return Err(error);
                }
                self.read_current(page, 0, &mut content, false)?;
            }
            self.versions.save(page, sequence, &content);
        }
        Ok(None)
    }

    fn install(
        &self,
        pages: &Pages,
        changes: &[(u32, Option<Position>)],
        appended: Appended,
    ) -> Result<()> {
        let scheduler = self.dirty.scheduler();
        for &(page, image) in changes {
            let change = Change {
                first: image.unwrap_or(appended.first),
                end: appended.end,
                scheduler,
            };
            self.install_page(page, &pages[&page], change)?;
        }
        Ok(())
    }

    /// Installs a dirty page in the pool, writing other pages if there is no free buffer.
    pub(super) fn install_page(&self, page: u32, content: &[u8], change: Change) -> Result<()> {
        let (key, pool) = (self.key(page), &self.shared.pool);
        let mut attempts = 0_u32;
        while !pool.install_dirty(key, content, change, &self.dirty) {
            self.shared.make_room(key, self)?;
            attempts += 1;
            if attempts > 1_000_000 {
                return Err(EngineError::NoFreeBuffer {
                    pool_pages: pool.pages(),
                    reason: "all stay dirty; another database's files may be full".to_owned(),
                });
            }
        }
        Ok(())
    }

    fn log_full(&self, needed: u64, free: u64, reason: &str) -> EngineError {
        let held = if self.log.is_held() {
            "; a backup under way holds the log"
        } else {
            ""
        };
        EngineError::LogFull {
            database: self.name.clone(),
            needed,
            free,
            reason: format!("{reason}{held}"),
        }
    }

    /// Grows the log for a transaction of `needed` bytes.
    pub(super) fn grow_log(&self, needed: u64, free: u64) -> Result<()> {
        let _gate = self.gate.lock();
        let mut stored = self.header.lock();
        let mut spec = stored.log.clone();
        let grown = self.log.grow(&mut spec, needed, |spec, vlfs| {
            stored.log = spec.clone();
            self.store_header(&mut stored, Some(vlfs))
        });
        grown.map_err(|reason| self.log_full(needed, free, &reason))
    }
}
