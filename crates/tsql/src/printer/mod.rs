//! Statements to canonical text: keywords in capitals, one space, names in brackets only where needed.
//!
//! Neighbours: [`crate::ast`] is printed, [`crate::parser`] reads it back.
//!
//! Invariants:
//! * `parse(print(statement)) == statement` for every statement that the parser can produce.
//! * The text nests no deeper than the parsed one, so it can be parsed again.

mod backup;
mod credential;
mod database;
mod expression;
mod flow;
mod login;
mod restore;
mod script;
mod security;
mod value;

use std::fmt::{self, Display, Formatter};

use crate::ast::{Statement, Target};
use crate::span::Spanned;

/// The text of a batch: its statements, each ended by `;` and a line end.
pub fn print_batch(statements: &[Spanned<Statement>]) -> String {
    flow::Body(statements).to_string()
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backup(statement) => statement.fmt(f),
            Self::Restore(statement) => statement.fmt(f),
            Self::CreateDatabase(statement) => statement.fmt(f),
            Self::DropDatabase(statement) => statement.fmt(f),
            Self::AlterDatabase(statement) => statement.fmt(f),
            Self::AlterServerConfiguration(statement) => statement.fmt(f),
            Self::CreateMasterKey { password } => {
                write!(f, "CREATE MASTER KEY ENCRYPTION {password}")
            }
            Self::DropMasterKey => f.write_str("DROP MASTER KEY"),
            Self::CreateCertificate(statement) => statement.fmt(f),
            Self::BackupCertificate(statement) => statement.fmt(f),
            Self::DropCertificate(name) => write!(f, "DROP CERTIFICATE {}", name.node),
            Self::SetCredential(statement) => statement.fmt(f),
            Self::DropCredential(name) => write!(f, "DROP CREDENTIAL {}", name.node),
            Self::CreateLogin(statement) => statement.fmt(f),
            Self::AlterLogin(statement) => statement.fmt(f),
            Self::DropLogin(name) => write!(f, "DROP LOGIN {}", name.node),
            Self::AlterServerRole(statement) => statement.fmt(f),
            Self::Use(name) => write!(f, "USE {}", name.node),
            Self::Declare(declarations) => write!(f, "DECLARE {}", List(declarations)),
            Self::SetVariable(statement) => statement.fmt(f),
            Self::SetOption(statement) => statement.fmt(f),
            Self::Print(expression) => write!(f, "PRINT {}", expression.node),
            Self::Execute(statement) => statement.fmt(f),
            Self::Reconfigure(statement) => statement.fmt(f),
            Self::Checkpoint {
                duration_seconds: None,
            } => f.write_str("CHECKPOINT"),
            Self::Checkpoint {
                duration_seconds: Some(duration),
            } => {
                write!(f, "CHECKPOINT {}", duration.node)
            }
            Self::Kill { session } => write!(f, "KILL {}", session.node),
            Self::Dbcc(statement) => statement.fmt(f),
            Self::WaitForDelay(delay) => write!(f, "WAITFOR DELAY {}", delay.node),
            Self::Transaction(statement) => statement.fmt(f),
            Self::Sql(sql) => f.write_str(&sql.text),
            other => flow_statement(f, other),
        }
    }
}

fn flow_statement(f: &mut Formatter<'_>, statement: &Statement) -> fmt::Result {
    match statement {
        Statement::DeclareTable { text, table } => match &table.target.node {
            Target::Variable(name) => write!(f, "DECLARE {name} TABLE {text}"),
            Target::Table(name) => write!(f, "CREATE TABLE {name} {text}"),
        },
        Statement::Block(statements) => write!(f, "BEGIN\n{}END", flow::Body(statements)),
        Statement::If(statement) => statement.fmt(f),
        Statement::While(statement) => statement.fmt(f),
        Statement::Break => f.write_str("BREAK"),
        Statement::Continue => f.write_str("CONTINUE"),
        Statement::Return(None) => f.write_str("RETURN"),
        Statement::Return(Some(code)) => write!(f, "RETURN ({})", code.node),
        Statement::Label(label) => write!(f, "{label}:"),
        Statement::Goto(label) => write!(f, "GOTO {}", label.node),
        Statement::TryCatch(statement) => statement.fmt(f),
        Statement::Throw(None) => f.write_str("THROW"),
        Statement::Throw(Some(throw)) => throw.fmt(f),
        Statement::RaiseError(statement) => statement.fmt(f),
        Statement::ExecuteText(text) => write!(f, "EXECUTE ({})", text.node),
        Statement::Cursor(cursor) => cursor.fmt(f),
        Statement::DefineProcedure(procedure) => f.write_str(&procedure.text),
        Statement::DropProcedure(drop) => {
            let if_exists = if drop.if_exists { "IF EXISTS " } else { "" };
            write!(f, "DROP PROCEDURE {if_exists}{}", List(&drop.names))
        }
        other => other.fmt(f),
    }
}

/// Items with `, ` between them.
struct List<'a, T>(&'a [Spanned<T>]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{}", item.node)?;
        }
        Ok(())
    }
}

/// `WITH option, ...` with a space before it, or nothing.
struct With<'a, T>(&'a [Spanned<T>]);

impl<T: Display> Display for With<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            Ok(())
        } else {
            write!(f, " WITH {}", List(self.0))
        }
    }
}
