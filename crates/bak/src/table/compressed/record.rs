//! Records of compressed rows: for each column four bits that describe its value, then the values of
//! up to eight bytes, then the longer ones.

use crate::fields::Fields;

/// Bit of the first byte of every compressed record.
const COMPRESSED: u8 = 1;

/// Bit of the first byte: longer values follow.
const HAS_LONG: u8 = 0x20;

/// Kinds in bits 2 to 4 of the first byte.
const ROW: u8 = 0;
const FORWARDED_ROW: u8 = 4;

/// Bit of an offset: the value is a pointer to it.
const COMPLEX: u16 = 0x8000;

/// Columns for which there is one length, so that readers can skip them.
const CLUSTER: usize = 30;

/// What a record has for a column. Positions are relative to its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Null,
    /// Zero, an empty value, or exactly the prefix of the page.
    Empty,
    True,
    Bytes {
        at: u16,
        length: u16,
    },
    /// A pointer to the value.
    Pointer {
        at: u16,
        length: u16,
    },
    /// An entry in the dictionary of the page.
    Symbol(u8),
}

impl Slot {
    /// Bytes among the values of up to eight bytes.
    fn short_bytes(bits: u8) -> usize {
        match bits {
            2..=9 => usize::from(bits) - 1,
            0xC => 1,
            _ => 0,
        }
    }
}

/// Whether a record is compressed.
pub(in crate::table) fn is_compressed(record: &[u8]) -> bool {
    record.first().is_some_and(|first| first & COMPRESSED != 0)
}

/// Whether a compressed record is a row that exists: no stub of a row elsewhere, and not deleted.
pub(super) fn is_row(record: &[u8]) -> bool {
    let kind = record.first().map(|first| first >> 2 & 7);
    matches!(kind, Some(ROW | FORWARDED_ROW))
}

/// Fills `slots` with what a record has for its columns, in physical order.
pub(super) fn parse(record: &[u8], slots: &mut Vec<Slot>) -> Result<(), &'static str> {
    const OUTSIDE: &str = "its columns do not fit into it";
    slots.clear();
    let first = record.first().ok_or(OUTSIDE)?;
    let fields = Fields(record);
    let (count, mut at) = prefix_number(record.get(1..).unwrap_or_default()).ok_or(OUTSIDE)?;
    at += 1;
    let bits = record.get(at..at + count.div_ceil(2)).ok_or(OUTSIDE)?;
    let clusters = count.saturating_sub(1) / CLUSTER;
    at += bits.len() + clusters;
    let bits = bits.iter().flat_map(|byte| [byte & 15, byte >> 4]);
    let bits = || bits.clone().take(count);
    // The longer values begin behind the last short one.
    let long_at = at + bits().map(Slot::short_bytes).sum::<usize>();
    if long_at > record.len() {
        return Err(OUTSIDE);
    }
    let (long_count, ends_at) = match first & HAS_LONG {
        0 => (0, long_at),
        _ => (usize::from(fields.u16(long_at + 1)), long_at + 3),
    };
    let values_at = ends_at + 2 * long_count + clusters;
    let (mut long, mut begin) = (0, 0);
    for bits in bits() {
        let length = Slot::short_bytes(bits);
        slots.push(match bits {
            0 => Slot::Null,
            1 => Slot::Empty,
            2..=9 => Slot::Bytes {
                at: at as u16,
                length: length as u16,
            },
            0xA => {
                if long >= long_count {
                    return Err("a long value is missing");
                }
                let end = fields.u16(ends_at + 2 * long);
                long += 1;
                let length = (end & !COMPLEX).checked_sub(begin).ok_or(OUTSIDE)?;
                let at = values_at + usize::from(begin);
                if at + usize::from(length) > record.len() {
                    return Err(OUTSIDE);
                }
                begin = end & !COMPLEX;
                let at = at as u16;
                match end & COMPLEX {
                    0 => Slot::Bytes { at, length },
                    _ => Slot::Pointer { at, length },
                }
            }
            0xB => Slot::True,
            0xC => Slot::Symbol(fields.u8(at)),
            _ => return Err("a column is described by four bits of unknown meaning"),
        });
        at += length;
    }
    Ok(())
}

/// A number of one byte, or of two if the first has its highest bit set; and its length.
pub(super) fn prefix_number(bytes: &[u8]) -> Option<(usize, usize)> {
    let first = usize::from(*bytes.first()?);
    if first & 0x80 == 0 {
        return Some((first, 1));
    }
    let second = usize::from(*bytes.get(1)?);
    Some(((first & 0x7F) << 8 | second, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(record: &[u8]) -> Result<Vec<Slot>, &'static str> {
        let mut slots = Vec::new();
        parse(record, &mut slots).map(|()| slots)
    }

    #[test]
    fn a_record_is_taken_apart() {
        // A byte, a long value of 10 bytes, NULL, true, a pointer of 16 bytes, a symbol.
        let mut record = vec![0x21, 6, 0xA2, 0xB0, 0xCA, 0x85, 7, 1, 2, 0, 10, 0, 26, 0x80];
        record.extend(b"ten bytes!");
        record.extend([9; 16]);
        assert!(is_compressed(&record) && is_row(&record));
        let bytes = |at, length| Slot::Bytes { at, length };
        let expected = [
            bytes(5, 1),
            bytes(14, 10),
            Slot::Null,
            Slot::True,
            Slot::Pointer { at: 24, length: 16 },
            Slot::Symbol(7),
        ];
        assert_eq!(slots(&record).unwrap(), expected);
        for end in 0..record.len() {
            assert!(slots(&record[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn wide_records_have_lengths_of_clusters_and_two_bytes_of_columns() {
        // 200 columns of one byte, with six lengths of clusters.
        let mut record = vec![0x01, 0x80, 200];
        record.extend([0x22; 100]);
        record.extend([30; 6]);
        let at = record.len() as u16;
        record.extend(0..200);
        let found = slots(&record).unwrap();
        assert_eq!(found.len(), 200);
        let last = Slot::Bytes {
            at: at + 199,
            length: 1,
        };
        assert_eq!(found[199], last);
    }

    #[test]
    fn only_rows_that_exist_are_rows() {
        let kinds: Vec<bool> = (0..8).map(|kind| is_row(&[1 | kind << 2])).collect();
        assert_eq!(
            kinds,
            [true, false, false, false, true, false, false, false]
        );
        assert!(slots(&[1, 1, 0x0D]).is_err(), "unknown bits");
        assert!(slots(&[1, 1, 0x0A]).is_err(), "no long values at all");
    }
}
