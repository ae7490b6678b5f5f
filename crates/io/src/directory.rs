//! Durable changes of directories, and the space that is left.

use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The folder that holds `path`; `.` for a bare file name.
pub fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Makes the names in `folder` survive a power failure.
pub fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Renames `from` over `to` and syncs the folder, so that after a crash `to` is the old or the new
/// file, whole either way. The content of `from` must have been synced before.
pub fn replace(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)?;
    sync(&parent(to))
}

/// Makes a folder and those above it that do not exist, for nobody else to read, and makes their names
/// survive a power failure. Returns the folders that were made, the highest first.
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

/// Octets that an unprivileged user may still write on the file system that holds `path`.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let info = rustix::fs::statvfs(path)?;
    Ok(info.f_bavail.saturating_mul(info.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replace_leaves_only_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&from, "new").unwrap();
        std::fs::write(&to, "old").unwrap();
        replace(&from, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"new");
        assert!(!from.exists());
        assert!(free_bytes(folder.path()).unwrap() > 0);
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
