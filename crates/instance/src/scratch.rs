//! A scratch folder: new, for this user alone, and gone with the run that made it. What a killed run has left, the next
//! one removes.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use windlass_io::own;

/// The file in each folder that its run holds locked.
const LOCK: &str = "in-use.lock";

/// A folder for one run.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    _lock: File,
}

impl Scratch {
    /// Makes it in `parent`, with a name that begins with `prefix`, and removes what killed runs have left there under
    /// such names.
    ///
    /// # Errors
    /// The folder cannot be made, or what was left not be removed.
    pub fn begin(parent: &Path, prefix: &str) -> io::Result<Self> {
        let made = tempfile::Builder::new().prefix(prefix).tempdir_in(parent);
        let folder = made?;
        let lock = own::claim_file(&folder.path().join(LOCK))?;
        remove_left(parent, prefix, &fs::metadata(folder.path())?)?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves the files where they are.
    pub fn keep(self) -> PathBuf {
        let path = self.folder.keep();
        // The next run looks for folders with this file.
        let _removed = fs::remove_file(path.join(LOCK));
        path
    }

    /// Deletes the files.
    ///
    /// # Errors
    /// They cannot be deleted.
    pub fn end(self) -> io::Result<()> {
        self.folder.close()
    }
}

/// Removes the folders of the owner of the folder `owner` whose lock nobody holds: their runs were killed. One that was
/// kept has none.
fn remove_left(parent: &Path, prefix: &str, owner: &Metadata) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let name = entry.file_name();
        if !name.to_str().is_some_and(|name| name.starts_with(prefix)) {
            continue;
        }
        // Another run may have removed it.
        let Ok(found) = entry.path().symlink_metadata() else {
            continue;
        };
        if !found.is_dir() || found.uid() != owner.uid() {
            continue;
        }
        let left = own::hold_existing(&entry.path().join(LOCK));
        if let Ok(Some(_held)) = left {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "windlass-test-";

    #[test]
    fn what_a_killed_run_left_goes_and_all_else_stays() {
        let parent = tempfile::tempdir().unwrap();
        let running = Scratch::begin(parent.path(), PREFIX).unwrap();
        let kept = Scratch::begin(parent.path(), PREFIX).unwrap().keep();
        let left = parent.path().join(format!("{PREFIX}killed"));
        fs::create_dir(&left).unwrap();
        drop(own::claim_file(&left.join(LOCK)).unwrap());
        fs::write(left.join("1.db"), "old").unwrap();
        let others = parent.path().join(format!("{PREFIX}of-somebody"));
        fs::create_dir(&others).unwrap();
        let next = Scratch::begin(parent.path(), PREFIX).unwrap();
        assert!(!left.exists(), "nobody holds it");
        for path in [running.path(), &kept, &others, next.path()] {
            assert!(path.exists(), "{}", path.display());
        }
        let path = next.path().to_owned();
        next.end().unwrap();
        assert!(!path.exists());
    }
}
