//! Makes a transaction durable and visible.
//!
//! Under the commit gate, in this order: register in the prepare-to-dirty list; save the versions
//! that readers may need; write the group (a whole page if the page is clean, byte ranges if it is
//! dirty); mark the differential map; append; install the pages; publish. After releasing the gate
//! and the writer's token: wait for the log.
//!
//! Invariants:
//! - The gate is held from the check for dirty pages until all pages of the commit are on the
//!   lists, and while a checkpoint takes its redo start. No redo start can therefore pass a page of
//!   a commit in progress. While it is held, the last commit that can be read is the last one in
//!   the log.
//! - Every change before the append can be undone; any failure after it takes the database offline.
//! - A page logged by ranges is dirty, in the pool and on the lists, from the position of its whole
//!   image on, even if its write completed between the check and the install.
//! - A commit is acknowledged once the log is on disk up to its end.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use windlass_base::page::{PAGE_BYTES, checksum};
use windlass_base::{Guid, Lsn, PageNumber};

use super::Database;
use super::read::Checksum;
use super::writer::WriterToken;
use crate::error::{EngineError, Result};
use crate::log::record::{Group, Mark};
use crate::log::writer::{AppendError, Appended, NoRoom};
use crate::log::{LogReuseWait, Position, Tail};
use crate::opening;
use crate::options::RecoveryModel;
use crate::pool::Change;
use crate::versions::{Blocked, Commit};

pub(super) type Pages = BTreeMap<PageNumber, Box<[u8]>>;

/// Share of the log in use at which a checkpoint is requested.
const LOG_USED_PERCENT: u64 = 70;

/// The commit gate, and which commits are on disk.
#[derive(Debug, Default)]
pub(super) struct Commits {
    gate: Mutex<()>,
    /// Commits up to this one are on disk.
    durable: AtomicU64,
}

/// While this exists, no transaction commits.
#[derive(Debug)]
pub(super) struct Gate<'a> {
    _held: MutexGuard<'a, ()>,
}

impl Commits {
    pub(super) fn gate(&self) -> Gate<'_> {
        Gate {
            _held: self.gate.lock(),
        }
    }

    /// Number of the last commit known to be on disk.
    pub(super) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// The log is on disk up to the end of commit `sequence`.
    pub(super) fn are_durable(&self, sequence: u64) {
        self.durable.fetch_max(sequence, Ordering::AcqRel);
    }
}

/// A commit that is in the log, if not yet on disk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Published {
    pub(super) appended: Appended,
    /// In milliseconds since 1970, UTC.
    pub(super) unix_ms: u64,
    pub(super) is_marked: bool,
}

/// The outcome of one attempt to commit.
enum Attempt {
    Committed(Published),
    /// Every page equals its stored content.
    Unchanged,
    /// The log is full; nothing was changed.
    NoRoom(NoRoom),
}

/// A transaction being committed: the pages that really change, and the images that ranges refer
/// to.
struct Prepared {
    group: Group,
    /// Each page, with the position of its whole image when it was logged by ranges.
    changes: Vec<(PageNumber, Option<Position>)>,
    /// Pages whose old content readers may need.
    replaced: Vec<PageNumber>,
}

/// An error after the commit reached the log: a program that takes it for a rollback would do everything twice.
fn outcome_open(error: EngineError) -> EngineError {
    match error {
        EngineError::Offline { .. } | EngineError::OutcomeOpen { .. } => error,
        other => EngineError::OutcomeOpen {
            source: Box::new(other),
        },
    }
}

impl Database {
    /// Publishes `pages` as the commit after `base`; `None` if nothing changed.
    /// [`Database::acknowledge`] makes it durable.
    pub(super) fn publish(
        &self,
        writer: &WriterToken,
        mut pages: Pages,
        base: Commit,
        page_count: u32,
        mark: Option<&Mark>,
    ) -> Result<Option<Published>> {
        self.check_online()?;
        let (opening, base) = self.mark_opening(writer, base)?;
        if let Some(first) = pages.get_mut(&PageNumber::FIRST) {
            opening::mark(first, opening);
        }
        self.publish_signed(writer, pages, base, page_count, mark)
    }

    /// Before the first commit of an opening, puts its mark on the only data file, so that nothing else is in the
    /// file before. Returns the opening, and the last commit.
    fn mark_opening(&self, writer: &WriterToken, base: Commit) -> Result<(Guid, Commit)> {
        if let Some(opening) = self.opening.get() {
            return Ok((*opening, base));
        }
        let opening = Guid::random();
        let mut first = vec![0; PAGE_BYTES].into_boxed_slice();
        if base.page_count > 0 && self.data.single().is_some() {
            self.read_current(PageNumber::FIRST, 0, &mut first, Checksum::Ignored)?;
        }
        let is_marked = opening::mark(&mut first, opening);
        if is_marked {
            let pages = Pages::from([(PageNumber::FIRST, first)]);
            let published = self.publish_signed(writer, pages, base, base.page_count, None)?;
            self.acknowledge(published, base.sequence + 1)?;
            // The commit of the user behind it may fail: what is durable until then, the next ones begin with.
            self.versions.set_durable(Commit {
                sequence: base.sequence + 1,
                page_count: base.page_count,
            });
        }
        self.header.opens(opening);
        if is_marked {
            self.checkpoint()?;
        }
        let opening = *self.opening.get_or_init(|| opening);
        Ok((opening, self.versions.latest()))
    }

    fn publish_signed(
        &self,
        writer: &WriterToken,
        mut pages: Pages,
        base: Commit,
        page_count: u32,
        mark: Option<&Mark>,
    ) -> Result<Option<Published>> {
        let have_checksums = self.stamp(&mut pages, base, page_count)?;
        let next = Commit {
            sequence: base.sequence + 1,
            page_count,
        };
        self.checksums.turn(writer, have_checksums, || {
            self.make_room_and_commit(&pages, base, next, mark)
        })
    }

    fn make_room_and_commit(
        &self,
        pages: &Pages,
        base: Commit,
        next: Commit,
        mark: Option<&Mark>,
    ) -> Result<Option<Published>> {
        let mut attempt = self.attempt(pages, base, next, mark)?;
        // A checkpoint frees most of the log, unless that waits for a backup; the rest must come from growth.
        if matches!(attempt, Attempt::NoRoom(_)) && !self.log.is_held() {
            self.checkpoint()?;
            attempt = self.attempt(pages, base, next, mark)?;
        }
        if let Attempt::NoRoom(room) = attempt {
            self.grow_log(room)?;
            attempt = self.attempt(pages, base, next, mark)?;
        }
        match attempt {
            Attempt::Committed(published) => Ok(Some(published)),
            Attempt::Unchanged => Ok(None),
            Attempt::NoRoom(room) => Err(self.log_full(room, "its size does not suffice")),
        }
    }

    /// Waits until a published commit is on disk, and returns its last record.
    pub(super) fn acknowledge(&self, published: Option<Published>, sequence: u64) -> Result<Lsn> {
        let (end, lsn) = match published {
            Some(Published { appended, .. }) => (appended.end, appended.lsn),
            None => (self.log.end(), self.log.end().lsn(0)),
        };
        self.log.flush_to(end).map_err(outcome_open)?;
        self.commits.are_durable(sequence);
        if self.log.usage().exceeds(LOG_USED_PERCENT) && !self.log.is_held() {
            if self.shared.options.background {
                self.shared.wake();
            } else {
                // The commit is durable; if the checkpoint fails, the next one will report it.
                let _failed = self.checkpoint();
            }
        }
        Ok(lsn)
    }

    /// Waits until commit `sequence`, which was published, is on disk.
    pub(super) fn wait_durable(&self, sequence: u64) -> Result<()> {
        if self.commits.durable() >= sequence {
            return Ok(());
        }
        let (end, latest) = self.end_and_latest();
        self.log.flush_to(end).map_err(outcome_open)?;
        self.commits.are_durable(latest.sequence);
        Ok(())
    }

    /// The end of the log, and the last commit before it.
    pub(super) fn end_and_latest(&self) -> (Position, Commit) {
        let _gate = self.commits.gate();
        (self.log.end(), self.versions.latest())
    }

    /// The same, and the time: no earlier commit is later.
    pub(super) fn end_latest_and_time(&self) -> (Tail, Commit, u64) {
        let gate = self.commits.gate();
        let unix_ms = self.header.end_time(&gate);
        (self.log.next_tail(), self.versions.latest(), unix_ms)
    }

    /// Writes page checksums if page 1 reserves space for them, and returns whether it does. When
    /// checksums are turned on, the pages not in the transaction also get theirs.
    fn stamp(&self, pages: &mut Pages, base: Commit, page_count: u32) -> Result<bool> {
        let before = self.checksums.are_on();
        let after = match pages.get(&PageNumber::FIRST) {
            Some(first) => checksum::is_reserved(first),
            None => before && page_count > 0,
        };
        if after && !before {
            for page in PageNumber::all(page_count.min(base.page_count)).skip(1) {
                if let Entry::Vacant(entry) = pages.entry(page) {
                    let mut content = vec![0; PAGE_BYTES].into_boxed_slice();
                    self.read_current(page, 0, &mut content, Checksum::Ignored)?;
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

    fn attempt(
        &self,
        pages: &Pages,
        base: Commit,
        next: Commit,
        mark: Option<&Mark>,
    ) -> Result<Attempt> {
        let gate = self.commits.gate();
        self.check_online()?;
        self.data.ensure(next.page_count)?;
        let _listed = self.dirty.prepare(self.dirty.redo_start(self.log.end()));
        let mut prepared = self.prepare(&gate, pages, base.page_count);
        if prepared.changes.is_empty() && base.page_count == next.page_count {
            return Ok(Attempt::Unchanged);
        }
        // A log that no backup will have needs no marks, and other programs may read it.
        let mark = mark.filter(|_| self.recovery_model() == RecoveryModel::Full);
        if let Some(mark) = mark {
            prepared.group.mark(mark);
        }
        let unix_ms = self.header.commit_time(&gate);
        prepared.group.commit(next.page_count, unix_ms);
        let blocked = self.save_versions(&prepared.replaced, next.sequence)?;
        let changed = prepared.changes.iter();
        self.maps.mark(changed.map(|&(page, _)| page.extent()));
        let reserve = self.checkpoint_reserve();
        let appended = match self.log.append(&prepared.group, next.sequence, reserve) {
            Ok(appended) => appended,
            Err(error) => {
                self.versions.discard(next.sequence);
                return match error {
                    AppendError::NoRoom(room) => Ok(Attempt::NoRoom(room)),
                    AppendError::Failed(error) => Err(outcome_open(error)),
                };
            }
        };
        self.versions.start(next.sequence);
        self.install(&gate, pages, &prepared.changes, appended)
            .map_err(|error| outcome_open(self.log.fail(error)))?;
        match blocked {
            Some(blocked) => blocked.publish(next),
            None => self.versions.publish(next),
        }
        self.figures.commits.fetch_add(1, Ordering::Relaxed);
        Ok(Attempt::Committed(Published {
            appended,
            unix_ms,
            is_marked: mark.is_some(),
        }))
    }

    /// Writes the group's pages, without those that do not change.
    fn prepare(&self, _gate: &Gate<'_>, pages: &Pages, page_count: u32) -> Prepared {
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
                Some((false, _)) if page.is_within(page_count) => continue,
                Some((true, Some(first))) => prepared.changes.push((page, Some(first))),
                _ => {
                    group.page_image(page, content);
                    prepared.changes.push((page, None));
                }
            }
            if page.is_within(visible) {
                prepared.replaced.push(page);
            }
        }
        prepared
    }

    /// Saves the replaced content that readers may need. If it exceeds the limit and there are no
    /// readers, new readers are blocked until the commit is published.
    fn save_versions(&self, replaced: &[PageNumber], sequence: u64) -> Result<Option<Blocked<'_>>> {
        let limit = self.shared.options.version_bytes_max;
        let bytes = replaced.len() as u64 * PAGE_BYTES as u64 + self.versions.bytes();
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
        let mut content = [0; PAGE_BYTES];
        for &page in replaced {
            if let Err(error) = self.read_current(page, 0, &mut content, Checksum::Verified) {
                // A damaged page may be replaced; only a reader that needs it gets the error.
                if !matches!(error, EngineError::PageChecksum { .. }) {
                    self.versions.discard(sequence);
                    return Err(error);
                }
                self.read_current(page, 0, &mut content, Checksum::Ignored)?;
            }
            self.versions.save(page, sequence, &content);
        }
        Ok(None)
    }

    fn install(
        &self,
        _gate: &Gate<'_>,
        pages: &Pages,
        changes: &[(PageNumber, Option<Position>)],
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
    pub(super) fn install_page(
        &self,
        page: PageNumber,
        content: &[u8],
        change: Change,
    ) -> Result<()> {
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

    pub(super) fn log_full(&self, room: NoRoom, reason: &str) -> EngineError {
        let held = match self.log.reuse_wait() {
            LogReuseWait::LogBackup => "; it waits for a log backup",
            LogReuseWait::ActiveBackup => "; a backup under way holds it",
            LogReuseWait::Checkpoint | LogReuseWait::Nothing => "",
        };
        EngineError::LogFull {
            database: self.name.clone(),
            needed: room.needed,
            free: room.free,
            wait: self.log.reuse_wait(),
            reason: format!("{reason}{held}"),
        }
    }

    /// Grows the log for a transaction that found no room.
    pub(super) fn grow_log(&self, room: NoRoom) -> Result<()> {
        let _gate = self.commits.gate();
        let spec = self.header.log_spec();
        let grown = self.log.grow(spec, room.needed, |spec, vlfs| {
            self.header.write(&self.log, &self.data, |header| {
                header.log = spec;
                header.vlfs = vlfs;
            })
        });
        grown.map_err(|reason| self.log_full(room, &reason))
    }
}
