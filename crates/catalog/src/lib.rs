//! The persistent data of an instance: its databases, its settings and the backup history of
//! `msdb`.
//!
//! One SQLite file, `windlass.catalog`, in the instance's directory; without an instance, a database in
//! memory. Neighbours: `instance` above interprets the rows; nothing below.
//!
//! | type | what |
//! |---|---|
//! | [`Catalog`] | opening, a connection for readers |
//! | [`ShownTable`] | what scripts can read |
//! | [`DatabaseRecord`] | the registered databases |
//! | [`BackupRecord`], [`RestoreRecord`] | the history tables, with SQL Server's columns |
//! | [`PastBackup`] | the history for readers, with the media of each set; [`BackedUp`]: the database of a backup, and the base of its differentials |
//! | [`Provenance`] | which backups are of one database |
//! | [`EarlierBackups`] | what a new backup must not seem older than |
//! | [`FailureRecord`], [`Depth`] | failed backups, verified sets |
//! | [`DrillRecord`] | the ledger of restores that were made as proofs |
//! | [`KnownDamage`] | the databases that are known to be damaged |
//! | [`Drive`] | settings: folders mapped to drive letters, folders for restores, folders of remote sessions |
//! | [`LoginRecord`] | logins, and their server roles |
//! | [`Configuration`] | server options: configured, installed and in use |
//! | [`CertificateRecord`], [`MasterKeyRecord`] | certificates, and private keys sealed with the master key |
//! | [`CredentialRecord`] | keys of object storage, sealed with the service key |
//! | [`StoredProcedure`] | procedures, kept for each database name |
//! | [`BackupDevice`] | logical names of backup devices |
//! | [`AgentTables`] | jobs, their schedules and their history |
//! | [`QueuedCopy`] | the queue of copies to other folders |
//!
//! Invariants:
//! 1. Several processes may use one catalog at once: every call is one short transaction, started
//!    as a writer if it will write, and waits up to [`BUSY_SECONDS`] for others.
//! 2. A catalog of an older version gets what it lacks when it is opened; one of a newer version is refused.
//! 3. Scripts see its views (`sys.databases`, `msdb.dbo.backupset`) through a read-only connection.
//!
//! Layout: `docs/format/catalog.md`.
#![forbid(unsafe_code)]

mod agent;
mod base;
mod catalog;
mod certificate;
mod configuration;
mod copy;
mod credential;
mod damage;
mod database;
mod device;
mod drill;
mod earlier;
mod encryptor;
mod error;
mod forget;
mod history;
mod home;
mod login;
mod mark;
mod past;
mod procedure;
pub mod provenance;
mod record;
mod restore_history;
mod run;
mod schema;
mod setting;
mod shown;
mod value;

pub use agent::{
    ActivityRecord, AgentTables, CategoryRecord, HistoryLimits, HistoryPurge, HistoryRecord,
    JobRecord, JobScheduleRecord, RequestRecord, ScheduleRecord, ServerRecord, StepRecord,
};
pub use catalog::{BUSY_SECONDS, Catalog, FILE_NAME};
pub use certificate::{CertificateRecord, MasterKeyRecord};
pub use configuration::{Configuration, ServerOption};
pub use copy::QueuedCopy;
pub use credential::CredentialRecord;
pub use damage::{DamageRecord, DamageSource, EndedDamage, KnownDamage};
pub use database::{
    Base, DatabaseRecord, DatabaseState, FIRST_USER_DATABASE_ID, FileRecord, Origin,
};
pub use device::BackupDevice;
pub use drill::DrillRecord;
pub use earlier::EarlierBackups;
pub use error::Error;
pub use forget::Forgotten;
pub use login::{LoginChange, LoginRecord, NewLogin};
pub use mark::MarkRecord;
pub use past::{PastBackup, PastMedium};
pub use procedure::{Existing, ProcedureText, StoredProcedure};
pub use provenance::Provenance;
pub use record::{BackedUp, BackupRecord, FamilyRecord, MediaSetRecord, NamedValues};
pub use restore_history::{RestoreFileRecord, RestoreRecord, RestoreType};
pub use run::{Depth, FailureRecord, Failures, Verification, VerificationRecord};
pub use setting::Drive;
pub use shown::{ShownColumn, ShownTable, shown_tables};
pub use value::StoredValue;
