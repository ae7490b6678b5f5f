//! The typed syntax tree: one type per statement, with positions, without semantics.
//!
//! Neighbours: the parser builds it, the printer formats it, the `instance` crate executes it.
//! Forms that SQL Server's parser accepts and its executor refuses (`RETAINDAYS = 'x'`) are in the
//! tree; forms that its parser refuses are not.
//!
//! Invariant: comparing two trees ignores positions, see [`Spanned`].

mod backup;
mod credential;
mod database;
mod expression;
mod flow;
mod login;
mod procedure;
mod query;
mod restore;
mod script;
mod security;
mod value;

pub use backup::*;
pub use credential::*;
pub use database::*;
pub use expression::*;
pub use flow::*;
pub use login::*;
pub use procedure::*;
pub use query::*;
pub use restore::*;
pub use script::*;
pub use security::*;
pub use value::*;

use crate::span::Spanned;

/// One statement of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// `BACKUP DATABASE | LOG | GROUP | SERVER`
    Backup(Box<BackupStatement>),
    /// `RESTORE DATABASE | LOG | HEADERONLY | ...`
    Restore(Box<RestoreStatement>),
    /// `CREATE DATABASE`
    CreateDatabase(Box<CreateDatabase>),
    /// `DROP DATABASE`
    DropDatabase(DropDatabase),
    /// `ALTER DATABASE`
    AlterDatabase(AlterDatabase),
    /// `CREATE MASTER KEY ENCRYPTION BY PASSWORD = '...'`
    CreateMasterKey {
        /// Opens the key if the instance's service key is lost.
        password: Secret,
    },
    /// `DROP MASTER KEY`
    DropMasterKey,
    /// `CREATE CERTIFICATE`
    CreateCertificate(Box<CreateCertificate>),
    /// `BACKUP CERTIFICATE`
    BackupCertificate(Box<BackupCertificate>),
    /// `DROP CERTIFICATE name`
    DropCertificate(Spanned<Identifier>),
    SetCredential(Box<SetCredential>),
    /// `DROP CREDENTIAL name`
    DropCredential(Spanned<Identifier>),
    CreateLogin(Box<CreateLogin>),
    AlterLogin(Box<AlterLogin>),
    /// `DROP LOGIN name`
    DropLogin(Spanned<Identifier>),
    AlterServerRole(AlterServerRole),
    /// `ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD`
    AlterServerConfiguration(AlterServerConfiguration),
    /// `USE name`
    Use(Spanned<Identifier>),
    /// `DECLARE @a type [= value], ...`
    Declare(Vec<Spanned<Declaration>>),
    /// `SET @a = value`
    SetVariable(SetVariable),
    /// `SET NOCOUNT ON` and the like
    SetOption(SetOption),
    /// `PRINT expression`
    Print(Spanned<Expr>),
    /// `EXEC procedure arguments`
    Execute(Execute),
    /// `RECONFIGURE [WITH OVERRIDE]`
    Reconfigure(Reconfigure),
    /// `CHECKPOINT [seconds]`
    Checkpoint {
        /// The requested duration of the checkpoint, in seconds.
        duration_seconds: Option<Spanned<Value>>,
    },
    /// `KILL number`
    Kill {
        /// The session to end.
        session: Spanned<Value>,
    },
    /// `DBCC command ...`
    Dbcc(Dbcc),
    /// `WAITFOR DELAY 'hh:mm:ss'`
    WaitForDelay(Spanned<Value>),
    /// `BEGIN TRANSACTION`, `COMMIT`, `ROLLBACK`
    Transaction(Transaction),
    /// A query, a change of rows, or SQL that only `SQLite` has.
    Sql(Sql),
    /// `DECLARE @t TABLE (...)`
    DeclareTable {
        /// The columns as written, in their parentheses.
        text: String,
        table: Box<CreateTable>,
    },
    /// `BEGIN ... END`
    Block(Vec<Spanned<Statement>>),
    If(Box<If>),
    While(Box<While>),
    Break,
    Continue,
    /// `RETURN [code]`
    Return(Option<Spanned<Expr>>),
    /// `label:`
    Label(Identifier),
    Goto(Spanned<Identifier>),
    TryCatch(Box<TryCatch>),
    /// `THROW [number, message, state]`
    Throw(Option<Throw>),
    RaiseError(Box<RaiseError>),
    /// `EXEC ('text' + @more)`
    ExecuteText(Spanned<Expr>),
    Cursor(Cursor),
    DefineProcedure(Box<DefineProcedure>),
    DropProcedure(DropProcedure),
}
