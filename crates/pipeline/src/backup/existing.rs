//! Existing media to append to: which sets are on all copies of all families.
//!
//! The data of a set is durable on every copy before its first end is written. So an interrupted
//! backup leaves a set after the last finished one that either has no end on any copy, or has an
//! end on some copies and all of its data on the others. That set never was a backup; the next
//! backup cuts it off.
//!
//! A copy with fewer sets than the others, or with another set at the same position, cannot come
//! from an interrupted backup: it is an older copy of the file, or it lost its end. Appending where
//! it ends would cut good sets off the other copies, so this is refused and nothing is changed.

use windlass_device::{DeviceAddress, Start, WriteTuning};
use windlass_media::{AppendPosition, MediaHeader};

use crate::error::{Error, Holds};
use crate::media_set::{self, MediaSet};
use crate::request::MediaRequest;

/// Existing media, opened and found consistent.
pub(super) struct Existing {
    /// The first copy of every family, then the mirrors.
    copies: Vec<MediaSet>,
    /// Sets that are complete on every copy of every family.
    kept: u16,
}

/// One media family, and where to append to it.
pub(super) struct Continued {
    pub(super) header: MediaHeader,
    pub(super) position: AppendPosition,
    pub(super) copies: Vec<FoundCopy>,
}

/// One copy of a family.
pub(super) struct FoundCopy {
    pub(super) address: DeviceAddress,
    /// Length of its file when it was examined.
    pub(super) length: u64,
    /// Whether it still has the end of a set that is to be cut off.
    has_end: bool,
}

impl Existing {
    /// Fails unless the copies have the same sets.
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

    /// Number of sets that are complete everywhere.
    pub(super) fn kept(&self) -> u16 {
        self.kept
    }

    /// Where to append to each family. Its copies receive the same bytes and so must end alike.
    pub(super) fn continued(&self, request: &MediaRequest) -> Result<Vec<Continued>, Error> {
        let Some((first, mirrors)) = self.copies.split_first() else {
            return Ok(Vec::new());
        };
        let mut continued = Vec::with_capacity(first.families.len());
        for family in &first.families {
            let mut position = family.listing.append_position(self.kept);
            let mut found = vec![self.copy(&request.devices, family)?];
            for (mirror, named) in mirrors.iter().zip(&request.mirrors) {
                let mut copies = mirror.families.iter();
                let copy = copies.find(|copy| copy.number() == family.number());
                let copy = copy.ok_or(Error::FamiliesMissing {
                    expected: first.families.len(),
                    provided: mirror.families.len(),
                    named: Vec::new(),
                })?;
                let at = copy.listing.append_position(self.kept);
                position = common(position, at).ok_or_else(|| Error::OtherBackupSet {
                    device: copy.device.to_string(),
                    family: copy.number(),
                })?;
                found.push(self.copy(named, copy)?);
            }
            continued.push(Continued {
                header: family.header.clone(),
                position,
                copies: found,
            });
        }
        Ok(continued)
    }

    /// A copy of a family, under the address that was given for it.
    fn copy(
        &self,
        named: &[DeviceAddress],
        family: &media_set::Family,
    ) -> Result<FoundCopy, Error> {
        let address = named.iter().find(|device| device.name == *family.device);
        let address = address.ok_or_else(|| Error::VolumeEmpty {
            device: family.device.to_string(),
        })?;
        Ok(FoundCopy {
            address: address.clone(),
            length: family.reader.len(),
            has_end: family.listing.complete_sets() > self.kept,
        })
    }

    fn families(&self) -> impl Iterator<Item = &media_set::Family> {
        self.copies.iter().flat_map(|copy| &copy.families)
    }

    fn check_sets(&self) -> Result<(), Error> {
        let finished = self.families().map(|family| family.listing.complete_sets());
        for position in 1..=finished.max().unwrap_or(0) {
            // Damage that hides which set it was proves no difference.
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

    /// Describes what a family has in place of a set of `reference`, if an interrupted backup
    /// cannot have left it.
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

/// Where to append to two copies of a family: at the same place, but the filemark after the last
/// set may be missing on either, and is then rewritten on both.
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

/// Cuts off a set whose ends were being written when a backup was interrupted, on the copies that
/// have one: from here on, no crash leaves a finished set on one copy whose data are gone on
/// another.
pub(super) fn cut_unfinished_ends(
    families: &mut [Continued],
    tuning: WriteTuning,
) -> Result<(), Error> {
    for family in families {
        let at = family.position.offset;
        for copy in family.copies.iter_mut().filter(|copy| copy.has_end) {
            let length = copy.length;
            // Opening a device to append cuts it there, durably.
            drop(
                copy.address
                    .open_writer(Start::Append { at, length }, tuning)?,
            );
            copy.length = length.min(at);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(offset: u64, filemarks: &[u64], needs_filemark: bool) -> AppendPosition {
        AppendPosition {
            offset,
            sets: 2,
            filemarks: filemarks.to_vec(),
            needs_filemark,
        }
    }

    #[test]
    fn copies_go_on_at_one_place_where_a_filemark_is_all_that_differs() {
        let with = position(9000, &[8192, 4096], false);
        let without = position(8192, &[4096], true);
        for (first, second) in [(&with, &without), (&without, &with), (&without, &without)] {
            let found = common(first.clone(), second.clone());
            assert_eq!(found.as_ref(), Some(&without));
        }
        assert_eq!(common(with.clone(), with.clone()), Some(with.clone()));
        let others = [
            position(8192, &[512], true),
            position(7000, &[4096], true),
            position(9000, &[8192, 512], false),
            AppendPosition {
                sets: 1,
                ..without.clone()
            },
        ];
        for other in others {
            assert_eq!(common(with.clone(), other.clone()), None, "{other:?}");
            assert_eq!(common(other.clone(), with.clone()), None, "{other:?}");
        }
    }
}
