//! The built-in functions: which module computes them.

use windlass_base::Guid;
use windlass_base::message::table;

use super::date::{self, Part};
use super::eval::{Inputs, eval, order};
use super::function_table::function_type;
use super::session::Facts;
use super::{Bound, Collation, convert_from, integer, principal, text, text_of};
use crate::login::Right;
use crate::{DataType, Failure, IntegerType, Value};

/// A text, if it is not too long: a script must not use all memory.
pub(super) fn checked_length(text: String) -> Result<Value, Failure> {
    match text.len() > text::TEXT_BYTES_MAX {
        true => Err(table::arithmetic_overflow("nvarchar").into()),
        false => Ok(Value::Text(text)),
    }
}

/// Calls a function by its name in capitals; `ty` is the type of its result.
pub(super) fn call(
    name: &str,
    arguments: &[Bound],
    ty: DataType,
    collation: Collation,
    inputs: &Inputs<'_>,
) -> Result<Value, Failure> {
    if name == "CHOOSE" {
        return choose(arguments, inputs);
    }
    let mut values = Vec::with_capacity(arguments.len());
    for argument in arguments {
        values.push(eval(argument, inputs)?);
    }
    if let Some(value) = session_function(name, &values, inputs)? {
        return Ok(value);
    }
    if let Some(value) = any_function(name, arguments, &values, collation)? {
        return Ok(value);
    }
    if values.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let function = function_type(name);
    if function.is_some_and(|function| function.letter(0) == 'p') {
        return date_function(name, &values, arguments);
    }
    if let Some(value) = date_parts_function(name, &values)? {
        return Ok(value);
    }
    if let Some(value) = text::numeric(name, &values, ty)? {
        return Ok(value);
    }
    text::call(name, &values, collation)
}

fn choose(arguments: &[Bound], inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let Some(index) = arguments.first() else {
        return Ok(Value::Null);
    };
    let index = eval(index, inputs)?;
    if index.is_null() {
        return Ok(Value::Null);
    }
    match usize::try_from(integer(&index)?) {
        Ok(index) if index > 0 => match arguments.get(index) {
            Some(argument) => eval(argument, inputs),
            None => Ok(Value::Null),
        },
        _ => Ok(Value::Null),
    }
}

/// Functions that handle NULL themselves.
fn any_function(
    name: &str,
    arguments: &[Bound],
    values: &[Value],
    collation: Collation,
) -> Result<Option<Value>, Failure> {
    let first = values.first().unwrap_or(&Value::Null);
    Ok(Some(match name {
        "CONCAT" => text::concat(values)?,
        "CONCAT_WS" => text::concat_with(values)?,
        "QUOTENAME" => text::quote_name(values)?,
        "ISNUMERIC" => {
            let is_number = !first.is_null()
                && (convert_from(first, arguments[0].ty, DataType::Float, None).is_ok()
                    || convert_from(first, arguments[0].ty, DataType::Money, None).is_ok());
            Value::Integer(i64::from(is_number))
        }
        "ISDATE" => {
            let date = convert_from(first, arguments[0].ty, DataType::DateTime, None);
            Value::Integer(i64::from(!first.is_null() && date.is_ok()))
        }
        "EOMONTH" => {
            if first.is_null() {
                return Ok(Some(Value::Null));
            }
            let months = match values.get(1) {
                None | Some(Value::Null) => 0,
                Some(months) => integer(months)?,
            };
            let at = date::plus(super::convert::date_time(first)?, Part::Month, months)?;
            Value::Date(at.date().last_of_month())
        }
        "GREATEST" | "LEAST" => {
            let mut best = Value::Null;
            for value in values.iter().filter(|value| !value.is_null()) {
                let is_better = match order(value, &best, collation)? {
                    None => true,
                    Some(order) if name == "LEAST" => order.is_lt(),
                    Some(order) => order.is_gt(),
                };
                if is_better {
                    best = value.clone();
                }
            }
            best
        }
        "DATALENGTH" => match first {
            Value::Null => Value::Null,
            value => Value::Integer(data_length(value, arguments[0].ty)),
        },
        _ => return Ok(None),
    }))
}

fn data_length(value: &Value, ty: DataType) -> i64 {
    let length = match (value, ty) {
        (
            Value::Text(text),
            DataType::Text {
                national: false, ..
            },
        ) => text.chars().count(),
        (Value::Text(text), _) => text.encode_utf16().count() * 2,
        (Value::Binary(bytes), _) => bytes.len(),
        (_, DataType::Bit) => 1,
        (_, DataType::Integer(kind)) => kind.bytes(),
        (_, DataType::Decimal { precision, .. }) => match precision {
            0..=9 => 5,
            10..=19 => 9,
            20..=28 => 13,
            _ => 17,
        },
        (_, DataType::SmallMoney | DataType::Real | DataType::SmallDateTime) => 4,
        (_, DataType::Guid) => 16,
        (_, DataType::Date) => 3,
        (_, DataType::Time) => 5,
        _ => 8,
    };
    i64::try_from(length).unwrap_or(i64::MAX)
}

fn date_function(name: &str, values: &[Value], arguments: &[Bound]) -> Result<Value, Failure> {
    let part = match values.first() {
        Some(Value::Text(part)) => Part::named(part),
        _ => None,
    };
    let Some(part) = part else {
        return Ok(Value::Null);
    };
    let at = |index: usize| super::convert::date_time(values.get(index).unwrap_or(&Value::Null));
    match name {
        "DATEPART" => Ok(Value::Integer(part.of(at(1)?))),
        "DATENAME" => Ok(Value::Text(part.name_of(at(1)?))),
        "DATETRUNC" => Ok(as_date(&values[1], part.truncated(at(1)?))),
        "DATEADD" => {
            let last = arguments.last().map_or(DataType::DateTime, |last| last.ty);
            if last == DataType::Date && part.is_time() {
                let message = table::part_unsupported(part.word(), "dateadd", "date");
                return Err(message.into());
            }
            let sum = date::plus(at(2)?, part, integer(&values[1])?)?;
            Ok(as_date(&values[2], sum))
        }
        _ => {
            let count = part.boundaries(at(1)?, at(2)?)?;
            let range = match name {
                "DATEDIFF" => IntegerType::Int.range(),
                _ => IntegerType::BigInt.range(),
            };
            match (range.0..=range.1).contains(&count) {
                true => Ok(Value::Integer(count)),
                false => Err(table::date_difference_overflow().into()),
            }
        }
    }
}

/// A date of the same type as `model`.
fn as_date(model: &Value, at: jiff::civil::DateTime) -> Value {
    match model {
        Value::Date(_) => Value::Date(at.date()),
        Value::Time(_) => Value::Time(at.time()),
        Value::DateTime2(_) => Value::DateTime2(at),
        _ => Value::DateTime(date::to_ticks(at)),
    }
}

fn date_parts_function(name: &str, values: &[Value]) -> Result<Option<Value>, Failure> {
    let invalid = |ty: &str| Failure::from(table::date_parts_invalid(ty));
    Ok(Some(match name {
        "YEAR" | "MONTH" | "DAY" => {
            let part = Part::named(name).unwrap_or(Part::Day);
            Value::Integer(part.of(super::convert::date_time(&values[0])?))
        }
        "DATEFROMPARTS" => Value::Date(
            date::of_parts(values)
                .ok_or_else(|| invalid("date"))?
                .date(),
        ),
        "DATETIMEFROMPARTS" => {
            let at = date::of_parts(values).ok_or_else(|| invalid("datetime"))?;
            Value::DateTime(date::to_ticks(at))
        }
        "FORMAT" => format(values)?,
        _ => return Ok(None),
    }))
}

/// The longest pattern of FORMAT, whose parameter is `nvarchar(4000)`, and how much of one a message shows.
const PATTERN_CHARACTERS_MAX: usize = 4000;
const PATTERN_SHOWN: usize = 100;

fn format(values: &[Value]) -> Result<Value, Failure> {
    let (Some(value), Some(Value::Text(pattern))) = (values.first(), values.get(1)) else {
        return Ok(Value::Null);
    };
    let refused = || {
        let shown: String = pattern.chars().take(PATTERN_SHOWN).collect();
        Failure::from(table::format_not_supported(
            super::type_of(value).name(),
            shown,
        ))
    };
    if pattern.chars().count() > PATTERN_CHARACTERS_MAX {
        return Err(refused());
    }
    if values.len() > 2
        && !matches!(&values[2], Value::Text(culture) if culture.eq_ignore_ascii_case("en-us"))
    {
        return Err(refused());
    }
    match value {
        Value::DateTime(_) | Value::DateTime2(_) | Value::Date(_) | Value::Time(_) => Ok(
            Value::Text(date::by_pattern(super::convert::date_time(value)?, pattern)),
        ),
        Value::Bit(_) | Value::Integer(_) | Value::Decimal(_) | Value::Float(_) => {
            text::number_by_pattern(value, pattern)
                .map(Value::Text)
                .ok_or_else(refused)
        }
        _ => Err(refused()),
    }
}

/// Functions about the session, and of the clock.
fn session_function(
    name: &str,
    values: &[Value],
    inputs: &Inputs<'_>,
) -> Result<Option<Value>, Failure> {
    let facts = inputs.facts;
    let error =
        |of: fn(&windlass_base::Message) -> Value| facts.error.as_ref().map_or(Value::Null, of);
    Ok(Some(match name {
        "GETDATE" | "CURRENT_TIMESTAMP" => Value::DateTime(date::to_ticks(facts.now)),
        "GETUTCDATE" => Value::DateTime(date::to_ticks(facts.utc)),
        "SYSDATETIME" => Value::DateTime2(facts.now),
        "SYSUTCDATETIME" => Value::DateTime2(facts.utc),
        "NEWID" => Value::Guid(Guid::random()),
        "PI" => Value::Float(std::f64::consts::PI),
        "RAND" => Value::Float(random()),
        "DB_NAME" => match values.first() {
            None => Value::text(&facts.database),
            Some(Value::Null) => Value::Null,
            Some(number) => {
                let found = facts.numbered(integer(number)?);
                found.map_or(Value::Null, |(_, name)| Value::text(name))
            }
        },
        "DB_ID" | "HAS_DBACCESS" => {
            let name_asked = match values.first() {
                None => facts.database.clone(),
                Some(Value::Null) => return Ok(Some(Value::Null)),
                Some(name) => text_of(name)?,
            };
            let found = facts.named(&name_asked);
            found.map_or(Value::Null, |(id, _)| match name {
                "DB_ID" => Value::Integer(*id),
                _ => Value::Integer(i64::from(is_open(facts, *id))),
            })
        }
        "DATABASEPROPERTYEX" => match values {
            [Value::Null, _] | [_, Value::Null] => Value::Null,
            [database, property] => {
                let found = facts.named(&text_of(database)?);
                match (found, text_of(property)) {
                    (Some((id, _)), Ok(name)) => {
                        let states = (facts.state_of(*id), facts.recovery_of(*id));
                        database_property(&name, states)
                    }
                    _ => Value::Null,
                }
            }
            _ => Value::Null,
        },
        "HOST_NAME" => Value::text(&facts.identity.machine),
        "APP_NAME" => Value::text(crate::PRODUCT),
        "SUSER_SNAME" | "SUSER_NAME" | "SUSER_ID" | "SUSER_SID" | "ORIGINAL_LOGIN"
        | "SYSTEM_USER" | "IS_SRVROLEMEMBER" => principal::of(name, values, facts)?,
        "USER_NAME" | "CURRENT_USER" | "SESSION_USER" | "USER" | "SCHEMA_NAME" => {
            Value::text("dbo")
        }
        "DATABASE_PRINCIPAL_ID" => Value::Integer(1),
        "SERVERPROPERTY" => match values.first() {
            None | Some(Value::Null) => Value::Null,
            Some(property) => facts.identity.property(&text_of(property)?),
        },
        "ERROR_NUMBER" => error(|error| Value::Integer(i64::from(error.number))),
        "ERROR_SEVERITY" => error(|error| Value::Integer(i64::from(error.severity.0))),
        "ERROR_STATE" => error(|error| Value::Integer(i64::from(error.state))),
        "ERROR_LINE" => error(|error| Value::Integer(i64::from(error.line.max(1)))),
        "ERROR_MESSAGE" => error(|error| Value::text(&error.text)),
        "ERROR_PROCEDURE" => error(|error| Value::optional_text(error.procedure.as_deref())),
        "XACT_STATE" => Value::Integer(facts.transaction_state),
        _ => return Ok(None),
    }))
}

/// Whether the session may use a database now.
fn is_open(facts: &Facts, id: i64) -> bool {
    let is_system = crate::SYSTEM_DATABASES.iter().any(|(_, own)| *own == id);
    facts.is_online(id) && (is_system || facts.principal.may(Right::Databases))
}

/// A property of a database in a state and with a recovery model; NULL for those that are not known here, as on SQL Server.
fn database_property(name: &str, (state, recovery_model): (&str, &str)) -> Value {
    match name.to_ascii_uppercase().as_str() {
        "STATUS" => Value::text(state),
        "RECOVERY" => Value::text(recovery_model),
        "UPDATEABILITY" => Value::text("READ_WRITE"),
        "USERACCESS" => Value::text("MULTI_USER"),
        "COLLATION" => Value::text("SQL_Latin1_General_CP1_CI_AS"),
        "COMPARISONSTYLE" => Value::Integer(196_609),
        "LCID" => Value::Integer(1033),
        "SQLSORTORDER" => Value::Integer(52),
        "ISANSINULLDEFAULT"
        | "ISANSINULLSENABLED"
        | "ISANSIPADDINGENABLED"
        | "ISANSIWARNINGSENABLED"
        | "ISARITHMETICABORTENABLED"
        | "ISNULLCONCAT"
        | "ISQUOTEDIDENTIFIERSENABLED" => Value::Integer(1),
        "ISAUTOCLOSE"
        | "ISAUTOCREATESTATISTICS"
        | "ISAUTOCREATESTATISTICSINCREMENTAL"
        | "ISAUTOSHRINK"
        | "ISAUTOUPDATESTATISTICS"
        | "ISCLONE"
        | "ISCLOSECURSORSONCOMMITENABLED"
        | "ISFULLTEXTENABLED"
        | "ISINSTANDBY"
        | "ISLOCALCURSORSDEFAULT"
        | "ISMEMORYOPTIMIZEDELEVATETOSNAPSHOTENABLED"
        | "ISMERGEPUBLISHED"
        | "ISNUMERICROUNDABORTENABLED"
        | "ISPARAMETERIZATIONFORCED"
        | "ISPUBLISHED"
        | "ISSUBSCRIBED"
        | "ISSYNCWITHBACKUP"
        | "ISVERIFIEDCLONE" => Value::Integer(0),
        _ => Value::Null,
    }
}

/// A number from 0 to 1, from the bytes of a random identifier.
fn random() -> f64 {
    let bytes = Guid::random().to_stored();
    let number = bytes
        .iter()
        .take(6)
        .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    number as f64 / (1_u64 << 48) as f64
}
