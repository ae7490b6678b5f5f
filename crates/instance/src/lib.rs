//! What an instance does, and the three languages in which to ask for it.
//!
//! | module | what |
//! |---|---|
//! | [`Instance`] | databases, drives, names; the catalog that stores them |
//! | [`operation`] | backup, restore, verification, inspection: typed options in, a report or a failure out |
//! | [`chain`] | which sets can be restored, from which others, and if not, why |
//! | [`provenance`] | which sets are of one database, and which of a copy |
//! | [`retention`] | which backups expire: policies that respect chains |
//! | [`standing`], [`presence`], [`verified`] | what can be restored now; whether its media still exist; what was found in them |
//! | [`damage`] | which databases are known to be damaged |
//! | [`watched`] | which databases count, and whose the failures are |
//! | [`login`], `confinement` | who a session is and what it may do; where a remote one may name files |
//! | [`overview`] | all of it against a recovery point objective: tables, charts, metrics |
//! | [`Session`] | the current database, variables, settings, what is open |
//! | [`tsql`] | T-SQL: statements to operations, and operations to text |
//! | [`sqlbackup`] | the dialect of SQL Backup Pro: commands to operations |
//! | [`agent`] | jobs, with the words of SQL Server Agent |
//! | `source`, `engine`, `query` | opens databases for reading; the page engine databases that are open; a session's SQLite connection |
//! | [`scratch`] | folders that go with the run that made them |
//! | `requests`, `event_log`, `keys` | what runs now; the log of statements; the instance's keys |
//! | `message_of/` | from errors of the crates below to numbered messages: one exhaustive match each |
//! | [`json`] | rows and messages as JSON |
//! | [`Sink`] | receives messages, rows, progress and reports in order |
//!
//! Neighbours: the command line (which creates options without a syntax tree) and future network front
//! ends above; `tsql` for syntax, `pipeline` for data movement, `catalog` for storage below.
//!
//! Invariants:
//! 1. Every option of the grammar has an effect, or is documented by SQL Server as having none, or is
//!    refused with a message. None is accepted and ignored.
//! 2. Errors of the crates below become messages here and nowhere else.
//! 3. Operations know no language: all three languages produce the same options.
#![forbid(unsafe_code)]

mod accelerator;
pub mod agent;
pub mod chain;
mod confinement;
pub mod damage;
mod data_type;
mod decimal;
mod engine;
mod event_log;
mod failure;
pub mod fleet;
pub mod followers;
mod fuzz;
mod generation;
mod headers;
mod identity;
mod import_export;
mod instance;
pub mod json;
mod keys;
mod layout;
pub mod login;
pub mod message_of;
mod names;
mod near;
pub mod operation;
mod outcome;
pub mod overview;
mod overwriting;
mod placed;
pub mod presence;
pub mod provenance;
mod query;
mod rehearsal;
mod requests;
pub mod retention;
pub mod scratch;
mod serving;
mod session;
mod session_settings;
mod session_values;
mod sessions;
mod source;
pub mod sqlbackup;
pub mod standing;
mod tag;
pub mod tsql;
mod value;
pub mod verified;
pub mod watched;

pub use accelerator::qat_deflate_software;
pub use data_type::{CONVERSION_LENGTH, DataType, IntegerType};
pub use decimal::Decimal;
pub use failure::{AfterFailure, Failure};
pub use fuzz::fuzz_flow;
pub use identity::{Identity, PRODUCT};
pub use import_export::{ImportReport, ImportRequest};
pub use instance::{
    BackupDefaults, Instance, InstanceShare, RestorePolicy, SYSTEM_DATABASES, Settings,
    is_system_database,
};
pub use keys::SERVICE_KEY_FILE;
pub use login::{LoginRefusal, Principal, Role, authenticate};
pub use names::{Drives, NameError, absolute, is_of_windows, logical_name};
pub use operation::{is_url, shown};
pub use outcome::{
    Collected, Column, ColumnType, Completed, Event, Progress, ResultSet, Silent, Sink,
};
pub use rehearsal::{Estimate, Rehearsal};
pub use serving::Elsewhere;
pub use session::{BatchEnd, Session};
pub use sessions::{Activity, Client, Listed, Sessions};
pub use tsql::environment::{Environment, Which};
pub use tsql::expression::{assign, convert};
pub use tsql::variables::Variables;
pub use value::Value;
