//! Decides for each medium whether it is kept or deleted, with the reason.

use std::collections::BTreeSet;

use jiff::civil::Date;
use windlass_base::Moment;
use windlass_media::SetType;

use super::{FoundMedia, FoundSet, Place, Policy, chain_sets};
use crate::chain::{ChainSet, Chains, Obstacle, Why, is_newer};

/// What happens to a medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether its files are deleted.
    pub goes: bool,
    /// The reasons; never empty.
    pub reasons: Vec<String>,
}

/// The sets on all media, with their chains.
struct Found<'a> {
    media: &'a [FoundMedia],
    places: &'a [Place],
    sets: &'a [ChainSet],
    chains: Chains<'a>,
}

impl Found<'_> {
    fn set(&self, index: usize) -> &FoundSet {
        let (medium, place) = self.places[index];
        &self.media[medium].sets[place]
    }
}

/// Decides about every medium, in order. `database` limits deletion to one database's backups.
pub fn decide(
    media: &[FoundMedia],
    policy: &Policy,
    database: Option<&str>,
    now: Moment,
) -> Vec<Decision> {
    let (places, mut sets) = chain_sets(media);
    for (place, set) in places.iter().zip(&mut sets) {
        // Sets on damaged media do not count when others are deleted.
        if let Some(trouble) = &media[place.0].trouble {
            set.obstacle.get_or_insert(Obstacle::Media(trouble.clone()));
        }
    }
    let found = Found {
        media,
        places: &places,
        sets: &sets,
        chains: Chains::of(&sets),
    };
    let mut reasons: Vec<BTreeSet<String>> = media
        .iter()
        .map(|media| of_medium(media, database, now))
        .collect();
    for family in found.chains.families() {
        let own = (0..sets.len()).filter(|index| sets[*index].family_guid == family);
        for (index, reason) in by_policy(&found, &own.collect::<Vec<_>>(), policy, now) {
            reasons[places[index].0].insert(reason);
        }
    }
    keep_bases(&found, &mut reasons);
    let decided = reasons.into_iter().enumerate();
    decided
        .map(|(medium, reasons)| {
            if reasons.is_empty() {
                Decision {
                    goes: true,
                    reasons: vec![going(&found, medium)],
                }
            } else {
                Decision {
                    goes: false,
                    reasons: reasons.into_iter().collect(),
                }
            }
        })
        .collect()
}

/// The reasons to keep a medium that do not depend on other media.
fn of_medium(media: &FoundMedia, database: Option<&str>, now: Moment) -> BTreeSet<String> {
    let mut reasons = BTreeSet::new();
    if media.is_outside {
        reasons.insert("outside of the folders".to_owned());
    }
    if let Some(trouble) = &media.trouble {
        reasons.insert(format!("needs a look: {trouble}"));
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
        if database.is_some_and(|wanted| !wanted.eq_ignore_ascii_case(&set.database)) {
            reasons.insert(format!("holds a backup of '{}'", set.database));
        }
        if set.chain.kind == SetType::Log {
            reasons.insert("holds a log backup".to_owned());
        }
        if set.finished.is_none() || !set.is_complete() {
            reasons.insert("contains an unfinished backup".to_owned());
        }
    }
    reasons
}

/// The sets of one family that the policy keeps, with the reasons.
fn by_policy(
    found: &Found<'_>,
    family: &[usize],
    policy: &Policy,
    now: Moment,
) -> Vec<(usize, String)> {
    let mut kept = Vec::new();
    let mut points: Vec<(Moment, usize)> = Vec::new();
    for index in family {
        let Some(finished) = found.set(*index).finished else {
            continue;
        };
        if policy.is_within(finished, now) {
            kept.push((*index, "young enough".to_owned()));
        }
        if found.chains.verdict(*index).is_ok() {
            points.push((finished, *index));
        }
    }
    let place = |index: usize| (found.sets[index].last_lsn, found.places[index]);
    points.sort_by_key(|(finished, index)| std::cmp::Reverse((*finished, place(*index))));
    let newest = found.chains.newest_among(family.iter().copied());
    if let Some(newest) = newest {
        kept.push((newest, "the newest of its database".to_owned()));
    }
    kept.extend(damaged(found, family, newest));
    for (number, (_, index)) in points.iter().take(policy.last as usize).enumerate() {
        kept.push((
            *index,
            format!("{} of the last {}", number + 1, policy.last),
        ));
    }
    for kind in [SetType::Full, SetType::Differential] {
        let of_kind = points
            .iter()
            .filter(|(_, index)| found.sets[*index].kind == kind);
        for (_, index) in of_kind.take(policy.last_of_kind as usize) {
            let count = policy.last_of_kind;
            kept.push((*index, format!("among the last {count} of its kind")));
        }
    }
    for (count, name, period) in [
        (policy.daily, "day", day as fn(Date) -> (i16, i16)),
        (policy.weekly, "week", week as fn(Date) -> (i16, i16)),
        (policy.monthly, "month", month as fn(Date) -> (i16, i16)),
        (policy.yearly, "year", year as fn(Date) -> (i16, i16)),
    ] {
        let mut seen = BTreeSet::new();
        for (finished, index) in &points {
            if seen.len() >= count as usize {
                break;
            }
            if seen.insert(period(finished.to_civil().date())) {
                kept.push((*index, format!("the {name}'s")));
            }
        }
    }
    kept
}

/// The newest backup of a damaged database: it may contain data that no other backup has.
fn damaged(found: &Found<'_>, family: &[usize], newest: Option<usize>) -> Option<(usize, String)> {
    let is_damaged =
        |index: &&usize| found.sets[**index].obstacle.as_ref() == Some(&Obstacle::Damaged);
    let damaged = family.iter().filter(is_damaged);
    let last = damaged.max_by_key(|index| (found.sets[**index].last_lsn, **index))?;
    let is_needed = newest.is_none_or(|newest| is_newer(&found.sets[*last], &found.sets[newest]));
    let reason = "its database was damaged, and it is newer than any restorable backup";
    is_needed.then(|| (*last, reason.to_owned()))
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
            let Some(base) = found.chains.before(index) else {
                continue;
            };
            let (place, _) = found.places[base];
            if place != *medium && reasons[place].is_empty() {
                let above = found.media[*medium].files.first();
                let above = above.map(|file| file.path.display().to_string());
                let above = above.unwrap_or_default();
                reasons[place].insert(format!("the base of '{above}'"));
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

fn going(found: &Found<'_>, medium: usize) -> String {
    let own = found.places.iter().enumerate();
    let mut own = own.filter(|(_, place)| place.0 == medium);
    let is_orphan = own.any(|(index, _)| {
        matches!(
            found.chains.verdict(index),
            Err(Why::BaseMissing { .. } | Why::BaseUnusable { .. })
        )
    });
    if is_orphan {
        "no rule keeps it, and the full backup it needs was not found".to_owned()
    } else {
        "no rule keeps it".to_owned()
    }
}
