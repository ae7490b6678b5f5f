//! Backups that were made while others were read back.
//!
//! Reading back takes as long as the backups are large. A differential that ends meanwhile may be based on what was
//! about to go.

use super::state;
use crate::retention::{FoundMedia, Scan};

/// Adds what a later look has found; the places of what was known stay the same. Returns the known media that got
/// further sets, `None` if there is nothing new. What was overwritten or removed is left to the checks before a
/// deletion.
pub(super) fn add(scan: &mut Scan, states: &mut Vec<String>, later: Scan) -> Option<Vec<usize>> {
    let known = scan.media.len();
    let mut appended = Vec::new();
    for medium in later.media {
        let is_same = |one: &FoundMedia| {
            one.media_set_guid == medium.media_set_guid && one.is_outside == medium.is_outside
        };
        match scan.media.iter().position(is_same) {
            None => {
                states.push(state(&medium));
                scan.media.push(medium);
            }
            Some(index) if has_more(&scan.media[index], &medium) => {
                let one = &mut scan.media[index];
                let further = one.sets.len();
                one.sets.extend_from_slice(&medium.sets[further..]);
                one.files = medium.files;
                states[index] = state(one);
                appended.push(index);
            }
            Some(_) => {}
        }
    }
    (scan.media.len() > known || !appended.is_empty()).then_some(appended)
}

/// Whether a medium was appended to.
fn has_more(then: &FoundMedia, now: &FoundMedia) -> bool {
    let mut pairs = then.sets.iter().zip(&now.sets);
    now.sets.len() > then.sets.len()
        && pairs.all(|(then, now)| then.chain.set_guid == now.chain.set_guid)
}
