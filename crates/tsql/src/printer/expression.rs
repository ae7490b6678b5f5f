//! Scalar expressions, with only the parentheses that precedence requires.

use std::fmt::{self, Display, Formatter};

use super::List;
use super::value::{Hexadecimal, Quoted};
use crate::ast::{
    Aggregate, Case, Comparison, Expr, InfixOperator, LogicOperator, ObjectName,
    OnConversionFailure, OrderItem, Over, UnaryOperator,
};
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
            Self::Subquery(query) => write!(f, "({})", query.text),
            Self::Column(name) => name.fmt(f),
            Self::Aggregate(aggregate) => aggregate.fmt(f),
            Self::Collate { value, collation } => {
                within(f, value, Power::Primary)?;
                write!(f, " COLLATE {collation}")
            }
            Self::Case(case) => case.fmt(f),
            condition => self::condition(f, condition),
        }
    }
}

fn condition(f: &mut Formatter<'_>, condition: &Expr) -> fmt::Result {
    match condition {
        Expr::Compare {
            operator,
            left,
            right,
        } => {
            within(f, left, Power::Sum)?;
            write!(f, " {operator} ")?;
            within(f, right, Power::Sum)
        }
        Expr::Logic {
            operator,
            left,
            right,
        } => {
            let (word, power, above) = match operator {
                LogicOperator::And => ("AND", Power::And, Power::Not),
                LogicOperator::Or => ("OR", Power::Or, Power::And),
            };
            within(f, left, power)?;
            write!(f, " {word} ")?;
            within(f, right, above)
        }
        Expr::Not(inner) => {
            f.write_str("NOT ")?;
            within(f, inner, Power::Not)
        }
        Expr::IsNull { value, negated } => {
            within(f, value, Power::Sum)?;
            write!(f, " IS {}NULL", not(*negated))
        }
        Expr::Exists(query) => write!(f, "EXISTS ({})", query.text),
        other => range(f, other),
    }
}

/// BETWEEN, IN and LIKE.
fn range(f: &mut Formatter<'_>, condition: &Expr) -> fmt::Result {
    match condition {
        Expr::Between {
            value,
            low,
            high,
            negated,
        } => {
            within(f, value, Power::Sum)?;
            write!(f, " {}BETWEEN ", not(*negated))?;
            within(f, low, Power::Sum)?;
            f.write_str(" AND ")?;
            within(f, high, Power::Sum)
        }
        Expr::InList {
            value,
            list,
            negated,
        } => {
            within(f, value, Power::Sum)?;
            write!(f, " {}IN ({})", not(*negated), List(list))
        }
        Expr::InQuery {
            value,
            query,
            negated,
        } => {
            within(f, value, Power::Sum)?;
            write!(f, " {}IN ({})", not(*negated), query.text)
        }
        Expr::Like {
            value,
            pattern,
            escape,
            negated,
        } => {
            within(f, value, Power::Sum)?;
            write!(f, " {}LIKE ", not(*negated))?;
            within(f, pattern, Power::Sum)?;
            match escape {
                Some(escape) => {
                    f.write_str(" ESCAPE ")?;
                    within(f, escape, Power::Sum)
                }
                None => Ok(()),
            }
        }
        value => value.fmt(f),
    }
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}

/// How tightly an expression holds together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Power {
    Or,
    And,
    Not,
    Predicate,
    Sum,
    Product,
    Unary,
    Primary,
}

fn power(expression: &Expr) -> Power {
    match expression {
        Expr::Logic { operator, .. } => match operator {
            LogicOperator::Or => Power::Or,
            LogicOperator::And => Power::And,
        },
        Expr::Not(_) => Power::Not,
        condition if condition.is_condition() => Power::Predicate,
        Expr::Infix { operator, .. } => match precedence(*operator) {
            0 => Power::Sum,
            _ => Power::Product,
        },
        Expr::Unary { .. } => Power::Unary,
        _ => Power::Primary,
    }
}

/// An expression, in parentheses if it holds together less than it must.
fn within(f: &mut Formatter<'_>, expression: &Expr, least: Power) -> fmt::Result {
    match power(expression) < least {
        true => write!(f, "({expression})"),
        false => expression.fmt(f),
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::Different => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("CASE")?;
        if let Some(operand) = &self.operand {
            write!(f, " {}", operand.node)?;
        }
        for branch in &self.branches {
            write!(f, " WHEN {} THEN {}", branch.when.node, branch.then.node)?;
        }
        if let Some(otherwise) = &self.otherwise {
            write!(f, " ELSE {}", otherwise.node)?;
        }
        f.write_str(" END")
    }
}

impl Display for Aggregate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let distinct = if self.distinct { "DISTINCT " } else { "" };
        let star = if self.star { "*" } else { "" };
        let name = FunctionName(&self.function);
        write!(f, "{name}({distinct}{star}{})", List(&self.arguments))?;
        if !self.within.is_empty() {
            write!(f, " WITHIN GROUP (ORDER BY {})", Items(&self.within))?;
        }
        self.over
            .as_ref()
            .map_or(Ok(()), |over| write!(f, " OVER ({over})"))
    }
}

impl Display for Over {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.partition.is_empty() {
            parts.push(format!("PARTITION BY {}", List(&self.partition)));
        }
        if !self.order.is_empty() {
            parts.push(format!("ORDER BY {}", Items(&self.order)));
        }
        parts.extend(self.frame.clone());
        f.write_str(&parts.join(" "))
    }
}

/// The items of ORDER BY.
struct Items<'a>(&'a [OrderItem]);

impl Display for Items<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let direction = if item.descending { " DESC" } else { "" };
            write!(f, "{separator}{}{direction}", item.value.node)?;
        }
        Ok(())
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
        UnaryOperator::BitNot => "~",
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
        InfixOperator::BitAnd => "&",
        InfixOperator::BitOr => "|",
        InfixOperator::BitXor => "^",
        InfixOperator::Concatenate => "||",
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
        InfixOperator::Add
        | InfixOperator::Subtract
        | InfixOperator::BitAnd
        | InfixOperator::BitOr
        | InfixOperator::BitXor
        | InfixOperator::Concatenate => 0,
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
        if is_one_of(self.0, &["CAST", "TRY_CAST", "IIF"]) {
            write!(f, "[{text}]")
        } else if is_one_of(self.0, RESERVED_FUNCTIONS) || is_one_of(self.0, &["REPLACE"]) {
            f.write_str(text)
        } else {
            self.0.fmt(f)
        }
    }
}
