//! What an instance remembers: its databases, its settings and the backup history of `msdb`.
//!
//! One SQLite file, `windlass.catalog`, in the instance's directory; a database in memory when there
//! is no instance. Neighbours: `instance` above gives the rows their meaning; nothing below.
//!
//! | file | what |
//! |---|---|
//! | [`Catalog`] | opening, a connection for readers |
//! | [`ShownTable`] | what scripts see of it |
//! | [`DatabaseRecord`] | the registered databases |
//! | [`BackupSetRecord`], [`RestoreRecord`] | the history tables, with SQL Server's columns |
//! | [`PastBackup`] | the history as it is read, with the media of each set; [`BackedUp`]: whose it is, and what differentials count from |
//! | [`FailureRecord`], [`Depth`] | backups that failed, sets that were read back |
//! | [`Drive`] | settings: folders that stand for drive letters |
//! | [`Configuration`] | server options: configured, installed and in use |
//! | [`CertificateRecord`], [`MasterKeyRecord`] | certificates, and private keys under the master key |
//! | [`BackupDevice`] | logical names of backup devices |
//!
//! Invariants:
//! 1. Several processes may use one catalog at once: every call is one short transaction, begun as a
//!    writer when it will write, and waits up to [`BUSY_SECONDS`] for others.
//! 2. A catalog of another version is refused, never guessed at.
//! 3. Scripts see its views (`sys.databases`, `msdb.dbo.backupset`) by a connection that can only read.
//!
//! Layout: `docs/format/catalog.md`.
#![forbid(unsafe_code)]

mod base;
mod catalog;
mod certificate;
mod configuration;
mod copy;
mod database;
mod device;
mod encryptor;
mod error;
mod history;
mod past;
mod record;
mod restore_history;
mod run;
mod schema;
mod setting;
mod shown;
mod value;

pub use catalog::{BUSY_SECONDS, Catalog, FILE_NAME};
pub use certificate::{CertificateRecord, MasterKeyRecord};
pub use configuration::{Configuration, ServerOption};
pub use copy::QueuedCopy;
pub use database::{
    Base, DatabaseRecord, DatabaseState, FIRST_USER_DATABASE_ID, FileRecord, Origin,
};
pub use device::BackupDevice;
pub use error::Error;
pub use past::{Forgotten, PastBackup, PastMedium};
pub use record::{
    BackedUp, BackupFileRecord, BackupRecord, BackupSetRecord, EncryptionRecord, FamilyRecord,
    MediaSetRecord,
};
pub use restore_history::{RestoreFileRecord, RestoreRecord, RestoreType};
pub use run::{Depth, FailureRecord, Failures, Verified};
pub use setting::Drive;
pub use shown::{ShownColumn, ShownTable, shown_tables};
