//! Computes bound trees.
//!
//! Conditions have the values 1, 0 and NULL (unknown). A long chain of `+` is a high tree whose left
//! side is walked in a loop; everything else nests as deep as the parser allows.

use std::cmp::Ordering;

use windlass_base::message::table;
use windlass_tsql::ast::{Comparison, InfixOperator, LogicOperator, OnConversionFailure};

use super::collation::{compare, compare_exactly};
use super::like::Pattern;
use super::type_of;
use super::{
    Bound, Collation, Facts, Node, convert_from, date, function, integer, number, store, text_of,
};
use crate::{DataType, Failure, Value, Variables};

/// What a tree is computed from.
pub(crate) struct Inputs<'a> {
    pub(crate) leaves: &'a [Value],
    pub(crate) facts: &'a Facts,
    pub(crate) variables: Option<&'a Variables>,
}

type Computed = Result<Value, Failure>;

/// Computes an expression or a condition.
pub(crate) fn eval(bound: &Bound, inputs: &Inputs<'_>) -> Computed {
    match &bound.node {
        Node::Value(value) => Ok(value.clone()),
        Node::Leaf(index) => Ok(inputs.leaves.get(*index).cloned().unwrap_or(Value::Null)),
        Node::Variable(name) => match inputs.variables {
            Some(variables) => variables.value(name),
            None => Ok(Value::Null),
        },
        Node::Convert { .. } => conversion(bound, inputs),
        Node::Negate(value) => negated(eval(value, inputs)?, bound.ty),
        Node::BitNot(value) => Ok(match eval(value, inputs)? {
            Value::Integer(number) => Value::Integer(!number),
            Value::Bit(bit) => Value::Bit(!bit),
            other => other,
        }),
        Node::Infix { .. } => chain(bound, inputs),
        Node::Call {
            function,
            arguments,
            collation,
        } => function::call(function, arguments, bound.ty, *collation, inputs),
        Node::First(values) => {
            for value in values {
                let value = eval(value, inputs)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            Ok(Value::Null)
        }
        Node::NullIf(left, right, collation) => {
            let value = eval(left, inputs)?;
            let other = eval(right, inputs)?;
            Ok(match order(&value, &other, *collation)? {
                Some(Ordering::Equal) => Value::Null,
                _ => value,
            })
        }
        Node::Case { .. } | Node::Choose { .. } => case(&bound.node, inputs),
        _ => Ok(match holds(bound, inputs)? {
            Some(holds) => Value::Bit(holds),
            None => Value::Null,
        }),
    }
}

fn conversion(bound: &Bound, inputs: &Inputs<'_>) -> Computed {
    let Node::Convert {
        value,
        style,
        on_failure,
        column,
    } = &bound.node
    else {
        return Ok(Value::Null);
    };
    let from = value.ty;
    let value = eval(value, inputs)?;
    let style = match style {
        Some(style) => match eval(style, inputs)? {
            Value::Null => return Ok(Value::Null),
            style => Some(integer(&style)?),
        },
        None => None,
    };
    let converted = match column {
        Some(column) => store(&value, from, bound.ty, column),
        None => convert_from(&value, from, bound.ty, style),
    };
    match on_failure {
        OnConversionFailure::Error => converted,
        // 529 is not a failure of the value.
        OnConversionFailure::Null => match converted {
            Err(failure) if failure.messages.iter().any(|message| message.number == 529) => {
                Err(failure)
            }
            other => Ok(other.unwrap_or(Value::Null)),
        },
    }
}

fn negated(value: Value, ty: DataType) -> Computed {
    match value {
        Value::Integer(number) => {
            let within = number.checked_neg().filter(|negated| match ty {
                DataType::Integer(kind) => {
                    let (least, most) = kind.range();
                    (least..=most).contains(negated)
                }
                _ => true,
            });
            within
                .map(Value::Integer)
                .ok_or_else(|| table::arithmetic_overflow(ty.name()).into())
        }
        Value::Decimal(decimal) => Ok(Value::Decimal(decimal.negated())),
        Value::Float(number) => Ok(Value::Float(-number)),
        Value::Null => Ok(Value::Null),
        other => Err(table::operand_invalid(type_of(&other).name(), "minus").into()),
    }
}

/// `a + b + c`, from the left.
fn chain(bound: &Bound, inputs: &Inputs<'_>) -> Computed {
    let mut steps = Vec::new();
    let mut first = bound;
    while let Node::Infix {
        operator,
        left,
        right,
    } = &first.node
    {
        steps.push((*operator, right, first.ty));
        first = left;
    }
    let mut value = eval(first, inputs)?;
    for (operator, right, ty) in steps.into_iter().rev() {
        let right = eval(right, inputs)?;
        value = infix(operator, value, right, ty)?;
    }
    Ok(value)
}

fn infix(operator: InfixOperator, left: Value, right: Value, ty: DataType) -> Computed {
    if left.is_null() || right.is_null() {
        return Ok(Value::Null);
    }
    match (left, right) {
        (Value::Text(mut left), Value::Text(right))
            if matches!(operator, InfixOperator::Add | InfixOperator::Concatenate) =>
        {
            left.push_str(&right);
            function::checked_length(left)
        }
        (Value::Binary(left), Value::Binary(right)) => Ok(Value::Binary([left, right].concat())),
        (left, right) if operator == InfixOperator::Concatenate => {
            Ok(Value::Text(text_of(&left)? + &text_of(&right)?))
        }
        (left, right) => {
            let dates = [&left, &right]
                .iter()
                .any(|value| matches!(value, Value::DateTime(_)));
            match ty {
                DataType::DateTime | DataType::SmallDateTime => {
                    date::infix(operator, &left, &right)
                }
                DataType::Variant if dates => date::infix(operator, &left, &right),
                DataType::Variant => number::infix_of_any(operator, &left, &right),
                _ => number::infix(operator, &left, &right, ty),
            }
        }
    }
}

fn case(node: &Node, inputs: &Inputs<'_>) -> Computed {
    let otherwise = match node {
        Node::Case {
            branches,
            otherwise,
        } => {
            for (when, then) in branches {
                if holds(when, inputs)? == Some(true) {
                    return eval(then, inputs);
                }
            }
            otherwise
        }
        Node::Choose {
            operand,
            branches,
            otherwise,
            collation,
        } => {
            let operand = eval(operand, inputs)?;
            for (when, then) in branches {
                let when = eval(when, inputs)?;
                if order(&operand, &when, *collation)? == Some(Ordering::Equal) {
                    return eval(then, inputs);
                }
            }
            otherwise
        }
        _ => &None,
    };
    match otherwise {
        Some(otherwise) => eval(otherwise, inputs),
        None => Ok(Value::Null),
    }
}

/// Whether a condition holds; `None` if that is unknown.
pub(crate) fn holds(bound: &Bound, inputs: &Inputs<'_>) -> Result<Option<bool>, Failure> {
    let not = |holds: Option<bool>, negated: bool| holds.map(|holds| holds != negated);
    match &bound.node {
        Node::Compare {
            operator,
            left,
            right,
            collation,
        } => {
            let (left, right) = (eval(left, inputs)?, eval(right, inputs)?);
            let order = order(&left, &right, *collation)?;
            Ok(order.map(|order| satisfies(*operator, order)))
        }
        Node::Logic {
            operator,
            left,
            right,
        } => logic(*operator, left, right, inputs),
        Node::Not(inner) => Ok(holds(inner, inputs)?.map(|holds| !holds)),
        Node::IsNull { value, negated } => Ok(Some(eval(value, inputs)?.is_null() != *negated)),
        Node::Between {
            value,
            low,
            high,
            negated,
            collation,
        } => {
            let value = eval(value, inputs)?;
            let above = order(&value, &eval(low, inputs)?, *collation)?;
            let below = order(&value, &eval(high, inputs)?, *collation)?;
            let both = and(above.map(Ordering::is_ge), below.map(Ordering::is_le));
            Ok(not(both, *negated))
        }
        Node::InList {
            value,
            list,
            negated,
            collation,
        } => {
            let value = eval(value, inputs)?;
            let mut found = Some(false);
            for item in list {
                match order(&value, &eval(item, inputs)?, *collation)? {
                    Some(Ordering::Equal) => {
                        found = Some(true);
                        break;
                    }
                    Some(_) => {}
                    None => found = None,
                }
            }
            Ok(not(found, *negated))
        }
        Node::Like { negated, .. } => Ok(not(like(&bound.node, inputs)?, *negated)),
        _ => Ok(match eval(bound, inputs)? {
            Value::Bit(bit) => Some(bit),
            Value::Integer(number) => Some(number != 0),
            _ => None,
        }),
    }
}

fn logic(
    operator: LogicOperator,
    left: &Bound,
    right: &Bound,
    inputs: &Inputs<'_>,
) -> Result<Option<bool>, Failure> {
    // The right side is computed only if it decides.
    let left = holds(left, inputs)?;
    let decided = operator == LogicOperator::Or;
    if left == Some(decided) {
        return Ok(left);
    }
    let right = holds(right, inputs)?;
    Ok(match operator {
        LogicOperator::And => and(left, right),
        LogicOperator::Or => and(left.map(|left| !left), right.map(|right| !right)).map(|and| !and),
    })
}

fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn satisfies(operator: Comparison, order: Ordering) -> bool {
    match operator {
        Comparison::Equal => order.is_eq(),
        Comparison::Different => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

/// Compares two values; `None` if one is NULL.
pub(crate) fn order(
    left: &Value,
    right: &Value,
    collation: Collation,
) -> Result<Option<Ordering>, Failure> {
    Ok(Some(match (left, right) {
        (Value::Null, _) | (_, Value::Null) => return Ok(None),
        (Value::Text(left), Value::Text(right)) => match collation {
            Collation::Default => compare(left, right),
            Collation::Exact => compare_exactly(left, right),
        },
        (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
        (Value::Float(_), other) | (other, Value::Float(_)) if type_of(other).is_number() => {
            number::float(left).total_cmp(&number::float(right))
        }
        (
            Value::DateTime(left) | Value::DateTime2(left),
            Value::DateTime(right) | Value::DateTime2(right),
        ) => left.cmp(right),
        (Value::Date(left), Value::Date(right)) => left.cmp(right),
        (Value::Time(left), Value::Time(right)) => left.cmp(right),
        (Value::Binary(left), Value::Binary(right)) => left.cmp(right),
        (Value::Guid(left), Value::Guid(right)) => left.to_string().cmp(&right.to_string()),
        _ => match (number::decimal(left), number::decimal(right)) {
            (Some(left), Some(right)) => left.compare(right),
            _ => return order_of_any(left, right, collation),
        },
    }))
}

/// Values of different types: the one of the lower precedence is converted.
fn order_of_any(
    left: &Value,
    right: &Value,
    collation: Collation,
) -> Result<Option<Ordering>, Failure> {
    let (one, two) = (type_of(left), type_of(right));
    let common = match one.common(two) {
        DataType::Integer(_) => DataType::BIGINT,
        DataType::Text { .. } => DataType::TEXT,
        other => other,
    };
    let left = convert_from(left, one, common, None)?;
    let right = convert_from(right, two, common, None)?;
    match type_of(&left).name() == type_of(&right).name() || left.is_null() || right.is_null() {
        true => order(&left, &right, collation),
        false => Err(table::incompatible_types(one.name(), two.name(), "comparison").into()),
    }
}

fn like(node: &Node, inputs: &Inputs<'_>) -> Result<Option<bool>, Failure> {
    let Node::Like {
        value,
        pattern,
        escape,
        collation,
        ..
    } = node
    else {
        return Ok(None);
    };
    let (value, pattern) = (eval(value, inputs)?, eval(pattern, inputs)?);
    if value.is_null() || pattern.is_null() {
        return Ok(None);
    }
    let escape = match escape {
        Some(escape) => match eval(escape, inputs)? {
            Value::Null => return Ok(None),
            escape => text_of(&escape)?.chars().next(),
        },
        None => None,
    };
    let exact = *collation == Collation::Exact;
    let pattern = Pattern::new(&text_of(&pattern)?, escape, exact);
    let text: Vec<char> = text_of(&value)?.chars().collect();
    Ok(Some(pattern.matches(&text)))
}
