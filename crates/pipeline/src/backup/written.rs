//! The last look at the media of a backup: what was written must be found under their names.
//!
//! A medium can be removed, replaced, truncated or overwritten while a backup holds it open. Then everything
//! was written, and nothing is there. A file that is truncated and then written further has a hole: where one
//! is, all that was written there is read and compared with its checksums. An object that its store has confirmed and
//! does not give away now is not lost for that.

use std::io::ErrorKind;
use std::ops::Range;

use windlass_base::at_once::at_once;
use windlass_base::checksum::checksum;
use windlass_device::DeviceAddress;
use windlass_media::{ChunkHeader, MediaError, SetConfiguration, SetListing};

use crate::error::Error;
use crate::media_set::{Family, MediaSet};
use crate::request::MediaRequest;

/// Chunk headers that are read of each segment of the index, besides the last.
const SAMPLES: usize = 4;

/// Reads the headers of every copy of the media, whether the end of the set belongs to its start, its index, and
/// a sample of its chunks' headers. Only a verification reads the rest.
///
/// # Errors
/// [`Error::WrittenLost`] if one does not hold the complete set, [`Error::WrittenUnread`] if nobody can tell.
pub(super) fn check(media: &MediaRequest, set: &SetConfiguration) -> Result<(), Error> {
    for copy in std::iter::once(&media.devices).chain(&media.mirrors) {
        let is_unseen = |device: &DeviceAddress| device.discards() || device.is_write_only();
        if copy.iter().any(is_unseen) {
            continue;
        }
        let names: Vec<&str> = copy.iter().map(|device| device.name.as_str()).collect();
        let devices = names.join("', '");
        let reason = match check_copy(copy, set) {
            Ok(true) => continue,
            Ok(false) => format!("set {} is another one", set.position),
            Err(error) if is_unread(copy, &error) => {
                let reason = error.to_string();
                return Err(Error::WrittenUnread { devices, reason });
            }
            Err(error) => error.to_string(),
        };
        return Err(Error::WrittenLost { devices, reason });
    }
    Ok(())
}

/// Whether a store did not give away what it has confirmed: it is busy, or the key may not read.
fn is_unread(copy: &[DeviceAddress], error: &Error) -> bool {
    let Error::Device(error) = error else {
        return false;
    };
    copy.iter().all(DeviceAddress::is_object) && error.source.kind() != ErrorKind::NotFound
}

/// `false` if another set is in its place.
fn check_copy(copy: &[DeviceAddress], set: &SetConfiguration) -> Result<bool, Error> {
    // The next backup may already write to it.
    let copy: Vec<_> = copy
        .iter()
        .map(|device| device.clone().beside_writers().patiently())
        .collect();
    let media = MediaSet::open(&copy)?;
    let found = media.complete(set.position)?;
    let families = media.families.iter().zip(&found.listings);
    let checked = at_once(families, media.is_in_objects(), |(family, listing)| {
        check_holes(family, listing)?;
        check_sample(family, listing)
    });
    checked.into_iter().collect::<Result<(), Error>>()?;
    Ok(found.configuration().set_guid == set.set_guid)
}

/// Reads the whole index of a set on a family, and the headers of some chunks of each segment of it: what was
/// overwritten in longer pieces shows there.
fn check_sample(family: &Family, set: &SetListing) -> Result<(), Error> {
    family.read(|reader| {
        let mut lost = None;
        reader.index(set, &mut |segment| {
            let step = segment.entries.len().div_ceil(SAMPLES).max(1);
            let last = segment.entries.last();
            let sample = segment.entries.iter().step_by(step).chain(last);
            for entry in sample {
                lost = match reader.chunk(set, entry.stream_offset) {
                    Ok((chunk, _)) if chunk.ordinal == entry.ordinal => None,
                    Ok((chunk, offset)) => Some(MediaError::Damaged {
                        offset,
                        what: "number of a chunk",
                        expected: entry.ordinal,
                        found: chunk.ordinal,
                    }),
                    Err(error) => Some(error),
                };
                if lost.is_some() {
                    break;
                }
            }
            lost.is_none()
        })?;
        lost.map_or(Ok(()), Err)
    })
}

/// Checks a set on a family with a hole in it: all of its headers, and the payloads in the holes. File systems
/// that store no zeros have holes where zeros were written, and sparse copies of media anywhere: what was wrong
/// with an earlier set before is no fault of this one.
fn check_holes(family: &Family, set: &SetListing) -> Result<(), Error> {
    let mut holes = family.reader.holes()?;
    holes.retain(|hole| hole.end > set.offset);
    if holes.is_empty() {
        return Ok(());
    }
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
            false => walked?.closed().map(drop),
        }
    })?;
    damaged.map_or(Ok(()), Err)
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
