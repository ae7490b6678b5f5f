//! Stored procedures.

use super::{ArgumentValue, DataType, ObjectName, Statement, Variable};
use crate::span::Spanned;

/// `CREATE [OR ALTER] | ALTER PROCEDURE name parameters [WITH options] AS statements`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefineProcedure {
    pub action: DefineAction,
    pub name: Spanned<ObjectName>,
    pub parameters: Vec<Spanned<Parameter>>,
    /// `WITH RECOMPILE`
    pub is_recompiled: bool,
    pub body: Vec<Spanned<Statement>>,
    /// Its batch as written, with the comments before it, without the closing `;`.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefineAction {
    Create,
    Alter,
    CreateOrAlter,
}

/// A parameter of a procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    pub variable: Variable,
    pub data_type: DataType,
    /// The value without an argument; a call must give one when absent.
    pub default: Option<ArgumentValue>,
    /// `OUTPUT`
    pub is_output: bool,
}

/// `DROP PROCEDURE [IF EXISTS] name, ...`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropProcedure {
    pub if_exists: bool,
    pub names: Vec<Spanned<ObjectName>>,
}
