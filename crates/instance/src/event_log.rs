//! Logs the start and end of each statement, and the numbers of its errors.
//!
//! Neighbours: the program decides where the log goes and which levels it keeps. Without a log, logging
//! costs nothing.
//!
//! Invariant: the text of a statement and the values of options are never logged, because they may
//! contain secrets. Logged are kinds of statements, names of databases, certificates and procedures,
//! device paths, amounts and message numbers; the text of a message only if the statement is a BACKUP or
//! RESTORE, whose messages consist of names and paths.

use std::time::Instant;

use crate::operation::DeviceName;
use crate::{Completed, Event, Failure, Sink};
use tracing::{debug, error, info};
use windlass_base::Message;

/// A statement that is being executed.
#[derive(Debug)]
pub(crate) struct Entry {
    statement: &'static str,
    database: String,
    /// Name of a certificate or procedure.
    name: String,
    devices: String,
    /// Whether its start and its success are logged at level info.
    is_notable: bool,
    /// Whether the text of its messages may be logged.
    is_quotable: bool,
    begun: Instant,
}

/// What a statement did, for its last log line.
#[derive(Debug, Default)]
struct Tally {
    database: Option<String>,
    bytes: Option<u64>,
    stored_bytes: Option<u64>,
    position: Option<u16>,
}

impl Entry {
    /// Logs the start of an operation.
    pub(crate) fn of_operation<'a>(
        statement: &'static str,
        database: &str,
        devices: impl Iterator<Item = &'a DeviceName>,
    ) -> Self {
        let devices: Vec<String> = devices.map(ToString::to_string).collect();
        Self::of_movement(statement, database.to_owned(), devices.join(", "))
    }

    /// Logs the start of a statement that moves data or reads media.
    pub(crate) fn of_movement(statement: &'static str, database: String, devices: String) -> Self {
        Self {
            database,
            devices,
            is_quotable: true,
            ..Self::new(statement)
        }
        .begin()
    }

    pub(crate) fn new(statement: &'static str) -> Self {
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

    pub(crate) fn on(self, database: String) -> Self {
        Self { database, ..self }
    }

    /// Adds the name of a certificate or procedure.
    pub(crate) fn named(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// Lowers the level: its start and its success are not notable.
    pub(crate) fn quiet(self) -> Self {
        Self {
            is_notable: false,
            ..self
        }
    }

    /// Logs the start.
    pub(crate) fn begin(self) -> Self {
        let (statement, devices) = (self.statement, some(&self.devices));
        let (database, name) = (some(&self.database), some(&self.name));
        if self.is_notable {
            info!(statement, database, name, devices, "statement started");
        } else {
            debug!(statement, database, name, "statement started");
        }
        self
    }

    /// Runs a statement or an operation, and logs what it yields and how it ends.
    pub(crate) fn around<T>(
        &self,
        sink: &mut dyn Sink,
        run: impl FnOnce(&mut dyn Sink) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut noting = self.noting(sink);
        let result = run(&mut noting);
        self.end(&noting.tally, result.as_ref().err());
        result
    }

    /// Wraps a sink to log what passes through it.
    fn noting<'a>(&'a self, sink: &'a mut dyn Sink) -> Noting<'a> {
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

    fn end(&self, tally: &Tally, failure: Option<&Failure>) {
        let statement = self.statement;
        let database = tally.database.as_deref().or(some(&self.database));
        let (name, devices) = (some(&self.name), some(&self.devices));
        let seconds = (self.begun.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        let (bytes, stored_bytes) = (tally.bytes, tally.stored_bytes);
        let position = tally.position;
        match failure {
            None if self.is_notable => info!(
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
            None => debug!(statement, database, name, seconds, "statement finished"),
            Some(failure) => {
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

/// Logs a syntax error without the batch text, which may contain secrets.
pub(crate) fn refused(message: &Message) {
    let (number, severity, line) = (message.number, message.severity.0, message.line);
    error!(number, severity, line, "batch refused");
}

/// Logs that a statement was refused for want of a right.
pub(crate) fn denied(login: &str, failure: &Failure) {
    let number = failure.messages.first().map(|message| message.number);
    tracing::warn!(login, number, "permission denied");
}

/// Logs the end of a SQL Backup command.
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

/// Logs the result of a copy from the queue.
pub(crate) fn copied(target: &std::path::Path, failure: Option<&str>) {
    let target = target.display().to_string();
    match failure {
        None => info!(target_file = target, "copied"),
        Some(reason) => tracing::warn!(target_file = target, reason, "copy failed"),
    }
}

pub(crate) fn deleted(device: &windlass_device::DeviceAddress) {
    info!(file = %device, "deleted");
}

/// A sink between a statement and its session's sink.
struct Noting<'a> {
    entry: &'a Entry,
    tally: Tally,
    sink: &'a mut dyn Sink,
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

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
