//! What statements mean: sessions that execute T-SQL on an instance's databases.
//!
//! | module | what |
//! |---|---|
//! | [`Instance`] | databases, drives, names; the catalog behind them |
//! | [`Session`] | batches, variables, the current database |
//! | `statement/` | one file per statement: from syntax tree to typed request to what happens |
//! | `option/` | from options as written to typed requests: conflicts, ranges, defaults |
//! | `message_of/` | from errors of the crates below to numbered messages: one exhaustive match each |
//! | [`expression`](evaluate), [`Value`] | scalar expressions |
//! | [`retention`] | which backups go: policies that know chains |
//! | [`sqlbackup`] | the dialect of SQL Backup Pro |
//! | [`Sink`] | receives messages, rows, progress and reports in order |
//!
//! Neighbours: the command line and later network front ends above; `tsql` for syntax, `pipeline` for
//! movement, `catalog` for memory below. Plain commands build the same syntax trees as scripts, so
//! both ways of speaking run through the same code.
//!
//! Invariants:
//! 1. Every option of the grammar acts, or is documented by SQL Server as having no effect, or is
//!    refused with a message. None is accepted and ignored.
//! 2. Errors become messages here and nowhere else.
#![forbid(unsafe_code)]

mod accelerator;
pub mod chain;
mod data_type;
mod decimal;
mod engine;
mod event_log;
mod expression;
mod failure;
mod identity;
mod import_export;
mod instance;
mod keys;
pub mod message_of;
mod names;
mod option;
mod outcome;
mod overwriting;
pub mod presence;
mod query;
mod rehearsal;
mod requests;
pub mod retention;
mod session;
mod source;
pub mod sqlbackup;
pub mod standing;
pub mod statement;
mod tag;
mod value;
mod variables;

pub use data_type::{CONVERSION_LENGTH, DataType, IntegerType};
pub use decimal::Decimal;
pub use expression::{Environment, Which, assign, convert, evaluate};
pub use failure::{AfterFailure, Failure};
pub use identity::{Identity, PRODUCT};
pub use import_export::{ImportReport, ImportRequest};
pub use instance::{BackupDefaults, Instance, RestorePolicy, SYSTEM_DATABASES, is_system_database};
pub use keys::SERVICE_KEY_FILE;
pub use names::{Drives, NameError, absolute, logical_name};
pub use outcome::{Collected, Column, ColumnType, Completed, Event, Progress, ResultSet, Sink};
pub use rehearsal::{Estimate, Rehearsal};
pub use session::{BatchEnd, Session};
pub use value::Value;
pub use variables::Variables;
