//! The key files next to the media, in which the keys of encrypted sets are wrapped for later recipients.
//!
//! A key file is named after the family's file or object, with `.keys` appended. All key files of a media set are
//! written alike, so any one suffices; of those that differ, each is tried. They are read when a set that is encrypted is looked at: of media in a store that
//! is a request for each.

use std::io;
use std::path::{Path, PathBuf};

use windlass_base::at_once::at_once;
use windlass_crypt::{KeyFile, KeyFileEntry};
use windlass_device::DeviceAddress;
use windlass_io::{own, secret};

/// The end of the name of a key file.
pub const KEY_FILE_SUFFIX: &str = ".keys";

/// The name of the key file of a medium, which exists only after its recipients were changed.
pub fn key_file(medium: &Path) -> PathBuf {
    own::beside(medium, KEY_FILE_SUFFIX)
}

/// The key file of the medium `source`, for a copy of it that has the key file `earlier`, called `name`; `None` if
/// the medium has none.
///
/// # Errors
/// If it cannot be used, or would lock out somebody whom `earlier` lets in.
pub fn key_file_for_copy(
    source: &Path,
    earlier: Option<&[u8]>,
    name: &str,
    overwrites: bool,
) -> io::Result<Option<Vec<u8>>> {
    let source = key_file(source);
    let Some(bytes) = secret::read_if_there(&source)? else {
        return Ok(None);
    };
    let unusable = |error| io::Error::other(format!("'{}': {error}", source.display()));
    let new = KeyFile::from_stored(&bytes).map_err(unusable)?;
    let earlier = earlier.and_then(|bytes| KeyFile::from_stored(bytes).ok());
    match earlier {
        Some(earlier) if !overwrites && !new.lets_in_all_of(&earlier) => {
            let reason = format!(
                "'{name}' lets recipients in that '{}' does not, and is kept",
                source.display()
            );
            Err(io::Error::new(io::ErrorKind::AlreadyExists, reason))
        }
        _ => Ok(Some(bytes)),
    }
}

/// A key file that exists but cannot be used. The media have their own keys; only users who need the
/// other ones get an error.
#[derive(Debug, Clone)]
pub struct UnusableKeyFile {
    /// Its path or URL.
    pub name: String,
    pub reason: String,
}

/// The key files next to the media.
#[derive(Debug, Default)]
pub(crate) struct KeyFiles {
    /// Those that can be read, with their paths or URLs. They are alike, unless one was put back or is another medium's.
    pub(crate) files: Vec<(String, KeyFile)>,
    pub(crate) unusable: Vec<UnusableKeyFile>,
}

impl KeyFiles {
    /// What they have for a set.
    pub(crate) fn entries(&self, set_guid: [u8; 16]) -> impl Iterator<Item = &KeyFileEntry> {
        let files = self.files.iter();
        files.filter_map(move |(_, file)| file.entry(set_guid))
    }

    /// The one that lets in everybody whom any of them lets in: all are alike, unless a change of their recipients was
    /// interrupted. The names of two of which neither does.
    pub(crate) fn common(&self) -> Result<Option<&KeyFile>, (&str, &str)> {
        let Some((mut name, mut best)) = self.files.first().map(|(name, file)| (name, file)) else {
            return Ok(None);
        };
        for (other_name, other) in &self.files {
            if !best.lets_in_all_of(other) {
                (name, best) = (other_name, other);
            }
        }
        let mut others = self.files.iter();
        match others.find(|(_, other)| !best.lets_in_all_of(other)) {
            None => Ok(Some(best)),
            Some((other, _)) => Err((name, other)),
        }
    }
}

/// Reads the key files next to the devices.
pub(crate) fn read(devices: &[DeviceAddress]) -> KeyFiles {
    let mut files = KeyFiles::default();
    let is_remote = devices.iter().any(DeviceAddress::is_object);
    for found in at_once(devices, is_remote, read_one).into_iter().flatten() {
        match found {
            Ok(found) => files.files.push(found),
            Err(unusable) => files.unusable.push(unusable),
        }
    }
    files
}

/// The key file next to a device, if it has one.
fn read_one(device: &DeviceAddress) -> Option<Result<(String, KeyFile), UnusableKeyFile>> {
    let (name, content) = match (device.file(), device.side_object(KEY_FILE_SUFFIX)) {
        (Some(medium), _) => {
            let path = key_file(medium);
            (path.display().to_string(), secret::read_if_there(&path))
        }
        (None, Some(object)) => {
            let content = object.read(secret::BYTES_MAX);
            (
                object.to_string(),
                content.map(|found| found.map(|found| found.bytes)),
            )
        }
        (None, None) => return None,
    };
    let read = match content {
        Ok(None) => return None,
        Ok(Some(bytes)) => KeyFile::from_stored(&bytes).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    Some(match read {
        Ok(file) => Ok((name, file)),
        Err(reason) => Err(UnusableKeyFile { name, reason }),
    })
}

/// Removes the key file next to a device whose medium has been deleted. What is no key file stays.
///
/// # Errors
/// If it cannot be removed.
pub fn remove_key_file(device: &DeviceAddress) -> io::Result<()> {
    if !matches!(read_one(device), Some(Ok(_))) {
        return Ok(());
    }
    match (device.file(), device.side_object(KEY_FILE_SUFFIX)) {
        (Some(medium), _) => std::fs::remove_file(key_file(medium)),
        (None, Some(object)) => object.remove(),
        (None, None) => Ok(()),
    }
}
