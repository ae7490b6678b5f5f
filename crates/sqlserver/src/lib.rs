//! Backups of SQL Server on disk: opened, restored to their data files, their tables written out.
//!
//! `windlass-bak` knows the bytes; this crate opens files, writes files, and nothing more.
//!
//! - [`FileInput`]: a backup file, or standard input.
//! - [`Source`], [`extract`]: the tables of backups or data files become a SQLite file or CSV.
//! - [`restore`]: a full backup and its differentials become data files.
//!
//! Invariants:
//! 1. No path that stands in a backup is ever written to: files go where the caller says.
//! 2. What is written appears whole or not at all, by a rename after the last sync.
#![forbid(unsafe_code)]

mod csv;
mod error;
mod extract;
mod input;
mod restore;
mod source;
mod sqlite;
mod target;

pub use error::Error;
pub use extract::{Extracted, ExtractedTable, Format, extract};
pub use input::{FileInput, is_sql_server};
pub use restore::{Destination, Restored, RestoredFile, Step, restore};
pub use source::{Source, steps};
