//! Backups whose headers cannot be read: they are no reason to delete others.
//!
//! If the history knows what such a file contains, the rules count its backups, find that they cannot be
//! read, and do without them; what needs them stays as if they were whole ([`retention::decide()`]). Otherwise the file may
//! be the newest backup of any database: nothing is deleted while there is one.

use std::collections::BTreeSet;

use windlass_base::message::table;
use windlass_device::DeviceAddress;

use super::ExpireOptions;
use crate::Sink;
use crate::retention::{self, FoundMedia, Now, Scan};

/// A file that may be a backup.
#[derive(Debug)]
pub(super) struct Doubt {
    pub(super) device: DeviceAddress,
    pub(super) why: String,
}

impl Doubt {
    /// Why others stay.
    pub(super) fn reason(&self) -> String {
        format!(
            "'{}' may be a newer backup, and cannot be read",
            self.device
        )
    }
}

/// The first file whose backups are not known.
pub(super) fn doubt(scan: &Scan) -> Option<Doubt> {
    let other = scan.others.iter().find(|other| other.may_be_medium);
    if let Some(other) = other {
        return Some(Doubt {
            device: other.device.clone(),
            why: other.reason.clone(),
        });
    }
    let unknown = |media: &&FoundMedia| !media.lacks_known && !media.is_outside;
    let torn = scan
        .media
        .iter()
        .filter(unknown)
        .find_map(FoundMedia::torn)?;
    Some(Doubt {
        device: torn.device.clone(),
        why: torn.defect.clone().unwrap_or_default(),
    })
}

/// Reports the backups that the history knows, that the rules would count, and that cannot be read. They count for
/// nothing. Returns the media that were named.
pub(super) fn report(
    media: &mut [FoundMedia],
    options: &ExpireOptions<'_>,
    now: Now,
    sink: &mut dyn Sink,
) -> BTreeSet<usize> {
    let mut told = BTreeSet::new();
    let lacking = |media: &mut FoundMedia| match media.lacks_known {
        true => Some(media.trouble.take().unwrap_or_else(|| CUT_OFF.to_owned())),
        false => None,
    };
    let mut troubles: Vec<Option<String>> = media.iter_mut().map(lacking).collect();
    loop {
        let decisions = retention::decide(media, options.policy, options.database, now);
        let mut is_settled = true;
        let each = media.iter_mut().zip(&decisions).zip(&mut troubles);
        for (index, ((media, decision), trouble)) in each.enumerate() {
            let Some(place) = decision.relied_on.last() else {
                continue;
            };
            let Some(why) = trouble.take() else {
                continue;
            };
            tell(media, *place, &why, sink);
            media.trouble = Some(why);
            told.insert(index);
            is_settled = false;
        }
        if is_settled {
            break;
        }
    }
    for (media, trouble) in media.iter_mut().zip(troubles) {
        if trouble.is_some() {
            media.trouble = trouble;
        }
    }
    told
}

/// Says that a medium cannot be read, and what that means for the set at a place on it.
pub(super) fn tell(media: &FoundMedia, place: usize, why: &str, sink: &mut dyn Sink) {
    let file = media.torn().or(media.files.first());
    let name = file.map_or_else(String::new, |file| file.device.to_string());
    sink.message(match media.may_pass {
        true => table::relied_set_hidden(name, why),
        false => table::relied_set_damaged(name, place + 1, format!("{why}.")),
    });
}

/// What is wrong with a medium that is shorter than the history says.
const CUT_OFF: &str = "it does not hold the backup that the history has there";
