//! Adds recipients to encrypted sets without changing the media: writes a key file next to each family.
//!
//! Each file is written under a temporary name and renamed. The temporary files are claimed before the keys are read: of
//! two who add recipients at once, the second is refused. Objects are looked at before the keys are read, and the store
//! refuses to replace them if they have changed since; they are written in the order of their names, so that whoever is
//! refused has written none. A key file has the permissions of the family's file, because it contains only wrapped keys,
//! as the media do.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use windlass_crypt::{Error as CryptError, KeyBlock, KeyFile, Recipient, SetKey};
use windlass_device::{DeviceAddress, Operation, SideAddress, SideObject};
use windlass_io::{own, secret};
use windlass_media::begins_backup;

use crate::error::Error;
use crate::key_files::{KEY_FILE_SUFFIX, key_file};
use crate::media_set::MediaSet;
use crate::sealing::{self, ReadKeys};

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
        file.write(&bytes)?;
    }
    Ok(rekeyed)
}

/// A key file that is about to be made.
enum NewKeyFile<'a> {
    /// Only this process can make it; the temporary file is removed on drop, unless it has its name.
    File {
        file: File,
        path: PathBuf,
        beside: PathBuf,
        medium: &'a Path,
    },
    /// The store refuses it if another than `earlier` has the name by then.
    Object {
        address: Box<SideAddress>,
        earlier: Option<SideObject>,
    },
}

impl<'a> NewKeyFile<'a> {
    fn claim_all(devices: &'a [DeviceAddress]) -> Result<Vec<Self>, Error> {
        let mut devices: Vec<&DeviceAddress> = devices.iter().collect();
        devices.sort_by(|one, other| one.name.cmp(&other.name));
        devices.into_iter().filter_map(Self::claim).collect()
    }

    fn claim(device: &'a DeviceAddress) -> Option<Result<Self, Error>> {
        if let Some(address) = device.side_object(KEY_FILE_SUFFIX) {
            let earlier = address.read(secret::BYTES_MAX);
            let earlier = earlier.and_then(|earlier| {
                refuse_content(earlier.as_ref().map(|earlier| &earlier.bytes[..]))?;
                Ok(earlier)
            });
            let earlier = earlier.map_err(|error| failed(&address.to_string(), error));
            let address = Box::new(address);
            return Some(earlier.map(|earlier| Self::Object { address, earlier }));
        }
        let medium = device.file()?;
        let path = key_file(medium);
        let beside = own::beside(&path, ".new");
        // What cannot be read is reported where it is needed.
        let earlier = secret::read_if_there(&path).ok().flatten();
        let claimed = refuse_content(earlier.as_deref())
            .and_then(|()| own::refuse_database(&beside))
            .and_then(|()| own::claim_file(&beside));
        Some(match claimed {
            Ok(file) => Ok(Self::File {
                file,
                path,
                beside,
                medium,
            }),
            Err(error) => Err(failed(&path.display().to_string(), error)),
        })
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Self::File {
                file,
                path,
                beside,
                medium,
            } => {
                let write = || {
                    secret::permit_like(file, medium)?;
                    (&*file).write_all(bytes)?;
                    file.sync_all()?;
                    own::replace_name(file, beside, path)
                };
                write().map_err(|error| failed(&path.display().to_string(), error))
            }
            Self::Object { address, earlier } => {
                let written = address.write(bytes, earlier.as_ref());
                written.map_err(|error| failed(&address.to_string(), explained(error)))
            }
        }
    }
}

/// Refuses to replace what is no key file, but a backup or a database of that name.
fn refuse_content(earlier: Option<&[u8]>) -> io::Result<()> {
    let is_other = earlier
        .is_some_and(|bytes| begins_backup(bytes) || bytes.starts_with(b"SQLite format 3\0"));
    match is_other {
        true => {
            let reason = "it is a backup or a database, not a key file, and is kept";
            Err(io::Error::new(io::ErrorKind::AlreadyExists, reason))
        }
        false => Ok(()),
    }
}

/// The refusal of a store, in other words than its own.
fn explained(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let reason = "somebody else has changed the recipients meanwhile; try again";
            io::Error::new(error.kind(), reason)
        }
        _ => error,
    }
}

impl Drop for NewKeyFile<'_> {
    fn drop(&mut self) {
        if let Self::File { file, beside, .. } = self {
            // Report the first error.
            let _left = own::remove_held(file, beside);
        }
    }
}

fn failed(name: &str, error: io::Error) -> Error {
    windlass_device::Error::new(Operation::Write, name, error).into()
}

/// The keys already next to the media. If key files exist but none can be read, or none lets in everybody, replacing
/// them could lock out recipients whom nobody has named.
fn earlier(media: &MediaSet, replaces: bool) -> Result<KeyFile, Error> {
    let files = media.key_files();
    match (files.common(), files.unusable.first()) {
        (Ok(Some(file)), _) => Ok(file.clone()),
        (Ok(None), None) => Ok(KeyFile::default()),
        (Ok(None), Some(_)) | (Err(_), _) if replaces => Ok(KeyFile::default()),
        (Ok(None), Some(unusable)) => Err(Error::KeyFile {
            file: unusable.name.clone(),
            reason: unusable.reason.clone(),
        }),
        (Err((first, other)), _) => Err(Error::KeyFile {
            file: other.to_owned(),
            reason: format!(
                "it differs from {first}, as if one of the two were older or of other media"
            ),
        }),
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
