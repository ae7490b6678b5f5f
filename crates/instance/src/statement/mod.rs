//! Each statement's meaning, one file per statement.

mod asked;
pub mod backup;
mod backup_media;
mod base;
pub(crate) mod database;
mod device_list;
pub(crate) mod engine;
mod file_list_only;
mod header_only;
mod history;
mod integrity;
mod label_only;
mod media_rows;
pub mod newest;
mod observer;
mod page_list;
mod placing;
mod procedure;
pub(crate) mod query;
mod reading;
mod recovery;
mod rehearse;
pub mod restore;
mod restore_engine;
mod restore_files;
mod restore_pages;
mod script;
mod security;
mod server;
mod signing;
mod space;
mod sql_server;
mod timing;
mod trace;
pub mod verify_only;
mod writers;

use windlass_base::message::table;
use windlass_tsql::ast::{Dbcc, RestoreAction, Statement};

use crate::{Failure, Session, Sink};

/// Executes one statement.
pub(crate) fn execute(
    session: &mut Session,
    statement: &Statement,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    match statement {
        Statement::Backup(backup) => backup::execute(session, backup, sink),
        Statement::Restore(restore) => match &restore.action {
            RestoreAction::Database { name, files } => {
                restore::execute(session, restore, name, files, sink)
            }
            RestoreAction::Log { .. } => Err(Failure::from(restore::log_refused())),
            RestoreAction::HeaderOnly => header_only::execute(session, restore, sink),
            RestoreAction::FileListOnly => file_list_only::execute(session, restore, sink),
            RestoreAction::LabelOnly => label_only::execute(session, restore, sink),
            RestoreAction::VerifyOnly => verify_only::execute(session, restore, sink),
            RestoreAction::RewindOnly => Err(table::rewind_only_tape().into()),
        },
        Statement::CreateDatabase(create) => database::create(session, create, sink),
        Statement::DropDatabase(drop) => database::drop(session, drop, sink),
        Statement::Use(name) => database::use_database(session, &name.text, sink),
        Statement::Declare(declarations) => script::declare(session, declarations),
        Statement::SetVariable(set) => script::set_variable(session, set),
        Statement::SetOption(set) => script::set_option(session, set),
        Statement::Print(expression) => script::print(session, expression, sink),
        Statement::WaitForDelay(delay) => script::wait_for(session, delay),
        Statement::Transaction(transaction) => script::transaction(session, transaction),
        Statement::Execute(execute) => procedure::execute(session, execute, sink),
        Statement::Sql(sql) => query::execute(session, sql, sink),
        Statement::CreateMasterKey { password } => security::create_master_key(session, password),
        Statement::DropMasterKey => security::drop_master_key(session),
        Statement::CreateCertificate(create) => security::create(session, create),
        Statement::BackupCertificate(backup) => security::back_up(session, backup),
        Statement::DropCertificate(name) => security::drop(session, &name.node.text),
        Statement::Reconfigure(reconfigure) => server::reconfigure(session, *reconfigure, sink),
        Statement::AlterServerConfiguration(alter) => server::alter(session, alter, sink),
        Statement::Dbcc(dbcc @ Dbcc::CheckDatabase { .. }) => {
            integrity::check_database(session, dbcc, sink)
        }
        Statement::Dbcc(dbcc) => trace::execute(session, dbcc, sink),
        Statement::AlterDatabase(alter) => engine::alter(session, alter),
        Statement::Checkpoint { duration_seconds } => {
            engine::checkpoint(session, duration_seconds.as_ref(), sink)
        }
    }
}
