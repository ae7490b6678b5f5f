//! Evaluates the scalar expressions of DECLARE, SET and PRINT.
//!
//! T-SQL's rules apply: NULL propagates, integers divide to integers, `+` joins two texts and adds
//! everything else, a text combined with a number becomes a number. An [`Environment`] provides what
//! depends on the session (variables, database names, subqueries).

mod convert;
mod date;
mod function;
mod number;
mod text;

pub use convert::{assign, convert};

use windlass_base::message::table;
use windlass_tsql::ast::{Expr, InfixOperator, OnConversionFailure, Statement, UnaryOperator};
use windlass_tsql::span::Spanned;

use crate::data_type::CONVERSION_LENGTH;
use crate::{DataType, Decimal, Failure, Value};

/// What an expression needs from its session.
pub trait Environment {
    /// The value of `@x` or `@@x`.
    fn variable(&mut self, name: &str) -> Result<Value, Failure>;

    /// The first value of the first row of a query; NULL if it has no row.
    fn subquery(&mut self, text: &str) -> Result<Value, Failure>;

    /// The id and name of a database.
    fn database(&mut self, which: Which<'_>) -> Result<Option<(i64, String)>, Failure>;

    fn identity(&self) -> &crate::Identity;
}

#[derive(Debug, Clone, Copy)]
pub enum Which<'a> {
    /// The current one.
    Current,
    /// The one with this id.
    Numbered(i64),
    /// The one with this name.
    Named(&'a str),
}

/// Evaluates an expression.
///
/// # Errors
/// SQL Server's messages for values that cannot be computed.
pub fn evaluate(
    expression: &Spanned<Expr>,
    environment: &mut dyn Environment,
) -> Result<Value, Failure> {
    match &expression.node {
        Expr::Null => Ok(Value::Null),
        Expr::Text { text, .. } => Ok(Value::text(text)),
        Expr::Integer(number) => Ok(Value::Integer(*number)),
        Expr::Decimal(written) => constant(written),
        Expr::Binary(bytes) => Ok(Value::Binary(bytes.clone())),
        Expr::Variable(variable) => environment.variable(&variable.name),
        Expr::Unary { operator, operand } => {
            let value = evaluate(operand, environment)?;
            signed(*operator, value)
        }
        Expr::Infix {
            operator,
            left,
            right,
        } => {
            let left = evaluate(left, environment)?;
            let right = evaluate(right, environment)?;
            infix(*operator, left, right)
        }
        Expr::Call {
            function,
            arguments,
        } => function::call(&function.object.text, arguments, environment),
        Expr::Cast {
            value,
            data_type,
            on_failure,
        } => {
            let value = evaluate(value, environment)?;
            let target = written_type(data_type)?;
            or_null(*on_failure, convert(&value, target, None))
        }
        Expr::Convert {
            data_type,
            value,
            style,
            on_failure,
        } => {
            let value = evaluate(value, environment)?;
            let target = written_type(data_type)?;
            let style = match style {
                Some(style) => match evaluate(style, environment)? {
                    Value::Null => return Ok(Value::Null),
                    style => Some(integer(&style)?),
                },
                None => None,
            };
            or_null(*on_failure, convert(&value, target, style))
        }
        Expr::Subquery { text } => environment.subquery(text),
    }
}

fn written_type(written: &windlass_tsql::ast::DataType) -> Result<DataType, Failure> {
    DataType::of(written, CONVERSION_LENGTH)
        .ok_or_else(|| table::data_type_not_found(&written.name.object.text).into())
}

fn or_null(
    on_failure: OnConversionFailure,
    value: Result<Value, Failure>,
) -> Result<Value, Failure> {
    match on_failure {
        OnConversionFailure::Error => value,
        OnConversionFailure::Null => Ok(value.unwrap_or(Value::Null)),
    }
}

/// A constant with a point (exact) or an exponent (floating).
fn constant(written: &str) -> Result<Value, Failure> {
    if let Ok(decimal) = written.parse::<Decimal>() {
        return Ok(Value::Decimal(decimal));
    }
    match written.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Value::Float(number)),
        _ => Err(table::arithmetic_overflow("float").into()),
    }
}

fn signed(operator: UnaryOperator, value: Value) -> Result<Value, Failure> {
    if operator == UnaryOperator::Plus {
        return Ok(value);
    }
    match value {
        Value::Text(_) => number::infix(InfixOperator::Subtract, Value::Integer(0), value),
        Value::Null => Ok(Value::Null),
        Value::Integer(number) => {
            let negated = number.checked_neg();
            negated
                .map(Value::Integer)
                .ok_or_else(|| table::arithmetic_overflow("bigint").into())
        }
        Value::Decimal(decimal) => Ok(Value::Decimal(decimal.negated())),
        Value::Float(number) => Ok(Value::Float(-number)),
        other => {
            Err(table::incompatible_types(type_name(&other), type_name(&other), "minus").into())
        }
    }
}

/// Applies an operator; also serves `SET @x += ...`.
pub(crate) fn infix(operator: InfixOperator, left: Value, right: Value) -> Result<Value, Failure> {
    match (&left, &right) {
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::Text(first), Value::Text(second)) if operator == InfixOperator::Add => {
            Ok(Value::Text(format!("{first}{second}")))
        }
        (Value::Binary(first), Value::Binary(second)) if operator == InfixOperator::Add => {
            Ok(Value::Binary([first.as_slice(), second].concat()))
        }
        (Value::DateTime(_) | Value::DateTime2(_), _) | (_, Value::DateTime(_)) => {
            date::infix(operator, &left, &right)
        }
        _ => number::infix(operator, left, right),
    }
}

/// The name of a value's type in messages.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null | Value::Text(_) => "nvarchar",
        Value::Bit(_) => "bit",
        Value::Integer(number) => match i32::try_from(*number) {
            Ok(_) => "int",
            Err(_) => "bigint",
        },
        Value::Decimal(_) => "numeric",
        Value::Float(_) => "float",
        Value::Binary(_) => "varbinary",
        Value::Guid(_) => "uniqueidentifier",
        Value::DateTime(_) => "datetime",
        Value::DateTime2(_) => "datetime2",
        Value::Date(_) => "date",
        Value::Time(_) => "time",
    }
}

/// Converts a value that is not NULL to an integer.
pub(crate) fn integer(value: &Value) -> Result<i64, Failure> {
    match convert(value, DataType::Integer(crate::IntegerType::BigInt), None)? {
        Value::Integer(number) => Ok(number),
        _ => Ok(0),
    }
}

/// Converts a value that is not NULL to text.
pub(crate) fn text_of(value: &Value) -> Result<String, Failure> {
    match convert(
        value,
        DataType::Text {
            limit: None,
            padded: false,
        },
        None,
    )? {
        Value::Text(text) => Ok(text),
        other => Ok(other.to_string()),
    }
}

/// Calls a T-SQL function for SQLite, with arguments that SQLite evaluated.
pub(crate) fn sqlite_function(name: &str, arguments: Vec<Value>) -> Result<Value, Failure> {
    match name {
        "DATEADD" | "DATEDIFF" | "DATEDIFF_BIG" | "DATENAME" | "DATEPART" => {
            return function::date_call(name, arguments);
        }
        "TSQL_CONVERT" => return converted(&arguments),
        "TSQL_TRY_CONVERT" => return Ok(converted(&arguments).unwrap_or(Value::Null)),
        "TSQL_FORMAT" => {
            let values: Vec<Value> = arguments.into_iter().map(stored_date).collect();
            let value = function::clock_function("FORMAT", &values)?;
            return Ok(value.unwrap_or(Value::Null));
        }
        _ => {}
    }
    if let Some(value) = function::clock_function(name, &arguments)? {
        return Ok(value);
    }
    let value = text::call(name, arguments)?;
    value.ok_or_else(|| Failure::ending(table::not_recognized(name, "built-in function name")))
}

/// `CONVERT('type', value [, style])` for values of SQLite.
fn converted(arguments: &[Value]) -> Result<Value, Failure> {
    let (Some(Value::Text(data_type)), Some(value)) = (arguments.first(), arguments.get(1)) else {
        return Ok(Value::Null);
    };
    let statements = windlass_tsql::parse_batch(&format!("DECLARE @x {data_type}"));
    let target = match statements.as_deref() {
        Ok([statement]) => match &statement.node {
            Statement::Declare(declarations) => match declarations.as_slice() {
                [declaration] => Some(written_type(&declaration.data_type)?),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let target = target.ok_or_else(|| Failure::from(table::data_type_not_found(data_type)))?;
    let style = match arguments.get(2) {
        None => None,
        Some(Value::Null) => return Ok(Value::Null),
        Some(style) => Some(integer(style)?),
    };
    convert(&stored_date(value.clone()), target, style)
}

/// SQLite has no type for dates: a text exactly in the format of the history becomes a date.
fn stored_date(value: Value) -> Value {
    const FORM: &str = "0000-00-00 00:00:00";
    let Value::Text(text) = &value else {
        return value;
    };
    let has_form = text.len() >= FORM.len()
        && text
            .bytes()
            .zip(FORM.bytes())
            .all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                other => byte == other,
            })
        && text[FORM.len()..]
            .strip_prefix('.')
            .map_or(text.len() == FORM.len(), |fraction| {
                (1..=7).contains(&fraction.len())
                    && fraction.bytes().all(|byte| byte.is_ascii_digit())
            });
    match has_form.then(|| convert(&value, DataType::DateTime, None)) {
        Some(Ok(date)) => date,
        _ => value,
    }
}

#[cfg(test)]
mod tests;
