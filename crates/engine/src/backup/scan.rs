//! Looks at the log of a set before anything of it is applied: does it continue the state, and where does it stop?

use windlass_base::Lsn;

use super::BackupDescription;
use super::follow::{INVALID, LogFollower, broken};
use super::roll_forward::{Reached, refused};
use super::stop::{StopAt, WantedMark};
use crate::error::{LogRefusal, Result};
use crate::log::Position;
use crate::log::block::BlockHeader;
use crate::log::record::{Record, Records};

/// What has been seen of the log.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) follower: LogFollower,
    /// Checksum of the last block before the state.
    pub(super) before: u64,
    /// Whether blocks behind the state have been seen.
    pub(super) is_behind: bool,
    /// First block of the current group, and the time of its commit.
    group: Position,
    commit_ms: Option<u64>,
    /// Whether it has a mark of the name to stop at.
    is_marked: bool,
    /// After the last group to apply.
    pub(super) end: Position,
    pub(super) is_stopped: bool,
    /// The first commit that is later than the time to stop at.
    later: Option<Lsn>,
    /// The same, and the last one behind it that is not.
    pub(super) contradicted: Option<(Lsn, Lsn)>,
}

impl Scan {
    pub(super) fn new(from: Position, log: &BackupDescription) -> Self {
        Self {
            follower: LogFollower::new(log),
            before: log.previous,
            is_behind: false,
            group: from,
            commit_ms: None,
            is_marked: false,
            end: from,
            is_stopped: false,
            later: None,
            contradicted: None,
        }
    }

    pub(super) fn block(
        &mut self,
        state: &BackupDescription,
        reached: Reached,
        stop: &StopAt,
        block: &BlockHeader,
        records: &[u8],
    ) -> Result<()> {
        if block.position < state.end() {
            self.before = block.checksum;
            return Ok(());
        }
        if !self.is_behind {
            self.is_behind = true;
            check_continues(state, reached, self.before)?;
            if !block.first {
                let reached = state.end().lsn(1);
                return Err(refused(state, LogRefusal::Discontinuous { reached }));
            }
        }
        if block.first {
            (self.group, self.commit_ms) = (block.position, None);
            self.is_marked = false;
        }
        for record in Records::new(records) {
            match record {
                Some(Record::Commit { unix_ms, .. }) => self.commit_ms = Some(unix_ms),
                Some(Record::Mark { name, .. }) => self.is_marked |= stop.is_named(name),
                Some(_) => {}
                None => return Err(broken(state.name(), block.position, INVALID)),
            }
        }
        if block.last
            && let (StopAt::Time(stop), Some(commit)) = (stop, self.commit_ms)
        {
            self.compare(*stop, commit, block.position.lsn(block.records));
        }
        if block.last && !self.is_stopped {
            self.group_ends(stop, block);
        }
        Ok(())
    }

    /// Whether the order of the commits is that of their times, as far as the time to stop at depends on it.
    fn compare(&mut self, stop_ms: u64, commit_ms: u64, lsn: Lsn) {
        match (commit_ms > stop_ms, self.later) {
            (true, None) => self.later = Some(lsn),
            (false, Some(later)) => self.contradicted = Some((later, lsn)),
            _ => {}
        }
    }

    fn group_ends(&mut self, stop: &StopAt, last: &BlockHeader) {
        let (begin, end) = (self.group.lsn(1), last.position.lsn(last.records));
        let is_mark = |mark: &WantedMark| {
            self.is_marked && self.commit_ms.is_some_and(|commit| commit >= mark.after_ms)
        };
        let (is_applied, is_stopped) = match stop {
            StopAt::End => (true, false),
            StopAt::Time(unix_ms) => {
                let is_later = self.commit_ms.is_some_and(|commit| commit > *unix_ms);
                (!is_later, is_later)
            }
            StopAt::Lsn(lsn) => (begin <= *lsn, end >= *lsn),
            StopAt::BeforeLsn(lsn) => (end < *lsn, end >= *lsn),
            StopAt::Mark(mark) => (true, is_mark(mark)),
            StopAt::BeforeMark(mark) => (!is_mark(mark), is_mark(mark)),
        };
        self.is_stopped = is_stopped;
        if is_applied {
            self.end = last.end();
        }
    }
}

pub(super) fn check_continues(
    state: &BackupDescription,
    reached: Reached,
    before: u64,
) -> Result<()> {
    match reached.checksum.is_none_or(|checksum| checksum == before) {
        true => Ok(()),
        false => {
            let reached = state.end().lsn(1);
            Err(refused(state, LogRefusal::Discontinuous { reached }))
        }
    }
}
