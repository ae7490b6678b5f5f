//! Reads a media family from a file on disk.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FlockOperation, SeekFrom, seek};
use rustix::io::Errno;
use windlass_io::{Access, DirectFile};

use crate::error::{Error, Operation};
use crate::{DeviceReader, lock};

/// Reads a disk file. Holds a shared lock, if asked to, so that no backup overwrites it in the meantime.
#[derive(Debug)]
pub(crate) struct DiskReader {
    file: Arc<DirectFile>,
    name: String,
    len: u64,
}

impl DiskReader {
    pub(crate) fn open(path: &Path, name: &str, locks: bool) -> Result<Self, Error> {
        let fail = |error: io::Error| Error::new(Operation::Open, name, error);
        let file = DirectFile::open(path, Access::Read).map_err(fail)?;
        if locks {
            lock(&file, FlockOperation::NonBlockingLockShared).map_err(fail)?;
        }
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

    fn holes(&self) -> Result<Vec<Range<u64>>, Error> {
        let found = holes_of(self.file.as_file(), self.len);
        found.map_err(|error| Error::new(Operation::Read, &self.name, error.into()))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Error> {
        self.file
            .read_at(buffer, offset)
            .map_err(|error| Error::new(Operation::Read, &self.name, error))
    }
}

/// The holes before `len`. The file system may report none although there are some.
fn holes_of(file: &File, len: u64) -> Result<Vec<Range<u64>>, Errno> {
    let mut holes = Vec::new();
    let mut at = 0;
    while at < len {
        let start = match seek(file, SeekFrom::Hole(at)) {
            Ok(start) if start < len => start,
            Ok(_) | Err(Errno::INVAL | Errno::NXIO) => break,
            Err(error) => return Err(error),
        };
        at = match seek(file, SeekFrom::Data(start)) {
            Ok(data) => data.min(len),
            Err(Errno::NXIO) => len,
            Err(error) => return Err(error),
        };
        holes.push(start..at);
    }
    Ok(holes)
}
