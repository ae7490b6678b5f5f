//! Several files of one media family among those that a restore was given: mirrors, copies, and older copies.
//!
//! The newest of them holds all that the others do, so it is enough. Copies that went different ways are left as they
//! are: the media are then refused.

use std::sync::Arc;

use windlass_base::message::table;
use windlass_base::{Guid, Message};
use windlass_device::DeviceAddress;
use windlass_pipeline::{Error as PipelineError, MediaSet, PartlyFinished, SetEntry};

use crate::Failure;
use crate::generation::{self, Generation};
use crate::headers::{HeaderCache, Headers, Trouble};

/// What the headers of a medium say.
#[derive(Default)]
pub(super) struct Opened {
    /// Its sets; and where one is finished on some families only.
    pub(super) sets: Vec<(SetEntry, Option<PartlyFinished>)>,
    pub(super) trouble: Option<Trouble>,
    pub(super) trouble_behind: Option<Trouble>,
}

impl Opened {
    /// Of the devices of one media set that are needed.
    ///
    /// # Errors
    /// They cannot be read, contradict each other, or are not all.
    pub(super) fn of(devices: &[Named]) -> Result<Self, PipelineError> {
        if let [one] = devices
            && one.headers.family_count == 1
        {
            return Ok(Self::of_headers(&one.headers));
        }
        let devices: Vec<DeviceAddress> = devices.iter().map(|one| one.device.clone()).collect();
        Ok(Self::of_media(&MediaSet::open(&devices)?))
    }

    /// Of devices that do not make up their media set: every set that one of them shows.
    pub(super) fn of_part(devices: &[Named]) -> Self {
        let mut part = Self::default();
        for own in devices.iter().map(|one| Self::of_headers(&one.headers)) {
            for (entry, partly) in own.sets {
                let guid = entry.configuration.set_guid;
                let is_it = |(known, _): &&mut (SetEntry, _)| known.configuration.set_guid == guid;
                match part.sets.iter_mut().find(is_it) {
                    Some((known, _)) if known.is_complete || !entry.is_complete => {}
                    Some((known, _)) => *known = entry,
                    None => part.sets.push((entry, partly)),
                }
            }
            part.trouble = part.trouble.or(own.trouble);
            part.trouble_behind = part.trouble_behind.or(own.trouble_behind);
        }
        part
    }

    fn of_headers(headers: &Headers) -> Self {
        let sets = headers.sets.iter().cloned();
        Self {
            sets: sets.map(|entry| (entry, None)).collect(),
            trouble: headers.trouble.clone(),
            trouble_behind: headers.trouble_behind.clone(),
        }
    }

    fn of_media(media: &MediaSet) -> Self {
        let sets = media.sets().into_iter().map(|entry| {
            let partly = media.partly_finished(entry.configuration.position);
            (entry, partly)
        });
        Self {
            sets: sets.collect(),
            trouble: media.trouble().map(Trouble::of),
            trouble_behind: media.trouble_behind().map(Trouble::of),
        }
    }
}

/// A device that was given, and what it shows of its medium.
pub(super) struct Named {
    device: DeviceAddress,
    headers: Arc<Headers>,
}

impl Named {
    fn open(device: &DeviceAddress, headers: &mut HeaderCache) -> Result<Self, Failure> {
        Ok(Self {
            device: device.clone(),
            headers: headers.read(device)?,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.device.name
    }

    pub(super) fn into_device(self) -> DeviceAddress {
        self.device
    }

    /// Its sets, and whether each is complete.
    fn sets(&self) -> impl ExactSizeIterator<Item = (Guid, bool)> {
        let sets = self.headers.sets.iter();
        sets.map(|entry| (entry.configuration.set_guid, entry.is_complete))
    }

    fn is_damaged(&self) -> bool {
        let trouble = self.headers.trouble.as_ref();
        trouble.is_some_and(|trouble| !trouble.is_truncation)
    }

    fn complete(&self) -> usize {
        self.sets().filter(|(_, is_complete)| *is_complete).count()
    }

    /// Whether `other` holds everything that this one does.
    fn is_copy_of(&self, other: &Self) -> bool {
        let has =
            |(own, theirs): ((Guid, bool), (Guid, bool))| own.0 == theirs.0 && (theirs.1 || !own.1);
        self.headers.family == other.headers.family
            && !other.is_damaged()
            && self.sets().len() <= other.sets().len()
            && self.sets().zip(other.sets()).all(has)
    }
}

/// The devices of each media set; those of an older generation of it by themselves.
///
/// # Errors
/// If one of them cannot be read.
pub(super) fn grouped(
    devices: &[DeviceAddress],
    headers: &mut HeaderCache,
) -> Result<Vec<(Guid, Generation<Named>)>, Failure> {
    let mut groups: Vec<(Guid, Vec<Named>)> = Vec::new();
    for device in devices {
        let named = Named::open(device, headers)?;
        let guid = named.headers.media_set_guid;
        match groups.iter_mut().find(|(known, _)| *known == guid) {
            Some((_, group)) => group.push(named),
            None => groups.push((guid, vec![named])),
        }
    }
    let split = groups.into_iter().flat_map(|(guid, group)| {
        let count = group.first().map_or(0, |named| named.headers.family_count);
        let shown = |named: &Named| {
            let sets = named.sets().map(|(set, _)| set);
            (named.headers.family, sets.collect())
        };
        let generations = generation::split(guid, count, group, shown);
        generations.into_iter().map(move |own| (guid, own))
    });
    Ok(split.collect())
}

/// The devices of one media set that are needed, and the others, as messages.
pub(super) fn newest(named: Vec<Named>) -> (Vec<Named>, Vec<Message>) {
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
    (needed, notes)
}

fn note(copy: &Named, of: &Named) -> Message {
    let what = match copy.complete() < of.complete() {
        true => "an older copy",
        false => "a copy",
    };
    let why = format!("it is {what} of '{}'", of.device.name);
    table::set_left_out(format!("'{}'", copy.device.name), why)
}
