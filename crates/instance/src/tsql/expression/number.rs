//! Arithmetic on numbers: integers stay integers, decimals stay exact, and floats take precedence.

use windlass_base::message::table;
use windlass_tsql::ast::InfixOperator;

use super::type_name;
use crate::{Decimal, Failure, Value};

/// Applies an operator to two values, neither of them NULL or a date.
pub(super) fn infix(operator: InfixOperator, left: Value, right: Value) -> Result<Value, Failure> {
    let names = (type_name(&left), type_name(&right));
    // A text combined with a number is converted to the number's type.
    let (left, right) = match (left, right) {
        (Value::Text(text), right) => (number_of(&text, &right)?, right),
        (left, Value::Text(text)) => {
            let number = number_of(&text, &left)?;
            (left, number)
        }
        both => both,
    };
    match (bit_as_integer(left), bit_as_integer(right)) {
        (Value::Integer(left), Value::Integer(right)) => integers(operator, left, right),
        (Value::Float(left), right) if as_float(&right).is_some() => {
            floats(operator, left, as_float(&right).unwrap_or(0.0))
        }
        (left, Value::Float(right)) if as_float(&left).is_some() => {
            floats(operator, as_float(&left).unwrap_or(0.0), right)
        }
        (left, right) => match (as_decimal(&left), as_decimal(&right)) {
            (Some(left), Some(right)) => decimals(operator, left, right),
            _ => Err(table::incompatible_types(names.0, names.1, name(operator)).into()),
        },
    }
}

fn name(operator: InfixOperator) -> &'static str {
    match operator {
        InfixOperator::Add => "add",
        InfixOperator::Subtract => "subtract",
        InfixOperator::Multiply => "multiply",
        InfixOperator::Divide => "divide",
        InfixOperator::Modulo => "modulo",
    }
}

/// Parses a text as a number of the same type as `other`.
fn number_of(text: &str, other: &Value) -> Result<Value, Failure> {
    let trimmed = text.trim();
    let value = match other {
        Value::Float(_) => trimmed.parse().ok().map(Value::Float),
        Value::Decimal(_) => trimmed.parse().ok().map(Value::Decimal),
        Value::Integer(_) | Value::Bit(_) | Value::Text(_) => match trimmed {
            "" => Some(Value::Integer(0)),
            digits => digits.parse().ok().map(Value::Integer),
        },
        _ => None,
    };
    let wanted = match other {
        Value::Text(_) => "int",
        other => type_name(other),
    };
    value.ok_or_else(|| Failure::ending(table::conversion_failed(text, wanted)))
}

fn bit_as_integer(value: Value) -> Value {
    match value {
        Value::Bit(bit) => Value::Integer(i64::from(bit)),
        other => other,
    }
}

fn as_float(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Decimal(decimal) => Some(decimal.to_f64()),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

fn as_decimal(value: &Value) -> Option<Decimal> {
    match value {
        Value::Integer(number) => Some(Decimal::from(*number)),
        Value::Decimal(decimal) => Some(*decimal),
        _ => None,
    }
}

fn integers(operator: InfixOperator, left: i64, right: i64) -> Result<Value, Failure> {
    let divides = matches!(operator, InfixOperator::Divide | InfixOperator::Modulo);
    if divides && right == 0 {
        return Err(table::divide_by_zero().into());
    }
    let result = match operator {
        InfixOperator::Add => left.checked_add(right),
        InfixOperator::Subtract => left.checked_sub(right),
        InfixOperator::Multiply => left.checked_mul(right),
        InfixOperator::Divide => left.checked_div(right),
        InfixOperator::Modulo => left.checked_rem(right),
    };
    result
        .map(Value::Integer)
        .ok_or_else(|| table::arithmetic_overflow("bigint").into())
}

fn floats(operator: InfixOperator, left: f64, right: f64) -> Result<Value, Failure> {
    let divides = matches!(operator, InfixOperator::Divide | InfixOperator::Modulo);
    if divides && right == 0.0 {
        return Err(table::divide_by_zero().into());
    }
    let result = match operator {
        InfixOperator::Add => left + right,
        InfixOperator::Subtract => left - right,
        InfixOperator::Multiply => left * right,
        InfixOperator::Divide => left / right,
        InfixOperator::Modulo => left % right,
    };
    if result.is_finite() {
        Ok(Value::Float(result))
    } else {
        Err(table::arithmetic_overflow("float").into())
    }
}

fn decimals(operator: InfixOperator, left: Decimal, right: Decimal) -> Result<Value, Failure> {
    let divides = matches!(operator, InfixOperator::Divide | InfixOperator::Modulo);
    if divides && right.is_zero() {
        return Err(table::divide_by_zero().into());
    }
    let result = match operator {
        InfixOperator::Add => left.plus(right),
        InfixOperator::Subtract => left.plus(right.negated()),
        InfixOperator::Multiply => left.times(right),
        InfixOperator::Divide => left.divided_by(right),
        InfixOperator::Modulo => left.modulo(right),
    };
    result
        .map(Value::Decimal)
        .ok_or_else(|| table::arithmetic_overflow("numeric").into())
}
