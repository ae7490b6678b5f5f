//! The state of a file, to find out later whether it is still the same file with the same content.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use crate::FileIdentity;

/// What becomes another when a file is written to, or another one takes its name.
///
/// Times of modification can be set back; that of the last change of the inode cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState {
    identity: FileIdentity,
    bytes: u64,
    changed: (i64, i64),
}

impl FileState {
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            identity: FileIdentity::of(metadata),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write as _;

    use super::*;

    #[test]
    fn who_writes_to_a_file_and_sets_its_time_back_changes_its_state() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "one").unwrap();
        let state = || FileState::of(&fs::metadata(&path).unwrap());
        let before = state();
        assert_eq!(state(), before);
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        // The clock of the file system has steps of some milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(30));
        let mut file = File::options().write(true).open(&path).unwrap();
        file.write_all(b"two").unwrap();
        file.set_modified(modified).unwrap();
        assert_ne!(state(), before);
        let written = state();
        fs::write(folder.path().join("b"), "two").unwrap();
        fs::rename(folder.path().join("b"), &path).unwrap();
        assert_ne!(state(), written);
    }
}
