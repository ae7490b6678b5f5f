//! Checks that a finished staging file is a database before it gets the target's name.
//!
//! The target path can come from the media, and the content always does. Together they could be
//! used to write any file, so content that is not a database is published only if the user allows
//! it.

use std::path::Path;

use windlass_io::DirectFile;

use super::super::file_error;
use crate::Error;

/// First bytes of every `SQLite` database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Bytes of the header that are examined.
const HEADER_BYTES: usize = 100;

/// Why a file is not a `SQLite` database; `None` if it is one, or is empty and will become one.
pub(super) fn defect(file: &DirectFile, path: &Path) -> Result<Option<String>, Error> {
    let fail = |error| file_error("read", path, error);
    let length = file.len().map_err(fail)?;
    if length == 0 {
        return Ok(None);
    }
    let mut header = [0; HEADER_BYTES];
    let read = file.read_at(&mut header, 0).map_err(fail)?;
    Ok(defect_of(&header[..read]))
}

fn defect_of(header: &[u8]) -> Option<String> {
    if !header.starts_with(MAGIC) || header.len() < HEADER_BYTES {
        return Some("it does not begin with a SQLite header".to_owned());
    }
    // Any length is fine: SQLite reads truncated databases, and a backup of one restores it.
    match u16::from_be_bytes([header[16], header[17]]) {
        1 => None,
        bytes if bytes >= 512 && bytes.is_power_of_two() => None,
        bytes => Some(format!("its header says pages of {bytes} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(page_bytes: u16) -> Vec<u8> {
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&page_bytes.to_be_bytes());
        header.resize(HEADER_BYTES, 0);
        header
    }

    #[test]
    fn only_what_begins_as_a_database_passes() {
        for page_bytes in [512, 4096, 1] {
            assert_eq!(defect_of(&header(page_bytes)), None);
        }
        let defects = [
            b"* * * * * root id\n".to_vec(),
            header(4096)[..99].to_vec(),
            header(4095),
            header(256),
        ];
        for header in defects {
            assert!(defect_of(&header).is_some(), "{header:?}");
        }
    }
}
