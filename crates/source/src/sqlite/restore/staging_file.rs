//! The file in which a database is assembled, next to its target.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};

use windlass_base::Guid;
use windlass_io::{DirectFile, directory, own, succession};

use super::super::identity::FileIdentity;
use super::super::{beside, descriptors, file_error};
use super::{content, remove_file, state};
use crate::{Error, ownership};

/// The unit in which file systems count allocated space.
const BLOCK_BYTES: u64 = 512;

pub(super) fn staging_path(target: &Path) -> PathBuf {
    beside(target, ".windlass-restoring")
}

/// The exclusive right to create the staging file of a target.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    target: &'a Path,
    path: PathBuf,
    /// The file of an earlier restore, or an empty file, until it is used. It is never written.
    held: Option<File>,
    is_new: bool,
}

impl<'a> Claim<'a> {
    pub(super) fn new(target: &'a Path) -> Result<Self, Error> {
        let path = staging_path(target);
        let fail = |error| held_error("create", target, &path, error);
        let earlier = own::hold_existing(&path).map_err(fail)?;
        let is_new = earlier.is_none();
        let file = match earlier {
            Some(file) => file,
            None => own::claim(&path).map_err(fail)?.into_file(),
        };
        Ok(Self {
            target,
            path,
            held: Some(file),
            is_new,
        })
    }

    /// Creates a staging file of `size_bytes`, all zero, with reserved space. Removes the file of
    /// an earlier restore.
    pub(super) fn create(mut self, size_bytes: u64) -> Result<StagingFile, Error> {
        let metadata = self.held.as_ref().and_then(|held| held.metadata().ok());
        let freed_bytes = metadata.map_or(0, |metadata| metadata.blocks() * BLOCK_BYTES);
        check_space(self.target, size_bytes.saturating_sub(freed_bytes))?;
        state::remove(self.target)?;
        let file = own::replace_held(&self.path, self.held.take())
            .map_err(|error| held_error("create", self.target, &self.path, error))?;
        let staging = StagingFile {
            target: self.target.to_owned(),
            path: self.path.clone(),
            file,
        };
        if let Err(error) = staging.resize(0, size_bytes) {
            staging.remove()?;
            return Err(error);
        }
        Ok(staging)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.is_new && self.held.is_some() {
            // It is empty and unowned.
            let _left = own::remove(&self.path);
        }
    }
}

/// A staging file in use by this process only.
#[derive(Debug)]
pub(super) struct StagingFile {
    target: PathBuf,
    path: PathBuf,
    file: DirectFile,
}

impl StagingFile {
    /// Opens the staging file left by a restore WITH NORECOVERY.
    pub(super) fn reopen(target: &Path, size_bytes: u64) -> Result<Self, Error> {
        let staging = Self::reopen_any(target)?;
        staging.check_length(size_bytes)?;
        Ok(staging)
    }

    /// The same in whatever length an interrupted log has left it.
    pub(super) fn reopen_any(target: &Path) -> Result<Self, Error> {
        let path = staging_path(target);
        let file = own::reclaim(&path).map_err(|error| held_error("open", target, &path, error))?;
        Ok(Self {
            target: target.to_owned(),
            path,
            file,
        })
    }

    pub(super) fn bytes(&self) -> Result<u64, Error> {
        (self.file.len()).map_err(|error| file_error("examine", &self.path, error))
    }

    /// Changes the length, with new bytes zero, and reserves their space.
    pub(super) fn resize(&self, from: u64, to: u64) -> Result<(), Error> {
        let more = to.saturating_sub(from);
        check_space(&self.target, more)?;
        let resize = || {
            self.file.reserve(from, more)?;
            self.file.set_len(to)
        };
        resize().map_err(|error| self.write_error(error, more))
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let write = self.file.write_at(bytes, offset);
        write.map_err(|error| self.write_error(error, bytes.len() as u64))
    }

    /// Fills `bytes`; whether the file has that many.
    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<bool, Error> {
        match self.file.read_exact_at(bytes, offset) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(file_error("read", &self.path, error)),
        }
    }

    fn write_error(&self, error: io::Error, needed_bytes: u64) -> Error {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::NoSpace {
                path: self.target.clone(),
                needed_bytes,
                available_bytes: directory::free_bytes(&self.path)
                    .ok()
                    .flatten()
                    .unwrap_or(0),
            },
            _ => file_error("write", &self.path, error),
        }
    }

    /// Makes the content durable, and checks its length.
    pub(super) fn sync(&self, size_bytes: u64) -> Result<(), Error> {
        self.file
            .sync()
            .map_err(|error| file_error("sync", &self.path, error))?;
        self.check_length(size_bytes)
    }

    fn check_length(&self, expected: u64) -> Result<(), Error> {
        let found = self.bytes()?;
        if found == expected {
            Ok(())
        } else {
            Err(Error::WrongLength {
                path: self.path.clone(),
                found,
                expected,
            })
        }
    }

    /// Refuses a staging file that is not a database, unless that is allowed.
    pub(super) fn check_content(&self, target: &Path, as_is: bool) -> Result<(), Error> {
        match content::defect(&self.file, &self.path)?.filter(|_| !as_is) {
            None => Ok(()),
            Some(defect) => Err(Error::NotADatabase {
                path: target.to_owned(),
                defect,
            }),
        }
    }

    /// Gives the staging file the identity, and the permissions and owner of the file it replaces;
    /// `mode` are the permissions recorded in the backup.
    pub(super) fn set_attributes(
        &self,
        identity: FileIdentity,
        replaced: Option<&Metadata>,
        mode: Option<u16>,
        made_for: Guid,
    ) -> Result<(), Error> {
        let file = self.file.as_file();
        let set_attributes = || {
            match replaced {
                Some(replaced) => windlass_io::output::keep(file, replaced)?,
                None => {
                    let mode = windlass_io::output::mode_for_new(mode);
                    file.set_permissions(PermissionsExt::from_mode(mode))?;
                }
            }
            identity.record(file)?;
            if made_for != Guid::NIL {
                ownership::mark(&self.path, made_for)?;
            }
            self.file.sync()
        };
        set_attributes().map_err(|error| file_error("set the attributes of", &self.path, error))
    }

    /// Renames the staging file to the target's name in one step, over `replaced` or over none. It is held
    /// until then, so that no other restore takes its place.
    pub(super) fn publish(self, replaced: Option<&Metadata>) -> Result<(), Error> {
        let Self { target, path, file } = self;
        let renamed = match replaced {
            Some(replaced) => succession::check(&target, Some(replaced.ino()))
                .and_then(|()| own::replace_name(file.as_file(), &path, &target)),
            None => own::take_name(file.as_file(), &path, &target),
        };
        let unlocked = file.unlock_exclusive();
        descriptors::keep(file);
        renamed.and(unlocked).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::TargetExists {
                path: target.clone(),
            },
            _ => file_error("replace", &target, error),
        })
    }

    /// Closes the staging file and removes it.
    pub(super) fn remove(self) -> Result<(), Error> {
        remove_file(&self.path)
    }
}

/// Locks the staging file of a restore that waits or was killed, if there is one.
pub(super) fn hold(target: &Path) -> Result<Option<File>, Error> {
    let path = staging_path(target);
    own::hold_existing(&path).map_err(|error| held_error("open", target, &path, error))
}

/// Removes an unused staging file.
pub(super) fn remove_stale(target: &Path) -> Result<(), Error> {
    let path = staging_path(target);
    own::remove_unheld(&path).map_err(|error| held_error("remove", target, &path, error))
}

fn held_error(action: &'static str, target: &Path, path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => Error::RestoreRunning {
            path: target.to_owned(),
        },
        _ => file_error(action, path, error),
    }
}

fn check_space(target: &Path, needed_bytes: u64) -> Result<(), Error> {
    let folder = directory::parent(target);
    let available_bytes =
        directory::free_bytes(&folder).map_err(|error| file_error("examine", &folder, error))?;
    match available_bytes.filter(|available| needed_bytes > *available) {
        None => Ok(()),
        Some(available_bytes) => Err(Error::NoSpace {
            path: target.to_owned(),
            needed_bytes,
            available_bytes,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_or_quota_is_told_with_what_was_needed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.db");
        let staging = Claim::new(&target).unwrap().create(4096).unwrap();
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            let error = staging.write_error(kind.into(), 777);
            let is_space = matches!(&error, Error::NoSpace { path, needed_bytes: 777, .. }
                if *path == target);
            assert!(is_space, "{error}");
        }
        let error = staging.write_error(io::ErrorKind::TimedOut.into(), 777);
        assert!(
            matches!(
                error,
                Error::Io {
                    action: "write",
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn only_the_file_that_was_written_gets_the_name() {
        for is_replacing in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("a.db");
            let staging = Claim::new(&target).unwrap().create(4096).unwrap();
            let path = staging_path(&target);
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, "of another restore").unwrap();
            if is_replacing {
                std::fs::write(&target, "old").unwrap();
            }
            let replaced = std::fs::metadata(&target).ok();
            assert!(staging.publish(replaced.as_ref()).is_err());
            assert_eq!(std::fs::read(&path).unwrap(), b"of another restore");
            assert_eq!(target.exists(), is_replacing);
        }
    }

    #[test]
    fn a_name_that_somebody_took_in_the_last_moment_stays_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.db");
        let staging = Claim::new(&target).unwrap().create(4096).unwrap();
        std::fs::write(&target, "theirs").unwrap();
        let error = staging.publish(None).unwrap_err();
        assert!(matches!(error, Error::TargetExists { .. }), "{error}");
        assert_eq!(std::fs::read(&target).unwrap(), b"theirs");
    }

    #[test]
    fn a_file_that_took_the_place_of_the_replaced_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.db");
        std::fs::write(&target, "old").unwrap();
        let replaced = std::fs::metadata(&target).unwrap();
        let staging = Claim::new(&target).unwrap().create(4096).unwrap();
        let theirs = folder.path().join("theirs");
        std::fs::write(&theirs, "theirs").unwrap();
        std::fs::rename(&theirs, &target).unwrap();
        let error = staging.publish(Some(&replaced)).unwrap_err();
        assert!(matches!(error, Error::TargetExists { .. }), "{error}");
        assert_eq!(std::fs::read(&target).unwrap(), b"theirs");
    }
}
