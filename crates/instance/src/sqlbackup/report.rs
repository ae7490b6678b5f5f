//! The lines and the two codes of a run.

use windlass_base::Message;
use windlass_pipeline::BackupReport;

use super::{NOT_UNDERSTOOD, STATEMENT_FAILED};
use crate::tag::Tags;
use crate::{Column, ColumnType, Completed, Event, ResultSet, Session, Sink, Value};

/// The backup succeeded, but something else did not.
pub(super) const WARNING: i64 = 1;

/// The report of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub lines: Vec<String>,
    /// The exit code: 0, a warning below 500, an error from 500 on.
    pub exit_code: i64,
    /// The message number of the statement that failed; 0 if none did.
    pub sql_error: i64,
    /// The backup files that were written.
    pub files: Vec<String>,
    /// `SINGLERESULTSET`
    pub(super) single_result: bool,
}

impl Report {
    /// That of a command that could not begin, because its instance cannot be used.
    pub fn of_unopened(messages: &[Message]) -> Self {
        let mut report = Self::default();
        for message in messages.iter().filter(|message| message.is_error()) {
            let text = message.visible_text();
            report.line(format!("SQL error {}: {text}", message.number));
            report.fail(message.number);
        }
        report.refuse("the instance cannot be used; nothing was done");
        report
    }

    /// Whether any requested operation was not done.
    pub fn has_failed(&self) -> bool {
        self.exit_code >= NOT_UNDERSTOOD
    }

    pub(super) fn line(&mut self, text: impl Into<String>) {
        self.lines.push(text.into());
    }

    pub(super) fn warn(&mut self, text: &str) {
        self.lines.push(format!("Warning: {text}"));
        self.exit_code = self.exit_code.max(WARNING);
    }

    pub(super) fn refuse(&mut self, text: &str) {
        self.lines.push(format!("Error: {text}"));
        self.exit_code = self.exit_code.max(NOT_UNDERSTOOD);
    }

    /// A step that failed without a statement.
    pub(super) fn error(&mut self, text: &str) {
        self.lines.push(format!("Error: {text}"));
        self.exit_code = self.exit_code.max(STATEMENT_FAILED);
    }

    pub(super) fn fail(&mut self, number: u32) {
        self.exit_code = self.exit_code.max(STATEMENT_FAILED);
        if self.sql_error == 0 {
            self.sql_error = i64::from(number);
        }
    }

    /// Adds the report of a step; the first statement that failed has given its number.
    pub(super) fn absorb(&mut self, step: Self) {
        self.lines.extend(step.lines);
        self.exit_code = self.exit_code.max(step.exit_code);
        if self.sql_error == 0 {
            self.sql_error = step.sql_error;
        }
    }

    /// Sends the result sets: the lines, and the codes with the files. With SINGLERESULTSET the codes
    /// are the last lines, so that `INSERT ... EXEC` gets them.
    pub fn send(&self, sink: &mut dyn Sink) {
        let mut lines: Vec<Vec<Value>> = self
            .lines
            .iter()
            .map(|line| vec![Value::text(line)])
            .collect();
        if self.single_result {
            lines.push(vec![Value::Text(format!(
                "SQL Backup exit code: {}",
                self.exit_code
            ))]);
            lines.push(vec![Value::Text(format!(
                "SQL error code: {}",
                self.sql_error
            ))]);
        }
        ResultSet {
            columns: vec![Column::new("output", ColumnType::NVarChar(4000))],
            rows: lines,
        }
        .send(sink);
        if self.single_result {
            return;
        }
        let mut columns = vec![
            Column::new("exitcode", ColumnType::Int),
            Column::new("sqlerrorcode", ColumnType::Int),
        ];
        let mut row = vec![
            Value::Integer(self.exit_code),
            Value::Integer(self.sql_error),
        ];
        for (file, number) in self.files.iter().zip(1..) {
            columns.push(Column::new(
                format!("filename{number:02}"),
                ColumnType::NVarChar(260),
            ));
            row.push(Value::text(file));
        }
        ResultSet {
            columns,
            rows: vec![row],
        }
        .send(sink);
    }

    /// Writes the lines to a file that only its owner can read.
    pub(super) fn write(&self, session: &Session, path: &str, tags: &Tags) -> std::io::Result<()> {
        use std::io::Write as _;
        let tags = Tags {
            moment: Some(windlass_base::Moment::now().0),
            ..tags.clone()
        };
        let path = tags.expand(path).map_err(std::io::Error::other)?;
        let path = session
            .instance
            .drives()
            .path(&path)
            .map_err(std::io::Error::other)?;
        if session.makes_folders() {
            windlass_io::directory::create(&windlass_io::directory::parent(&path))?;
        }
        let mut file = windlass_io::output::append(&path, 0o600)?;
        for line in &self.lines {
            writeln!(file, "{line}")?;
        }
        writeln!(file, "SQL Backup exit code: {}", self.exit_code)
    }
}

/// Records the messages of statements in a report and passes on all other events.
pub(super) struct Recorder<'a> {
    report: &'a mut Report,
    sink: &'a mut dyn Sink,
    /// The number of the first error.
    pub(super) error: u32,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(report: &'a mut Report, sink: &'a mut dyn Sink) -> Self {
        Self {
            report,
            sink,
            error: 0,
        }
    }
}

impl Recorder<'_> {
    fn message(&mut self, message: &Message) {
        if message.is_error() && self.error == 0 {
            self.error = message.number;
        }
        let text = message.visible_text();
        if text.starts_with("Warning: ") {
            self.report.exit_code = self.report.exit_code.max(WARNING);
        }
        let text = if message.is_error() {
            format!("SQL error {}: {text}", message.number)
        } else {
            text.into_owned()
        };
        self.report.lines.extend(text.lines().map(str::to_owned));
    }

    fn sizes(&mut self, report: &BackupReport) {
        let raw = report.processed_bytes;
        let stored = report.set.stored_bytes.max(1);
        let mb = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        self.report
            .line(format!("Database size       : {:.3} MB", mb(raw)));
        self.report
            .line(format!("Compressed data size: {:.3} MB", mb(stored)));
        self.report.line(format!(
            "Compression rate    : {:.2}%",
            100.0 - 100.0 * stored as f64 / (raw.max(1)) as f64
        ));
    }
}

impl Sink for Recorder<'_> {
    fn event(&mut self, event: Event<'_>) {
        match &event {
            Event::Message(message) => return self.message(message),
            Event::Completed(Completed::Backup { report, .. }) => self.sizes(report),
            _ => {}
        }
        self.sink.event(event);
    }
}
