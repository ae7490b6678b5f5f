//! Whose the files are that a program makes in a folder of its own kind: an instance's.
//!
//! An instance is used by its owner alone ([`check_owner`]). What root makes in a folder of somebody else
//! within its own instance belongs to the owner of that folder. A new file is given away through its
//! descriptor after it was created exclusively, so no link is followed. For anybody but root all of this
//! does nothing.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, Gid, Mode, OFlags, Uid};

use crate::{directory, own};

/// Refuses to work in a folder that somebody else writes to: what this user left in it would stop its owner
/// from going on, and what the owner left in it would act with this user's rights. So root is refused, too;
/// who may only read is not.
pub fn check_owner(folder: &Path) -> io::Result<()> {
    let owner = std::fs::metadata(folder)?.uid();
    let user = rustix::process::geteuid().as_raw();
    let may = |access| rustix::fs::accessat(CWD, folder, access, AtFlags::EACCESS).is_ok();
    let only_reads = || may(Access::READ_OK | Access::EXEC_OK) && !may(Access::WRITE_OK);
    if user == owner || only_reads() {
        return Ok(());
    }
    let reason = format!(
        "it belongs to user {owner}, but this program runs as user {user}; run it as its owner"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// Gives a file that was just created to the owner of its folder.
pub fn give(file: &File, path: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (made, folder) = (
        file.metadata()?,
        std::fs::metadata(directory::parent(path))?,
    );
    if (made.uid(), made.gid()) == (folder.uid(), folder.gid()) {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(folder.uid()), Gid::from_raw(folder.gid()));
    Ok(rustix::fs::fchown(file, Some(user), Some(group))?)
}

/// Gives away a file that was just created exclusively, and whose descriptor is out of reach. It is
/// not opened, because closing it would drop the locks of this process.
///
/// # Errors
/// Also if it is not a regular file of this user's with one hard link.
pub fn give_named(path: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW;
    let made = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = made.metadata()?;
    if !metadata.is_file() {
        return Err(own::not_regular(&metadata));
    }
    let folder = std::fs::metadata(directory::parent(path))?;
    if (metadata.uid(), metadata.gid()) == (folder.uid(), folder.gid()) {
        return Ok(());
    }
    own::check(&metadata)?;
    let (user, group) = (Uid::from_raw(folder.uid()), Gid::from_raw(folder.gid()));
    let at = AtFlags::EMPTY_PATH;
    Ok(rustix::fs::chownat(&made, "", Some(user), Some(group), at)?)
}

/// Creates a folder, private to the owner of the folder that it is in, and makes its name durable.
/// Nothing happens if it exists.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(error),
    }
    if rustix::process::geteuid().is_root() {
        let flags = OFlags::NOFOLLOW | OFlags::DIRECTORY;
        let mut options = OpenOptions::new();
        let made = options
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(folder)?;
        // The owner of the folder around it could have put another one in its place.
        if made.metadata()?.uid() == 0 && is_empty(&made)? {
            give(&made, folder)?;
        }
    }
    directory::sync(&directory::parent(folder))
}

fn is_empty(folder: &File) -> io::Result<bool> {
    for entry in rustix::fs::Dir::read_from(folder)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    const SOMEBODY: (u32, u32) = (54_321, 54_322);

    fn owner(path: &Path) -> (u32, u32) {
        let metadata = std::fs::symlink_metadata(path).unwrap();
        (metadata.uid(), metadata.gid())
    }

    /// Only root can give anything away.
    #[test]
    fn what_root_makes_in_a_folder_belongs_to_the_owner_of_the_folder() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        chown(folder.path(), Some(SOMEBODY.0), Some(SOMEBODY.1)).unwrap();
        let inner = folder.path().join("inner");
        create_folder(&inner).unwrap();
        create_folder(&inner).unwrap();
        assert_eq!(owner(&inner), SOMEBODY);
        let path = inner.join("file");
        give(&own::create(&path).unwrap(), &path).unwrap();
        assert_eq!(owner(&path), SOMEBODY);
        let victim = tempfile::NamedTempFile::new().unwrap();
        let link = inner.join("link");
        std::os::unix::fs::symlink(victim.path(), &link).unwrap();
        assert!(give_named(&link).is_err());
        assert_ne!(owner(victim.path()), SOMEBODY);
    }
}
