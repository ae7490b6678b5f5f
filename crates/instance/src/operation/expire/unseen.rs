//! Backups elsewhere that cannot be seen now, and what stays because of them.

use std::collections::BTreeSet;

use windlass_base::message::table;
use windlass_catalog::PastBackup;
use windlass_device::DeviceFolder;

use super::{ExpireError, ExpireOptions, Reach, unreadable};
use crate::Sink;
use crate::retention::{self, FoundMedia, Now, Sake};

/// Refuses folders that are said to be gone, and of which that says nothing: one of them may be mistyped.
pub(super) fn check_gone(
    gone: &[DeviceFolder],
    past: &[PastBackup],
    reach: &Reach,
) -> Result<(), ExpireError> {
    let mut gone = gone.iter();
    match gone.find(|folder| !retention::lacks_known(folder, past, reach)) {
        Some(folder) => Err(ExpireError::NothingGone(folder.clone())),
        None => Ok(()),
    }
}

/// Tells what stays because of backups that cannot be seen or read, and what the user can do. Those of the folders that
/// cannot be read are named, unless they were before, and returned.
pub(super) fn tell(
    media: &[FoundMedia],
    told: &BTreeSet<usize>,
    options: &ExpireOptions<'_>,
    now: Now,
    sink: &mut dyn Sink,
) -> BTreeSet<usize> {
    let kept = retention::kept_for_presumed(media, options.policy, options.database, now);
    let name = |index: usize| {
        let file = media[index].files.first();
        file.map_or_else(String::new, |file| file.device.to_string())
    };
    let mut unreadable = BTreeSet::new();
    for ((presumed, sake), kept) in kept {
        let Some(why) = media[presumed].unseen.as_deref() else {
            if !told.contains(&presumed) && unreadable.insert(presumed) {
                let why = media[presumed].trouble.as_deref().unwrap_or_default();
                unreadable::tell(&media[presumed], 0, why, sink);
            }
            continue;
        };
        let first = kept.first().copied().map(name).unwrap_or_default();
        let stays = match kept.len() - 1 {
            0 => format!("'{first}' stays"),
            1 => format!("'{first}' and another one stay"),
            more => format!("'{first}' and {more} others stay"),
        };
        let device = name(presumed);
        sink.message(match sake {
            Sake::Needs => table::kept_for_unseen(stays, device, why),
            Sake::Needed => table::kept_upon_unseen(stays, device, why),
        });
    }
    unreadable
}
