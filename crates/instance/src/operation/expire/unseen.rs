//! Backups elsewhere that cannot be seen now, and what stays because of them.

use windlass_base::message::table;
use windlass_catalog::PastBackup;
use windlass_device::DeviceFolder;

use super::{ExpireError, ExpireOptions, Reach};
use crate::Sink;
use crate::retention::{self, FoundMedia, Now};

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

/// Tells what stays, for the sake of what, and what the user can do.
pub(super) fn tell(
    media: &[FoundMedia],
    options: &ExpireOptions<'_>,
    now: Now,
    sink: &mut dyn Sink,
) {
    let kept = retention::kept_for_unseen(media, options.policy, options.database, now);
    let name = |index: usize| {
        let file = media[index].files.first();
        file.map_or_else(String::new, |file| file.device.to_string())
    };
    for (unseen, kept) in kept {
        let first = kept.first().copied().map(name).unwrap_or_default();
        let stays = match kept.len() - 1 {
            0 => format!("'{first}' stays"),
            1 => format!("'{first}' and another one stay"),
            more => format!("'{first}' and {more} others stay"),
        };
        let why = media[unseen].unseen.as_deref().unwrap_or_default();
        sink.message(table::kept_for_unseen(stays, name(unseen), why));
    }
}
