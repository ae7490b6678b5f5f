//! What the history knows of media that cannot be read.

use std::path::{Path, PathBuf};

use windlass_base::Guid;
use windlass_catalog::PastBackup;
use windlass_device::DeviceAddress;

use super::{FoundFile, FoundMedia, FoundOther, FoundSet, Scan};
use crate::chain::{ChainSet, Obstacle};

/// Adds what the history knows of files that cannot be read, and of sets that are not found where it says:
/// their names and dates, so that a rule can count them. Whoever reads them finds that it cannot.
pub fn add_known(scan: &mut Scan, past: &[PastBackup]) {
    for other in std::mem::take(&mut scan.others) {
        match known_medium(&other.device, past) {
            Some(known) => unreadable(&mut scan.media, other, &known, past),
            None => scan.others.push(other),
        }
    }
    for media in &mut scan.media {
        if !media.is_outside {
            complete(media, past);
        }
    }
}

/// The media set and the family that a file belongs to according to the history, and the last set on it.
struct Known {
    media_set_guid: Guid,
    family: u16,
    set_guid: Option<Guid>,
}

/// What the history says of a file, by the last backup on it.
fn known_medium(device: &DeviceAddress, past: &[PastBackup]) -> Option<Known> {
    let name = name_in_history(device)?;
    let of = |backup: &PastBackup| {
        let medium = backup
            .media
            .iter()
            .find(|medium| Path::new(&medium.device) == name)?;
        let family = u16::try_from(medium.family).ok()?;
        let known = Known {
            media_set_guid: backup.media_set_guid?,
            family,
            set_guid: backup.set_guid,
        };
        Some((backup.id, known))
    };
    let current = past.iter().filter(|backup| !backup.is_overwritten);
    let (_, known) = current.filter_map(of).max_by_key(|(id, _)| *id)?;
    Some(known)
}

/// The name of a device in the history, if it exists.
fn name_in_history(device: &DeviceAddress) -> Option<PathBuf> {
    match device.file() {
        Some(path) => path.canonicalize().ok(),
        None => device.url().map(|url| PathBuf::from(url.to_string())),
    }
}

/// Adds a file whose content only the history knows.
fn unreadable(media: &mut Vec<FoundMedia>, other: FoundOther, known: &Known, past: &[PastBackup]) {
    let Known {
        media_set_guid,
        family,
        set_guid,
    } = *known;
    let file = FoundFile {
        trouble: None,
        bytes: other.device.length().unwrap_or(0),
        device: other.device,
        family,
        defect: Some(other.reason.clone()),
        may_hide: true,
        sets: Vec::new(),
    };
    if let Some(index) = its_medium(media, media_set_guid, set_guid) {
        let known = &mut media[index];
        known.files.push(file);
        if known.torn().is_some() {
            let had_none = known.trouble.is_none();
            known.may_pass = other.is_unknown && (had_none || known.may_pass);
            known.trouble.get_or_insert(other.reason);
        }
        return;
    }
    let own = past
        .iter()
        .filter(|backup| backup.media_set_guid == Some(media_set_guid));
    let families = own.flat_map(|backup| backup.media.iter().map(|medium| medium.family));
    media.push(FoundMedia {
        media_set_guid,
        family_count: families
            .max()
            .and_then(|count| u16::try_from(count).ok())
            .unwrap_or(family),
        files: vec![file],
        sets: Vec::new(),
        trouble: Some(other.reason),
        may_pass: other.is_unknown,
        has_contradictions: false,
        lacks_known: false,
        is_outside: false,
        unseen: None,
    });
}

/// The medium of a media set to which a file belongs, of which only the history knows the last set. There are several if
/// copies from before an overwrite are there too.
fn its_medium(media: &[FoundMedia], media_set: Guid, set: Option<Guid>) -> Option<usize> {
    let own = (0..media.len()).filter(|index| media[*index].media_set_guid == media_set);
    let own: Vec<usize> = own.collect();
    let holds = |index: &usize| {
        let mut sets = media[*index].sets.iter();
        sets.any(|found| Some(found.chain.set_guid) == set)
    };
    if let [only] = own[..] {
        return Some(only);
    }
    own.into_iter().find(holds)
}

/// Adds the sets that media of the history do not show.
fn complete(media: &mut FoundMedia, past: &[PastBackup]) {
    let is_here = |backup: &&PastBackup| {
        let name = |file: &FoundFile| name_in_history(&file.device);
        let here: Vec<PathBuf> = media.files.iter().filter_map(name).collect();
        let mut devices = backup.media.iter().map(|medium| Path::new(&medium.device));
        !backup.is_overwritten
            && backup.media_set_guid == Some(media.media_set_guid)
            && devices.any(|device| here.iter().any(|here| here == device))
    };
    let mut own: Vec<&PastBackup> = past.iter().filter(is_here).collect();
    // A damaged file whose sets may all be listed.
    media.lacks_known = media.torn().is_some() && !own.is_empty();
    own.sort_by_key(|backup| backup.position);
    for backup in own {
        let Some(index) = usize::try_from(backup.position)
            .ok()
            .and_then(|at| at.checked_sub(1))
        else {
            continue;
        };
        let Some(chain) = ChainSet::of_past(backup) else {
            continue;
        };
        let set = FoundSet {
            chain,
            of: backup.of.clone(),
            started: backup.started,
            finished: backup.finished,
            expires: None,
            stored_bytes: backup.stored_bytes,
        };
        let count = media.sets.len();
        match media.sets.get_mut(index) {
            Some(found) if found.is_complete() => {}
            // The rest of it may be elsewhere.
            Some(found) if matches!(found.chain.obstacle, Some(Obstacle::Partly(_))) => {}
            Some(found) => {
                *found = set;
                media.lacks_known = true;
            }
            None if count == index => {
                media.sets.push(set);
                media.lacks_known = true;
            }
            None => {}
        }
    }
}
