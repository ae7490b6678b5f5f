//! What stays only for the sake of backups that nobody can see now.

use std::collections::BTreeMap;

use super::decide::{Found, counted_sets, decide};
use super::{FoundMedia, Now, Policy};
use crate::chain::Chains;

/// The media that would go if the unseen ones were gone, by the unseen medium that needs them; all by their indices.
pub fn kept_for_unseen(
    media: &[FoundMedia],
    policy: &Policy,
    database: Option<&str>,
    now: Now,
) -> BTreeMap<usize, Vec<usize>> {
    let mut kept: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let Some(first) = media.iter().position(|media| media.unseen.is_some()) else {
        return kept;
    };
    let seen: Vec<usize> = (0..media.len())
        .filter(|index| media[*index].unseen.is_none())
        .collect();
    let others: Vec<FoundMedia> = seen.iter().map(|index| media[*index].clone()).collect();
    let with = decide(media, policy, database, now);
    let without = decide(&others, policy, database, now);
    let needed = needed_by_unseen(media);
    for (index, without) in seen.into_iter().zip(without) {
        if without.goes && !with[index].goes {
            let unseen = needed.get(&index).copied().unwrap_or(first);
            kept.entry(unseen).or_default().push(index);
        }
    }
    kept
}

/// For each medium that unseen ones need, one of these.
fn needed_by_unseen(media: &[FoundMedia]) -> BTreeMap<usize, usize> {
    let (places, sets) = counted_sets(media);
    let found = Found {
        media,
        places: &places,
        sets: &sets,
        chains: Chains::of(&sets),
    };
    let unseen = |index: &usize| {
        let (medium, _) = places[*index];
        media[medium].unseen.is_some().then_some(medium)
    };
    let all = 0..sets.len();
    let mut next: Vec<(usize, usize)> = all
        .filter_map(|index| Some((index, unseen(&index)?)))
        .collect();
    let mut seen = vec![false; sets.len()];
    let mut needed = BTreeMap::new();
    while let Some((index, whom)) = next.pop() {
        if std::mem::replace(&mut seen[index], true) {
            continue;
        }
        let whom = unseen(&index).unwrap_or(whom);
        needed.entry(places[index].0).or_insert(whom);
        let before = found.needed(index).into_iter();
        let before = before.chain(found.chains.begin(index));
        next.extend(before.map(|before| (before, whom)));
    }
    needed
}
