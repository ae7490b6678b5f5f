//! For each medium: stays or goes, and why.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use windlass_base::{Guid, Moment};
use windlass_media::SetType;

use super::{FoundMedia, FoundSet, Policy};

/// What happens to a medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether its files go.
    pub goes: bool,
    /// Why; never empty.
    pub reasons: Vec<String>,
}

/// Where a set is: its medium and its place on it.
type Place = (usize, usize);

/// Decides about every medium, in their order. `database` limits what may go to one database's backups.
pub fn decide(
    media: &[FoundMedia],
    policy: &Policy,
    database: Option<&str>,
    now: Moment,
) -> Vec<Decision> {
    let usable = usable(media);
    let mut reasons: Vec<BTreeSet<String>> = media
        .iter()
        .map(|media| of_medium(media, database, now))
        .collect();
    for family in families(media).values() {
        for (place, reason) in by_policy(media, family, &usable, policy, now) {
            reasons[place.0].insert(reason);
        }
    }
    keep_bases(media, &usable, &mut reasons);
    let decided = media.iter().zip(reasons);
    decided
        .map(|(media, reasons)| {
            if reasons.is_empty() {
                Decision {
                    goes: true,
                    reasons: vec![going(media, &usable)],
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

/// The sets that can be read, by identity.
fn usable(media: &[FoundMedia]) -> BTreeMap<Guid, Place> {
    let mut usable = BTreeMap::new();
    for (number, medium) in media.iter().enumerate() {
        if medium.trouble.is_some() || !medium.is_whole() {
            continue;
        }
        for (place, set) in medium.sets.iter().enumerate() {
            if set.is_complete {
                usable.insert(set.set_guid, (number, place));
            }
        }
    }
    usable
}

/// The reasons for which a medium stays that have nothing to do with other media.
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
        reasons.insert(format!("not all of its {count} stripes are here"));
    }
    if media.sets.is_empty() {
        reasons.insert("holds no backup set".to_owned());
    }
    for set in &media.sets {
        if let Some(expires) = set.expires.filter(|expires| *expires > now) {
            reasons.insert(format!("expires on {expires}"));
        }
        if database.is_some_and(|wanted| !wanted.eq_ignore_ascii_case(&set.database)) {
            reasons.insert(format!("holds a backup of '{}'", set.database));
        }
        if set.kind == SetType::Log {
            reasons.insert("holds a log backup".to_owned());
        }
        if set.finished.is_none() || !set.is_complete {
            reasons.insert("holds an unfinished backup".to_owned());
        }
    }
    reasons
}

/// The sets of each family of databases.
fn families(media: &[FoundMedia]) -> BTreeMap<Guid, Vec<Place>> {
    let mut families: BTreeMap<Guid, Vec<Place>> = BTreeMap::new();
    for (number, medium) in media.iter().enumerate() {
        for (place, set) in medium.sets.iter().enumerate() {
            let key = set.family_guid;
            families.entry(key).or_default().push((number, place));
        }
    }
    families
}

fn set_at(media: &[FoundMedia], place: Place) -> &FoundSet {
    &media[place.0].sets[place.1]
}

fn is_usable(usable: &BTreeMap<Guid, Place>, guid: Guid) -> bool {
    usable.contains_key(&guid)
}

/// Whether the set and what it needs are there.
fn is_restorable(set: &FoundSet, usable: &BTreeMap<Guid, Place>) -> bool {
    is_usable(usable, set.set_guid) && set.base.is_none_or(|base| is_usable(usable, base))
}

/// The sets of one family that the policy keeps.
fn by_policy(
    media: &[FoundMedia],
    family: &[Place],
    usable: &BTreeMap<Guid, Place>,
    policy: &Policy,
    now: Moment,
) -> Vec<(Place, String)> {
    let mut kept = Vec::new();
    let mut points: Vec<(Moment, Place)> = Vec::new();
    for place in family {
        let set = set_at(media, *place);
        let Some(finished) = set.finished else {
            continue;
        };
        if policy.is_within(finished, now) {
            kept.push((*place, "young enough".to_owned()));
        }
        if is_restorable(set, usable) {
            points.push((finished, *place));
        }
    }
    points.sort_by_key(|(finished, place)| {
        std::cmp::Reverse((*finished, set_at(media, *place).lsn, *place))
    });
    if let Some((_, newest)) = points.first() {
        kept.push((*newest, "the newest of its database".to_owned()));
    }
    for (number, (_, place)) in points.iter().take(policy.last as usize).enumerate() {
        kept.push((
            *place,
            format!("{} of the last {}", number + 1, policy.last),
        ));
    }
    for kind in [SetType::Full, SetType::Differential] {
        let of_kind = points
            .iter()
            .filter(|(_, place)| set_at(media, *place).kind == kind);
        for (_, place) in of_kind.take(policy.last_of_kind as usize) {
            let count = policy.last_of_kind;
            kept.push((*place, format!("among the last {count} of its kind")));
        }
    }
    for (count, name, period) in [
        (policy.daily, "day", day as fn(Date) -> (i16, i16)),
        (policy.weekly, "week", week as fn(Date) -> (i16, i16)),
        (policy.monthly, "month", month as fn(Date) -> (i16, i16)),
        (policy.yearly, "year", year as fn(Date) -> (i16, i16)),
    ] {
        let mut seen = BTreeSet::new();
        for (finished, place) in &points {
            if seen.len() >= count as usize {
                break;
            }
            if seen.insert(period(finished.to_civil().date())) {
                kept.push((*place, format!("the {name}'s")));
            }
        }
    }
    kept
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

/// What stays keeps what it needs, and a medium stays with all its sets, so on to a fixed point.
fn keep_bases(
    media: &[FoundMedia],
    usable: &BTreeMap<Guid, Place>,
    reasons: &mut [BTreeSet<String>],
) {
    loop {
        let mut changed = false;
        for (number, medium) in media.iter().enumerate() {
            if reasons[number].is_empty() {
                continue;
            }
            for base in medium.sets.iter().filter_map(|set| set.base) {
                let Some((place, _)) = usable.get(&base) else {
                    continue;
                };
                if *place != number && reasons[*place].is_empty() {
                    let above = medium.files.first().map(|file| file.path.display());
                    let above = above.map(|path| path.to_string()).unwrap_or_default();
                    reasons[*place].insert(format!("the base of '{above}'"));
                    changed = true;
                }
            }
        }
        if !changed {
            return;
        }
    }
}

fn going(media: &FoundMedia, usable: &BTreeMap<Guid, Place>) -> String {
    let orphan = media
        .sets
        .iter()
        .any(|set| set.base.is_some_and(|base| !is_usable(usable, base)));
    if orphan {
        "no rule keeps it, and the full backup it needs is not here".to_owned()
    } else {
        "no rule keeps it".to_owned()
    }
}
