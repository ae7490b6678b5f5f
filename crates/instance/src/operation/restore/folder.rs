//! Folders among the media of a restore: the files in them that are media are meant.

use std::io;

use windlass_base::at_once::at_once;
use windlass_base::message::table;
use windlass_base::{Guid, Message};
use windlass_device::{DeviceAddress, DeviceFolder};
use windlass_pipeline::Error as PipelineError;

use crate::Failure;
use crate::headers::HeaderCache;
use crate::layout::Laid;
use crate::message_of::os_error;
use crate::retention::{FoundMedia, FoundOther, Scan, scan_only};

/// How often a folder is listed if objects go while they are looked at.
const LISTED_MAX: usize = 3;

/// Most objects of which it is asked whether they have gone, each with a request.
const ASKED_MAX: usize = 16;

/// Maximum number of files that are left out by name.
const LEFT_OUT_REPORTED: usize = 10;

/// Media that were named, with the folders among them opened.
pub(super) struct Unfolded {
    pub(super) devices: Vec<DeviceAddress>,
    /// Files that may be media and cannot be used, and why.
    pub(super) notes: Vec<Message>,
    /// A file in a folder that may hold a newer state than all that can be seen.
    pub(super) unseen: Option<FoundOther>,
    /// The media sets of which files were found, not named: some of their files may be lost.
    pub(super) in_folders: Vec<Guid>,
}

/// Replaces folders by the media in them. Of these, those count that hold backups of the database `of`; if that is not named, of
/// the database `name`, if there are any.
///
/// # Errors
/// A folder that cannot be read, or holds no media.
pub(super) fn unfolded(
    devices: Vec<DeviceAddress>,
    of: Option<&str>,
    name: &str,
    headers: &mut HeaderCache,
) -> Result<Unfolded, Failure> {
    let named = devices;
    let mut devices = Vec::new();
    let mut folders: Vec<DeviceFolder> = Vec::new();
    let mut notes = Vec::new();
    let is_remote = named.iter().any(DeviceAddress::is_object);
    let found = at_once(&named, is_remote, DeviceAddress::folder);
    for (device, folder) in named.iter().cloned().zip(found) {
        match folder.map_err(PipelineError::from)? {
            Some(folder) => folders.push(folder),
            None => devices.push(device),
        }
    }
    let Some(first) = folders.first().map(DeviceFolder::to_string) else {
        return Ok(Unfolded {
            devices,
            notes,
            unseen: None,
            in_folders: Vec::new(),
        });
    };
    let found = scanned(&folders, headers)
        .map_err(|error| table::cannot_open_device(&first, os_error(&error)))?;
    report(&found, &mut notes);
    let has = |medium: &FoundMedia, name: &str| {
        let mut sets = medium.sets.iter();
        sets.any(|set| set.of.name.eq_ignore_ascii_case(name))
    };
    let is_there = found.media.iter().any(|medium| has(medium, name));
    let wanted = of.or(is_there.then_some(name));
    let unseen = unseen(&found, wanted);
    let is_wanted = |medium: &&FoundMedia| wanted.is_none_or(|wanted| has(medium, wanted));
    let wanted: Vec<&FoundMedia> = found.media.iter().filter(is_wanted).collect();
    let in_folders = wanted.iter().map(|medium| medium.media_set_guid).collect();
    let files = |medium: &FoundMedia| -> Vec<DeviceAddress> {
        let files = medium.files.iter();
        files.map(|file| file.device.clone()).collect()
    };
    devices.extend(wanted.into_iter().flat_map(files));
    match devices.is_empty() {
        false => Ok(Unfolded {
            devices,
            notes,
            unseen,
            in_folders,
        }),
        true => Err(nothing_in(&first, of, &found)),
    }
}

/// What the folders hold. Between the listing of an object and the look at it, `expire` may delete it: of one that has gone,
/// another listing shows that it was not hidden, and what has taken its place.
fn scanned(folders: &[DeviceFolder], headers: &mut HeaderCache) -> io::Result<Scan> {
    let mut listed = 1;
    loop {
        let found = scan_only(folders, |_| true, headers)?;
        let unread = found
            .others
            .iter()
            .filter(|other| other.is_unknown && other.may_hide_sets && other.device.is_object());
        let has_gone = |other: &FoundOther| matches!(other.device.has_content(), Ok(false));
        if listed == LISTED_MAX || !unread.take(ASKED_MAX).any(has_gone) {
            return Ok(found);
        }
        listed += 1;
    }
}

/// No media in the folders, or none of the database `of`.
fn nothing_in(folder: &str, of: Option<&str>, found: &Scan) -> Failure {
    if let Some(of) = of.filter(|_| !found.media.is_empty()) {
        let media = found.media.iter().flat_map(|medium| &medium.sets);
        let mut held: Vec<String> = media.map(|set| format!("'{}'", set.of.name)).collect();
        held.sort();
        held.dedup();
        return table::no_backup_of(of, held.join(", ")).into();
    }
    let further = match crate::is_url(folder) {
        true => "",
        false => "; subfolders are not searched",
    };
    table::no_media_in_folder(folder, further).into()
}

/// The first file of which nobody can say what it holds. The key of an object can say that it is of another database.
fn unseen(found: &Scan, wanted: Option<&str>) -> Option<FoundOther> {
    let is_of_another = |device: &DeviceAddress| {
        let laid = device.url().and_then(|url| Laid::of(url.key()));
        laid.zip(wanted)
            .is_some_and(|(laid, wanted)| !laid.is_of(wanted))
    };
    let mut others = found.others.iter();
    let unseen = others.find(|other| other.may_hide_sets && !is_of_another(&other.device));
    unseen.cloned()
}

/// Says which files may be media and cannot be used: a newer backup may be in them.
fn report(found: &Scan, notes: &mut Vec<Message>) {
    let others = found.others.iter().filter(|other| other.may_be_medium);
    let others: Vec<(DeviceAddress, String)> = others
        .map(|other| (other.device.clone(), other.reason.clone()))
        .collect();
    notes.extend(noted(&others));
}

/// The first files that are left out, each with its reason, and the number of the others.
pub(super) fn noted(left_out: &[(DeviceAddress, String)]) -> Vec<Message> {
    let first = left_out.iter().take(LEFT_OUT_REPORTED);
    let mut notes: Vec<Message> = first
        .map(|(device, why)| table::set_left_out(format!("'{device}'"), why))
        .collect();
    let more = left_out.len().saturating_sub(LEFT_OUT_REPORTED);
    if more > 0 {
        notes.push(table::more_files_left_out(more));
    }
    notes
}
