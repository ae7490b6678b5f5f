//! Small files with secrets and keys: created for their owner only, never over an existing file,
//! and trusted only if nobody else could read them.
//!
//! A new file is written and synced under a temporary name, and then renamed: neither a full disk nor a
//! crash leaves an incomplete one. The next attempt removes a temporary file that a crash left.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use crate::file::open_regular;
use crate::{directory, output, own};

/// Maximum length read; certificates, keys and passphrases are far shorter.
pub const BYTES_MAX: u64 = 1 << 20;

/// Permission bits of the group and others.
const OTHERS: u32 = 0o077;

/// Keeps the memory of this process, which contains keys, out of core files and inaccessible to
/// debuggers of the same user.
///
/// # Errors
/// If the kernel refuses either.
pub fn keep_memory() -> io::Result<()> {
    use rustix::process::{DumpableBehavior, Resource, Rlimit};
    let maximum = rustix::process::getrlimit(Resource::Core).maximum;
    let none = Rlimit {
        current: Some(0),
        maximum,
    };
    rustix::process::setrlimit(Resource::Core, none)?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Creates a file of mode 0600, whatever the umask, and syncs it.
///
/// # Errors
/// Also if the file exists, because it may contain a key; `WouldBlock` if another process is making it.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_with(path, bytes, |_| Ok(()))
}

/// Creates an empty file of mode 0600 if there is none: for libraries that open a file by name and
/// would create it with the umask's mode.
///
/// # Errors
/// Those of the operating system.
pub fn ensure(path: &Path) -> io::Result<()> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Gives a new file the permissions and owner of the file `like`.
///
/// # Errors
/// Those of the operating system.
pub fn permit_like(file: &File, like: &Path) -> io::Result<()> {
    let like = std::fs::metadata(like)?;
    let made = file.metadata()?;
    if (made.uid(), made.gid()) != (like.uid(), like.gid()) {
        let owner = rustix::fs::Uid::from_raw(like.uid());
        let group = rustix::fs::Gid::from_raw(like.gid());
        // Only root can change owners; otherwise the mode must suffice.
        let _given = rustix::fs::fchown(file, Some(owner), Some(group));
    }
    let mode = like.mode() & 0o666 | 0o600;
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

/// Creates a file without secrets, with the umask's mode, and syncs it.
///
/// # Errors
/// Also if the file exists.
pub fn create_public(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_with(path, bytes, |file| {
        let mode = output::MODE_PUBLIC & !directory::umask();
        file.set_permissions(std::fs::Permissions::from_mode(mode))
    })
}

/// `WouldBlock` means that another process is making the file.
fn create_with(
    path: &Path,
    bytes: &[u8],
    finish: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    if own::is_there(path) {
        return Err(rustix::io::Errno::EXIST.into());
    }
    let unfinished = own::beside(path, own::UNNAMED_SUFFIX);
    let mut file = own::claim_file(&unfinished)?;
    let made = finish(&file)
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| file.sync_all())
        .and_then(|()| own::take_name(&file, &unfinished, path));
    if made.is_err() {
        // Report the first error.
        let _left = own::remove_held(&file, &unfinished);
    }
    made
}

/// Reads a whole file of at most 1 MB.
///
/// # Errors
/// Also if it is longer, or not a regular file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    content(open_regular(path, OpenOptions::new().read(true), OFlags::empty())?.0)
}

/// Reads a file as [`read`] does; `None` if there is none.
///
/// # Errors
/// As [`read`].
pub fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a file as [`read`] does, if it belongs to this user and no other user may read or write it.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`], with advice, otherwise.
pub fn read_private(path: &Path) -> io::Result<Vec<u8>> {
    let file = own::open(path)?;
    let mode = file.metadata()?.mode() & 0o7777;
    if mode & OTHERS != 0 {
        let reason =
            format!("its mode is {mode:04o}, so others may know it; if they do not, chmod 600 it");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    content(file)
}

fn content(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        let reason = "it is too long for a key or a certificate";
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn chmod(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_secret_is_for_its_owner_and_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        create(&path, b"secret").unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(read_private(&path).unwrap(), b"secret");
        assert!(create(&path, b"other").is_err());
        assert_eq!(read(&path).unwrap(), b"secret");
    }

    #[test]
    fn a_file_that_cannot_be_written_whole_leaves_nothing_and_is_made_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let unfinished = own::beside(&path, own::UNNAMED_SUFFIX);
        // What a killed process left.
        std::fs::write(&unfinished, "half").unwrap();
        let full = create_with(&path, b"secret", |_| {
            assert!(!own::is_there(&path), "before it is whole");
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        create(&path, b"secret").unwrap();
        assert_eq!(read_private(&path).unwrap(), b"secret");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_another_process_is_making_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let made = create_with(&path, b"first", |_| {
            let error = create(&path, b"second").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            Ok(())
        });
        made.unwrap();
        assert_eq!(read_private(&path).unwrap(), b"first");
    }

    #[test]
    fn a_secret_that_others_may_know_is_refused_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        create(&path, b"secret").unwrap();
        for others in [0o640, 0o604, 0o620, 0o601] {
            chmod(&path, others);
            let error = read_private(&path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            assert!(error.to_string().contains("chmod 600"), "{error}");
            assert!(read(&path).is_ok());
        }
        chmod(&path, 0o600);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(read_private(&link).is_err());
    }

    #[test]
    fn a_file_takes_the_mode_of_the_one_it_belongs_to() {
        let folder = tempfile::tempdir().unwrap();
        let media = folder.path().join("a.bak");
        create(&media, b"media").unwrap();
        for (number, given) in [0o600, 0o640, 0o644].into_iter().enumerate() {
            chmod(&media, given);
            let path = folder.path().join(number.to_string());
            create(&path, b"keys").unwrap();
            permit_like(&File::open(&path).unwrap(), &media).unwrap();
            assert_eq!(mode(&path), given);
        }
    }

    #[test]
    fn a_fifo_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(read(&path).is_err());
    }
}
