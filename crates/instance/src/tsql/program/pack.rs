//! Several values of SQLite as one: a function takes a limited number of arguments.
//!
//! Each value is its kind (one byte), the length of its bytes (8 bytes) and the bytes.

use rusqlite::types::ValueRef;

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;
const BLOB: u8 = 4;

/// All values in one.
pub(super) fn packed<'a>(values: impl Iterator<Item = ValueRef<'a>>) -> Vec<u8> {
    let mut pack = Vec::new();
    for value in values {
        match value {
            ValueRef::Null => push(&mut pack, NULL, &[]),
            ValueRef::Integer(number) => push(&mut pack, INTEGER, &number.to_le_bytes()),
            ValueRef::Real(number) => push(&mut pack, REAL, &number.to_le_bytes()),
            ValueRef::Text(bytes) => push(&mut pack, TEXT, bytes),
            ValueRef::Blob(bytes) => push(&mut pack, BLOB, bytes),
        }
    }
    pack
}

fn push(pack: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    pack.push(kind);
    pack.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    pack.extend_from_slice(bytes);
}

/// The values of a pack; the last is `None` if it is not a pack.
pub(super) fn unpacked(mut pack: &[u8]) -> impl Iterator<Item = Option<ValueRef<'_>>> {
    std::iter::from_fn(move || {
        if pack.is_empty() {
            return None;
        }
        let next = first(pack);
        pack = next.map_or(&[], |(_, rest)| rest);
        Some(next.map(|(value, _)| value))
    })
}

fn first(pack: &[u8]) -> Option<(ValueRef<'_>, &[u8])> {
    let (kind, rest) = pack.split_first()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (bytes, rest) = rest.split_at_checked(length)?;
    let value = match *kind {
        NULL => ValueRef::Null,
        INTEGER => ValueRef::Integer(i64::from_le_bytes(bytes.try_into().ok()?)),
        REAL => ValueRef::Real(f64::from_le_bytes(bytes.try_into().ok()?)),
        TEXT => ValueRef::Text(bytes),
        BLOB => ValueRef::Blob(bytes),
        _ => return None,
    };
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_kinds_come_back_and_a_torn_pack_is_seen() {
        let values = [
            ValueRef::Null,
            ValueRef::Integer(-5),
            ValueRef::Real(0.5),
            ValueRef::Text(b"a"),
            ValueRef::Blob(&[]),
        ];
        let pack = packed(values.into_iter());
        let back: Vec<_> = unpacked(&pack).collect();
        assert_eq!(back, values.map(Some));
        assert_eq!(unpacked(&pack[..pack.len() - 1]).last(), Some(None));
    }
}
