//! Where a new set is written: append, overwrite or format, and whether that is allowed.
//!
//! The rules are SQL Server's, with two differences that the format allows: sets of any algorithm and
//! level can share a media set, and the set's name is not compared when overwriting. No device is changed
//! before all devices have been examined.

use windlass_base::at_once::at_once;
use windlass_base::{Guid, Moment};
use windlass_device::{DeviceAddress, Operation, Start, WriteTuning};
use windlass_io::queue::IoMethodChoice;
use windlass_media::{FORMAT_VERSION, FamilyWriter, MediaHeader};

use super::existing::{self, Continued, Existing};
use super::write::Family;
use crate::error::Error;
use crate::guard;
use crate::half_named;
use crate::media_set::{MediaSet, read_label};
use crate::plan::Plan;
use crate::request::{BackupRequest, MediaRequest, Overwrite};

/// Block size of new media: the largest logical block of common disks, so that any disk accepts it.
const BLOCK_BYTES: u32 = 4096;

/// What was found on the media.
enum Found {
    /// Nothing worth keeping; the header that every family starts with, and how its files are begun.
    New(MediaHeader, Start),
    /// Media whose sets are kept.
    Kept(Existing),
}

/// Examines the devices as a backup would; returns the header of its first family, the position of
/// its set, and whether new media are created. Changes nothing.
pub(super) fn rehearse(request: &BackupRequest) -> Result<(MediaHeader, u16, bool), Error> {
    check_mirrors(&request.media)?;
    match examine(&request.media)? {
        Found::New(header, _) => {
            guard::check(&request.media)?;
            Ok((header, 1, true))
        }
        Found::Kept(media) => {
            media.continued(&request.media)?;
            Ok((media.header().clone(), media.kept() + 1, false))
        }
    }
}

/// Opens all devices; returns the families with their first bytes already queued, the header of the
/// first family, and the position of the new set.
pub(super) fn open(
    request: &BackupRequest,
    plan: &Plan,
    io_method: IoMethodChoice,
) -> Result<(Vec<Family>, MediaHeader, u16), Error> {
    let request = &request.media;
    check_mirrors(request)?;
    let tuning = WriteTuning {
        transfer_bytes: plan.transfer_bytes.value,
        part_bytes: plan.part_bytes.unwrap_or(plan.transfer_bytes).value,
        depth: plan.write_depth.value,
        io_method,
    };
    let open = |starts: Vec<FamilyStart>| {
        let open = |start: FamilyStart| start.open(tuning, plan.limits.write);
        at_once(starts, request.is_in_objects(), open)
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
    };
    match examine(request)? {
        Found::New(header, start) => {
            let families = open(new_families(request, &header, start)?)?;
            // The devices hold what they will replace: nothing else can take its place unseen.
            guard::check(request)?;
            Ok((families, header, 1))
        }
        Found::Kept(media) => {
            let (header, position) = (media.header().clone(), media.kept() + 1);
            let mut continued = media.continued(request)?;
            // Readers hold a lock on each file; drop them before the writers open it.
            drop(media);
            existing::cut_unfinished_ends(&mut continued, tuning)?;
            let families = open(continued.into_iter().map(FamilyStart::behind).collect())?;
            Ok((families, header, position))
        }
    }
}

/// A family before its devices are opened.
struct FamilyStart {
    writer: FamilyWriter,
    number: u16,
    /// The first bytes of each copy.
    bytes: Vec<u8>,
    copies: Vec<(DeviceAddress, Start)>,
}

impl FamilyStart {
    fn behind(family: Continued) -> Self {
        Self {
            number: family.header.family_number,
            bytes: Vec::new(),
            copies: family
                .copies
                .into_iter()
                .map(|copy| {
                    let (at, length) = (family.position.offset, copy.length);
                    (copy.address, Start::Append { at, length })
                })
                .collect(),
            writer: FamilyWriter::append_after(&family.header, family.position),
        }
    }

    fn open(self, tuning: WriteTuning, max_write_rate: Option<u64>) -> Result<Family, Error> {
        let copies = self.copies.iter();
        let devices = copies
            .map(|(device, start)| device.open_writer(*start, tuning))
            .collect::<Result<Vec<_>, _>>()?;
        let mut family = Family::new(self.writer, self.number, devices, max_write_rate);
        family.append(&self.bytes)?;
        Ok(family)
    }
}

/// New families with their mirrors, in the order in which their devices were named.
fn new_families(
    request: &MediaRequest,
    header: &MediaHeader,
    start: Start,
) -> Result<Vec<FamilyStart>, Error> {
    let family = |(index, device): (usize, &DeviceAddress)| {
        let number = index as u16 + 1;
        let header = MediaHeader {
            family_number: number,
            media_family_id: header
                .media_family_id
                .wrapping_sub(u32::from(header.family_number))
                .wrapping_add(u32::from(number)),
            ..header.clone()
        };
        let (writer, bytes) = FamilyWriter::format(&header).map_err(|source| Error::Media {
            device: device.name.clone(),
            source,
        })?;
        let mirrors = request
            .mirrors
            .iter()
            .filter_map(|mirror| mirror.get(index));
        Ok(FamilyStart {
            writer,
            number,
            bytes,
            copies: std::iter::once(device)
                .chain(mirrors)
                .map(|device| (device.clone(), start))
                .collect(),
        })
    };
    request.devices.iter().enumerate().map(family).collect()
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

/// Examines the devices and decides which sets to keep. New media remove no file that completes others.
fn examine(request: &MediaRequest) -> Result<Found, Error> {
    let found = decide(request)?;
    if let Found::New(..) = found {
        for copy in std::iter::once(&request.devices).chain(&request.mirrors) {
            copy.iter().try_for_each(DeviceAddress::check_replaceable)?;
            half_named::refuse_to_remove(copy)?;
        }
    }
    Ok(found)
}

fn decide(request: &MediaRequest) -> Result<Found, Error> {
    let all = || {
        request
            .devices
            .iter()
            .chain(request.mirrors.iter().flatten())
    };
    let mut has_content = false;
    let contents = at_once(all(), request.is_in_objects(), DeviceAddress::has_content);
    for (device, found) in all().zip(contents) {
        if found? {
            refuse_database(device)?;
            refuse_append(device, request.overwrite)?;
            has_content = true;
        }
    }
    let is_discarded = request.devices.iter().all(DeviceAddress::discards);
    if request.overwrite == Overwrite::Format || !has_content || is_discarded {
        let is_new_mirror = !request.mirrors.is_empty() && request.overwrite != Overwrite::Format;
        return if is_new_mirror {
            Err(Error::MirrorNeedsFormat)
        } else {
            let start = match has_content || request.overwrite == Overwrite::Format {
                true => Start::Replace,
                false => Start::Create,
            };
            Ok(Found::New(new_header(request), start))
        };
    }
    let media = open_existing(&request.devices)?;
    check_existing(request, &media)?;
    if request.overwrite == Overwrite::Initialize {
        check_expiry(request, &media)?;
    }
    let header = media.header().clone();
    let mut copies = vec![media];
    for mirror in &request.mirrors {
        let copy = open_existing(mirror)?;
        if copy.header().media_set_guid != header.media_set_guid {
            return Err(Error::OtherMediaSet {
                device: copy.devices(),
            });
        }
        copies.push(copy);
    }
    if request.overwrite == Overwrite::Initialize {
        return Ok(Found::New(header, Start::Replace));
    }
    let existing = Existing::check(copies).map_err(|error| {
        let devices: Vec<DeviceAddress> = all().cloned().collect();
        half_named::explained(&devices, error)
    })?;
    Ok(match existing.kept() {
        0 => Found::New(header, Start::Replace),
        _ => Found::Kept(existing),
    })
}

/// FORMAT overwrites any file, but overwriting a database with its backup is always a mistake.
fn refuse_database(device: &DeviceAddress) -> Result<(), Error> {
    let mut start = [0; windlass_source::FIRST_BYTES];
    device.open_reader()?.read_at(&mut start, 0)?;
    let Some(part) = windlass_source::part_of_database(&start) else {
        return Ok(());
    };
    let reason = format!("it is {part} and not a backup; name another file, or delete it first");
    let error = std::io::Error::new(std::io::ErrorKind::AlreadyExists, reason);
    Err(windlass_device::Error::new(Operation::Open, &device.name, error).into())
}

/// An object that exists is overwritten or left alone.
fn refuse_append(device: &DeviceAddress, overwrite: Overwrite) -> Result<(), Error> {
    if !device.is_object() || overwrite == Overwrite::Format {
        return Ok(());
    }
    let reason = "it exists, and an object cannot be appended to; use FORMAT to overwrite it, or name another one";
    let error = std::io::Error::new(std::io::ErrorKind::AlreadyExists, reason);
    Err(windlass_device::Error::new(Operation::Open, &device.name, error).into())
}

/// Opens the families; the number of devices must match the media set.
fn open_existing(devices: &[DeviceAddress]) -> Result<MediaSet, Error> {
    // Before a device that is one too many is found to be empty, or another's.
    if let Some(device) = devices.iter().find(|device| is_in_use(device)) {
        let (header, _) = read_label(device)?;
        let (found, expected) = (usize::from(header.family_count), devices.len());
        if found > expected {
            return Err(Error::FamiliesMissing {
                expected: found,
                provided: expected,
                named: vec![(device.name.clone(), header.family_number)],
            });
        }
        if found < expected {
            let device = device.name.clone();
            return Err(Error::FamilyCountDiffers {
                device,
                found,
                expected,
            });
        }
    }
    MediaSet::open_any(devices)
}

fn is_in_use(device: &DeviceAddress) -> bool {
    device.has_content().unwrap_or(false)
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
    let (now, zone) = Moment::now();
    let sets = media.sets();
    let expiries = sets.iter().filter_map(|set| {
        let of = &set.configuration;
        let expires = of.expires?;
        let made = of.started.unwrap_or(expires);
        Some((expires.utc_seconds_from(made, of.time_zone), expires))
    });
    match expiries.max() {
        Some((at, expires)) if at > now.utc_seconds(zone.into()) => Err(Error::NotExpired {
            device: media.families[0].device.to_string(),
            expires,
        }),
        _ => Ok(()),
    }
}

fn new_header(request: &MediaRequest) -> MediaHeader {
    let media_set_guid = Guid::random();
    let [a, b, c, d, ..] = Guid::random().to_stored();
    MediaHeader {
        format_version: FORMAT_VERSION,
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
