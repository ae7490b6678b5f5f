//! The socket of a process that has databases open: where it is, and who may use it.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The socket in an instance's folder.
pub const OF_INSTANCE: &str = "windlass.sock";

/// The longest name of a socket that the system takes.
const NAME_BYTES_MAX: usize = 107;

/// The socket beside a database that a program has open.
pub fn beside(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-sock");
    PathBuf::from(name)
}

/// Whether the other side is the user of this process, or root.
pub fn is_own_user(stream: &UnixStream) -> bool {
    let credentials = rustix::net::sockopt::socket_peercred(stream);
    credentials.is_ok_and(|found| found.uid.is_root() || found.uid == rustix::process::geteuid())
}

/// Connects; `None` if nobody listens.
///
/// # Errors
/// A socket that this user may not use.
pub fn connect(path: &Path) -> io::Result<Option<UnixStream>> {
    match named(path, |name| UnixStream::connect(name)) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
            _ => Err(error),
        },
    }
}

/// A socket that this process made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Made {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it; what has taken its place meanwhile stays.
    pub fn remove(&self) {
        let is_ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode));
        if is_ours {
            // The next process replaces it otherwise.
            let _removed = fs::remove_file(&self.path);
        }
    }
}

/// Makes the socket, for this user alone. One that nobody answers on was left by a process that died.
///
/// # Errors
/// `AddrInUse` if somebody answers on it, or another file has its name.
pub fn listen(path: &Path) -> io::Result<(UnixListener, Made)> {
    if named(path, |name| UnixStream::connect(name)).is_ok() {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path)?,
        _ => {}
    }
    let listener = named(path, |name| UnixListener::bind(name))?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    let made = fs::symlink_metadata(path)?;
    let made = Made {
        path: path.to_owned(),
        device: made.dev(),
        inode: made.ino(),
    };
    Ok((listener, made))
}

/// Uses the socket under a name that is short enough for the system.
fn named<T>(path: &Path, run: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().len() <= NAME_BYTES_MAX {
        return run(path);
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return run(path);
    };
    let folder = File::open(folder)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    run(&short.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_found_and_replaced_when_nobody_answers() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("x".repeat(120));
        fs::create_dir(&deep).unwrap();
        for path in [folder.path().join("a.db"), deep.join("a.db")] {
            let path = beside(&path);
            assert!(connect(&path).unwrap().is_none());
            let first = listen(&path).unwrap();
            assert!(is_own_user(&connect(&path).unwrap().unwrap()));
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let taken = listen(&path).unwrap_err();
            assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
            drop(first);
            assert!(connect(&path).unwrap().is_none(), "nobody listens");
            let (_listener, made) = listen(&path).unwrap();
            made.remove();
            assert!(!path.exists());
            fs::write(&path, "a file").unwrap();
            made.remove();
            assert!(listen(&path).is_err(), "another file is not replaced");
            assert_eq!(fs::read(&path).unwrap(), b"a file");
        }
    }
}
