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
    /// `float`
    Float,
    /// `nvarchar(length)`
    NVarChar(u16),
    /// `nchar(length)`
    NChar(u16),
    /// `varbinary(length)`
    VarBinary(u16),
    /// `uniqueidentifier`
    UniqueIdentifier,
    /// `datetime`
    DateTime,
    /// What SQLite returns: every value has its own type.
    Any,
}

impl ColumnType {
    /// Whether values of this type are written flush right.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            Self::Bit
                | Self::TinyInt
                | Self::SmallInt
                | Self::Int
                | Self::BigInt
                | Self::Numeric(_)
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
    /// A column.
    pub fn new(name: impl Into<String>, column_type: ColumnType) -> Self {
        Self {
            name: name.into(),
            column_type,
        }
    }
}

/// How far a backup, restore or verification is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What is running, in capitals: `BACKUP DATABASE`.
    pub operation: &'static str,
    /// The database; empty for a verification.
    pub database: Arc<str>,
    /// Bytes of the database that are through.
    pub done_bytes: u64,
    /// Bytes of the database in all.
    pub total_bytes: u64,
    /// Bytes they take on media.
    pub stored_bytes: u64,
    /// Since it began.
    pub elapsed: Duration,
}

/// A backup, restore or verification that succeeded.
#[derive(Debug, Clone, Copy)]
pub enum Completed<'a> {
    /// A backup was made.
    Backup {
        /// The database.
        database: &'a str,
        /// Everything about it.
        report: &'a BackupReport,
    },
    /// A database was measured; nothing was written.
    Probe {
        /// The database.
        database: &'a str,
        /// Everything about it.
        report: &'a ProbeReport,
    },
    /// A database was restored.
    Restore {
        /// The database.
        database: &'a str,
        /// Its file.
        path: &'a std::path::Path,
        /// The position of the set on its media.
        position: u16,
        /// Everything about it.
        report: &'a ReadReport,
    },
    /// Nothing was done: this is what would be.
    Rehearsal(&'a crate::Rehearsal),
    /// A backup set was verified.
    Verify {
        /// The position of the set on its media.
        position: u16,
        /// Everything about it.
        report: &'a ReadReport,
    },
}

/// Receives what statements yield, as it comes.
///
/// Progress and its messages arrive from the threads of the pipeline, one call at a time.
pub trait Sink: Send {
    /// A message.
    fn message(&mut self, message: Message);

    /// A result set begins.
    fn columns(&mut self, columns: &[Column]);

    /// A row of the result set that has begun.
    fn row(&mut self, row: &[Value]);

    /// The result set ends after `count` rows.
    fn rows_end(&mut self, count: u64);

    /// A statement without a result set touched `count` rows.
    fn rows_affected(&mut self, count: u64);

    /// Progress of a long operation. Called often: for every chunk.
    fn progress(&mut self, progress: &Progress) {
        let _ = progress;
    }

    /// A plan was made.
    fn planned(&mut self, plan: &Plan) {
        let _ = plan;
    }

    /// A long operation succeeded. Comes before its closing messages.
    fn completed(&mut self, completed: Completed<'_>) {
        let _ = completed;
    }
}

/// A result set that is held in memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResultSet {
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each as long as `columns`.
    pub rows: Vec<Vec<Value>>,
}

impl ResultSet {
    /// Sends the whole result set to a sink.
    pub fn send(&self, sink: &mut dyn Sink) {
        sink.columns(&self.columns);
        for row in &self.rows {
            sink.row(row);
        }
        sink.rows_end(self.rows.len() as u64);
    }

    /// The value in a row under a column's name.
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
    /// The counts of rows that were touched.
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
    fn message(&mut self, message: Message) {
        self.messages.push(message);
    }

    fn columns(&mut self, columns: &[Column]) {
        self.results.push(ResultSet {
            columns: columns.to_vec(),
            rows: Vec::new(),
        });
    }

    fn row(&mut self, row: &[Value]) {
        if let Some(result) = self.results.last_mut() {
            result.rows.push(row.to_vec());
        }
    }

    fn rows_end(&mut self, _count: u64) {}

    fn rows_affected(&mut self, count: u64) {
        self.rows_affected.push(count);
    }
}
