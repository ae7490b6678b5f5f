//! Decodes values of SQL Server's types.

use std::fmt;

use super::date::{date_text, datetime2_text, offset_text, time_text};
use super::text::decode_text;
use super::xml;
use crate::fields::{Fields, utf16};

/// A type with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SqlType {
    /// `system_type_id`.
    pub id: u8,
    /// Bytes of a value; -1 for no limit.
    pub length: i16,
    /// Digits of a decimal.
    pub precision: u8,
    /// Digits after the point, of a decimal or of seconds.
    pub scale: u8,
    /// Collation of text.
    pub collation: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `NULL`
    Null,
    /// `bit` to `bigint`
    Integer(i64),
    /// `real` and `float`
    Real(f64),
    /// `decimal`, `numeric`, `money`: the digits, and how many of them are after the point.
    Decimal(i128, u8),
    /// Text, dates, times, `uniqueidentifier`, `xml`
    Text(String),
    /// `binary`, unsupported types, and `xml` that is not understood
    Binary(Vec<u8>),
}

/// Digits after the point of `money`.
pub(super) const MONEY_SCALE: u8 = 4;

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Real(value) => write!(f, "{value}"),
            Self::Decimal(digits, scale) => {
                let unit = 10_u128.pow(u32::from((*scale).min(38)));
                let sign = if *digits < 0 { "-" } else { "" };
                let digits = digits.unsigned_abs();
                write!(f, "{sign}{}", digits / unit)?;
                if *scale > 0 {
                    write!(f, ".{:0width$}", digits % unit, width = usize::from(*scale))?;
                }
                Ok(())
            }
            Self::Text(text) => f.write_str(text),
            Self::Binary(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
            }
        }
    }
}

/// Numbers of the types.
pub(super) mod id {
    pub(crate) const IMAGE: u8 = 34;
    pub(crate) const TEXT: u8 = 35;
    pub(crate) const GUID: u8 = 36;
    pub(crate) const DATE: u8 = 40;
    pub(crate) const TIME: u8 = 41;
    pub(crate) const DATETIME2: u8 = 42;
    pub(crate) const DATETIMEOFFSET: u8 = 43;
    pub(crate) const TINYINT: u8 = 48;
    pub(crate) const SMALLINT: u8 = 52;
    pub(crate) const INT: u8 = 56;
    pub(crate) const SMALLDATETIME: u8 = 58;
    pub(crate) const REAL: u8 = 59;
    pub(crate) const MONEY: u8 = 60;
    pub(crate) const DATETIME: u8 = 61;
    pub(crate) const FLOAT: u8 = 62;
    pub(crate) const SQL_VARIANT: u8 = 98;
    pub(crate) const NTEXT: u8 = 99;
    pub(crate) const BIT: u8 = 104;
    pub(crate) const DECIMAL: u8 = 106;
    pub(crate) const NUMERIC: u8 = 108;
    pub(crate) const SMALLMONEY: u8 = 122;
    pub(crate) const BIGINT: u8 = 127;
    pub(crate) const VARBINARY: u8 = 165;
    pub(crate) const VARCHAR: u8 = 167;
    pub(crate) const BINARY: u8 = 173;
    pub(crate) const CHAR: u8 = 175;
    pub(crate) const TIMESTAMP: u8 = 189;
    pub(crate) const NVARCHAR: u8 = 231;
    pub(crate) const NCHAR: u8 = 239;
    pub(crate) const UDT: u8 = 240;
    pub(crate) const XML: u8 = 241;
    pub(crate) const JSON: u8 = 244;
}

impl SqlType {
    /// Reads the packed form of `sysrscols`.
    pub(super) fn from_packed(packed: u32, collation: u32) -> Self {
        let [id, second, third, _] = packed.to_le_bytes();
        let mut this = Self {
            id,
            length: u16::from_le_bytes([second, third]).cast_signed(),
            precision: 0,
            scale: 0,
            collation,
        };
        match id {
            id::DECIMAL | id::NUMERIC => {
                (this.precision, this.scale) = (second, third);
            }
            id::TIME | id::DATETIME2 | id::DATETIMEOFFSET => this.scale = second,
            _ => {}
        }
        this
    }

    /// Bytes of a value in the fixed part of a row; `None` for a type of variable length.
    pub(super) fn fixed_bytes(&self) -> Option<usize> {
        let time = match self.scale {
            0..=2 => 3,
            3..=4 => 4,
            _ => 5,
        };
        Some(match self.id {
            id::TINYINT | id::BIT => 1,
            id::SMALLINT => 2,
            id::DATE => 3,
            id::INT | id::REAL | id::SMALLMONEY | id::SMALLDATETIME => 4,
            id::BIGINT | id::FLOAT | id::MONEY | id::DATETIME | id::TIMESTAMP => 8,
            id::DECIMAL | id::NUMERIC => match self.precision {
                0..=9 => 5,
                10..=19 => 9,
                20..=28 => 13,
                _ => 17,
            },
            id::TIME => time,
            id::DATETIME2 => time + 3,
            id::DATETIMEOFFSET => time + 5,
            id::GUID => 16,
            id::CHAR | id::NCHAR | id::BINARY => usize::try_from(self.length).ok()?,
            _ => return None,
        })
    }

    pub(super) fn is_decimal(&self) -> bool {
        matches!(self.id, id::DECIMAL | id::NUMERIC)
    }

    /// Whether values may be on their own pages, with a pointer in the row.
    pub(super) fn is_old_lob(&self) -> bool {
        matches!(self.id, id::TEXT | id::NTEXT | id::IMAGE)
    }

    /// Whether values are returned as bytes, without decoding.
    pub fn is_opaque(&self) -> bool {
        matches!(self.id, id::UDT | id::JSON)
    }

    pub fn declaration(&self) -> String {
        let characters = |size: i16| match self.length {
            -1 | 0 => "max".to_owned(),
            length => (length / size).to_string(),
        };
        match self.id {
            id::IMAGE => "image".to_owned(),
            id::TEXT => "text".to_owned(),
            id::GUID => "uniqueidentifier".to_owned(),
            id::DATE => "date".to_owned(),
            id::TIME => format!("time({})", self.scale),
            id::DATETIME2 => format!("datetime2({})", self.scale),
            id::DATETIMEOFFSET => format!("datetimeoffset({})", self.scale),
            id::TINYINT => "tinyint".to_owned(),
            id::SMALLINT => "smallint".to_owned(),
            id::INT => "int".to_owned(),
            id::SMALLDATETIME => "smalldatetime".to_owned(),
            id::REAL => "real".to_owned(),
            id::MONEY => "money".to_owned(),
            id::DATETIME => "datetime".to_owned(),
            id::FLOAT => "float".to_owned(),
            id::SQL_VARIANT => "sql_variant".to_owned(),
            id::NTEXT => "ntext".to_owned(),
            id::BIT => "bit".to_owned(),
            id::DECIMAL => format!("decimal({},{})", self.precision, self.scale),
            id::NUMERIC => format!("numeric({},{})", self.precision, self.scale),
            id::SMALLMONEY => "smallmoney".to_owned(),
            id::BIGINT => "bigint".to_owned(),
            id::VARBINARY => format!("varbinary({})", characters(1)),
            id::VARCHAR => format!("varchar({})", characters(1)),
            id::BINARY => format!("binary({})", characters(1)),
            id::CHAR => format!("char({})", characters(1)),
            id::TIMESTAMP => "timestamp".to_owned(),
            id::NVARCHAR => format!("nvarchar({})", characters(2)),
            id::NCHAR => format!("nchar({})", characters(2)),
            id::UDT => "udt".to_owned(),
            id::XML => "xml".to_owned(),
            id::JSON => "json".to_owned(),
            other => format!("type {other}"),
        }
    }

    /// Decodes a value; the error describes what is invalid.
    pub(super) fn decode(&self, bytes: &[u8]) -> Result<Value, String> {
        if let Some(expected) = self.fixed_bytes().filter(|_| !self.is_text_or_binary())
            && bytes.len() != expected
        {
            return Err(format!(
                "a {} has {} bytes, not {expected}",
                self.declaration(),
                bytes.len()
            ));
        }
        let fields = Fields(bytes);
        Ok(match self.id {
            id::TINYINT => Value::Integer(fields.u8(0).into()),
            id::BIT => Value::Integer((fields.u8(0) & 1).into()),
            id::SMALLINT => Value::Integer(fields.u16(0).cast_signed().into()),
            id::INT => Value::Integer(fields.u32(0).cast_signed().into()),
            id::BIGINT => Value::Integer(fields.u64(0).cast_signed()),
            id::REAL => Value::Real(f32::from_le_bytes(fields.array(0)).into()),
            id::FLOAT => Value::Real(f64::from_le_bytes(fields.array(0))),
            id::MONEY => Value::Decimal(fields.u64(0).cast_signed().into(), MONEY_SCALE),
            id::SMALLMONEY => Value::Decimal(fields.u32(0).cast_signed().into(), MONEY_SCALE),
            id::DECIMAL | id::NUMERIC => self.decimal(bytes)?,
            id::DATETIME => Value::Text(datetime_text(fields.u32(0), fields.u32(4).cast_signed())?),
            id::SMALLDATETIME => {
                let (minutes, days) = (fields.u16(0), fields.u16(2));
                Value::Text(datetime_text(u32::from(minutes) * 60 * 300, days.into())?)
            }
            id::DATE => Value::Text(date_text(little(bytes) as u32)?),
            id::TIME => Value::Text(time_text(little(bytes), self.scale)?),
            id::DATETIME2 => {
                let (time, date) = bytes.split_at(bytes.len() - 3);
                Value::Text(datetime2_text(
                    little(date) as u32,
                    little(time),
                    self.scale,
                )?)
            }
            id::DATETIMEOFFSET => {
                let (time, rest) = bytes.split_at(bytes.len() - 5);
                let rest = Fields(rest);
                let days = little(rest.bytes(0, 3)) as u32;
                let offset = rest.u16(3).cast_signed();
                Value::Text(offset_text(days, little(time), self.scale, offset)?)
            }
            id::GUID => Value::Text(fields.guid(0).to_string()),
            id::CHAR | id::VARCHAR | id::TEXT => Value::Text(decode_text(bytes, self.collation)),
            id::NCHAR | id::NVARCHAR | id::NTEXT => Value::Text(utf16(bytes)),
            id::TIMESTAMP => Value::Binary(bytes.iter().rev().copied().collect()),
            id::SQL_VARIANT => variant(bytes)?,
            // A document that is not understood stays as it is stored; `undecoded` tells.
            id::XML => match xml::decode(bytes) {
                Ok(text) => Value::Text(text),
                Err(_) => Value::Binary(bytes.to_vec()),
            },
            _ => Value::Binary(bytes.to_vec()),
        })
    }

    /// Why a value that was decoded is still in its stored form, though its type has another.
    pub(super) fn undecoded(&self, value: &Value) -> Option<String> {
        match value {
            Value::Binary(bytes) if self.id == id::XML => xml::decode(bytes).err(),
            _ => None,
        }
    }

    fn is_text_or_binary(&self) -> bool {
        matches!(self.id, id::CHAR | id::NCHAR | id::BINARY)
    }

    fn decimal(&self, bytes: &[u8]) -> Result<Value, String> {
        let Some((sign, digits)) = bytes.split_first() else {
            return Err("an empty decimal".to_owned());
        };
        let mut wide = [0; 16];
        wide.iter_mut()
            .zip(digits)
            .for_each(|(slot, byte)| *slot = *byte);
        let magnitude = i128::try_from(u128::from_le_bytes(wide))
            .map_err(|_| "a decimal of more than 38 digits".to_owned())?;
        let digits = if *sign == 1 { magnitude } else { -magnitude };
        Ok(Value::Decimal(digits, self.scale.min(38)))
    }
}

/// A little-endian number of up to 8 bytes.
fn little(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide.iter_mut()
        .zip(bytes)
        .for_each(|(slot, byte)| *slot = *byte);
    u64::from_le_bytes(wide)
}

/// `datetime`: ticks of 1/300 second, days since 1900.
pub(crate) fn datetime_text(ticks: u32, days: i32) -> Result<String, String> {
    /// Days from 0001-01-01 to 1900-01-01.
    const DAYS_TO_1900: i32 = 693_595;
    let milliseconds = (u64::from(ticks) * 10 + 1) / 3;
    let days = days
        .checked_add(DAYS_TO_1900)
        .and_then(|days| u32::try_from(days).ok())
        .ok_or_else(|| format!("a datetime {days} days from 1900"))?;
    datetime2_text(days, milliseconds, 3)
}

/// A `sql_variant`: its base type, its version, the properties of the type, the value.
fn variant(bytes: &[u8]) -> Result<Value, String> {
    let fields = Fields(bytes);
    let mut base = SqlType {
        id: fields.u8(0),
        length: -1,
        ..SqlType::default()
    };
    let at = match base.id {
        id::DECIMAL | id::NUMERIC => {
            (base.precision, base.scale) = (fields.u8(2), fields.u8(3));
            4
        }
        id::TIME | id::DATETIME2 | id::DATETIMEOFFSET => {
            base.scale = fields.u8(2);
            3
        }
        id::BINARY | id::VARBINARY => 4,
        id::CHAR | id::VARCHAR | id::NCHAR | id::NVARCHAR => {
            base.collation = fields.u32(4);
            8
        }
        id::SQL_VARIANT => return Err("a sql_variant of sql_variant".to_owned()),
        _ => 2,
    };
    base.decode(bytes.get(at..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(id: u8, scale: u8, bytes: &[u8]) -> String {
        let precision = 9;
        let sql = SqlType {
            id,
            precision,
            scale,
            ..SqlType::default()
        };
        sql.decode(bytes).unwrap().to_string()
    }

    #[test]
    fn values_are_those_of_the_bytes() {
        assert_eq!(decode(id::SMALLINT, 0, &[0xFE, 0xFF]), "-2");
        assert_eq!(decode(id::MONEY, 0, &[0xFF; 8]), "-0.0001");
        assert_eq!(decode(id::DECIMAL, 2, &[0, 57, 48, 0, 0]), "-123.45");
        assert_eq!(decode(id::DATETIME, 0, &[0; 8]), "1900-01-01 00:00:00.000");
        let last = (300 * 86_400_u32 - 1).to_le_bytes();
        let bytes = [&last[..], &(-53_690_i32).to_le_bytes()].concat();
        assert_eq!(decode(id::DATETIME, 0, &bytes), "1753-01-01 23:59:59.997");
        assert_eq!(decode(id::DATE, 0, &[0, 0, 0]), "0001-01-01");
        assert_eq!(decode(id::BINARY, 0, &[1, 0xAB]), "0x01AB");
        let int = SqlType {
            id: id::INT,
            ..SqlType::default()
        };
        assert!(int.decode(&[1, 2]).is_err());
        let text = [
            &[id::NVARCHAR, 1, 8, 0, 9, 4, 0, 0][..],
            &[b'h', 0, b'i', 0],
        ]
        .concat();
        assert_eq!(decode(id::SQL_VARIANT, 0, &text), "hi");
    }
}
