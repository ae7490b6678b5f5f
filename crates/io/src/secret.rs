//! Small files with secrets: made for their owner alone, never over an existing file.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use crate::file::open_regular;

/// Longest file that is read: certificates, keys and passphrases are far shorter.
const BYTES_MAX: u64 = 1 << 20;

/// Makes a file of mode 0600 and syncs it.
///
/// # Errors
/// Also when the file exists: somebody's key may be in it.
pub fn create(path: &Path, octets: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(octets)?;
    file.sync_all()?;
    crate::directory::sync(&crate::directory::parent(path))
}

/// Reads a whole file of at most 1 MB.
///
/// # Errors
/// Also when it is longer, and when it is not a regular file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    open_regular(path, OpenOptions::new().read(true), OFlags::empty())?
        .0
        .take(BYTES_MAX + 1)
        .read_to_end(&mut octets)?;
    if octets.len() as u64 > BYTES_MAX {
        let reason = "it is too long for a key or a certificate";
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_for_its_owner_and_is_never_overwritten() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        create(&path, b"secret").unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(read(&path).unwrap(), b"secret");
        assert!(create(&path, b"other").is_err());
        assert_eq!(read(&path).unwrap(), b"secret");
    }
}
