//! Databases of the page engine: copied while their files change, together with the log that makes
//! the copy consistent; restored next to their targets.
//!
//! File numbers are SQL Server's: the first data file is 1, the log 2, further data files 3 and up.
//!
//! A restore writes every file under its name with `.windlass-restoring` appended. It collects the log of
//! the backup under the log's name with `.windlass-redo` appended, because chunks come in any order, but
//! log records must be applied in order; the log is applied when it is complete. Only then are files renamed, the log last: without
//! a log no engine opens data files, so no crash leaves an incomplete database that can be opened. If a
//! crash leaves only some files renamed, the next program that opens or restores the database completes
//! the renames.
//!
//! A log backup is collected in the same way. It is applied to the data files once all of it has been seen.
//!
//! With NORECOVERY the restored data files stay under their temporary names, with a state file that
//! describes them. With STANDBY they are read there until the next restore, see `standby`. A backup of the tail of the log
//! WITH STANDBY makes a database wait in the same way, see `tail`.

mod content;
mod ending;
mod file_roll;
mod files;
mod gone;
mod log_snapshot;
mod log_verify;
mod pages;
mod pending;
mod restore;
mod roll_forward;
mod room;
mod snapshot;
mod standby;
mod tail;

use std::path::{Path, PathBuf};

use windlass_engine::{BackupDescription, EngineError};

pub use content::content;
pub use ending::complete;
pub use file_roll::{
    FilesBegin, FilesLog, FilesRestored, end_waiting_files, forget_waiting_files, waiting_files,
};
pub use files::FilesTarget;
pub use gone::{Removal, Removed};
pub use log_snapshot::EngineLogSnapshot;
pub use log_verify::LogVerification;
pub use pages::{forget_pages, keep_pages, waiting_pages};
pub use pending::{PendingRestore, forget, pending};
pub use restore::{EngineBase, EngineRestoreRequest, EngineTarget, PlacedFile, recover};
pub use roll_forward::{EngineLogTarget, Rolled};
pub use snapshot::EngineSnapshot;
pub use standby::{check_standby, end_stand_by, stand_by, standby_file};
pub use tail::{SavedTail, wait_at_tail};
pub use windlass_engine::{LogRefusal, StopAt, WantedMark};

use crate::Error;

/// How the first page of a SQLite database begins.
const FIRST_BYTES: &[u8; 16] = b"SQLite format 3\0";

const LOG_FILE_ID: u16 = windlass_base::FileId::LOG.0;

/// The end of the name of a file until the restore is complete.
const STAGED: &str = ".windlass-restoring";

/// The path of a file until the restore is complete.
fn staged(path: &Path) -> PathBuf {
    with_suffix(path, STAGED)
}

/// The path at which the log of the backup is collected.
fn collected_log(log: &Path) -> PathBuf {
    with_suffix(log, ".windlass-redo")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn io_error(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

fn engine_error(error: EngineError) -> Error {
    Error::Engine(error)
}

/// Reads the description of the database in a backup set.
///
/// # Errors
/// If it is damaged, or does not describe a page engine database.
pub fn describe(bytes: &[u8]) -> Result<BackupDescription, Error> {
    BackupDescription::decode(bytes).map_err(engine_error)
}
