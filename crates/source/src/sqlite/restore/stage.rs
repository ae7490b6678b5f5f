//! The file in which a database is put together, beside its target.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{FlockOperation, Gid, RenameFlags, Uid};
use windlass_io::{Access, DirectFile, directory};

use super::super::descriptors::FileId;
use super::super::identity::FileIdentity;
use super::super::{beside, file_error};
use super::{remove_file, state, users};
use crate::Error;

/// Permissions of a database that replaces none: those that `SQLite` gives, less the umask.
const MODE_NEW: u32 = 0o644;

pub(super) fn stage_path(target: &Path) -> PathBuf {
    beside(target, ".windlass-restoring")
}

/// A stage that this process works on; nobody else does while it is open.
#[derive(Debug)]
pub(super) struct Stage {
    target: PathBuf,
    path: PathBuf,
    file: DirectFile,
}

impl Stage {
    /// Makes a new stage of `size_bytes`, all zero, with its space reserved. One that an earlier
    /// restore left goes.
    pub(super) fn create(target: &Path, size_bytes: u64) -> Result<Self, Error> {
        remove_stale(target)?;
        state::remove(target)?;
        let path = stage_path(target);
        check_space(target, size_bytes)?;
        let stage = Self::open(target, &path, Access::CreateNew)?;
        if let Err(error) = stage.resize(0, size_bytes) {
            stage.remove()?;
            return Err(error);
        }
        Ok(stage)
    }

    /// Opens the stage that a restore WITH NORECOVERY left.
    pub(super) fn reopen(target: &Path, size_bytes: u64) -> Result<Self, Error> {
        let stage = Self::open(target, &stage_path(target), Access::ReadWrite)?;
        stage.check_length(size_bytes)?;
        Ok(stage)
    }

    fn open(target: &Path, path: &Path, access: Access) -> Result<Self, Error> {
        let running = || Error::RestoreRunning {
            path: target.to_owned(),
        };
        let file = DirectFile::open(path, access).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => running(),
            _ => file_error("create", path, error),
        })?;
        lock(&file, path)?.then_some(()).ok_or_else(running)?;
        Ok(Self {
            target: target.to_owned(),
            path: path.to_owned(),
            file,
        })
    }

    /// Changes the length, new octets being zero, and reserves their space.
    pub(super) fn resize(&self, from: u64, to: u64) -> Result<(), Error> {
        let more = to.saturating_sub(from);
        check_space(&self.target, more)?;
        let resize = || {
            self.file.reserve(from, more)?;
            self.file.set_len(to)
        };
        resize().map_err(|error| self.write_error(error, more))
    }

    pub(super) fn write(&self, offset: u64, octets: &[u8]) -> Result<(), Error> {
        let write = self.file.write_at(octets, offset);
        write.map_err(|error| self.write_error(error, octets.len() as u64))
    }

    fn write_error(&self, error: io::Error, needed_bytes: u64) -> Error {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::NoSpace {
                path: self.target.clone(),
                needed_bytes,
                available_bytes: directory::free_bytes(&self.path).unwrap_or(0),
            },
            _ => file_error("write", &self.path, error),
        }
    }

    /// Makes the content durable, and checks that it has the length it should have.
    pub(super) fn sync(&self, size_bytes: u64) -> Result<(), Error> {
        self.file
            .sync()
            .map_err(|error| file_error("sync", &self.path, error))?;
        self.check_length(size_bytes)
    }

    fn check_length(&self, expected: u64) -> Result<(), Error> {
        let found = self
            .file
            .len()
            .map_err(|error| file_error("examine", &self.path, error))?;
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

    /// Gives the stage the identity, and the permissions and owner of the file that it replaces.
    pub(super) fn dress(
        &self,
        identity: FileIdentity,
        replaced: Option<&Metadata>,
    ) -> Result<(), Error> {
        let file = self.file.as_file();
        let mode = replaced.map_or(MODE_NEW & !umask(), Metadata::mode);
        if let Some(replaced) = replaced {
            let (user, group) = (Uid::from_raw(replaced.uid()), Gid::from_raw(replaced.gid()));
            // Only a privileged process can give a file away; the content matters more.
            let _refused = rustix::fs::fchown(file, Some(user), Some(group));
        }
        let dress = || {
            file.set_permissions(PermissionsExt::from_mode(mode & 0o7777))?;
            identity.record(file)?;
            self.file.sync()
        };
        dress().map_err(|error| file_error("set the attributes of", &self.path, error))
    }

    /// Puts the stage under the target's name in one step, and closes it: from then on it is a
    /// database that others lock, and closing a descriptor later would drop their locks.
    pub(super) fn publish(self, is_replacing: bool) -> Result<(), Error> {
        let Self { target, path, file } = self;
        drop(file);
        let renamed = if is_replacing {
            std::fs::rename(&path, &target)
        } else {
            rename_to_free_name(&path, &target)
        };
        renamed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::TargetExists {
                path: target.clone(),
            },
            _ => file_error("replace", &target, error),
        })?;
        let folder = directory::parent(&target);
        directory::sync(&folder).map_err(|error| file_error("sync", &folder, error))
    }

    /// Closes the stage and removes it.
    pub(super) fn remove(self) -> Result<(), Error> {
        remove_file(&self.path)
    }
}

/// Removes a stage that nobody works on any more.
pub(super) fn remove_stale(target: &Path) -> Result<(), Error> {
    let path = stage_path(target);
    match DirectFile::open(&path, Access::ReadWrite) {
        Ok(file) if lock(&file, &path)? => remove_file(&path),
        Ok(_) => Err(Error::RestoreRunning {
            path: target.to_owned(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(file_error("open", &path, error)),
    }
}

/// Whether this process is the only one that works on the stage, and `path` still leads to it.
fn lock(file: &DirectFile, path: &Path) -> Result<bool, Error> {
    let mut looks = users::LOOKS;
    loop {
        match rustix::fs::flock(file.as_file(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            // A process that is being started shares the lock of the one that starts it, for a moment.
            Err(rustix::io::Errno::WOULDBLOCK) if looks > 1 => {
                looks -= 1;
                std::thread::sleep(users::BETWEEN_LOOKS);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
            Err(error) => return Err(file_error("lock", path, error.into())),
        }
    }
    let locked = file
        .as_file()
        .metadata()
        .map_err(|error| file_error("examine", path, error))?;
    Ok(std::fs::metadata(path).is_ok_and(|named| FileId::of(&named) == FileId::of(&locked)))
}

fn rename_to_free_name(from: &Path, to: &Path) -> io::Result<()> {
    let cwd = rustix::fs::CWD;
    match rustix::fs::renameat_with(cwd, from, cwd, to, RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            // A file system that cannot do it in one step.
            if to.exists() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            std::fs::rename(from, to)
        }
        other => other.map_err(Into::into),
    }
}

fn check_space(target: &Path, needed_bytes: u64) -> Result<(), Error> {
    let folder = directory::parent(target);
    let available_bytes =
        directory::free_bytes(&folder).map_err(|error| file_error("examine", &folder, error))?;
    if needed_bytes > available_bytes {
        return Err(Error::NoSpace {
            path: target.to_owned(),
            needed_bytes,
            available_bytes,
        });
    }
    Ok(())
}

/// The permissions that new files of this process do not get. Reading it from the system call means
/// changing it for a moment, under the feet of other threads; the kernel also shows it.
fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        line.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok())
            .unwrap_or(0o022)
    })
}
