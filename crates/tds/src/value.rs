//! Values of rows and parameters (MS-TDS 2.2.5.5).

use windlass_base::Guid;

use crate::Error;
use crate::collation::Collation;
use crate::cursor::{Cursor, utf16};
use crate::data_type::{DataType, Layout, Length, decimal_bytes, time_bytes};

const NULL_WORD: u16 = 0xFFFF;
const NULL_PIECES: u64 = u64::MAX;
const NULL_LONG: u32 = u32::MAX;
/// Maximum length of a piece of a `max` value.
const PIECE_BYTES: usize = 1 << 20;

/// A day, counted from 0001-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(pub u32);

/// A time of day in units of 100 ns, whatever scale it was sent with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay(pub u64);

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    /// `bit`
    Bit(bool),
    /// An integer of any size.
    Integer(i64),
    /// `real` and `float`
    Float(f64),
    /// `money` and `smallmoney`, in units of 1/10000.
    Money(i64),
    /// `decimal` and `numeric`
    Decimal {
        is_negative: bool,
        /// All digits, as one number.
        digits: u128,
        /// Number of digits after the point.
        scale: u8,
    },
    /// `uniqueidentifier`
    Guid(Guid),
    /// Text of any type.
    Text(String),
    /// Bytes of any type.
    Bytes(Vec<u8>),
    /// `date`
    Date(Day),
    /// `time`
    Time(TimeOfDay),
    /// `datetime2`
    DateTime2(Day, TimeOfDay),
    /// `datetimeoffset`: the moment in UTC, and minutes east of it.
    DateTimeOffset(Day, TimeOfDay, i16),
    /// `datetime`: days from 1900-01-01, and 1/300 seconds.
    DateTime(i32, u32),
    /// `smalldatetime`: days from 1900-01-01, and minutes.
    SmallDateTime(u16, u16),
}

impl Value {
    /// Writes the value with type `data_type`.
    ///
    /// # Errors
    /// [`Error::DoesNotFit`] if the type cannot represent the value. Nothing is written then.
    pub fn emit(&self, data_type: DataType, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        self.emit_inner(data_type, out)
            .ok_or(Error::DoesNotFit { data_type })
            .inspect_err(|_| out.truncate(start))
    }

    fn emit_inner(&self, data_type: DataType, out: &mut Vec<u8>) -> Option<()> {
        if *self == Self::Null {
            emit_null(data_type, out);
            return Some(());
        }
        match (data_type, self) {
            (DataType::NVarChar(length, _), Self::Text(text)) => wide(text, length, out),
            (DataType::Xml, Self::Text(text)) => wide(text, Length::Max, out),
            (DataType::VarBinary(length), Self::Bytes(bytes)) => sized(bytes, length, out),
            (DataType::VarChar(length, _), Self::Text(text)) if text.is_ascii() => {
                sized(text.as_bytes(), length, out)
            }
            (DataType::Variant, value) => value.emit_variant(out),
            _ => {
                let length_at = out.len();
                out.push(0);
                self.emit_short(data_type, out)?;
                out[length_at] = u8::try_from(out.len() - length_at - 1).ok()?;
                Some(())
            }
        }
    }

    /// A value with a one-byte length before it.
    fn emit_short(&self, data_type: DataType, out: &mut Vec<u8>) -> Option<()> {
        match (data_type, self) {
            (DataType::Bit, Self::Bit(bit)) => out.push(u8::from(*bit)),
            (DataType::Integer(bytes), Self::Integer(value)) => integer(*value, bytes, out)?,
            (DataType::Float(4), Self::Float(value)) => out.extend((*value as f32).to_le_bytes()),
            (DataType::Float(_), Self::Float(value)) => out.extend(value.to_le_bytes()),
            (DataType::Money(4), Self::Money(value)) => {
                out.extend(i32::try_from(*value).ok()?.to_le_bytes());
            }
            (DataType::Money(_), Self::Money(value)) => {
                // The high half comes first.
                out.extend(((value >> 32) as i32).to_le_bytes());
                out.extend((*value as u32).to_le_bytes());
            }
            (DataType::Decimal { precision, scale }, value) => {
                value.emit_decimal(precision, scale, out)?;
            }
            (DataType::Guid, Self::Guid(guid)) => out.extend(guid.to_stored()),
            (DataType::Date, Self::Date(day)) => date(*day, out)?,
            (DataType::Time(scale), Self::Time(at)) => time(*at, scale, out)?,
            (DataType::DateTime2(scale), Self::DateTime2(day, at)) => {
                time(*at, scale, out)?;
                date(*day, out)?;
            }
            (DataType::DateTimeOffset(scale), Self::DateTimeOffset(day, at, minutes)) => {
                time(*at, scale, out)?;
                date(*day, out)?;
                out.extend(minutes.to_le_bytes());
            }
            (DataType::DateTime(8), Self::DateTime(days, ticks)) => {
                out.extend(days.to_le_bytes());
                out.extend(ticks.to_le_bytes());
            }
            (DataType::DateTime(4), Self::SmallDateTime(days, minutes)) => {
                out.extend(days.to_le_bytes());
                out.extend(minutes.to_le_bytes());
            }
            _ => return None,
        }
        Some(())
    }

    fn emit_decimal(&self, precision: u8, scale: u8, out: &mut Vec<u8>) -> Option<()> {
        let (is_negative, digits) = match *self {
            Self::Decimal {
                is_negative,
                digits,
                scale: of_value,
            } => {
                let more = scale.checked_sub(of_value)?;
                let digits = digits.checked_mul(10_u128.checked_pow(u32::from(more))?)?;
                (is_negative, digits)
            }
            Self::Integer(value) => {
                let digits = u128::from(value.unsigned_abs());
                (
                    value < 0,
                    digits.checked_mul(10_u128.checked_pow(u32::from(scale))?)?,
                )
            }
            _ => return None,
        };
        if 10_u128
            .checked_pow(u32::from(precision))
            .is_some_and(|limit| digits >= limit)
        {
            return None;
        }
        out.push(u8::from(!is_negative));
        let bytes = usize::from(decimal_bytes(precision)) - 1;
        out.extend(&digits.to_le_bytes()[..bytes]);
        Some(())
    }

    /// Length, base type, its properties, value.
    fn emit_variant(&self, out: &mut Vec<u8>) -> Option<()> {
        let length_at = out.len();
        out.extend([0; 4]);
        match self {
            Self::Bit(bit) => out.extend([0x32, 0, u8::from(*bit)]),
            Self::Integer(value) => match i32::try_from(*value) {
                Ok(small) => {
                    out.extend([0x38, 0]);
                    out.extend(small.to_le_bytes());
                }
                Err(_) => {
                    out.extend([0x7F, 0]);
                    out.extend(value.to_le_bytes());
                }
            },
            Self::Float(value) => {
                out.extend([0x3E, 0]);
                out.extend(value.to_le_bytes());
            }
            Self::DateTime(days, ticks) => {
                out.extend([0x3D, 0]);
                out.extend(days.to_le_bytes());
                out.extend(ticks.to_le_bytes());
            }
            Self::Guid(guid) => {
                out.extend([0x24, 0]);
                out.extend(guid.to_stored());
            }
            Self::Text(text) => {
                let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
                out.extend([0xE7, 7]);
                out.extend(Collation::DEFAULT.0);
                out.extend(8000_u16.to_le_bytes());
                out.extend(&bytes);
                if bytes.len() > 8000 {
                    return None;
                }
            }
            _ => return None,
        }
        let length = (out.len() - length_at - 4) as u32;
        out[length_at..][..4].copy_from_slice(&length.to_le_bytes());
        Some(())
    }

    /// Reads a value of `data_type`.
    pub(crate) fn parse(
        data_type: DataType,
        layout: Layout,
        from: &mut Cursor<'_>,
    ) -> Result<Self, Error> {
        let bytes = match layout {
            Layout::Fixed(0) => None,
            Layout::Fixed(bytes) => Some(from.take(bytes)?.into()),
            Layout::BytePrefix => match usize::from(from.u8()?) {
                0 => None,
                bytes => Some(from.take(bytes)?.into()),
            },
            Layout::WordPrefix => match from.u16()? {
                NULL_WORD => None,
                bytes => Some(from.take(usize::from(bytes))?.into()),
            },
            Layout::LongPrefix => match from.u32()? {
                NULL_LONG => None,
                0 if data_type == DataType::Variant => None,
                bytes => Some(from.take(bytes as usize)?.into()),
            },
            Layout::Pieces => pieces(from)?,
        };
        match bytes {
            Some(bytes) => decode(data_type, bytes),
            None => Ok(Self::Null),
        }
    }
}

fn emit_null(data_type: DataType, out: &mut Vec<u8>) {
    match data_type {
        DataType::Null => {}
        DataType::NVarChar(Length::Max, _)
        | DataType::VarChar(Length::Max, _)
        | DataType::VarBinary(Length::Max)
        | DataType::Xml => out.extend(NULL_PIECES.to_le_bytes()),
        DataType::NVarChar(..) | DataType::VarChar(..) | DataType::VarBinary(_) => {
            out.extend(NULL_WORD.to_le_bytes());
        }
        DataType::Variant => out.extend(0_u32.to_le_bytes()),
        _ => out.push(0),
    }
}

fn wide(text: &str, length: Length, out: &mut Vec<u8>) -> Option<()> {
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    sized(&bytes, length, out)
}

fn sized(bytes: &[u8], length: Length, out: &mut Vec<u8>) -> Option<()> {
    match length {
        Length::Bytes(most) => {
            let length = u16::try_from(bytes.len())
                .ok()
                .filter(|length| *length <= most)?;
            out.extend(length.to_le_bytes());
            out.extend(bytes);
        }
        Length::Max => {
            out.extend((bytes.len() as u64).to_le_bytes());
            for piece in bytes.chunks(PIECE_BYTES) {
                out.extend((piece.len() as u32).to_le_bytes());
                out.extend(piece);
            }
            out.extend(0_u32.to_le_bytes());
        }
    }
    Some(())
}

fn integer(value: i64, bytes: u8, out: &mut Vec<u8>) -> Option<()> {
    match bytes {
        // A tinyint has no sign.
        1 => out.push(u8::try_from(value).ok()?),
        2 => out.extend(i16::try_from(value).ok()?.to_le_bytes()),
        4 => out.extend(i32::try_from(value).ok()?.to_le_bytes()),
        _ => out.extend(value.to_le_bytes()),
    }
    Some(())
}

fn date(day: Day, out: &mut Vec<u8>) -> Option<()> {
    let [a, b, c, 0] = day.0.to_le_bytes() else {
        return None;
    };
    out.extend([a, b, c]);
    Some(())
}

fn time(at: TimeOfDay, scale: u8, out: &mut Vec<u8>) -> Option<()> {
    let unit = 10_u64.checked_pow(u32::from(7_u8.checked_sub(scale)?))?;
    let bytes = (at.0 / unit).to_le_bytes();
    out.extend(&bytes[..time_bytes(scale)]);
    Some(())
}

/// Assembles a value sent in pieces. Its stated total is only used for NULL.
fn pieces<'a>(from: &mut Cursor<'a>) -> Result<Option<std::borrow::Cow<'a, [u8]>>, Error> {
    if from.u64()? == NULL_PIECES {
        return Ok(None);
    }
    let first = from.u32()? as usize;
    if first == 0 {
        return Ok(Some((&[]).into()));
    }
    let mut value: std::borrow::Cow<'a, [u8]> = from.take(first)?.into();
    loop {
        match from.u32()? as usize {
            0 => return Ok(Some(value)),
            bytes => value.to_mut().extend_from_slice(from.take(bytes)?),
        }
    }
}

fn decode(data_type: DataType, bytes: std::borrow::Cow<'_, [u8]>) -> Result<Value, Error> {
    let wrong = || Error::invalid("length of a value", bytes.len() as u64);
    let mut from = Cursor::new(&bytes, "a value");
    let value = match data_type {
        DataType::Null => Value::Null,
        DataType::Bit => Value::Bit(from.u8()? != 0),
        DataType::Integer(_) => return signed(&bytes).map(Value::Integer).ok_or_else(wrong),
        DataType::Float(_) => match bytes.len() {
            4 => Value::Float(f64::from(f32::from_le_bytes(from.bytes()?))),
            _ => Value::Float(f64::from_le_bytes(from.bytes()?)),
        },
        DataType::Money(_) => match bytes.len() {
            4 => Value::Money(i64::from(from.i32()?)),
            _ => Value::Money((i64::from(from.i32()?) << 32) | i64::from(from.u32()?)),
        },
        DataType::Decimal { scale, .. } => {
            let is_negative = from.u8()? == 0;
            let mut wide = [0; 16];
            let digits = from.rest();
            wide.get_mut(..digits.len())
                .ok_or_else(wrong)?
                .copy_from_slice(digits);
            let digits = u128::from_le_bytes(wide);
            return Ok(Value::Decimal {
                is_negative,
                digits,
                scale,
            });
        }
        DataType::Guid => Value::Guid(Guid::from_stored(from.bytes()?)),
        DataType::Date => Value::Date(read_day(&mut from)?),
        DataType::Time(scale) => Value::Time(read_time(&mut from, scale)?),
        DataType::DateTime2(scale) => {
            let at = read_time(&mut from, scale)?;
            Value::DateTime2(read_day(&mut from)?, at)
        }
        DataType::DateTimeOffset(scale) => {
            let at = read_time(&mut from, scale)?;
            let day = read_day(&mut from)?;
            Value::DateTimeOffset(day, at, from.u16()?.cast_signed())
        }
        DataType::DateTime(_) => match bytes.len() {
            4 => Value::SmallDateTime(from.u16()?, from.u16()?),
            _ => Value::DateTime(from.i32()?, from.u32()?),
        },
        DataType::NVarChar(..) | DataType::Xml => return Ok(Value::Text(utf16(&bytes))),
        DataType::VarChar(_, collation) => return collation.decode(&bytes).map(Value::Text),
        DataType::VarBinary(_) => return Ok(Value::Bytes(bytes.into_owned())),
        DataType::Variant => return variant(&mut from),
    };
    match from.is_empty() {
        true => Ok(value),
        false => Err(wrong()),
    }
}

fn signed(bytes: &[u8]) -> Option<i64> {
    Some(match *bytes {
        // A tinyint has no sign.
        [byte] => i64::from(byte),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => return None,
    })
}

fn read_day(from: &mut Cursor<'_>) -> Result<Day, Error> {
    let [a, b, c] = from.bytes()?;
    Ok(Day(u32::from_le_bytes([a, b, c, 0])))
}

fn read_time(from: &mut Cursor<'_>, scale: u8) -> Result<TimeOfDay, Error> {
    let mut wide = [0; 8];
    let bytes = from.take(time_bytes(scale))?;
    wide[..bytes.len()].copy_from_slice(bytes);
    let unit = 10_u64.pow(u32::from(7_u8.saturating_sub(scale)));
    Ok(TimeOfDay(u64::from_le_bytes(wide).saturating_mul(unit)))
}

/// A value that includes its type; never another variant.
fn variant(from: &mut Cursor<'_>) -> Result<Value, Error> {
    let code = from.u8()?;
    let properties_bytes = usize::from(from.u8()?);
    let properties = from.take(properties_bytes)?;
    let rest = from.rest();
    // The nested type is encoded like a parameter's, except that its lengths are elsewhere.
    let mut info = vec![code];
    match code {
        0x26 | 0x68 | 0x6D | 0x6E | 0x6F | 0x24 => info.push(rest.len() as u8),
        0x6A | 0x6C => {
            info.push(rest.len() as u8);
            info.extend(properties);
        }
        0xA5 | 0xAD => info.extend(8000_u16.to_le_bytes()),
        0xA7 | 0xAF | 0xE7 | 0xEF => {
            info.extend(8000_u16.to_le_bytes());
            info.extend(properties.get(..5).unwrap_or_default());
        }
        _ => info.extend(properties),
    }
    match DataType::parse(&mut Cursor::new(&info, "a variant"))?.0 {
        DataType::Variant | DataType::Xml | DataType::Null => {
            Err(Error::invalid("base type of a variant", code))
        }
        data_type => decode(data_type, rest.into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(value: &Value, data_type: DataType) -> Result<Value, Error> {
        let mut out = Vec::new();
        data_type.emit(&mut out);
        value.emit(data_type, &mut out)?;
        let mut from = Cursor::new(&out, "test");
        let (read, layout) = DataType::parse(&mut from)?;
        assert_eq!(read, data_type);
        let value = Value::parse(read, layout, &mut from)?;
        assert!(from.is_empty(), "{data_type:?}");
        Ok(value)
    }

    fn every_type() -> Vec<(DataType, Value)> {
        let (day, at) = (Day(739_576), TimeOfDay(863_999_999_999));
        let text = || Value::Text("Grüße, 世界 🚀".to_owned());
        let max = Length::Max;
        vec![
            (DataType::Bit, Value::Bit(true)),
            (DataType::Integer(1), Value::Integer(255)),
            (DataType::Integer(2), Value::Integer(-32_768)),
            (DataType::Integer(4), Value::Integer(-5)),
            (DataType::Integer(8), Value::Integer(i64::MIN)),
            (DataType::Float(4), Value::Float(0.5)),
            (DataType::Float(8), Value::Float(-1e300)),
            (DataType::Money(8), Value::Money(-12_345_678_901_234)),
            (DataType::Money(4), Value::Money(-1)),
            (DataType::Guid, Value::Guid(Guid::named(Guid::NIL, b"x"))),
            (DataType::Date, Value::Date(day)),
            (DataType::Time(7), Value::Time(at)),
            (DataType::DateTime2(7), Value::DateTime2(day, at)),
            (
                DataType::DateTimeOffset(7),
                Value::DateTimeOffset(day, at, -330),
            ),
            (DataType::DateTime(8), Value::DateTime(-53_690, 25_919_999)),
            (DataType::DateTime(4), Value::SmallDateTime(65_535, 1439)),
            (DataType::nvarchar(40), text()),
            (DataType::nvarchar(usize::MAX), text()),
            (DataType::varbinary(3), Value::Bytes(vec![0, 1, 255])),
            (DataType::VarBinary(max), Value::Bytes(vec![7; 3 << 20])),
            (
                DataType::VarChar(max, Collation::DEFAULT),
                Value::Text("plain".to_owned()),
            ),
            (DataType::Xml, text()),
            (DataType::Variant, text()),
            (DataType::Variant, Value::Integer(7)),
            (DataType::Variant, Value::Integer(i64::MAX)),
            (DataType::Variant, Value::DateTime(1, 2)),
        ]
    }

    #[test]
    fn every_type_carries_its_values_and_null() {
        for (data_type, value) in every_type() {
            assert_eq!(
                round_trip(&value, data_type).as_ref(),
                Ok(&value),
                "{data_type:?}"
            );
            assert_eq!(
                round_trip(&Value::Null, data_type),
                Ok(Value::Null),
                "{data_type:?}"
            );
        }
    }

    #[test]
    fn every_cut_of_every_value_is_an_error() {
        for (data_type, value) in every_type() {
            let mut out = Vec::new();
            data_type.emit(&mut out);
            value.emit(data_type, &mut out).unwrap();
            for cut in 0..out.len().min(200) {
                let mut from = Cursor::new(&out[..cut], "test");
                let read = DataType::parse(&mut from)
                    .and_then(|(read, layout)| Value::parse(read, layout, &mut from));
                assert!(read.is_err(), "{data_type:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn a_log_sequence_number_is_a_decimal_of_thirteen_bytes() {
        let data_type = DataType::Decimal {
            precision: 25,
            scale: 0,
        };
        let digits = 37_000_000_041_600_001;
        let value = Value::Decimal {
            is_negative: false,
            digits,
            scale: 0,
        };
        let mut out = Vec::new();
        value.emit(data_type, &mut out).unwrap();
        assert_eq!(out.len(), 14);
        assert_eq!(out[..2], [13, 1]);
        assert_eq!(round_trip(&value, data_type), Ok(value));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_leaves_nothing() {
        let cases = [
            (DataType::Integer(1), Value::Integer(-1)),
            (DataType::Integer(4), Value::Integer(1 << 40)),
            (DataType::nvarchar(2), Value::Text("abc".to_owned())),
            (
                DataType::Decimal {
                    precision: 3,
                    scale: 1,
                },
                Value::Integer(100),
            ),
            (DataType::Bit, Value::Text(String::new())),
        ];
        for (data_type, value) in cases {
            let mut out = vec![9];
            let found = value.emit(data_type, &mut out);
            assert_eq!(found, Err(Error::DoesNotFit { data_type }));
            assert_eq!(out, [9]);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_value_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut from = Cursor::new(&bytes, "test");
            while let Ok((data_type, layout)) = DataType::parse(&mut from) {
                if Value::parse(data_type, layout, &mut from).is_err() {
                    break;
                }
            }
        }
    }
}
