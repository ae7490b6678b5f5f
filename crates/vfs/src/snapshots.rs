//! One snapshot for all connections of a database that read the same commit.
//!
//! Beginning and ending a snapshot in the engine takes a lock that a commit takes, too. Readers that
//! come and go by the hundred thousand in a second would hold up the writer there; here they share a
//! snapshot by counting it, without a lock, and the engine sees one for each commit.
//!
//! Invariants:
//! - `begin` never gives less than what was durable when it was called.
//! - Nobody keeps a snapshot alive by the slot alone: it is weak, so an idle database has no readers.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwapWeak;
use windlass_engine::{Database, ReadSnapshot};

/// A database, and the snapshot that its readers share.
#[derive(Debug)]
pub(crate) struct Snapshots {
    database: Arc<Database>,
    current: ArcSwapWeak<ReadSnapshot>,
}

impl Snapshots {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self {
            database,
            current: ArcSwapWeak::from(Weak::new()),
        }
    }

    pub(crate) fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// The state at the last durable commit.
    pub(crate) fn begin(&self) -> Arc<ReadSnapshot> {
        let durable = self.database.durable_sequence();
        match self.current.load().upgrade() {
            Some(snapshot) if snapshot.sequence() == durable => snapshot,
            _ => self.share(self.database.begin_read_durable()),
        }
    }

    /// Offers a snapshot of a durable commit to those who begin. An older one does no harm: `begin`
    /// looks at the number.
    pub(crate) fn share(&self, snapshot: ReadSnapshot) -> Arc<ReadSnapshot> {
        let snapshot = Arc::new(snapshot);
        self.current.store(Arc::downgrade(&snapshot));
        snapshot
    }
}
