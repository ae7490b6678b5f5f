//! Tagged records, the stored form of configurations: fields can be added without a new format
//! version.
//!
//! A record list is any number of `tag u16, length u32, value`, then the CRC-64 of all of them. A
//! reader skips unknown tags. An absent tag reads as zero or empty. Tags with the top bit set are
//! mandatory: a reader that does not know one refuses the list.

use std::num::NonZeroU64;

use windlass_base::{Guid, Lsn, Moment, checksum};

use crate::cursor::{Cursor, require_at_most};
use crate::error::MediaError;

/// Maximum length of a record list. A thousand database files with long names fit.
pub(crate) const LIST_BYTES_MAX: u64 = 4 << 20;

/// Tags from here on are mandatory.
pub(crate) const MANDATORY_TAGS: u16 = 0x8000;

/// Maximum length of a text in bytes; T-SQL's longest names are shorter.
const TEXT_BYTES_MAX: usize = 4096;

/// Maximum length of a byte string: a key block with all its recipients.
const BYTES_MAX: usize = 128 << 10;

/// Bytes of a record before its value: tag and length.
pub(crate) const HEAD_BYTES: usize = 6;

/// A value that has a stored form.
pub(crate) trait Stored: Sized {
    fn store(&self, out: &mut Vec<u8>);
    /// `None` if the bytes are not such a value.
    fn load(bytes: &[u8]) -> Option<Self>;
    /// Whether the record is omitted. A field that most sets do not have is not stored in them, so that
    /// they stay the same as before the field was added.
    fn is_left_out(&self) -> bool {
        false
    }
}

/// Opaque bytes; an empty value is omitted.
impl Stored for Vec<u8> {
    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= BYTES_MAX).then(|| bytes.to_vec())
    }

    fn is_left_out(&self) -> bool {
        self.is_empty()
    }
}

macro_rules! stored_number {
    ($($number:ty),*) => {$(
        impl Stored for $number {
            fn store(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn load(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_le_bytes)
            }
        }
    )*};
}

stored_number!(u8, u16, u32, u64, i8);

impl Stored for bool {
    fn store(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl Stored for Guid {
    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_stored());
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_stored)
    }
}

/// Of something that need not exist; never the nil GUID.
impl Stored for Option<Guid> {
    fn store(&self, out: &mut Vec<u8>) {
        self.unwrap_or(Guid::NIL).store(out);
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        let guid = Guid::load(bytes)?;
        (!guid.is_nil()).then_some(Some(guid))
    }

    fn is_left_out(&self) -> bool {
        self.is_none()
    }
}

/// Of something that may be unknown; never zero.
impl Stored for Option<NonZeroU64> {
    fn store(&self, out: &mut Vec<u8>) {
        self.map_or(0, NonZeroU64::get).store(out);
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        NonZeroU64::new(u64::load(bytes)?).map(Some)
    }

    fn is_left_out(&self) -> bool {
        self.is_none()
    }
}

impl Stored for Lsn {
    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_stored());
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_stored)
    }
}

impl Stored for Option<Moment> {
    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.map_or([0; 5], Moment::to_stored));
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Moment::from_stored)
    }
}

impl Stored for String {
    fn store(&self, out: &mut Vec<u8>) {
        let mut ends = (0..=self.len().min(TEXT_BYTES_MAX)).rev();
        let end = ends.find(|&at| self.is_char_boundary(at)).unwrap_or(0);
        out.extend_from_slice(self.as_bytes().get(..end).unwrap_or_default());
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= TEXT_BYTES_MAX)
            .then(|| Self::from_utf8(bytes.to_vec()).ok())
            .flatten()
    }
}

/// Appends one record, unless the value is omitted.
pub(crate) fn put(out: &mut Vec<u8>, tag: u16, value: &impl Stored) {
    if value.is_left_out() {
        return;
    }
    let begin = out.len();
    out.extend_from_slice(&tag.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    value.store(out);
    let length = (out.len() - begin - HEAD_BYTES) as u32;
    if let Some(field) = out.get_mut(begin + 2..begin + HEAD_BYTES) {
        field.copy_from_slice(&length.to_le_bytes());
    }
}

/// Appends the CRC-64 that ends a list.
pub(crate) fn seal(mut records: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&records);
    records.extend_from_slice(&sum.to_le_bytes());
    records
}

/// Checks the CRC-64 and returns the records before it.
pub(crate) fn open<'a>(
    list: &'a [u8],
    offset: u64,
    what: &'static str,
) -> Result<&'a [u8], MediaError> {
    require_at_most(list.len() as u64, LIST_BYTES_MAX, what, offset)?;
    let Some((records, sum)) = list.split_last_chunk::<8>() else {
        let (expected, found) = (8, list.len() as u64);
        return Err(MediaError::Damaged {
            offset,
            what,
            expected,
            found,
        });
    };
    let (expected, found) = (checksum(records), u64::from_le_bytes(*sum));
    if expected != found {
        return Err(MediaError::Damaged {
            offset,
            what,
            expected,
            found,
        });
    }
    Ok(records)
}

/// Passes each record to `take`, which returns whether it knows the tag and could read the value.
pub(crate) fn each(
    records: &[u8],
    offset: u64,
    what: &'static str,
    mut take: impl FnMut(u16, &[u8]) -> Known,
) -> Result<(), MediaError> {
    let mut cursor = Cursor::new(records, offset, what);
    while cursor.left() > 0 {
        let at = cursor.offset();
        let tag = cursor.u16()?;
        let length = cursor.u32()? as usize;
        match take(tag, cursor.take(length)?) {
            Known::Read => {}
            Known::No if tag < MANDATORY_TAGS => {}
            Known::No => return Err(MediaError::UnknownField { offset: at, tag }),
            Known::Unreadable => {
                return Err(MediaError::Damaged {
                    offset: at,
                    what,
                    expected: 0,
                    found: u64::from(tag),
                });
            }
        }
    }
    Ok(())
}

/// The value of the record with tag `wanted`, if it exists and is readable.
pub(crate) fn find<T: Stored>(records: &[u8], wanted: u16) -> Option<T> {
    let mut value = None;
    let take = |tag, bytes: &[u8]| {
        if tag == wanted {
            value = T::load(bytes);
        }
        Known::Read
    };
    each(records, 0, "record", take).ok()?;
    value
}

/// Result of taking a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Read,
    No,
    /// Its tag is known, but its value has the wrong type.
    Unreadable,
}

/// A struct whose fields are stored as records; declared with [`records!`].
pub(crate) trait Records: Default {
    /// The struct's name in errors.
    const WHAT: &'static str;
    /// Tags and names, to compare with the documentation.
    #[cfg(test)]
    const FIELDS: &'static [(u16, &'static str)];

    fn store_records(&self, out: &mut Vec<u8>);

    /// Loads one record.
    fn load_record(&mut self, tag: u16, bytes: &[u8]) -> Known;

    /// The whole list, with its CRC-64.
    fn store_list(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.store_records(&mut out);
        seal(out)
    }

    /// Reads a whole list, found at `offset` of a family.
    fn load_list(list: &[u8], offset: u64) -> Result<Self, MediaError> {
        let records = open(list, offset, Self::WHAT)?;
        let mut value = Self::default();
        let take = |tag, bytes: &[u8]| value.load_record(tag, bytes);
        each(records, offset, Self::WHAT, take)?;
        Ok(value)
    }
}

/// Declares a struct whose fields are stored as records, with their tags.
macro_rules! records {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$field_meta:meta])* $tag:literal $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl $crate::record::Records for $name {
            const WHAT: &'static str = $what;
            #[cfg(test)]
            const FIELDS: &'static [(u16, &'static str)] = &[$(($tag, stringify!($field)),)*];

            fn store_records(&self, out: &mut Vec<u8>) {
                $($crate::record::put(out, $tag, &self.$field);)*
            }

            fn load_record(&mut self, tag: u16, bytes: &[u8]) -> $crate::record::Known {
                match tag {
                    $($tag => match $crate::record::Stored::load(bytes) {
                        Some(value) => {
                            self.$field = value;
                            $crate::record::Known::Read
                        }
                        None => $crate::record::Known::Unreadable,
                    },)*
                    _ => $crate::record::Known::No,
                }
            }
        }
    };
}

pub(crate) use records;

#[cfg(test)]
mod tests {
    use super::*;

    records! {
        /// For the tests below.
        #[expect(unreachable_pub, reason = "the macro declares public types")]
        Sample, "sample" {
            1 number: u32,
            2 text: String,
        }
    }

    #[test]
    fn unknown_fields_are_skipped_unless_they_must_be_understood() {
        let sample = Sample {
            number: 7,
            text: "abc".to_owned(),
        };
        let mut records = Vec::new();
        sample.store_records(&mut records);
        put(&mut records, 99, &1_u8);
        assert_eq!(
            Sample::load_list(&seal(records.clone()), 0).unwrap(),
            sample
        );
        put(&mut records, MANDATORY_TAGS | 1, &1_u8);
        let error = Sample::load_list(&seal(records), 0).unwrap_err();
        assert!(matches!(error, MediaError::UnknownField { .. }));
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_refused() {
        let mut records = Vec::new();
        put(&mut records, 1, &1_u8);
        assert!(matches!(
            Sample::load_list(&seal(records), 0),
            Err(MediaError::Damaged { .. })
        ));
    }
}
