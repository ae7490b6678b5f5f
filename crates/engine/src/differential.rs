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

/// Bytes of the map of the largest database: 2^32 pages.
const BYTES_MAX: usize = (1 << 32) / 8 / 8;

/// One bit for each extent; grows as bits are set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExtentMap(Vec<u8>);

impl ExtentMap {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn set(&mut self, extent: u32) {
        let index = extent as usize / 8;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] |= 1 << (extent % 8);
    }

    pub(crate) fn is_set(&self, extent: u32) -> bool {
        self.0
            .get(extent as usize / 8)
            .is_some_and(|byte| byte & (1 << (extent % 8)) != 0)
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

    /// Marks the first `extents` extents.
    pub(crate) fn set_all(&mut self, extents: u32) {
        for extent in 0..extents {
            self.set(extent);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|byte| u64::from(byte.count_ones())).sum()
    }
}

/// The current map, and those of backups in progress.
#[derive(Debug, Default)]
pub(crate) struct DifferentialMaps {
    pub(crate) current: ExtentMap,
    collecting: BTreeMap<u64, ExtentMap>,
}

impl DifferentialMaps {
    /// Marks an extent as changed.
    pub(crate) fn mark(&mut self, extent: u32) {
        self.current.set(extent);
        for map in self.collecting.values_mut() {
            map.set(extent);
        }
    }

    /// Starts collecting for a full backup.
    pub(crate) fn begin(&mut self, backup: u64) {
        self.collecting.insert(backup, ExtentMap::default());
    }

    /// Discards the map of a failed backup.
    pub(crate) fn abandon(&mut self, backup: u64) {
        self.collecting.remove(&backup);
    }

    /// Makes the map of a completed backup the current one.
    pub(crate) fn become_base(&mut self, backup: u64) {
        if let Some(map) = self.collecting.remove(&backup) {
            self.current = map;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_backup_keeps_every_bit_and_a_good_one_those_since_its_begin() {
        let mut maps = DifferentialMaps::default();
        maps.mark(3);
        maps.begin(1);
        maps.mark(900);
        maps.abandon(1);
        assert!(maps.current.is_set(3) && maps.current.is_set(900));
        maps.begin(2);
        maps.mark(7);
        maps.become_base(2);
        assert_eq!(maps.current.count(), 1);
        assert!(maps.current.is_set(7) && !maps.current.is_set(8) && !maps.current.is_set(4000));
    }
}
