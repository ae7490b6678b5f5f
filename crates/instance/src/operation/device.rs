//! Resolves the names of devices to addresses.

use std::path::Path;
use std::{fmt, mem};

use windlass_base::message::table;
use windlass_device::{DeviceAddress, ObjectSettings, ObjectUrl, StoreKind};
use windlass_pipeline::Error as PipelineError;

use super::credential::{self, CredentialChoice};
use crate::layout;
use crate::message_of::os_error;
use crate::names::absolute;
use crate::tag::{Tags, folder_before_tags, has_tag};
use crate::{Failure, Session};

/// Maximum number of devices in a statement, and of families of a media set.
/// Of one media set.
const DEVICES_MAX: usize = 64;

/// Maximum length of a device name, as on SQL Server.
const NAME_CHARACTERS_MAX: usize = 259;

/// The same of a URL: the longest key of a store, and room for what is before it. Longer than on SQL Server, because names
/// of the layout of folders, and expanded name tags, must be read again.
const URL_CHARACTERS_MAX: usize = 1_200;

/// A device as written: its name tags and drive letter are not resolved yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceName {
    /// A file, or `NUL`.
    Disk(String),
    /// Registered with `sp_addumpdevice`.
    Logical(String),
    /// A class of devices that SQL Server has: refused when it is opened.
    Tape,
    /// An object of a store: `s3://...`, `https://account.blob.core.windows.net/...`, `gs://...`
    Url(String),
    VirtualDevice,
}

impl DeviceName {
    /// The device with a name of the history or the command line: a URL or a file.
    pub fn physical(name: impl Into<String>) -> Self {
        let name = name.into();
        match is_url(&name) {
            true => Self::Url(name),
            false => Self::Disk(name),
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk(name) | Self::Logical(name) => name,
            Self::Url(name) => return f.write_str(&shown(name)),
            Self::Tape => "TAPE",
            Self::VirtualDevice => "VIRTUAL_DEVICE",
        })
    }
}

/// Resolves the devices of one copy of the media, including their name tags, and makes the folders that tags name.
pub(crate) fn resolve(
    session: &mut Session,
    devices: &[DeviceName],
    tags: &Tags,
    store: &Store,
) -> Result<Vec<DeviceAddress>, Failure> {
    let addresses = addresses(session, devices, tags, store)?;
    // Only what is written has a time.
    if tags.moment.is_some() {
        for (device, address) in devices.iter().zip(&addresses) {
            refuse_folder(address)?;
            prepare(session, &written(session, device)?.path, address)?;
        }
    }
    release(session, &addresses)?;
    Ok(addresses)
}

/// Refuses a name that only a folder can have.
fn refuse_folder(address: &DeviceAddress) -> Result<(), Failure> {
    let ends = |file: &&Path| file.as_os_str().as_encoded_bytes().ends_with(b"/");
    match address.file().filter(ends) {
        Some(file) => {
            let why = "it ends with '/', as the name of a folder. Name a file in it.";
            Err(table::path_means_no_file(file.display(), why).into())
        }
        None => Ok(()),
    }
}

/// The same for devices of any number of media sets: each of these may be of another class.
pub(crate) fn resolve_several(
    session: &mut Session,
    devices: &[DeviceName],
    tags: &Tags,
    store: &Store,
) -> Result<Vec<DeviceAddress>, Failure> {
    let mut addresses = Vec::with_capacity(devices.len());
    for device in devices {
        addresses.extend(resolve(session, std::slice::from_ref(device), tags, store)?);
    }
    Ok(addresses)
}

/// Resolves devices without an effect.
pub(crate) fn addresses(
    session: &Session,
    devices: &[DeviceName],
    tags: &Tags,
    store: &Store,
) -> Result<Vec<DeviceAddress>, Failure> {
    if devices.len() > DEVICES_MAX {
        return Err(table::too_many_devices(DEVICES_MAX).into());
    }
    let mut classes = devices
        .iter()
        .filter(|device| !matches!(device, DeviceName::Logical(_)))
        .map(mem::discriminant);
    let first = classes.next();
    if classes.any(|class| Some(class) != first) {
        return Err(table::device_classes_differ().into());
    }
    let mut addresses = Vec::with_capacity(devices.len());
    for (index, device) in devices.iter().enumerate() {
        let mut named = written(session, device)?;
        if tags.guid.is_some() && named.is_folder() {
            named.path = layout::name_in(&named.path, index + 1, devices.len());
        }
        let Written { path, logical, .. } = &named;
        let expanded = expand(tags, path)?;
        let expanded = match has_tag(path) {
            true => numbered(session, &named, &expanded, &addresses, store)?,
            false => expanded,
        };
        let address = named.address(session, &expanded, logical.as_deref(), store)?;
        addresses.push(address);
    }
    Ok(addresses)
}

/// Numbers stripes whose names come from the same tags: `x.bak`, `x_2.bak`.
fn numbered(
    session: &Session,
    named: &Written,
    expanded: &str,
    earlier: &[DeviceAddress],
    store: &Store,
) -> Result<String, Failure> {
    let mut candidate = expanded.to_owned();
    let mut number = 1;
    loop {
        let address = named.address(session, &candidate, None, store)?;
        if !earlier.iter().any(|known| known.is_same(&address)) {
            return Ok(candidate);
        }
        number += 1;
        let folder = expanded.rfind(['/', '\\']).map_or(0, |at| at + 1);
        let dot = expanded.rfind('.').filter(|dot| *dot > folder);
        let (stem, extension) = expanded.split_at(dot.unwrap_or(expanded.len()));
        candidate = format!("{stem}_{number}{extension}");
    }
}

/// Refuses a URL that names no object, or none that the session may name. Its name tags are not resolved.
pub(crate) fn check_url(session: &Session, written: &str) -> Result<(), Failure> {
    check_url_length(written)?;
    session.instance.drives().check_url(written.trim())?;
    let parsed = ObjectUrl::parse_any(written.trim());
    let parsed = parsed.map_err(|error| table::url_names_no_object(shown(written), error));
    Ok(parsed.map(drop)?)
}

fn check_url_length(url: &str) -> Result<(), Failure> {
    match url.chars().count() > URL_CHARACTERS_MAX {
        true => Err(table::device_name_too_long(URL_CHARACTERS_MAX).into()),
        false => Ok(()),
    }
}

impl Written {
    /// Whether it is a URL that names no object: a backup to it has a layout of its own.
    fn is_folder(&self) -> bool {
        self.is_url && ObjectUrl::parse_any(&self.path).is_ok_and(|url| url.is_folder())
    }

    fn address(
        &self,
        session: &Session,
        path: &str,
        logical: Option<&str>,
        store: &Store,
    ) -> Result<DeviceAddress, Failure> {
        let address = match self.is_url {
            true => {
                session.instance.drives().check_url(path)?;
                object(session, path, store)?
            }
            false => session.instance.drives().disk_device(path)?,
        };
        Ok(match logical {
            Some(logical) => address.with_logical_name(logical),
            None => address,
        })
    }
}

/// How the objects of a statement are reached.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store {
    pub(super) credential: CredentialChoice,
    pub(super) settings: ObjectSettings,
    /// The kind of store that the settings are of, and the option that they came from.
    pub(super) kind: Option<(StoreKind, &'static str)>,
    /// Whether a folder of media may be named instead of an object.
    pub(super) takes_folders: bool,
}

/// The object that a URL names, with the key of its credential or of the environment.
fn object(session: &Session, written: &str, store: &Store) -> Result<DeviceAddress, Failure> {
    // What tags have become is as long as it is.
    check_url_length(written)?;
    let url = match store.takes_folders {
        true => ObjectUrl::parse_any(written),
        false => ObjectUrl::parse(written),
    };
    let url = url.map_err(|error| table::url_names_no_object(shown(written), error))?;
    if let Some((kind, option)) = store.kind.filter(|(kind, _)| *kind != url.kind()) {
        let why = format!("'{}' says nothing of '{url}'", kind.word());
        return Err(table::store_options_invalid(option, why).into());
    }
    let access = credential::access(session, written, &url, &store.credential)?;
    Ok(DeviceAddress::object(
        written,
        url,
        access,
        store.settings.clone(),
    ))
}

/// A name for a message. In a URL that names no object, what stands before an `@` or behind a `?` may be a key.
pub fn shown(name: &str) -> String {
    let has_signature = ["sig=", "X-Amz-", "X-Goog-"]
        .iter()
        .any(|part| name.contains(part));
    if let Some((before, _)) = name.split_once('?').filter(|_| has_signature) {
        return format!("{before}?...");
    }
    match name.split_once("://") {
        Some((scheme, rest)) if is_url(name) && ObjectUrl::parse_any(name).is_err() => {
            let at = rest.rfind('@');
            at.map_or_else(
                || name.to_owned(),
                |at| format!("{scheme}://...{}", &rest[at..]),
            )
        }
        _ => name.to_owned(),
    }
}

/// Whether a name is a URL of any kind: `scheme://...`
pub fn is_url(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    name.trim_start()
        .split_once("://")
        .is_some_and(|(scheme, _)| {
            scheme.len() > 1
                && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(letters)
        })
}

pub(crate) fn expand(tags: &Tags, path: &str) -> Result<String, Failure> {
    tags.expand(path)
        .map_err(|error| table::path_means_no_file(path, format!("{error}.")).into())
}

/// Creates the folders of a device that tags name, accessible to their owner only: those cannot be expected to exist, unlike
/// one that is written out. If that is not there, as at a mount point that is not mounted, opening the device
/// reports it, and so does a dry run.
fn prepare(session: &Session, path: &str, device: &DeviceAddress) -> Result<(), Failure> {
    let Some(file) = device.file() else {
        return Ok(());
    };
    let is_there = |fixed: &str| -> Result<bool, Failure> {
        let fixed = match fixed {
            "" => None,
            fixed => session
                .instance
                .drives()
                .disk_device(fixed)?
                .file()
                .map(Path::to_owned),
        };
        Ok(session.makes_folders() || fixed.is_none_or(|fixed| fixed.is_dir()))
    };
    match folder_before_tags(path) {
        Some(fixed) if is_there(fixed)? => match session.is_rehearsal() {
            true => Ok(()),
            false => windlass_io::directory::create(&windlass_io::directory::parent(file))
                .map(|_| ())
                .map_err(|error| table::cannot_open_device(&device.name, os_error(&error)).into()),
        },
        _ if session.is_rehearsal() => Ok(device.check_folder().map_err(PipelineError::from)?),
        _ => Ok(()),
    }
}

/// A file name as written, tags not expanded.
struct Written {
    path: String,
    logical: Option<String>,
    is_url: bool,
}

/// Closes the session's connection to a device that is a database: opening and closing the file
/// elsewhere in this process would drop SQLite's locks.
fn release(session: &mut Session, addresses: &[DeviceAddress]) -> Result<(), Failure> {
    for file in addresses.iter().filter_map(DeviceAddress::file) {
        let path = absolute(file).unwrap_or_else(|_| file.to_owned());
        if session.queries.is_in_transaction() && session.queries.holds(&path) {
            return Err(table::within_transaction().into());
        }
        session.queries.release(&path);
    }
    Ok(())
}

/// Whether any of the devices is a URL.
pub(super) fn has_url(session: &Session, devices: &[DeviceName]) -> Result<bool, Failure> {
    for device in devices {
        let is_url = match device {
            DeviceName::Logical(name) => logical(session, name)?.is_url,
            other => matches!(other, DeviceName::Url(_)),
        };
        if is_url {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The file or object of a logical device.
fn logical(session: &Session, name: &str) -> Result<Written, Failure> {
    let device = session
        .instance
        .catalog()
        .backup_device(name)?
        .ok_or_else(|| Failure::from(table::device_not_found(name)))?;
    Ok(Written {
        is_url: is_url(&device.physical_name),
        path: device.physical_name,
        logical: Some(device.name),
    })
}

fn written(session: &Session, device: &DeviceName) -> Result<Written, Failure> {
    match device {
        DeviceName::Logical(name) => logical(session, name),
        DeviceName::Disk(path) => {
            if path.trim().is_empty() {
                return Err(table::zero_length_device().into());
            }
            if path.chars().count() > NAME_CHARACTERS_MAX && !path.starts_with('/') {
                return Err(table::device_name_too_long(NAME_CHARACTERS_MAX).into());
            }
            Ok(Written {
                path: path.clone(),
                logical: None,
                is_url: false,
            })
        }
        DeviceName::Url(url) => {
            if url.trim().is_empty() {
                return Err(table::zero_length_device().into());
            }
            check_url_length(url)?;
            Ok(Written {
                path: url.trim().to_owned(),
                logical: None,
                is_url: true,
            })
        }
        DeviceName::Tape => Err(table::tape_not_supported().into()),
        DeviceName::VirtualDevice => Err(table::virtual_device_not_supported().into()),
    }
}
