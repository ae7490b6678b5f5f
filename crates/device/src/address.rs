//! Device names, and how devices are opened.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::disk_read::DiskReader;
use crate::disk_write::DiskWriter;
use crate::error::{Error, Operation};
use crate::nul::NulWriter;
use crate::{DeviceReader, DeviceWriter, Start, WriteTuning};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// A file on disk.
    Disk,
    /// Discards what is written, but counts it: `DISK = 'NUL'`.
    Nul,
}

/// A device as named in a statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeviceAddress {
    pub kind: DeviceKind,
    /// The name as the user wrote it, for messages.
    pub name: String,
    /// Empty for [`DeviceKind::Nul`].
    pub path: PathBuf,
    /// The logical name used in the statement.
    pub logical: Option<String>,
}

impl DeviceAddress {
    pub fn disk(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            kind: DeviceKind::Disk,
            name: path.display().to_string(),
            path,
            logical: None,
        }
    }

    /// The device that discards everything.
    pub fn nul() -> Self {
        Self {
            kind: DeviceKind::Nul,
            name: "NUL".to_owned(),
            path: PathBuf::new(),
            logical: None,
        }
    }

    /// The path of a device that is a file; `None` for all others.
    pub fn file(&self) -> Option<&Path> {
        match self.kind {
            DeviceKind::Disk => Some(&self.path),
            DeviceKind::Nul => None,
        }
    }

    /// Whether the device discards what is written to it.
    pub fn discards(&self) -> bool {
        match self.kind {
            DeviceKind::Disk => false,
            DeviceKind::Nul => true,
        }
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
        match self.kind {
            DeviceKind::Disk => Ok(Box::new(DiskWriter::open(self, start, tuning)?)),
            DeviceKind::Nul => Ok(Box::new(NulWriter::default())),
        }
    }

    /// Opens the device for reading.
    ///
    /// # Errors
    /// If it does not exist, cannot be opened, or is being written.
    pub fn open_reader(&self) -> Result<Box<dyn DeviceReader>, Error> {
        match self.kind {
            DeviceKind::Disk => Ok(Box::new(DiskReader::open(self)?)),
            DeviceKind::Nul => {
                let nothing = std::io::Error::from(std::io::ErrorKind::NotFound);
                Err(Error::new(Operation::Open, &self.name, nothing))
            }
        }
    }

    /// Whether the device has content: a file that exists and is not empty.
    pub fn has_content(&self) -> Result<bool, Error> {
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
