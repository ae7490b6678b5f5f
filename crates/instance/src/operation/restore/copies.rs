//! Several files of one media family among those that a restore was given: mirrors, copies, and older copies.
//!
//! The newest of them holds all that the others do, so it is enough. Copies that went different ways are left as they
//! are: the media are then refused.

use windlass_base::message::table;
use windlass_base::{Guid, Message};
use windlass_device::DeviceAddress;
use windlass_pipeline::MediaSet;

use crate::Failure;

/// A device that was given, and what it shows of its medium.
pub(super) struct Named {
    device: DeviceAddress,
    media_set_guid: Guid,
    family: u16,
    /// Its sets, and whether each is complete.
    sets: Vec<(Guid, bool)>,
    is_damaged: bool,
}

impl Named {
    fn open(device: &DeviceAddress) -> Result<Self, Failure> {
        let media = MediaSet::open_any(std::slice::from_ref(device))?;
        let sets = media.sets().into_iter();
        let trouble = media
            .trouble()
            .filter(|(_, trouble)| !trouble.is_truncation());
        Ok(Self {
            media_set_guid: media.header().media_set_guid,
            family: media.header().family_number,
            sets: sets
                .map(|entry| (entry.configuration.set_guid, entry.is_complete))
                .collect(),
            is_damaged: trouble.is_some(),
            device: device.clone(),
        })
    }

    fn complete(&self) -> usize {
        self.sets
            .iter()
            .filter(|(_, is_complete)| *is_complete)
            .count()
    }

    /// Whether `other` holds everything that this one does.
    fn is_copy_of(&self, other: &Self) -> bool {
        let has = |(own, theirs): (&(Guid, bool), &(Guid, bool))| {
            own.0 == theirs.0 && (theirs.1 || !own.1)
        };
        self.family == other.family
            && !other.is_damaged
            && self.sets.len() <= other.sets.len()
            && self.sets.iter().zip(&other.sets).all(has)
    }
}

/// The devices of each media set.
///
/// # Errors
/// If one of them cannot be read.
pub(super) fn grouped(devices: &[DeviceAddress]) -> Result<Vec<(Guid, Vec<Named>)>, Failure> {
    let mut groups: Vec<(Guid, Vec<Named>)> = Vec::new();
    for device in devices {
        let named = Named::open(device)?;
        let guid = named.media_set_guid;
        match groups.iter_mut().find(|(known, _)| *known == guid) {
            Some((_, group)) => group.push(named),
            None => groups.push((guid, vec![named])),
        }
    }
    Ok(groups)
}

/// The devices of one media set that are needed, and the others, as messages.
pub(super) fn newest(named: Vec<Named>) -> (Vec<DeviceAddress>, Vec<Message>) {
    let mut needed: Vec<Named> = Vec::new();
    let mut notes = Vec::new();
    for own in named {
        if let Some(known) = needed.iter().find(|known| own.is_copy_of(known)) {
            notes.push(note(&own, known));
            continue;
        }
        needed.retain(|known| {
            let is_copy = known.is_copy_of(&own);
            if is_copy {
                notes.push(note(known, &own));
            }
            !is_copy
        });
        needed.push(own);
    }
    let devices = needed.into_iter().map(|own| own.device);
    (devices.collect(), notes)
}

fn note(copy: &Named, of: &Named) -> Message {
    let what = match copy.complete() < of.complete() {
        true => "an older copy",
        false => "a copy",
    };
    let why = format!("it is {what} of '{}'", of.device.name);
    table::set_left_out(format!("'{}'", copy.device.name), why)
}
