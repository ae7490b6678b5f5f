//! Which moments of a spool can be restored onto a backup.
//!
//! A backup has the position of its snapshot. The spool *has* that position if it is a commit of one of its moments, or
//! where a range begins: then the pages of all later moments lead from the backup to each of them, up to the next gap.
//! If the position is in the middle of a moment, the pages that changed before it are written once more, with the
//! content that they have in the backup or a later one of the same moment; what they had in between does not matter.

use std::path::Path;

use windlass_base::time_text;
use windlass_media::WalPosition;

use super::SpoolError;
use super::reader::{Found, Records};
use super::record::{ClockChange, Gap, Kind, Moment, State};
use crate::Error;

/// How many ranges a message names.
const RANGES_MAX: usize = 8;

/// Where a restore stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// At the last moment.
    Latest,
    /// At the last moment that is not later, in microseconds since 1970, UTC.
    Time(u64),
    /// At a commit, by its number in the spool.
    Commit(u64),
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Latest => f.write_str("the latest state"),
            Self::Time(time) => write!(f, "the state of {}", time_text(*time)),
            Self::Commit(number) => write!(f, "commit {number}"),
        }
    }
}

/// A state that can be restored onto a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// No commit in it is later.
    pub time_us: u64,
    /// Number of its last commit in the spool.
    pub commit_number: u64,
    /// How many moments are applied.
    pub moments: u64,
    /// Bytes behind the end of the spool that are not records: what a follower was just writing, or a crash has left.
    pub rest_bytes: u64,
    /// The time of the next state that was captured, if the restore stops before it.
    pub next_us: Option<u64>,
    pub(in crate::sqlite) position: WalPosition,
    /// The records to apply: the first one, and the last moment. `None` if it is the state of the backup.
    pub(in crate::sqlite) records: Option<(Found, Found)>,
}

/// What a spool contains, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// Everything was captured.
    Range {
        from_us: u64,
        to_us: u64,
        /// Numbers of the first and last commit; the first is greater if there are none.
        first_commit: u64,
        last_commit: u64,
        /// How many of the states can be restored.
        moments: u64,
    },
    /// Commits may be missing.
    Gap {
        from_us: u64,
        to_us: u64,
        reason: String,
    },
}

/// The ranges and gaps of the spool in `folder`, and the bytes behind its end.
///
/// # Errors
/// [`SpoolError`], those of the operating system.
pub fn list(folder: &Path) -> Result<(Vec<Listed>, u64), Error> {
    let mut records = Records::open(folder)?;
    let mut listing = Listing::default();
    while let Some(found) = records.next()? {
        listing.add(&mut records, &found)?;
    }
    Ok((listing.listed(), records.rest_bytes()))
}

/// Builds the list while the records are walked.
#[derive(Debug, Default)]
struct Listing {
    done: Vec<Listed>,
    open: Option<(u64, u64, u64, u64, u64)>,
}

impl Listing {
    fn add(&mut self, records: &mut Records, found: &Found) -> Result<(), Error> {
        match found.head.kind {
            Kind::Segment => {
                if let Some(segment) = records.segment()
                    && self.open.is_none()
                    && segment.state.inode != 0
                {
                    let state = segment.state;
                    self.begin(state.time_us, state.commit_number);
                }
            }
            Kind::Start => {
                let state = records.state(found)?;
                self.begin(state.time_us, state.commit_number);
            }
            Kind::Moment => {
                let moment = records.moment(found)?;
                if self.open.is_none() {
                    let before = moment.commit_number.saturating_sub(moment.commits());
                    self.begin(moment.time_us, before);
                }
                if let Some((_, to, _, last, moments)) = &mut self.open {
                    (*to, *last) = (moment.time_us, moment.commit_number);
                    *moments += 1;
                }
            }
            Kind::Seen => {
                let state = records.state(found)?;
                if let Some((_, to, ..)) = &mut self.open {
                    *to = state.time_us.max(*to);
                }
            }
            Kind::Gap => {
                let gap = records.gap(found)?;
                let commits = self.open.map_or(0, |(_, _, _, last, _)| last);
                self.close();
                self.done.push(Listed::Gap {
                    from_us: gap.from_us,
                    to_us: gap.to_us,
                    reason: gap.reason,
                });
                self.begin(gap.to_us, commits);
            }
            Kind::Pages | Kind::Parts | Kind::Clock => {}
        }
        Ok(())
    }

    fn begin(&mut self, time_us: u64, commits: u64) {
        self.close();
        self.open = Some((time_us, time_us, commits.saturating_add(1), commits, 0));
    }

    fn close(&mut self) {
        if let Some((from_us, to_us, first_commit, last_commit, moments)) = self.open.take() {
            self.done.push(Listed::Range {
                from_us,
                to_us,
                first_commit,
                last_commit,
                moments,
            });
        }
    }

    fn listed(mut self) -> Vec<Listed> {
        self.close();
        self.done
    }
}

/// The state that a restore reaches from a backup at `base`.
pub(in crate::sqlite) fn find(
    folder: &Path,
    base: &WalPosition,
    stop: Stop,
) -> Result<Reach, Error> {
    find_in(&mut Records::open(folder)?, folder, base, stop)
}

/// The same in records that are walked from their beginning; messages name `folder`.
pub(in crate::sqlite) fn find_in(
    records: &mut Records,
    folder: &Path,
    base: &WalPosition,
    stop: Stop,
) -> Result<Reach, Error> {
    let mut search = Search {
        base: *base,
        stop,
        is_tied: false,
        first: None,
        pending: None,
        best: None,
        seen_us: 0,
        gap: None,
        clock: None,
        after: None,
        listing: Listing::default(),
    };
    while let Some(found) = records.next()? {
        if !search.is_tied {
            search.listing.add(records, &found)?;
        }
        if search.take(records, &found)? {
            break;
        }
    }
    let rest_bytes = records.rest_bytes();
    let mut reach = search.end(folder)?;
    reach.rest_bytes = rest_bytes;
    Ok(reach)
}

/// A search, as far as the records have been walked.
struct Search {
    base: WalPosition,
    stop: Stop,
    is_tied: bool,
    /// The first record that is applied.
    first: Option<Found>,
    /// The first record of pages whose moment is still to come.
    pending: Option<Found>,
    best: Option<Reach>,
    /// Until when the spool knows that nothing else was committed.
    seen_us: u64,
    /// The gap that ends what can be reached.
    gap: Option<Gap>,
    /// A change of the clock that leaves open which state the wanted time means.
    clock: Option<ClockChange>,
    /// The first state that is later than the wanted one, or behind the gap.
    after: Option<(u64, u64)>,
    /// For the message, if the spool does not have the base.
    listing: Listing,
}

impl Search {
    /// Takes a record; whether no other is needed.
    fn take(&mut self, records: &mut Records, found: &Found) -> Result<bool, Error> {
        match found.head.kind {
            Kind::Segment => {
                self.pending = None;
                let state = records.segment().map(|segment| segment.state);
                if let Some(state) = state {
                    self.tie_exactly(state.position, state.time_us, state.commit_number);
                }
            }
            Kind::Start => {
                let state = records.state(found)?;
                self.pending = None;
                self.tie_exactly(state.position, state.time_us, state.commit_number);
            }
            Kind::Pages | Kind::Parts => {
                self.pending.get_or_insert(*found);
            }
            Kind::Clock => {
                self.pending = None;
                let change = records.clock(found)?;
                if let Stop::Time(wanted) = self.stop
                    && change.has(wanted)
                {
                    self.clock = Some(change);
                }
            }
            Kind::Moment => {
                let moment = records.moment(found)?;
                let first = self.pending.take().unwrap_or(*found);
                return Ok(self.moment(&moment, &first, found));
            }
            Kind::Gap => {
                self.pending = None;
                let gap = records.gap(found)?;
                if self.is_tied {
                    // The state behind it is one that a later backup may have.
                    self.after = Some((gap.to_us, 0));
                    self.gap = Some(gap);
                    return Ok(true);
                }
                let commits = self.listing.open.map_or(0, |(_, _, _, last, _)| last);
                self.tie_exactly(gap.to, gap.to_us, commits);
            }
            Kind::Seen => {
                let state = records.state(found)?;
                self.pending = None;
                self.tie_exactly(state.position, state.time_us, state.commit_number);
                if self.is_tied {
                    self.seen(&state);
                }
            }
        }
        Ok(false)
    }

    /// The state of the backup is one of the spool: nothing need be applied to reach it.
    fn tie_exactly(&mut self, position: WalPosition, time_us: u64, commit_number: u64) {
        if self.is_tied || position.is_unknown() || !position.is_same_content(&self.base) {
            return;
        }
        self.is_tied = true;
        self.seen_us = time_us;
        let is_early_enough = match self.stop {
            Stop::Latest => true,
            Stop::Time(wanted) => time_us <= wanted,
            Stop::Commit(wanted) => commit_number <= wanted,
        };
        if is_early_enough {
            self.best = Some(Reach {
                time_us,
                commit_number,
                moments: 0,
                rest_bytes: 0,
                next_us: None,
                position,
                records: None,
            });
        } else {
            self.after = Some((time_us, commit_number));
        }
    }

    /// Nothing was committed since the last state, but a checkpoint may have begun a new log: the next log backup begins
    /// with its position, not with that of the last commit.
    fn seen(&mut self, state: &State) {
        self.seen_us = self.seen_us.max(state.time_us);
        if let Some(best) = &mut self.best
            && best.commit_number == state.commit_number
            && !state.position.is_unknown()
        {
            best.position = state.position;
        }
    }

    fn moment(&mut self, moment: &Moment, first: &Found, found: &Found) -> bool {
        if !self.is_tied {
            if !moment.covers(&self.base) {
                return false;
            }
            if moment.to.is_same_content(&self.base) {
                self.tie_exactly(moment.to, moment.time_us, moment.commit_number);
                return self.after.is_some();
            }
            self.is_tied = true;
        }
        let is_later = match self.stop {
            Stop::Latest => false,
            Stop::Time(wanted) => moment.time_us > wanted,
            Stop::Commit(wanted) => moment.commit_number > wanted,
        };
        if is_later {
            self.after = Some((moment.time_us, moment.commit_number));
            return true;
        }
        let first = *self.first.get_or_insert(*first);
        self.seen_us = self.seen_us.max(moment.time_us);
        self.best = Some(Reach {
            time_us: moment.time_us,
            commit_number: moment.commit_number,
            moments: self.best.as_ref().map_or(0, |best| best.moments) + 1,
            rest_bytes: 0,
            next_us: None,
            position: moment.to,
            records: Some((first, *found)),
        });
        false
    }

    fn end(self, folder: &Path) -> Result<Reach, Error> {
        if !self.is_tied {
            return Err(self.not_tied(folder));
        }
        let why = match (&self.best, self.stop, &self.gap) {
            _ if self.clock.is_some() => self.clock.map(clock_text).unwrap_or_default(),
            (Some(_), Stop::Latest, Some(gap)) => gap_text(gap),
            (Some(_), Stop::Time(wanted), Some(gap)) if wanted > gap.from_us => gap_text(gap),
            (Some(best), Stop::Commit(wanted), gap) if best.commit_number != wanted => {
                match (gap, self.after) {
                    (Some(gap), _) => gap_text(gap),
                    (None, Some(_)) => "it is not the last commit of a captured moment".to_owned(),
                    (None, None) => "the spool ends before it".to_owned(),
                }
            }
            (Some(_), Stop::Time(wanted), None)
                if self.after.is_none() && wanted > self.seen_us =>
            {
                format!("the spool ends at {}", time_text(self.seen_us))
            }
            (None, ..) => {
                "it is before the state of the backup, or the first captured moment after it"
                    .to_owned()
            }
            (Some(best), ..) => {
                return Ok(Reach {
                    next_us: self.after.map(|(time_us, _)| time_us),
                    ..best.clone()
                });
            }
        };
        let state = |time_us, number| format!("{} (commit {number})", time_text(time_us));
        let before = self.best.as_ref();
        let after = self.after.map(|(time_us, number)| match number {
            0 => format!("{}, from a backup made after the gap", time_text(time_us)),
            number => state(time_us, number),
        });
        Err(SpoolError::NotCaptured {
            wanted: self.stop.to_string(),
            why,
            before: before.map_or_else(
                || "none".to_owned(),
                |best| state(best.time_us, best.commit_number),
            ),
            after: after.unwrap_or_else(|| "none".to_owned()),
        }
        .told())
    }

    fn not_tied(self, folder: &Path) -> Error {
        let listed = self.listing.listed();
        let ranges = listed.iter().filter_map(|listed| match listed {
            Listed::Range { from_us, to_us, .. } => {
                Some(format!("{} to {}", time_text(*from_us), time_text(*to_us)))
            }
            Listed::Gap { .. } => None,
        });
        SpoolError::NotTied {
            folder: folder.to_owned(),
            position: self.base,
            ranges: ranges.take(RANGES_MAX).collect(),
        }
        .told()
    }
}

fn clock_text(change: ClockChange) -> String {
    format!(
        "the clock was changed, so that times between {} and {} are not right or not unique; name a commit",
        time_text(change.from_us),
        time_text(change.to_us)
    )
}

fn gap_text(gap: &Gap) -> String {
    format!(
        "commits may be missing between {} and {} ({})",
        time_text(gap.from_us),
        time_text(gap.to_us),
        gap.reason
    )
}
