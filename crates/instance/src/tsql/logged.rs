//! How statements appear in the log: without their text and without the values of options, see
//! [`event_log`](crate::event_log).

use windlass_tsql::ast::{
    BackupStatement, BackupTarget, Device, Name, RestoreAction, RestoreSource, RestoreStatement,
    Statement, Value as Written,
};
use windlass_tsql::span::Spanned;

use crate::event_log::Entry;

/// Logs the start of a statement.
pub(crate) fn begin(statement: &Statement) -> Entry {
    match statement {
        Statement::Backup(backup) => of_backup(backup),
        Statement::Restore(restore) => of_restore(restore),
        other => described(other).begin(),
    }
}

fn of_backup(backup: &BackupStatement) -> Entry {
    let (kind, database) = match &backup.target {
        BackupTarget::Database { name, .. } => ("BACKUP DATABASE", written(&name.node)),
        BackupTarget::Log { name } => ("BACKUP LOG", written(&name.node)),
        BackupTarget::Group { .. } => ("BACKUP GROUP", String::new()),
        BackupTarget::Server => ("BACKUP SERVER", String::new()),
    };
    let mirrored = backup.mirrors.iter().flatten();
    let devices = paths(backup.devices.iter().chain(mirrored));
    Entry::of_movement(kind, database, devices)
}

/// A restore, or a statement that reads media.
fn of_restore(restore: &RestoreStatement) -> Entry {
    let (kind, database) = match &restore.action {
        RestoreAction::Database { name, .. } => ("RESTORE DATABASE", written(&name.node)),
        RestoreAction::Log { name, .. } => ("RESTORE LOG", written(&name.node)),
        RestoreAction::HeaderOnly => ("RESTORE HEADERONLY", String::new()),
        RestoreAction::FileListOnly => ("RESTORE FILELISTONLY", String::new()),
        RestoreAction::LabelOnly => ("RESTORE LABELONLY", String::new()),
        RestoreAction::VerifyOnly => ("RESTORE VERIFYONLY", String::new()),
        RestoreAction::RewindOnly => ("RESTORE REWINDONLY", String::new()),
    };
    let devices = match &restore.source {
        RestoreSource::Devices(devices) => paths(devices.iter()),
        RestoreSource::None | RestoreSource::DatabaseSnapshot(_) => String::new(),
    };
    Entry::of_movement(kind, database, devices)
}

/// A statement that moves no data.
fn described(statement: &Statement) -> Entry {
    let quiet = |kind| Entry::new(kind).quiet();
    match statement {
        Statement::CreateDatabase(create) => {
            Entry::new("CREATE DATABASE").on(create.name.node.text.clone())
        }
        Statement::DropDatabase(drop) => {
            let names = drop.names.iter().map(|name| name.node.text.as_str());
            Entry::new("DROP DATABASE").on(names.collect::<Vec<_>>().join(", "))
        }
        Statement::AlterDatabase(_) => Entry::new("ALTER DATABASE"),
        Statement::CreateMasterKey { .. } => Entry::new("CREATE MASTER KEY"),
        Statement::DropMasterKey => Entry::new("DROP MASTER KEY"),
        Statement::CreateCertificate(create) => {
            Entry::new("CREATE CERTIFICATE").named(create.name.node.text.clone())
        }
        Statement::BackupCertificate(_) => Entry::new("BACKUP CERTIFICATE"),
        Statement::DropCertificate(name) => {
            Entry::new("DROP CERTIFICATE").named(name.node.text.clone())
        }
        Statement::SetCredential(set) => of_credential(set.statement(), &set.name.node.text),
        Statement::DropCredential(name) => of_credential("DROP CREDENTIAL", &name.node.text),
        Statement::CreateLogin(create) => {
            Entry::new("CREATE LOGIN").named(create.name.node.text.clone())
        }
        Statement::AlterLogin(alter) => {
            Entry::new("ALTER LOGIN").named(alter.name.node.text.clone())
        }
        Statement::DropLogin(name) => Entry::new("DROP LOGIN").named(name.node.text.clone()),
        Statement::AlterServerRole(alter) => {
            let (role, member) = (&alter.role.node.text, &alter.member.node.text);
            Entry::new("ALTER SERVER ROLE").named(format!("{role}, {member}"))
        }
        Statement::AlterServerConfiguration(_) => Entry::new("ALTER SERVER CONFIGURATION"),
        Statement::Execute(execute) => {
            Entry::new("EXECUTE").named(execute.procedure.node.object.text.clone())
        }
        Statement::Reconfigure(_) => Entry::new("RECONFIGURE"),
        Statement::Dbcc(_) => Entry::new("DBCC"),
        Statement::Checkpoint { .. } => Entry::new("CHECKPOINT"),
        Statement::Kill { .. } => Entry::new("KILL"),
        Statement::Use(name) => quiet("USE").on(name.text.clone()),
        Statement::Declare(_) | Statement::DeclareTable { .. } => quiet("DECLARE"),
        Statement::ExecuteText(_) => Entry::new("EXECUTE"),
        Statement::Cursor(_) => quiet("CURSOR"),
        Statement::DefineProcedure(procedure) => {
            Entry::new("CREATE PROCEDURE").named(procedure.name.node.object.text.clone())
        }
        Statement::DropProcedure(drop) => {
            let names = drop.names.iter().map(|name| name.node.object.text.as_str());
            Entry::new("DROP PROCEDURE").named(names.collect::<Vec<_>>().join(", "))
        }
        Statement::Throw(_) => quiet("THROW"),
        Statement::RaiseError(_) => quiet("RAISERROR"),
        control_flow!() => quiet("FLOW"),
        Statement::SetVariable(_) | Statement::SetOption(_) => quiet("SET"),
        Statement::Print(_) => quiet("PRINT"),
        Statement::WaitForDelay(_) => quiet("WAITFOR"),
        Statement::Transaction(_) => quiet("TRANSACTION"),
        Statement::Sql(_) => quiet("SQL"),
        Statement::Backup(_) => quiet("BACKUP"),
        Statement::Restore(_) => quiet("RESTORE"),
    }
}

/// In a name that is a URL and names no store, there may be a key.
fn of_credential(kind: &'static str, name: &str) -> Entry {
    Entry::new(kind).named(crate::shown(name))
}

/// A name as written; variables are not evaluated.
fn written(name: &Name) -> String {
    match name {
        Name::Identifier(identifier) => identifier.text.clone(),
        Name::Variable(variable) => variable.name.clone(),
    }
}

fn paths<'a>(devices: impl Iterator<Item = &'a Spanned<Device>>) -> String {
    let paths = devices.map(|device| match &device.node {
        Device::Logical(name) => written(name),
        Device::Physical { path, .. } => match path {
            // In a URL that names no object, there may be a key.
            Written::Text { text, .. } => crate::shown(text),
            Written::Variable(variable) => variable.name.clone(),
            Written::Number(number) => number.to_string(),
        },
    });
    paths.collect::<Vec<_>>().join(", ")
}
