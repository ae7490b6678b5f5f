//! The statements around the backups: variables, procedures, settings, transactions, SQL.

use super::{
    CreateTable, DataType, Delete, Expr, Identifier, Insert, ObjectName, Query, Switch, Update,
    Value, Variable,
};
use crate::span::Spanned;

/// One variable of a `DECLARE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    pub variable: Variable,
    pub data_type: DataType,
    /// Its initial value; NULL when absent.
    pub value: Option<Spanned<Expr>>,
}

/// `SET @x = value`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetVariable {
    pub variable: Spanned<Variable>,
    /// `=`, or the operator of `+=` and the like.
    pub operator: AssignmentOperator,
    pub value: Spanned<Expr>,
}

/// How `SET @x` combines the new value with the old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignmentOperator {
    /// `=`
    Assign,
    /// `+=`
    Add,
    /// `-=`
    Subtract,
    /// `*=`
    Multiply,
    /// `/=`
    Divide,
    /// `%=`
    Modulo,
}

/// `SET option, ... value`: a session setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetOption {
    /// The settings in capitals; several if separated by commas (`SET ANSI_NULLS, QUOTED_IDENTIFIER
    /// ON`). The words of a setting are joined by one space.
    pub names: Vec<Spanned<String>>,
    pub value: SetOptionValue,
}

/// The value of a session setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetOptionValue {
    /// `ON`, `OFF`
    Switch(Switch),
    /// A string, number or variable (`SET LOCK_TIMEOUT 1000`).
    Value(Value),
    /// One or more words in capitals, joined by one space (`SET DATEFORMAT dmy`, `READ COMMITTED`).
    Words(String),
}

/// `EXEC [@result =] procedure [argument, ...]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execute {
    /// The variable that receives the return code.
    pub return_code: Option<Spanned<Variable>>,
    pub procedure: Spanned<ObjectName>,
    /// Its arguments in source order.
    pub arguments: Vec<Spanned<Argument>>,
}

/// An argument of a procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// `@name =`
    pub name: Option<Variable>,
    pub value: ArgumentValue,
    /// Whether `OUTPUT` or `OUT` follows.
    pub direction: ArgumentDirection,
}

/// Whether a procedure may write to an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentDirection {
    /// The procedure only reads it.
    Input,
    /// `OUTPUT`
    Output,
}

/// The value of an argument, which cannot be an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentValue {
    /// `NULL`
    Null,
    /// `DEFAULT`
    Default,
    /// A string, an integer or a variable.
    Value(Value),
    /// A number with a point or an exponent and its sign, in source form.
    Decimal(String),
    /// `0x...`: the bytes.
    Binary(Vec<u8>),
    /// A bare word, which T-SQL treats as a string.
    Word(Identifier),
}

/// `RECONFIGURE [WITH OVERRIDE]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reconfigure {
    /// `RECONFIGURE`
    Checked,
    /// `RECONFIGURE WITH OVERRIDE`
    Override,
}

/// `DBCC command`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dbcc {
    /// `DBCC TRACEON (flag, ... [, -1])`, `DBCC TRACEOFF (...)`
    Trace {
        /// On or off.
        switch: Switch,
        /// The trace flags, without the `-1`.
        flags: Vec<u32>,
        /// Whether `-1` requests all sessions.
        scope: TraceScope,
        /// Whether `WITH NO_INFOMSGS` follows.
        messages: InformationMessages,
    },
    /// `DBCC CHECKDB [(database)] [WITH option, ...]`
    CheckDatabase {
        /// Name or number; the current database if absent.
        database: Option<Spanned<Value>>,
        /// Whether `PHYSICAL_ONLY` is among the options: indexes are not compared with their
        /// tables.
        is_physical_only: bool,
        /// Whether `NO_INFOMSGS` is among the options.
        messages: InformationMessages,
    },
    /// `DBCC SQLPERF (LOGSPACE)`
    LogSpace {
        /// Whether `WITH NO_INFOMSGS` follows.
        messages: InformationMessages,
    },
    /// Any other command, verbatim.
    Other {
        /// The command in capitals.
        command: String,
        /// The rest in source form, without the closing `;`.
        text: String,
    },
}

/// Which sessions a trace flag affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceScope {
    Session,
    /// All sessions (`-1`).
    Global,
}

/// Whether a DBCC command prints its closing message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InformationMessages {
    /// Printed.
    Shown,
    /// `WITH NO_INFOMSGS`
    Suppressed,
}

/// A statement that starts or ends a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transaction {
    /// `BEGIN TRAN[SACTION] [name [WITH MARK ['description']]]`
    Begin {
        name: Option<Spanned<super::Name>>,
        /// `WITH MARK`: adds a mark of that name to the log.
        mark: Option<TransactionMark>,
    },
    /// `COMMIT [TRAN[SACTION] [name] | WORK]`
    Commit { name: Option<Spanned<super::Name>> },
    /// `ROLLBACK [TRAN[SACTION] [name] | WORK]`
    Rollback { name: Option<Spanned<super::Name>> },
}

/// `WITH MARK ['description']`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionMark {
    pub description: Option<Value>,
}

/// A statement that `SQLite` runs. The printer repeats the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql {
    /// The statement, without the closing `;`.
    pub text: String,
    pub tree: SqlTree,
}

/// What a statement for `SQLite` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SqlTree {
    Query(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    CreateTable(Box<CreateTable>),
    /// `DROP TABLE [IF EXISTS] ...`
    DropTable {
        names: Vec<Spanned<ObjectName>>,
        if_exists: bool,
    },
    /// `TRUNCATE TABLE name`
    Truncate(Spanned<ObjectName>),
    /// SQL that T-SQL does not have, or has alike: run as written.
    Native,
}
