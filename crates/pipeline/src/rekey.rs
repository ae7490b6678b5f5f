//! Other recipients for encrypted sets, without touching the media: a key file beside each family.
//!
//! The file has the name of the family's file with `.keys` behind. All of them are alike, so that any one
//! does. They are written beside and renamed, and whoever can read the family can read its key file: what is
//! in it are wrapped keys, as on the media.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use windlass_crypt::{Error as CryptError, KeyBlock, KeyFile, Recipient, SetKey};
use windlass_device::{DeviceAddress, DeviceKind, Operation};

use crate::error::Error;
use crate::media_set::MediaSet;
use crate::sealing::{self, ReadKeys};

const SUFFIX: &str = ".keys";

/// Where the key file of a family is; none for devices that are no files.
fn path(device: &DeviceAddress) -> Option<PathBuf> {
    if device.kind != DeviceKind::Disk {
        return None;
    }
    let mut name: OsString = device.path.clone().into_os_string();
    name.push(SUFFIX);
    Some(PathBuf::from(name))
}

/// A key file that is there and cannot be used. The media have keys of their own; whoever needs the other
/// ones is told of it.
#[derive(Debug, Clone)]
pub struct UnusableKeyFile {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

/// What lies beside the media.
#[derive(Debug, Default)]
pub(crate) struct KeyFiles {
    /// The first that can be read.
    pub(crate) file: Option<KeyFile>,
    pub(crate) unusable: Vec<UnusableKeyFile>,
}

/// Reads the key files beside the devices.
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

/// For whom keys are wrapped anew.
#[derive(Debug, Clone)]
pub struct RekeyRequest {
    /// The one set; all complete, encrypted ones when absent.
    pub position: Option<u16>,
    /// What opens the sets now.
    pub keys: ReadKeys,
    /// Who can read them from now on.
    pub recipients: Vec<Recipient>,
    /// Whether those whom the key files name already are dropped.
    pub replaces: bool,
}

/// A set with further recipients.
#[derive(Debug, Clone)]
pub struct Rekeyed {
    /// Its position.
    pub position: u16,
    /// The recipients on the media, which stay.
    pub on_media: KeyBlock,
    /// The recipients beside them.
    pub beside: KeyBlock,
}

/// Wraps the keys of encrypted sets for further recipients.
///
/// # Errors
/// When a set is not encrypted, no key at hand opens it, the recipients do not fit, the key files there are
/// cannot be read, or a file cannot be written.
pub fn rekey(devices: &[DeviceAddress], request: &RekeyRequest) -> Result<Vec<Rekeyed>, Error> {
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
        let sets = media.complete(position)?;
        let set = &sets[0].configuration;
        let key = sealing::unlock(&media, set, &request.keys)?;
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
    for device in devices {
        if let Some(path) = path(device) {
            write(&path, &bytes, &device.path).map_err(|error| {
                let name = path.display().to_string();
                windlass_device::Error::new(Operation::Write, &name, error)
            })?;
        }
    }
    Ok(rekeyed)
}

/// The keys that lie beside the media already. Where none can be read of those that are there, nobody knows
/// whom a new file would lock out.
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

/// The recipients that a set has beside the media, and further ones.
fn joined(file: &KeyFile, key: &SetKey, recipients: &[Recipient]) -> Result<KeyBlock, CryptError> {
    match file.entry(key.set_guid()) {
        Some(entry) => {
            entry.check(key)?;
            entry.block().with(key, recipients)
        }
        None => KeyBlock::wrap(key, recipients),
    }
}

fn write(path: &Path, bytes: &[u8], family: &Path) -> io::Result<()> {
    let beside = windlass_io::own::beside(path, ".new");
    windlass_io::own::remove(&beside)?;
    windlass_io::secret::create_like(&beside, bytes, family)?;
    windlass_io::directory::replace(&beside, path)
}
