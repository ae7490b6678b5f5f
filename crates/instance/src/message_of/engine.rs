//! Errors of the page engine.

use windlass_base::message::table;
use windlass_base::{Message, PAGE_BYTES};
use windlass_engine::{EngineError, LogRefusal, LogReuseWait, PageRefusal, RecoveryModel};

use super::{defect_message, quoted_os_error, unreadable_file};

/// The message for an error of the page engine.
pub(crate) fn engine_message(error: &EngineError) -> Message {
    match error {
        EngineError::Io {
            operation: "read",
            path,
            source,
        } => table::nonrecoverable_io(path.display(), quoted_os_error(source)),
        EngineError::Io { path, source, .. } if is_locked(source) => {
            table::engine_refused(format!("'{}' is in use by another program", path.display()))
        }
        EngineError::Io { path, source, .. } | EngineError::BeingMade { path, source } => {
            unreadable_file(path, source)
        }
        EngineError::OtherDatabase(other) => table::files_of_another_database(
            &other.database,
            other.log.display(),
            &other.name,
            other.found,
            other.expected,
        ),
        EngineError::PageChecksum {
            file_page,
            path,
            expected,
            found,
            ..
        } => table::logical_consistency(
            format!("incorrect checksum (expected: 0x{expected:016x}; actual: 0x{found:016x})"),
            file_page,
            format!("0x{:x}", file_page.byte_offset(PAGE_BYTES)),
            path.display(),
        ),
        EngineError::LogFull { .. }
        | EngineError::NoLogChain { .. }
        | EngineError::LogRefused { .. } => log_message(error),
        EngineError::FileFull {
            database,
            file,
            reason,
        } => table::file_full(database, file, reason),
        EngineError::PageRefused { .. }
        | EngineError::PagesChanged { .. }
        | EngineError::NotTheBase { .. } => part_message(error),
        EngineError::FilesDiffer { path, why } => table::files_do_not_match(path.display(), why),
        EngineError::FileTooShort {
            path,
            found,
            expected,
        } => table::file_size_incorrect(path.display(), found, expected),
        EngineError::Panicked(panicked) => defect_message(panicked),
        EngineError::BackupRunning { .. } => table::must_be_serialized(),
        EngineError::ReadOnly { database } => table::database_read_only(database),
        EngineError::Busy { .. }
        | EngineError::BusySnapshot { .. }
        | EngineError::Offline { .. }
        | EngineError::OutcomeOpen { .. }
        | EngineError::InUse { .. }
        | EngineError::NoSuchPage { .. }
        | EngineError::Corrupt { .. }
        | EngineError::VersionsFull { .. }
        | EngineError::NoFreeBuffer { .. }
        | EngineError::Invalid(_) => table::engine_refused(error),
    }
}

/// The message for an error of a restore of pages or files.
fn part_message(error: &EngineError) -> Message {
    match error {
        EngineError::PageRefused {
            database,
            page,
            refusal,
        } => match refusal {
            PageRefusal::BeyondEnd => table::page_beyond_end(page),
            PageRefusal::InLog => table::control_page(page),
            PageRefusal::NotInSet => table::page_not_from_set(page),
            PageRefusal::Damaged { .. } => {
                table::restore_page_error(page.file_id, page.page, database)
            }
        },
        EngineError::PagesChanged { .. } => table::subset_in_simple_recovery(),
        EngineError::NotTheBase { .. } => table::other_recovery_path(),
        other => table::engine_refused(other),
    }
}

/// The message for an error of the log.
fn log_message(error: &EngineError) -> Message {
    match error {
        EngineError::LogFull {
            database,
            wait: wait @ (LogReuseWait::LogBackup | LogReuseWait::ActiveBackup),
            ..
        } => table::log_full(database, wait),
        EngineError::LogFull {
            database, reason, ..
        } => table::log_full(database, reason),
        EngineError::NoLogChain { model, .. } => match model {
            RecoveryModel::Simple => table::not_in_simple_recovery("BACKUP LOG"),
            RecoveryModel::Full => table::no_current_backup(),
        },
        EngineError::LogRefused { refusal, .. } => log_refused(*refusal),
        other => table::engine_refused(other),
    }
}

/// Why a log backup cannot be applied.
fn log_refused(refusal: LogRefusal) -> Message {
    match refusal {
        LogRefusal::TooRecent { first, reached } => table::log_too_recent(first, reached),
        LogRefusal::TooEarly { last, reached } => table::log_too_early(last, reached),
        LogRefusal::OtherFork | LogRefusal::Discontinuous { .. } => table::other_log_path(),
        LogRefusal::TimesContradict { later, earlier } => table::times_contradict(later, earlier),
        LogRefusal::StopPassed { .. } | LogRefusal::GoneFurther { .. } => table::stop_passed(),
    }
}

fn is_locked(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::WouldBlock
}
