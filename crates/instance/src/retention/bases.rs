//! Backups outside of the folders on which some inside are based: those that the history knows, and that are not known to
//! be gone.
//!
//! They stand for no other backup: their folder was not named, or nobody can see them now. But what needs them may be
//! restorable, so the rules count it as if they were whole ([`super::decide()`]).

use std::collections::{BTreeMap, BTreeSet};

use windlass_base::Guid;
use windlass_catalog::PastBackup;
use windlass_device::DeviceFolder;

use super::outside::{Found, Places, add_unseen};
use super::{FoundMedia, Scan, chain_sets};
use crate::chain::{ChainSet, Chains};
use crate::operation::Reach;

/// Adds what backups inside need and lack: full backups of differentials, and what log backups continue. In the folders
/// `gone`, what is not found is gone.
pub fn add_bases(scan: &mut Scan, past: &[PastBackup], reach: &Reach, gone: &[DeviceFolder]) {
    let mut places = Places::of(past, reach, gone);
    // Why each of them may still exist; nothing if it is gone.
    let mut looked_at: BTreeMap<i64, Option<String>> = BTreeMap::new();
    let needed = loop {
        let is_gone = |backup: &&PastBackup| looked_at.get(&backup.id) == Some(&None);
        let others: Vec<&PastBackup> = past.iter().filter(|backup| !is_gone(backup)).collect();
        let needed = needed(scan, &others);
        let new = needed.iter().copied();
        let new: Vec<&PastBackup> = new
            .filter(|backup| !looked_at.contains_key(&backup.id))
            .collect();
        if new.is_empty() {
            break needed;
        }
        for backup in new {
            let why = match places.look(backup) {
                Found::There(_) => Some("it is there, and its folder was not named".to_owned()),
                Found::Unseen(why) => Some(why),
                Found::Gone => None,
            };
            looked_at.insert(backup.id, why);
        }
        // In the place of one that is gone, another one may be needed.
    };
    let mut unseen: BTreeMap<Guid, FoundMedia> = BTreeMap::new();
    for backup in needed {
        if let Some(Some(why)) = looked_at.get(&backup.id) {
            add_unseen(&mut unseen, backup, reach, why.clone());
        }
    }
    scan.media.extend(unseen.into_values());
}

/// The backups among `past` that those inside need, and that are not among what was found.
fn needed<'a>(scan: &Scan, past: &[&'a PastBackup]) -> Vec<&'a PastBackup> {
    let (places, mut sets) = chain_sets(&scan.media);
    let count = sets.len();
    let known: BTreeSet<Guid> = sets.iter().map(|set| set.set_guid).collect();
    let families: BTreeSet<Guid> = sets.iter().map(|set| set.family_guid).collect();
    let mut outside = Vec::new();
    for backup in past {
        let is_known = backup.set_guid.is_none_or(|guid| known.contains(&guid));
        // What the user has made the history forget is gone.
        let is_over = backup.is_overwritten || backup.is_forgotten;
        if is_known || is_over || !families.contains(&backup.of.family_guid) {
            continue;
        }
        if let Some(set) = ChainSet::of_past(backup) {
            sets.push(set);
            outside.push(*backup);
        }
    }
    if outside.is_empty() {
        return outside;
    }
    let chains = Chains::of(&sets);
    let is_inside = |index: &usize| !scan.media[places[*index].0].is_outside;
    let mut next: Vec<usize> = (0..count).filter(is_inside).collect();
    let mut is_needed = vec![false; sets.len()];
    while let Some(index) = next.pop() {
        if std::mem::replace(&mut is_needed[index], true) {
            continue;
        }
        next.extend(chains.before(index));
        next.extend(chains.begin(index));
    }
    let outside = outside.into_iter().zip(&is_needed[count..]);
    outside
        .filter_map(|(backup, is_needed)| is_needed.then_some(backup))
        .collect()
}
