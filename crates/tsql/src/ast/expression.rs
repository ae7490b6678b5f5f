//! Scalar expressions of `DECLARE`, `SET` and `PRINT`; evaluated elsewhere.

use super::{DataType, ObjectName, Variable};
use crate::span::Spanned;

/// A scalar expression. Parentheses are not kept: the printer puts back those that are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// `NULL`
    Null,
    /// `'text'`, `N'text'`
    Text {
        /// The characters, `''` undone.
        text: String,
        /// Whether it was written with the `N` of national (UTF-16) strings.
        national: bool,
    },
    /// An integer without sign.
    Integer(i64),
    /// A number with a point or an exponent, or an integer that is too large, as written.
    Decimal(String),
    /// `0x...`: the bytes.
    Binary(Vec<u8>),
    /// `@x`, `@@x`
    Variable(Variable),
    /// `-x`, `+x`
    Unary {
        /// The sign.
        operator: UnaryOperator,
        /// What it stands before.
        operand: Box<Spanned<Expr>>,
    },
    /// `x + y` and so on
    Infix {
        /// The operator.
        operator: InfixOperator,
        /// Left of it.
        left: Box<Spanned<Expr>>,
        /// Right of it.
        right: Box<Spanned<Expr>>,
    },
    /// `name(arguments)`: any function but the two that follow.
    Call {
        /// The function, qualified when written so.
        function: ObjectName,
        /// Its arguments.
        arguments: Vec<Spanned<Expr>>,
    },
    /// `CAST(x AS type)`, `TRY_CAST(x AS type)`
    Cast {
        /// What is converted.
        value: Box<Spanned<Expr>>,
        /// What it becomes.
        data_type: DataType,
        /// What happens when it cannot be converted.
        on_failure: OnConversionFailure,
    },
    /// `CONVERT(type, x [, style])`, `TRY_CONVERT(...)`
    Convert {
        /// What it becomes.
        data_type: DataType,
        /// What is converted.
        value: Box<Spanned<Expr>>,
        /// The date or number style.
        style: Option<Box<Spanned<Expr>>>,
        /// What happens when it cannot be converted.
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

/// What a conversion does with a value that cannot be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConversionFailure {
    /// `CAST`, `CONVERT`: an error.
    Error,
    /// `TRY_CAST`, `TRY_CONVERT`: NULL.
    Null,
}
