//! Reads a media family from a file on disk.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::FlockOperation;
use windlass_io::{Access, DirectFile};

use crate::error::{Error, Operation};
use crate::{DeviceReader, lock};

/// Reads a disk file. Holds a shared lock, so that no backup overwrites it in the meantime.
#[derive(Debug)]
pub(crate) struct DiskReader {
    file: Arc<DirectFile>,
    name: String,
    len: u64,
}

impl DiskReader {
    pub(crate) fn open(path: &Path, name: &str) -> Result<Self, Error> {
        let fail = |error: io::Error| Error::new(Operation::Open, name, error);
        let file = DirectFile::open(path, Access::Read).map_err(fail)?;
        lock(&file, FlockOperation::NonBlockingLockShared).map_err(fail)?;
        let len = file.len().map_err(fail)?;
        Ok(Self {
            file: Arc::new(file),
            name: name.to_owned(),
            len,
        })
    }
}

impl DeviceReader for DiskReader {
    fn len(&self) -> u64 {
        self.len
    }

    fn file(&self) -> Option<&Arc<DirectFile>> {
        Some(&self.file)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Error> {
        self.file
            .read_at(buffer, offset)
            .map_err(|error| Error::new(Operation::Read, &self.name, error))
    }
}
