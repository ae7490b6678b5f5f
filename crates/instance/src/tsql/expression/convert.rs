//! `CAST`, `CONVERT`, implicit conversions and assignment to variables.

use jiff::civil::DateTime;
use windlass_base::message::table;

use super::{date, type_of};
use crate::{DataType, Decimal, Failure, IntegerType, Value};

/// Converts a value to a variable's type; truncates text to its length.
///
/// # Errors
/// See [`convert`].
pub fn assign(value: &Value, target: DataType) -> Result<Value, Failure> {
    convert(value, target, None)
}

/// Converts a value to another type, with a date or number style if given.
///
/// # Errors
/// SQL Server's messages 220, 235, 241, 242, 245, 248, 281, 529, 8114, 8115 and 8169.
pub fn convert(value: &Value, target: DataType, style: Option<i64>) -> Result<Value, Failure> {
    convert_from(value, type_of(value), target, style)
}

/// The same for a value whose declared type is known.
pub(crate) fn convert_from(
    value: &Value,
    from: DataType,
    target: DataType,
    style: Option<i64>,
) -> Result<Value, Failure> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let from = match from {
        DataType::Null | DataType::Variant => type_of(value),
        known => known,
    };
    match target {
        DataType::Null | DataType::Variant => Ok(value.clone()),
        DataType::Bit => Ok(Value::Bit(bit(value, from)?)),
        DataType::Integer(integer) => whole(value, from, integer).map(Value::Integer),
        DataType::Decimal { precision, scale } => {
            decimal(value, from, target, scale, precision).map(Value::Decimal)
        }
        DataType::Money => decimal(value, from, target, 4, 19).map(Value::Decimal),
        DataType::SmallMoney => decimal(value, from, target, 4, 10).map(Value::Decimal),
        DataType::Real => float(value, from).map(|number| Value::Float(f64::from(number as f32))),
        DataType::Float => float(value, from).map(Value::Float),
        DataType::Text {
            limit,
            padded,
            national,
        } => text(value, from, limit, style, national)
            .map(|text| Value::Text(filled(text, limit, padded))),
        DataType::Binary { limit, padded } => {
            binary(value, from, limit, padded, style).map(Value::Binary)
        }
        DataType::Guid => guid(value, from),
        DataType::DateTime | DataType::SmallDateTime => old_date(value, from, target, style),
        DataType::DateTime2 => date_of(value, from, target, style).map(Value::DateTime2),
        DataType::Date => date_of(value, from, target, style).map(|at| Value::Date(at.date())),
        DataType::Time => date_of(value, from, target, style).map(|at| Value::Time(at.time())),
    }
}

/// The column that keeps a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredIn {
    table: String,
    column: String,
}

impl StoredIn {
    /// `table` as SQLite reads it.
    pub(crate) fn new(table: &str, column: &str) -> Self {
        Self {
            table: table.replace('"', ""),
            column: column.to_owned(),
        }
    }
}

/// Converts a value to the type of the column that keeps it. A text or bytes that are longer are refused; blanks
/// at the end are cut.
pub(crate) fn store(
    value: &Value,
    from: DataType,
    target: DataType,
    place: &StoredIn,
) -> Result<Value, Failure> {
    let stored = convert_from(value, from, target, None)?;
    let is_cut = match (value, target) {
        (Value::Integer(_) | Value::Bit(_) | Value::Null, _) => false,
        (
            _,
            DataType::Text {
                limit: Some(limit),
                national,
                ..
            },
        ) => {
            let whole = DataType::Text {
                limit: None,
                padded: false,
                national,
            };
            match convert_from(value, from, whole, None)? {
                Value::Text(text) => text.trim_end_matches(' ').chars().count() > limit,
                _ => false,
            }
        }
        (
            Value::Binary(bytes),
            DataType::Binary {
                limit: Some(limit), ..
            },
        ) => bytes.len() > limit,
        _ => false,
    };
    match is_cut {
        true => Err(table::text_truncated(&place.table, &place.column, &stored).into()),
        false => Ok(stored),
    }
}

fn not_allowed(from: DataType, target: DataType) -> Failure {
    table::conversion_not_allowed(from.name(), target.name()).into()
}

fn bit(value: &Value, from: DataType) -> Result<bool, Failure> {
    match value {
        Value::Bit(bit) => Ok(*bit),
        Value::Integer(number) => Ok(*number != 0),
        Value::Decimal(decimal) => Ok(!decimal.is_zero()),
        Value::Float(number) => Ok(*number != 0.0),
        Value::Binary(bytes) => Ok(bytes.iter().any(|byte| *byte != 0)),
        Value::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" | "" => Ok(false),
            other => other
                .parse::<i64>()
                .map(|number| number != 0)
                .map_err(|_| table::conversion_failed(from.name(), text, "bit").into()),
        },
        _ => Err(not_allowed(from, DataType::Bit)),
    }
}

fn whole(value: &Value, from: DataType, integer: IntegerType) -> Result<i64, Failure> {
    let number = match value {
        Value::Bit(bit) => i128::from(*bit),
        Value::Integer(number) => i128::from(*number),
        Value::Decimal(decimal) if matches!(from, DataType::Money | DataType::SmallMoney) => {
            decimal.rescaled(0).map_or(i128::MAX, Decimal::truncated)
        }
        Value::Decimal(decimal) => decimal.truncated(),
        Value::Float(number) => number.trunc() as i128,
        Value::Text(text) if text.trim().is_empty() => 0,
        Value::Text(text) => text.trim().parse().map_err(|_| {
            let message = table::conversion_failed(from.name(), text, integer.name());
            Failure::from(message)
        })?,
        Value::Binary(bytes) => whole_of_bytes(bytes, integer),
        Value::DateTime(_) => {
            let days = float(value, from)?;
            days.round() as i128
        }
        _ => return Err(not_allowed(from, DataType::Integer(integer))),
    };
    let (least, most) = integer.range();
    let fitting = i64::try_from(number).ok();
    let fitting = fitting.filter(|number| (least..=most).contains(number));
    fitting.ok_or_else(|| match (value, integer) {
        (Value::Text(text), _) => {
            table::text_overflow(from.name(), text.trim(), integer.name()).into()
        }
        (Value::Integer(_), IntegerType::TinyInt | IntegerType::SmallInt) => {
            table::value_overflow(integer.name(), number).into()
        }
        _ => table::arithmetic_overflow(integer.name()).into(),
    })
}

fn whole_of_bytes(bytes: &[u8], integer: IntegerType) -> i128 {
    let length = integer.bytes();
    let last = bytes
        .get(bytes.len().saturating_sub(length)..)
        .unwrap_or(bytes);
    let mut padded = [0; 8];
    if let Some(tail) = padded.get_mut(8 - last.len()..) {
        tail.copy_from_slice(last);
    }
    let number = i64::from_be_bytes(padded);
    match integer {
        IntegerType::Int => i128::from(number as i32),
        IntegerType::SmallInt => i128::from(number as i16),
        _ => i128::from(number),
    }
}

fn decimal(
    value: &Value,
    from: DataType,
    target: DataType,
    scale: u8,
    precision: u8,
) -> Result<Decimal, Failure> {
    let is_money = matches!(target, DataType::Money | DataType::SmallMoney);
    let decimal = match value {
        Value::Decimal(decimal) => Some(*decimal),
        Value::Bit(bit) => Some(Decimal::from(i64::from(*bit))),
        Value::Integer(number) => Some(Decimal::from(*number)),
        Value::Float(number) => format!("{number:.*}", usize::from(scale)).parse().ok(),
        Value::Text(text) if is_money => {
            let plain: String = text
                .trim()
                .chars()
                .filter(|character| !matches!(character, ',' | '$'))
                .collect();
            let plain = if plain.is_empty() {
                "0"
            } else {
                plain.as_str()
            };
            Some(
                plain
                    .parse()
                    .map_err(|()| Failure::from(table::money_syntax()))?,
            )
        }
        Value::Text(text) => {
            let parsed = text.parse().map_err(|()| {
                Failure::from(table::data_type_conversion(from.name(), target.name()))
            })?;
            Some(parsed)
        }
        Value::DateTime(_) => format!("{:.*}", usize::from(scale), float(value, from)?)
            .parse()
            .ok(),
        _ => return Err(not_allowed(from, target)),
    };
    decimal
        .and_then(|decimal| decimal.rescaled(scale))
        .filter(|decimal| decimal.fits(precision))
        .ok_or_else(|| table::arithmetic_overflow(target.name()).into())
}

fn float(value: &Value, from: DataType) -> Result<f64, Failure> {
    match value {
        Value::Bit(bit) => Ok(f64::from(u8::from(*bit))),
        Value::Integer(number) => Ok(*number as f64),
        Value::Decimal(decimal) => Ok(decimal.to_f64()),
        Value::Float(number) => Ok(*number),
        Value::Text(text) => {
            let trimmed = text.trim();
            let is_number = !trimmed.contains(|character: char| {
                character.is_alphabetic() && !matches!(character, 'e' | 'E')
            });
            let number = match trimmed {
                "" => Some(0.0),
                digits => digits.parse::<f64>().ok().filter(|_| is_number),
            };
            number
                .filter(|number| number.is_finite())
                .ok_or_else(|| table::data_type_conversion(from.name(), "float").into())
        }
        Value::DateTime(at) => Ok(date::days(*at)),
        _ => Err(not_allowed(from, DataType::Float)),
    }
}

fn text(
    value: &Value,
    from: DataType,
    limit: Option<usize>,
    style: Option<i64>,
    national: bool,
) -> Result<String, Failure> {
    let style_given = style;
    let style = style.unwrap_or(0);
    let text = match value {
        Value::Text(text) => text.clone(),
        Value::DateTime(at) => date::text(*at, style, "datetime")?,
        Value::DateTime2(at) => match style_given {
            None => value.to_string(),
            Some(style) => date::text(*at, style, "datetime2")?,
        },
        Value::Date(date) => match style_given {
            None => value.to_string(),
            Some(style) => date::date_text(date.at(0, 0, 0, 0), style)?,
        },
        Value::Time(time) => match style_given {
            None => value.to_string(),
            Some(style) => date::text(date::epoch().date().to_datetime(*time), style, "time")?,
        },
        Value::Binary(bytes) => match style {
            0 => bytes.iter().map(|&byte| char::from(byte)).collect(),
            2 => value.to_string().split_off(2),
            _ => value.to_string(),
        },
        Value::Float(number) => super::number::float_text(*number, style),
        Value::Decimal(decimal) if matches!(from, DataType::Money | DataType::SmallMoney) => {
            super::number::money_text(*decimal, style)
        }
        other => other.to_string(),
    };
    let is_too_long = limit.is_some_and(|limit| text.chars().count() > limit);
    match (value, national) {
        _ if !is_too_long => Ok(text),
        (Value::Integer(_) | Value::Bit(_), false) => Ok("*".to_owned()),
        (Value::Integer(_) | Value::Decimal(_) | Value::Float(_), _) => {
            let name = if national { "nvarchar" } else { "varchar" };
            Err(table::arithmetic_overflow(name).into())
        }
        _ => Ok(text),
    }
}

/// A text cut or filled to the length of its type.
fn filled(mut text: String, limit: Option<usize>, padded: bool) -> String {
    let Some(limit) = limit else { return text };
    if let Some((end, _)) = text.char_indices().nth(limit) {
        text.truncate(end);
    }
    if padded {
        let length = text.chars().count();
        let missing = limit.saturating_sub(length).min(8000);
        text.extend(std::iter::repeat_n(' ', missing));
    }
    text
}

fn binary(
    value: &Value,
    from: DataType,
    limit: Option<usize>,
    padded: bool,
    style: Option<i64>,
) -> Result<Vec<u8>, Failure> {
    let target = DataType::Binary { limit, padded };
    let mut bytes = match value {
        Value::Binary(bytes) => bytes.clone(),
        Value::Text(text) => match style {
            Some(1 | 2) => bytes_of_digits(text).ok_or_else(|| {
                Failure::from(table::data_type_conversion(from.name(), "varbinary"))
            })?,
            _ if matches!(from, DataType::Text { national: true, .. }) => {
                text.encode_utf16().flat_map(u16::to_le_bytes).collect()
            }
            _ => text.clone().into_bytes(),
        },
        Value::Bit(bit) => vec![u8::from(*bit)],
        Value::Integer(number) => {
            let length = match from {
                DataType::Integer(integer) => integer.bytes(),
                _ => 8,
            };
            let all = number.to_be_bytes();
            all.get(8 - length..).unwrap_or(&all).to_vec()
        }
        Value::Guid(guid) => guid.to_stored().to_vec(),
        _ => return Err(not_allowed(from, target)),
    };
    if let Some(limit) = limit {
        // Of a number, the last bytes count.
        if bytes.len() > limit && matches!(value, Value::Integer(_)) {
            bytes.drain(..bytes.len() - limit);
        }
        if padded && bytes.len() < limit {
            let missing = limit.min(8000) - bytes.len().min(8000);
            match value {
                Value::Integer(_) => {
                    bytes.splice(..0, std::iter::repeat_n(0, missing));
                }
                _ => bytes.resize(limit.min(8000), 0),
            }
        }
        bytes.truncate(limit);
    }
    Ok(bytes)
}

/// The bytes of `0x1F` or `1F`.
fn bytes_of_digits(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim();
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    if !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return None;
    }
    (0..digits.len() / 2)
        .map(|at| u8::from_str_radix(digits.get(at * 2..at * 2 + 2)?, 16).ok())
        .collect()
}

fn guid(value: &Value, from: DataType) -> Result<Value, Failure> {
    match value {
        Value::Guid(guid) => Ok(Value::Guid(*guid)),
        Value::Text(text) => text
            .trim()
            .trim_start_matches('{')
            .trim_end_matches('}')
            .parse()
            .map(Value::Guid)
            .map_err(|_| table::guid_conversion_failed().into()),
        Value::Binary(bytes) => bytes
            .first_chunk::<16>()
            .map(|stored| Value::Guid(windlass_base::Guid::from_stored(*stored)))
            .ok_or_else(|| table::guid_conversion_failed().into()),
        _ => Err(not_allowed(from, DataType::Guid)),
    }
}

/// `datetime` and `smalldatetime`, which begin in 1753 and 1900.
fn old_date(
    value: &Value,
    from: DataType,
    target: DataType,
    style: Option<i64>,
) -> Result<Value, Failure> {
    let at = date_of(value, from, target, style)?;
    let (first, last) = match target {
        DataType::SmallDateTime => (1900, 2079),
        _ => (1753, 9999),
    };
    if !(first..=last).contains(&at.year()) {
        return Err(table::date_out_of_range(from.name(), target.name()).into());
    }
    Ok(Value::DateTime(match target {
        DataType::SmallDateTime => date::to_minute(at),
        _ => date::to_ticks(at),
    }))
}

fn date_of(
    value: &Value,
    from: DataType,
    target: DataType,
    style: Option<i64>,
) -> Result<DateTime, Failure> {
    let is_old = matches!(target, DataType::DateTime | DataType::SmallDateTime);
    match value {
        Value::Text(text) => {
            date::parse(text, style).ok_or_else(|| match is_old && date::looks_like_date(text) {
                true => table::date_out_of_range(from.name(), target.name()).into(),
                false => table::date_conversion_failed().into(),
            })
        }
        Value::Time(_) if target == DataType::Date => Err(not_allowed(from, target)),
        Value::Date(_) if target == DataType::Time => Err(not_allowed(from, target)),
        Value::Bit(_) | Value::Integer(_) | Value::Decimal(_) | Value::Float(_) if !is_old => {
            Err(not_allowed(from, target))
        }
        _ => date_time(value),
    }
}

/// Converts a value to a date and time.
pub(super) fn date_time(value: &Value) -> Result<DateTime, Failure> {
    match value {
        Value::DateTime(at) | Value::DateTime2(at) => Ok(*at),
        Value::Date(date) => Ok(date.at(0, 0, 0, 0)),
        Value::Time(time) => Ok(date::epoch().date().to_datetime(*time)),
        Value::Text(text) => {
            date::parse(text, None).ok_or_else(|| match date::looks_like_date(text) {
                true => table::date_out_of_range("varchar", "datetime").into(),
                false => table::date_conversion_failed().into(),
            })
        }
        Value::Integer(days) => date::plus(date::epoch(), date::Part::Day, *days),
        Value::Bit(bit) => date::plus(date::epoch(), date::Part::Day, i64::from(*bit)),
        Value::Decimal(_) | Value::Float(_) => {
            let days = float(value, type_of(value))?;
            let millis = (days * 86_400_000.0).round();
            date::plus(date::epoch(), date::Part::Millisecond, millis as i64)
        }
        other => Err(not_allowed(type_of(other), DataType::DateTime)),
    }
}
