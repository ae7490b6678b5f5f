//! Errors of reading and restoring databases.

use std::path::Path;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_io::other_name::OtherName;
use windlass_source::sqlite::SpoolError;
use windlass_source::{Alias, Error};

use super::{engine_message, no_space, quoted_os_error, unreadable_file};

/// The messages for an error of a database.
pub(super) fn source_messages(error: &Error) -> Vec<Message> {
    let mut messages = vec![source_message(error)];
    messages.extend(needed_base(error));
    messages
}

/// Which base a differential needs, and which set is there.
pub(super) fn needed_base(error: &Error) -> Option<Message> {
    match error {
        Error::WrongBase {
            found, expected, ..
        } => Some(table::needed_base(expected, found)),
        _ => None,
    }
}

/// The message for an error of a database.
pub(super) fn source_message(error: &Error) -> Message {
    match error {
        Error::NotFound { path } => {
            let missing = std::io::Error::from_raw_os_error(NO_SUCH_FILE);
            unreadable_file(path, &missing)
        }
        Error::NotAFile { path } => table::cannot_open_file(path.display(), "It is not a file"),
        Error::Io {
            action: "read",
            path,
            source,
        } => table::nonrecoverable_io(path.display(), quoted_os_error(source)),
        Error::Io { path, source, .. } => unreadable_file(path, source),
        Error::Sqlite {
            action,
            path,
            source,
        } => table::not_a_sqlite_database(
            path.display(),
            format!("SQLite cannot {action} it: {source}."),
        ),
        Error::Busy { path, waited } => table::not_a_sqlite_database(
            path.display(),
            format!(
                "another program has locked it for {} seconds. Try again when its transaction has \
                 ended, or wait longer (--lock-timeout, SET LOCK_TIMEOUT).",
                waited.as_secs_f64()
            ),
        ),
        Error::Emptied { path, .. } => table::not_a_sqlite_database(
            path.display(),
            format!(
                "{error}. If the database was emptied by mistake, restore it first; if the file \
                 next to it belongs to another database, move it away."
            ),
        ),
        Error::OverwrittenUnderLog { log, page } => {
            table::overwritten_under_log(log.display(), page)
        }
        Error::WalNotAccessible { path, .. } | Error::ChangedUnlocked { path } => {
            table::not_a_sqlite_database(path.display(), format!("{error}. {WAYS_OUT}"))
        }
        Error::Aliased { path, alias } => table::not_a_sqlite_database(
            path.display(),
            format!("{error}. {}", way_to_the_log(*alias)),
        ),
        other => restore_message(other),
    }
}

/// How to back up a database by the name that has its log.
fn way_to_the_log(alias: Alias) -> &'static str {
    match alias {
        Alias::Name(OtherName::Mount) => {
            "Mount the folder of the database instead of the file, or run the backup where the \
             database lies. If no program uses it and neither a -wal nor a -journal lies beside its \
             original name, use --frozen."
        }
        Alias::Name(OtherName::Layer) => {
            "Name the database by the folder in which the overlay is mounted (docker: \
             .../merged/...), or run the backup in the container. If no program uses it, use --frozen."
        }
        Alias::Name(OtherName::Links(_)) => {
            "Remove the other names (find them with find -samefile), and keep the one that the \
             programs use. If no program uses the database and neither a -wal nor a -journal lies \
             beside any of its names, use --frozen."
        }
        Alias::Open => {
            "Was it renamed, moved, or its -shm removed while in use? Back up the name that the \
             program uses, or close that program first; its last commits may be in a -wal beside \
             the old name. Another backup that cannot write to the folder also looks like this: \
             then try again when it has ended."
        }
    }
}

const DIFFERENTIAL_INTERRUPTED: &str =
    "A differential was interrupted while being applied. Start again with the full backup.";

const LOG_INTERRUPTED: &str = "A log backup was interrupted while being applied. Apply it again, or start again with \
                               the full backup.";

/// The message for a complete restore whose target is still open.
fn still_in_use(path: &Path, process_id: Option<u32>) -> Message {
    let user = process_id.map_or_else(
        || "Somebody".to_owned(),
        |process_id| format!("Process {process_id}"),
    );
    table::sequence_unfinished(
        path.display(),
        format!(
            "{user} still has the old database open. The restored file is complete next to it: close \
             the programs that use it, then run RESTORE DATABASE ... WITH RECOVERY, or windlass \
             restore --to without media."
        ),
    )
}

/// The message for an error of a follower's spool.
fn spool_message(error: &SpoolError) -> Message {
    match error {
        SpoolError::NotCaptured { .. } => table::not_captured(error),
        SpoolError::OtherHistory => table::other_log_path(),
        SpoolError::TooRecent { first, needed } => table::log_too_recent(first, needed),
        SpoolError::TooEarly { last, needed } => table::log_too_early(last, needed),
        _ => table::spool_failed(error),
    }
}

/// The message for an error of a restore.
fn restore_message(error: &Error) -> Message {
    match error {
        Error::TargetExists { path } => {
            table::file_exists(path.display(), path.display(), table::WITH_REPLACE)
        }
        Error::InUse { .. } => table::exclusive_access(),
        Error::NotReplaceable { path, found } => table::cannot_open_file(
            path.display(),
            format!(
                "A restore cannot replace it: it {found}. {}",
                way_to_replace(*found)
            ),
        ),
        Error::RestoreRunning { path } => table::restoring_over_restore(
            path.display(),
            "Wait for it to end. If its program was killed, try again.",
        ),
        Error::NoSpace {
            path,
            needed_bytes,
            available_bytes,
        } => no_space(path, *needed_bytes, *available_bytes),
        Error::StillInUse {
            path, process_id, ..
        } => still_in_use(path, *process_id),
        Error::NotADatabase { path, defect } => table::restored_no_database(path.display(), defect),
        Error::LessProtected { base, found, .. } => table::less_protected(base, found),
        // A restore knows of which database it is.
        Error::StandbyLost { path, why } => table::standby_lost("", 0, path.display(), why),
        Error::StandbyExists { path } => table::standby_file_exists(path.display()),
        Error::NotRestoring { .. } => table::not_ready_to_rollforward(),
        Error::WrongBase { .. } => table::wrong_differential_base(),
        Error::RestoreInterrupted { path } => {
            table::restoring_over_restore(path.display(), DIFFERENTIAL_INTERRUPTED)
        }
        Error::RollInterrupted { path } => {
            table::restoring_over_restore(path.display(), LOG_INTERRUPTED)
        }
        Error::NoLog { .. } => table::not_in_simple_recovery("BACKUP LOG"),
        Error::StateOfOtherPlace { path, other } => {
            table::restore_was_copied(path.display(), other.display())
        }
        Error::StateUnreadable { path, source } => table::restoring_over_restore(
            path.display(),
            format!("Its state cannot be read ({source}). Start again with the full backup."),
        ),
        Error::WrongLength { .. } => table::set_damaged(),
        Error::OutOfRange { .. } => table::internal_consistency(),
        Error::Unchecked { .. } => table::not_a_sqlite_database("", format!("{error}.")),
        // Errors of reading a database have their messages above.
        Error::OverwrittenUnderLog { log, .. } => {
            table::not_a_sqlite_database(log.display(), format!("{error}."))
        }
        Error::NotFound { path }
        | Error::NotAFile { path }
        | Error::Io { path, .. }
        | Error::Sqlite { path, .. }
        | Error::Busy { path, .. }
        | Error::Emptied { path, .. }
        | Error::WalNotAccessible { path, .. }
        | Error::Aliased { path, .. }
        | Error::ChangedUnlocked { path }
        | Error::HotJournal { path, .. }
        | Error::WalDamaged { path, .. }
        | Error::ChangedWhileReading { path } => {
            table::not_a_sqlite_database(path.display(), format!("{error}."))
        }
        Error::Cancelled => table::aborted(),
        Error::Engine(error) => engine_message(error),
        Error::Spool(error) => spool_message(error),
    }
}

/// How to restore to a file that a rename does not replace.
fn way_to_replace(found: OtherName) -> &'static str {
    match found {
        OtherName::Mount => "Mount its folder instead of the file, or restore to another file.",
        OtherName::Layer => {
            "Name the file by the folder in which the overlay is mounted, or restore to another file."
        }
        OtherName::Links(_) => {
            "The other names would keep the old content. Remove this name or the others first, or \
             restore to another file."
        }
    }
}

/// What to do if the backup cannot lock a database's write-ahead log.
const WAYS_OUT: &str = "Give the backup write access to the folder of the database (mount it \
                        writable, run as its owner), or run it on the machine of the writers; or \
                        stop the writers and use --frozen.";

/// `ENOENT`, which is the same number on every Unix.
const NO_SUCH_FILE: i32 = 2;
