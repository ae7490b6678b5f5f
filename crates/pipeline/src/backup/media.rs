//! Which octets of which devices a new set takes: append, overwrite, format, and who may.
//!
//! Rules: `tsql-backup` section 1.4 (media sets), with two differences that our format allows: sets of
//! any algorithm and level share a media set, and a set's name is not compared on overwriting.
//! Nothing on a device is changed before every device has been examined.

use windlass_base::{Guid, Moment};
use windlass_device::{DeviceAddress, DeviceKind, Operation, Start, WriteTuning};
use windlass_io::queue::EngineChoice;
use windlass_media::{FORMAT_VERSION, FORMAT_VERSION_PLAIN, FamilyWriter, MediaHeader};

use super::write::Family;
use crate::error::Error;
use crate::media_set::MediaSet;
use crate::plan::Plan;
use crate::request::{BackupRequest, MediaRequest, Overwrite};

/// Block size of new media: the largest logical block of disks in use, so that any disk takes it.
const BLOCK_BYTES: u32 = 4096;

/// What is known about the media before they are written.
enum Found {
    /// Nothing, or nothing that is kept.
    New(MediaHeader),
    /// A media set whose header is kept, and the sets to keep.
    Existing(MediaSet, u16),
}

/// Opens all devices; returns the families with their first octets already queued, the header of
/// the first family, and the position of the new set.
pub(super) fn open(
    request: &BackupRequest,
    plan: &Plan,
    engine: EngineChoice,
) -> Result<(Vec<Family>, MediaHeader, u16), Error> {
    let is_encrypted = request.encryption.is_some();
    let request = &request.media;
    check_mirrors(request)?;
    let found = examine(request, is_encrypted)?;
    let copies = mirrors_by_family(request);
    let (header, position) = match &found {
        Found::New(header) => (header.clone(), 1),
        Found::Existing(media, kept) => (media.header().clone(), kept + 1),
    };
    let mut starts = Vec::with_capacity(copies.len());
    for (index, devices) in copies.iter().enumerate() {
        let number = index as u16 + 1;
        starts.push(start_of(&found, &header, number, devices)?);
    }
    // Readers hold a lock on each file; they must be gone before the writers come.
    drop(found);
    let mut families = Vec::with_capacity(copies.len());
    for ((writer, format, start, number), devices) in starts.into_iter().zip(&copies) {
        let tuning = WriteTuning {
            transfer_bytes: plan.transfer_bytes.value,
            depth: plan.write_depth.value,
            engine,
        };
        let open = |device: &&DeviceAddress| device.open_writer(start, tuning);
        let devices = devices.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let mut family = Family::new(writer, number, devices, plan.max_write_rate);
        family.append(&format)?;
        families.push(family);
    }
    Ok((families, header, position))
}

/// The devices of each family, first copy first. On existing media the order is the families'.
fn mirrors_by_family(request: &MediaRequest) -> Vec<Vec<&DeviceAddress>> {
    (0..request.devices.len())
        .map(|index| {
            let first = request.devices.get(index).into_iter();
            first
                .chain(
                    request
                        .mirrors
                        .iter()
                        .filter_map(|mirror| mirror.get(index)),
                )
                .collect()
        })
        .collect()
}

type FamilyStart = (FamilyWriter, Vec<u8>, Start, u16);

fn start_of(
    found: &Found,
    header: &MediaHeader,
    number: u16,
    devices: &[&DeviceAddress],
) -> Result<FamilyStart, Error> {
    let media_error = |source| Error::Media {
        device: devices
            .first()
            .map_or_else(String::new, |device| device.name.clone()),
        source,
    };
    match found {
        Found::Existing(media, kept) if *kept > 0 => {
            // The families were named in any order; the device decides which one it holds.
            let family = media
                .families
                .iter()
                .find(|family| devices.iter().any(|device| device.name == *family.device));
            let family = family.ok_or(Error::VolumeEmpty {
                device: devices[0].name.clone(),
            })?;
            let position = family.listing.append_position(*kept);
            let start = Start::Append {
                at: position.offset,
            };
            Ok((
                FamilyWriter::append_after(&family.header, position),
                Vec::new(),
                start,
                family.number(),
            ))
        }
        Found::Existing(..) | Found::New(_) => {
            let family = MediaHeader {
                family_number: number,
                media_family_id: header.media_family_id.wrapping_add(u32::from(number)),
                ..header.clone()
            };
            let (writer, octets) = FamilyWriter::format(&family).map_err(media_error)?;
            Ok((writer, octets, Start::Replace, number))
        }
    }
}

fn check_mirrors(request: &MediaRequest) -> Result<(), Error> {
    let expected = request.devices.len();
    match request
        .mirrors
        .iter()
        .find(|mirror| mirror.len() != expected)
    {
        Some(mirror) => Err(Error::MirrorShape {
            expected,
            provided: mirror.len(),
        }),
        None => Ok(()),
    }
}

/// Looks at what is on the devices and decides what stays.
fn examine(request: &MediaRequest, is_encrypted: bool) -> Result<Found, Error> {
    let all = || {
        request
            .devices
            .iter()
            .chain(request.mirrors.iter().flatten())
    };
    let mut has_content = false;
    for device in all() {
        if device.has_content()? {
            refuse_database(device)?;
            has_content = true;
        }
    }
    let is_nul = |device: &DeviceAddress| device.kind == DeviceKind::Nul;
    if request.overwrite == Overwrite::Format || !has_content || request.devices.iter().all(is_nul)
    {
        let is_new_mirror = !request.mirrors.is_empty() && request.overwrite != Overwrite::Format;
        return if is_new_mirror {
            Err(Error::MirrorNeedsFormat)
        } else {
            Ok(Found::New(new_header(request, is_encrypted)))
        };
    }
    let media = open_existing(&request.devices)?;
    check_existing(request, &media)?;
    if is_encrypted && media.header().format_version < FORMAT_VERSION {
        return Err(Error::EncryptionNeedsFormat);
    }
    let mut kept = media.complete_sets();
    let mut copies = Vec::with_capacity(request.mirrors.len());
    for mirror in &request.mirrors {
        let copy = open_existing(mirror)?;
        if copy.header().media_set_guid != media.header().media_set_guid {
            return Err(Error::OtherMediaSet {
                device: copy.devices(),
            });
        }
        copies.push(copy);
    }
    if request.overwrite == Overwrite::Initialize {
        check_expiry(request, &media)?;
        kept = 0;
    } else {
        for copy in &copies {
            check_same_place(&media, copy, kept)?;
        }
    }
    Ok(Found::Existing(media, kept))
}

/// FORMAT overwrites whatever a file holds, but nobody means to overwrite a database by its backup.
fn refuse_database(device: &DeviceAddress) -> Result<(), Error> {
    let mut start = [0; DATABASE_MAGIC.len()];
    device.open_reader()?.read_at(&mut start, 0)?;
    if start != *DATABASE_MAGIC {
        return Ok(());
    }
    let reason = "it is a SQLite database and not a backup; name another file, or delete it first";
    let error = std::io::Error::new(std::io::ErrorKind::AlreadyExists, reason);
    Err(windlass_device::Error::new(Operation::Open, &device.name, error).into())
}

/// First octets of every SQLite database.
const DATABASE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// An append goes to the same offset on every copy of a family, so all must be alike up to there.
/// A copy that lost a set is not a reason to cut that set off the others.
fn check_same_place(media: &MediaSet, copy: &MediaSet, kept: u16) -> Result<(), Error> {
    for (first, mirror) in media.families.iter().zip(&copy.families) {
        if first.listing.append_position(kept) != mirror.listing.append_position(kept) {
            return Err(Error::OtherBackupSet {
                device: mirror.device.to_string(),
                family: mirror.number(),
            });
        }
    }
    Ok(())
}

/// Opens the families; the number of devices must be the media set's.
fn open_existing(devices: &[DeviceAddress]) -> Result<MediaSet, Error> {
    let media = MediaSet::open_any(devices)?;
    let (found, expected) = (usize::from(media.header().family_count), devices.len());
    if found > expected {
        return Err(Error::FamiliesMissing {
            expected: found,
            provided: expected,
        });
    }
    if found < expected {
        let device = devices
            .first()
            .map_or_else(String::new, |device| device.name.clone());
        return Err(Error::FamilyCountDiffers {
            device,
            found,
            expected,
        });
    }
    Ok(media)
}

fn check_existing(request: &MediaRequest, media: &MediaSet) -> Result<(), Error> {
    let header = media.header();
    let device = || media.families[0].device.to_string();
    let (expected, provided) = (usize::from(header.mirror_count), request.mirrors.len() + 1);
    if expected != provided {
        return Err(Error::MirrorCount { expected, provided });
    }
    if let Some(given) = request.block_bytes
        && given != header.block_bytes
    {
        return Err(Error::BlockSizeDiffers {
            device: device(),
            found: header.block_bytes,
            given,
        });
    }
    match &request.media_name {
        Some(given) if !request.skip_checks && *given != header.media_name => {
            Err(Error::MediaNameDiffers {
                device: device(),
                found: header.media_name.clone(),
                given: given.clone(),
            })
        }
        _ => Ok(()),
    }
}

fn check_expiry(request: &MediaRequest, media: &MediaSet) -> Result<(), Error> {
    if request.skip_checks {
        return Ok(());
    }
    let (now, _) = Moment::now();
    let latest = media
        .sets()
        .iter()
        .filter_map(|set| set.configuration.expires)
        .max();
    match latest {
        Some(expires) if expires > now => Err(Error::NotExpired {
            device: media.families[0].device.to_string(),
            expires,
        }),
        _ => Ok(()),
    }
}

fn new_header(request: &MediaRequest, is_encrypted: bool) -> MediaHeader {
    let media_set_guid = Guid::random();
    let [a, b, c, d, ..] = Guid::random().to_stored();
    MediaHeader {
        format_version: if is_encrypted {
            FORMAT_VERSION
        } else {
            FORMAT_VERSION_PLAIN
        },
        media_set_guid,
        family_count: request.devices.len() as u16,
        family_number: 1,
        mirror_count: request.mirrors.len() as u8 + 1,
        block_bytes: request.block_bytes.unwrap_or(BLOCK_BYTES),
        media_family_id: u32::from_le_bytes([a, b, c, d]),
        created: Some(Moment::now().0),
        media_name: request.media_name.clone().unwrap_or_default(),
        media_description: request.media_description.clone().unwrap_or_default(),
        software_version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
