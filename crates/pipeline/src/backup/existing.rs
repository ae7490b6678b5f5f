//! Existing media that a set is added to: which sets all copies of all families hold.
//!
//! The data of a set are durable on every copy before its first end is written. So a backup that was
//! interrupted leaves the set behind the last finished one either without an end on every copy, or with an
//! end on some and all of its data on the others. It never was a backup, and is cut off by the next one.
//!
//! A copy with fewer sets than the others, or with another set at the same place, is nothing that a
//! backup leaves behind: it is an older copy of the file, or lost its end. Going on where it ends
//! would cut good sets off the other copies, so that is refused, and nothing is changed.

use windlass_device::{DeviceAddress, Start, WriteTuning};
use windlass_media::{AppendPosition, MediaHeader};

use crate::error::{Error, Holds};
use crate::media_set::{self, MediaSet};
use crate::request::MediaRequest;

/// Existing media, opened and found to agree.
pub(super) struct Existing {
    /// The first copy of every family, then the mirrors.
    copies: Vec<MediaSet>,
    /// Sets that are complete on every copy of every family.
    kept: u16,
}

/// One media family, and where it goes on.
pub(super) struct Continued {
    pub(super) header: MediaHeader,
    pub(super) position: AppendPosition,
    /// Its copies, and whether each still holds the end of a set that is cut off.
    pub(super) devices: Vec<(DeviceAddress, bool)>,
}

impl Existing {
    /// Fails unless the copies hold the same sets.
    pub(super) fn check(copies: Vec<MediaSet>) -> Result<Self, Error> {
        let kept = copies.iter().map(MediaSet::complete_sets).min();
        let existing = Self {
            copies,
            kept: kept.unwrap_or(0),
        };
        existing.check_sets()?;
        Ok(existing)
    }

    pub(super) fn header(&self) -> &MediaHeader {
        self.copies[0].header()
    }

    /// Sets that are complete everywhere.
    pub(super) fn kept(&self) -> u16 {
        self.kept
    }

    /// Where each family goes on. Its copies receive the same bytes and so must end alike.
    pub(super) fn continued(&self, request: &MediaRequest) -> Result<Vec<Continued>, Error> {
        let Some((first, mirrors)) = self.copies.split_first() else {
            return Ok(Vec::new());
        };
        let mut continued = Vec::with_capacity(first.families.len());
        for family in &first.families {
            let mut position = family.listing.append_position(self.kept);
            let mut devices = vec![self.device(&request.devices, family)?];
            for (mirror, named) in mirrors.iter().zip(&request.mirrors) {
                let mut copies = mirror.families.iter();
                let copy = copies.find(|copy| copy.number() == family.number());
                let copy = copy.ok_or(Error::FamiliesMissing {
                    expected: first.families.len(),
                    provided: mirror.families.len(),
                })?;
                let at = copy.listing.append_position(self.kept);
                position = common(position, at).ok_or_else(|| Error::OtherBackupSet {
                    device: copy.device.to_string(),
                    family: copy.number(),
                })?;
                devices.push(self.device(named, copy)?);
            }
            continued.push(Continued {
                header: family.header.clone(),
                position,
                devices,
            });
        }
        Ok(continued)
    }

    /// The address under which a family was named, and whether it has more finished sets than are kept.
    fn device(
        &self,
        named: &[DeviceAddress],
        family: &media_set::Family,
    ) -> Result<(DeviceAddress, bool), Error> {
        let address = named.iter().find(|device| device.name == *family.device);
        let address = address.ok_or_else(|| Error::VolumeEmpty {
            device: family.device.to_string(),
        })?;
        Ok((address.clone(), family.listing.complete_sets() > self.kept))
    }

    fn families(&self) -> impl Iterator<Item = &media_set::Family> {
        self.copies.iter().flat_map(|copy| &copy.families)
    }

    fn check_sets(&self) -> Result<(), Error> {
        let finished = self.families().map(|family| family.listing.complete_sets());
        for position in 1..=finished.max().unwrap_or(0) {
            // What damage left unknown says nothing of which set it was.
            let mut whole = self.families().filter(|family| {
                family.listing.complete_sets() >= position && family.guid(position).is_some()
            });
            let Some(reference) = whole.next() else {
                continue;
            };
            for family in self.families() {
                if let Some(holds) = self.differs(reference, family, position) {
                    return Err(disagreement(reference, family, position, holds));
                }
            }
        }
        Ok(())
    }

    /// What a family holds in the place of a set that `reference` holds, if a backup cannot have left it.
    fn differs(
        &self,
        reference: &media_set::Family,
        family: &media_set::Family,
        position: u16,
    ) -> Option<Holds> {
        let is_finished = family.listing.complete_sets() >= position;
        let same = match (family.guid(position), reference.guid(position)) {
            (None, _) => is_finished,
            (Some(found), expected) => Some(found) == expected,
        };
        match (is_finished, same) {
            (true, true) => None,
            (false, true) if position == self.kept + 1 && family.has_all_data(position) => None,
            (false, true) => Some(Holds::Part),
            (false, false) if family.guid(position).is_none() => Some(Holds::Nothing),
            (_, false) => Some(Holds::Another),
        }
    }
}

fn disagreement(
    reference: &media_set::Family,
    family: &media_set::Family,
    position: u16,
    holds: Holds,
) -> Error {
    Error::FamilyBehind {
        device: family.device.to_string(),
        family: family.number(),
        holds,
        position,
        other: reference.device.to_string(),
    }
}

/// Where two copies of a family go on: at the same place, but the filemark behind the last set may be
/// missing on either, and is then written again on both.
fn common(first: AppendPosition, second: AppendPosition) -> Option<AppendPosition> {
    if first == second {
        return Some(first);
    }
    let (with, without) = match (first.needs_filemark, second.needs_filemark) {
        (false, true) => (first, second),
        (true, false) => (second, first),
        _ => return None,
    };
    let (last, earlier) = with.filemarks.split_first()?;
    let same = *last == without.offset && *earlier == *without.filemarks;
    (same && with.sets == without.sets).then_some(without)
}

/// Takes away what is left of a set whose ends were being written when a backup was interrupted, on the
/// copies that hold one of them: so no crash from here on leaves a finished set on one copy whose data
/// are gone on another.
pub(super) fn cut_unfinished_ends(
    families: &[Continued],
    tuning: WriteTuning,
) -> Result<(), Error> {
    for family in families {
        let at = family.position.offset;
        for (device, has_end) in &family.devices {
            if *has_end {
                // Opened to append, a device is cut there, durably.
                drop(device.open_writer(Start::Append { at }, tuning)?);
            }
        }
    }
    Ok(())
}
