//! Which file it is, whatever its names.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A file system, and the number of a file in it. Another file can get the number when all names are gone and nobody has
/// the file open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// Of the file that a path leads to, through links too; `None` if it is not there, or cannot be examined.
    pub fn at(path: &Path) -> Option<Self> {
        path.metadata().ok().map(|found| Self::of(&found))
    }
}
