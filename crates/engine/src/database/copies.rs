//! Backups that copy the data files now, and the extents written under them.
//!
//! Invariants:
//! - While a [`CopyInProgress`] exists, the data files are neither truncated nor written past the
//!   pool.
//! - From [`CopyInProgress::watch`] on, every extent that is written is noted before its write
//!   begins: a torn copy of an extent that is not noted is damage.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use windlass_base::ExtentNumber;

use crate::differential::ExtentMap;

/// The copies of one database in progress.
#[derive(Debug, Default)]
pub(super) struct Copies {
    count: AtomicUsize,
    watching: Mutex<Vec<Arc<SyncObject>>>,
}

/// Records the extents that are written while they are copied.
#[derive(Debug, Default)]
struct SyncObject(Mutex<ExtentMap>);

/// A copy of the data files, until it is dropped.
#[derive(Debug)]
pub(super) struct CopyInProgress {
    copies: Arc<Copies>,
    sync: Arc<SyncObject>,
}

impl Copies {
    pub(super) fn begin(self: &Arc<Self>) -> CopyInProgress {
        self.count.fetch_add(1, Ordering::AcqRel);
        CopyInProgress {
            copies: Arc::clone(self),
            sync: Arc::default(),
        }
    }

    pub(super) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Pages of these extents are about to be written.
    pub(super) fn note(&self, extents: impl Iterator<Item = ExtentNumber>) {
        if !self.any() {
            return;
        }
        let watching = self.watching.lock();
        for extent in extents {
            for sync in watching.iter() {
                sync.0.lock().set(extent);
            }
        }
    }
}

impl CopyInProgress {
    /// Notes the extents written from now on.
    pub(super) fn watch(&self) {
        self.copies.watching.lock().push(Arc::clone(&self.sync));
    }

    pub(super) fn is_noted(&self, extent: ExtentNumber) -> bool {
        self.sync.0.lock().is_set(extent)
    }
}

impl Drop for CopyInProgress {
    fn drop(&mut self) {
        let mut watching = self.copies.watching.lock();
        watching.retain(|sync| !Arc::ptr_eq(sync, &self.sync));
        self.copies.count.fetch_sub(1, Ordering::AcqRel);
    }
}
