//! Durable changes of directories, and free space.

use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use crate::own;

/// Maximum number of chained links, as in Linux.
pub(crate) const LINKS_MAX: usize = 40;

/// The absolute path of `path` with all links followed, even if the last one is dangling.
///
/// # Errors
/// If its folder does not exist or cannot be entered, or links form a loop.
pub fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut wanted = path.to_owned();
    for _ in 0..LINKS_MAX {
        let no_file = "it names no file";
        let no_file = || io::Error::new(io::ErrorKind::InvalidInput, no_file);
        let name = wanted.file_name().ok_or_else(no_file)?;
        let folder = std::fs::canonicalize(parent(&wanted))?;
        let file = folder.join(name);
        match std::fs::read_link(&file) {
            Ok(link) => wanted = folder.join(link),
            // Not a link.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(file),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::LOOP.into())
}

/// The process umask. The system call that reads it also changes it for a moment, which would
/// affect other threads; `/proc` shows it without that.
pub fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        line.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok())
            .unwrap_or(0o022)
    })
}

/// The folder of `path`; `.` for a bare file name.
pub fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Makes the names in `folder` durable.
pub fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Renames `from` to `to` and syncs the folder, so that after a crash `to` is either the old or the
/// new file, complete. The content of `from` must have been synced before.
pub fn replace(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)?;
    sync(&parent(to))
}

/// Renames `from` to `to`, which must not exist, and syncs the folder. The content of `from` must have been
/// synced before.
///
/// # Errors
/// `AlreadyExists` if `to` exists, even as a dangling link.
pub fn take_name(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => {
            // A file system that cannot do it in one step.
            if own::is_there(to) {
                return Err(rustix::io::Errno::EXIST.into());
            }
            std::fs::rename(from, to)?;
        }
        renamed => renamed?,
    }
    sync(&parent(to))
}

/// Lets two files change places; `false` if the file system cannot do that.
///
/// # Errors
/// Those of the operating system.
pub fn exchange(one: &Path, other: &Path) -> io::Result<bool> {
    #[cfg(test)]
    if tests::CANNOT_EXCHANGE.get() {
        return Ok(false);
    }
    match rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Creates a folder and its missing parents, private to the owner, and makes their names durable.
/// Returns the created folders, outermost first.
pub fn create(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .collect();
    missing.reverse();
    for made in &missing {
        match std::fs::DirBuilder::new().mode(0o700).create(made) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => sync(&parent(made))?,
        }
    }
    Ok(missing.into_iter().map(Path::to_owned).collect())
}

/// Bytes that an unprivileged user may still write on the file system of `path`; `None` if it does not tell.
pub fn free_bytes(path: &Path) -> io::Result<Option<u64>> {
    Ok(free_of(&rustix::fs::statvfs(path)?))
}

fn free_of(info: &rustix::fs::StatVfs) -> Option<u64> {
    // Some file systems, in memory and in user space, count no blocks at all.
    (info.f_blocks > 0).then(|| info.f_bavail.saturating_mul(info.f_frsize))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// Lets the file system of a test be one that cannot exchange files.
        pub(crate) static CANNOT_EXCHANGE: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn a_file_system_that_counts_no_blocks_is_not_full() {
        let folder = tempfile::tempdir().unwrap();
        let known = rustix::fs::statvfs(folder.path()).unwrap();
        let uncounted = rustix::fs::StatVfs {
            f_blocks: 0,
            f_bavail: 0,
            ..known
        };
        assert_eq!(free_of(&uncounted), None);
        let full = rustix::fs::StatVfs {
            f_blocks: 7,
            ..uncounted
        };
        assert_eq!(free_of(&full), Some(0));
    }

    #[test]
    fn replace_leaves_only_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&from, "new").unwrap();
        std::fs::write(&to, "old").unwrap();
        replace(&from, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"new");
        assert!(!from.exists());
        assert!(free_bytes(folder.path()).unwrap().unwrap() > 0);
    }

    #[test]
    fn a_name_that_is_taken_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to, link] = ["a", "b", "c"].map(|name| folder.path().join(name));
        std::fs::write(&from, "new").unwrap();
        std::fs::write(&to, "theirs").unwrap();
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        for taken in [&to, &link] {
            let error = take_name(&from, taken).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(std::fs::read(&to).unwrap(), b"theirs");
        std::fs::remove_file(&to).unwrap();
        take_name(&from, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"new");
        assert!(!own::is_there(&from));
    }

    #[test]
    fn folders_are_made_for_their_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        assert_eq!(create(&deep).unwrap().len(), 2);
        assert!(create(&deep).unwrap().is_empty());
        for made in [deep.as_path(), deep.parent().unwrap()] {
            let mode = std::fs::metadata(made).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
    }

    #[test]
    fn a_bare_name_lies_in_the_current_folder() {
        assert_eq!(parent(Path::new("a.db")), Path::new("."));
        assert_eq!(parent(Path::new("/x/a.db")), Path::new("/x"));
    }
}
