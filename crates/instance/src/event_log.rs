//! What sessions tell the program's log: the beginning and the end of each statement, and the numbers of
//! its errors.
//!
//! Neighbours: the program decides where the log goes and what of it is kept; without a log, telling
//! costs nothing.
//!
//! Invariant: no text of a statement and no value of an option is told, because there may be a secret in
//! it. Told are kinds of statements, names of databases, certificates and procedures, paths of devices,
//! amounts and message numbers; the text of a message only where the statement is a BACKUP or RESTORE,
//! whose messages are made of names and paths.

use std::time::Instant;

use tracing::{debug, error, info};
use windlass_base::Message;
use windlass_tsql::ast::{
    BackupStatement, BackupTarget, Device, Name, RestoreAction, RestoreSource, RestoreStatement,
    Statement, Value as Written,
};
use windlass_tsql::span::Spanned;

use crate::{Completed, Event, Failure, Sink};

/// A statement that is being executed.
#[derive(Debug)]
pub(crate) struct Entry {
    statement: &'static str,
    database: String,
    /// Of a certificate or a procedure.
    name: String,
    devices: String,
    /// Whether its beginning and its success are worth a line of their own.
    is_notable: bool,
    /// Whether the text of its messages may be logged.
    is_quotable: bool,
    begun: Instant,
}

/// What a statement did.
#[derive(Debug, Default)]
struct Tally {
    database: Option<String>,
    bytes: Option<u64>,
    stored_bytes: Option<u64>,
    position: Option<u16>,
}

impl Entry {
    /// Notes that a statement begins.
    pub(crate) fn of(statement: &Statement) -> Self {
        match statement {
            Statement::Backup(backup) => Self::of_backup(backup),
            Statement::Restore(restore) => Self::of_restore(restore),
            other => described(other).begin(),
        }
    }

    /// Notes that a backup begins.
    pub(crate) fn of_backup(backup: &BackupStatement) -> Self {
        let (kind, database) = match &backup.target {
            BackupTarget::Database { name, .. } => ("BACKUP DATABASE", written(&name.node)),
            BackupTarget::Log { name } => ("BACKUP LOG", written(&name.node)),
            BackupTarget::Group { .. } => ("BACKUP GROUP", String::new()),
            BackupTarget::Server => ("BACKUP SERVER", String::new()),
        };
        let mirrored = backup.mirrors.iter().flatten();
        let devices = paths(backup.devices.iter().chain(mirrored));
        Self::of_movement(kind, database, devices)
    }

    /// Notes that a restore, or a statement that reads media, begins.
    pub(crate) fn of_restore(restore: &RestoreStatement) -> Self {
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
        Self::of_movement(kind, database, devices)
    }

    /// A statement that moves data or reads media.
    fn of_movement(statement: &'static str, database: String, devices: String) -> Self {
        Self {
            database,
            devices,
            is_quotable: true,
            ..Self::new(statement)
        }
        .begin()
    }

    fn new(statement: &'static str) -> Self {
        Self {
            statement,
            database: String::new(),
            name: String::new(),
            devices: String::new(),
            is_notable: true,
            is_quotable: false,
            begun: Instant::now(),
        }
    }

    fn begin(self) -> Self {
        let (statement, devices) = (self.statement, some(&self.devices));
        let (database, name) = (some(&self.database), some(&self.name));
        if self.is_notable {
            info!(statement, database, name, devices, "statement started");
        } else {
            debug!(statement, database, name, "statement started");
        }
        self
    }

    /// A sink that takes note of what comes by.
    pub(crate) fn noting<'a>(&'a self, sink: &'a mut dyn Sink) -> Noting<'a> {
        Noting {
            entry: self,
            tally: Tally::default(),
            sink,
        }
    }

    fn message(&self, message: &Message) {
        let statement = self.statement;
        let (database, name) = (some(&self.database), some(&self.name));
        let (number, severity) = (message.number, message.severity.0);
        let line = (message.line > 0).then_some(message.line);
        let text = self.is_quotable.then_some(message.text.as_str());
        if message.is_error() {
            error!(
                statement,
                database, name, number, severity, line, text, "message"
            );
        } else {
            debug!(
                statement,
                database, name, number, severity, line, text, "message"
            );
        }
    }

    fn end(&self, tally: &Tally, result: &Result<(), Failure>) {
        let statement = self.statement;
        let database = tally.database.as_deref().or(some(&self.database));
        let (name, devices) = (some(&self.name), some(&self.devices));
        let seconds = (self.begun.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        let (bytes, stored_bytes) = (tally.bytes, tally.stored_bytes);
        let position = tally.position;
        match result {
            Ok(()) if self.is_notable => info!(
                statement,
                database,
                name,
                devices,
                bytes,
                stored_bytes,
                position,
                seconds,
                "statement finished"
            ),
            Ok(()) => debug!(statement, database, name, seconds, "statement finished"),
            Err(failure) => {
                for message in &failure.messages {
                    self.message(message);
                }
                let first = failure.messages.iter().find(|message| message.is_error());
                let number = first.map(|message| message.number);
                let severity = first.map(|message| message.severity.0);
                error!(
                    statement,
                    database, name, devices, number, severity, seconds, "statement failed"
                );
            }
        }
    }
}

/// Notes that a batch was not understood; its text stays untold.
pub(crate) fn refused(message: &Message) {
    let (number, severity, line) = (message.number, message.severity.0, message.line);
    error!(number, severity, line, "batch refused");
}

/// Notes how a command of the SQL Backup dialect ended.
pub(crate) fn command_ended(exit_code: i64, sql_error: i64, files: usize) {
    if exit_code == 0 {
        info!(exit_code, sql_error, files, "sqlbackup finished");
    } else if exit_code < 500 {
        tracing::warn!(
            exit_code,
            sql_error,
            files,
            "sqlbackup finished with warnings"
        );
    } else {
        error!(exit_code, sql_error, files, "sqlbackup failed");
    }
}

/// Notes what became of a copy of the queue.
pub(crate) fn copied(target: &std::path::Path, failure: Option<&str>) {
    let target = target.display().to_string();
    match failure {
        None => info!(target_file = target, "copied"),
        Some(reason) => tracing::warn!(target_file = target, reason, "copy failed"),
    }
}

/// Notes that a backup file was deleted.
pub(crate) fn deleted(file: &std::path::Path) {
    info!(file = %file.display(), "deleted");
}

/// A sink between a statement and its session's own.
pub(crate) struct Noting<'a> {
    entry: &'a Entry,
    tally: Tally,
    sink: &'a mut dyn Sink,
}

impl Noting<'_> {
    /// Notes how the statement ended.
    pub(crate) fn end(&self, result: &Result<(), Failure>) {
        self.entry.end(&self.tally, result);
    }
}

impl Sink for Noting<'_> {
    fn event(&mut self, event: Event<'_>) {
        match &event {
            Event::Message(message) => self.entry.message(message),
            Event::Completed(completed) => self.tally = Tally::of(completed),
            _ => {}
        }
        self.sink.event(event);
    }
}

impl Tally {
    fn of(completed: &Completed<'_>) -> Self {
        match *completed {
            Completed::Backup { database, report } => Self {
                database: Some(database.to_owned()),
                bytes: Some(report.processed_bytes),
                stored_bytes: Some(report.set.stored_bytes),
                position: Some(report.set.position),
            },
            Completed::Probe { database, report } => Self {
                database: Some(database.to_owned()),
                bytes: Some(report.processed_bytes),
                stored_bytes: None,
                position: None,
            },
            Completed::Restore {
                database,
                position,
                report,
                ..
            } => Self {
                database: Some(database.to_owned()),
                bytes: Some(report.processed_bytes),
                stored_bytes: Some(report.stored_bytes),
                position: Some(position),
            },
            Completed::Rehearsal(rehearsal) => Self {
                database: Some(rehearsal.database.clone()),
                ..Self::default()
            },
            Completed::Verify { position, report } => Self {
                database: None,
                bytes: Some(report.processed_bytes),
                stored_bytes: Some(report.stored_bytes),
                position: Some(position),
            },
        }
    }
}

/// A statement that moves no data.
fn described(statement: &Statement) -> Entry {
    let on = |kind, database: String| Entry {
        database,
        ..Entry::new(kind)
    };
    let named = |kind, name: &str| Entry {
        name: name.to_owned(),
        ..Entry::new(kind)
    };
    let quiet = |kind| Entry {
        is_notable: false,
        ..Entry::new(kind)
    };
    match statement {
        Statement::CreateDatabase(create) => on("CREATE DATABASE", create.name.node.text.clone()),
        Statement::DropDatabase(drop) => {
            let names = drop.names.iter().map(|name| name.node.text.as_str());
            on("DROP DATABASE", names.collect::<Vec<_>>().join(", "))
        }
        Statement::AlterDatabase(_) => Entry::new("ALTER DATABASE"),
        Statement::CreateMasterKey { .. } => Entry::new("CREATE MASTER KEY"),
        Statement::DropMasterKey => Entry::new("DROP MASTER KEY"),
        Statement::CreateCertificate(create) => named("CREATE CERTIFICATE", &create.name.node.text),
        Statement::BackupCertificate(_) => Entry::new("BACKUP CERTIFICATE"),
        Statement::DropCertificate(name) => named("DROP CERTIFICATE", &name.node.text),
        Statement::AlterServerConfiguration(_) => Entry::new("ALTER SERVER CONFIGURATION"),
        Statement::Execute(execute) => named("EXECUTE", &execute.procedure.node.object.text),
        Statement::Reconfigure(_) => Entry::new("RECONFIGURE"),
        Statement::Dbcc(_) => Entry::new("DBCC"),
        Statement::Checkpoint { .. } => Entry::new("CHECKPOINT"),
        Statement::Use(name) => Entry {
            is_notable: false,
            ..on("USE", name.text.clone())
        },
        Statement::Declare(_) => quiet("DECLARE"),
        Statement::SetVariable(_) | Statement::SetOption(_) => quiet("SET"),
        Statement::Print(_) => quiet("PRINT"),
        Statement::WaitForDelay(_) => quiet("WAITFOR"),
        Statement::Transaction(_) => quiet("TRANSACTION"),
        Statement::Sql(_) => quiet("SQL"),
        Statement::Backup(_) => quiet("BACKUP"),
        Statement::Restore(_) => quiet("RESTORE"),
    }
}

/// A name as written; the values of variables are not used.
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
            Written::Text { text, .. } => text.clone(),
            Written::Variable(variable) => variable.name.clone(),
            Written::Number(number) => number.to_string(),
        },
    });
    paths.collect::<Vec<_>>().join(", ")
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
