//! Decides for each medium whether it is kept or deleted, with the reason, as if it were known what each of them is.

use std::collections::BTreeSet;

use jiff::civil::Date;
use windlass_base::Moment;
use windlass_catalog::provenance::databases;
use windlass_media::SetType;

use super::{FoundMedia, FoundSet, Now, Place, Policy, chain_sets};
use crate::chain::{ChainSet, Chains, Ends, Obstacle, Why, Within, is_newer, proofs, rivals};

/// What happens to a medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether its files are deleted.
    pub goes: bool,
    /// The reasons; never empty.
    pub reasons: Vec<String>,
    /// Whether it stays because it may have a newer state than any that can be restored from these media: its
    /// base is missing, one of its stripes is an older copy, or its date is wrong.
    pub is_doubtful: bool,
    /// The sets of a medium that stays, by their place on it, for whose sake others may go: if one of them
    /// cannot be restored, something else has to stay instead.
    pub relied_on: BTreeSet<usize>,
    /// The log backups on it, by their place, of which only the log tells what they continue; and the LSNs where states end
    /// within them. Until they are read, the last of these is believed.
    pub unread: Vec<(usize, Ends)>,
}

impl Decision {
    /// Keeps the medium after all.
    pub fn keep(&mut self, reason: String) {
        if self.goes {
            self.goes = false;
            self.reasons = vec![reason];
        }
        self.relied_on.clear();
    }
}

/// A set that a policy keeps.
struct Kept {
    index: usize,
    reason: String,
    /// Whether other sets are deleted because this one is kept. A set that is young enough is kept
    /// regardless.
    replaces_others: bool,
}

impl Kept {
    fn for_others(index: usize, reason: String) -> Self {
        Self {
            index,
            reason,
            replaces_others: true,
        }
    }

    fn for_itself(index: usize, reason: &str) -> Self {
        Self {
            index,
            reason: reason.to_owned(),
            replaces_others: false,
        }
    }
}

/// The sets on all media, with their chains.
pub(super) struct Found<'a> {
    pub(super) media: &'a [FoundMedia],
    pub(super) places: &'a [Place],
    pub(super) sets: &'a [ChainSet],
    pub(super) chains: Chains<'a>,
}

impl Found<'_> {
    fn set(&self, index: usize) -> &FoundSet {
        let (medium, place) = self.places[index];
        &self.media[medium].sets[place]
    }

    /// What a set cannot be restored without. If the log of a log backup cannot be read to tell which of the states within
    /// it are of its history, that may be any of them.
    pub(super) fn needed(&self, index: usize) -> Vec<usize> {
        let (set, before) = (&self.sets[index], self.chains.before(index));
        let is_unknown = set.within == Within::Unreadable
            && before.is_some_and(|before| set.must_be_read_for(&self.sets[before]));
        if !is_unknown {
            return before.into_iter().collect();
        }
        let is_within = |state: &usize| {
            set.must_be_read_for(&self.sets[*state]) && self.chains.verdict(*state).is_ok()
        };
        let within = (0..self.sets.len()).filter(is_within);
        let begin = self.chains.begin(index);
        before.into_iter().chain(begin).chain(within).collect()
    }

    /// The set, what it needs, what that needs, and so on.
    pub(super) fn needed_in_all(&self, index: usize) -> BTreeSet<usize> {
        let (mut all, mut next) = (BTreeSet::new(), vec![index]);
        while let Some(index) = next.pop() {
            if all.insert(index) {
                next.extend(self.needed(index));
            }
        }
        all
    }

    fn is_future(&self, index: usize, now: Now) -> bool {
        let times = self.sets[index].times;
        times.is_some_and(|times| times.is_future(now.utc))
    }
}

/// Decides about every medium, in order, as it was found. `held` are further reasons for each of them to stay.
pub(super) fn as_found(
    media: &[FoundMedia],
    policy: &Policy,
    database: Option<&str>,
    now: Now,
    held: &[BTreeSet<String>],
) -> Vec<Decision> {
    let (places, sets) = counted_sets(media);
    let found = Found {
        media,
        places: &places,
        sets: &sets,
        chains: Chains::of(&sets),
    };
    let mut reasons: Vec<BTreeSet<String>> = media
        .iter()
        .zip(held)
        .map(|(media, held)| &of_medium(media, database, now.local) | held)
        .collect();
    let all = (0..sets.len()).map(|index| &found.set(index).of);
    let mut ahead = Vec::new();
    let databases: Vec<(Vec<usize>, Vec<Kept>)> = databases(all)
        .into_iter()
        .map(|own| {
            let is_future = |index: &usize| found.is_future(*index, now);
            let (future, own): (Vec<usize>, Vec<usize>) = own.into_iter().partition(is_future);
            let kept = by_policy(&found, &own, policy, now);
            ahead.extend(future);
            (own, kept)
        })
        .collect();
    let mut doubtful = BTreeSet::new();
    for medium in (proofs(&sets, &ahead).into_iter()).map(|index| places[index].0) {
        reasons[medium].insert(PROOF.to_owned());
    }
    for medium in ahead.into_iter().map(|index| places[index].0) {
        reasons[medium].insert(FUTURE.to_owned());
        doubtful.insert(medium);
    }
    for medium in rival_media(&found, &databases) {
        reasons[medium].insert(RIVAL.to_owned());
        doubtful.insert(medium);
    }
    for kept in databases.iter().flat_map(|(_, kept)| kept) {
        reasons[places[kept.index].0].insert(kept.reason.clone());
    }
    for index in databases.iter().flat_map(|(own, _)| orphaned(&found, own)) {
        let medium = places[index].0;
        reasons[medium].insert(match &found.sets[index].obstacle {
            None => format!("{NEWER}; the full backup it needs is damaged or elsewhere"),
            Some(why) => format!("{NEWER}: {why}"),
        });
        doubtful.insert(medium);
    }
    keep_bases(&found, &mut reasons);
    let mut relied_on = relied_on(&found, &databases, &reasons);
    let mut unread = unread(&found, &databases, &reasons);
    let decided = reasons.into_iter().enumerate();
    decided
        .map(|(medium, reasons)| Decision {
            goes: reasons.is_empty(),
            reasons: match reasons.is_empty() {
                true => vec![going(&found, medium)],
                false => reasons.into_iter().collect(),
            },
            is_doubtful: doubtful.contains(&medium),
            relied_on: std::mem::take(&mut relied_on[medium]),
            unread: std::mem::take(&mut unread[medium]),
        })
        .collect()
}

/// All sets. Those on damaged media do not count when others are deleted.
pub(super) fn counted_sets(media: &[FoundMedia]) -> (Vec<Place>, Vec<ChainSet>) {
    let (places, mut sets) = chain_sets(media);
    for (place, set) in places.iter().zip(&mut sets) {
        if let Some(trouble) = &media[place.0].trouble {
            set.obstacle.get_or_insert(Obstacle::Media(trouble.clone()));
        }
    }
    (places, sets)
}

/// The reason to keep what would be the newest by its date.
const FUTURE: &str = "dated in the future: the clock was wrong then, or is now";

/// The reason to keep what is behind such a set.
const PROOF: &str = "shows that one dated in the future is older";

/// The reason to keep what the newest by its date may not replace.
const RIVAL: &str = "newer by its LSN than the newest by date: the clock was set back, or the database's files were";

/// The reason to keep an orphan.
const NEWER: &str = "newer than anything that can be restored from these media";

/// The media whose state may be newer than the newest by its date.
fn rival_media(found: &Found<'_>, databases: &[(Vec<usize>, Vec<Kept>)]) -> Vec<usize> {
    let of = |own: &Vec<usize>| -> Vec<usize> {
        let newest = found.chains.newest_among(own.iter().copied());
        let rivals = newest.map(|newest| rivals(found.sets, newest, own));
        let media = rivals.into_iter().flatten();
        media.map(|index| found.places[index].0).collect()
    };
    databases.iter().flat_map(|(own, _)| of(own)).collect()
}

/// The sets of a database that are newer than its newest restorable state and intact where they are, but lack
/// something here that may be elsewhere: the base of a differential, the log before a log backup, or the newest copy
/// of a stripe.
fn orphaned(found: &Found<'_>, own: &[usize]) -> Vec<usize> {
    let newest = found.chains.newest_among(own.iter().copied());
    let is_orphan = |index: &usize| {
        let set = &found.sets[*index];
        let lacks_base = set.kind != SetType::Full && set.obstacle.is_none();
        let lacks_stripe = matches!(set.obstacle, Some(Obstacle::Partly(_)));
        (lacks_base || lacks_stripe)
            && found.chains.verdict(*index).is_err()
            && newest.is_none_or(|newest| is_newer(set, &found.sets[newest]))
    };
    own.iter().copied().filter(is_orphan).collect()
}

/// For each medium, the sets on which deletions rely: those that a rule counts, and what they are based
/// on. Only of databases that lose a set.
fn relied_on(
    found: &Found<'_>,
    databases: &[(Vec<usize>, Vec<Kept>)],
    reasons: &[BTreeSet<String>],
) -> Vec<BTreeSet<usize>> {
    let mut relied_on = vec![BTreeSet::new(); reasons.len()];
    for (own, kept) in databases {
        let goes = |index: &usize| reasons[found.places[*index].0].is_empty();
        if !own.iter().any(goes) {
            continue;
        }
        let counted = kept.iter().filter(|kept| kept.replaces_others);
        let counted = counted.filter(|kept| found.chains.verdict(kept.index).is_ok());
        for index in counted.flat_map(|kept| found.needed_in_all(kept.index)) {
            let (medium, place) = found.places[index];
            if found.media[medium].unseen.is_none() {
                relied_on[medium].insert(place);
            }
        }
    }
    relied_on
}

/// For each medium, the log backups on it that have to be read, and the ends of the states within them. Only of databases that
/// lose a set, and of media that stay.
fn unread(
    found: &Found<'_>,
    databases: &[(Vec<usize>, Vec<Kept>)],
    reasons: &[BTreeSet<String>],
) -> Vec<Vec<(usize, Ends)>> {
    let mut unread = vec![Vec::new(); reasons.len()];
    let stays = |index: &usize| !reasons[found.places[*index].0].is_empty();
    for (own, _) in databases {
        if own.iter().all(stays) {
            continue;
        }
        for index in found.chains.unread(own.iter().copied().filter(stays)) {
            let (medium, place) = found.places[index];
            let ends = found.sets[index].ends_within(found.sets);
            unread[medium].push((place, ends));
        }
    }
    unread
}

/// The reasons to keep a medium that do not depend on other media.
fn of_medium(media: &FoundMedia, database: Option<&str>, now: Moment) -> BTreeSet<String> {
    let mut reasons = BTreeSet::new();
    if let Some(why) = &media.unseen {
        reasons.insert(format!("not known to be gone: {why}"));
        return reasons;
    }
    if media.is_outside {
        reasons.insert("outside of the folders".to_owned());
    }
    let is_named = |trouble: &&String| {
        let mut files = media.files.iter();
        !files.any(|file| file.defect.as_ref() == Some(*trouble))
    };
    if let Some(trouble) = media.trouble.as_ref().filter(is_named) {
        reasons.insert(match media.may_pass {
            true => format!("cannot be read now: {trouble}"),
            false => format!("needs a look: {trouble}"),
        });
    }
    for file in &media.files {
        if let Some(defect) = &file.defect {
            let device = &file.device;
            reasons.insert(match media.may_pass {
                true => format!("'{device}' cannot be read now: {defect}"),
                false => format!("needs a look: '{device}' is damaged: {defect}"),
            });
        }
    }
    if !media.is_whole() {
        let count = media.family_count;
        reasons.insert(format!("not all of its {count} stripes were found"));
    }
    if media.sets.is_empty() {
        reasons.insert("contains no backup set".to_owned());
    }
    for set in &media.sets {
        if let Some(expires) = set.expires.filter(|expires| *expires > now) {
            reasons.insert(format!("expires on {expires}"));
        }
        if database.is_some_and(|wanted| !wanted.eq_ignore_ascii_case(&set.of.name)) {
            reasons.insert(format!("holds a backup of '{}'", set.of.name));
        }
        if set.finished.is_none() || set.chain.obstacle == Some(Obstacle::Incomplete) {
            reasons.insert("contains an unfinished backup".to_owned());
        }
    }
    reasons
}

/// The sets of one database that the policy keeps, with the reasons.
fn by_policy(found: &Found<'_>, own: &[usize], policy: &Policy, now: Now) -> Vec<Kept> {
    let mut kept = Vec::new();
    let mut points: Vec<(Moment, usize)> = Vec::new();
    for index in own {
        let Some(finished) = found.set(*index).finished else {
            continue;
        };
        let is_young = match found.sets[*index].times {
            Some(times) => policy.is_young(times.finished, now.utc),
            None => policy.is_within(finished, now.local),
        };
        if is_young {
            kept.push(Kept::for_itself(*index, "young enough"));
            // Of a log backup, every moment in it is.
            for begin in found.chains.begin(*index) {
                kept.push(Kept::for_itself(
                    begin,
                    "the moments of a young log backup begin with it",
                ));
            }
        }
        if found.chains.verdict(*index).is_ok() {
            points.push((finished, *index));
        }
    }
    // Within a second, the LSNs of two recovery forks tell nothing.
    let place = |index: usize| {
        let set = &found.sets[index];
        (set.ended_ms, set.last_lsn, found.places[index])
    };
    // No empty one takes the place of one that holds something.
    points.sort_by_key(|(finished, index)| {
        let set = &found.sets[*index];
        let at = set.times.map(|times| times.finished);
        std::cmp::Reverse((!set.is_empty, at, *finished, place(*index)))
    });
    let newest = found.chains.newest_among(own.iter().copied());
    if let Some(newest) = newest {
        kept.push(Kept::for_others(
            newest,
            "the newest of its database".to_owned(),
        ));
    }
    if let Some(damaged) = damaged(found, own, newest) {
        let reason = "its database was damaged, and it is newer than any restorable backup";
        kept.push(Kept::for_itself(damaged, reason));
    }
    // Log backups are many, and end with the next full backup: they are kept as what leads to a kept state.
    let is_data = |(_, index): &&(Moment, usize)| found.sets[*index].kind != SetType::Log;
    let data = points.iter().filter(is_data);
    for (number, (_, index)) in data.take(policy.last as usize).enumerate() {
        let reason = format!("{} of the last {}", number + 1, policy.last);
        kept.push(Kept::for_others(*index, reason));
    }
    for kind in [SetType::Full, SetType::Differential] {
        let of_kind = points
            .iter()
            .filter(|(_, index)| found.sets[*index].kind == kind);
        for (_, index) in of_kind.take(policy.last_of_kind as usize) {
            let count = policy.last_of_kind;
            let reason = format!("among the last {count} of its kind");
            kept.push(Kept::for_others(*index, reason));
        }
    }
    kept.extend(by_calendar(found, &points, policy));
    kept
}

/// One state of each of the last days, weeks, months and years.
fn by_calendar(found: &Found<'_>, points: &[(Moment, usize)], policy: &Policy) -> Vec<Kept> {
    let is_data = |(_, index): &&(Moment, usize)| found.sets[*index].kind != SetType::Log;
    let mut kept = Vec::new();
    for (count, name, period) in [
        (policy.daily, "day", day as fn(Date) -> (i16, i16)),
        (policy.weekly, "week", week as fn(Date) -> (i16, i16)),
        (policy.monthly, "month", month as fn(Date) -> (i16, i16)),
        (policy.yearly, "year", year as fn(Date) -> (i16, i16)),
    ] {
        let of = |finished: &Moment| period(finished.to_civil().date());
        let mut seen = BTreeSet::new();
        for (finished, index) in points {
            if seen.len() >= count as usize {
                break;
            }
            if seen.insert(of(finished)) {
                // A state that needs no log, if the period has one.
                let mut others = points.iter().filter(|(other, _)| of(other) == of(finished));
                let chosen = others.find(is_data).map_or(*index, |(_, data)| *data);
                kept.push(Kept::for_others(chosen, format!("the {name}'s")));
            }
        }
    }
    kept
}

/// The newest backup of a damaged database: it may contain data that no other backup has.
fn damaged(found: &Found<'_>, own: &[usize], newest: Option<usize>) -> Option<usize> {
    let is_damaged =
        |index: &&usize| found.sets[**index].obstacle.as_ref() == Some(&Obstacle::Damaged);
    let damaged = own.iter().filter(is_damaged);
    let last = damaged.max_by_key(|index| (found.sets[**index].last_lsn, **index))?;
    let is_needed = newest.is_none_or(|newest| is_newer(&found.sets[*last], &found.sets[newest]));
    is_needed.then_some(*last)
}

fn day(date: Date) -> (i16, i16) {
    (date.year(), date.day_of_year())
}

fn week(date: Date) -> (i16, i16) {
    let week = date.iso_week_date();
    (week.year(), week.week().into())
}

fn month(date: Date) -> (i16, i16) {
    (date.year(), date.month().into())
}

fn year(date: Date) -> (i16, i16) {
    (date.year(), 0)
}

/// Keeps what kept sets need. A medium is kept with all its sets, so this repeats until nothing changes.
fn keep_bases(found: &Found<'_>, reasons: &mut [BTreeSet<String>]) {
    loop {
        let mut changed = false;
        for (index, (medium, _)) in found.places.iter().enumerate() {
            if reasons[*medium].is_empty() {
                continue;
            }
            for base in found.needed(index) {
                let (place, _) = found.places[base];
                if place != *medium && reasons[place].is_empty() {
                    let above = found.media[*medium].files.first();
                    let above = above.map(|file| file.device.to_string());
                    let above = above.unwrap_or_default();
                    reasons[place].insert(match found.sets[base].kind {
                        SetType::Log => format!("the log before '{above}'"),
                        _ => format!("the base of '{above}'"),
                    });
                    changed = true;
                }
            }
        }
        if !changed {
            return;
        }
    }
}

fn going(found: &Found<'_>, medium: usize) -> String {
    let own = found.places.iter().enumerate();
    let own = own.filter(|(_, place)| place.0 == medium);
    let mut needs = own.filter_map(|(index, _)| match found.chains.verdict(index) {
        Err(Why::BaseMissing { .. } | Why::BaseUnusable { .. }) => Some("the full backup it needs"),
        Err(Why::LogMissing) => Some("the log before it"),
        _ => None,
    });
    match needs.next() {
        Some(missing) => format!("no rule keeps it, and {missing} was not found"),
        None => "no rule keeps it".to_owned(),
    }
}
