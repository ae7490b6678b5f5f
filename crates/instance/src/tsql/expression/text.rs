//! The built-in functions on texts and numbers.

use windlass_base::message::table;

use super::function::count;
use super::{integer, text_of, type_name};
use crate::{DataType, Failure, Value, convert};

/// Maximum length of a text that a function returns: limits the memory that a script can use.
const TEXT_CHARACTERS_MAX: usize = 1 << 20;

/// Calls a function; `None` if it does not exist.
pub(super) fn call(name: &str, values: Vec<Value>) -> Result<Option<Value>, Failure> {
    match name {
        "CONCAT" => return concat(values).map(Some),
        "CONCAT_WS" => return concat_with(values).map(Some),
        "NULLIF" => {
            count(name, &values, 2..=2)?;
            let equal = values.first() == values.get(1);
            let first = values.into_iter().next().unwrap_or(Value::Null);
            return Ok(Some(if equal { Value::Null } else { first }));
        }
        "QUOTENAME" => return quote_name(&values).map(Some),
        "ISNUMERIC" => {
            count(name, &values, 1..=1)?;
            let value = values.into_iter().next().unwrap_or(Value::Null);
            let number = !value.is_null() && convert(&value, DataType::Float, None).is_ok();
            return Ok(Some(Value::Integer(i64::from(number))));
        }
        _ => {}
    }
    let Some(range) = arguments_of(name) else {
        return Ok(None);
    };
    count(name, &values, range)?;
    if values.iter().any(Value::is_null) {
        return Ok(Some(Value::Null));
    }
    match name {
        "ABS" | "CEILING" | "FLOOR" | "ROUND" | "POWER" | "SQRT" => {
            numeric(name, &values).map(Some)
        }
        "LEN" | "DATALENGTH" | "CHARINDEX" | "ASCII" | "UNICODE" => {
            measure(name, &values).map(Some)
        }
        _ => make(name, &values).map(Some),
    }
}

fn arguments_of(name: &str) -> Option<std::ops::RangeInclusive<usize>> {
    Some(match name {
        "LEN" | "DATALENGTH" | "ASCII" | "UNICODE" | "UPPER" | "LOWER" | "LTRIM" | "RTRIM"
        | "TRIM" | "REVERSE" | "SPACE" | "CHAR" | "NCHAR" | "ABS" | "CEILING" | "FLOOR"
        | "SQRT" => 1..=1,
        "LEFT" | "RIGHT" | "REPLICATE" | "ROUND" | "POWER" => 2..=2,
        "CHARINDEX" => 2..=3,
        "STR" => 1..=3,
        "REPLACE" | "SUBSTRING" => 3..=3,
        "STUFF" => 4..=4,
        _ => return None,
    })
}

fn concat(values: Vec<Value>) -> Result<Value, Failure> {
    count("CONCAT", &values, 2..=254)?;
    let mut joined = String::new();
    for value in values.into_iter().filter(|value| !value.is_null()) {
        joined.push_str(&text_of(&value)?);
    }
    Ok(Value::Text(joined))
}

fn concat_with(values: Vec<Value>) -> Result<Value, Failure> {
    count("CONCAT_WS", &values, 3..=254)?;
    let mut parts = Vec::new();
    for value in values.into_iter().filter(|value| !value.is_null()) {
        parts.push(text_of(&value)?);
    }
    let separator = if parts.is_empty() {
        String::new()
    } else {
        parts.remove(0)
    };
    Ok(Value::Text(parts.join(&separator)))
}

fn quote_name(values: &[Value]) -> Result<Value, Failure> {
    count("QUOTENAME", values, 1..=2)?;
    let Some(value) = values.first().filter(|value| !value.is_null()) else {
        return Ok(Value::Null);
    };
    let text = text_of(value)?;
    let mark = match values.get(1) {
        Some(mark) => text_of(mark)?,
        None => "[".to_owned(),
    };
    let (open, close) = match mark.as_str() {
        "[" | "]" => ("[", "]"),
        "'" => ("'", "'"),
        "\"" => ("\"", "\""),
        "(" | ")" => ("(", ")"),
        "{" | "}" => ("{", "}"),
        "<" | ">" => ("<", ">"),
        "`" => ("`", "`"),
        _ => return Ok(Value::Null),
    };
    if text.chars().count() > 128 {
        return Ok(Value::Null);
    }
    Ok(Value::Text(format!(
        "{open}{}{close}",
        text.replace(close, &close.repeat(2))
    )))
}

/// The text of a required argument that is not NULL.
fn argument(values: &[Value], index: usize) -> Result<String, Failure> {
    values.get(index).map_or(Ok(String::new()), text_of)
}

fn number(values: &[Value], index: usize) -> Result<i64, Failure> {
    values.get(index).map_or(Ok(0), integer)
}

/// A count argument of a text function: not negative, and within the maximum length.
fn length(values: &[Value], index: usize) -> Result<usize, Failure> {
    let length = number(values, index)?;
    if length < 0 {
        return Err(Failure::ending(table::invalid_length()));
    }
    Ok(usize::try_from(length)
        .unwrap_or(usize::MAX)
        .min(TEXT_CHARACTERS_MAX))
}

fn measure(name: &str, values: &[Value]) -> Result<Value, Failure> {
    let text = argument(values, 0)?;
    let result = match name {
        "LEN" => text.trim_end_matches(' ').chars().count(),
        "DATALENGTH" => match values.first() {
            Some(Value::Binary(bytes)) => bytes.len(),
            Some(Value::Integer(_)) => 4,
            _ => text.encode_utf16().count() * 2,
        },
        "CHARINDEX" => {
            let (wanted, within) = (text.to_lowercase(), argument(values, 1)?.to_lowercase());
            let start = usize::try_from(number(values, 2)?.max(1) - 1).unwrap_or(0);
            let skipped: String = within.chars().skip(start).collect();
            match skipped.find(&wanted) {
                Some(at) if !wanted.is_empty() => {
                    start + skipped.get(..at).unwrap_or("").chars().count() + 1
                }
                _ => 0,
            }
        }
        _ => match text.chars().next() {
            Some(first) => first as usize,
            None => return Ok(Value::Null),
        },
    };
    Ok(Value::amount(result as u64))
}

fn make(name: &str, values: &[Value]) -> Result<Value, Failure> {
    let text = argument(values, 0)?;
    let result = match name {
        "UPPER" => text.to_uppercase(),
        "LOWER" => text.to_lowercase(),
        "LTRIM" => text.trim_start_matches(' ').to_owned(),
        "RTRIM" => text.trim_end_matches(' ').to_owned(),
        "TRIM" => text.trim_matches(' ').to_owned(),
        "REVERSE" => text.chars().rev().collect(),
        "LEFT" => text.chars().take(length(values, 1)?).collect(),
        "RIGHT" => {
            let skipped = text.chars().count().saturating_sub(length(values, 1)?);
            text.chars().skip(skipped).collect()
        }
        "SUBSTRING" => {
            let (start, length) = (number(values, 1)?, length(values, 2)?);
            // A start position before the text counts from there, as in SQL Server.
            let end = start.saturating_add(i64::try_from(length).unwrap_or(i64::MAX));
            let taken = usize::try_from(end.saturating_sub(start.max(1)).max(0)).unwrap_or(0);
            let skipped = usize::try_from(start.max(1) - 1).unwrap_or(usize::MAX);
            text.chars().skip(skipped).take(taken).collect()
        }
        "REPLACE" => replace_any_case(&text, &argument(values, 1)?, &argument(values, 2)?)?,
        "STUFF" => {
            let (start, removed) = (number(values, 1)?, length(values, 2)?);
            let total = text.chars().count();
            let Some(skipped) = usize::try_from(start - 1).ok().filter(|&at| at < total) else {
                return Ok(Value::Null);
            };
            let before = text.chars().take(skipped);
            let after = text.chars().skip(skipped.saturating_add(removed));
            before
                .chain(argument(values, 3)?.chars())
                .chain(after)
                .collect()
        }
        "REPLICATE" => repeated(&text, length(values, 1)?)?,
        "SPACE" => repeated(" ", length(values, 0)?)?,
        "CHAR" | "NCHAR" => {
            let code = u32::try_from(number(values, 0)?)
                .ok()
                .and_then(char::from_u32);
            return Ok(code.map_or(Value::Null, Value::text));
        }
        _ => str_of(values)?,
    };
    Ok(Value::Text(result))
}

fn repeated(text: &str, count: usize) -> Result<String, Failure> {
    if text.len().saturating_mul(count) >= TEXT_CHARACTERS_MAX {
        return Err(Failure::ending(table::arithmetic_overflow("nvarchar")));
    }
    Ok(text.repeat(count))
}

/// REPLACE compares like the default collation: case-insensitively.
fn replace_any_case(text: &str, wanted: &str, by: &str) -> Result<String, Failure> {
    if wanted.is_empty() {
        return Ok(text.to_owned());
    }
    let mut result = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let head = rest
            .get(..wanted.len())
            .filter(|head| head.eq_ignore_ascii_case(wanted));
        let used = if head.is_some() {
            wanted.len()
        } else {
            first.len_utf8()
        };
        match head {
            Some(_) => result.push_str(by),
            None => result.push(first),
        }
        rest = rest.get(used..).unwrap_or("");
        if result.len() > TEXT_CHARACTERS_MAX {
            return Err(Failure::ending(table::arithmetic_overflow("nvarchar")));
        }
    }
    Ok(result)
}

fn str_of(values: &[Value]) -> Result<String, Failure> {
    let value = values.first().cloned().unwrap_or(Value::Null);
    let Value::Float(number) = convert(&value, DataType::Float, None)? else {
        return Ok(String::new());
    };
    let width = if values.len() > 1 {
        length(values, 1)?.min(8000)
    } else {
        10
    };
    let places = if values.len() > 2 {
        length(values, 2)?.min(16)
    } else {
        0
    };
    let text = format!("{number:>width$.places$}");
    Ok(if text.chars().count() > width {
        "*".repeat(width)
    } else {
        text
    })
}

fn numeric(name: &str, values: &[Value]) -> Result<Value, Failure> {
    let value = values.first().cloned().unwrap_or(Value::Null);
    let float = |value: &Value| match convert(value, DataType::Float, None)? {
        Value::Float(number) => Ok::<f64, Failure>(number),
        _ => Ok(0.0),
    };
    let result = match (name, &value) {
        ("ABS", Value::Integer(number)) => {
            let absolute = number.checked_abs();
            return absolute
                .map(Value::Integer)
                .ok_or_else(|| table::arithmetic_overflow("bigint").into());
        }
        ("CEILING" | "FLOOR", Value::Integer(_)) => return Ok(value),
        ("ROUND", Value::Decimal(decimal)) => {
            let places = u8::try_from(number(values, 1)?.clamp(0, 38)).unwrap_or(0);
            let rounded = decimal.rescaled(places);
            return rounded
                .map(Value::Decimal)
                .ok_or_else(|| table::arithmetic_overflow("numeric").into());
        }
        ("ABS", _) => float(&value)?.abs(),
        ("CEILING", _) => float(&value)?.ceil(),
        ("FLOOR", _) => float(&value)?.floor(),
        ("SQRT", _) => float(&value)?.sqrt(),
        ("POWER", _) => float(&value)?.powf(float(values.get(1).unwrap_or(&Value::Null))?),
        _ => {
            let unit = 10f64.powi(i32::try_from(number(values, 1)?.clamp(-300, 300)).unwrap_or(0));
            (float(&value)? * unit).round() / unit
        }
    };
    if !result.is_finite() {
        return Err(table::arithmetic_overflow(type_name(&value)).into());
    }
    // Whole numbers stay whole numbers.
    let whole = matches!(value, Value::Integer(_) | Value::Decimal(_)) && result.fract() == 0.0;
    if whole && result.abs() < 9e15 {
        return Ok(Value::Integer(result as i64));
    }
    Ok(Value::Float(result))
}
