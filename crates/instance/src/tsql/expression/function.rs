//! The built-in functions that scripts around backups use.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use windlass_base::message::table;
use windlass_base::{Guid, local_now};
use windlass_tsql::ast::Expr;
use windlass_tsql::span::Spanned;

use super::convert::date_time;
use super::date::{self, Part};
use super::{Environment, Which, evaluate, integer, text, text_of};
use crate::{Failure, Value};

/// Calls a function by its name.
pub(super) fn call(
    name: &str,
    arguments: &[Spanned<Expr>],
    environment: &mut dyn Environment,
) -> Result<Value, Failure> {
    let upper = name.to_ascii_uppercase();
    // The first argument of these is the name of a date part, not an expression.
    if let "DATEPART" | "DATENAME" | "DATEADD" | "DATEDIFF" | "DATEDIFF_BIG" = upper.as_str() {
        return date_function(&upper, arguments, environment);
    }
    if let "ISNULL" | "COALESCE" = upper.as_str() {
        return first_not_null(&upper, arguments, environment);
    }
    let values = arguments
        .iter()
        .map(|argument| evaluate(argument, environment))
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(value) = session_function(&upper, &values, environment)? {
        return Ok(value);
    }
    if let Some(value) = clock_function(&upper, &values)? {
        return Ok(value);
    }
    match text::call(&upper, values)? {
        Some(value) => Ok(value),
        None => Err(Failure::ending(table::not_recognized(
            name,
            "built-in function name",
        ))),
    }
}

/// Checks the number of arguments of a function.
pub(super) fn count(
    name: &str,
    values: &[Value],
    range: std::ops::RangeInclusive<usize>,
) -> Result<(), Failure> {
    if range.contains(&values.len()) {
        return Ok(());
    }
    let wanted = if range.start() == range.end() {
        range.start().to_string()
    } else {
        format!("{} to {}", range.start(), range.end())
    };
    Err(Failure::ending(table::argument_count(
        name.to_ascii_lowercase(),
        wanted,
    )))
}

fn first_not_null(
    name: &str,
    arguments: &[Spanned<Expr>],
    environment: &mut dyn Environment,
) -> Result<Value, Failure> {
    if arguments.len() < 2 || (name == "ISNULL" && arguments.len() > 2) {
        return Err(Failure::ending(table::argument_count(
            name.to_ascii_lowercase(),
            2,
        )));
    }
    for argument in arguments {
        let value = evaluate(argument, environment)?;
        if !value.is_null() {
            return Ok(value);
        }
    }
    Ok(Value::Null)
}

/// The argument, if it is a bare word.
fn word(argument: &Spanned<Expr>) -> Option<&str> {
    match &argument.node {
        Expr::Call {
            function,
            arguments,
        } if arguments.is_empty() => Some(&function.object.text),
        Expr::Text { text, .. } => Some(text),
        _ => None,
    }
}

fn date_function(
    name: &str,
    arguments: &[Spanned<Expr>],
    environment: &mut dyn Environment,
) -> Result<Value, Failure> {
    let wanted = if matches!(name, "DATEPART" | "DATENAME") {
        2
    } else {
        3
    };
    let (Some(part), true) = (arguments.first(), arguments.len() == wanted) else {
        return Err(Failure::ending(table::argument_count(
            name.to_ascii_lowercase(),
            wanted,
        )));
    };
    let written = word(part).unwrap_or("");
    let part = Part::named(written).ok_or_else(|| {
        let option = name.to_ascii_lowercase();
        Failure::ending(table::unknown_option(written, option))
    })?;
    let mut values = Vec::new();
    for argument in arguments.iter().skip(1) {
        match evaluate(argument, environment)? {
            Value::Null => return Ok(Value::Null),
            value => values.push(value),
        }
    }
    date_value(name, part, &values)
}

/// Calls a date function with evaluated arguments; the first is the name of the date part.
pub(super) fn date_call(name: &str, arguments: Vec<Value>) -> Result<Value, Failure> {
    let wanted = if matches!(name, "DATEPART" | "DATENAME") {
        2
    } else {
        3
    };
    count(name, &arguments, wanted..=wanted)?;
    let mut arguments = arguments.into_iter();
    let written = match arguments.next() {
        Some(Value::Text(part)) => part,
        _ => String::new(),
    };
    let part = Part::named(&written).ok_or_else(|| {
        Failure::ending(table::unknown_option(&written, name.to_ascii_lowercase()))
    })?;
    let values: Vec<Value> = arguments.collect();
    if values.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    date_value(name, part, &values)
}

fn date_value(name: &str, part: Part, values: &[Value]) -> Result<Value, Failure> {
    match (name, values) {
        ("DATEPART", [at]) => Ok(Value::Integer(part.of(date_time(at)?))),
        ("DATENAME", [at]) => Ok(Value::Text(part.name_of(date_time(at)?))),
        ("DATEADD", [count, at]) => {
            let sum = date::plus(date_time(at)?, part, integer(count)?)?;
            Ok(match at {
                Value::Date(_) => Value::Date(sum.date()),
                Value::Time(_) => Value::Time(sum.time()),
                Value::DateTime2(_) => Value::DateTime2(sum),
                _ => Value::DateTime(date::to_ticks(sum)),
            })
        }
        (_, [from, to]) => Ok(Value::Integer(
            part.boundaries(date_time(from)?, date_time(to)?)?,
        )),
        _ => Ok(Value::Null),
    }
}

/// Functions of the current time, and those that return parts of a date.
pub(super) fn clock_function(name: &str, values: &[Value]) -> Result<Option<Value>, Failure> {
    let now = || local_now().datetime();
    let utc = || Timestamp::now().to_zoned(TimeZone::UTC).datetime();
    let value = match name {
        "GETDATE" | "CURRENT_TIMESTAMP" => Value::DateTime(date::to_ticks(now())),
        "GETUTCDATE" => Value::DateTime(date::to_ticks(utc())),
        "SYSDATETIME" => Value::DateTime2(now()),
        "SYSUTCDATETIME" => Value::DateTime2(utc()),
        "NEWID" => Value::Guid(Guid::random()),
        "YEAR" | "MONTH" | "DAY" => {
            count(name, values, 1..=1)?;
            match values.first() {
                Some(value) if !value.is_null() => {
                    let part = Part::named(name).unwrap_or(Part::Day);
                    Value::Integer(part.of(date_time(value)?))
                }
                _ => Value::Null,
            }
        }
        "EOMONTH" => {
            count(name, values, 1..=1)?;
            match values.first() {
                Some(value) if !value.is_null() => {
                    Value::Date(date_time(value)?.date().last_of_month())
                }
                _ => Value::Null,
            }
        }
        "ISDATE" => {
            count(name, values, 1..=1)?;
            let is_date = |value: &Value| !value.is_null() && date_time(value).is_ok();
            Value::Integer(i64::from(values.first().is_some_and(is_date)))
        }
        "FORMAT" => {
            count(name, values, 2..=3)?;
            format(values)?
        }
        _ => return Ok(None),
    };
    let takes_none = matches!(
        name,
        "GETDATE" | "CURRENT_TIMESTAMP" | "GETUTCDATE" | "SYSDATETIME" | "SYSUTCDATETIME" | "NEWID"
    );
    if takes_none {
        count(name, values, 0..=0)?;
    }
    Ok(Some(value))
}

fn format(values: &[Value]) -> Result<Value, Failure> {
    let (Some(value), Some(Value::Text(pattern))) = (values.first(), values.get(1)) else {
        return Ok(Value::Null);
    };
    match value {
        Value::Null => Ok(Value::Null),
        Value::DateTime(_) | Value::DateTime2(_) | Value::Date(_) | Value::Time(_) => {
            Ok(Value::Text(date::by_pattern(date_time(value)?, pattern)))
        }
        // Zeros in a pattern set the minimum number of digits; other patterns are not supported.
        Value::Integer(number)
            if !pattern.is_empty() && pattern.bytes().all(|byte| byte == b'0') =>
        {
            Ok(Value::Text(format!(
                "{number:0>width$}",
                width = pattern.len().min(64)
            )))
        }
        other => Err(table::format_not_supported(super::type_name(other), pattern).into()),
    }
}

/// Functions that depend on the session.
fn session_function(
    name: &str,
    values: &[Value],
    environment: &mut dyn Environment,
) -> Result<Option<Value>, Failure> {
    let value = match name {
        "DB_NAME" | "DB_ID" => {
            count(name, values, 0..=1)?;
            let found = match values.first() {
                Some(Value::Null) => None,
                Some(Value::Text(text)) if name == "DB_ID" => {
                    environment.database(Which::Named(text))?
                }
                Some(value) => environment.database(Which::Numbered(integer(value)?))?,
                None => environment.database(Which::Current)?,
            };
            match found {
                Some((_, found)) if name == "DB_NAME" => Value::Text(found),
                Some((id, _)) => Value::Integer(id),
                None => Value::Null,
            }
        }
        "HOST_NAME" => Value::text(&environment.identity().machine),
        "SUSER_SNAME" | "SUSER_NAME" | "ORIGINAL_LOGIN" | "SYSTEM_USER" => {
            Value::text(&environment.identity().user)
        }
        "USER_NAME" | "CURRENT_USER" | "SESSION_USER" | "USER" => Value::text("dbo"),
        "SERVERPROPERTY" => {
            count(name, values, 1..=1)?;
            let property = text_of(values.first().unwrap_or(&Value::Null))?;
            environment.identity().property(&property)
        }
        _ => return Ok(None),
    };
    Ok(Some(value))
}
