//! The scratch folder of a drill: new, for this user alone, and gone with the drill.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use windlass_base::message::table;
use windlass_io::own;

use crate::Failure;
use crate::message_of::os_error;

/// How the folders of drills are named.
const PREFIX: &str = "windlass-drill-";

/// The file in each of them that its drill holds locked.
const LOCK: &str = "drill.lock";

/// A folder for one drill.
#[derive(Debug)]
pub(super) struct Scratch {
    folder: TempDir,
    _lock: File,
}

impl Scratch {
    /// Makes it in `parent`, and removes what killed drills have left there.
    pub(super) fn begin(parent: &Path) -> Result<Self, Failure> {
        let failed = |error: &io::Error| {
            Failure::from(table::cannot_open_file(parent.display(), os_error(error)))
        };
        remove_left(parent).map_err(|error| failed(&error))?;
        let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent);
        let folder = made.map_err(|error| failed(&error))?;
        let lock = own::claim_file(&folder.path().join(LOCK)).map_err(|error| failed(&error))?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves the files where they are.
    pub(super) fn keep(self) -> PathBuf {
        let path = self.folder.keep();
        // The next drill looks for folders with this file.
        let _removed = fs::remove_file(path.join(LOCK));
        path
    }

    /// Deletes the files.
    pub(super) fn end(self) -> Result<(), Failure> {
        let path = self.folder.path().to_owned();
        self.folder.close().map_err(|error| {
            Failure::from(table::cannot_open_file(path.display(), os_error(&error)))
        })
    }
}

/// Removes the folders whose lock nobody holds: their drills were killed. One that was kept has none.
fn remove_left(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let is_named = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX));
        if !is_named || !entry.file_type()?.is_dir() {
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

    #[test]
    fn what_a_killed_drill_left_goes_and_all_else_stays() {
        let parent = tempfile::tempdir().unwrap();
        let running = Scratch::begin(parent.path()).unwrap();
        let kept = Scratch::begin(parent.path()).unwrap().keep();
        let left = parent.path().join(format!("{PREFIX}killed"));
        fs::create_dir(&left).unwrap();
        drop(own::claim_file(&left.join(LOCK)).unwrap());
        fs::write(left.join("1.db"), "old").unwrap();
        let others = parent.path().join(format!("{PREFIX}of-somebody"));
        fs::create_dir(&others).unwrap();
        let next = Scratch::begin(parent.path()).unwrap();
        assert!(!left.exists(), "nobody holds it");
        for path in [running.path(), &kept, &others, next.path()] {
            assert!(path.exists(), "{}", path.display());
        }
        let path = next.path().to_owned();
        next.end().unwrap();
        assert!(!path.exists());
    }
}
