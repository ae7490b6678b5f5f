//! What stays only because of backups that nobody can see or read now.

use std::collections::{BTreeMap, BTreeSet};

use super::decide::{Found, as_found, counted_sets};
use super::{FoundMedia, Now, Policy, decide};
use crate::chain::Chains;

/// What others have to do with a medium that nobody can see or read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sake {
    /// It needs them.
    Needs,
    /// They need it.
    Needed,
}

/// The media that would go if those that cannot be seen or read were gone, by one of the latter and what they have to do
/// with it; all by their indices.
pub fn kept_for_presumed(
    media: &[FoundMedia],
    policy: &Policy,
    database: Option<&str>,
    now: Now,
) -> BTreeMap<(usize, Sake), Vec<usize>> {
    let mut kept: BTreeMap<(usize, Sake), Vec<usize>> = BTreeMap::new();
    let mut presumed = (0..media.len()).filter(|index| media[*index].is_presumed());
    let Some(first) = presumed.next() else {
        return kept;
    };
    let seen: Vec<usize> = (0..media.len())
        .filter(|index| media[*index].unseen.is_none())
        .collect();
    let others: Vec<FoundMedia> = seen.iter().map(|index| media[*index].clone()).collect();
    let with = decide(media, policy, database, now);
    let none = vec![BTreeSet::new(); others.len()];
    let without = as_found(&others, policy, database, now, &none);
    let (places, sets) = counted_sets(media);
    let found = Found {
        media,
        places: &places,
        sets: &sets,
        chains: Chains::of(&sets),
    };
    let needed = needed_by_unseen(&found);
    let sake = |index: usize| match (needed.get(&index), needs_presumed(&found, index)) {
        (Some(unseen), _) => (*unseen, Sake::Needs),
        (None, Some(presumed)) => (presumed, Sake::Needed),
        (None, None) => (first, Sake::Needs),
    };
    for (index, without) in seen.into_iter().zip(without) {
        if without.goes && !with[index].goes {
            kept.entry(sake(index)).or_default().push(index);
        }
    }
    kept
}

/// For each medium that unseen ones need, one of these.
fn needed_by_unseen(found: &Found<'_>) -> BTreeMap<usize, usize> {
    let unseen = |index: &usize| {
        let (medium, _) = found.places[*index];
        found.media[medium].unseen.is_some().then_some(medium)
    };
    let all = 0..found.sets.len();
    let mut next: Vec<(usize, usize)> = all
        .filter_map(|index| Some((index, unseen(&index)?)))
        .collect();
    let mut seen = vec![false; found.sets.len()];
    let mut needed = BTreeMap::new();
    while let Some((index, whom)) = next.pop() {
        if std::mem::replace(&mut seen[index], true) {
            continue;
        }
        let whom = unseen(&index).unwrap_or(whom);
        needed.entry(found.places[index].0).or_insert(whom);
        let before = found.needed(index).into_iter();
        let before = before.chain(found.chains.begin(index));
        next.extend(before.map(|before| (before, whom)));
    }
    needed
}

/// A medium that cannot be seen or read, and that another one needs.
fn needs_presumed(found: &Found<'_>, medium: usize) -> Option<usize> {
    let all = 0..found.sets.len();
    let own = all.filter(|index| found.places[*index].0 == medium);
    let needed = own.flat_map(|index| found.needed_in_all(index));
    let mut others = needed.map(|index| found.places[index].0);
    others.find(|other| *other != medium && found.media[*other].is_presumed())
}
