//! Arithmetic: the types of results, and their values.
//!
//! Integers stay integers of the greater type, decimals stay exact, and floats take precedence.

use windlass_base::message::table;
use windlass_tsql::ast::InfixOperator;

use super::convert::convert_from;
use super::type_of;
use crate::data_type::DIGITS_MAX;
use crate::{DataType, Decimal, Failure, Value};

/// The least number of places that a quotient keeps.
const QUOTIENT_SCALE: u8 = 6;

pub(crate) fn name(operator: InfixOperator) -> &'static str {
    match operator {
        InfixOperator::Add | InfixOperator::Concatenate => "add",
        InfixOperator::Subtract => "subtract",
        InfixOperator::Multiply => "multiply",
        InfixOperator::Divide => "divide",
        InfixOperator::Modulo => "modulo",
        InfixOperator::BitAnd => "'&'",
        InfixOperator::BitOr => "'|'",
        InfixOperator::BitXor => "'^'",
    }
}

/// The type of the result for two numbers.
pub(crate) fn result_type(
    operator: InfixOperator,
    left: DataType,
    right: DataType,
) -> Result<DataType, Failure> {
    let common = left.common(right);
    let is_bitwise = matches!(
        operator,
        InfixOperator::BitAnd | InfixOperator::BitOr | InfixOperator::BitXor
    );
    if is_bitwise && !(left.is_whole() && right.is_whole())
        || operator == InfixOperator::Modulo && matches!(common, DataType::Float | DataType::Real)
    {
        let message = table::incompatible_types(left.name(), right.name(), name(operator));
        return Err(message.into());
    }
    if common == DataType::Bit && !is_bitwise {
        return Err(table::operand_invalid("bit", name(operator)).into());
    }
    match (common, left.digits(), right.digits()) {
        (DataType::Decimal { .. }, Some(left), Some(right)) => {
            Ok(decimal_type(operator, left, right))
        }
        _ => Ok(common),
    }
}

fn decimal_type(operator: InfixOperator, left: (u8, u8), right: (u8, u8)) -> DataType {
    let ((p1, s1), (p2, s2)) = (
        (i32::from(left.0), i32::from(left.1)),
        (i32::from(right.0), i32::from(right.1)),
    );
    let (precision, scale) = match operator {
        InfixOperator::Multiply => (p1 + p2 + 1, s1 + s2),
        InfixOperator::Divide => {
            let scale = (s1 + p2 + 1).max(i32::from(QUOTIENT_SCALE));
            (p1 - s1 + s2 + scale, scale)
        }
        InfixOperator::Modulo => ((p1 - s1).min(p2 - s2) + s1.max(s2), s1.max(s2)),
        _ => ((p1 - s1).max(p2 - s2) + s1.max(s2) + 1, s1.max(s2)),
    };
    let most = i32::from(DIGITS_MAX);
    let excess = (precision - most).max(0);
    let scale = match operator {
        // Whole digits are kept before places, down to six places.
        InfixOperator::Multiply | InfixOperator::Divide if excess > 0 => {
            scale.min((scale - excess).max(i32::from(QUOTIENT_SCALE)))
        }
        _ if excess > 0 => (scale - excess).max(0),
        _ => scale,
    };
    let byte = |number: i32| u8::try_from(number.clamp(0, most)).unwrap_or(DIGITS_MAX);
    DataType::Decimal {
        precision: byte(precision.min(most)),
        scale: byte(scale),
    }
}

/// Applies an operator to two numbers; the result has the type `result`.
pub(super) fn infix(
    operator: InfixOperator,
    left: &Value,
    right: &Value,
    result: DataType,
) -> Result<Value, Failure> {
    // A column of numbers in a SQLite file can hold text.
    let (left, right) = (&number_in(left, result)?, &number_in(right, result)?);
    if matches!(operator, InfixOperator::Divide | InfixOperator::Modulo) && is_zero(right) {
        return Err(table::divide_by_zero().into());
    }
    let overflow = || Failure::from(table::arithmetic_overflow(result.name()));
    match result {
        DataType::Float | DataType::Real => {
            let (left, right) = (float(left), float(right));
            let number = match operator {
                InfixOperator::Add => left + right,
                InfixOperator::Subtract => left - right,
                InfixOperator::Multiply => left * right,
                InfixOperator::Divide => left / right,
                _ => left % right,
            };
            match number.is_finite() {
                true => Ok(Value::Float(number)),
                false => Err(overflow()),
            }
        }
        DataType::Decimal { .. } | DataType::Money | DataType::SmallMoney => {
            let (Some(left), Some(right)) = (decimal(left), decimal(right)) else {
                return Err(overflow());
            };
            decimals(operator, left, right, result).ok_or_else(overflow)
        }
        _ => {
            let number = integers(operator, integer(left), integer(right)).ok_or_else(overflow)?;
            match result {
                DataType::Bit => Ok(Value::Bit(number != 0)),
                DataType::Integer(kind) => {
                    let (least, most) = kind.range();
                    match (least..=most).contains(&number) {
                        true => Ok(Value::Integer(number)),
                        false => Err(overflow()),
                    }
                }
                _ => Ok(Value::Integer(number)),
            }
        }
    }
}

/// Applies an operator to values whose types only the values themselves know.
pub(super) fn infix_of_any(
    operator: InfixOperator,
    left: &Value,
    right: &Value,
) -> Result<Value, Failure> {
    let (mut one, mut two) = (type_of(left), type_of(right));
    let as_number = |value: &Value, from: DataType, other: DataType| match (from, other) {
        (DataType::Text { .. }, DataType::Text { .. }) => Err(Failure::from(
            table::operand_invalid(from.name(), name(operator)),
        )),
        (DataType::Text { .. }, other) => convert_from(value, from, other, None),
        _ => Ok(value.clone()),
    };
    let (left, right) = (as_number(left, one, two)?, as_number(right, two, one)?);
    // Integers of SQLite have 64 bits.
    let widened = |data_type: DataType| match data_type {
        DataType::Bit | DataType::Integer(_) => DataType::BIGINT,
        other => other,
    };
    (one, two) = (widened(type_of(&left)), widened(type_of(&right)));
    if !one.is_number() || !two.is_number() {
        let message = table::incompatible_types(one.name(), two.name(), name(operator));
        return Err(message.into());
    }
    let result = result_type(operator, one, two)?;
    infix(operator, &left, &right, result)
}

/// A value of a column of numbers as one.
pub(crate) fn number_in(value: &Value, ty: DataType) -> Result<Value, Failure> {
    match value {
        Value::Text(_) => convert_from(value, type_of(value), ty, None),
        other => Ok(other.clone()),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bit(bit) => !bit,
        Value::Integer(number) => *number == 0,
        Value::Decimal(decimal) => decimal.is_zero(),
        Value::Float(number) => *number == 0.0,
        _ => false,
    }
}

pub(super) fn integer(value: &Value) -> i64 {
    match value {
        Value::Bit(bit) => i64::from(*bit),
        Value::Integer(number) => *number,
        Value::Decimal(decimal) => i64::try_from(decimal.truncated()).unwrap_or(i64::MAX),
        Value::Float(number) => *number as i64,
        _ => 0,
    }
}

pub(super) fn float(value: &Value) -> f64 {
    match value {
        Value::Bit(bit) => f64::from(u8::from(*bit)),
        Value::Integer(number) => *number as f64,
        Value::Decimal(decimal) => decimal.to_f64(),
        Value::Float(number) => *number,
        _ => 0.0,
    }
}

pub(super) fn decimal(value: &Value) -> Option<Decimal> {
    match value {
        Value::Bit(bit) => Some(Decimal::from(i64::from(*bit))),
        Value::Integer(number) => Some(Decimal::from(*number)),
        Value::Decimal(decimal) => Some(*decimal),
        Value::Float(number) => format!("{number}").parse().ok(),
        _ => None,
    }
}

fn integers(operator: InfixOperator, left: i64, right: i64) -> Option<i64> {
    match operator {
        InfixOperator::Add | InfixOperator::Concatenate => left.checked_add(right),
        InfixOperator::Subtract => left.checked_sub(right),
        InfixOperator::Multiply => left.checked_mul(right),
        InfixOperator::Divide => left.checked_div(right),
        InfixOperator::Modulo => left.checked_rem(right).or(Some(0)),
        InfixOperator::BitAnd => Some(left & right),
        InfixOperator::BitOr => Some(left | right),
        InfixOperator::BitXor => Some(left ^ right),
    }
}

fn decimals(
    operator: InfixOperator,
    left: Decimal,
    right: Decimal,
    result: DataType,
) -> Option<Value> {
    let (precision, scale) = result.digits()?;
    let number = match operator {
        InfixOperator::Add => left.plus(right)?,
        InfixOperator::Subtract => left.plus(right.negated())?,
        InfixOperator::Multiply => left.times(right)?,
        InfixOperator::Divide => left.quotient(right, scale)?,
        _ => left.modulo(right)?,
    };
    let number = number.rescaled(scale)?;
    number.fits(precision).then_some(Value::Decimal(number))
}

/// A float as CONVERT writes it: six digits, or 8, 16 or 17 with an exponent.
pub(super) fn float_text(number: f64, style: i64) -> String {
    let scientific = |digits: usize| {
        let text = format!("{number:.*e}", digits - 1);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        (
            mantissa.to_owned(),
            exponent,
            format!("e{sign}{:03}", exponent.abs()),
        )
    };
    let places = match style {
        1 => 8,
        2 => 16,
        3 => 17,
        _ => {
            let (mantissa, exponent, suffix) = scientific(6);
            if (-5..6).contains(&exponent) {
                let places = usize::try_from(5 - exponent).unwrap_or(0);
                return trimmed(&format!("{number:.places$}"));
            }
            return format!("{}{suffix}", trimmed(&mantissa));
        }
    };
    let (mantissa, _, suffix) = scientific(places);
    format!("{mantissa}{suffix}")
}

/// A number without the zeros at the end of its places.
fn trimmed(text: &str) -> String {
    let short = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    };
    match short {
        "-0" => "0".to_owned(),
        other => other.to_owned(),
    }
}

/// An amount of money as CONVERT writes it: two places, with commas (1), or four places (2).
pub(super) fn money_text(amount: Decimal, style: i64) -> String {
    let places = if style == 2 || style == 126 { 4 } else { 2 };
    let text = amount.rescaled(places).unwrap_or(amount).to_string();
    if style != 1 {
        return text;
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, digits) = match whole.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", whole),
    };
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}.{fraction}")
}
