//! Other recipients for encrypted sets, without touching the media: a key file beside each family.
//!
//! The file has the name of the family's file with `.keys` behind. All of them are alike, so that any one
//! does. They are written beside and renamed.

use std::ffi::OsString;
use std::path::PathBuf;

use windlass_crypt::{KeyBlock, KeyFile, Recipient};
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

/// The first key file beside the devices that can be read. A damaged one is passed over: the media have
/// keys of their own, and whoever needs the other ones is told that they are missing.
pub(crate) fn read(devices: &[DeviceAddress]) -> Option<KeyFile> {
    devices.iter().filter_map(path).find_map(|path| {
        let octets = windlass_io::secret::read(&path).ok()?;
        KeyFile::from_stored(&octets).ok()
    })
}

/// Wraps the keys of encrypted sets for other recipients; all sets that are complete, or one. Returns
/// the positions of the sets.
///
/// # Errors
/// When a set is not encrypted, no key at hand opens it, or a file cannot be written.
pub fn rekey(
    devices: &[DeviceAddress],
    position: Option<u16>,
    keys: &ReadKeys,
    recipients: &[Recipient],
) -> Result<Vec<u16>, Error> {
    let media = MediaSet::open(devices)?;
    let positions: Vec<u16> = match position {
        Some(position) => vec![position],
        None => (media.sets().iter())
            .filter(|entry| entry.is_complete && entry.configuration.is_encrypted())
            .map(|entry| entry.configuration.position)
            .collect(),
    };
    let mut file = media.key_file.clone().unwrap_or_default();
    for position in &positions {
        let sets = media.complete(*position)?;
        let set = &sets[0].configuration;
        let key = sealing::unlock(&media, set, keys)?.ok_or_else(|| Error::NotEncrypted {
            device: media.devices(),
        })?;
        file.replace(&key, KeyBlock::wrap(&key, recipients)?)?;
    }
    if positions.is_empty() {
        return Err(Error::NotEncrypted {
            device: media.devices(),
        });
    }
    let octets = file.to_stored();
    for device in devices {
        if let Some(path) = path(device) {
            write(&path, &octets).map_err(|error| {
                let name = path.display().to_string();
                windlass_device::Error::new(Operation::Write, &name, error)
            })?;
        }
    }
    Ok(positions)
}

fn write(path: &std::path::Path, octets: &[u8]) -> std::io::Result<()> {
    windlass_io::own::replace(path, octets)
}
