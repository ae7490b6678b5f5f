//! What a finished stage must be before it takes the target's name: a database.
//!
//! The place of a restore can come from the medium, and the content does. Together they would be a way to
//! write any file; so what is no database is published only if the user says so.

use std::path::Path;

use windlass_io::DirectFile;

use super::super::file_error;
use crate::Error;

/// First octets of every `SQLite` database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Octets of the header that are looked at.
const HEADER_BYTES: usize = 100;

/// Why a file is no `SQLite` database; none of one that is, or that has no octets and will become one.
pub(super) fn defect(file: &DirectFile, path: &Path) -> Result<Option<String>, Error> {
    let fail = |error| file_error("read", path, error);
    let length = file.len().map_err(fail)?;
    if length == 0 {
        return Ok(None);
    }
    let mut header = [0; HEADER_BYTES];
    let read = file.read_at(&mut header, 0).map_err(fail)?;
    Ok(defect_of(&header[..read], length))
}

fn defect_of(header: &[u8], length: u64) -> Option<String> {
    if !header.starts_with(MAGIC) || header.len() < HEADER_BYTES {
        return Some("it does not begin as a SQLite database does".to_owned());
    }
    let page_bytes = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        bytes if bytes >= 512 && bytes.is_power_of_two() => u64::from(bytes),
        bytes => return Some(format!("its header says pages of {bytes} bytes")),
    };
    if !length.is_multiple_of(page_bytes) {
        return Some(format!(
            "it has {length} bytes, which are not whole pages of {page_bytes}"
        ));
    }
    None
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
    fn only_whole_databases_pass() {
        for (page_bytes, length) in [(512, 512), (4096, 40_960), (1, 131_072)] {
            assert_eq!(defect_of(&header(page_bytes), length), None);
        }
        let defects = [
            (b"* * * * * root id\n".to_vec(), 18),
            (header(4096)[..99].to_vec(), 99),
            (header(4095), 4095),
            (header(256), 256),
            (header(4096), 4097),
        ];
        for (header, length) in defects {
            assert!(defect_of(&header, length).is_some(), "{length}");
        }
    }
}
