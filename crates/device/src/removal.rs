//! Deletes a medium that nobody uses, and no other that has got its name.
//!
//! Whoever decides that a medium may go reads it first. A backup that overwrites it meanwhile gives its name to a new
//! file, which must stay. So the medium is held before it is read, and goes only if the name is still its own.

use std::io;

use rustix::fs::FlockOperation;
use windlass_io::{Access, DirectFile, FileIdentity, directory};

use crate::address::{DeviceAddress, Storage};
use crate::{Removed, lock};

/// A medium that may be deleted. Others can read it; a file cannot be written by a backup.
#[derive(Debug)]
pub struct Held<'a> {
    device: &'a DeviceAddress,
    /// `None` for devices that are no files.
    file: Option<DirectFile>,
}

impl DeviceAddress {
    /// Holds the medium, to decide whether it goes.
    ///
    /// # Errors
    /// `WouldBlock` if a backup is writing to it; those of the operating system.
    pub fn hold(&self) -> io::Result<Held<'_>> {
        let file = match &self.storage {
            Storage::File(path) => {
                let file = DirectFile::open(path, Access::Read)?;
                lock(&file, FlockOperation::NonBlockingLockShared)?;
                Some(file)
            }
            Storage::Nul | Storage::Object(_) => None,
        };
        Ok(Held { device: self, file })
    }
}

impl Held<'_> {
    /// Deletes the file or object; an object of a listing only if it is still the same. One that is locked stays: in a
    /// bucket with versions the store would only hide it.
    ///
    /// # Errors
    /// If another file has its name, if it is in use, or locked by the store; those of the operating system and the
    /// store.
    pub fn remove(self) -> io::Result<Removed> {
        match (&self.device.storage, &self.file) {
            (Storage::File(path), Some(file)) => {
                // Whoever overwrites or appends to it holds it too.
                lock(file, FlockOperation::NonBlockingLockExclusive)?;
                let held = FileIdentity::of(&file.as_file().metadata()?);
                if FileIdentity::of(&std::fs::metadata(path)?) != held {
                    let reason = "another file has got its name meanwhile, and was not deleted";
                    return Err(io::Error::other(reason));
                }
                std::fs::remove_file(path)?;
                directory::sync(&directory::parent(path))?;
                Ok(Removed::Gone)
            }
            (Storage::Object(object), _) => {
                object.refuse_locked()?;
                object.delete()
            }
            (Storage::File(_) | Storage::Nul, _) => Ok(Removed::Gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TUNING, write};
    use crate::{DeviceWriter, Start};

    fn overwrite(device: &DeviceAddress, content: &[u8]) -> Box<dyn DeviceWriter> {
        write(device, Start::Replace, content)
    }

    #[test]
    fn a_medium_that_is_being_overwritten_stays_and_so_does_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let device = DeviceAddress::disk(folder.path().join("a.bak"));
        overwrite(&device, b"old").commit().unwrap();
        // The decision is made while a backup is on its way, or before it ends.
        let writer = overwrite(&device, b"new");
        let error = device.hold().unwrap().remove().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
        let held = device.hold().unwrap();
        writer.commit().unwrap();
        assert!(held.remove().is_err());
        let content = || std::fs::read(device.file().unwrap());
        assert_eq!(content().unwrap(), b"new");
        device.hold().unwrap().remove().unwrap();
        assert!(content().is_err());
    }

    #[test]
    fn a_medium_that_goes_is_not_overwritten_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let device = DeviceAddress::disk(folder.path().join("a.bak"));
        overwrite(&device, b"old").commit().unwrap();
        let held = device.hold().unwrap();
        assert!(device.open_writer(Start::Replace, TUNING).is_err());
        assert!(
            device
                .open_writer(Start::Append { at: 3, length: 3 }, TUNING)
                .is_err()
        );
        held.remove().unwrap();
        overwrite(&device, b"new").commit().unwrap();
    }
}
