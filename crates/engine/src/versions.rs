//! Which commits can be read, and the old page versions that make the older ones readable.
//!
//! Invariants:
//! - A version is saved before the page is replaced in the pool, and kept while a snapshot older
//!   than the replacing commit lives.
//! - While a commit is being installed, all pages it replaces are saved: a reader that starts at
//!   that moment starts at the previous commit and finds them here. Readers therefore never wait.
//! - `sequence_started` is raised before the first page is replaced; a reader that still sees its
//!   own number there after reading a page has read the right version from the pool.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use windlass_base::PageNumber;

use crate::sync::{AtomicU64, Mutex, MutexGuard, RwLock};

/// A commit that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) sequence: u64,
    pub(crate) page_count: u32,
}

/// A page version: valid before commit `until`.
#[derive(Debug)]
struct Version {
    until: u64,
    content: Arc<[u8]>,
}

#[derive(Debug, Default)]
struct Store {
    pages: HashMap<PageNumber, Vec<Version>>,
    order: BTreeSet<(u64, PageNumber)>,
    bytes: u64,
}

/// Snapshots and versions of one database.
#[derive(Debug)]
pub(crate) struct Versions {
    sequence_started: AtomicU64,
    readers: Mutex<Readers>,
    store: RwLock<Store>,
}

/// Readers cannot start or end while this guard exists.
#[derive(Debug)]
pub(crate) struct Blocked<'a>(MutexGuard<'a, Readers>);

impl Blocked<'_> {
    /// Readers open now.
    pub(crate) fn reader_count(&self) -> usize {
        // One is the last durable commit, which may have no readers.
        let open: usize = self.0.snapshots.values().map(|entry| entry.0).sum();
        open - 1
    }

    /// Publishes commit `latest`: new readers start there. Nothing older can be read any more.
    pub(crate) fn publish(mut self, latest: Commit) {
        self.0.latest = latest;
        let before = std::mem::replace(&mut self.0.durable, latest);
        self.0.register(latest);
        self.0.release(before.sequence);
    }
}

#[derive(Debug)]
struct Readers {
    latest: Commit,
    /// The last commit known to be on disk. It counts as a snapshot, so that readers can start
    /// there.
    durable: Commit,
    snapshots: BTreeMap<u64, (usize, u32)>,
}

impl Readers {
    fn register(&mut self, commit: Commit) {
        let entry = self.snapshots.entry(commit.sequence);
        entry.or_insert((0, commit.page_count)).0 += 1;
    }

    /// Returns whether it was the last reader of its commit.
    fn release(&mut self, sequence: u64) -> bool {
        let Some(entry) = self.snapshots.get_mut(&sequence) else {
            return false;
        };
        entry.0 -= 1;
        let is_last = entry.0 == 0;
        if is_last {
            self.snapshots.remove(&sequence);
        }
        is_last
    }
}

impl Versions {
    pub(crate) fn new(latest: Commit) -> Self {
        Self {
            sequence_started: AtomicU64::new(latest.sequence),
            readers: Mutex::new(Readers {
                latest,
                durable: latest,
                snapshots: BTreeMap::from([(latest.sequence, (1, latest.page_count))]),
            }),
            store: RwLock::default(),
        }
    }

    /// The last commit that can be read.
    pub(crate) fn latest(&self) -> Commit {
        self.readers.lock().latest
    }

    /// Registers a reader of the last commit.
    pub(crate) fn begin(&self) -> Commit {
        let mut readers = self.readers.lock();
        let latest = readers.latest;
        readers.register(latest);
        latest
    }

    /// Registers a reader of the last durable commit.
    pub(crate) fn begin_durable(&self) -> Commit {
        let mut readers = self.readers.lock();
        let durable = readers.durable;
        readers.register(durable);
        durable
    }

    /// Lets readers start at `commit`: it is on disk, and the caller reads it.
    pub(crate) fn set_durable(&self, commit: Commit) {
        let mut readers = self.readers.lock();
        if commit.sequence <= readers.durable.sequence {
            return;
        }
        readers.register(commit);
        let before = std::mem::replace(&mut readers.durable, commit);
        if readers.release(before.sequence) {
            self.collect(&readers);
        }
    }

    /// Registers another reader of a commit that is being read.
    pub(crate) fn again(&self, commit: Commit) {
        self.readers.lock().register(commit);
    }

    /// Ends a reader; versions that no reader needs any more are removed.
    pub(crate) fn end(&self, sequence: u64) {
        let mut readers = self.readers.lock();
        if readers.release(sequence) {
            self.collect(&readers);
        }
    }

    /// Snapshots open now.
    pub(crate) fn reader_count(&self) -> usize {
        let readers = self.readers.lock();
        let open: usize = readers.snapshots.values().map(|entry| entry.0).sum();
        open - 1
    }

    /// Bytes of versions kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.store.read().bytes
    }

    /// Number of pages of the largest database that a current or new reader sees.
    pub(crate) fn pages_visible(&self) -> u32 {
        let readers = self.readers.lock();
        let oldest = readers.snapshots.values().map(|entry| entry.1).max();
        oldest.unwrap_or(0).max(readers.latest.page_count)
    }

    /// Marks the start of replacing pages for commit `sequence`.
    pub(crate) fn start(&self, sequence: u64) {
        self.sequence_started.store(sequence, Ordering::SeqCst);
    }

    /// Whether no page was replaced since commit `sequence`.
    pub(crate) fn is_newest(&self, sequence: u64) -> bool {
        self.sequence_started.load(Ordering::SeqCst) == sequence
    }

    /// Saves the content that commit `until` replaces.
    pub(crate) fn save(&self, page: PageNumber, until: u64, content: &[u8]) {
        let mut store = self.store.write();
        store.bytes += content.len() as u64;
        store.order.insert((until, page));
        store.pages.entry(page).or_default().push(Version {
            until,
            content: content.into(),
        });
    }

    /// Discards what a failed commit saved.
    pub(crate) fn discard(&self, until: u64) {
        let mut store = self.store.write();
        let gone = store.order.split_off(&(until, PageNumber::FIRST));
        for (_, page) in gone {
            store.remove_newest(page, until);
        }
    }

    /// The page as commit `sequence` shows it, if it was replaced since.
    pub(crate) fn find(&self, page: PageNumber, sequence: u64) -> Option<Arc<[u8]>> {
        let store = self.store.read();
        let versions = store.pages.get(&page)?;
        let index = versions.partition_point(|version| version.until <= sequence);
        versions
            .get(index)
            .map(|version| Arc::clone(&version.content))
    }

    /// Publishes commit `latest`. Versions that were saved for readers that do not exist are
    /// removed.
    pub(crate) fn publish(&self, latest: Commit) {
        let mut readers = self.readers.lock();
        readers.latest = latest;
        self.drop_unneeded(&readers, latest.sequence);
        self.collect(&readers);
    }

    /// For a commit that replaces more than may be saved while there are no readers: new readers
    /// wait until the guard publishes it.
    pub(crate) fn block(&self) -> Blocked<'_> {
        Blocked(self.readers.lock())
    }

    fn drop_unneeded(&self, readers: &Readers, until: u64) {
        let mut store = self.store.write();
        let saved: Vec<PageNumber> = store
            .order
            .range((until, PageNumber::FIRST)..=(until, PageNumber::LAST))
            .map(|&(_, page)| page)
            .collect();
        for page in saved {
            let versions = store.pages.get(&page).map_or(&[][..], Vec::as_slice);
            let from = match versions {
                [.., before, _] => before.until,
                _ => 0,
            };
            if readers.snapshots.range(from..until).next().is_none() {
                store.order.remove(&(until, page));
                store.remove_newest(page, until);
            }
        }
    }

    /// Removes versions that only readers older than any open one would need.
    fn collect(&self, readers: &Readers) {
        let oldest = readers
            .snapshots
            .keys()
            .next()
            .map_or(readers.latest.sequence, |&first| {
                first.min(readers.latest.sequence)
            });
        if self
            .store
            .read()
            .order
            .first()
            .is_none_or(|&(until, _)| until > oldest)
        {
            return;
        }
        let mut store = self.store.write();
        while let Some(&(until, page)) = store.order.first() {
            if until > oldest {
                break;
            }
            store.order.pop_first();
            store.remove_oldest(page);
        }
    }
}

impl Store {
    fn remove_oldest(&mut self, page: PageNumber) {
        if let Some(versions) = self.pages.get_mut(&page) {
            if !versions.is_empty() {
                self.bytes -= versions.remove(0).content.len() as u64;
            }
            if versions.is_empty() {
                self.pages.remove(&page);
            }
        }
    }

    fn remove_newest(&mut self, page: PageNumber, until: u64) {
        if let Some(versions) = self.pages.get_mut(&page) {
            if let Some(version) = versions.pop_if(|version| version.until == until) {
                self.bytes -= version.content.len() as u64;
            }
            if versions.is_empty() {
                self.pages.remove(&page);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_live_as_long_as_a_reader_needs_them() {
        let commit = |sequence| Commit {
            sequence,
            page_count: 1,
        };
        let versions = Versions::new(commit(5));
        let reader = versions.begin();
        for sequence in 6..9 {
            versions.start(sequence);
            versions.save(PageNumber::FIRST, sequence, &[sequence as u8 - 1; 4]);
            assert_eq!(
                versions
                    .find(PageNumber::FIRST, sequence - 1)
                    .unwrap()
                    .as_ref(),
                [sequence as u8 - 1; 4]
            );
            versions.publish(commit(sequence));
        }
        assert!(!versions.is_newest(reader.sequence));
        assert_eq!(
            versions.find(PageNumber::FIRST, 5).unwrap().as_ref(),
            [5; 4]
        );
        assert!(
            versions.find(PageNumber::FIRST, 8).is_none(),
            "that is in the pool"
        );
        assert_eq!(versions.bytes(), 4, "versions 6 and 7 were never anybody's");
        versions.end(reader.sequence);
        assert_eq!(versions.bytes(), 4, "commit 5 is the last durable one");
        assert_eq!(versions.begin_durable().sequence, 5);
        let committed = versions.begin();
        versions.set_durable(committed);
        versions.end(committed.sequence);
        assert_eq!(versions.bytes(), 4, "the reader of commit 5");
        versions.end(5);
        assert_eq!(versions.bytes(), 0);
        assert_eq!(versions.begin_durable().sequence, 8);
    }
}
