//! Rows that a statement keeps in memory: those of cursors, and of INSERT ... EXECUTE.

use crate::{Event, Sink, Value};

/// How much memory the rows of one statement take.
pub(super) const ROWS_MB_MAX: usize = 256;

/// The room for rows.
#[derive(Debug)]
pub(super) struct Room {
    bytes_left: usize,
    is_whole: bool,
}

impl Room {
    pub(super) fn new() -> Self {
        Self {
            bytes_left: ROWS_MB_MAX << 20,
            is_whole: true,
        }
    }

    /// A copy of the row, while there is room.
    pub(super) fn copy(&mut self, row: &[Value]) -> Option<Vec<Value>> {
        let bytes = size_of::<Vec<Value>>() + row.iter().map(bytes).sum::<usize>();
        match self.bytes_left.checked_sub(bytes) {
            Some(left) if self.is_whole => self.bytes_left = left,
            _ => self.is_whole = false,
        }
        self.is_whole.then(|| row.to_vec())
    }

    /// Whether every row had room.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }
}

fn bytes(value: &Value) -> usize {
    let owned = match value {
        Value::Text(text) => text.len(),
        Value::Binary(bytes) => bytes.len(),
        _ => 0,
    };
    size_of::<Value>() + owned
}

/// Keeps the rows of a statement that is executed for INSERT; messages go on.
pub(super) struct Executed<'a> {
    sink: &'a mut dyn Sink,
    /// Of every result the number of columns, and the rows.
    pub(super) results: Vec<(usize, Vec<Vec<Value>>)>,
    pub(super) rows: Room,
}

impl<'a> Executed<'a> {
    pub(super) fn new(sink: &'a mut dyn Sink) -> Self {
        Self {
            sink,
            results: Vec::new(),
            rows: Room::new(),
        }
    }
}

impl Sink for Executed<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Columns(columns) => self.results.push((columns.len(), Vec::new())),
            Event::Row(row) => {
                if let (Some((_, rows)), Some(row)) = (self.results.last_mut(), self.rows.copy(row))
                {
                    rows.push(row);
                }
            }
            Event::RowsAffected(_) | Event::RowsEnd(_) | Event::CountsShown(_) => {}
            other => self.sink.event(other),
        }
    }
}
