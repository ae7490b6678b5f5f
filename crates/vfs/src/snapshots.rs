//! One snapshot for all connections of a database that read the same commit.
//!
//! Beginning and ending a snapshot in the engine takes a lock that a commit takes, too. Hundreds of
//! thousands of readers per second would delay the writer there; here they share a
//! reference-counted snapshot without a lock, and the engine sees one per commit.
//!
//! Readers that never block also occupy the cores: for each commit, a writer whose sync has ended
//! waits some milliseconds until one of them has used up its time slice. So readers yield the CPU
//! from time to time while a commit is in progress.
//!
//! Invariants:
//! - `begin` never returns an older state than the durable one at its call.
//! - The slot alone does not keep a snapshot alive: it is weak, so an idle database has no readers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapWeak;
use windlass_engine::{Database, ReadSnapshot};

/// How long a reader runs without yielding while a commit is in progress: a small part of a time
/// slice, and long compared to a context switch.
const OFFER_PAUSE: Duration = Duration::from_micros(500);

/// A database, and the snapshot that its readers share.
#[derive(Debug)]
pub(crate) struct Snapshots {
    database: Arc<Database>,
    current: ArcSwapWeak<ReadSnapshot>,
    committing: AtomicUsize,
}

/// A commit in progress, until it is dropped.
#[derive(Debug)]
pub(crate) struct Committing<'a>(&'a AtomicUsize);

impl Drop for Committing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Snapshots {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self {
            database,
            current: ArcSwapWeak::from(Weak::new()),
            committing: AtomicUsize::new(0),
        }
    }

    pub(crate) fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Announces a commit in progress.
    pub(crate) fn committing(&self) -> Committing<'_> {
        self.committing.fetch_add(1, Ordering::Relaxed);
        Committing(&self.committing)
    }

    /// Yields the CPU while a commit is in progress, unless it did so less than [`OFFER_PAUSE`] ago,
    /// at `offered`.
    pub(crate) fn offer_processor(&self, offered: &mut Option<Instant>) {
        if self.committing.load(Ordering::Relaxed) == 0 {
            return;
        }
        if offered.is_none_or(|offered| offered.elapsed() >= OFFER_PAUSE) {
            std::thread::yield_now();
            *offered = Some(Instant::now());
        }
    }

    /// The state at the last durable commit.
    pub(crate) fn begin(&self) -> Arc<ReadSnapshot> {
        let durable = self.database.durable_sequence();
        match self.current.load().upgrade() {
            Some(snapshot) if snapshot.sequence() == durable => snapshot,
            _ => self.share(self.database.begin_read_durable()),
        }
    }

    /// Makes a snapshot of a durable commit available to new readers. An outdated one does no harm:
    /// `begin` compares commit numbers.
    pub(crate) fn share(&self, snapshot: ReadSnapshot) -> Arc<ReadSnapshot> {
        let snapshot = Arc::new(snapshot);
        self.current.store(Arc::downgrade(&snapshot));
        snapshot
    }
}
