//! Backups that were interrupted while their files got their names.
//!
//! A new set of several files is complete before the first of them is renamed. A crash, or an error that
//! could not be undone, between two renames leaves a part under `NAME.windlass-new`: without it neither
//! the new set nor, often, the earlier one is complete. So errors about files that do not fit together
//! name such files, and no backup removes them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use windlass_base::{Guid, Moment};
use windlass_device::{DeviceAddress, Operation, STAGING_SUFFIX, staging_path};
use windlass_io::directory;

use crate::error::Error;
use crate::media_set::Family;

/// Most files of a folder that are looked at.
const FILES_MAX: usize = 10_000;

/// A file that holds a complete media family.
struct Candidate {
    file: PathBuf,
    /// The name that it has or is to get.
    target: PathBuf,
    /// Whether it has its temporary name.
    is_staged: bool,
    number: u16,
    started: Option<Moment>,
}

/// What all families of a media set have in common if they fit together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Content {
    media_set: [u8; 16],
    family_count: u16,
    sets: Vec<[u8; 16]>,
}

type Found = BTreeMap<Content, Vec<Candidate>>;

/// The error, with the files that complete a set, if that is why the devices do not fit together.
pub(crate) fn explained(devices: &[DeviceAddress], error: Error) -> Error {
    let is_mixture = match &error {
        Error::OtherMediaSet { .. }
        | Error::OtherBackupSet { .. }
        | Error::FamiliesMissing { .. }
        | Error::FamilyCountDiffers { .. }
        | Error::FamilyTwice { .. }
        | Error::FamilyBehind { .. }
        | Error::VolumeEmpty { .. } => true,
        Error::Device(error) => {
            error.operation == Operation::Open
                && error.source.kind() == std::io::ErrorKind::NotFound
        }
        _ => false,
    };
    match complete_sets(devices).filter(|_| is_mixture) {
        Some(files) => Error::HalfNamed {
            cause: Some(Box::new(error)),
            files,
        },
        None => error,
    }
}

/// Refuses to overwrite devices if that removed a temporary file that may complete a set: one of several
/// families, unless the devices hold a complete set already.
pub(crate) fn refuse_to_remove(devices: &[DeviceAddress]) -> Result<(), Error> {
    let targets = targets(devices);
    let mut staged = targets.iter().filter_map(|target| candidate(target, true));
    let Some((content, first)) = staged.find(|(content, _)| content.family_count > 1) else {
        return Ok(());
    };
    let mut named = Found::new();
    for target in &targets {
        add(&mut named, candidate(target, false));
    }
    if named.iter().any(is_complete) {
        return Ok(());
    }
    let alone = || {
        let (file, number, count) = (first.file.display(), first.number, content.family_count);
        format!("'{file}' is media family {number} of {count} of a backup that is complete with it")
    };
    Err(Error::HalfNamed {
        cause: None,
        files: complete_sets(devices).unwrap_or_else(alone),
    })
}

/// The sets that are complete with temporary files, newest first: a device, and what has a temporary name in
/// the folders of the devices.
fn complete_sets(devices: &[DeviceAddress]) -> Option<String> {
    let named = targets(devices);
    let parents = named.iter().map(|path| directory::parent(path));
    let folders: BTreeSet<PathBuf> = parents.collect();
    let staged = folders.iter().flat_map(|folder| staged_in(folder));
    let candidates: BTreeSet<PathBuf> = staged.chain(named.iter().cloned()).collect();
    let mut found = Found::new();
    for target in &candidates {
        add(&mut found, candidate(target, true));
        add(&mut found, candidate(target, false));
    }
    let mut sets: Vec<Vec<Candidate>> = found
        .into_iter()
        .filter(|(content, files)| is_complete((content, files)))
        .map(|(_, files)| files)
        .filter(|files| files.iter().any(|file| file.is_staged))
        .filter(|files| files.iter().any(|file| named.contains(&file.target)))
        .collect();
    sets.sort_by_key(|files| Reverse(files.iter().filter_map(|file| file.started).max()));
    let texts: Vec<String> = sets.iter().map(|files| text(files)).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// The files of devices, without links.
fn targets(devices: &[DeviceAddress]) -> Vec<PathBuf> {
    let paths = devices.iter().filter_map(DeviceAddress::file);
    paths
        .map(|path| directory::follow(path).unwrap_or_else(|_| path.to_owned()))
        .collect()
}

fn text(files: &[Candidate]) -> String {
    let names = files
        .iter()
        .map(|file| format!("'{}'", file.file.display()));
    let names = names.collect::<Vec<_>>().join(", ");
    match files.iter().find_map(|file| file.started) {
        Some(started) => format!("the backup of {started} is complete in {names}"),
        None => format!("a backup is complete in {names}"),
    }
}

/// The names that the temporary files of a folder are to get.
fn staged_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let target = |name: &OsStr| {
        let bare = name.as_bytes().strip_suffix(STAGING_SUFFIX.as_bytes())?;
        Some(folder.join(OsStr::from_bytes(bare)))
    };
    let entries = entries.take(FILES_MAX).flatten();
    entries
        .filter_map(|entry| target(&entry.file_name()))
        .collect()
}

/// What is in a file, if it is a complete media family that no backup is writing.
fn candidate(target: &Path, is_staged: bool) -> Option<(Content, Candidate)> {
    let file = match is_staged {
        true => staging_path(target),
        false => target.to_owned(),
    };
    let family = Family::open(&DeviceAddress::disk(&file)).ok()?;
    let complete = family.listing.complete_sets();
    let guid = |position| family.guid(position).map(Guid::to_stored);
    let sets = (1..=complete).map(guid).collect::<Option<Vec<_>>>()?;
    let started = family.set(complete)?.configuration.started;
    let content = Content {
        media_set: family.header.media_set_guid.to_stored(),
        family_count: family.header.family_count,
        sets,
    };
    let candidate = Candidate {
        file,
        target: target.to_owned(),
        is_staged,
        number: family.number(),
        started,
    };
    Some((content, candidate))
}

/// Adds a file, unless one with the same family is known.
fn add(found: &mut Found, candidate: Option<(Content, Candidate)>) {
    let Some((content, candidate)) = candidate else {
        return;
    };
    let files = found.entry(content).or_default();
    match files
        .iter()
        .position(|file| file.number == candidate.number)
    {
        Some(at) if files[at].is_staged => files[at] = candidate,
        Some(_) => {}
        None => files.push(candidate),
    }
}

fn is_complete((content, files): (&Content, &Vec<Candidate>)) -> bool {
    files.len() == usize::from(content.family_count)
}
