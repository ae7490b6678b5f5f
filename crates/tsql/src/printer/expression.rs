//! Scalar expressions, with only the parentheses that precedence requires.

use std::fmt::{self, Display, Formatter};

use super::List;
use super::value::{Hexadecimal, Quoted};
use crate::ast::{Expr, InfixOperator, ObjectName, OnConversionFailure, UnaryOperator};
use crate::parser::{BARE_FUNCTIONS, RESERVED_FUNCTIONS};

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Text { text, national } => Quoted {
                text,
                national: *national,
            }
            .fmt(f),
            Self::Integer(number) => number.fmt(f),
            Self::Decimal(number) => f.write_str(number),
            Self::Binary(bytes) => Hexadecimal(bytes).fmt(f),
            Self::Variable(variable) => variable.fmt(f),
            Self::Unary { operator, operand } => unary(f, *operator, operand),
            Self::Infix {
                operator,
                left,
                right,
            } => infix(f, *operator, left, right),
            Self::Call {
                function,
                arguments,
            } => {
                if arguments.is_empty() && is_one_of(function, BARE_FUNCTIONS) {
                    return f.write_str(&function.object.text);
                }
                write!(f, "{}({})", FunctionName(function), List(arguments))
            }
            Self::Cast {
                value,
                data_type,
                on_failure,
            } => {
                write!(
                    f,
                    "{}CAST({} AS {data_type})",
                    prefix(*on_failure),
                    value.node
                )
            }
            Self::Convert {
                data_type,
                value,
                style,
                on_failure,
            } => {
                write!(
                    f,
                    "{}CONVERT({data_type}, {}",
                    prefix(*on_failure),
                    value.node
                )?;
                style
                    .as_ref()
                    .map_or(Ok(()), |style| write!(f, ", {}", style.node))?;
                f.write_str(")")
            }
            Self::Subquery { text } => write!(f, "({text})"),
        }
    }
}

fn prefix(on_failure: OnConversionFailure) -> &'static str {
    match on_failure {
        OnConversionFailure::Error => "",
        OnConversionFailure::Null => "TRY_",
    }
}

fn unary(f: &mut Formatter<'_>, operator: UnaryOperator, operand: &Expr) -> fmt::Result {
    f.write_str(match operator {
        UnaryOperator::Negate => "-",
        UnaryOperator::Plus => "+",
    })?;
    match operand {
        Expr::Infix { .. } => write!(f, "({operand})"),
        // Two minus signs in a row would start a comment.
        Expr::Unary { .. } => write!(f, " {operand}"),
        _ => operand.fmt(f),
    }
}

fn infix(f: &mut Formatter<'_>, operator: InfixOperator, left: &Expr, right: &Expr) -> fmt::Result {
    let symbol = match operator {
        InfixOperator::Add => "+",
        InfixOperator::Subtract => "-",
        InfixOperator::Multiply => "*",
        InfixOperator::Divide => "/",
        InfixOperator::Modulo => "%",
    };
    operand(f, left, |inner| precedence(inner) < precedence(operator))?;
    write!(f, " {symbol} ")?;
    operand(f, right, |inner| precedence(inner) <= precedence(operator))
}

fn operand(
    f: &mut Formatter<'_>,
    expression: &Expr,
    needs_parentheses: impl Fn(InfixOperator) -> bool,
) -> fmt::Result {
    match expression {
        Expr::Infix { operator, .. } if needs_parentheses(*operator) => {
            write!(f, "({expression})")
        }
        _ => expression.fmt(f),
    }
}

fn precedence(operator: InfixOperator) -> u8 {
    match operator {
        InfixOperator::Add | InfixOperator::Subtract => 0,
        InfixOperator::Multiply | InfixOperator::Divide | InfixOperator::Modulo => 1,
    }
}

fn is_one_of(function: &ObjectName, words: &[&str]) -> bool {
    function.qualifiers.is_empty() && words.iter().any(|word| function.object.is(word))
}

/// The name of a function: reserved words that name functions have no brackets, and neither has
/// `REPLACE`, which elsewhere starts a statement; a function that only looks like `CAST` has
/// brackets.
struct FunctionName<'a>(&'a ObjectName);

impl Display for FunctionName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = &self.0.object.text;
        if is_one_of(self.0, &["CAST", "TRY_CAST"]) {
            write!(f, "[{text}]")
        } else if is_one_of(self.0, RESERVED_FUNCTIONS) || is_one_of(self.0, &["REPLACE"]) {
            f.write_str(text)
        } else {
            self.0.fmt(f)
        }
    }
}
