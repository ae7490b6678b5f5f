//! SQL Server backups: opens them, restores them to data files, and extracts their tables.
//!
//! `windlass-bak` decodes the bytes; this crate only opens and writes files.
//!
//! - [`BackupInput`]: a backup in a file, on standard input, or in an object of a store.
//! - [`Source`], [`extract`]: write the tables of backups or data files to a SQLite file, CSV or Parquet.
//! - [`BackupFiles`], [`Unpacking`]: what Windlass media are made from, and made into again.
//! - [`restore`]: restores a full backup and its differentials to data files.
//! - [`OfflineSnapshot`], [`OfflineTarget`]: the files of a restored database, to Windlass media and back.
//! - [`Continuation`]: applies differentials to data files that were restored before.
//!
//! Invariants:
//! 1. Paths in a backup are never written to: the caller decides where files go.
//! 2. Output appears completely or not at all: it is renamed after the last sync.
#![forbid(unsafe_code)]

mod continuation;
mod csv;
mod ending;
mod error;
mod extract;
mod input;
mod offline;
mod parquet;
mod repack;
mod restore;
mod source;
mod sqlite;
mod summing;
mod table_folder;
mod target;
mod unpack;

pub use continuation::Continuation;
pub use ending::complete;
pub use error::{Error, families_missing};
pub use extract::{Extracted, ExtractedTable, Format, extract, extract_within};
pub use input::{BackupInput, is_sql_server};
pub use offline::{OfflineFile, OfflineSnapshot, OfflineTarget};
pub use repack::{BackupFiles, SetSnapshot};
pub use restore::{Destination, Restored, RestoredBase, RestoredFile, Step, places, restore};
pub use source::{Source, backup_type, is_data_file, sets_in, steps, steps_after};
pub use target::safe_name as safe_file_name;
pub use unpack::{Unpacking, unpacked_files};
