//! Which of two states is the newer, and where nobody can tell.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use windlass_base::{Guid, Lsn};
use windlass_media::SetType;

use super::set::{ChainSet, Times};

/// Takes back dates that cannot be true: what a log backup continues, and the base of a differential, was made before
/// it. So one that is dated later was made with the clock ahead, if an earlier one of its recovery fork has a date that
/// fits; otherwise the clock may have been behind when the later one was made.
///
/// For those who look for the newest state: what is kept for a time goes by the dates that sets have.
pub fn settle_dates(sets: &mut [ChainSet]) {
    let earlier = Earlier::of(sets);
    let all: Vec<usize> = (0..sets.len()).collect();
    for (before, next) in continued(sets, &all) {
        if earlier.begins_before(&sets[before], &sets[next]) {
            settle(sets, before, next);
        }
    }
}

/// The sets that take the dates of some others back, see [`settle_dates`]: without them, these dates count again.
pub(crate) fn proofs(sets: &[ChainSet], dated_wrong: &[usize]) -> Vec<usize> {
    let wrong: BTreeSet<usize> = dated_wrong.iter().copied().collect();
    if wrong.is_empty() {
        return Vec::new();
    }
    let all: Vec<usize> = (0..sets.len()).collect();
    let mut proofs = continued(sets, &all);
    proofs.retain(|(before, next)| wrong.contains(before) && !wrong.contains(next));
    proofs.into_iter().map(|(_, next)| next).collect()
}

/// Of some sets, those that no other of them was made after for sure, whatever the dates say: the newest is one of these.
pub(crate) fn unsurpassed(sets: &[ChainSet], indices: &[usize]) -> Vec<usize> {
    // A differential that ends before its base is none of it.
    let is_later = |before: &ChainSet, next: &ChainSet| {
        next.fork != before.fork || next.last_lsn >= before.last_lsn
    };
    let continued = continued(sets, indices).into_iter();
    let continued = continued.filter(|(before, next)| is_later(&sets[*before], &sets[*next]));
    let surpassed: BTreeSet<usize> = continued.map(|(before, _)| before).collect();
    let indices = indices.iter().copied();
    indices.filter(|index| !surpassed.contains(index)).collect()
}

/// Those among some sets of which one was made before the other for sure, the later ones first: so each has its own date when
/// it tells that of the one before.
fn continued(sets: &[ChainSet], among: &[usize]) -> Vec<(usize, usize)> {
    type End = (Guid, Guid, Lsn);
    let mut ends: BTreeMap<End, Vec<usize>> = BTreeMap::new();
    let mut bases: BTreeMap<Guid, Vec<usize>> = BTreeMap::new();
    for &index in among {
        let set = &sets[index];
        let end = (set.family_guid, set.fork, set.last_lsn);
        ends.entry(end).or_default().push(index);
        bases.entry(set.name_as_base()).or_default().push(index);
    }
    let mut order = among.to_vec();
    order.sort_by_key(|index| std::cmp::Reverse(sets[*index].last_lsn));
    let mut found = Vec::new();
    for next in order {
        let set = &sets[next];
        let of_base = |base| bases.get(base).into_iter().flatten();
        let (at_first, based) = match set.kind {
            SetType::Log => {
                let end = (set.family_guid, set.fork, set.first_lsn);
                let last_full = set.last_full.as_ref().map(|(last, _)| last);
                (ends.get(&end), last_full)
            }
            SetType::Differential => (None, set.base.as_ref()),
            SetType::Full => (None, None),
        };
        let before = at_first.into_iter().flatten();
        let before = before.chain(based.into_iter().flat_map(of_base)).copied();
        let is_before = |before: &usize| {
            let before = &sets[*before];
            is_continued(before, set) || before.is_base_of(set) || before.is_known_to(set)
        };
        found.extend(before.filter(is_before).map(|before| (before, next)));
    }
    found
}

/// The earliest date of the sets of each recovery fork up to each LSN.
struct Earlier(BTreeMap<(Guid, Guid, Lsn), i64>);

impl Earlier {
    fn of(sets: &[ChainSet]) -> Self {
        let mut first: BTreeMap<(Guid, Guid, Lsn), i64> = BTreeMap::new();
        for set in sets {
            let Some(times) = set.times else { continue };
            let at = first.entry((set.family_guid, set.fork, set.last_lsn));
            let at = at.or_insert(times.started);
            *at = times.started.min(*at);
        }
        let mut last: Option<(Guid, Guid, i64)> = None;
        for ((family, fork, _), at) in &mut first {
            if let Some((same_family, same_fork, earliest)) = last
                && (same_family, same_fork) == (*family, *fork)
            {
                *at = earliest.min(*at);
            }
            last = Some((*family, *fork, *at));
        }
        Self(first)
    }

    /// Whether the date of a set of the same fork, with an earlier LSN than `set`, is before that of `next`.
    fn begins_before(&self, set: &ChainSet, next: &ChainSet) -> bool {
        let of = |lsn| (set.family_guid, set.fork, lsn);
        let mut earlier = self.0.range(of(Lsn::ZERO)..of(set.last_lsn));
        let earliest = earlier.next_back().map(|(_, at)| *at);
        earliest
            .zip(next.times)
            .is_some_and(|(at, times)| at <= times.started)
    }
}

impl ChainSet {
    /// Whether a log backup knows this full backup as the last one that was made before it.
    fn is_known_to(&self, log: &Self) -> bool {
        (log.last_full).is_some_and(|(last, _)| last == self.set_guid)
    }
}

/// Whether a log backup continues a state for sure: at the LSN between them, both know the same log.
fn is_continued(state: &ChainSet, log: &ChainSet) -> bool {
    let is_next = log.kind == SetType::Log
        && state.last_lsn == log.first_lsn
        && state.last_lsn < log.last_lsn;
    let is_same = log.seen_of(state)[0];
    let is_known = is_same.unwrap_or(state.lineage == log.lineage && state.lineage != 0);
    let is_in_order = (state.recorded.zip(log.recorded)).is_none_or(|(one, next)| one < next);
    is_next && is_known && is_in_order
}

fn settle(sets: &mut [ChainSet], before: usize, next: usize) {
    let (Some(own), Some(next_times)) = (sets[before].times, sets[next].times) else {
        return;
    };
    // A log backup can begin, and end, while a full backup is still being written.
    let is_beside = sets[before].kind != SetType::Log && sets[next].kind == SetType::Log;
    let until = match is_beside {
        true => next_times.finished,
        false => next_times.started,
    };
    sets[before].times = Some(Times {
        started: own.started.min(until),
        finished: own.finished.min(until),
    });
    let ended_ms = sets[before].ended_ms.zip(sets[next].ended_ms);
    if let Some((own, next)) = ended_ms {
        sets[before].ended_ms = Some(own.min(next));
    }
}

/// The times, corrected by the LSN: that of a `SQLite` file contains the clock's seconds and never
/// goes back, even if the clock does. LSNs of the page engine are far smaller and change nothing.
fn reckoned(set: &ChainSet) -> Option<Times> {
    let times = set.times?;
    let at_least = i64::from(set.last_lsn.vlf);
    if set.is_log_of_file() {
        return Some(Times {
            started: at_least,
            finished: at_least,
        });
    }
    Some(Times {
        started: times.started.max(at_least),
        finished: times.finished.max(at_least),
    })
}

/// Whether `one` has the newer state by its log, or by what was known when it was made, and `other` by its date: a
/// clock was set back, or the files of the database were put back from a copy. Then neither can take the other's place.
pub(super) fn is_rival(one: &ChainSet, other: &ChainSet) -> bool {
    let of = |set: &ChainSet| (set.family_guid, set.fork);
    let media_set = |set: &ChainSet| set.place.map(|(media_set, _)| media_set);
    // The LSNs of a SQLite file are times themselves.
    let by_log =
        of(one) == of(other) && one.fork != one.family_guid && one.last_lsn > other.last_lsn;
    // A backup whose date is from then on was not made before it for sure, nor one that knew of the same.
    let by_knowledge = one.family_guid == other.family_guid
        && other.contradicted_until < one.contradicted_until
        && (other.times.zip(one.contradicted_until))
            .is_some_and(|(times, until)| times.finished <= until);
    (by_log || by_knowledge)
        && (media_set(one).is_none() || media_set(one) != media_set(other))
        && is_newer(other, one)
}

/// The sets among `others` that may be newer than `newest`, which is the newest by its date.
pub fn rivals<'a>(
    sets: &'a [ChainSet],
    newest: usize,
    others: &'a [usize],
) -> impl Iterator<Item = usize> + 'a {
    let others = others.iter().copied();
    others.filter(move |other| is_rival(&sets[*other], &sets[newest]))
}

/// Whether the state of `one` is newer than that of `other`.
pub fn is_newer(one: &ChainSet, other: &ChainSet) -> bool {
    if one.is_empty != other.is_empty {
        return other.is_empty;
    }
    // Media are only appended to, or overwritten as a whole, so position beats the clock.
    if let (Some((media_set, position)), Some((other_media_set, other_position))) =
        (one.place, other.place)
        && !(one.is_log_of_file() || other.is_log_of_file())
        && media_set == other_media_set
        && position != other_position
    {
        return position > other_position;
    }
    if let (Some(one), Some(other)) = (reckoned(one), reckoned(other)) {
        if one.started > other.finished {
            return true;
        }
        if other.started > one.finished {
            return false;
        }
    }
    if let Some(order) = order_within_seconds(one, other) {
        return order.is_gt();
    }
    let finished = |set: &ChainSet| set.times.map(|times| (times.finished, times.started));
    (one.last_lsn, finished(one)) > (other.last_lsn, finished(other))
}

/// The order of states within seconds that do not tell it. LSNs begin again with a restore, and do not tell that of two
/// recovery forks either; of one fork whose files were put back, they tell another one than the time.
fn order_within_seconds(one: &ChainSet, other: &ChainSet) -> Option<Ordering> {
    let by_time = || Some(one.ended_ms?.cmp(&other.ended_ms?));
    let by_history = || match one.fork == other.fork {
        true => None,
        false => Some(one.recorded?.cmp(&other.recorded?)),
    };
    let order = by_time().or_else(by_history)?;
    order.is_ne().then_some(order)
}
