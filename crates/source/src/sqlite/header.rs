//! The 100 bytes at the start of every `SQLite` database file.
//!
//! Source: the `SQLite` file format, section 1.3 "The Database Header".

use crate::Content;

pub(super) const HEADER_BYTES: usize = 100;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The parts of the header that a backup uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Header {
    /// Bytes per page; 0 if the content does not look like a database.
    pub(super) page_bytes: u32,
    /// Bytes at the end of each page that `SQLite` does not use.
    pub(super) reserved_bytes: u8,
    pub(super) is_wal: bool,
    /// Pages in the database; `None` if the last writer did not maintain the number.
    pub(super) page_count: Option<u32>,
    pub(super) user_version: u32,
    pub(super) application_id: u32,
    /// `SQLITE_VERSION_NUMBER` of the last writer.
    pub(super) written_by: u32,
}

impl Header {
    /// Reads a header; all zero if `bytes` are not the start of a database.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Self::default();
        };
        let page_bytes = match u32::from(u16::from_be_bytes([bytes[16], bytes[17]])) {
            1 => 65536,
            bytes if bytes >= 512 && bytes.is_power_of_two() => bytes,
            _ => 0,
        };
        if !bytes.starts_with(MAGIC) || page_bytes == 0 {
            return Self::default();
        }
        Self {
            page_bytes,
            reserved_bytes: bytes[20],
            is_wal: bytes[19] == 2,
            // Valid if the change counter is the one stored with it.
            page_count: (be32(bytes, 24) == be32(bytes, 92) && be32(bytes, 28) > 0)
                .then(|| be32(bytes, 28)),
            user_version: be32(bytes, 60),
            application_id: be32(bytes, 68),
            written_by: be32(bytes, 96),
        }
    }
}

impl Header {
    /// The kind of content of a file with this header and `found_bytes` bytes.
    pub(super) fn content(&self, found_bytes: u64) -> Content {
        let expected_bytes = u64::from(self.page_count.unwrap_or(0)) * u64::from(self.page_bytes);
        match self.page_bytes {
            _ if found_bytes == 0 => Content::Empty,
            0 => Content::Unknown,
            _ if found_bytes < expected_bytes => Content::Cut {
                expected_bytes,
                found_bytes,
            },
            _ => Content::Database,
        }
    }
}

/// The big-endian number at `at`; 0 beyond the end.
pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(<[u8]>::first_chunk)
        .map_or(0, |four| u32::from_be_bytes(*four))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_size_of_one_means_65536() {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..18].copy_from_slice(&[0, 1]);
        bytes[20] = 8;
        bytes[60..64].copy_from_slice(&[0, 0, 1, 2]);
        let header = Header::parse(&bytes);
        assert_eq!(
            (
                header.page_bytes,
                header.reserved_bytes,
                header.user_version
            ),
            (65536, 8, 258)
        );
    }

    #[test]
    fn what_is_no_database_has_no_page_size() {
        assert_eq!(Header::parse(&[0; 100]), Header::default());
        assert_eq!(Header::parse(b"SQLite format 3\0"), Header::default());
        let mut odd = [0; 100];
        odd[..16].copy_from_slice(MAGIC);
        odd[16..18].copy_from_slice(&[3, 0]);
        assert_eq!(Header::parse(&odd).page_bytes, 0, "768 is no page size");
    }
}
