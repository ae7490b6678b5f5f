//! The built-in functions on texts and numbers. Their arguments are neither NULL nor of another type than
//! the table of functions says.

use windlass_base::message::table;

use super::collation::find;
use super::function::checked_length;
use super::like::Pattern;
use super::{Collation, convert_from, integer, number, text_of, type_of};
use crate::{DataType, Decimal, Failure, Value};

/// Maximum length of a text that an expression makes: limits the memory that a script can use.
pub(super) const TEXT_BYTES_MAX: usize = 64 << 20;

pub(super) fn concat(values: &[Value]) -> Result<Value, Failure> {
    let mut joined = String::new();
    for value in values.iter().filter(|value| !value.is_null()) {
        joined.push_str(&text_of(value)?);
    }
    checked_length(joined)
}

pub(super) fn concat_with(values: &[Value]) -> Result<Value, Failure> {
    let mut values = values.iter();
    let separator = match values.next() {
        None | Some(Value::Null) => String::new(),
        Some(separator) => text_of(separator)?,
    };
    let mut parts = Vec::new();
    for value in values.filter(|value| !value.is_null()) {
        parts.push(text_of(value)?);
    }
    checked_length(parts.join(&separator))
}

pub(super) fn quote_name(values: &[Value]) -> Result<Value, Failure> {
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

fn argument(values: &[Value], index: usize) -> Result<String, Failure> {
    values.get(index).map_or(Ok(String::new()), text_of)
}

fn number(values: &[Value], index: usize) -> Result<i64, Failure> {
    values.get(index).map_or(Ok(0), integer)
}

/// A count argument of a text function: not negative.
fn length(values: &[Value], index: usize) -> Result<usize, Failure> {
    usize::try_from(number(values, index)?).map_err(|_| table::invalid_length().into())
}

/// Calls a function on texts.
pub(super) fn call(name: &str, values: &[Value], collation: Collation) -> Result<Value, Failure> {
    let text = argument(values, 0)?;
    let exact = collation == Collation::Exact;
    let count = |count: usize| Ok(Value::amount(count as u64));
    let result = match name {
        "LEN" => return count(text.trim_end_matches(' ').chars().count()),
        "CHARINDEX" => return char_index(&text, values, exact),
        "PATINDEX" => return Ok(pattern_index(&text, &argument(values, 1)?, exact)),
        "ASCII" | "UNICODE" => {
            let first = text.chars().next();
            return Ok(first.map_or(Value::Null, |first| {
                Value::Integer(i64::from(u32::from(first)))
            }));
        }
        "UPPER" => text.to_uppercase(),
        "LOWER" => text.to_lowercase(),
        "LTRIM" | "RTRIM" | "TRIM" => trim(name, &text, values)?,
        "REVERSE" => text.chars().rev().collect(),
        "LEFT" => text.chars().take(length(values, 1)?).collect(),
        "RIGHT" => {
            let skipped = text.chars().count().saturating_sub(length(values, 1)?);
            text.chars().skip(skipped).collect()
        }
        "SUBSTRING" => substring(&text, number(values, 1)?, length(values, 2)?),
        "REPLACE" => return replace(&text, &argument(values, 1)?, &argument(values, 2)?, exact),
        "TRANSLATE" => translate(&text, &argument(values, 1)?, &argument(values, 2)?)?,
        "STUFF" => {
            let total = text.chars().count();
            let start = usize::try_from(number(values, 1)? - 1).ok();
            let removed = usize::try_from(number(values, 2)?).ok();
            let (Some(start), Some(removed)) = (start.filter(|start| *start < total), removed)
            else {
                return Ok(Value::Null);
            };
            let after = text.chars().skip(start.saturating_add(removed));
            let before = text.chars().take(start);
            before
                .chain(argument(values, 3)?.chars())
                .chain(after)
                .collect()
        }
        "REPLICATE" | "SPACE" => {
            let (text, index) = match name {
                "SPACE" => (" ", 0),
                _ => (text.as_str(), 1),
            };
            return match usize::try_from(number(values, index)?) {
                Ok(count) => repeated(text, count).map(Value::Text),
                Err(_) => Ok(Value::Null),
            };
        }
        "CHAR" | "NCHAR" => {
            let most = if name == "CHAR" { 255 } else { 65_535 };
            let code = u32::try_from(number(values, 0)?)
                .ok()
                .filter(|code| *code <= most);
            let code = code.and_then(char::from_u32);
            return Ok(code.map_or(Value::Null, Value::text));
        }
        "PARSENAME" => {
            let parts: Vec<&str> = text.rsplit('.').collect();
            let index = usize::try_from(number(values, 1)? - 1).unwrap_or(usize::MAX);
            let part = parts.get(index).filter(|_| parts.len() <= 4);
            let part = part.map(|part| part.trim_start_matches('[').trim_end_matches(']'));
            return Ok(part
                .filter(|part| !part.is_empty())
                .map_or(Value::Null, Value::text));
        }
        "STR" => string_of(values)?,
        _ => return Err(table::not_recognized(name, "built-in function name").into()),
    };
    checked_length(result)
}

fn substring(text: &str, start: i64, length: usize) -> String {
    // A start position before the text counts from there, as in SQL Server.
    let end = start.saturating_add(i64::try_from(length).unwrap_or(i64::MAX));
    let taken = usize::try_from(end.saturating_sub(start.max(1)).max(0)).unwrap_or(0);
    let skipped = usize::try_from(start.max(1) - 1).unwrap_or(usize::MAX);
    text.chars().skip(skipped).take(taken).collect()
}

fn char_index(wanted: &str, values: &[Value], exact: bool) -> Result<Value, Failure> {
    let within: Vec<char> = argument(values, 1)?.chars().collect();
    let wanted: Vec<char> = wanted.chars().collect();
    let start = usize::try_from(number(values, 2)?.max(1) - 1).unwrap_or(usize::MAX);
    let found = match start < within.len() {
        true => find(&within, &wanted, start, exact),
        false => None,
    };
    Ok(Value::amount(found.map_or(0, |at| at as u64 + 1)))
}

fn pattern_index(pattern: &str, text: &str, exact: bool) -> Value {
    let text: Vec<char> = text.chars().collect();
    let begins_anywhere = pattern.starts_with('%');
    let stripped = pattern.strip_prefix('%').unwrap_or(pattern);
    let pattern = Pattern::new(stripped, None, exact);
    let starts = if begins_anywhere { text.len() } else { 1 };
    let found = (0..starts).find(|at| text.get(*at..).is_some_and(|rest| pattern.matches(rest)));
    Value::amount(found.map_or(0, |at| at as u64 + 1))
}

fn trim(name: &str, text: &str, values: &[Value]) -> Result<String, Failure> {
    let characters = match values.len() {
        2.. => argument(values, 1)?,
        _ => " ".to_owned(),
    };
    let is_cut = |character: char| characters.contains(character);
    Ok(match name {
        "LTRIM" => text.trim_start_matches(is_cut),
        "RTRIM" => text.trim_end_matches(is_cut),
        _ => text.trim_matches(is_cut),
    }
    .to_owned())
}

fn repeated(text: &str, count: usize) -> Result<String, Failure> {
    if text.len().saturating_mul(count) >= TEXT_BYTES_MAX {
        return Err(Failure::ending(table::arithmetic_overflow("nvarchar")));
    }
    Ok(text.repeat(count))
}

/// REPLACE compares like the collation of its first argument.
fn replace(text: &str, wanted: &str, by: &str, exact: bool) -> Result<Value, Failure> {
    let characters: Vec<char> = text.chars().collect();
    let wanted: Vec<char> = wanted.chars().collect();
    let mut result = String::new();
    let mut at = 0;
    while let Some(found) = find(&characters, &wanted, at, exact) {
        result.extend(characters.get(at..found).unwrap_or(&[]));
        result.push_str(by);
        at = found + wanted.len();
        if result.len() > TEXT_BYTES_MAX {
            return Err(table::arithmetic_overflow("nvarchar").into());
        }
    }
    result.extend(characters.get(at..).unwrap_or(&[]));
    checked_length(result)
}

fn translate(text: &str, from: &str, to: &str) -> Result<String, Failure> {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    if from.len() != to.len() {
        return Err(table::translate_lengths().into());
    }
    Ok(text
        .chars()
        .map(|character| {
            let at = from.iter().position(|from| *from == character);
            at.and_then(|at| to.get(at)).copied().unwrap_or(character)
        })
        .collect())
}

fn string_of(values: &[Value]) -> Result<String, Failure> {
    let number = number::float(values.first().unwrap_or(&Value::Null));
    let width = match values.len() {
        2.. => length(values, 1)?.min(8000),
        _ => 10,
    };
    let places = match values.len() {
        3.. => length(values, 2)?.min(16),
        _ => 0,
    };
    let text = format!("{number:>width$.places$}");
    Ok(match text.chars().count() > width {
        true => "*".repeat(width),
        false => text,
    })
}

/// Calls a function on numbers; `None` if it is none.
pub(super) fn numeric(
    name: &str,
    values: &[Value],
    ty: DataType,
) -> Result<Option<Value>, Failure> {
    let Some(first) = values.first() else {
        return Ok(None);
    };
    if let "ABS" | "CEILING" | "FLOOR" | "ROUND" | "SIGN" | "POWER" = name {
        let own = type_of(first);
        let target = if ty == DataType::Variant { own } else { ty };
        let value = match first {
            Value::Text(_) | Value::Bit(_) => convert_from(first, own, target, None)?,
            _ => first.clone(),
        };
        return of_own_type(name, value, values, target).map(Some);
    }
    let number = number::float(first);
    let result = match name {
        "SQRT" if number < 0.0 => return Err(table::invalid_operation().into()),
        "SQRT" => number.sqrt(),
        "SQUARE" => number * number,
        "EXP" => number.exp(),
        "LOG" | "LOG10" if number <= 0.0 => return Err(table::invalid_operation().into()),
        "LOG" => match values.get(1) {
            Some(base) => number.log(number::float(base)),
            None => number.ln(),
        },
        "LOG10" => number.log10(),
        "SIN" => number.sin(),
        "COS" => number.cos(),
        "TAN" => number.tan(),
        "COT" => 1.0 / number.tan(),
        "ASIN" => number.asin(),
        "ACOS" => number.acos(),
        "ATAN" => number.atan(),
        "ATN2" => number.atan2(number::float(values.get(1).unwrap_or(&Value::Null))),
        "DEGREES" => number.to_degrees(),
        "RADIANS" => number.to_radians(),
        _ => return Ok(None),
    };
    match result.is_finite() {
        true => Ok(Some(Value::Float(result))),
        false => Err(table::invalid_operation().into()),
    }
}

fn of_own_type(name: &str, value: Value, values: &[Value], ty: DataType) -> Result<Value, Failure> {
    let overflow = || Failure::from(table::arithmetic_overflow(ty.name()));
    let result = match (name, value) {
        ("POWER", value) => {
            let power = number::float(values.get(1).unwrap_or(&Value::Null));
            let result = number::float(&value).powf(power);
            if !result.is_finite() {
                return Err(overflow());
            }
            return convert_from(&Value::Float(result), DataType::Float, ty, None);
        }
        ("ROUND", value) => {
            let cut = values.len() > 2 && number(values, 2)? != 0;
            return rounded(&value, number(values, 1)?, cut, ty);
        }
        ("ABS", Value::Integer(number)) => {
            Value::Integer(number.checked_abs().ok_or_else(overflow)?)
        }
        ("SIGN", Value::Integer(number)) => Value::Integer(number.signum()),
        (_, Value::Integer(number)) => Value::Integer(number),
        ("ABS", Value::Decimal(decimal)) if decimal.unscaled() < 0 => {
            Value::Decimal(decimal.negated())
        }
        ("SIGN", Value::Decimal(decimal)) => {
            let sign = Decimal::from(i64::try_from(decimal.unscaled().signum()).unwrap_or(0));
            Value::Decimal(sign.rescaled(decimal.scale()).ok_or_else(overflow)?)
        }
        ("CEILING" | "FLOOR", Value::Decimal(decimal)) => {
            let whole = Decimal::whole(decimal.truncated()).ok_or_else(overflow)?;
            let differs = decimal.compare(whole);
            let one = Decimal::from(1);
            Value::Decimal(match name {
                "CEILING" if differs.is_gt() => whole.plus(one).ok_or_else(overflow)?,
                "FLOOR" if differs.is_lt() => whole.plus(one.negated()).ok_or_else(overflow)?,
                _ => whole,
            })
        }
        ("ABS", Value::Float(number)) => Value::Float(number.abs()),
        ("SIGN", Value::Float(0.0)) => Value::Float(0.0),
        ("SIGN", Value::Float(number)) => Value::Float(number.signum()),
        ("CEILING", Value::Float(number)) => Value::Float(number.ceil()),
        ("FLOOR", Value::Float(number)) => Value::Float(number.floor()),
        (_, other) => other,
    };
    match (&result, ty) {
        (Value::Integer(_), DataType::Integer(_)) => {
            convert_from(&result, DataType::BIGINT, ty, None)
        }
        _ => Ok(result),
    }
}

/// ROUND, or with `cut` towards zero; negative places round before the point.
fn rounded(value: &Value, places: i64, cut: bool, ty: DataType) -> Result<Value, Failure> {
    let overflow = || Failure::from(table::arithmetic_overflow(ty.name()));
    if let Value::Float(number) = value {
        let unit = 10f64.powi(i32::try_from(places.clamp(-300, 300)).unwrap_or(0));
        let scaled = number * unit;
        let whole = if cut { scaled.trunc() } else { scaled.round() };
        return Ok(Value::Float(whole / unit));
    }
    let Some(decimal) = number::decimal(value) else {
        return Ok(value.clone());
    };
    let scale = decimal.scale();
    let dropped = i64::from(scale).saturating_sub(places);
    if dropped <= 0 {
        return Ok(value.clone());
    }
    let unit = u32::try_from(dropped)
        .ok()
        .and_then(|dropped| 10i128.checked_pow(dropped));
    let unscaled = match unit {
        None => 0,
        Some(unit) => {
            let half = if cut {
                0
            } else {
                unit / 2 * decimal.unscaled().signum()
            };
            (decimal.unscaled() + half) / unit * unit
        }
    };
    let result = Decimal::scaled(unscaled, scale).ok_or_else(overflow)?;
    match value {
        Value::Integer(_) | Value::Bit(_) => {
            let whole = i64::try_from(result.truncated()).map_err(|_| overflow())?;
            let ty = if ty == DataType::Variant {
                DataType::BIGINT
            } else {
                ty
            };
            convert_from(&Value::Integer(whole), DataType::BIGINT, ty, None)
        }
        _ => Ok(Value::Decimal(result)),
    }
}

/// A number in one of .NET's patterns: `0000`, `#,##0.00`, `N2`, `F1`, `D5`; `None` for others.
pub(super) fn number_by_pattern(value: &Value, pattern: &str) -> Option<String> {
    let exact = number::decimal(value)?;
    let (letter, digits) = (pattern.chars().next()?, pattern.get(1..)?);
    if letter.is_ascii_alphabetic() {
        let given: Option<u8> = match digits {
            "" => None,
            digits => Some(digits.parse().ok().filter(|places| *places <= 30)?),
        };
        return match letter.to_ascii_uppercase() {
            'N' => Some(grouped(
                &exact.rescaled(given.unwrap_or(2))?.to_string(),
                true,
            )),
            'F' => Some(exact.rescaled(given.unwrap_or(2))?.to_string()),
            'P' => {
                let percent = exact
                    .times(Decimal::from(100))?
                    .rescaled(given.unwrap_or(2))?;
                Some(grouped(&percent.to_string(), true) + "%")
            }
            'D' if matches!(value, Value::Integer(_) | Value::Bit(_)) => {
                let width = usize::from(given.unwrap_or(1));
                let sign = if exact.unscaled() < 0 { "-" } else { "" };
                Some(format!(
                    "{sign}{:0>width$}",
                    exact.unscaled().unsigned_abs()
                ))
            }
            _ => None,
        };
    }
    let is_plain = pattern.bytes().all(|byte| b"0#,.".contains(&byte));
    let (whole, places) = pattern.split_once('.').unwrap_or((pattern, ""));
    if !is_plain || places.contains([',', '.']) || places.contains("#0") {
        return None;
    }
    let text = exact
        .rescaled(u8::try_from(places.len().min(30)).ok()?)?
        .to_string();
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest.to_owned()),
        None => ("", text),
    };
    let (digits, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let least = whole.matches('0').count();
    let digits = if digits == "0" && least == 0 {
        ""
    } else {
        digits
    };
    let digits = grouped(&format!("{digits:0>least$}"), whole.contains(','));
    let kept = places.matches('0').count();
    let mut fraction = fraction.to_owned();
    while fraction.len() > kept && fraction.ends_with('0') {
        fraction.pop();
    }
    Some(match fraction.is_empty() {
        true => format!("{sign}{digits}"),
        false => format!("{sign}{digits}.{fraction}"),
    })
}

/// Digits with a comma after every three.
fn grouped(text: &str, commas: bool) -> String {
    if !commas {
        return text.to_owned();
    }
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (whole, fraction) = text
        .split_once('.')
        .map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let mut result = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            result.push(',');
        }
        result.push(digit);
    }
    if let Some(fraction) = fraction {
        result.push('.');
        result.push_str(fraction);
    }
    result
}
