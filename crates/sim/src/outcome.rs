//! Results of simulation runs, and the comparison of the actual with the expected state.

use std::fmt;
use std::sync::Arc;

use windlass_base::{PAGE_BYTES, PageNumber};
use windlass_engine::{EngineError, ReadSnapshot};

use crate::disk::Disk;
use crate::world::State;

/// The results of one or many runs.
#[derive(Debug, Default, Clone, Copy)]
pub struct Outcome {
    /// Commits acknowledged.
    pub commits: u64,
    /// Times that power was lost, or the process ended without a close.
    pub crashes: u64,
    /// Recoveries that found the commit in flight.
    pub in_flight_kept: u64,
    /// Operations that failed cleanly: full log, full disk, disk errors.
    pub refused: u64,
    /// Operations of the disk.
    pub operations: u64,
    /// Databases taken offline by a failure.
    pub offline: u64,
    /// Backups restored and compared.
    pub restores: u64,
    /// Of these, differential ones on their base.
    pub differentials: u64,
    pub log_backups: u64,
    /// Full backups rolled forward with the log backups since, and compared.
    pub rolled_forward: u64,
    /// Of these, upon a differential backup.
    pub rolled_upon_differential: u64,
    /// Of these, up to or before a commit.
    pub stopped_at_commit: u64,
    /// Of these, up to a time.
    pub stopped_at_time: u64,
    /// Transactions refused because the log was full.
    pub log_full: u64,
    /// Operations refused because a disk or a file was full.
    pub disk_full: u64,
    pub failed_syncs: u64,
    /// Recoveries that were interrupted and restarted.
    pub recoveries_cut: u64,
    /// Lives with more than one data file.
    pub several_files: u64,
    /// Files of an earlier moment that were refused.
    pub stale_refused: u64,
}

impl Outcome {
    pub fn add(&mut self, other: &Self) {
        self.commits += other.commits;
        self.crashes += other.crashes;
        self.in_flight_kept += other.in_flight_kept;
        self.refused += other.refused;
        self.operations += other.operations;
        self.offline += other.offline;
        self.restores += other.restores;
        self.differentials += other.differentials;
        self.log_backups += other.log_backups;
        self.rolled_forward += other.rolled_forward;
        self.rolled_upon_differential += other.rolled_upon_differential;
        self.stopped_at_commit += other.stopped_at_commit;
        self.stopped_at_time += other.stopped_at_time;
        self.log_full += other.log_full;
        self.disk_full += other.disk_full;
        self.failed_syncs += other.failed_syncs;
        self.recoveries_cut += other.recoveries_cut;
        self.several_files += other.several_files;
        self.stale_refused += other.stale_refused;
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} commits, {} crashes ({} found the commit in flight), {} disk operations, {} clean \
             refusals ({} log full, {} disk full), {} failed syncs, {} times offline, {} recoveries cut \
             off, {} lives with several files, {} stale files refused, {} restores ({} differential), {} log backups, \
             {} times rolled forward ({} upon a differential, {} to a commit, {} to a time)",
            self.commits,
            self.crashes,
            self.in_flight_kept,
            self.operations,
            self.refused,
            self.log_full,
            self.disk_full,
            self.failed_syncs,
            self.offline,
            self.recoveries_cut,
            self.several_files,
            self.stale_refused,
            self.restores,
            self.differentials,
            self.log_backups,
            self.rolled_forward,
            self.rolled_upon_differential,
            self.stopped_at_commit,
            self.stopped_at_time
        )
    }
}

/// A page with its checksum.
pub(crate) fn stamped(page: &Arc<[u8]>) -> Arc<[u8]> {
    let mut content = page.to_vec();
    windlass_base::page::checksum::stamp(&mut content);
    content.into()
}

/// Puts what was written in the place of the mark of an opening, in the first page.
pub(crate) fn take_mark_out(first: &mut [u8], written: &[u8]) {
    if first.starts_with(b"SQLite format 3\0") && first[72..76] == *b"WLOP" {
        first[72..92].copy_from_slice(&written[72..92]);
        if first[20] == 8 {
            windlass_base::page::checksum::stamp(first);
        }
    }
}

/// Reads and compares all pages; ignores a read that fails because of a fault.
pub(crate) fn compare(snapshot: &ReadSnapshot, state: &State, disk: &Disk) -> Result<(), String> {
    if snapshot.page_count() as usize != state.len() {
        return Err(format!(
            "{} pages, expected {}",
            snapshot.page_count(),
            state.len()
        ));
    }
    let mut found = vec![0; PAGE_BYTES];
    for (page, expected) in PageNumber::all(snapshot.page_count()).zip(state.iter()) {
        match snapshot.read_page(page, &mut found) {
            Ok(()) => {}
            Err(EngineError::Io { .. } | EngineError::NoFreeBuffer { .. }) if disk.had_fault() => {
                return Ok(());
            }
            Err(EngineError::Offline { .. }) => return Ok(()),
            Err(error) => return Err(format!("page {page}: {error}")),
        }
        if page == PageNumber::FIRST {
            take_mark_out(&mut found, expected);
        }
        if found != expected.as_ref() {
            let at = found.iter().zip(expected.iter()).position(|(a, b)| a != b);
            return Err(format!("page {page} differs at byte {at:?}"));
        }
    }
    Ok(())
}
