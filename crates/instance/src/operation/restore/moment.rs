//! Finds the backup sets that lead to a moment: a state before it, and the log backups up to the first that reaches it.
//!
//! Only the headers say so: each set of a database with a log names the time and the LSN at which it ended. A log backup that ends
//! after the moment holds every commit up to it, if its clock was right: so its end is not believed where a log behind it ended
//! earlier, and the logs behind it are at hand until a commit shows that the moment is reached.
//!
//! Restores number the log again, so two recovery forks can have the same LSNs, and logs of both can hold commits before and
//! after a time. Of several log backups that reach a time, the one that ended first was made of the database as it was then.

use windlass_base::message::table;
use windlass_base::{Lsn, Message, local_of_unix_ms};
use windlass_media::{SetConfiguration, SetType, SourceKind};
use windlass_source::RecoveryModel;
use windlass_source::engine::{StopAt, describe};
use windlass_source::sqlite::LogDescription;

use super::inventory::Inventory;
use super::newest::Newest;
use crate::Failure;
use crate::chain::{ChainSet, Chains, Obstacle};
use crate::retention::Now;

/// Maximum number of reasons in a refusal.
const REASONS: usize = 5;

/// Where the state of a set ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    /// Milliseconds since 1970, UTC; 0 if unknown.
    pub(super) unix_ms: u64,
    pub(super) lsn: Lsn,
    /// Whether log backups can follow.
    pub(super) has_log: bool,
}

impl End {
    /// That of a set; `None` if its description cannot be read, or it has none.
    pub(super) fn of(set: &SetConfiguration) -> Option<Self> {
        if set.source_kind == SourceKind::Sqlite {
            return Self::of_sqlite(set);
        }
        if set.source_kind != SourceKind::Engine {
            return None;
        }
        let description = describe(&set.source_description).ok()?;
        Some(Self {
            unix_ms: description.ended_ms(),
            lsn: description.last_lsn(),
            has_log: description.recovery_model() != RecoveryModel::Simple,
        })
    }

    /// The same of a SQLite file: its LSNs are times, and log backups follow a set that knows where in the log it is.
    fn of_sqlite(set: &SetConfiguration) -> Option<Self> {
        let unix_ms = match set.set_type {
            SetType::Log => LogDescription::parse(&set.source_description)?.ended_ms(),
            _ => {
                set.wal_position.as_ref()?;
                // Of the time, the LSN has the whole seconds.
                (u64::from(set.checkpoint_lsn.vlf) + 1).saturating_mul(1000)
            }
        };
        Some(Self {
            unix_ms,
            lsn: set.last_lsn,
            has_log: true,
        })
    }

    /// Why log backups behind it cannot lead to the point; `None` if they can.
    fn bars(self, stop: &StopAt) -> Option<&'static str> {
        let is_late = match stop {
            // Which log has a mark is not known before it is read.
            StopAt::End | StopAt::Mark(_) | StopAt::BeforeMark(_) => false,
            StopAt::Time(unix_ms) => *unix_ms < self.unix_ms,
            StopAt::Lsn(lsn) | StopAt::BeforeLsn(lsn) => *lsn < self.lsn,
        };
        if !self.has_log {
            return Some("it was made in the recovery model SIMPLE, without a log");
        }
        is_late.then_some("it ends after the moment")
    }

    /// Whether the clock here has come to it.
    fn is_past(self) -> bool {
        self.unix_ms
            <= u64::try_from(Now::here().utc)
                .unwrap_or(0)
                .saturating_mul(1000)
                + 999
    }

    /// Whether every commit before the point is in its log or before it.
    fn reaches(self, stop: &StopAt) -> bool {
        match stop {
            StopAt::End => true,
            StopAt::Time(unix_ms) => self.unix_ms > *unix_ms,
            StopAt::Lsn(lsn) | StopAt::BeforeLsn(lsn) => self.lsn > *lsn,
            StopAt::Mark(_) | StopAt::BeforeMark(_) => false,
        }
    }
}

/// When the state of a set ended, in milliseconds since 1970, UTC; 0 if unknown. `None` if nothing says so.
pub(in crate::operation) fn ended_ms(set: &SetConfiguration) -> Option<u64> {
    End::of(set).map(|end| end.unix_ms)
}

/// The point, for messages.
fn shown(stop: &StopAt) -> String {
    match stop {
        StopAt::End => "the newest state".to_owned(),
        StopAt::Time(unix_ms) => local_of_unix_ms(*unix_ms),
        StopAt::Lsn(lsn) | StopAt::BeforeLsn(lsn) => format!("lsn:{lsn}"),
        StopAt::Mark(mark) | StopAt::BeforeMark(mark) => format!("the mark '{}'", mark.name),
    }
}

impl Inventory {
    /// The restores that lead to the point `stop`, by some of the sets.
    pub(super) fn leading_to(&self, stop: &StopAt, wanted: &[usize]) -> Result<Newest, Failure> {
        let sets = (0..self.chain.len()).map(|index| &self.found[index].set);
        let ends: Vec<Option<End>> = sets.map(End::of).collect();
        let bar = |(set, end): (&ChainSet, &Option<End>)| {
            let bars = match end {
                Some(_) if set.kind == SetType::Log => None,
                Some(end) => end.bars(stop),
                None => Some("its database has no log backups"),
            };
            let bars = bars.map(|why| Obstacle::Media(why.to_owned()));
            ChainSet {
                obstacle: set.obstacle.clone().or(bars),
                ..set.clone()
            }
        };
        let sets: Vec<ChainSet> = self.chain.iter().zip(&ends).map(bar).collect();
        let chains = Chains::of(&sets);
        let (ends, mut doubts) = self.believed(ends);
        let reaches = |index: &usize| {
            sets[*index].kind == SetType::Log && ends[*index].is_some_and(|end| end.reaches(stop))
        };
        let logs = wanted.iter().copied().filter(reaches);
        let usable = logs.filter(|index| chains.verdict(*index).is_ok());
        let usable: Vec<usize> = usable.collect();
        self.refuse_forks(stop, &sets, &usable)?;
        let ended = |index: &usize| {
            let end = ends[*index];
            end.map(|end| (end.unix_ms, end.lsn))
        };
        let Some(last) = usable.into_iter().min_by_key(ended) else {
            return Err(self.unreached(stop, &chains, &ends, wanted));
        };
        let steps = chains.path(last).map_err(|why| {
            let reason = format!("{}: {why}", self.name_of(last));
            table::moment_not_reached(shown(stop), reason)
        })?;
        let further = match stop {
            StopAt::Time(_) => self.behind(last, &chains, &ends),
            _ => Vec::new(),
        };
        let left = wanted.iter().copied();
        let left = left.filter(|index| !steps.contains(index));
        let reasons = left.map(|index| {
            let why = match chains.verdict(index) {
                Err(why) => why.to_string(),
                Ok(()) if further.contains(&index) => {
                    "it goes on behind them, if no commit shows by then that the moment is reached"
                        .to_owned()
                }
                Ok(()) if reaches(&index) => "the moment is before it".to_owned(),
                Ok(()) => "another leads there with less log".to_owned(),
            };
            (index, why)
        });
        let reasons: Vec<(usize, String)> = reasons.collect();
        let why = format!("to {}", shown(stop));
        doubts.extend(self.reported(&steps, &why, &reasons));
        let end = further.last().copied().unwrap_or(last);
        Ok(Newest {
            stop: stop.clone(),
            further: further.iter().map(|index| self.step(*index)).collect(),
            end: self.end_as_moment(stop, end, ends[end]),
            ..self.newest(&steps, doubts)
        })
    }

    /// What is said if nothing but the end of a log backup shows that the moment is reached; `None` if its clock is not to be
    /// believed.
    fn end_as_moment(&self, stop: &StopAt, last: usize, end: Option<End>) -> Option<Message> {
        let is_engine = self.found[last].set.source_kind == SourceKind::Engine;
        let ended = end.filter(|end| is_engine && end.is_past())?;
        let ended = local_of_unix_ms(ended.unix_ms);
        let last = self.name_of(last);
        Some(table::end_is_the_moment(shown(stop), last, ended))
    }

    /// The restores that lead to one of the states that some of the sets hold: `chance` chooses the set, and a moment
    /// within its log.
    pub(super) fn any(&self, chance: u64, wanted: &[usize]) -> Result<Newest, Failure> {
        let chains = Chains::of(&self.chain);
        let restorable = wanted.iter().copied();
        let restorable = restorable.filter(|index| chains.verdict(*index).is_ok());
        let restorable: Vec<usize> = restorable.collect();
        let count = restorable.len() as u64;
        let chosen = chance
            .checked_rem(count)
            .and_then(|at| usize::try_from(at).ok());
        let Some(chosen) = chosen.and_then(|at| restorable.get(at).copied()) else {
            return Err(self.refusal(&chains, wanted));
        };
        let end = |index: usize| End::of(&self.found[index].set);
        let log = (self.chain[chosen].kind == SetType::Log).then(|| chains.before(chosen));
        if let (Some(before), Some(own)) = (log.flatten().and_then(end), end(chosen))
            && own.unix_ms > before.unix_ms
            && before.unix_ms > 0
        {
            let within = chance / count % (own.unix_ms - before.unix_ms);
            return self.leading_to(&StopAt::Time(before.unix_ms + within), wanted);
        }
        let steps = chains
            .path(chosen)
            .map_err(|_| self.refusal(&chains, wanted))?;
        let notes = self.reported(&steps, "a state by chance", &[]);
        Ok(self.newest(&steps, notes))
    }

    /// An LSN of one history can be one of another, too: of another recovery fork, or where files were put back from a copy.
    fn refuse_forks(
        &self,
        stop: &StopAt,
        sets: &[ChainSet],
        logs: &[usize],
    ) -> Result<(), Failure> {
        let (StopAt::Lsn(lsn) | StopAt::BeforeLsn(lsn)) = stop else {
            return Ok(());
        };
        let has_it = |log: &usize| sets[*log].first_lsn <= *lsn;
        let having: Vec<usize> = logs.iter().copied().filter(has_it).collect();
        let is_apart = |one: usize, other: usize| {
            let is_engine = self.found[one].set.source_kind == SourceKind::Engine;
            let is_known = self.goes_on(one, other) || self.goes_on(other, one);
            is_engine && !is_known && !self.is_copy_of(one, other)
        };
        let pairs = having.iter().enumerate();
        let mut pairs =
            pairs.flat_map(|(at, one)| having[at + 1..].iter().map(move |other| (*one, *other)));
        let apart = pairs.find(|(one, other)| is_apart(*one, *other));
        let first = logs.first().copied();
        let forked = first.and_then(|first| {
            let mut others = logs.iter().copied();
            let other = others.find(|other| sets[*other].fork != sets[first].fork)?;
            Some((first, other))
        });
        let Some((one, other)) = forked.or(apart) else {
            return Ok(());
        };
        let why = format!(
            "the database was restored in between, or its files were put back, so the LSN is in two histories: that of {}, and that of {}; name the media of one of them",
            self.name_of(one),
            self.name_of(other)
        );
        Err(table::moment_not_reached(shown(stop), why).into())
    }

    /// Why no sets lead to the point, and the states nearest to it.
    fn unreached(
        &self,
        stop: &StopAt,
        chains: &Chains<'_>,
        ends: &[Option<End>],
        wanted: &[usize],
    ) -> Failure {
        let reaches = |index: &&usize| ends[**index].is_some_and(|end| end.reaches(stop));
        let is_log = |index: &&usize| self.chain[**index].kind == SetType::Log;
        let mut reasons: Vec<String> = wanted
            .iter()
            .filter(is_log)
            .filter(reaches)
            .filter_map(|index| {
                let why = chains.verdict(*index).err()?;
                Some(format!("{}: {why}", self.name_of(*index)))
            })
            .take(REASONS)
            .collect();
        if reasons.is_empty() {
            reasons.push(match wanted.iter().any(|index| is_log(&index)) {
                true => "no log backup ends after it".to_owned(),
                false => "there are no log backups".to_owned(),
            });
        }
        // By itself, without the log after it, each of them leads to its own end.
        let whole = Chains::of(&self.chain);
        let states = wanted.iter().copied();
        let states = states.filter(|index| whole.verdict(*index).is_ok());
        let (before, after): (Vec<usize>, Vec<usize>) = states.partition(|index| match stop {
            StopAt::Time(unix_ms) => self.ended_ms(*index, ends) <= *unix_ms,
            _ => ends[*index].is_none_or(|end| !end.reaches(stop)),
        });
        let key = |index: &usize| (self.ended_ms(*index, ends), self.chain[*index].last_lsn);
        let before = before.into_iter().max_by_key(key);
        let after = after.into_iter().min_by_key(key);
        for (index, side) in [(before, "before"), (after, "after")] {
            if let Some(index) = index {
                let state = format!(
                    "the nearest state {side} it is that of {}",
                    self.name_of(index)
                );
                reasons.push(state);
            }
        }
        table::moment_not_reached(shown(stop), reasons.join("; ")).into()
    }

    /// When the state of a set ended, in milliseconds since 1970, UTC.
    fn ended_ms(&self, index: usize, ends: &[Option<End>]) -> u64 {
        let known = ends[index].map(|end| end.unix_ms).filter(|ms| *ms > 0);
        known.unwrap_or_else(|| {
            let times = self.chain[index].times;
            let finished = times.map_or(0, |times| times.finished);
            u64::try_from(finished).unwrap_or(0).saturating_mul(1000)
        })
    }
}
