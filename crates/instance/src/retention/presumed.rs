//! Decides with media of which nobody knows whether they are whole: those that cannot be read now, and those that only the
//! history knows.
//!
//! Rules count backups, so such a medium matters in two ways: if it is whole, what is based on it can be restored and
//! counts; if it is not, it stands for no other. So the rules are applied several times: as if none of these media were
//! whole, as if those were that may only be hidden now, and as if all were. What stays in one of these views stays, and
//! goes is what goes in each of them.

use std::collections::BTreeSet;

use super::decide::as_found;
use super::{Decision, FoundMedia, Now, Policy};

/// Decides about every medium, in order. `database` limits deletion to one database's backups.
pub fn decide(
    media: &[FoundMedia],
    policy: &Policy,
    database: Option<&str>,
    now: Now,
) -> Vec<Decision> {
    let held = vec![BTreeSet::new(); media.len()];
    decide_holding(media, policy, database, now, held)
}

/// The same with further reasons for each medium to stay, which no rule knows: what it needs stays too.
pub fn decide_holding(
    media: &[FoundMedia],
    policy: &Policy,
    database: Option<&str>,
    now: Now,
    mut held: Vec<BTreeSet<String>>,
) -> Vec<Decision> {
    let mut views: Vec<Vec<FoundMedia>> = Vec::new();
    let presumptions: [fn(&FoundMedia) -> bool; 2] =
        [FoundMedia::is_hidden, FoundMedia::is_presumed];
    for is_presumed in presumptions {
        if media.iter().any(is_presumed) {
            views.push(with_whole(media, is_presumed));
        }
    }
    views.dedup();
    loop {
        let each = std::iter::once(media).chain(views.iter().map(Vec::as_slice));
        let decided = each.map(|view| as_found(view, policy, database, now, &held));
        let decided: Vec<Vec<Decision>> = decided.collect();
        if !hold(&decided, &mut held) {
            return joined(media, decided);
        }
    }
}

/// The media, some of them without their trouble.
fn with_whole(media: &[FoundMedia], is_whole: fn(&FoundMedia) -> bool) -> Vec<FoundMedia> {
    let mut media = media.to_vec();
    for media in media.iter_mut().filter(|media| is_whole(media)) {
        media.trouble = None;
    }
    media
}

/// Notes why media stay that only some of the views keep. Returns whether there are any: then what these need has to
/// stay in the other views too.
fn hold(decided: &[Vec<Decision>], held: &mut [BTreeSet<String>]) -> bool {
    let mut is_changed = false;
    for (index, held) in held.iter_mut().enumerate() {
        let own = || decided.iter().map(|decisions| &decisions[index]);
        if own().all(|decision| !decision.goes) {
            continue;
        }
        let Some(stays) = own().find(|decision| !decision.goes) else {
            continue;
        };
        let is_presumed = decided[0][index].goes;
        held.extend(stays.reasons.iter().map(|reason| match is_presumed {
            true => format!("{reason}, with what cannot be read now"),
            false => reason.clone(),
        }));
        is_changed = true;
    }
    is_changed
}

/// One decision of several that agree about what goes.
fn joined(media: &[FoundMedia], decided: Vec<Vec<Decision>>) -> Vec<Decision> {
    let mut decided = decided.into_iter();
    let mut all = decided.next().unwrap_or_default();
    for decisions in decided {
        let each = media.iter().zip(&mut all).zip(decisions);
        // What is in trouble cannot be read.
        for ((_, own), other) in each.filter(|((media, _), _)| media.trouble.is_none()) {
            own.relied_on.extend(other.relied_on);
            for (place, ends) in other.unread {
                if !own.unread.iter().any(|(known, _)| *known == place) {
                    own.unread.push((place, ends));
                }
            }
        }
    }
    all
}
