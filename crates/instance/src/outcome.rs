//! What a statement yields, in order: messages, rows, progress, reports.

use std::sync::Arc;
use std::time::Duration;

use windlass_base::Message;
use windlass_pipeline::{BackupReport, Plan, ProbeReport, ReadReport};

use crate::Value;

/// The type of a column of a result set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// `bit`
    Bit,
    /// `tinyint`
    TinyInt,
    /// `smallint`
    SmallInt,
    /// `int`
    Int,
    /// `bigint`
    BigInt,
    /// `numeric(precision, 0)`
    Numeric(u8),
    /// `numeric(precision, scale)`
    Decimal(u8, u8),
    /// `money`
    Money,
    /// `float`
    Float,
    /// `nvarchar(length)`; 0 for `max`, as in the following types
    NVarChar(u16),
    /// `varchar(length)`
    VarChar(u16),
    /// `nchar(length)`
    NChar(u16),
    /// `varbinary(length)`
    VarBinary(u16),
    /// `uniqueidentifier`
    UniqueIdentifier,
    /// `datetime`
    DateTime,
    /// `datetime2(7)`
    DateTime2,
    /// `date`
    Date,
    /// `time(7)`
    Time,
    /// What SQLite returns: every value has its own type.
    Any,
}

impl ColumnType {
    /// Whether values of this type are right-aligned.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            Self::Bit
                | Self::TinyInt
                | Self::SmallInt
                | Self::Int
                | Self::BigInt
                | Self::Numeric(_)
                | Self::Decimal(..)
                | Self::Money
                | Self::Float
        )
    }
}

/// A column of a result set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name; empty when it has none.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
}

impl Column {
    pub fn new(name: impl Into<String>, column_type: ColumnType) -> Self {
        Self {
            name: name.into(),
            column_type,
        }
    }
}

/// Progress of a backup, restore or verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The running operation, in capitals: `BACKUP DATABASE`.
    pub operation: &'static str,
    /// The database; empty for a verification.
    pub database: Arc<str>,
    /// Bytes of the database already processed.
    pub done_bytes: u64,
    /// Total bytes of the database.
    pub total_bytes: u64,
    /// Bytes on media for the processed bytes.
    pub stored_bytes: u64,
    /// Time since the start.
    pub elapsed: Duration,
}

/// A backup, restore or verification that succeeded.
#[derive(Debug, Clone, Copy)]
pub enum Completed<'a> {
    /// A backup was made.
    Backup {
        database: &'a str,
        report: &'a BackupReport,
    },
    /// A database was measured; nothing was written.
    Probe {
        database: &'a str,
        report: &'a ProbeReport,
    },
    /// A database was restored.
    Restore {
        database: &'a str,
        path: &'a std::path::Path,
        /// The position of the set on its media.
        position: u16,
        report: &'a ReadReport,
    },
    /// A dry run ended: the report of what would be done.
    Rehearsal(&'a crate::Rehearsal),
    /// A backup set was verified.
    Verify {
        /// The position of the set on its media.
        position: u16,
        report: &'a ReadReport,
    },
}

/// What a statement yields.
#[derive(Debug)]
pub enum Event<'a> {
    /// A message.
    Message(Message),
    /// Start of a result set.
    Columns(&'a [Column]),
    /// A row of the current result set.
    Row(&'a [Value]),
    /// End of the result set, with its number of rows.
    RowsEnd(u64),
    /// Whether the numbers of rows are shown from here on: `SET NOCOUNT`.
    CountsShown(bool),
    /// Number of rows affected by a statement without a result set.
    RowsAffected(u64),
    /// Progress of a long operation. Comes often: at every chunk.
    Progress(&'a Progress),
    /// A plan was made.
    Planned(&'a Plan),
    /// A long operation succeeded. Comes before its closing messages.
    Completed(Completed<'a>),
    /// As [`Event::Planned`], from the server that ran it.
    PlannedElsewhere(&'a str),
    /// As [`Event::Completed`], rendered by the server that ran it.
    Reported {
        /// For people.
        line: &'a str,
        /// For programs.
        json: &'a str,
    },
}

/// Receives what statements yield, as it happens.
///
/// Progress and its messages arrive from the threads of the pipeline, one call at a time. A sink that
/// wraps another handles its own events and passes all others on unchanged.
pub trait Sink: Send {
    fn event(&mut self, event: Event<'_>);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Sink for Silent {
    fn event(&mut self, _event: Event<'_>) {}
}

impl dyn Sink + '_ {
    pub fn message(&mut self, message: Message) {
        self.event(Event::Message(message));
    }

    /// Sends the report of an operation that succeeded.
    pub fn completed(&mut self, completed: Completed<'_>) {
        self.event(Event::Completed(completed));
    }
}

/// A result set in memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResultSet {
    pub columns: Vec<Column>,
    /// Its rows, each as long as `columns`.
    pub rows: Vec<Vec<Value>>,
}

impl ResultSet {
    /// Sends the whole result set to a sink.
    pub fn send(&self, sink: &mut dyn Sink) {
        sink.event(Event::Columns(&self.columns));
        for row in &self.rows {
            sink.event(Event::Row(row));
        }
        sink.event(Event::RowsEnd(self.rows.len() as u64));
    }

    /// The value of a column in a row.
    pub fn value(&self, row: usize, column: &str) -> Option<&Value> {
        let index = self.columns.iter().position(|found| found.name == column)?;
        self.rows.get(row)?.get(index)
    }
}

/// A sink that keeps everything, for tests and small results.
#[derive(Debug, Default)]
pub struct Collected {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// The result sets, in order.
    pub results: Vec<ResultSet>,
    /// Numbers of affected rows.
    pub rows_affected: Vec<u64>,
}

impl Collected {
    /// Whether any message is an error.
    pub fn has_failed(&self) -> bool {
        self.messages.iter().any(Message::is_error)
    }

    /// The numbers of the messages, in order.
    pub fn numbers(&self) -> Vec<u32> {
        self.messages.iter().map(|message| message.number).collect()
    }
}

impl Sink for Collected {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Message(message) => self.messages.push(message),
            Event::Columns(columns) => self.results.push(ResultSet {
                columns: columns.to_vec(),
                rows: Vec::new(),
            }),
            Event::Row(row) => {
                if let Some(result) = self.results.last_mut() {
                    result.rows.push(row.to_vec());
                }
            }
            Event::RowsAffected(count) => self.rows_affected.push(count),
            Event::RowsEnd(_)
            | Event::CountsShown(_)
            | Event::Progress(_)
            | Event::Planned(_)
            | Event::Completed(_)
            | Event::PlannedElsewhere(_)
            | Event::Reported { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Instance, Session};

    #[derive(Debug, Default)]
    struct Seen {
        plans: u32,
        completed: u32,
    }

    impl Sink for Seen {
        fn event(&mut self, event: Event<'_>) {
            match event {
                Event::Message(message) => assert!(!message.is_error(), "{message}"),
                Event::Planned(_) => self.plans += 1,
                Event::Completed(_) => self.completed += 1,
                _ => {}
            }
        }
    }

    #[test]
    fn the_plan_of_a_backup_reaches_the_caller_in_either_dialect() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("app.db");
        let app = rusqlite::Connection::open(&database).unwrap();
        app.execute_batch("CREATE TABLE t (a)").unwrap();
        let mut instance = Instance::open(None).unwrap();
        instance.pass_as("app", &database).unwrap();
        let mut session = Session::new(instance);
        let media = folder.path().join("app.bak").display().to_string();
        let mut seen = Seen::default();
        let backup = format!("BACKUP DATABASE app TO DISK = '{media}'");
        session.execute_batch(&backup, 1, &mut seen);
        assert_eq!((seen.plans, seen.completed), (1, 1));
        let command = format!("BACKUP DATABASE [app] TO DISK = [{media}] WITH INIT");
        let report = crate::sqlbackup::run(&mut session, &command, &mut seen);
        assert_eq!(report.exit_code, 0, "{:?}", report.lines);
        assert_eq!((seen.plans, seen.completed), (2, 2));
    }
}
