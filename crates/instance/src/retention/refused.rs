//! Sets that look complete, and that a restore refuses before it reads their content.
//!
//! The headers of a folder are read from the ends of its media, so that damage at the start of a set does not show. What a
//! restore needs is opened as the restore would do it.

use windlass_base::at_once::at_once;
use windlass_device::{DeviceAddress, Operation};
use windlass_pipeline::{Error, MediaSet};

use super::{FoundMedia, Place};

/// Why each of some sets would be refused; `None` if one of its copies would not.
pub fn refusals(media: &[FoundMedia], places: &[Place]) -> Vec<Option<String>> {
    let mut files = places.iter().flat_map(|(medium, _)| &media[*medium].files);
    let is_remote = files.any(|file| file.device.is_object());
    at_once(places.iter().copied(), is_remote, |(medium, place)| {
        refusal(&media[medium], place)
    })
}

fn refusal(media: &FoundMedia, place: usize) -> Option<String> {
    let position = u16::try_from(place + 1).ok()?;
    let mut refusal = None;
    for copy in media.copies(place) {
        match opened(&copy, position) {
            Ok(()) => return None,
            Err(error) if is_of_now(&error) => return None,
            Err(error) => refusal = refusal.or(Some(error.to_string())),
        }
    }
    refusal
}

fn opened(devices: &[DeviceAddress], position: u16) -> Result<(), Error> {
    MediaSet::open(devices)?.check_complete(position)
}

/// Whether an error says nothing of the set: since its headers were read, a backup has overwritten it, or writes to its medium.
fn is_of_now(error: &Error) -> bool {
    match error {
        Error::SetNotFound { .. } => true,
        Error::Device(error) => error.operation == Operation::Open,
        _ => false,
    }
}
