//! From errors of the crates below to numbered messages, cause first.
//!
//! One match per crate's error; SQL Server's number where it has one for the situation. The crates'
//! enums may grow, so each match ends in a message that quotes the error's own text: never silent,
//! never a wrong number.

mod engine;
mod media;
mod pipeline;
mod source;

pub use engine::engine_message;
pub use media::media_message;
pub use pipeline::{
    damage_message, defect_message, loss_messages, pipeline_messages, set_not_found,
};
pub use source::source_message;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_catalog::Error as CatalogError;
use windlass_device::{Error as DeviceError, Operation};

use crate::{Failure, NameError};

/// The failure of the instance's catalog.
pub fn catalog_message(error: &CatalogError) -> Failure {
    let what = match error {
        CatalogError::Folder { .. } | CatalogError::Open { .. } => "cannot be opened",
        CatalogError::Version { .. } => "was made by a newer program",
        CatalogError::NameTaken { name } => return table::database_exists(name).into(),
        CatalogError::PathTaken { path, database } => {
            return table::file_used_by_database(path.display(), database).into();
        }
        _ => "cannot be read or written",
    };
    table::instance_failed(what, error).into()
}

/// What SQLite says.
pub fn sqlite_message(error: &rusqlite::Error) -> Message {
    table::sqlite_failed(error)
}

/// Why a name in a statement is not a file.
pub fn name_message(error: &NameError) -> Message {
    match error {
        NameError::Empty => table::zero_length_device(),
        NameError::DriveNotMapped { path, letter } => table::path_means_no_file(
            path,
            format!(
                "the drive {letter}: stands for no folder. Map it with --drive {lower}=FOLDER, or for \
                 good with EXEC sp_windlass_drive '{lower}', 'FOLDER'.",
                lower = letter.to_ascii_lowercase()
            ),
        ),
        NameError::NetworkShare { path } => table::path_means_no_file(
            path,
            "network shares are not opened by name. Mount the share and map a drive to its folder.",
        ),
        NameError::ControlCharacter { path } => table::invalid_device_name(path),
    }
}

/// An operating system error the way SQL Server quotes it: `2(No such file or directory.)`.
pub fn quoted_os_error(error: &std::io::Error) -> String {
    windlass_device::system_text(error)
}

/// Why something could not be opened: what the operating system says, or a reason of our own.
pub fn os_error(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(_) => format!("Operating system error {}", quoted_os_error(error)),
        None => capitalized(&error.to_string()),
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// What a device says. `state` is 1 for backups and 2 for restores.
pub fn device_message(error: &DeviceError, state: u8) -> Message {
    let text = || quoted_os_error(&error.source);
    match error.operation {
        Operation::Open => {
            table::cannot_open_device(&error.device, os_error(&error.source)).with_state(state)
        }
        Operation::Read => table::device_read_failed(&error.device, text()),
        Operation::Write | Operation::Sync | Operation::Rename => {
            table::device_write_failed(&error.device, text())
        }
    }
}
