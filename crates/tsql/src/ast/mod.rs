//! The typed syntax tree: one type per statement, positions kept, meaning left out.
//!
//! Neighbours: the parser builds it, the printer writes it, the `instance` crate gives it
//! meaning. Forms that SQL Server's parser accepts and its executor refuses (`RETAINDAYS = 'x'`) are in
//! the tree; what its parser refuses is not.
//!
//! Invariant: comparing two trees ignores positions, see [`Spanned`].

mod backup;
mod database;
mod expression;
mod restore;
mod script;
mod security;
mod value;

pub use backup::*;
pub use database::*;
pub use expression::*;
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
        /// What opens the key if the instance's service key is lost.
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
    /// `ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD`
    AlterServerConfiguration(AlterServerConfiguration),
    /// `USE name`
    Use(Spanned<Identifier>),
    /// `DECLARE @a type [= value], ...`
    Declare(Vec<Spanned<Declaration>>),
    /// `SET @a = value`
    SetVariable(SetVariable),
    /// `SET NOCOUNT ON` and its kin
    SetOption(SetOption),
    /// `PRINT expression`
    Print(Spanned<Expr>),
    /// `EXEC procedure arguments`
    Execute(Execute),
    /// `RECONFIGURE [WITH OVERRIDE]`
    Reconfigure(Reconfigure),
    /// `CHECKPOINT [seconds]`
    Checkpoint {
        /// The time the checkpoint should take, in seconds.
        duration_seconds: Option<Spanned<Value>>,
    },
    /// `DBCC command ...`
    Dbcc(Dbcc),
    /// `WAITFOR DELAY 'hh:mm:ss'`
    WaitForDelay(Spanned<Value>),
    /// `BEGIN TRANSACTION`, `COMMIT`, `ROLLBACK`
    Transaction(Transaction),
    /// SQL that is not ours, verbatim, for `SQLite`.
    Sql(Sql),
}
