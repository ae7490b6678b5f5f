//! Values without the bytes that they do not need.

use super::{scsu, vardecimal};
use crate::fields::utf16;
use crate::table::value::{MONEY_SCALE, SqlType, Value, datetime_text, id};

/// Bytes of the ticks of a `datetime`.
const TICKS_BYTES: usize = 4;

impl SqlType {
    /// Decodes a value of a compressed row; the error describes what is invalid.
    pub(super) fn decode_compressed(&self, bytes: &[u8]) -> Result<Value, String> {
        let width = self.fixed_bytes().unwrap_or(0);
        if width > 0 && bytes.len() > width {
            return Err(self.too_long(bytes.len(), width));
        }
        match self.id {
            id::SMALLINT | id::INT | id::BIGINT => Ok(Value::Integer(integer(bytes))),
            id::MONEY | id::SMALLMONEY => Ok(Value::Decimal(integer(bytes).into(), MONEY_SCALE)),
            id::DECIMAL | id::NUMERIC => decode_vardecimal(bytes, self.scale),
            id::DATETIME => datetime(bytes).map(Value::Text),
            id::TINYINT | id::BIT | id::DATE | id::TIME | id::DATETIME2 | id::DATETIMEOFFSET => {
                self.decode(&padded(bytes, width, 0))
            }
            id::BINARY => Ok(Value::Binary(padded(bytes, width, 0))),
            id::GUID if bytes.is_empty() => self.decode(&padded(bytes, width, 0)),
            id::CHAR => self.decode(&padded(bytes, width, b' ')),
            id::REAL | id::FLOAT | id::SMALLDATETIME => self.decode(&shifted(bytes, width)),
            id::TIMESTAMP => Ok(Value::Binary(shifted(bytes, width))),
            id::NCHAR => {
                let mut text = unicode(bytes)?;
                let missing = (width / 2).saturating_sub(text.encode_utf16().count());
                text.extend(std::iter::repeat_n(' ', missing));
                Ok(Value::Text(text))
            }
            // Without a limit of its length it is stored as it is.
            id::NVARCHAR if self.length > 0 => unicode(bytes).map(Value::Text),
            _ => self.decode(bytes),
        }
    }

    /// Bytes that a value may get beyond those that are stored.
    pub(super) fn padding(&self) -> usize {
        self.fixed_bytes().unwrap_or(0)
    }

    fn too_long(&self, found: usize, width: usize) -> String {
        let name = self.declaration();
        format!("a {name} has {found} bytes, more than {width}")
    }
}

/// Decodes a decimal of variable length, as tables without compression may have it, too.
pub(in crate::table) fn decode_vardecimal(bytes: &[u8], scale: u8) -> Result<Value, String> {
    let scale = scale.min(38);
    let digits = vardecimal::decode(bytes, scale)?;
    Ok(Value::Decimal(digits, scale))
}

/// A big-endian integer whose highest bit is inverted, of up to 8 bytes.
fn integer(bytes: &[u8]) -> i64 {
    let Some(bits) = (bytes.len() as u32 * 8).checked_sub(1) else {
        return 0;
    };
    let number = big(bytes);
    (i128::from(number) - (1 << bits)) as i64
}

fn big(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// `datetime`: only ticks of the first day, or days and then ticks without a sign.
fn datetime(bytes: &[u8]) -> Result<String, String> {
    let (days, ticks) = match bytes.len().checked_sub(TICKS_BYTES) {
        None | Some(0) => (0, integer(bytes)),
        Some(split) => {
            let (days, ticks) = bytes.split_at(split);
            (integer(days), big(ticks).cast_signed())
        }
    };
    let ticks = u32::try_from(ticks).map_err(|_| format!("a datetime of {ticks} ticks"))?;
    let days = i32::try_from(days).map_err(|_| format!("a datetime {days} days from 1900"))?;
    datetime_text(ticks, days)
}

/// A value whose last bytes are not stored.
fn padded(bytes: &[u8], width: usize, filler: u8) -> Vec<u8> {
    let mut whole = bytes.to_vec();
    whole.resize(width, filler);
    whole
}

/// A value whose first bytes are not stored: they are zero.
fn shifted(bytes: &[u8], width: usize) -> Vec<u8> {
    let mut whole = vec![0; width.saturating_sub(bytes.len())];
    whole.extend_from_slice(bytes);
    whole
}

/// Text of an odd number of bytes is compressed, of an even number UTF-16.
fn unicode(bytes: &[u8]) -> Result<String, String> {
    if bytes.len().is_multiple_of(2) {
        return Ok(utf16(bytes));
    }
    let units = scsu::expand(bytes)?;
    Ok(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(id: u8, length: i16, scale: u8, bytes: &[u8]) -> String {
        let sql = SqlType {
            id,
            length,
            precision: 9,
            scale,
            collation: 0,
        };
        sql.decode_compressed(bytes).unwrap().to_string()
    }

    #[test]
    fn numbers_are_those_of_their_bytes() {
        for (bytes, number) in [
            (&[][..], "0"),
            (&[0x81], "1"),
            (&[0x7F], "-1"),
            (&[0x7F, 0x7E], "-130"),
            (&[0x80, 0x80], "128"),
        ] {
            assert_eq!(decode(id::INT, 4, 0, bytes), number);
        }
        assert_eq!(decode(id::BIGINT, 8, 0, &[0xFF; 8]), i64::MAX.to_string());
        assert_eq!(decode(id::BIGINT, 8, 0, &[0; 8]), i64::MIN.to_string());
        assert_eq!(decode(id::MONEY, 8, 0, &[0x7F]), "-0.0001");
        assert_eq!(decode(id::TINYINT, 1, 0, &[200]), "200");
        assert_eq!(decode(id::TINYINT, 1, 0, &[]), "0");
        assert_eq!(decode(id::REAL, 4, 0, &[0xC0, 0xBF]), "-1.5");
        assert_eq!(decode(id::FLOAT, 8, 0, &[0xF0, 0x3F]), "1");
        assert_eq!(
            decode(id::DECIMAL, 5, 2, &[0xC2, 0x1E, 0xDC, 0x20]),
            "123.45"
        );
        let long = SqlType {
            id: id::SMALLINT,
            ..SqlType::default()
        };
        assert!(long.decode_compressed(&[1, 2, 3]).is_err());
    }

    #[test]
    fn dates_and_texts_get_back_what_they_do_not_store() {
        let datetime = |bytes: &[u8]| decode(id::DATETIME, 8, 0, bytes);
        assert_eq!(datetime(&[]), "1900-01-01 00:00:00.000");
        assert_eq!(
            datetime(&[0x7F, 0x2E, 0x46, 0, 0, 0, 0]),
            "1753-01-01 00:00:00.000"
        );
        assert_eq!(datetime(&[0x81, 0x2C]), "1900-01-01 00:00:01.000");
        assert_eq!(
            datetime(&[0x81, 0, 0, 0x01, 0x2C]),
            "1900-01-02 00:00:01.000"
        );
        assert_eq!(decode(id::DATE, 3, 0, &[1]), "0001-01-02");
        assert_eq!(
            decode(id::SMALLDATETIME, 4, 0, &[1, 0]),
            "1900-01-02 00:00:00.000"
        );
        assert_eq!(decode(id::CHAR, 5, 0, b"ab"), "ab   ");
        assert_eq!(decode(id::NCHAR, 10, 0, b"abc"), "abc  ");
        assert_eq!(
            decode(id::NVARCHAR, 80, 0, &[0x71, 0x5C, 0x30, 0x75]),
            "山田"
        );
        assert_eq!(decode(id::NVARCHAR, 80, 0, b"Gray\x10"), "Gray");
        assert_eq!(decode(id::NVARCHAR, 0, 0, b"a\0b\0"), "ab");
        assert_eq!(decode(id::BINARY, 4, 0, &[1]), "0x01000000");
        assert_eq!(
            decode(id::TIMESTAMP, 8, 0, &[3, 0xFB, 0x83]),
            "0x000000000003FB83"
        );
    }
}
