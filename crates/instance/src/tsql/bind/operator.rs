//! Types: of operands, of comparisons, of results.

use windlass_base::message::table as messages;
use windlass_tsql::ast::{Expr, InfixOperator};
use windlass_tsql::span::Spanned;

use crate::tsql::expression::{Bound, Collation, Node, number_type, operator_name};
use crate::{DataType, Failure, Value};

type Result<T> = std::result::Result<T, Failure>;

/// The type that all values are converted to.
pub(super) fn common(values: &[Bound]) -> DataType {
    let types = values.iter().map(|value| value.ty);
    types.fold(DataType::Null, DataType::common)
}

/// The type in which two values are compared.
pub(super) fn comparable(left: &Bound, right: &Bound) -> DataType {
    comparable_types(left.ty, right.ty)
}

pub(super) fn comparable_types(left: DataType, right: DataType) -> DataType {
    match left.common(right) {
        // Comparing cuts nothing off, and numbers of one family compare as they are.
        DataType::Text { .. } => DataType::TEXT,
        DataType::Binary { .. } => DataType::Binary {
            limit: None,
            padded: false,
        },
        DataType::Integer(_) => DataType::BIGINT,
        DataType::Decimal { .. } if left.is_number() && right.is_number() => DataType::Variant,
        other => other,
    }
}

pub(super) fn wrong_count(name: &str, least: usize, most: usize) -> Failure {
    let wanted = match least == most {
        true => least.to_string(),
        false => format!("{least} to {most}"),
    };
    Failure::ending(messages::argument_count(name.to_ascii_lowercase(), wanted))
}

/// The name of a part of a date, which is no expression.
pub(super) fn date_part(name: &str, argument: &Spanned<Expr>) -> Result<Bound> {
    let written = match &argument.node {
        Expr::Text { text, .. } => text.clone(),
        Expr::Column(name) => name.object.text.clone(),
        Expr::Call { function, .. } => function.object.text.clone(),
        _ => String::new(),
    };
    if crate::tsql::expression::date_part(&written).is_none() {
        let function = name.to_ascii_lowercase();
        return Err(Failure::ending(messages::unknown_option(written, function)));
    }
    let word = crate::tsql::expression::date_part(&written).unwrap_or_default();
    let ty = DataType::text(word.len(), false);
    Ok(Bound::value(Value::text(word), ty))
}

/// The collation that an expression has of its own.
pub(super) fn collation_of(expression: &Expr) -> Collation {
    match expression {
        Expr::Collate { collation, .. } => Collation::named(&collation.text).unwrap_or_default(),
        Expr::Infix { left, right, .. } => {
            Collation::of_both(collation_of(&left.node), collation_of(&right.node))
        }
        Expr::Call { arguments, .. } => collation_of_all(arguments),
        _ => Collation::Default,
    }
}

pub(super) fn collation_of_all(expressions: &[Spanned<Expr>]) -> Collation {
    let each = expressions.iter();
    each.fold(Collation::Default, |collation, expression| {
        Collation::of_both(collation, collation_of(&expression.node))
    })
}

/// An operator between two values; converts them to what it takes.
pub(crate) fn infix(operator: InfixOperator, left: Bound, right: Bound) -> Result<Bound> {
    let (one, two) = (left.ty, right.ty);
    let joined = |left: Bound, right: Bound, ty: DataType| {
        let (left, right) = (Box::new(left), Box::new(right));
        Ok(Bound::new(
            Node::Infix {
                operator,
                left,
                right,
            },
            ty,
        ))
    };
    let incompatible = || {
        let message = messages::incompatible_types(one.name(), two.name(), operator_name(operator));
        Err(Failure::from(message))
    };
    let is_like = |ty: DataType, is: fn(DataType) -> bool| is(ty) || ty == DataType::Null;
    let texts = is_like(one, DataType::is_text) && is_like(two, DataType::is_text);
    let is_binary = |ty: DataType| matches!(ty, DataType::Binary { .. });
    match operator {
        InfixOperator::Concatenate => {
            return joined(
                left.converted(DataType::TEXT),
                right.converted(DataType::TEXT),
                DataType::TEXT,
            );
        }
        InfixOperator::Add if texts && (one.is_text() || two.is_text()) => {
            return joined(left, right, sum_of_texts(one, two));
        }
        InfixOperator::Add if is_binary(one) && is_binary(two) => {
            let ty = DataType::Binary {
                limit: None,
                padded: false,
            };
            return joined(left, right, ty);
        }
        _ if texts && (one.is_text() || two.is_text()) => {
            let ty = if one.is_text() { one } else { two };
            let message = messages::operand_invalid(ty.name(), operator_name(operator));
            return Err(message.into());
        }
        _ => {}
    }
    if one == DataType::Variant || two == DataType::Variant {
        return joined(left, right, DataType::Variant);
    }
    if one.is_date() || two.is_date() {
        return dates(operator, left, right);
    }
    // NULL and text take the type of the other side; NULL alone is an int.
    let other = |ty: DataType, other: DataType| match (ty, other) {
        (DataType::Null, DataType::Null) => DataType::INT,
        (DataType::Null | DataType::Text { .. }, other) => other,
        (DataType::Binary { .. }, DataType::Integer(_)) => other,
        (ty, _) => ty,
    };
    let left = left.converted(other(one, two));
    let right = right.converted(other(two, one));
    if !left.ty.is_number() || !right.ty.is_number() {
        return incompatible();
    }
    let ty = number_type(operator, exact(&left, right.ty), exact(&right, left.ty))?;
    joined(left, right, ty)
}

/// The type of a number; beside a decimal number, a constant has only its own digits.
fn exact(bound: &Bound, other: DataType) -> DataType {
    match bound.constant() {
        Some(Value::Integer(number)) if matches!(other, DataType::Decimal { .. }) => {
            let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
            DataType::Decimal {
                precision: u8::try_from(digits).unwrap_or(19),
                scale: 0,
            }
        }
        _ => bound.ty,
    }
}

fn sum_of_texts(one: DataType, two: DataType) -> DataType {
    let limit = |ty: DataType| match ty {
        DataType::Text { limit, .. } => limit,
        _ => Some(0),
    };
    let national = |ty: DataType| matches!(ty, DataType::Text { national: true, .. });
    let limit = limit(one)
        .zip(limit(two))
        .map(|(one, two)| one.saturating_add(two));
    DataType::Text {
        limit: limit.filter(|limit| *limit <= 8000),
        padded: false,
        national: national(one) || national(two),
    }
}

/// Days are added to `datetime`, and nothing else.
fn dates(operator: InfixOperator, left: Bound, right: Bound) -> Result<Bound> {
    let (one, two) = (left.ty, right.ty);
    let is_old = |ty: DataType| matches!(ty, DataType::DateTime | DataType::SmallDateTime);
    let other = |ty: DataType| ty.is_number() || ty.is_text() || ty == DataType::Null;
    let is_sum = matches!(operator, InfixOperator::Add | InfixOperator::Subtract);
    let fits = |ty: DataType| is_old(ty) || other(ty);
    if is_sum && fits(one) && fits(two) {
        let ty = match is_old(one) && is_old(two) || !is_old(two) {
            true if is_old(one) => one,
            _ => two,
        };
        let number = |bound: Bound| match bound.ty {
            ty if ty.is_text() => bound.converted(DataType::DateTime),
            _ => bound,
        };
        let (left, right) = (Box::new(number(left)), Box::new(number(right)));
        return Ok(Bound::new(
            Node::Infix {
                operator,
                left,
                right,
            },
            ty,
        ));
    }
    let clashes =
        |date: DataType, other: DataType| date.is_date() && !is_old(date) && other.is_number();
    if clashes(one, two) {
        return Err(messages::type_clash(one.name(), two.name()).into());
    }
    if clashes(two, one) {
        return Err(messages::type_clash(two.name(), one.name()).into());
    }
    let message = messages::incompatible_types(one.name(), two.name(), operator_name(operator));
    Err(message.into())
}
