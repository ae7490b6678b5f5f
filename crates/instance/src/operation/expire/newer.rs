//! Backups that were made while others were read back.
//!
//! Reading back takes as long as the backups are large. A differential that ends meanwhile may be based on what was
//! about to go.

use windlass_device::DeviceAddress;

use super::state;
use crate::retention::{FoundMedia, Scan};

/// Adds what a later look has found; the places of what was known stay the same. Returns the known media that got
/// further sets, `None` if there is nothing new. What was overwritten or removed is left to the checks before a
/// deletion.
pub(super) fn add(scan: &mut Scan, states: &mut Vec<String>, later: Scan) -> Option<Vec<usize>> {
    let known = scan.media.len();
    let mut appended = Vec::new();
    for medium in later.media {
        match place_of(&scan.media, &medium) {
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

/// Which of some media this one was: of several of one media set, the one that begins with the same set, as INIT keeps the
/// identity of a media set; or that had one of its files.
fn place_of(media: &[FoundMedia], now: &FoundMedia) -> Option<usize> {
    let is_near = |then: &FoundMedia| {
        then.media_set_guid == now.media_set_guid && then.is_outside == now.is_outside
    };
    let first = |one: &FoundMedia| one.sets.first().map(|set| set.chain.set_guid);
    let has_file = |then: &FoundMedia| {
        let has = |device: &DeviceAddress| now.files.iter().any(|file| file.device == *device);
        then.files.iter().any(|file| has(&file.device))
    };
    let is_same = |then: &FoundMedia| is_near(then) && first(then) == first(now);
    let was_it = |then: &FoundMedia| is_near(then) && has_file(then);
    let same = media.iter().position(is_same);
    same.or_else(|| media.iter().position(was_it))
}

/// Whether a medium was appended to.
fn has_more(then: &FoundMedia, now: &FoundMedia) -> bool {
    let mut pairs = then.sets.iter().zip(&now.sets);
    now.sets.len() > then.sets.len()
        && pairs.all(|(then, now)| then.chain.set_guid == now.chain.set_guid)
}
