//! Model checks: run a few threads in thousands of schedules, chosen by `shuttle`.
//!
//! `cargo test -p windlass-engine --features model --lib model::`. A check asserts an invariant of
//! the module it is named after; its threads do what the engine does there, without files.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use shuttle::thread;
use windlass_base::{Guid, PageNumber};

use crate::differential::DifferentialMaps;
use crate::dirty::DirtyPages;
use crate::log::Position;
use crate::log::header::LOG_AREA;
use crate::log::record::Group;
use crate::log::vlf::divide;
use crate::log::writer::{Log, Resume};
use crate::pool::{Change, DatabaseNumber, PageKey, Picked, Pool};
use crate::storage::{SECTOR_BYTES, StorageFile};
use crate::sync::{Mutex, RwLock};
use crate::versions::{Commit, Versions};
use windlass_base::page::PAGE_BYTES;

const ORDERS: usize = 3000;

/// Runs half of the schedules at random, and half with few, badly placed thread switches.
fn check(run: impl Fn() + Send + Sync + 'static) {
    let run = Arc::new(run);
    let other = Arc::clone(&run);
    shuttle::check_random(move || run(), ORDERS / 2);
    shuttle::check_pct(move || other(), ORDERS / 2, 3);
}

fn at(block: u8) -> Position {
    Position::new(1, u32::from(block))
}

fn number(page: u32) -> PageNumber {
    PageNumber::from_sqlite(page).unwrap()
}

fn key(page: PageNumber) -> PageKey {
    PageKey {
        database: DatabaseNumber(1),
        page,
    }
}

/// A database without files: its log is a counter, its disk a map. Each commit changes one page.
struct World {
    pool: Pool,
    dirty: DirtyPages,
    maps: DifferentialMaps,
    gate: Mutex<()>,
    end: Mutex<u8>,
    changes: Mutex<Vec<(PageNumber, u8)>>,
    disk: Mutex<BTreeMap<PageNumber, u8>>,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            pool: Pool::new(8).unwrap(),
            dirty: DirtyPages::new(2),
            maps: DifferentialMaps::default(),
            gate: Mutex::default(),
            end: Mutex::new(1),
            changes: Mutex::default(),
            disk: Mutex::default(),
        })
    }

    fn commit(&self, page: PageNumber) {
        let _gate = self.gate.lock();
        let start = *self.end.lock();
        let _prepared = self.dirty.prepare(self.dirty.redo_start(at(start)));
        let image = self.pool.look(key(page), |_, first| first).flatten();
        self.maps.mark(std::iter::once(page.extent()));
        *self.end.lock() += 1;
        self.changes.lock().push((page, start));
        let change = Change {
            first: image.unwrap_or(at(start)),
            end: at(start + 1),
            scheduler: start % 2,
        };
        let content = [start; PAGE_BYTES];
        assert!(
            self.pool
                .install_dirty(key(page), &content, change, &self.dirty)
        );
    }

    fn write(&self, page: PageNumber, fails: bool) {
        let mut content = [0; PAGE_BYTES];
        match self.pool.pick(key(page), &mut content, &self.dirty) {
            Picked::Page(change) => {
                thread::yield_now();
                if !fails {
                    self.disk.lock().insert(page, content[0]);
                }
                let restored = fails.then_some(change.first);
                self.pool.written(key(page), restored, &self.dirty);
            }
            Picked::Writing => self.dirty.wait_written(&[page]),
            Picked::Clean => {}
        }
    }

    /// Takes a redo start and syncs; `None` if a write failed in the meantime.
    fn redo_start(&self) -> Option<(Position, BTreeMap<PageNumber, u8>)> {
        let (failures, redo) = {
            let _gate = self.gate.lock();
            let failures = self.dirty.failures();
            (failures, self.dirty.redo_start(at(*self.end.lock())))
        };
        let durable = self.disk.lock().clone();
        (self.dirty.failures() == failures).then_some((redo, durable))
    }

    fn changes(&self) -> Vec<(PageNumber, u8)> {
        self.changes.lock().clone()
    }
}

#[test]
fn dirty_no_redo_start_passes_a_change_that_is_not_on_disk() {
    check(|| {
        let world = World::new();
        let mut threads = Vec::new();
        let mut spawn = |run: fn(&World)| {
            let world = Arc::clone(&world);
            threads.push(thread::spawn(move || run(&world)));
        };
        spawn(|world| {
            [1, 2, 1]
                .map(number)
                .into_iter()
                .for_each(|page| world.commit(page))
        });
        spawn(|world| {
            [2, 1]
                .map(number)
                .into_iter()
                .for_each(|page| world.commit(page))
        });
        spawn(|world| {
            world.write(number(1), true);
            world.write(number(2), false);
            world.write(number(1), false);
        });
        spawn(|world| {
            [1, 2]
                .map(number)
                .into_iter()
                .for_each(|page| world.write(page, false))
        });
        for _ in 0..3 {
            if let Some((redo, durable)) = world.redo_start() {
                for (page, block) in world.changes() {
                    let written = durable.get(&page).copied().unwrap_or(0);
                    assert!(
                        at(block) >= redo || written >= block,
                        "page {page}, change {block}: {written} on disk, redo from {redo:?}"
                    );
                }
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn backup_every_change_is_in_the_copy_in_its_log_or_in_the_new_map() {
    check(|| {
        let world = World::new();
        let pages = [1, 9, 17].map(number);
        let committer = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                [1, 9, 1, 17]
                    .map(number)
                    .into_iter()
                    .for_each(|page| world.commit(page))
            })
        };
        let writer = {
            // Makes room in the pool, which no lock prevents during a backup.
            let world = Arc::clone(&world);
            thread::spawn(move || {
                [1, 9]
                    .map(number)
                    .into_iter()
                    .for_each(|page| world.write(page, false))
            })
        };
        world.maps.begin(1);
        world.dirty.drain_preparing();
        let limit = at(*world.end.lock());
        loop {
            let (listed, _) = world.dirty.before(limit, 10);
            if listed.is_empty() {
                break;
            }
            listed.into_iter().for_each(|page| world.write(page, false));
        }
        let (redo, _) = world.redo_start().unwrap();
        let mut copy = BTreeMap::new();
        for page in pages {
            let content = world.disk.lock().get(&page).copied().unwrap_or(0);
            copy.insert(page, content);
        }
        let end = {
            let _gate = world.gate.lock();
            at(*world.end.lock())
        };
        thread::yield_now();
        world.maps.become_base(1);
        committer.join().unwrap();
        writer.join().unwrap();
        let map = world.maps.current();
        for (page, block) in world.changes() {
            let is_logged = (redo..end).contains(&at(block));
            assert!(
                copy[&page] >= block || is_logged || map.is_set(page.extent()),
                "page {page}, change {block}: {copy:?}, log from {redo:?} to {end:?}"
            );
        }
    });
}

/// Like `Database::read_at`, on one page whose content is the number of its commit.
fn read(versions: &Versions, page: &RwLock<u8>, commit: Commit) -> u8 {
    let old = || {
        versions
            .find(number(1), commit.sequence)
            .map(|content| content[0])
    };
    if !versions.is_newest(commit.sequence)
        && let Some(content) = old()
    {
        return content;
    }
    let content = *page.read();
    if !versions.is_newest(commit.sequence)
        && let Some(content) = old()
    {
        return content;
    }
    content
}

#[test]
fn versions_a_reader_sees_the_commit_at_which_it_began() {
    check(|| {
        let first = Commit {
            sequence: 1,
            page_count: 1,
        };
        let versions = Arc::new(Versions::new(first));
        let page = Arc::new(RwLock::new(1_u8));
        let mut threads = Vec::new();
        for is_durable in [false, true] {
            let (versions, page) = (Arc::clone(&versions), Arc::clone(&page));
            threads.push(thread::spawn(move || {
                for _ in 0..2 {
                    let commit = if is_durable {
                        versions.begin_durable()
                    } else {
                        versions.begin()
                    };
                    for _ in 0..2 {
                        assert_eq!(u64::from(read(&versions, &page, commit)), commit.sequence);
                    }
                    versions.end(commit.sequence);
                }
            }));
        }
        for sequence in 2..5_u8 {
            let commit = Commit {
                sequence: u64::from(sequence),
                page_count: 1,
            };
            let before = *page.read();
            versions.save(number(1), commit.sequence, &[before]);
            versions.start(commit.sequence);
            *page.write() = sequence;
            versions.publish(commit);
            let own = versions.begin();
            versions.set_durable(own);
            versions.end(own.sequence);
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!((versions.bytes(), versions.reader_count()), (0, 0));
    });
}

/// A file that records which bytes were synced, and whose sync with a given number fails.
#[derive(Debug)]
struct LogFile {
    state: std::sync::Mutex<LogState>,
    fails_at: usize,
}

#[derive(Debug, Default)]
struct LogState {
    written: Vec<(u64, u64)>,
    durable: Vec<(u64, u64)>,
    syncs: usize,
    has_failed: bool,
}

impl LogFile {
    fn state(&self) -> std::sync::MutexGuard<'_, LogState> {
        self.state.lock().unwrap()
    }
}

impl StorageFile for LogFile {
    fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
        Ok(0)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        thread::yield_now();
        let mut state = self.state();
        assert!(!state.has_failed, "written to after a failed sync");
        state.written.push((offset, offset + buffer.len() as u64));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let before = self.state().written.clone();
        thread::yield_now();
        let mut state = self.state();
        assert!(!state.has_failed, "synced again after a failed sync");
        state.syncs += 1;
        if state.syncs == self.fails_at {
            state.has_failed = true;
            return Err(io::Error::other("sync"));
        }
        state.durable = before;
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn set_len(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn reserve(&self, _offset: u64, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn lock_exclusive(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock_database(&self) -> io::Result<()> {
        Ok(())
    }

    fn unlock(&self) -> io::Result<()> {
        Ok(())
    }
}

fn commits_share_syncs(fails_at: usize) {
    check(move || {
        let file = Arc::new(LogFile {
            state: std::sync::Mutex::default(),
            fails_at,
        });
        let vlfs = divide(LOG_AREA, 1 << 20);
        let start = vlfs[0].offset;
        let resume = Resume {
            position: Position::default(),
            previous: 0,
            epoch: 1,
            redo: Position::default(),
            tail: None,
        };
        let storage: Arc<dyn StorageFile> = file.clone();
        let log = Log::resume(storage, Path::new("log"), Guid::default(), vlfs, resume);
        let log = Arc::new(log);
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let (log, file) = (Arc::clone(&log), Arc::clone(&file));
                thread::spawn(move || {
                    for round in 0..2 {
                        let mut group = Group::default();
                        group.commit(1, 0);
                        let Ok(appended) = log.append(&group, number * 2 + round, 0) else {
                            assert!(file.state().has_failed);
                            return;
                        };
                        if log.flush_to(appended.end).is_err() {
                            assert!(file.state().has_failed);
                            return;
                        }
                        let offset =
                            start + u64::from(appended.first.block()) * SECTOR_BYTES as u64;
                        let durable = &file.state().durable;
                        let covered = durable
                            .iter()
                            .any(|part| (part.0..part.1).contains(&offset));
                        assert!(covered, "acknowledged without a sync");
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn log_what_was_acknowledged_was_synced() {
    commits_share_syncs(usize::MAX);
}

#[test]
fn log_after_a_failed_sync_nothing_is_acknowledged_written_or_synced() {
    for fails_at in 1..=3 {
        commits_share_syncs(fails_at);
    }
}
