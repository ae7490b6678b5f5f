//! Device names, and how devices are opened.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::disk_read::DiskReader;
use crate::disk_write::DiskWriter;
use crate::error::{Error, Operation};
use crate::folder::DeviceFolder;
use crate::nul::NulWriter;
use crate::object::{
    Access, LockMode, Locked, ObjectAddress, ObjectReader, ObjectSettings, ObjectUrl, ObjectWriter,
    SideAddress,
};
use crate::{DeviceReader, DeviceWriter, Start, WriteTuning};

/// What holds the bytes of a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Storage {
    File(PathBuf),
    /// Discards what is written, but counts it: `DISK = 'NUL'`.
    Nul,
    /// `URL = 's3://...'`
    Object(Box<ObjectAddress>),
}

/// A device as named in a statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeviceAddress {
    pub(crate) storage: Storage,
    /// The name as the user wrote it, for messages.
    pub name: String,
    /// The logical name used in the statement.
    pub logical: Option<String>,
    /// Whether it is read without keeping backups from writing to it.
    reads_beside_writers: bool,
}

impl DeviceAddress {
    pub fn disk(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self::named(path.display().to_string(), path)
    }

    /// A file that the user wrote as `name`.
    pub fn named(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            storage: Storage::File(path.into()),
            name: name.into(),
            logical: None,
            reads_beside_writers: false,
        }
    }

    /// An object that the user wrote as `name`. Without access, opening it reports that.
    pub fn object(
        name: impl Into<String>,
        url: ObjectUrl,
        access: Option<Access>,
        settings: ObjectSettings,
    ) -> Self {
        Self {
            storage: Storage::Object(Box::new(ObjectAddress::new(url, access, settings))),
            name: name.into(),
            logical: None,
            reads_beside_writers: false,
        }
    }

    /// An object of a listing.
    pub(crate) fn of_object(object: ObjectAddress) -> Self {
        Self {
            name: object.url.to_string(),
            storage: Storage::Object(Box::new(object)),
            logical: None,
            reads_beside_writers: false,
        }
    }

    /// Whether it is an object of a store, which appears when it is complete and is never appended to.
    pub fn is_object(&self) -> bool {
        matches!(self.storage, Storage::Object(_))
    }

    /// The device that discards everything.
    pub fn nul() -> Self {
        Self {
            storage: Storage::Nul,
            name: "NUL".to_owned(),
            logical: None,
            reads_beside_writers: false,
        }
    }

    /// The device that `written` names if it does not name a file.
    pub fn special(written: &str) -> Option<Self> {
        let is_nul = written.trim().eq_ignore_ascii_case("NUL");
        is_nul.then(Self::nul)
    }

    /// The same device under a logical name, and as SQL Server names it in messages then.
    #[must_use]
    pub fn with_logical_name(self, logical: &str) -> Self {
        Self {
            name: format!("{logical}({})", self.name),
            logical: Some(logical.to_owned()),
            ..self
        }
    }

    /// The same device, read while backups may write to it: an append leaves what it has as it is.
    #[must_use]
    pub fn beside_writers(self) -> Self {
        Self {
            reads_beside_writers: true,
            ..self
        }
    }

    /// The same device; an object is asked for with the patience of a run, not as at its beginning: a store that is busy
    /// for some seconds has it all the same.
    #[must_use]
    pub fn patiently(self) -> Self {
        let storage = match self.storage {
            Storage::Object(object) => Storage::Object(Box::new(object.patiently())),
            storage @ (Storage::File(_) | Storage::Nul) => storage,
        };
        Self { storage, ..self }
    }

    /// The path of a device that is a file; `None` for all others.
    pub fn file(&self) -> Option<&Path> {
        match &self.storage {
            Storage::File(path) => Some(path),
            Storage::Nul | Storage::Object(_) => None,
        }
    }

    /// The URL of a device that is an object.
    pub fn url(&self) -> Option<&ObjectUrl> {
        match &self.storage {
            Storage::Object(object) => Some(&object.url),
            Storage::File(_) | Storage::Nul => None,
        }
    }

    /// The folder that a name means if it names no device: a folder of files, a URL that ends in a slash, or one
    /// below which there are objects.
    ///
    /// # Errors
    /// If a store cannot be asked.
    pub fn folder(&self) -> Result<Option<DeviceFolder>, Error> {
        match &self.storage {
            Storage::File(path) => Ok(path.is_dir().then(|| DeviceFolder::disk(path))),
            Storage::Nul => Ok(None),
            Storage::Object(object) if object.listed_state().is_some() => Ok(None),
            Storage::Object(object) => {
                let folder = object.as_folder();
                let is_folder = object.url.is_folder()
                    || object
                        .found()
                        .and_then(|found| Ok(found.is_none() && folder.has_any()?))
                        .map_err(|error| Error::new(Operation::Open, &self.name, error))?;
                Ok(is_folder.then(|| DeviceFolder::of_objects(folder)))
            }
        }
    }

    /// The length of a device that is a file or an object and can be examined.
    pub fn length(&self) -> Option<u64> {
        match &self.storage {
            Storage::File(path) => {
                let found = std::fs::metadata(path).ok()?;
                found.is_file().then_some(found.len())
            }
            Storage::Nul => None,
            Storage::Object(object) => Some(object.found().ok()??.bytes),
        }
    }

    /// The first bytes of a file or an object, at most `bytes`; none if they cannot be read, which opening it reports. An
    /// object is opened once, for these and for the next reader.
    pub fn begin(&self, bytes: usize) -> Vec<u8> {
        match &self.storage {
            Storage::File(path) => {
                let mut begin = Vec::with_capacity(bytes);
                let file = windlass_io::open_readable(path);
                let read = file.and_then(|file| file.take(bytes as u64).read_to_end(&mut begin));
                read.map_or_else(|_| Vec::new(), |_| begin)
            }
            Storage::Nul => Vec::new(),
            Storage::Object(object) => object.begin(bytes),
        }
    }

    /// A text of one line for an object, which differs if another takes its place; `None` for other devices, and
    /// without an object.
    pub fn object_state(&self) -> Option<String> {
        match &self.storage {
            Storage::Object(object) => Some(object.found().ok()??.state()),
            Storage::File(_) | Storage::Nul => None,
        }
    }

    /// The same, of an object of a listing as it was listed; asks nobody.
    pub fn listed_state(&self) -> Option<String> {
        match &self.storage {
            Storage::Object(object) => object.listed_state(),
            Storage::File(_) | Storage::Nul => None,
        }
    }

    /// The object beside this one whose key is longer by `end`; `None` for devices that are no objects.
    pub fn side_object(&self, end: &str) -> Option<SideAddress> {
        match &self.storage {
            Storage::Object(object) => Some(object.beside(end)),
            Storage::File(_) | Storage::Nul => None,
        }
    }

    /// The device with the object that it has now: what is written to it then replaces that one and no other. `None` if it
    /// has none. Writers of files find out themselves what they replace.
    ///
    /// # Errors
    /// If it cannot be examined.
    pub fn as_found(&self) -> Result<Option<Self>, Error> {
        let Storage::Object(object) = &self.storage else {
            return Ok(self.has_content()?.then(|| self.clone()));
        };
        let found = object.as_found();
        let found = found.map_err(|error| Error::new(Operation::Open, &self.name, error))?;
        Ok(found.map(|object| Self {
            storage: Storage::Object(Box::new(object)),
            ..self.clone()
        }))
    }

    /// Whether it is an object whose key may only write it, so that it cannot be read back.
    pub fn is_write_only(&self) -> bool {
        matches!(&self.storage, Storage::Object(object) if object.is_write_only())
    }

    /// Parts of an object that are on their way at a time, if that is said.
    pub fn concurrency(&self) -> Option<usize> {
        match &self.storage {
            Storage::Object(object) => object.concurrency(),
            Storage::File(_) | Storage::Nul => None,
        }
    }

    /// The lock of an object that keeps it from being deleted now; `None` also if the key may not know that.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub fn locked(&self) -> std::io::Result<Option<Locked>> {
        match &self.storage {
            Storage::Object(object) => object.locked(),
            Storage::File(_) | Storage::Nul => Ok(None),
        }
    }

    /// Keeps an object until a time, in seconds since 1970; nothing for other devices.
    ///
    /// # Errors
    /// What the store says.
    pub fn retain(&self, mode: LockMode, until: i64) -> std::io::Result<()> {
        match &self.storage {
            Storage::Object(object) => object.retain(mode, until),
            Storage::File(_) | Storage::Nul => Ok(()),
        }
    }

    /// Whether the device discards what is written to it.
    pub fn discards(&self) -> bool {
        match self.storage {
            Storage::File(_) | Storage::Object(_) => false,
            Storage::Nul => true,
        }
    }

    /// What the device is part of: the file system of a file, or of its folder; the store of an object; one
    /// number for all that discard.
    /// `None` if that cannot be found out.
    pub fn volume(&self) -> Option<u64> {
        use std::os::unix::fs::MetadataExt as _;
        let path = match &self.storage {
            Storage::File(path) => path,
            Storage::Nul => return Some(u64::MAX),
            Storage::Object(object) => {
                let mut hasher = DefaultHasher::new();
                object.url.store().hash(&mut hasher);
                return Some(hasher.finish());
            }
        };
        let found = std::fs::metadata(path);
        let found = found.or_else(|_| std::fs::metadata(windlass_io::directory::parent(path)));
        found.ok().map(|found| found.dev())
    }

    /// Whether both hold the same bytes, as written: links are not resolved. What discards holds none.
    pub fn is_same(&self, other: &Self) -> bool {
        !self.discards() && self.storage == other.storage
    }

    /// Opens the device for writing.
    ///
    /// # Errors
    /// If the device cannot be opened or another backup is writing to it.
    pub fn open_writer(
        &self,
        start: Start,
        tuning: WriteTuning,
    ) -> Result<Box<dyn DeviceWriter>, Error> {
        match &self.storage {
            Storage::File(path) => {
                let writer = DiskWriter::open(path, &self.name, start, tuning)?;
                Ok(Box::new(writer))
            }
            Storage::Nul => Ok(Box::new(NulWriter::default())),
            Storage::Object(object) => {
                let writer = ObjectWriter::open(object, &self.name, start, tuning)?;
                Ok(Box::new(writer))
            }
        }
    }

    /// Opens the device for reading.
    ///
    /// # Errors
    /// If it does not exist, cannot be opened, or is being written.
    pub fn open_reader(&self) -> Result<Box<dyn DeviceReader>, Error> {
        match &self.storage {
            Storage::File(path) => {
                let locks = !self.reads_beside_writers;
                Ok(Box::new(DiskReader::open(path, &self.name, locks)?))
            }
            Storage::Object(object) => Ok(Box::new(ObjectReader::open(object, &self.name)?)),
            Storage::Nul => {
                let kind = std::io::ErrorKind::NotFound;
                let nothing = std::io::Error::new(kind, "nothing is ever stored in it");
                Err(Error::new(Operation::Open, &self.name, nothing))
            }
        }
    }

    /// Refuses a file whose name cannot be given to another one, so that it cannot be overwritten.
    ///
    /// # Errors
    /// What is in the way.
    pub fn check_replaceable(&self) -> Result<(), Error> {
        let Some(Ok(target)) = self.file().map(windlass_io::directory::follow) else {
            // Opening it reports what is wrong.
            return Ok(());
        };
        let checked = crate::naming::refuse_fixed(&target);
        checked.map_err(|error| Error::new(Operation::Open, &self.name, error))
    }

    /// Refuses a file in whose folder no file can be made.
    ///
    /// # Errors
    /// The reason, as opening it for writing would have it.
    pub fn check_folder(&self) -> Result<(), Error> {
        use rustix::fs::Access;
        let Some(folder) = self.file().map(windlass_io::directory::parent) else {
            return Ok(());
        };
        let checked = rustix::fs::access(&folder, Access::WRITE_OK | Access::EXEC_OK);
        checked.map_err(|error| Error::new(Operation::Open, &self.name, error.into()))
    }

    /// Whether the device has content: a file that exists and is not empty, or an object.
    pub fn has_content(&self) -> Result<bool, Error> {
        if let Storage::Object(object) = &self.storage {
            let found = object.found();
            let found = found.map_err(|error| Error::new(Operation::Open, &self.name, error))?;
            return Ok(found.is_some());
        }
        let Some(path) = self.file() else {
            return Ok(false);
        };
        match std::fs::metadata(path) {
            Ok(metadata) => Ok(metadata.len() > 0 || !metadata.is_file()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::new(Operation::Open, &self.name, error)),
        }
    }
}

impl fmt::Display for DeviceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
