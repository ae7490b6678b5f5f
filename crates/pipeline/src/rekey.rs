//! Adds recipients to encrypted sets without changing the media: writes a key file next to each family.
//!
//! The key file is named after the family's file, with `.keys` appended. All key files of a media
//! set are identical, so any one suffices. Each is written under a temporary name and renamed. The temporary
//! files are claimed before the keys are read: of two who add recipients at once, the second is refused.
//! A key file has the permissions of the family's file, because it contains only wrapped keys, as the
//! media do.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use windlass_crypt::{Error as CryptError, KeyBlock, KeyFile, Recipient, SetKey};
use windlass_device::{DeviceAddress, Operation};
use windlass_io::own;

use crate::error::Error;
use crate::media_set::MediaSet;
use crate::sealing::{self, ReadKeys};

const SUFFIX: &str = ".keys";

/// The path of a family's key file; `None` for devices that are not files.
fn path(device: &DeviceAddress) -> Option<PathBuf> {
    device.file().map(key_file)
}

/// The name of the key file of a medium, which exists only after its recipients were changed.
pub fn key_file(medium: &Path) -> PathBuf {
    own::beside(medium, SUFFIX)
}

/// The key file of the medium `source`, for the copy of it at `target`; `None` if it has none.
///
/// # Errors
/// If it cannot be used, or would lock out somebody whom the key file beside `target` lets in.
pub fn key_file_for_copy(
    source: &Path,
    target: &Path,
    overwrites: bool,
) -> io::Result<Option<Vec<u8>>> {
    let read = |path: &Path| match windlass_io::secret::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let (source, target) = (key_file(source), key_file(target));
    let Some(bytes) = read(&source)? else {
        return Ok(None);
    };
    let unusable = |error| io::Error::other(format!("'{}': {error}", source.display()));
    let new = KeyFile::from_stored(&bytes).map_err(unusable)?;
    let earlier = read(&target)?.and_then(|bytes| KeyFile::from_stored(&bytes).ok());
    match earlier {
        Some(earlier) if !overwrites && !new.lets_in_all_of(&earlier) => {
            let reason = format!(
                "'{}' lets recipients in that '{}' does not, and is kept",
                target.display(),
                source.display()
            );
            Err(io::Error::new(io::ErrorKind::AlreadyExists, reason))
        }
        _ => Ok(Some(bytes[..].to_owned())),
    }
}

/// A key file that exists but cannot be used. The media have their own keys; only users who need the
/// other ones get an error.
#[derive(Debug, Clone)]
pub struct UnusableKeyFile {
    pub path: PathBuf,
    pub reason: String,
}

/// The key files next to the media.
#[derive(Debug, Default)]
pub(crate) struct KeyFiles {
    /// The first readable one.
    pub(crate) file: Option<KeyFile>,
    pub(crate) unusable: Vec<UnusableKeyFile>,
}

/// Reads the key files next to the devices.
pub(crate) fn read(devices: &[DeviceAddress]) -> KeyFiles {
    let mut files = KeyFiles::default();
    for path in devices.iter().filter_map(path) {
        let bytes = match windlass_io::secret::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                let reason = error.to_string();
                files.unusable.push(UnusableKeyFile { path, reason });
                continue;
            }
        };
        match KeyFile::from_stored(&bytes) {
            Ok(file) if files.file.is_none() => files.file = Some(file),
            Ok(_) => {}
            Err(error) => {
                let reason = error.to_string();
                files.unusable.push(UnusableKeyFile { path, reason });
            }
        }
    }
    files
}

/// The recipients to add.
#[derive(Debug, Clone)]
pub struct RekeyRequest {
    /// Position of the set; all complete encrypted sets if absent.
    pub position: Option<u16>,
    /// The keys that open the sets now.
    pub keys: ReadKeys,
    /// The additional recipients.
    pub recipients: Vec<Recipient>,
    /// Whether recipients already in the key files are dropped.
    pub replaces: bool,
}

/// A set with new recipients.
#[derive(Debug, Clone)]
pub struct Rekeyed {
    pub position: u16,
    /// The recipients on the media, which do not change.
    pub on_media: KeyBlock,
    /// The recipients in the key file.
    pub beside: KeyBlock,
}

/// Wraps the keys of encrypted sets for additional recipients.
///
/// # Errors
/// If a set is not encrypted, no given key opens it, the recipients do not fit, an existing key
/// file cannot be read, or a file cannot be written.
pub fn rekey(devices: &[DeviceAddress], request: &RekeyRequest) -> Result<Vec<Rekeyed>, Error> {
    // Before the keys are read.
    let claimed = NewKeyFile::claim_all(devices)?;
    let media = MediaSet::open(devices)?;
    let positions: Vec<u16> = match request.position {
        Some(position) => vec![position],
        None => (media.sets().iter())
            .filter(|entry| entry.is_complete && entry.configuration.is_encrypted())
            .map(|entry| entry.configuration.position)
            .collect(),
    };
    if positions.is_empty() {
        return Err(Error::NotEncrypted {
            device: media.devices(),
        });
    }
    let mut file = earlier(&media, request.replaces)?;
    let mut rekeyed = Vec::with_capacity(positions.len());
    for position in positions {
        let complete = media.complete(position)?;
        let set = complete.configuration();
        let key = sealing::unlock(&media, &complete, &request.keys)?;
        let key = key.ok_or_else(|| Error::NotEncrypted {
            device: media.devices(),
        })?;
        let beside = match request.replaces {
            true => KeyBlock::wrap(&key, &request.recipients)?,
            false => joined(&file, &key, &request.recipients)?,
        };
        file.replace(&key, beside.clone())?;
        rekeyed.push(Rekeyed {
            position,
            on_media: KeyBlock::from_stored(&set.key_block)?,
            beside,
        });
    }
    let bytes = file.to_stored()?;
    for file in claimed {
        file.write(&bytes).map_err(|error| file.error(error))?;
    }
    Ok(rekeyed)
}

/// A key file that only this process can make; removed on drop, unless it has its name.
struct NewKeyFile<'a> {
    file: File,
    path: PathBuf,
    beside: PathBuf,
    medium: &'a Path,
}

impl<'a> NewKeyFile<'a> {
    fn claim_all(devices: &'a [DeviceAddress]) -> Result<Vec<Self>, Error> {
        let mut claimed = Vec::new();
        for device in devices {
            let (Some(path), Some(medium)) = (path(device), device.file()) else {
                continue;
            };
            let beside = own::beside(&path, ".new");
            let file = own::refuse_database(&beside).and_then(|()| own::claim_file(&beside));
            let file = file.map_err(|error| failed(&path, error))?;
            claimed.push(Self {
                file,
                path,
                beside,
                medium,
            });
        }
        Ok(claimed)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        windlass_io::secret::permit_like(&self.file, self.medium)?;
        (&self.file).write_all(bytes)?;
        self.file.sync_all()?;
        own::replace_name(&self.file, &self.beside, &self.path)
    }

    fn error(&self, error: io::Error) -> Error {
        failed(&self.path, error)
    }
}

impl Drop for NewKeyFile<'_> {
    fn drop(&mut self) {
        // Report the first error.
        let _left = own::remove_held(&self.file, &self.beside);
    }
}

fn failed(path: &Path, error: io::Error) -> Error {
    windlass_device::Error::new(Operation::Write, &path.display().to_string(), error).into()
}

/// The keys already next to the media. If key files exist but none can be read, replacing them
/// could lock out unknown recipients.
fn earlier(media: &MediaSet, replaces: bool) -> Result<KeyFile, Error> {
    match (&media.key_files.file, media.key_files.unusable.first()) {
        (Some(file), _) => Ok(file.clone()),
        (None, Some(unusable)) if !replaces => Err(Error::KeyFile {
            path: unusable.path.clone(),
            reason: unusable.reason.clone(),
        }),
        (None, _) => Ok(KeyFile::default()),
    }
}

/// The recipients in a set's key file plus additional ones.
fn joined(file: &KeyFile, key: &SetKey, recipients: &[Recipient]) -> Result<KeyBlock, CryptError> {
    match file.entry(key.set_guid()) {
        Some(entry) => {
            entry.check(key)?;
            entry.block().with(key, recipients)
        }
        None => KeyBlock::wrap(key, recipients),
    }
}
