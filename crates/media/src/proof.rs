//! The stored form of a set's final configuration, which its authentication and its signature cover.
//!
//! Both are computed over the stored bytes, not over parsed values, so that they also cover records that
//! this reader does not know.

use crate::configuration::SetConfiguration;
use crate::error::MediaError;
use crate::record::{self, Known};

/// Tag of [`SetConfiguration::authentication`].
const AUTHENTICATION_TAG: u16 = 0x8061;
/// Tag of [`SetConfiguration::signature`].
const SIGNATURE_TAG: u16 = 0x8101;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinalConfiguration {
    /// The list with its checksum.
    list: Vec<u8>,
}

impl FinalConfiguration {
    pub(crate) fn new(list: Vec<u8>) -> Self {
        Self { list }
    }

    /// The configuration.
    pub(crate) fn parse(&self, offset: u64) -> Result<SetConfiguration, MediaError> {
        SetConfiguration::parse(&self.list, offset)
    }

    /// What the authentication of an encrypted set covers.
    pub fn authenticated(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.list.len());
        self.each(|tag, record| {
            if tag != AUTHENTICATION_TAG && tag != SIGNATURE_TAG {
                bytes.extend_from_slice(record);
            }
        });
        bytes
    }

    /// What the signature covers: everything before it. None where it is not the last record.
    pub fn signed(&self) -> Option<&[u8]> {
        let (mut end, mut last) = (0, None);
        self.each(|tag, record| {
            last = Some((tag, end));
            end += record.len();
        });
        match last {
            Some((SIGNATURE_TAG, begin)) => self.list.get(..begin),
            _ => None,
        }
    }

    /// Passes on each record.
    fn each(&self, mut take: impl FnMut(u16, &[u8])) {
        let Ok(records) = record::open(&self.list, 0, "set configuration") else {
            return;
        };
        let mut at = 0;
        // A list that was parsed consists of records.
        let _read = record::each(records, 0, "set configuration", |tag, value| {
            let end = at + record::HEAD_BYTES + value.len();
            take(tag, records.get(at..end).unwrap_or_default());
            at = end;
            Known::Read
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Records as _, put, seal};

    fn set() -> SetConfiguration {
        SetConfiguration {
            name: "nightly".to_owned(),
            authentication: vec![1; 32],
            signature: vec![2; 97],
            files: vec![crate::DatabaseFile::default()],
            ..SetConfiguration::default()
        }
    }

    #[test]
    fn what_was_written_is_what_is_covered() {
        let stored = FinalConfiguration::new(set().emit().unwrap());
        assert_eq!(stored.authenticated(), set().authenticated_bytes());
        assert_eq!(stored.signed(), Some(set().signed_bytes().as_slice()));
        assert_eq!(stored.parse(0).unwrap(), set());
    }

    #[test]
    fn a_record_that_nobody_knows_is_covered() {
        let mut records = Vec::new();
        put(&mut records, 0x0077, &7_u8);
        set().store_records(&mut records);
        let stored = FinalConfiguration::new(seal(records));
        assert_eq!(stored.parse(0).unwrap(), set());
        assert_ne!(stored.authenticated(), set().authenticated_bytes());
        assert_ne!(stored.signed(), Some(set().signed_bytes().as_slice()));
    }

    #[test]
    fn a_signature_covers_nothing_unless_it_is_the_last_record() {
        let mut records = Vec::new();
        set().store_records(&mut records);
        put(&mut records, 0x0077, &7_u8);
        assert_eq!(FinalConfiguration::new(seal(records)).signed(), None);
        let unsigned = SetConfiguration {
            signature: Vec::new(),
            ..set()
        };
        let stored = FinalConfiguration::new(unsigned.emit().unwrap());
        assert_eq!(stored.signed(), None);
    }
}
