//! From errors of the crates below to numbered messages, cause first.
//!
//! One exhaustive match per crate's error type. Uses SQL Server's number where it has one for the
//! situation, otherwise a message that quotes the error's own text. With `?` an error becomes a
//! statement's [`Failure`].

mod engine;
mod media;
mod pipeline;
mod source;

pub(crate) use engine::engine_message;
pub(crate) use media::media_message;
use pipeline::pipeline_messages;
pub use pipeline::{damage_message, defect_message, loss_messages, set_not_found};
use source::{needed_base, source_message, source_messages};

use std::io::Read as _;
use std::path::Path;

use windlass_base::message::table;
use windlass_base::{Message, Severity, advice_to_unpack};
use windlass_catalog::Error as CatalogError;
use windlass_device::{Error as DeviceError, Operation};

use windlass_tsql::error::ParseError;

use crate::{Failure, NameError, is_url, near};

macro_rules! failures {
    ($($error:ty => $messages:expr;)*) => {
        $(
            impl From<&$error> for Failure {
                fn from(error: &$error) -> Self {
                    $messages(error).into()
                }
            }

            impl From<$error> for Failure {
                fn from(error: $error) -> Self {
                    Self::from(&error)
                }
            }
        )*
    };
}

failures! {
    CatalogError => catalog_message;
    NameError => name_message;
    ParseError => parse_message;
    rusqlite::Error => sqlite_message;
    windlass_crypt::Error => crypt_message;
    windlass_engine::EngineError => engine_message;
    windlass_pipeline::Error => pipeline_messages;
    windlass_source::Error => source_messages;
    windlass_sqlserver::Error => sql_server_messages;
}

/// The message for an error of the instance's catalog.
fn catalog_message(error: &CatalogError) -> Message {
    let what = match error {
        CatalogError::Folder { .. } | CatalogError::Open { .. } | CatalogError::Foreign { .. } => {
            "cannot be opened"
        }
        CatalogError::Version { .. } => "was created by a newer version of Windlass",
        CatalogError::NoFile { path, source } => {
            return unreadable_file(path, source);
        }
        CatalogError::NameTaken { name } => return table::database_exists(name),
        CatalogError::PathTaken { path, database } => {
            return table::file_used_by_database(path.display(), database);
        }
        CatalogError::Stored { .. } | CatalogError::Sqlite { .. } => "cannot be read or written",
    };
    table::instance_failed(what, error)
}

/// The message for a syntax error, with its hint and its column.
pub(crate) fn parse_message(error: &ParseError) -> Message {
    let mut text = error.text.clone();
    if let Some(hint) = &error.hint {
        text.push(' ');
        text.push_str(hint);
    }
    Message {
        number: error.number,
        severity: Severity(error.severity),
        state: error.state,
        line: error.line,
        procedure: None,
        text,
    }
}

/// The messages for a failed restore of a SQL Server backup. Only what was read can be damaged: a
/// problem with the target or with the request is not the backup's fault.
fn sql_server_messages(error: &windlass_sqlserver::Error) -> Vec<Message> {
    use windlass_bak::Error::{NotABackup, OtherSoftware};
    use windlass_sqlserver::Error;
    let note = || table::reason(error);
    match error {
        Error::Target { path, source } => {
            vec![unreadable_file(path, source)]
        }
        Error::File { path, source } => {
            vec![table::cannot_open_device(path.display(), os_error(source))]
        }
        Error::Exists(path) => vec![table::file_cannot_be_created(path.display())],
        Error::FamiliesMissing { missing, count, .. } => vec![stripes_missing(missing, *count)],
        Error::OtherBase { .. } => vec![table::wrong_differential_base(), note()],
        Error::NoDestination(_)
        | Error::SameDestination(_)
        | Error::NoSuchFile(_)
        | Error::NoSuchTable(_)
        | Error::LostTable { .. }
        | Error::Inexact { .. }
        | Error::Sequence { .. } => vec![note(), table::restore_plan_problems()],
        Error::Backup {
            path,
            source: source @ (NotABackup { .. } | OtherSoftware { .. }),
        } => vec![table::not_of_sql_server(path.display(), source)],
        Error::Backup { .. } | Error::Damaged { .. } | Error::Sqlite(_) => {
            vec![table::set_damaged(), note()]
        }
    }
}

/// Says which stripes of a SQL Server backup were not named.
pub(crate) fn stripes_missing(missing: &[u16], count: u16) -> Message {
    let provided = usize::from(count).saturating_sub(missing.len());
    let which = windlass_sqlserver::families_missing(missing, count);
    table::families_missing(count, provided).with_advice(Some(format!("Here {which}.")))
}

fn sqlite_message(error: &rusqlite::Error) -> Message {
    lock_not_granted(error).unwrap_or_else(|| table::sqlite_failed(error))
}

/// Says that another transaction was in the way: it held the lock for too long, or changed what this one has read.
pub(crate) fn lock_not_granted(error: &rusqlite::Error) -> Option<Message> {
    let found = error.sqlite_error()?;
    match found.extended_code {
        rusqlite::ffi::SQLITE_BUSY_SNAPSHOT => Some(table::update_conflict()),
        _ if found.code == rusqlite::ErrorCode::DatabaseBusy => Some(table::lock_timeout()),
        _ => None,
    }
}

/// The message for an error of `crypt`.
fn crypt_message(error: &windlass_crypt::Error) -> Message {
    match error {
        windlass_crypt::Error::Password { .. } => table::private_key_password_invalid(),
        error => table::encryption_failed(error),
    }
}

/// Why a name in a statement does not mean a file.
fn name_message(error: &NameError) -> Message {
    match error {
        NameError::Empty => table::zero_length_device(),
        NameError::DriveNotMapped { path, letter } => table::path_means_no_file(
            path,
            format!(
                "the drive {letter}: is not mapped to a folder. Map it with --drive \
                 {lower}=FOLDER, or permanently with EXEC sp_windlass_drive '{lower}', 'FOLDER'.",
                lower = letter.to_ascii_lowercase()
            ),
        ),
        NameError::NetworkShare { path } => table::path_means_no_file(
            path,
            "network shares are not opened by name. Mount the share and map a drive to its folder.",
        ),
        NameError::Url { path } => table::url_instead_of_file(path),
        NameError::ControlCharacter { path } => table::invalid_device_name(path),
        NameError::Outside { path } => table::path_outside(path),
        NameError::Open { path } => table::path_open_here(path),
    }
}

/// An operating system error as SQL Server quotes it: `2(No such file or directory.)`.
pub fn quoted_os_error(error: &std::io::Error) -> String {
    windlass_device::system_text(error)
}

/// The message for a file that the user has named and that cannot be opened.
pub fn unreadable_file(path: &Path, error: &std::io::Error) -> Message {
    table::cannot_open_file(path.display(), os_error(error)).with_advice(near::advice(path, error))
}

/// The message for a file that is no database.
pub fn not_a_database(path: &Path) -> Message {
    let mut begin = [0; 8];
    let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut begin));
    let begin = &begin[..read.unwrap_or(0)];
    let is_backup = begin.starts_with(b"TAPE") || begin == b"MSSQLBAK";
    let advice = match is_backup {
        true => Some("It begins as a backup does, which is restored first.".to_owned()),
        false => advice_to_unpack(begin),
    };
    table::not_a_database(path.display()).with_advice(advice)
}

/// A file and why it could not be opened, with what is there instead, for people.
pub fn file_and_reason(path: &Path, error: &std::io::Error) -> String {
    let advice = near::advice(path, error).map(|advice| format!(". {advice}"));
    format!("{}: {error}{}", path.display(), advice.unwrap_or_default())
}

/// The message for a volume, named by the folder of a file, that has no room for it.
pub(crate) fn no_space(path: &Path, needed_bytes: u64, available_bytes: u64) -> Message {
    let folder = windlass_io::directory::parent(path);
    table::insufficient_space(folder.display(), needed_bytes, available_bytes)
}

/// Why something could not be opened: the operating system's error, or another reason.
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

/// The state of 3201 for a device that could not be opened, unless a backup opens it.
const OPENED_TO_READ: u8 = 2;

/// What is there instead of a device that is a file.
fn near_device(name: &str, error: &std::io::Error) -> Option<String> {
    match is_url(name) {
        true => None,
        false => near::advice(Path::new(without_logical_name(name)), error),
    }
}

/// The path of `nightly(backup/app.bak)`, a file by its logical name.
fn without_logical_name(name: &str) -> &str {
    let named = name.strip_suffix(')').and_then(|name| name.split_once('('));
    let of_logical = named.filter(|(logical, path)| !logical.contains('/') && path.contains('/'));
    of_logical.map_or(name, |(_, path)| path)
}

/// The message for an error of a device.
fn device_message(error: &DeviceError) -> Message {
    let text = || quoted_os_error(&error.source);
    match error.operation {
        Operation::Open => table::cannot_open_device(&error.device, os_error(&error.source))
            .with_state(OPENED_TO_READ)
            .with_advice(near_device(&error.device, &error.source)),
        Operation::Read => table::device_read_failed(&error.device, text()),
        Operation::Write | Operation::Sync | Operation::Rename => {
            let is_full = error.source.kind() == std::io::ErrorKind::StorageFull;
            let advice = is_full.then_some("Free space there, or write to another disk.");
            table::device_write_failed(&error.device, text()).with_advice(advice)
        }
    }
}
