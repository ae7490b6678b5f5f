//! The last look at the media of a backup: what was written must be found under their names.
//!
//! A medium can be removed, replaced, truncated or overwritten while a backup holds it open. Then everything
//! was written, and nothing is there. A file that is truncated and then written further has a hole: where one
//! is, all that was written there is read and compared with its checksums.

use std::ops::Range;

use windlass_base::checksum::checksum;
use windlass_device::DeviceAddress;
use windlass_media::{ChunkHeader, MediaError, SetConfiguration};

use crate::error::Error;
use crate::media_set::{Family, MediaSet};
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
        let found = MediaSet::open(copy).and_then(|media| {
            media.families.iter().try_for_each(check_holes)?;
            media.set(set.position)
        });
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

/// Checks every set of a family with a hole in it: all of its headers, and the payloads in the holes. File
/// systems that store no zeros have holes where zeros were written.
fn check_holes(family: &Family) -> Result<(), Error> {
    let holes = family.reader.holes()?;
    if holes.is_empty() {
        return Ok(());
    }
    for set in &family.listing.sets {
        let mut damaged = None;
        let mut payload = Vec::new();
        family.read(|reader| {
            let walked = reader.walk(set, &mut |chunk, offset| {
                let range = offset..offset + u64::from(chunk.stored_bytes);
                if holes.iter().any(|hole| overlaps(hole, &range)) {
                    damaged = check_payload(family, &chunk, offset, &mut payload).err();
                }
                damaged.is_none()
            });
            match damaged.is_some() {
                true => Ok(()),
                false => walked.map(drop),
            }
        })?;
        damaged.map_or(Ok(()), Err)?;
    }
    Ok(())
}

fn overlaps(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

fn check_payload(
    family: &Family,
    chunk: &ChunkHeader,
    offset: u64,
    payload: &mut Vec<u8>,
) -> Result<(), Error> {
    payload.resize(chunk.stored_bytes as usize, 0);
    let read = family.reader.read_at(payload, offset)?;
    let found = checksum(&payload[..read]);
    if read == payload.len() && found == chunk.stored_checksum {
        return Ok(());
    }
    Err(Error::Media {
        device: family.device.to_string(),
        source: MediaError::Damaged {
            offset,
            what: "checksum of a payload",
            expected: chunk.stored_checksum,
            found,
        },
    })
}
