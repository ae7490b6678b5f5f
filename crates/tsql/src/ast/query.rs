//! Queries, and the statements that change rows.

use super::{AssignmentOperator, Expr, Identifier, ObjectName, Variable};
use crate::span::Spanned;

/// A query in an expression, with its text, which the printer repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subquery {
    pub text: String,
    pub query: Query,
}

/// `[WITH ...] SELECT ... [ORDER BY ...]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub tables: Vec<CommonTable>,
    pub body: Body,
    pub order: Vec<OrderItem>,
    /// `OFFSET n ROWS`
    pub offset: Option<Spanned<Expr>>,
    /// `FETCH NEXT n ROWS ONLY`, or SQLite's `LIMIT n`
    pub limit: Option<Spanned<Expr>>,
    /// `OPTION (MAXRECURSION n)`
    pub max_recursion: Option<u32>,
}

/// `name [(columns)] AS (query)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonTable {
    pub name: Spanned<Identifier>,
    pub columns: Vec<Identifier>,
    pub query: Query,
    /// Whether SQLite's word RECURSIVE stands before: it knows no limit.
    pub is_unlimited: bool,
}

/// The rows of a query, before they are sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    Select(Box<Select>),
    /// `VALUES (...), ...`
    Values(Vec<Vec<Spanned<Expr>>>),
    /// `(query)`
    Nested(Box<Query>),
    /// Bodies that follow each other from the left.
    Sets {
        first: Box<Body>,
        others: Vec<(SetOperator, Body)>,
    },
}

/// What combines two sets of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOperator {
    Union,
    UnionAll,
    Except,
    Intersect,
}

/// `SELECT`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Select {
    pub distinct: bool,
    pub top: Option<Top>,
    pub items: Vec<Spanned<SelectItem>>,
    /// `INTO table`
    pub into: Option<Spanned<ObjectName>>,
    pub from: Vec<Joined>,
    pub condition: Option<Spanned<Expr>>,
    pub groups: Vec<Spanned<Expr>>,
    pub having: Option<Spanned<Expr>>,
}

/// `TOP (n) [PERCENT]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top {
    pub count: Spanned<Expr>,
    pub percent: bool,
}

/// A column of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectItem {
    /// `*`, `t.*`
    All(Option<ObjectName>),
    Value {
        value: Spanned<Expr>,
        name: Option<Identifier>,
    },
    /// `@x = value`
    Assign {
        variable: Spanned<Variable>,
        operator: AssignmentOperator,
        value: Spanned<Expr>,
    },
}

/// A table, and the tables joined to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    pub table: Spanned<TableSource>,
    pub joins: Vec<Join>,
}

/// `JOIN table ON condition`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    pub kind: JoinKind,
    pub table: Spanned<TableSource>,
    pub condition: Option<Spanned<Expr>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    Cross,
    /// `CROSS APPLY`
    CrossApply,
    /// `OUTER APPLY`
    OuterApply,
}

/// What FROM names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableSource {
    Table {
        name: ObjectName,
        alias: Option<Identifier>,
    },
    /// `@t`
    Variable {
        name: Variable,
        alias: Option<Identifier>,
    },
    /// `(SELECT ...) AS x [(columns)]`
    Query {
        query: Box<Query>,
        alias: Identifier,
        columns: Vec<Identifier>,
    },
    /// `f(...)`
    Function {
        name: ObjectName,
        arguments: Vec<Spanned<Expr>>,
        alias: Option<Identifier>,
        columns: Vec<Identifier>,
    },
}

/// An item of ORDER BY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderItem {
    pub value: Spanned<Expr>,
    pub descending: bool,
}

/// `INSERT [INTO] table [(columns)] rows`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insert {
    pub tables: Vec<CommonTable>,
    pub target: Spanned<Target>,
    pub columns: Vec<Spanned<Identifier>>,
    pub rows: InsertRows,
}

/// A table that is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Table(ObjectName),
    Variable(Variable),
}

/// What INSERT inserts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InsertRows {
    Query(Box<Query>),
    /// `EXEC ...`: the result sets of a batch or procedure.
    Execute(Box<super::Statement>),
    DefaultValues,
}

/// `UPDATE table SET column = value, ... [FROM ...] [WHERE ...]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    pub tables: Vec<CommonTable>,
    pub target: Spanned<Target>,
    pub changes: Vec<Change>,
    pub from: Vec<Joined>,
    pub condition: Option<Spanned<Expr>>,
}

/// `column = value`, or `@x = value`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub column: Spanned<Identifier>,
    pub operator: AssignmentOperator,
    pub value: Spanned<Expr>,
}

/// `DELETE [FROM] table [FROM ...] [WHERE ...]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    pub tables: Vec<CommonTable>,
    pub target: Spanned<Target>,
    pub from: Vec<Joined>,
    pub condition: Option<Spanned<Expr>>,
}

/// `CREATE TABLE table (columns)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTable {
    pub target: Spanned<Target>,
    pub columns: Vec<Spanned<ColumnDefinition>>,
    /// The keys and checks of the table, and SQLite's words after it, verbatim.
    pub constraints: Vec<String>,
    pub options: String,
}

/// `name type [NULL | NOT NULL] [IDENTITY] [DEFAULT x] ...`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    pub name: Identifier,
    pub data_type: Option<super::DataType>,
    pub is_identity: bool,
    pub is_primary: bool,
    pub is_required: bool,
    pub default: Option<Spanned<Expr>>,
    /// Further constraints, verbatim.
    pub constraints: Vec<String>,
}
