//! Expressions and conditions: the one place where T-SQL's operators and functions are computed.
//!
//! [`bind`](crate::tsql::bind) turns an expression into a [`Bound`] tree, in which every node has a type and
//! every implicit conversion is written out. [`eval`] computes it. PRINT, SET and IF evaluate the tree
//! themselves; a query calls it from SQLite, with the values of its columns as leaves.

mod collate;
pub(crate) mod collation;
mod convert;
mod date;
pub(crate) mod eval;
mod function;
mod function_table;
mod like;
mod number;
mod principal;
mod session;
mod text;

pub(crate) use collate::Collation;
pub(crate) use convert::{StoredIn, convert_from, store};
pub use convert::{assign, convert};
pub(crate) use function_table::{FunctionType, function_type};
pub(crate) use number::{name as operator_name, number_in, result_type as number_type};
pub(crate) use session::{Facts, Known};

use std::sync::Arc;

use windlass_tsql::ast::{Comparison, InfixOperator, LogicOperator, OnConversionFailure};

use crate::{DataType, Decimal, Failure, IntegerType, Value};

/// An expression or condition whose names are resolved and whose types are known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    pub(crate) node: Node,
    pub(crate) ty: DataType,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Value(Value),
    /// A variable that changes while its statement runs.
    Variable(String),
    /// What SQLite computes: a column, an aggregate, a subquery.
    Leaf(usize),
    Convert {
        value: Box<Bound>,
        style: Option<Box<Bound>>,
        on_failure: OnConversionFailure,
        /// The column that keeps the value: a text that does not fit is refused, not cut.
        column: Option<Arc<StoredIn>>,
    },
    Negate(Box<Bound>),
    BitNot(Box<Bound>),
    Infix {
        operator: InfixOperator,
        left: Box<Bound>,
        right: Box<Bound>,
    },
    Call {
        /// In capitals.
        function: String,
        arguments: Vec<Bound>,
        collation: Collation,
    },
    /// The first that is not NULL.
    First(Vec<Bound>),
    /// NULL if both are equal.
    NullIf(Box<Bound>, Box<Bound>, Collation),
    Case {
        branches: Vec<(Bound, Bound)>,
        otherwise: Option<Box<Bound>>,
    },
    /// CASE that compares one value.
    Choose {
        operand: Box<Bound>,
        branches: Vec<(Bound, Bound)>,
        otherwise: Option<Box<Bound>>,
        collation: Collation,
    },
    Compare {
        operator: Comparison,
        left: Box<Bound>,
        right: Box<Bound>,
        collation: Collation,
    },
    Between {
        value: Box<Bound>,
        low: Box<Bound>,
        high: Box<Bound>,
        negated: bool,
        collation: Collation,
    },
    InList {
        value: Box<Bound>,
        list: Vec<Bound>,
        negated: bool,
        collation: Collation,
    },
    Like {
        value: Box<Bound>,
        pattern: Box<Bound>,
        escape: Option<Box<Bound>>,
        negated: bool,
        collation: Collation,
    },
    Logic {
        operator: LogicOperator,
        left: Box<Bound>,
        right: Box<Bound>,
    },
    Not(Box<Bound>),
    IsNull {
        value: Box<Bound>,
        negated: bool,
    },
}

impl Bound {
    pub(crate) fn new(node: Node, ty: DataType) -> Self {
        Self { node, ty }
    }

    pub(crate) fn value(value: Value, ty: DataType) -> Self {
        Self::new(Node::Value(value), ty)
    }

    /// The same value as a column keeps it.
    pub(crate) fn stored_in(self, ty: DataType, table: &str, column: &str) -> Self {
        if self.ty == ty {
            return self;
        }
        let is_converted = !matches!(ty, DataType::Null | DataType::Variant);
        let mut converted = self.converted(ty);
        if is_converted && let Node::Convert { column: place, .. } = &mut converted.node {
            *place = Some(Arc::new(StoredIn::new(table, column)));
        }
        converted
    }

    /// The same value as another type.
    pub(crate) fn converted(self, ty: DataType) -> Self {
        if self.ty == ty || matches!(ty, DataType::Null | DataType::Variant) {
            return self;
        }
        if self.node == Node::Value(Value::Null) {
            return Self::value(Value::Null, ty);
        }
        let node = Node::Convert {
            value: Box::new(self),
            style: None,
            on_failure: OnConversionFailure::Error,
            column: None,
        };
        Self::new(node, ty)
    }

    /// Its value, if it has one before anything runs.
    pub(crate) fn constant(&self) -> Option<&Value> {
        match &self.node {
            Node::Value(value) => Some(value),
            _ => None,
        }
    }
}

/// The type of a value whose declared type is not known.
pub(crate) fn type_of(value: &Value) -> DataType {
    match value {
        Value::Null => DataType::Null,
        // As SQL Server counts: a character beyond U+FFFF takes two places.
        Value::Text(text) => DataType::text(text.encode_utf16().count(), true),
        Value::Bit(_) => DataType::Bit,
        Value::Integer(number) => DataType::Integer(match i32::try_from(*number) {
            Ok(_) => IntegerType::Int,
            Err(_) => IntegerType::BigInt,
        }),
        Value::Decimal(decimal) => DataType::Decimal {
            precision: decimal.precision(),
            scale: decimal.scale(),
        },
        Value::Float(_) => DataType::Float,
        Value::Binary(bytes) => DataType::Binary {
            limit: Some(bytes.len()),
            padded: false,
        },
        Value::Guid(_) => DataType::Guid,
        Value::DateTime(_) => DataType::DateTime,
        Value::DateTime2(_) => DataType::DateTime2,
        Value::Date(_) => DataType::Date,
        Value::Time(_) => DataType::Time,
    }
}

/// The full name of a part of a date; `None` if the word names none.
pub(crate) fn date_part(word: &str) -> Option<&'static str> {
    date::Part::named(word).map(date::Part::word)
}

/// Converts a value that is not NULL to an integer.
pub(crate) fn integer(value: &Value) -> Result<i64, Failure> {
    match convert(value, DataType::BIGINT, None)? {
        Value::Integer(number) => Ok(number),
        _ => Ok(0),
    }
}

/// Converts a value that is not NULL to text.
pub(crate) fn text_of(value: &Value) -> Result<String, Failure> {
    match convert(value, DataType::TEXT, None)? {
        Value::Text(text) => Ok(text),
        other => Ok(other.to_string()),
    }
}

/// A constant with a point (exact), with an exponent (floating), or with many digits.
pub(crate) fn number_constant(written: &str) -> Result<(Value, DataType), Failure> {
    if let Ok(decimal) = written.parse::<Decimal>() {
        let value = Value::Decimal(decimal);
        let ty = type_of(&value);
        return Ok((value, ty));
    }
    match written.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((Value::Float(number), DataType::Float)),
        _ => Err(windlass_base::message::table::arithmetic_overflow("float").into()),
    }
}

#[cfg(test)]
mod tests;
