//! Statements about databases and the server: `CREATE`, `ALTER` and `DROP DATABASE`,
//! `ALTER SERVER CONFIGURATION`.

use super::{Identifier, Switch};
use crate::span::Spanned;

/// `CREATE DATABASE name [ON files [LOG ON files]] [FOR ATTACH [WITH AS_IS]] [AS SNAPSHOT OF source]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateDatabase {
    /// The new database.
    pub name: Spanned<Identifier>,
    /// The files of the primary filegroup.
    pub primary_files: Vec<Spanned<FileDefinition>>,
    /// Other filegroups, in source order.
    pub filegroups: Vec<Filegroup>,
    /// The files after `LOG ON`.
    pub log_files: Vec<Spanned<FileDefinition>>,
    pub origin: DatabaseOrigin,
}

/// How `CREATE DATABASE` creates its database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseOrigin {
    /// A new, empty database.
    New,
    /// `FOR ATTACH`
    Attach,
    /// `FOR ATTACH WITH AS_IS`: a Windlass extension. The file may lack a `SQLite` header.
    AttachAsIs,
    /// `FOR ATTACH_REBUILD_LOG`
    AttachRebuildLog,
    /// `AS SNAPSHOT OF name`
    SnapshotOf(Spanned<Identifier>),
}

/// `FILEGROUP name files` in `CREATE DATABASE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filegroup {
    pub name: Spanned<Identifier>,
    /// Its files; never empty.
    pub files: Vec<Spanned<FileDefinition>>,
}

/// `(NAME = x, FILENAME = 'path', SIZE = n, MAXSIZE = n, FILEGROWTH = n)`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileDefinition {
    /// `NAME`, written as an identifier or a string.
    pub name: Option<Spanned<Identifier>>,
    /// `FILENAME`
    pub filename: Option<Spanned<String>>,
    /// `SIZE`
    pub size: Option<FileSize>,
    /// `MAXSIZE`
    pub max_size: Option<FileSizeLimit>,
    /// `FILEGROWTH`
    pub growth: Option<FileGrowth>,
}

/// A size with its unit as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSize {
    /// The number.
    pub count: u64,
    /// The unit; without one, SQL Server assumes megabytes.
    pub unit: Option<SizeUnit>,
}

/// The units of a file size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeUnit {
    /// `KB`
    Kilobyte,
    /// `MB`
    Megabyte,
    /// `GB`
    Gigabyte,
    /// `TB`
    Terabyte,
}

/// The value of `MAXSIZE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSizeLimit {
    Size(FileSize),
    /// `UNLIMITED`
    Unlimited,
}

/// The value of `FILEGROWTH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileGrowth {
    /// By a fixed amount.
    Size(FileSize),
    /// By a percentage of the current size.
    Percent(u64),
}

/// `DROP DATABASE [IF EXISTS] name, ...`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropDatabase {
    /// Whether a missing database is not an error.
    pub if_exists: bool,
    /// The databases; never empty.
    pub names: Vec<Spanned<Identifier>>,
}

/// `ALTER DATABASE name action`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterDatabase {
    pub database: AlteredDatabase,
    pub action: AlterDatabaseAction,
}

/// The database named by `ALTER DATABASE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlteredDatabase {
    Named(Spanned<Identifier>),
    /// `CURRENT`
    Current,
}

/// What `ALTER DATABASE` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterDatabaseAction {
    /// `SET option, ...`, if every option is known and nothing follows; never empty.
    Set(Vec<Spanned<DatabaseOption>>),
    /// `ADD FILE file, ... [TO FILEGROUP name]`
    AddFiles {
        /// The files; never empty.
        files: Vec<Spanned<FileDefinition>>,
        /// The filegroup of the files.
        filegroup: Option<Spanned<Identifier>>,
    },
    /// `ADD LOG FILE file, ...`
    AddLogFiles {
        /// The files; never empty.
        files: Vec<Spanned<FileDefinition>>,
    },
    /// Anything else, as written after the name of the database.
    Other {
        /// The text, verbatim, without the closing `;`.
        text: String,
    },
}

/// A database option of `ALTER DATABASE ... SET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseOption {
    /// `RECOVERY FULL | BULK_LOGGED | SIMPLE`
    Recovery(RecoveryModel),
    /// `TARGET_RECOVERY_TIME = n SECONDS | MINUTES`
    TargetRecoveryTime {
        /// The number.
        count: u32,
        unit: TimeUnit,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryModel {
    /// `FULL`
    Full,
    /// `BULK_LOGGED`
    BulkLogged,
    /// `SIMPLE`
    Simple,
}

/// The units of `TARGET_RECOVERY_TIME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// `SECONDS`
    Seconds,
    /// `MINUTES`
    Minutes,
}

/// `ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = ON|OFF [(ACCELERATOR = QAT [, MODE = SOFTWARE])]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterServerConfiguration {
    pub hardware_offload: Switch,
    /// The accelerator; required to turn it on.
    pub accelerator: Option<Accelerator>,
}

/// `(ACCELERATOR = QAT [, MODE = SOFTWARE])`: QAT is the only accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accelerator {
    /// Whether `MODE = SOFTWARE` forbids the hardware.
    pub mode: AcceleratorMode,
}

/// How an accelerator is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceleratorMode {
    /// No `MODE`: hardware when there is any, otherwise software.
    Automatic,
    /// `MODE = SOFTWARE`
    Software,
}
