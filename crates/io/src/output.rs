//! Files written for the user under a name they chose: reports, metrics, tables.
//!
//! A regular file is replaced in one step and keeps its mode and owner; a symbolic link stays, and
//! the file it leads to is written. A FIFO, a terminal or another character device is written to
//! and never replaced. Everything else is refused.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Gid, OFlags, Uid};

use crate::file::{kind_of, open_regular};
use crate::{directory, own};

/// How long to wait for a reader of a FIFO.
const READER_PATIENCE: Duration = Duration::from_secs(10);

/// Polling interval while waiting for one.
const READER_POLL: Duration = Duration::from_millis(20);

/// The usual mode of new files, before the umask.
pub const MODE_PUBLIC: u32 = 0o666;

/// Writes a file for the user. A new file gets `mode`, less the umask.
///
/// # Errors
/// Also for folders, block devices, and a FIFO without a reader.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() && !is_open_descriptor(path) => {
            refuse_data(path)?;
            replace(path, bytes, Some(&found), mode)
        }
        Ok(found) => write_into(path, bytes, &found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace(path, bytes, None, mode),
        Err(error) => Err(error),
    }
}

/// Opens a file for the user to append to, such as a log. A new file gets `mode`, less the umask. A link
/// is followed only if this user or root owns it: another user's link could lead to any file.
///
/// # Errors
/// Also for folders, block devices, links of other users, and a FIFO without a reader.
pub fn append(path: &Path, mode: u32) -> io::Result<File> {
    refuse_link_of_others(path)?;
    if std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        refuse_data(path)?;
    }
    let file = open_for_writing(path, Some(mode))?;
    let kind = file.metadata()?.file_type();
    if !(kind.is_fifo() || kind.is_char_device() || kind.is_file()) {
        let reason = format!("it is {}; name a file", kind_of(&file.metadata()?));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    wait_again(&file)?;
    Ok(file)
}

/// Refuses a symbolic link that neither this user nor root owns: it could lead to any file.
///
/// # Errors
/// `PermissionDenied` for such a link.
pub fn refuse_link_of_others(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(link) if link.is_symlink() => {
            let ours = rustix::process::geteuid().as_raw();
            if link.uid() != ours && link.uid() != 0 && !is_open_descriptor(path) {
                let reason = "it is a symbolic link of another user; name what it leads to";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
            }
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Number of bytes that [`refuse_data`] examines.
const LOOKED_AT_BYTES: u64 = 4096;

/// Refuses to overwrite anything but text, because a database or a backup may be named by mistake. Those
/// have zero bytes near their start, which text has nowhere.
fn refuse_data(path: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    let file = open_regular(path, OpenOptions::new().read(true), OFlags::empty());
    // A file that can be written but not read cannot be checked.
    if let Ok((file, _)) = file {
        file.take(LOOKED_AT_BYTES).read_to_end(&mut bytes)?;
    }
    if !bytes.contains(&0) {
        return Ok(());
    }
    let reason = "it holds data and no text, perhaps a database or a backup; name another file, or delete it first";
    Err(io::Error::new(io::ErrorKind::AlreadyExists, reason))
}

/// `/dev/stdout` and similar paths mean a descriptor, even if it leads to a file.
fn is_open_descriptor(path: &Path) -> bool {
    let mut hop = path.to_owned();
    for _ in 0..directory::LINKS_MAX {
        let Ok(folder) = std::fs::canonicalize(directory::parent(&hop)) else {
            return false;
        };
        let is_descriptors = folder.ends_with("fd") && folder.starts_with("/proc");
        if is_descriptors {
            return true;
        }
        match std::fs::read_link(&hop) {
            Ok(link) => hop = folder.join(link),
            Err(_) => return false,
        }
    }
    false
}

fn write_into(path: &Path, bytes: &[u8], found: &Metadata) -> io::Result<()> {
    open_special(path, found)?.write_all(bytes)
}

fn open_special(path: &Path, found: &Metadata) -> io::Result<File> {
    let kind = found.file_type();
    if !(kind.is_fifo() || kind.is_char_device() || kind.is_file()) {
        let reason = format!("it is {}; name a file", kind_of(found));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    let file = open_for_writing(path, None)?;
    wait_again(&file)?;
    Ok(file)
}

/// Makes writes block again until the reader is ready.
fn wait_again(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags - OFlags::NONBLOCK)?)
}

/// Opens without blocking in the system call, which no signal would interrupt; creates the file if a
/// mode is given.
fn open_for_writing(path: &Path, mode: Option<u32>) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    let options = options
        .append(true)
        .create(mode.is_some())
        .mode(mode.unwrap_or_default())
        .custom_flags(flags.bits().cast_signed());
    let begun = Instant::now();
    loop {
        match options.open(path) {
            Err(error) if error.raw_os_error() == Some(NO_READER) => {
                if begun.elapsed() >= READER_PATIENCE {
                    let reason = "it is a FIFO without a reader";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
                }
                std::thread::sleep(READER_POLL);
            }
            opened => return opened,
        }
    }
}

/// `ENXIO`: a FIFO without a reader.
const NO_READER: i32 = rustix::io::Errno::NXIO.raw_os_error();

fn replace(path: &Path, bytes: &[u8], found: Option<&Metadata>, mode: u32) -> io::Result<()> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let target = directory::follow(path)?;
    // Concurrent writers of the same file use different names: the later rename wins.
    let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let beside = own::beside(&target, &format!(".windlass-new-{process}-{number}"));
    let write = || {
        let mut file = own::create(&beside)?;
        file.write_all(bytes)?;
        match found {
            Some(found) => keep(&file, found)?,
            None => file.set_permissions(PermissionsExt::from_mode(mode & !directory::umask()))?,
        }
        file.sync_all()?;
        directory::replace(&beside, &target)
    };
    let written = write();
    if written.is_err() {
        // Report the first error.
        let _left = std::fs::remove_file(&beside);
    }
    written
}

/// Gives a file the permissions of the file it replaces, and its owner if this process may set it.
pub fn keep(file: &File, replaced: &Metadata) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(replaced.uid()), Gid::from_raw(replaced.gid()));
    if rustix::fs::fchown(file, Some(user), Some(group)).is_err() {
        // Only a privileged process can change the owner; the group may be one of its own.
        let _refused = rustix::fs::fchown(file, None, Some(group));
    }
    file.set_permissions(PermissionsExt::from_mode(replaced.mode() & 0o777))
}

/// Permissions of a restored file that replaces none: at most those recorded in the backup, less
/// the umask; owner-only if unknown.
pub fn mode_for_new(stored: Option<u16>) -> u32 {
    match stored {
        Some(mode) => u32::from(mode) & 0o777 & !directory::umask(),
        None => 0o600,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_file_keeps_its_mode_and_a_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        write(&link, b"new", 0o644).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert_eq!(mode(&file), 0o640);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_link_that_leads_nowhere_yet_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::fs::create_dir(folder.path().join("far")).unwrap();
        symlink("far/file", &link).unwrap();
        write(&link, b"new", 0o644).unwrap();
        assert_eq!(
            std::fs::read(folder.path().join("far/file")).unwrap(),
            b"new"
        );
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_fifo_is_written_into_and_stays_a_fifo() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        let owner = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, owner).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut text = String::new();
                File::open(path).unwrap().read_to_string(&mut text).unwrap();
                text
            }
        });
        write(&path, b"through", 0o644).unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(std::fs::metadata(&path).unwrap().file_type().is_fifo());
    }

    #[test]
    fn a_log_is_added_to_and_neither_a_fifo_without_a_reader_nor_a_folder_hangs_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        append(&path, 0o600).unwrap().write_all(b"one").unwrap();
        append(&path, 0o600).unwrap().write_all(b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"onetwo");
        assert_eq!(mode(&path), 0o600);
        let link = folder.path().join("link");
        symlink("log", &link).unwrap();
        append(&link, 0o600).unwrap().write_all(b"!").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"onetwo!");
        assert!(append(folder.path(), 0o600).is_err());
        let fifo = folder.path().join("fifo");
        let owner = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, owner).unwrap();
        let error = append(&fifo, 0o600).unwrap_err();
        assert_eq!(error.to_string(), "it is a FIFO without a reader");
        // Another user's link, which only root can create for a test.
        if rustix::process::geteuid().is_root() {
            let nobody = rustix::fs::Uid::from_raw(65_534);
            let at = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::chownat(rustix::fs::CWD, &link, Some(nobody), None, at).unwrap();
            let error = append(&link, 0o600).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            assert_eq!(std::fs::read(&path).unwrap(), b"onetwo!");
        }
    }

    #[test]
    fn a_device_is_written_into_and_a_folder_refused() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("null");
        symlink("/dev/null", &link).unwrap();
        write(&link, b"gone", 0o644).unwrap();
        let null = std::fs::metadata("/dev/null").unwrap();
        assert!(null.file_type().is_char_device());
        let error = write(folder.path(), b"x", 0o644).unwrap_err();
        assert_eq!(error.to_string(), "it is a folder; name a file");
    }
}
