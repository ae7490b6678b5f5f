//! Executes T-SQL statements; one file per statement.
//!
//! | module | what |
//! |---|---|
//! | `backup`, `restore` | from a statement to the options of an [operation](crate::operation) |
//! | `option` | from written options to those of operations |
//! | [`mod@print`] | the reverse: options as a statement |
//! | `logged` | how a statement appears in the log |
//! | `permission` | which rights a statement needs |
//! | `procedure`, the others | all other statements |
//! | `bind` | from an expression or query to typed trees and SQL; names, types, conversions |
//! | `expression` | what operators and functions compute |
//! | `program` | how SQLite calls the trees |
//! | `check` | what keeps a batch from running |
//! | `confined` | which statements touch no files |
//! | `flow` | IF, WHILE, TRY and the like |
//!
//! Apart from the session, which parses batches, and [`DataType`](crate::DataType), only this module knows
//! syntax trees.

/// The statements that [`flow`] runs itself, as a pattern.
macro_rules! control_flow {
    () => {
        windlass_tsql::ast::Statement::Block(_)
            | windlass_tsql::ast::Statement::If(_)
            | windlass_tsql::ast::Statement::While(_)
            | windlass_tsql::ast::Statement::Break
            | windlass_tsql::ast::Statement::Continue
            | windlass_tsql::ast::Statement::Return(_)
            | windlass_tsql::ast::Statement::Label(_)
            | windlass_tsql::ast::Statement::Goto(_)
            | windlass_tsql::ast::Statement::TryCatch(_)
    };
}

mod backup;
pub(crate) mod bind;
pub(crate) mod check;
pub(crate) mod confined;
mod copied;
mod credential;
pub(crate) mod cursor;
mod database;
pub(crate) mod engine;
pub mod environment;
pub(crate) mod evaluate;
pub(crate) mod expression;
pub(crate) mod flow;
mod integrity;
mod log_space;
pub(crate) mod logged;
mod login;
pub(crate) mod option;
mod page_list;
pub(crate) mod permission;
pub mod print;
pub(crate) mod procedure;
pub(crate) mod program;
pub(crate) mod query;
mod restore;
mod row_count;
mod script;
mod security;
mod server;
pub(crate) mod temporary;
mod trace;
pub(crate) mod variables;

use windlass_tsql::ast::{Dbcc, Statement};

use crate::{Failure, Session, Sink};

/// Executes one statement.
pub(crate) fn execute(
    session: &mut Session,
    statement: &Statement,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    match statement {
        Statement::Backup(backup) => backup::execute(session, backup, sink),
        Statement::Restore(restore) => restore::execute(session, restore, sink),
        Statement::CreateDatabase(create) => database::create(session, create, sink),
        Statement::DropDatabase(drop) => database::drop(session, drop, sink),
        Statement::Use(name) => database::use_database(session, &name.text, sink),
        Statement::Declare(declarations) => script::declare(session, declarations),
        Statement::SetVariable(set) => script::set_variable(session, set),
        Statement::SetOption(set) => script::set_option(session, set, sink),
        Statement::Print(expression) => script::print(session, expression, sink),
        Statement::WaitForDelay(delay) => script::wait_for(session, delay),
        Statement::Transaction(transaction) => script::transaction(session, transaction, sink),
        Statement::Execute(execute) => procedure::execute(session, execute, sink),
        Statement::Sql(sql) => {
            script::begin_implicitly(session, sql)?;
            query::execute(session, sql, sink)
        }
        Statement::CreateMasterKey { password } => security::create_master_key(session, password),
        Statement::DropMasterKey => security::drop_master_key(session),
        Statement::CreateCertificate(create) => security::create(session, create),
        Statement::BackupCertificate(backup) => security::back_up(session, backup),
        Statement::DropCertificate(name) => security::drop(session, &name.node.text),
        Statement::SetCredential(set) => credential::set(session, set),
        Statement::DropCredential(name) => session.drop_credential(&name.node.text),
        Statement::CreateLogin(create) => login::create(session, create),
        Statement::AlterLogin(alter) => login::alter(session, alter),
        Statement::DropLogin(name) => login::drop(session, &name.node.text),
        Statement::AlterServerRole(alter) => login::alter_role(session, alter),
        Statement::Reconfigure(reconfigure) => server::reconfigure(session, *reconfigure, sink),
        Statement::AlterServerConfiguration(alter) => server::alter(session, alter, sink),
        Statement::Dbcc(dbcc @ Dbcc::CheckDatabase { .. }) => {
            integrity::check_database(session, dbcc, sink)
        }
        Statement::Dbcc(Dbcc::LogSpace { messages }) => log_space::show(session, *messages, sink),
        Statement::Dbcc(dbcc) => {
            trace::execute(session, dbcc, sink);
            Ok(())
        }
        Statement::Kill { session: number } => server::kill(session, number),
        Statement::AlterDatabase(alter) => engine::alter(session, alter, sink),
        Statement::Checkpoint { duration_seconds } => {
            engine::checkpoint(session, duration_seconds.as_ref(), sink)
        }
        Statement::DeclareTable { table, .. } => temporary::declare(session, table),
        Statement::Throw(throw) => flow::throw(session, throw.as_ref()),
        Statement::RaiseError(raise) => flow::raise_error(session, raise, sink),
        Statement::ExecuteText(text) => script::execute_text(session, text, sink),
        Statement::Cursor(cursor) => cursor::execute(session, cursor, sink),
        Statement::DefineProcedure(definition) => procedure::stored::define(session, definition),
        Statement::DropProcedure(drop) => procedure::stored::drop(session, drop),
        control_flow!() => Ok(()),
    }
}

#[cfg(test)]
mod tests;
