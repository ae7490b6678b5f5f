//! `TYPE_INFO`: types of columns, parameters and values (MS-TDS 2.2.5.4 to 2.2.5.6).

use crate::Error;
use crate::collation::Collation;
use crate::cursor::Cursor;

/// Instead of a length: up to 2 GB, in pieces.
const MAX: u16 = 0xFFFF;
/// Maximum length of text or binary without `max`.
const SHORT_BYTES_MAX: u16 = 8000;
const PRECISION_MAX: u8 = 38;
const FRACTION_MAX: u8 = 7;

/// Maximum length of a value of a text or binary type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Bytes, at most 8000.
    Bytes(u16),
    /// `max`: sent in pieces.
    Max,
}

/// A type with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataType {
    /// The type of a bare NULL.
    Null,
    /// `bit`
    Bit,
    /// `tinyint`, `smallint`, `int` or `bigint`, by size in bytes: 1, 2, 4 or 8.
    Integer(u8),
    /// `real` or `float`, by size in bytes: 4 or 8.
    Float(u8),
    /// `smallmoney` or `money`, by size in bytes: 4 or 8.
    Money(u8),
    /// `decimal` and `numeric`: precision and scale.
    Decimal {
        /// Number of digits.
        precision: u8,
        /// Number of digits after the point.
        scale: u8,
    },
    /// `uniqueidentifier`
    Guid,
    /// `date`
    Date,
    /// `time(n)`
    Time(u8),
    /// `datetime2(n)`
    DateTime2(u8),
    /// `datetimeoffset(n)`
    DateTimeOffset(u8),
    /// `smalldatetime` or `datetime`, by size in bytes: 4 or 8.
    DateTime(u8),
    /// `nvarchar`, `nchar`, `ntext`
    NVarChar(Length, Collation),
    /// `varchar`, `char`, `text`
    VarChar(Length, Collation),
    /// `varbinary`, `binary`, `image`
    VarBinary(Length),
    /// `xml`, sent as text in pieces.
    Xml,
    /// `sql_variant`
    Variant,
}

impl DataType {
    /// `nvarchar(n)` in the server's collation; `nvarchar(max)` above 4000 characters.
    pub fn nvarchar(characters: usize) -> Self {
        let length = match u16::try_from(characters.saturating_mul(2)) {
            Ok(bytes) if bytes <= SHORT_BYTES_MAX => Length::Bytes(bytes.max(2)),
            _ => Length::Max,
        };
        Self::NVarChar(length, Collation::DEFAULT)
    }

    /// `varbinary(n)`; `varbinary(max)` above 8000 bytes.
    pub fn varbinary(bytes: usize) -> Self {
        Self::VarBinary(match u16::try_from(bytes) {
            Ok(bytes) if bytes <= SHORT_BYTES_MAX => Length::Bytes(bytes.max(1)),
            _ => Length::Max,
        })
    }

    /// Writes the type as it precedes a column's name or a parameter's value.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Null => out.push(0x1F),
            Self::Bit => out.extend([0x68, 1]),
            Self::Integer(bytes) => out.extend([0x26, bytes]),
            Self::Float(bytes) => out.extend([0x6D, bytes]),
            Self::Money(bytes) => out.extend([0x6E, bytes]),
            Self::Decimal { precision, scale } => {
                out.extend([0x6C, decimal_bytes(precision), precision, scale]);
            }
            Self::Guid => out.extend([0x24, 16]),
            Self::Date => out.push(0x28),
            Self::Time(scale) => out.extend([0x29, scale]),
            Self::DateTime2(scale) => out.extend([0x2A, scale]),
            Self::DateTimeOffset(scale) => out.extend([0x2B, scale]),
            Self::DateTime(bytes) => out.extend([0x6F, bytes]),
            Self::NVarChar(length, collation) => text(out, 0xE7, length, collation),
            Self::VarChar(length, collation) => text(out, 0xA7, length, collation),
            Self::VarBinary(length) => {
                out.push(0xA5);
                out.extend(length_code(length).to_le_bytes());
            }
            Self::Xml => out.extend([0xF1, 0]),
            Self::Variant => {
                out.push(0x62);
                out.extend(8009_u32.to_le_bytes());
            }
        }
    }

    /// Reads a type and the layout of its values.
    pub(crate) fn parse(from: &mut Cursor<'_>) -> Result<(Self, Layout), Error> {
        let code = from.u8()?;
        if let Some((data_type, bytes)) = fixed(code) {
            return Ok((data_type, Layout::Fixed(bytes)));
        }
        let data_type = match code {
            0x68 => expect(from.u8()?, &[1]).map(|_| Self::Bit)?,
            0x26 => expect(from.u8()?, &[1, 2, 4, 8]).map(Self::Integer)?,
            0x6D => expect(from.u8()?, &[4, 8]).map(Self::Float)?,
            0x6E => expect(from.u8()?, &[4, 8]).map(Self::Money)?,
            0x6F => expect(from.u8()?, &[4, 8]).map(Self::DateTime)?,
            0x24 => expect(from.u8()?, &[16]).map(|_| Self::Guid)?,
            0x6A | 0x6C | 0x37 | 0x3F => decimal(from)?,
            0x28 => Self::Date,
            0x29 => Self::Time(fraction(from)?),
            0x2A => Self::DateTime2(fraction(from)?),
            0x2B => Self::DateTimeOffset(fraction(from)?),
            0xE7 | 0xEF | 0xA7 | 0xAF | 0xA5 | 0xAD => return sized(code, from),
            0x23 | 0x63 | 0x22 => return large(code, from),
            0xF1 => return xml(from),
            0x62 => {
                let _longest = from.u32()?;
                return Ok((Self::Variant, Layout::LongPrefix));
            }
            0xF0 => {
                return Err(Error::NotSupported {
                    what: "a user-defined type",
                });
            }
            0xF3 => {
                return Err(Error::NotSupported {
                    what: "a table-valued parameter",
                });
            }
            _ => return Err(Error::invalid("data type", code)),
        };
        Ok((data_type, Layout::BytePrefix))
    }
}

/// How the length of a value is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Always this many bytes; never NULL, except for the type of a bare NULL.
    Fixed(usize),
    /// One byte before it; 0 is NULL.
    BytePrefix,
    /// Two bytes before it; 0xFFFF is NULL.
    WordPrefix,
    /// Four bytes before it; 0 is NULL in a variant, 0xFFFFFFFF in the old large types.
    LongPrefix,
    /// Pieces, each preceded by four bytes, after an eight-byte total.
    Pieces,
}

fn fixed(code: u8) -> Option<(DataType, usize)> {
    Some(match code {
        0x1F => (DataType::Null, 0),
        0x30 => (DataType::Integer(1), 1),
        0x32 => (DataType::Bit, 1),
        0x34 => (DataType::Integer(2), 2),
        0x38 => (DataType::Integer(4), 4),
        0x7F => (DataType::Integer(8), 8),
        0x3A => (DataType::DateTime(4), 4),
        0x3D => (DataType::DateTime(8), 8),
        0x3B => (DataType::Float(4), 4),
        0x3E => (DataType::Float(8), 8),
        0x3C => (DataType::Money(8), 8),
        0x7A => (DataType::Money(4), 4),
        _ => return None,
    })
}

fn expect(found: u8, valid: &[u8]) -> Result<u8, Error> {
    match valid.contains(&found) {
        true => Ok(found),
        false => Err(Error::invalid("length of a data type", found)),
    }
}

fn fraction(from: &mut Cursor<'_>) -> Result<u8, Error> {
    let scale = from.u8()?;
    match scale <= FRACTION_MAX {
        true => Ok(scale),
        false => Err(Error::invalid("scale of a time", scale)),
    }
}

fn decimal(from: &mut Cursor<'_>) -> Result<DataType, Error> {
    let (bytes, precision, scale) = (from.u8()?, from.u8()?, from.u8()?);
    expect(bytes, &[5, 9, 13, 17])?;
    if !(1..=PRECISION_MAX).contains(&precision) || scale > precision {
        return Err(Error::invalid("precision of a decimal", precision));
    }
    Ok(DataType::Decimal { precision, scale })
}

fn collation(from: &mut Cursor<'_>) -> Result<Collation, Error> {
    from.bytes().map(Collation)
}

fn sized(code: u8, from: &mut Cursor<'_>) -> Result<(DataType, Layout), Error> {
    let (length, layout) = match from.u16()? {
        MAX => (Length::Max, Layout::Pieces),
        bytes if bytes <= SHORT_BYTES_MAX => (Length::Bytes(bytes), Layout::WordPrefix),
        bytes => return Err(Error::invalid("length of a data type", bytes)),
    };
    let data_type = match code {
        0xE7 | 0xEF => DataType::NVarChar(length, collation(from)?),
        0xA7 | 0xAF => DataType::VarChar(length, collation(from)?),
        _ => DataType::VarBinary(length),
    };
    Ok((data_type, layout))
}

/// `text`, `ntext` and `image`, as sent by old drivers.
fn large(code: u8, from: &mut Cursor<'_>) -> Result<(DataType, Layout), Error> {
    let _longest = from.u32()?;
    let data_type = match code {
        0x23 => DataType::VarChar(Length::Max, collation(from)?),
        0x63 => DataType::NVarChar(Length::Max, collation(from)?),
        _ => DataType::VarBinary(Length::Max),
    };
    Ok((data_type, Layout::LongPrefix))
}

fn xml(from: &mut Cursor<'_>) -> Result<(DataType, Layout), Error> {
    if from.u8()? != 0 {
        // A schema: database, owner and collection.
        from.short_text()?;
        from.short_text()?;
        from.long_text()?;
    }
    Ok((DataType::Xml, Layout::Pieces))
}

fn length_code(length: Length) -> u16 {
    match length {
        Length::Bytes(bytes) => bytes,
        Length::Max => MAX,
    }
}

fn text(out: &mut Vec<u8>, code: u8, length: Length, collation: Collation) {
    out.push(code);
    out.extend(length_code(length).to_le_bytes());
    out.extend(collation.0);
}

/// Bytes of a decimal of `precision` digits, including its sign.
pub(crate) fn decimal_bytes(precision: u8) -> u8 {
    match precision {
        ..=9 => 5,
        10..=19 => 9,
        20..=28 => 13,
        _ => 17,
    }
}

/// Bytes of a time of day with `scale` fractional digits.
pub(crate) fn time_bytes(scale: u8) -> usize {
    match scale {
        ..=2 => 3,
        3..=4 => 4,
        _ => 5,
    }
}
