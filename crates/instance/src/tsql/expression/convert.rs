//! `CAST`, `CONVERT` and assignment to variables.

use jiff::civil::DateTime;
use windlass_base::message::table;

use super::{date, type_name};
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
/// SQL Server's messages 245, 241, 281, 529, 8114, 8115 and 8169.
pub fn convert(value: &Value, target: DataType, style: Option<i64>) -> Result<Value, Failure> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    match target {
        DataType::Bit => Ok(Value::Bit(bit(value)?)),
        DataType::Integer(integer) => whole(value, integer).map(Value::Integer),
        DataType::Decimal { scale } => decimal(value, scale).map(Value::Decimal),
        DataType::Float => float(value).map(Value::Float),
        DataType::Text { limit, padded } => text(value, limit, padded, style).map(Value::Text),
        DataType::Binary { limit } => binary(value, limit).map(Value::Binary),
        DataType::Guid => guid(value),
        DataType::DateTime => date_time(value).map(|at| Value::DateTime(date::to_ticks(at))),
        DataType::SmallDateTime => date_time(value).map(|at| Value::DateTime(date::to_minute(at))),
        DataType::DateTime2 => date_time(value).map(Value::DateTime2),
        DataType::Date => date_time(value).map(|at| Value::Date(at.date())),
        DataType::Time => date_time(value).map(|at| Value::Time(at.time())),
    }
}

fn not_allowed(value: &Value, target: DataType) -> Failure {
    table::conversion_not_allowed(type_name(value), target.name()).into()
}

fn bit(value: &Value) -> Result<bool, Failure> {
    match value {
        Value::Bit(bit) => Ok(*bit),
        Value::Integer(number) => Ok(*number != 0),
        Value::Decimal(decimal) => Ok(!decimal.is_zero()),
        Value::Float(number) => Ok(*number != 0.0),
        Value::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" | "" => Ok(false),
            other => other
                .parse::<i64>()
                .map(|number| number != 0)
                .map_err(|_| Failure::ending(table::conversion_failed(text, "bit"))),
        },
        other => Err(not_allowed(other, DataType::Bit)),
    }
}

fn whole(value: &Value, integer: IntegerType) -> Result<i64, Failure> {
    let number = match value {
        Value::Bit(bit) => i128::from(*bit),
        Value::Integer(number) => i128::from(*number),
        Value::Decimal(decimal) => decimal.truncated(),
        Value::Float(number) => number.trunc() as i128,
        Value::Text(text) if text.trim().is_empty() => 0,
        Value::Text(text) => text
            .trim()
            .parse()
            .map_err(|_| Failure::ending(table::conversion_failed(text, integer.name())))?,
        Value::Binary(bytes) => bytes
            .iter()
            .rev()
            .take(8)
            .rev()
            .fold(0, |number, &byte| number << 8 | i128::from(byte)),
        other => return Err(not_allowed(other, DataType::Integer(integer))),
    };
    let (least, most) = integer.range();
    i64::try_from(number)
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| Failure::ending(table::arithmetic_overflow(integer.name())))
}

fn decimal(value: &Value, scale: u8) -> Result<Decimal, Failure> {
    let decimal = match value {
        Value::Decimal(decimal) => Some(*decimal),
        Value::Bit(bit) => Some(Decimal::from(i64::from(*bit))),
        Value::Integer(number) => Some(Decimal::from(*number)),
        Value::Float(number) => format!("{number:.*}", usize::from(scale)).parse().ok(),
        Value::Text(text) => {
            let parsed = text.parse().map_err(|()| {
                Failure::ending(table::data_type_conversion("nvarchar", "numeric"))
            })?;
            Some(parsed)
        }
        other => return Err(not_allowed(other, DataType::Decimal { scale })),
    };
    decimal
        .and_then(|decimal| decimal.rescaled(scale))
        .ok_or_else(|| Failure::ending(table::arithmetic_overflow("numeric")))
}

fn float(value: &Value) -> Result<f64, Failure> {
    match value {
        Value::Bit(bit) => Ok(f64::from(u8::from(*bit))),
        Value::Integer(number) => Ok(*number as f64),
        Value::Decimal(decimal) => Ok(decimal.to_f64()),
        Value::Float(number) => Ok(*number),
        Value::Text(text) => {
            let number = text
                .trim()
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite());
            number.ok_or_else(|| Failure::ending(table::data_type_conversion("nvarchar", "float")))
        }
        other => Err(not_allowed(other, DataType::Float)),
    }
}

fn text(
    value: &Value,
    limit: Option<usize>,
    padded: bool,
    style: Option<i64>,
) -> Result<String, Failure> {
    let mut text = match value {
        Value::Text(text) => text.clone(),
        Value::DateTime(at) => date::text(*at, style.unwrap_or(0), "datetime")?,
        Value::DateTime2(at) => match style {
            None => value.to_string(),
            Some(style) => date::text(*at, style, "datetime2")?,
        },
        Value::Date(date) => match style {
            None => value.to_string(),
            Some(style) => date::date_text(date.at(0, 0, 0, 0), style)?,
        },
        Value::Binary(bytes) => match style.unwrap_or(0) {
            0 => bytes.iter().map(|&byte| char::from(byte)).collect(),
            2 => value.to_string().split_off(2),
            _ => value.to_string(),
        },
        other => other.to_string(),
    };
    if let Some(limit) = limit {
        let length = text.chars().count();
        // A number that does not fit is an error; a text that does not fit is truncated.
        if length > limit && matches!(value, Value::Integer(_) | Value::Decimal(_)) {
            return Err(Failure::ending(table::arithmetic_overflow("nvarchar")));
        }
        if let Some((end, _)) = text.char_indices().nth(limit) {
            text.truncate(end);
        }
        if padded {
            text.extend(std::iter::repeat_n(
                ' ',
                limit.saturating_sub(length).min(8000),
            ));
        }
    }
    Ok(text)
}

fn binary(value: &Value, limit: Option<usize>) -> Result<Vec<u8>, Failure> {
    let mut bytes = match value {
        Value::Binary(bytes) => bytes.clone(),
        Value::Text(text) => text.clone().into_bytes(),
        Value::Bit(bit) => vec![u8::from(*bit)],
        Value::Integer(number) => match i32::try_from(*number) {
            Ok(number) => number.to_be_bytes().to_vec(),
            Err(_) => number.to_be_bytes().to_vec(),
        },
        Value::Guid(guid) => guid.to_stored().to_vec(),
        other => return Err(not_allowed(other, DataType::Binary { limit })),
    };
    if let Some(limit) = limit {
        bytes.truncate(limit);
    }
    Ok(bytes)
}

fn guid(value: &Value) -> Result<Value, Failure> {
    match value {
        Value::Guid(guid) => Ok(Value::Guid(*guid)),
        Value::Text(text) => text
            .trim()
            .trim_start_matches('{')
            .trim_end_matches('}')
            .parse()
            .map(Value::Guid)
            .map_err(|_| Failure::ending(table::guid_conversion_failed())),
        other => Err(not_allowed(other, DataType::Guid)),
    }
}

/// Converts a value to a date and time.
pub(super) fn date_time(value: &Value) -> Result<DateTime, Failure> {
    match value {
        Value::DateTime(at) | Value::DateTime2(at) => Ok(*at),
        Value::Date(date) => Ok(date.at(0, 0, 0, 0)),
        Value::Time(time) => Ok(date::epoch().date().to_datetime(*time)),
        Value::Text(text) => {
            date::parse(text).ok_or_else(|| Failure::ending(table::date_conversion_failed()))
        }
        Value::Integer(days) => date::plus(date::epoch(), date::Part::Day, *days),
        Value::Decimal(_) | Value::Float(_) => {
            let days = float(value)?;
            let millis = (days * 86_400_000.0).round();
            date::plus(date::epoch(), date::Part::Millisecond, millis as i64)
        }
        other => Err(not_allowed(other, DataType::DateTime)),
    }
}
