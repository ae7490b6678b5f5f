//! BACKUP: from the statement to the options of a backup.

use windlass_base::message::table;
use windlass_tsql::ast::{BackupStatement, BackupTarget};

use crate::operation::database::refuse_log;
use crate::operation::{BackupOptions, backup};
use crate::tsql::option;
use crate::{Failure, Session, Sink};

pub(super) fn execute(
    session: &mut Session,
    statement: &BackupStatement,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let (name, files) = match &statement.target {
        BackupTarget::Database { name, files } => (name, files),
        BackupTarget::Log { name } => {
            let name = option::name(&name.node, session)?;
            let refusal = refuse_log(session, &name);
            return Err(refusal.then(table::terminating_abnormally("BACKUP LOG")));
        }
        BackupTarget::Group { .. } | BackupTarget::Server => {
            return Err(table::several_backups_not_supported().into());
        }
    };
    let operation = BackupOptions::default().operation();
    let name = option::name(&name.node, session)
        .map_err(|failure| failure.then(table::terminating_abnormally(operation)))?;
    let options = option::read_backup(statement, session)
        .map_err(|failure| backup::refused(session, &name, operation, failure))?;
    if !files.is_empty() {
        let refusal = table::file_backup_not_supported();
        let operation = options.operation();
        return Err(backup::refused(session, &name, operation, refusal.into()));
    }
    backup::run(session, &name, &options, sink).map(drop)
}
