//! Control flow, errors and cursors.

use super::{Expr, Identifier, Query, Statement, Value, Variable};
use crate::span::Spanned;

/// `IF condition statement [ELSE statement]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct If {
    pub condition: Spanned<Expr>,
    pub then: Spanned<Statement>,
    pub otherwise: Option<Spanned<Statement>>,
}

/// `WHILE condition statement`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct While {
    pub condition: Spanned<Expr>,
    pub body: Spanned<Statement>,
}

/// `BEGIN TRY ... END TRY BEGIN CATCH ... END CATCH`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TryCatch {
    pub body: Vec<Spanned<Statement>>,
    pub handler: Vec<Spanned<Statement>>,
}

/// `THROW number, message, state`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Throw {
    pub number: Value,
    pub message: Value,
    pub state: Value,
}

/// `RAISERROR (message, severity, state, argument, ...) [WITH option, ...]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaiseError {
    pub message: Value,
    pub severity: Value,
    pub state: Value,
    pub arguments: Vec<Value>,
    /// `NOWAIT`, `LOG`, `SETERROR`
    pub options: Vec<String>,
}

/// A statement on a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cursor {
    /// `DECLARE name CURSOR [options] FOR query`
    Declare {
        name: Identifier,
        query: Box<Query>,
        /// The query as written, and the options in capitals.
        text: String,
        options: Vec<String>,
    },
    Open(Identifier),
    /// `FETCH NEXT FROM name [INTO @a, ...]`
    Fetch {
        direction: FetchDirection,
        name: Identifier,
        into: Vec<Spanned<Variable>>,
    },
    Close(Identifier),
    Deallocate(Identifier),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchDirection {
    Next,
    Prior,
    First,
    Last,
}
