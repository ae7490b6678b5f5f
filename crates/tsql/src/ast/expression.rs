//! Scalar expressions of `DECLARE`, `SET` and `PRINT`; evaluated elsewhere.

use super::{DataType, ObjectName, Variable};
use crate::span::Spanned;

/// A scalar expression. Parentheses are not stored: the printer adds those that are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// `NULL`
    Null,
    /// `'text'`, `N'text'`
    Text {
        /// The characters, with `''` unescaped.
        text: String,
        /// Whether it was written with the `N` of national (UTF-16) strings.
        national: bool,
    },
    /// An integer without sign.
    Integer(i64),
    /// A number with a point or an exponent, or an integer that is too large, in source form.
    Decimal(String),
    /// `0x...`: the bytes.
    Binary(Vec<u8>),
    /// `@x`, `@@x`
    Variable(Variable),
    /// `-x`, `+x`
    Unary {
        /// The sign.
        operator: UnaryOperator,
        operand: Box<Spanned<Expr>>,
    },
    /// `x + y` and so on
    Infix {
        operator: InfixOperator,
        left: Box<Spanned<Expr>>,
        right: Box<Spanned<Expr>>,
    },
    /// `name(arguments)`: any function except the two below.
    Call {
        function: ObjectName,
        arguments: Vec<Spanned<Expr>>,
    },
    /// `CAST(x AS type)`, `TRY_CAST(x AS type)`
    Cast {
        /// The value to convert.
        value: Box<Spanned<Expr>>,
        /// The target type.
        data_type: DataType,
        /// What happens if the conversion fails.
        on_failure: OnConversionFailure,
    },
    /// `CONVERT(type, x [, style])`, `TRY_CONVERT(...)`
    Convert {
        /// The target type.
        data_type: DataType,
        /// The value to convert.
        value: Box<Spanned<Expr>>,
        /// The date or number style.
        style: Option<Box<Spanned<Expr>>>,
        /// What happens if the conversion fails.
        on_failure: OnConversionFailure,
    },
    /// `(SELECT ...)`, verbatim without its parentheses, for `SQLite`.
    Subquery {
        /// The text between the parentheses.
        text: String,
    },
}

/// The signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `-`
    Negate,
    /// `+`
    Plus,
}

/// The operators between two expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InfixOperator {
    /// `+`, also joins strings
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

/// What happens if a value cannot be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConversionFailure {
    /// `CAST`, `CONVERT`: an error.
    Error,
    /// `TRY_CAST`, `TRY_CONVERT`: NULL.
    Null,
}
