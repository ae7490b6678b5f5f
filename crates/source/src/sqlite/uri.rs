//! A database's path as a URI, which can have options.
//!
//! Source: `SQLite`, "URI Filenames".

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// For a connection that reads and never creates a -shm file.
pub(super) fn read_only(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => {
                // Writing to a string does not fail.
                let _written = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri.push_str("?mode=ro&readonly_shm=1");
    uri
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use rusqlite::{Connection, OpenFlags};

    use super::*;

    #[test]
    fn every_name_leads_to_its_file() {
        let folder = tempfile::tempdir().unwrap();
        for name in [&b"plain.db"[..], b"a b?c#d%e&f=g.db", b"\xFF\xFE"] {
            let path = folder.path().join(OsStr::from_bytes(name));
            std::fs::write(&path, "").unwrap();
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(read_only(&path), flags).unwrap();
        }
    }
}
