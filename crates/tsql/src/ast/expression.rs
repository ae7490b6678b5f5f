//! Scalar expressions and conditions, in statements and in queries; bound and evaluated elsewhere.

use super::{DataType, Identifier, ObjectName, OrderItem, Subquery, Variable};
use crate::span::Spanned;

/// An expression or a condition. Parentheses are not stored: the printer adds those that are needed.
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
    /// `(SELECT ...)`
    Subquery(Box<Subquery>),
    /// `a`, `t.a`, `dbo.t.a`: only in queries.
    Column(ObjectName),
    /// `COUNT(*)`, `SUM(DISTINCT x)`, `ROW_NUMBER() OVER (...)`: only in queries.
    Aggregate(Box<Aggregate>),
    /// `x COLLATE name`
    Collate {
        value: Box<Spanned<Expr>>,
        collation: Identifier,
    },
    /// `CASE [operand] WHEN ... THEN ... [ELSE ...] END`
    Case(Box<Case>),
    /// `x = y` and so on
    Compare {
        operator: Comparison,
        left: Box<Spanned<Expr>>,
        right: Box<Spanned<Expr>>,
    },
    /// `x AND y`, `x OR y`
    Logic {
        operator: LogicOperator,
        left: Box<Spanned<Expr>>,
        right: Box<Spanned<Expr>>,
    },
    /// `NOT x`
    Not(Box<Spanned<Expr>>),
    /// `x IS [NOT] NULL`
    IsNull {
        value: Box<Spanned<Expr>>,
        negated: bool,
    },
    /// `x [NOT] BETWEEN y AND z`
    Between {
        value: Box<Spanned<Expr>>,
        low: Box<Spanned<Expr>>,
        high: Box<Spanned<Expr>>,
        negated: bool,
    },
    /// `x [NOT] IN (y, ...)`
    InList {
        value: Box<Spanned<Expr>>,
        list: Vec<Spanned<Expr>>,
        negated: bool,
    },
    /// `x [NOT] IN (SELECT ...)`
    InQuery {
        value: Box<Spanned<Expr>>,
        query: Box<Subquery>,
        negated: bool,
    },
    /// `x [NOT] LIKE y [ESCAPE z]`
    Like {
        value: Box<Spanned<Expr>>,
        pattern: Box<Spanned<Expr>>,
        escape: Option<Box<Spanned<Expr>>>,
        negated: bool,
    },
    /// `EXISTS (SELECT ...)`
    Exists(Box<Subquery>),
}

impl Expr {
    /// Whether it is a condition, which has no value.
    pub fn is_condition(&self) -> bool {
        matches!(
            self,
            Self::Compare { .. }
                | Self::Logic { .. }
                | Self::Not(_)
                | Self::IsNull { .. }
                | Self::Between { .. }
                | Self::InList { .. }
                | Self::InQuery { .. }
                | Self::Like { .. }
                | Self::Exists(_)
        )
    }
}

/// `CASE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The value that each WHEN is compared with; without it each WHEN is a condition.
    pub operand: Option<Spanned<Expr>>,
    pub branches: Vec<Branch>,
    pub otherwise: Option<Spanned<Expr>>,
}

/// `WHEN ... THEN ...`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    pub when: Spanned<Expr>,
    pub then: Spanned<Expr>,
}

/// A call that is only possible over the rows of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregate {
    pub function: ObjectName,
    pub distinct: bool,
    /// `COUNT(*)`
    pub star: bool,
    pub arguments: Vec<Spanned<Expr>>,
    /// `WITHIN GROUP (ORDER BY ...)`
    pub within: Vec<OrderItem>,
    pub over: Option<Over>,
}

/// `OVER (...)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    pub partition: Vec<Spanned<Expr>>,
    pub order: Vec<OrderItem>,
    /// `ROWS BETWEEN ...` in capitals.
    pub frame: Option<String>,
}

/// The signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `-`
    Negate,
    /// `+`
    Plus,
    /// `~`
    BitNot,
}

/// The operators between two values.
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
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `||`
    Concatenate,
}

/// The comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// `AND`, `OR`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogicOperator {
    And,
    Or,
}

/// What happens if a value cannot be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConversionFailure {
    /// `CAST`, `CONVERT`: an error.
    Error,
    /// `TRY_CAST`, `TRY_CONVERT`: NULL.
    Null,
}
