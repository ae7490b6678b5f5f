//! Folders among the media of a restore: the files in them that are media are meant.

use windlass_base::Message;
use windlass_base::message::table;
use windlass_device::{DeviceAddress, DeviceFolder};
use windlass_pipeline::Error as PipelineError;

use crate::Failure;
use crate::headers::HeaderCache;
use crate::message_of::os_error;
use crate::retention::{FoundMedia, Scan, scan_only};

/// Maximum number of files that are left out by name.
const LEFT_OUT_REPORTED: usize = 10;

/// Media that were named, with the folders among them opened.
pub(super) struct Unfolded {
    pub(super) devices: Vec<DeviceAddress>,
    /// Files that may be media and cannot be used, and why.
    pub(super) notes: Vec<Message>,
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
    for device in named {
        match device.folder().map_err(PipelineError::from)? {
            Some(folder) => folders.push(folder),
            None => devices.push(device),
        }
    }
    let Some(first) = folders.first().map(DeviceFolder::to_string) else {
        return Ok(Unfolded { devices, notes });
    };
    let found = scan_only(&folders, |_| true, headers)
        .map_err(|error| table::cannot_open_device(&first, os_error(&error)))?;
    report(&found, &mut notes);
    let has = |medium: &FoundMedia, name: &str| {
        let mut sets = medium.sets.iter();
        sets.any(|set| set.of.name.eq_ignore_ascii_case(name))
    };
    let is_there = found.media.iter().any(|medium| has(medium, name));
    let wanted = of.or(is_there.then_some(name));
    for medium in &found.media {
        if wanted.is_none_or(|wanted| has(medium, wanted)) {
            let files = medium.files.iter();
            devices.extend(files.map(|file| file.device.clone()));
        }
    }
    match (devices.is_empty(), of) {
        (false, _) => Ok(Unfolded { devices, notes }),
        (true, Some(of)) if !found.media.is_empty() => {
            let media = found.media.iter().flat_map(|medium| &medium.sets);
            let mut held: Vec<String> = media.map(|set| format!("'{}'", set.of.name)).collect();
            held.sort();
            held.dedup();
            Err(table::no_backup_of(of, held.join(", ")).into())
        }
        (true, _) => Err(table::no_media_in_folder(&first).into()),
    }
}

/// Says which files may be media and cannot be used: a newer backup may be in them.
fn report(found: &Scan, notes: &mut Vec<Message>) {
    let others = found.others.iter().filter(|other| other.may_be_medium);
    let others: Vec<Message> = others
        .map(|other| table::set_left_out(format!("'{}'", other.device), &other.reason))
        .collect();
    let more = others.len().saturating_sub(LEFT_OUT_REPORTED);
    notes.extend(others.into_iter().take(LEFT_OUT_REPORTED));
    if more > 0 {
        notes.push(table::more_files_left_out(more));
    }
}
