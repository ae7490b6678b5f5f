//! The files of an offline database as the target of a restore from Windlass media.

use std::collections::BTreeMap;

use windlass_bak::Target as _;
use windlass_bak::page::EXTENT_BYTES;
use windlass_source::{Recovery, RestoreTarget};

use super::OfflineFile;
use crate::Error;
use crate::target::FileTarget;

/// Files under temporary names, until all are whole.
#[derive(Debug)]
pub struct OfflineTarget {
    target: FileTarget,
    bytes: BTreeMap<u16, u64>,
}

impl OfflineTarget {
    /// Creates the files. New files get `mode` less the umask.
    ///
    /// # Errors
    /// A file exists and is not to be replaced, or cannot be created.
    pub fn begin(files: &[OfflineFile], replace: bool, mode: u16) -> Result<Self, Error> {
        let paths = files.iter().map(|file| (file.id, file.path.clone()));
        let mut target = FileTarget::create(paths.collect(), replace, mode)?;
        // The length is that of the original; what is not written is a hole.
        for file in files {
            let set = target.set_length(file.id, file.bytes);
            set.map_err(|error| Error::target(&file.path, error))?;
        }
        Ok(Self {
            target,
            bytes: files.iter().map(|file| (file.id, file.bytes)).collect(),
        })
    }

    /// Gives the files their names.
    ///
    /// # Errors
    /// They cannot be synced or renamed.
    pub fn keep(self) -> Result<(), Error> {
        self.target.keep()
    }
}

impl RestoreTarget for OfflineTarget {
    fn write(&self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), windlass_source::Error> {
        let length = self.bytes.get(&file_id).copied().unwrap_or(0);
        let end = offset.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > length) {
            return Err(windlass_source::Error::OutOfRange {
                file_id,
                offset,
                bytes: bytes.len() as u64,
                size_bytes: length,
            });
        }
        // Zeros are there already, and take no space as a hole.
        for (at, part) in (offset..)
            .step_by(EXTENT_BYTES)
            .zip(bytes.chunks(EXTENT_BYTES))
        {
            if part.iter().all(|byte| *byte == 0) {
                continue;
            }
            let written = self.target.write_at(file_id, at, part);
            written.map_err(|source| windlass_source::Error::Io {
                action: "write",
                path: self.target.path(file_id),
                source,
            })?;
        }
        Ok(())
    }

    /// [`OfflineTarget::keep`] gives the files their names.
    fn finish(self: Box<Self>, _recovery: Recovery) -> Result<(), windlass_source::Error> {
        Ok(())
    }

    fn abandon(self: Box<Self>) -> Result<(), windlass_source::Error> {
        Ok(())
    }
}
