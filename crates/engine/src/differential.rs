//! The differential map: one bit for each extent changed since the last full backup.
//!
//! Invariants:
//! - A bit is set before the commit that changes the extent enters the log.
//! - Only a successful full backup clears bits. While it runs, a second map collects the changes
//!   since its start; at its end the second map replaces the first. After a failed backup or a
//!   crash the first map remains, with every change since the older base.
//! - Recovery takes the map of the last checkpoint and sets the bits of all later commits: it is
//!   exact after a crash, and never misses a bit.

use std::collections::BTreeMap;

use windlass_base::ExtentNumber;

use crate::sync::Mutex;

/// Bytes of the map of the largest database: 2^32 pages.
const BYTES_MAX: usize = (1 << 32) / 8 / 8;

/// One bit for each extent; grows as bits are set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExtentMap(Vec<u8>);

impl ExtentMap {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn set(&mut self, extent: ExtentNumber) {
        let index = extent.0 as usize / 8;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] |= 1 << (extent.0 % 8);
    }

    pub(crate) fn is_set(&self, extent: ExtentNumber) -> bool {
        self.0
            .get(extent.0 as usize / 8)
            .is_some_and(|byte| byte & (1 << (extent.0 % 8)) != 0)
    }

    /// Adds the marks in `bytes`, which start at byte `first` of a map.
    pub(crate) fn merge(&mut self, first: u32, bytes: &[u8]) {
        let start = first as usize;
        let end = (start + bytes.len()).min(BYTES_MAX);
        if self.0.len() < end {
            self.0.resize(end, 0);
        }
        for (own, other) in self.0.iter_mut().skip(start).zip(bytes) {
            *own |= other;
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|byte| u64::from(byte.count_ones())).sum()
    }
}

/// The current map, and those of backups in progress.
#[derive(Debug, Default)]
pub(crate) struct DifferentialMaps(Mutex<Maps>);

#[derive(Debug, Default)]
struct Maps {
    current: ExtentMap,
    /// By the number of the backup.
    collecting: BTreeMap<u64, ExtentMap>,
}

impl DifferentialMaps {
    /// With this map as the current one.
    pub(crate) fn new(current: ExtentMap) -> Self {
        let collecting = BTreeMap::new();
        Self(Mutex::new(Maps {
            current,
            collecting,
        }))
    }

    pub(crate) fn mark(&self, extents: impl Iterator<Item = ExtentNumber>) {
        let mut maps = self.0.lock();
        for extent in extents {
            maps.current.set(extent);
            for map in maps.collecting.values_mut() {
                map.set(extent);
            }
        }
    }

    /// A copy of the current map.
    pub(crate) fn current(&self) -> ExtentMap {
        self.0.lock().current.clone()
    }

    /// Calls `look` with the current map.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&ExtentMap) -> T) -> T {
        look(&self.0.lock().current)
    }

    /// Starts collecting for a full backup.
    pub(crate) fn begin(&self, backup: u64) {
        let mut maps = self.0.lock();
        maps.collecting.insert(backup, ExtentMap::default());
    }

    /// Discards the map of a failed backup.
    pub(crate) fn abandon(&self, backup: u64) {
        self.0.lock().collecting.remove(&backup);
    }

    /// Makes the map of a completed backup the current one.
    pub(crate) fn become_base(&self, backup: u64) {
        let mut maps = self.0.lock();
        if let Some(map) = maps.collecting.remove(&backup) {
            maps.current = map;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_backup_keeps_every_bit_and_a_good_one_those_since_its_begin() {
        let maps = DifferentialMaps::default();
        let mark = |extent| maps.mark(std::iter::once(ExtentNumber(extent)));
        mark(3);
        maps.begin(1);
        mark(900);
        maps.abandon(1);
        let kept = maps.current();
        assert!(kept.is_set(ExtentNumber(3)) && kept.is_set(ExtentNumber(900)));
        maps.begin(2);
        mark(7);
        maps.become_base(2);
        let since = maps.current();
        assert_eq!(since.count(), 1);
        let is_set = |extent| since.is_set(ExtentNumber(extent));
        assert!(is_set(7) && !is_set(8) && !is_set(4000));
    }
}
