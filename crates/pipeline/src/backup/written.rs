//! The last look at the media of a backup: what was written must be found under their names.
//!
//! A medium can be removed, replaced, truncated or overwritten while a backup holds it open. Then everything
//! was written, and nothing is there.

use windlass_device::DeviceAddress;
use windlass_media::SetConfiguration;

use crate::error::Error;
use crate::media_set::MediaSet;
use crate::request::MediaRequest;

/// Reads the headers of every copy of the media.
///
/// # Errors
/// [`Error::WrittenLost`] if one does not hold the complete set.
pub(super) fn check(media: &MediaRequest, set: &SetConfiguration) -> Result<(), Error> {
    for copy in std::iter::once(&media.devices).chain(&media.mirrors) {
        if copy.iter().any(DeviceAddress::discards) {
            continue;
        }
        let lost = |reason: String| {
            let names: Vec<&str> = copy.iter().map(|device| device.name.as_str()).collect();
            Error::WrittenLost {
                devices: names.join("', '"),
                reason,
            }
        };
        let found = MediaSet::open(copy).and_then(|media| media.set(set.position));
        let found = found.map_err(|error| lost(error.to_string()))?;
        if found.configuration.set_guid != set.set_guid || !found.is_complete {
            return Err(lost(format!(
                "set {} is another one, or incomplete",
                set.position
            )));
        }
    }
    Ok(())
}
