//! Quick check that the media of a past backup are still where the history says.
//!
//! A medium is present if its file or object exists, is at least as long as when the set was finished, starts with
//! the header of its media set and family, and has the end of that very set at its old place: an older
//! copy of the medium that was put back and appended to has the same header. That reads three blocks;
//! `verify` checks the rest. A set is present if each of its stripes is, on any of the mirrors.
//!
//! What cannot be examined is unknown, not missing: no permission, a device that fails, a file system
//! that is not mounted where it was, a store that does not answer, or that was not to be asked
//! ([`Looker::asking`]). What a verification has found in a file ([`crate::verified`]) counts too, until
//! another one finds it intact: a damaged file is no better than a missing one.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use windlass_base::at_once::at_once;
use windlass_base::{Guid, Moment};
use windlass_catalog::{Catalog, Error, PastBackup, PastMedium};
use windlass_device::{DeviceAddress, DeviceReader};
use windlass_media::{FamilyReader, MediaError, ReadAt, ReadError, SetListing};

use crate::Instance;
use crate::damage::Damages;
use crate::operation::Reach;
use crate::verified::Verifications;

/// Bytes read from the start of a medium: more than its header.
const HEADER_BYTES: u64 = 64 << 10;

/// The result of checking some media.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    There,
    /// They are missing, or have changed.
    Gone(String),
    /// They are there, but a verification or restore has found damage in them.
    Damaged {
        error_number: u32,
        reason: String,
    },
    /// They cannot be examined.
    Unknown(String),
}

impl Presence {
    /// Which of several copies says the most.
    fn rank(&self) -> u8 {
        match self {
            Self::There => 0,
            Self::Unknown(_) => 1,
            Self::Damaged { .. } => 2,
            Self::Gone(_) => 3,
        }
    }
}

/// Checks media, each at most once.
#[derive(Debug, Default)]
pub struct Looker {
    /// What is known of their content.
    verifications: Verifications,
    /// What is known of the databases that they are of.
    damages: Damages,
    /// The keys of stores; `None` if these are not asked.
    reach: Option<Reach>,
    /// Length and header of each file.
    seen: HashMap<PathBuf, Result<Seen, Presence>>,
    /// Backups whose media are missing, or present again, contrary to the catalog.
    changes: BTreeMap<i64, Option<String>>,
}

#[derive(Debug)]
struct Seen {
    bytes: u64,
    header: Result<(Guid, u16), String>,
    /// To read on, if it is an object.
    object: Option<Box<Object>>,
}

impl Looker {
    /// One that knows what the verifications and the checks of databases of an instance have found.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn of(catalog: &Catalog) -> Result<Self, Error> {
        Ok(Self {
            verifications: Verifications::read(catalog)?,
            damages: Damages::read(catalog)?,
            ..Self::default()
        })
    }

    /// The same, which asks stores too: that takes the time of some requests for each object.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn asking(instance: &Instance) -> Result<Self, Error> {
        Ok(Self {
            reach: Some(Reach::of(instance)?),
            ..Self::of(instance.catalog())?
        })
    }

    pub fn verifications(&self) -> &Verifications {
        &self.verifications
    }

    pub fn damages(&self) -> &Damages {
        &self.damages
    }

    /// Checks all media of a backup.
    pub fn look(&mut self, backup: &PastBackup) -> Presence {
        let presence = self.families(backup);
        match (&presence, backup.missing_since) {
            (Presence::Gone(reason), None) => {
                self.changes.insert(backup.id, Some(reason.clone()));
            }
            (Presence::There | Presence::Damaged { .. }, Some(_)) => {
                self.changes.insert(backup.id, None);
            }
            _ => {}
        }
        presence
    }

    /// Records in the catalog since when media are missing. If that fails, as for a user with read
    /// access only, the result is still returned.
    pub fn note(self, catalog: &mut Catalog, now: Moment) {
        let changes: Vec<_> = self.changes.into_iter().collect();
        if !changes.is_empty()
            && let Err(error) = catalog.note_media(&changes, now)
        {
            tracing::warn!("the missing media were not recorded: {error}");
        }
    }

    fn families(&mut self, backup: &PastBackup) -> Presence {
        let mut unknown = None;
        let families: Vec<u32> = backup.media.iter().map(|medium| medium.family).collect();
        if families.is_empty() {
            return Presence::Unknown("the history names no media".to_owned());
        }
        for family in families {
            let own = backup.media.iter().filter(|medium| medium.family == family);
            let mut found: Vec<Presence> = Vec::new();
            for medium in own {
                found.push(self.medium(medium, backup));
                if found.last() == Some(&Presence::There) {
                    break;
                }
            }
            // Any of the copies will do.
            match found.into_iter().min_by_key(Presence::rank) {
                Some(Presence::Unknown(reason)) => unknown = unknown.or(Some(reason)),
                Some(Presence::There) | None => {}
                Some(lost) => return lost,
            }
        }
        unknown.map_or(Presence::There, Presence::Unknown)
    }

    fn medium(&mut self, medium: &PastMedium, backup: &PastBackup) -> Presence {
        let presence = self.place(medium, backup);
        match self.verifications.damage(backup, medium) {
            Some(found) if !matches!(presence, Presence::Gone(_)) => {
                let (at, error_number, device) = (found.at, found.error_number, &medium.device);
                Presence::Damaged {
                    error_number,
                    reason: format!(
                        "a verification or restore found it damaged on '{device}' on {at}: message {error_number}"
                    ),
                }
            }
            _ => presence,
        }
    }

    /// Looks where a medium was.
    fn place(&mut self, medium: &PastMedium, backup: &PastBackup) -> Presence {
        let path = Path::new(&medium.device);
        let address = match (&self.reach, crate::is_url(&medium.device)) {
            (Some(reach), true) => reach.device(&medium.device),
            (None, true) => {
                let reason = format!(
                    "'{}' is in object storage, which is not asked here",
                    medium.device
                );
                return Presence::Unknown(reason);
            }
            (_, false) if path.is_absolute() => DeviceAddress::disk(path),
            (_, false) => {
                let reason = format!("'{}' is not an absolute path", medium.device);
                return Presence::Unknown(reason);
            }
        };
        let seen = self
            .seen
            .entry(path.to_owned())
            .or_insert_with(|| match address.file() {
                Some(path) => see(path, medium.mount_point.as_deref()),
                None => see_object(&address),
            });
        let seen = match seen {
            Ok(seen) => seen,
            Err(presence) => return presence.clone(),
        };
        let name = &medium.device;
        if let Some(expected) = medium.end_bytes.filter(|expected| seen.bytes < *expected) {
            let found = seen.bytes;
            return Presence::Gone(format!(
                "'{name}' is truncated: it has {found} of at least {expected} bytes"
            ));
        }
        match &seen.header {
            Err(error) => Presence::Gone(format!(
                "'{name}' no longer begins with its header: {error}"
            )),
            Ok((found, family)) => {
                let media_set = backup.media_set_guid;
                let is_same = media_set.is_none_or(|expected| expected == *found)
                    && u32::from(*family) == medium.family;
                match (backup.set_guid, medium.end_bytes) {
                    _ if !is_same => {
                        Presence::Gone(format!("'{name}' belongs to another media set or stripe"))
                    }
                    (Some(set_guid), Some(end)) => match &seen.object {
                        Some(object) => holds(&**object, name, set_guid, end),
                        None => match file(path) {
                            Ok(medium) => holds(&medium, name, set_guid, end),
                            Err(error) => unseen(name, &error),
                        },
                    },
                    _ => Presence::There,
                }
            }
        }
    }
}

fn unseen(name: &str, error: &dyn std::fmt::Display) -> Presence {
    Presence::Unknown(format!("'{name}' cannot be looked at: {error}"))
}

/// Opens a file, and does not wait if it is a FIFO.
fn file(path: &Path) -> std::io::Result<Medium> {
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    Ok(Medium(file.metadata()?.len(), file))
}

/// Whether a medium still contains a set that ended at `end`.
fn holds(medium: &dyn ReadAt, name: &str, set_guid: Guid, end: u64) -> Presence {
    let unknown = |error: &dyn std::fmt::Display| unseen(name, error);
    let reader = match FamilyReader::open(medium) {
        Ok((reader, _)) => reader,
        Err(error) => return unknown(&error),
    };
    let damage = match reader.set_that_ended_at(end) {
        Ok(found) if found == set_guid => return Presence::There,
        Ok(_) => None,
        Err(MediaError::Read(error)) => return unknown(&error),
        Err(error) => Some(error),
    };
    // The recorded length may include a backup that was appended later.
    let listing = reader.list();
    let is_it = |set: &SetListing| set.configuration.set_guid == set_guid && set.end.is_some();
    if listing.sets.iter().any(is_it) {
        return Presence::There;
    }
    Presence::Gone(match damage {
        None => {
            format!("'{name}' does not hold this backup any more, but others of the same media set")
        }
        Some(damage) => format!("'{name}' does not end this backup as it did: {damage}"),
    })
}

/// A medium of which only a few places are read.
struct Medium(u64, File);

impl ReadAt for Medium {
    fn len(&self) -> u64 {
        self.0
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        std::os::unix::fs::FileExt::read_exact_at(&self.1, buffer, offset).map_err(|source| {
            ReadError {
                offset,
                length: buffer.len() as u64,
                source,
            }
        })
    }
}

/// An object of which only a few places are read; its start was read at once.
#[derive(Debug)]
struct Object {
    reader: Box<dyn DeviceReader>,
    start: Vec<u8>,
}

impl ReadAt for Object {
    fn len(&self) -> u64 {
        self.reader.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        let length = buffer.len() as u64;
        let known = usize::try_from(offset)
            .ok()
            .and_then(|at| self.start.get(at..at.checked_add(buffer.len())?));
        if let Some(known) = known {
            buffer.copy_from_slice(known);
            return Ok(());
        }
        let failed = |source| ReadError {
            offset,
            length,
            source,
        };
        match self.reader.read_at(buffer, offset) {
            Ok(count) if count as u64 == length => Ok(()),
            Ok(_) => Err(failed(ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(failed(error.source)),
        }
    }
}

/// Reads the length and the header of an object.
fn see_object(address: &DeviceAddress) -> Result<Seen, Presence> {
    let name = &address.name;
    let refused = |error: windlass_device::Error| match error.source.kind() {
        ErrorKind::NotFound => Presence::Gone(format!("'{name}' is gone")),
        _ => Presence::Unknown(format!("'{name}' cannot be examined: {}", error.source)),
    };
    let reader = address.open_reader().map_err(refused)?;
    let mut start = vec![0; HEADER_BYTES as usize];
    let count = reader.read_at(&mut start, 0).map_err(refused)?;
    start.truncate(count);
    let object = Box::new(Object { reader, start });
    let header = match FamilyReader::open(&*object) {
        Ok((_, header)) => Ok((header.media_set_guid, header.family_number)),
        Err(error) => Err(error.to_string()),
    };
    Ok(Seen {
        bytes: object.reader.len(),
        header,
        object: Some(object),
    })
}

/// Reads the length and the header of a file.
fn see(path: &Path, mount_point: Option<&Path>) -> Result<Seen, Presence> {
    let name = path.display();
    let refused = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => away(path, mount_point),
        _ => Presence::Unknown(format!("'{name}' cannot be examined: {error}")),
    };
    let metadata = std::fs::metadata(path).map_err(refused)?;
    if !metadata.is_file() {
        return Err(Presence::Gone(format!("'{name}' is not a regular file")));
    }
    // Must not hang if the file has become a FIFO.
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(refused)?;
    let mut bytes = Vec::new();
    file.take(HEADER_BYTES)
        .read_to_end(&mut bytes)
        .map_err(refused)?;
    let bytes = bytes.as_slice();
    let header = match FamilyReader::open(&bytes) {
        Ok((_, header)) => Ok((header.media_set_guid, header.family_number)),
        Err(error) => Err(error.to_string()),
    };
    Ok(Seen {
        bytes: metadata.len(),
        header,
        object: None,
    })
}

/// The presence of a file that does not exist: gone, unless its file system is not mounted.
fn away(path: &Path, mounted: Option<&Path>) -> Presence {
    let name = path.display();
    match mounted {
        Some(mounted) if !is_mounted(mounted) => Presence::Unknown(format!(
            "'{name}' cannot be examined: nothing is mounted at '{}'",
            mounted.display()
        )),
        Some(_) => Presence::Gone(format!("'{name}' is gone")),
        None => match windlass_io::directory::parent(path).try_exists() {
            Ok(true) => Presence::Gone(format!("'{name}' is gone")),
            _ => Presence::Unknown(format!(
                "'{name}' cannot be examined: its folder does not exist"
            )),
        },
    }
}

/// The files or objects of some media and their state, as a text that differs if any of them is written to, replaced
/// or moved. Empty, which equals no state, if one of them cannot be examined.
pub(crate) fn state(devices: &[DeviceAddress]) -> String {
    let line = |device: &DeviceAddress| {
        if let Some(url) = device.url() {
            return Some(format!("{url}\t{}\t-\tobject", device.object_state()?));
        }
        let path = device.file()?.canonicalize().ok()?;
        let metadata = std::fs::metadata(&path).ok()?;
        Some(format!(
            // Times of modification can be set back; that of the last change of the inode cannot.
            "{}\t{}\t{}.{:09}\t{}.{:09}\t{}:{}",
            path.display(),
            metadata.len(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.ctime(),
            metadata.ctime_nsec(),
            metadata.dev(),
            metadata.ino(),
        ))
    };
    let is_remote = devices.iter().any(DeviceAddress::is_object);
    let lines: Option<Vec<String>> = at_once(devices, is_remote, line).into_iter().collect();
    let mut lines = lines.unwrap_or_default();
    lines.sort();
    lines.join("\n")
}

/// The files of such a text.
pub(crate) fn paths_of(state: &str) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    // A name may have line breaks and tabs; what follows it has neither.
    let mut line = String::new();
    for part in state.split('\n').filter(|_| !state.is_empty()) {
        line.push_str(part);
        let mut fields = line.rsplitn(STATE_FIELDS + 1, '\t');
        match fields.nth(STATE_FIELDS) {
            Some(path) => {
                paths.push(PathBuf::from(path));
                line.clear();
            }
            None => line.push('\n'),
        }
    }
    paths
}

/// How many fields follow the name in a [`state`].
const STATE_FIELDS: usize = 4;

/// The mount point of the file system that contains a file, or would contain it.
pub(crate) fn mount_point(path: &Path) -> Option<PathBuf> {
    let folder = windlass_io::directory::parent(path).canonicalize().ok()?;
    let device = std::fs::metadata(&folder).ok()?.dev();
    let within = folder.ancestors().take_while(|ancestor| {
        std::fs::metadata(ancestor).is_ok_and(|metadata| metadata.dev() == device)
    });
    within.last().map(Path::to_owned)
}

/// Whether something is mounted there.
pub(crate) fn is_mounted(mounted: &Path) -> bool {
    mount_point(&mounted.join("x")).as_deref() == Some(mounted)
}

#[cfg(test)]
pub(crate) mod tests;
