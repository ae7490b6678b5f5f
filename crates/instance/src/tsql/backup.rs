//! BACKUP: from the statement to the options of a backup.

use windlass_base::message::table;
use windlass_tsql::ast::{BackupStatement, BackupTarget};

use crate::operation::database::refuse_log;
use crate::operation::{BackupOptions, LogChoice, backup};
use crate::tsql::option;
use crate::{Failure, Session, Sink};

pub(super) fn execute(
    session: &mut Session,
    statement: &BackupStatement,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let (name, files) = match &statement.target {
        BackupTarget::Database { name, files } => (name, files.as_slice()),
        BackupTarget::Log { name } => (name, [].as_slice()),
        BackupTarget::Group { .. } | BackupTarget::Server => {
            return Err(table::several_backups_not_supported().into());
        }
    };
    let is_log = matches!(statement.target, BackupTarget::Log { .. });
    let operation = BackupOptions {
        log: is_log.then(LogChoice::default),
        ..BackupOptions::default()
    }
    .operation();
    let name = option::name(&name.node, session)
        .map_err(|failure| failure.then(table::terminating_abnormally(operation)))?;
    if is_log && let Err(failure) = refuse_log(session, &name) {
        return Err(failure.then(table::terminating_abnormally(operation)));
    }
    let options = option::read_backup(statement, session)
        .map_err(|failure| backup::refused(session, &name, operation, failure))?;
    if !files.is_empty() {
        let refusal = table::file_backup_not_supported();
        let operation = options.operation();
        return Err(backup::refused(session, &name, operation, refusal.into()));
    }
    backup::run(session, &name, &options, sink)?.told()
}
