//! What a session yields, as tokens for its client.
//!
//! Each statement ends with a DONE. It is held back until the next token, because only the last one of an answer
//! says that nothing follows.
//!
//! Invariants:
//! 1. At most [`Limits::answer_bytes`](crate::Limits) and one row wait for the client: a client that does not read
//!    stops its own session.
//! 2. Messages of a running backup are sent at once: drivers stop their timers at the first packet.
//! 3. If the client is gone, the session is cancelled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use windlass_base::Message;
use windlass_base::message::table;
use windlass_instance::{Column, ColumnType, Event, Session, Sink, Value};
use windlass_tds::answer::{Answer, Change, Ends, done};
use windlass_tds::packet::Packets;
use windlass_tds::value::Value as Sent;

use super::column::{described, sent};
use super::note::note;
use crate::wire::Wire;

/// The command of a change of rows, in a DONE.
const UPDATE: u16 = 0x00C5;
/// Messages that follow one another faster are sent together.
const BETWEEN_FLUSHES: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy)]
struct Done {
    status: u16,
    command: u16,
    rows: u64,
}

/// The answer to a request.
pub(crate) struct Reply<'a> {
    wire: &'a Wire,
    packets: &'a mut Packets,
    answer: Answer,
    out: Vec<u8>,
    answer_bytes: usize,
    /// The server's name in messages.
    server: &'a str,
    ends: Ends,
    pending: Option<Done>,
    columns: Vec<ColumnType>,
    names: Vec<String>,
    row: Vec<Sent>,
    flushed: Instant,
    database: String,
    /// `SET NOCOUNT ON`
    hides_counts: bool,
    transaction: u64,
    is_gone: bool,
    /// A value that its column cannot hold ended the result.
    is_broken: bool,
    cancel: &'a AtomicBool,
}

/// What the answers of a session have in common.
pub(crate) struct Answering<'a> {
    pub(crate) wire: &'a Wire,
    pub(crate) packets: &'a mut Packets,
    pub(crate) server: &'a str,
    pub(crate) answer_bytes: usize,
    pub(crate) cancel: &'a AtomicBool,
    /// The transaction that is open; 0 for none.
    pub(crate) transaction: u64,
}

impl<'a> Reply<'a> {
    /// The answer to a batch, or to a call.
    pub(crate) fn new(answering: Answering<'a>, ends: Ends, session: &Session) -> Self {
        let Answering {
            wire,
            packets,
            server,
            answer_bytes,
            cancel,
            transaction,
        } = answering;
        Self {
            wire,
            packets,
            answer: Answer::default(),
            out: Vec::new(),
            answer_bytes,
            server,
            ends,
            pending: None,
            columns: Vec::new(),
            names: Vec::new(),
            row: Vec::new(),
            flushed: Instant::now(),
            database: session.current_database().to_owned(),
            hides_counts: session.hides_counts(),
            transaction,
            is_gone: false,
            is_broken: false,
            cancel,
        }
    }

    /// For tokens that no event has.
    pub(crate) fn tokens(&mut self) -> &mut Answer {
        self.release(true);
        &mut self.answer
    }

    /// Writes the held DONE.
    fn release(&mut self, follows: bool) {
        if let Some(held) = self.pending.take() {
            let more = if follows { done::MORE } else { 0 };
            self.answer
                .done(self.ends, held.status | more, held.command, held.rows);
        }
    }

    fn hold(&mut self, status: u16, command: u16, rows: u64) {
        self.release(true);
        self.pending = Some(Done {
            status,
            command,
            rows,
        });
    }

    fn send(&mut self) {
        if !self.is_gone && !self.out.is_empty() && self.wire.write(&self.out).is_err() {
            self.is_gone = true;
            self.cancel.store(true, Ordering::Relaxed);
        }
        self.out.clear();
    }

    fn send_full(&mut self) {
        if self.answer.tokens.len() >= self.answer_bytes {
            self.packets
                .move_full(&mut self.answer.tokens, &mut self.out);
            self.send();
        }
    }

    fn flush(&mut self) {
        self.packets
            .move_all(&mut self.answer.tokens, &mut self.out);
        self.send();
        self.flushed = Instant::now();
    }

    /// Sends a message.
    pub(crate) fn message(&mut self, message: &Message) {
        if !message.is_error() {
            self.release(true);
        }
        note(&mut self.answer, message, self.server);
        if message.is_error() {
            // Several errors of one statement share one DONE.
            self.pending = Some(Done {
                status: done::ERROR,
                command: 0,
                rows: 0,
            });
        }
        let is_progress = message.number == table::percent_processed(0).number;
        if is_progress || self.flushed.elapsed() >= BETWEEN_FLUSHES {
            self.flush();
        }
        self.send_full();
    }

    fn begin_result(&mut self, columns: &[Column]) {
        self.release(true);
        let all: Vec<_> = columns.iter().map(described).collect();
        self.answer.columns(&all);
        self.columns = columns.iter().map(|column| column.column_type).collect();
        self.names = columns.iter().map(|column| column.name.clone()).collect();
    }

    fn row(&mut self, row: &[Value]) {
        if self.is_broken {
            return;
        }
        self.row.clear();
        let values = row.iter().zip(&self.columns);
        self.row
            .extend(values.map(|(value, column_type)| sent(value, *column_type)));
        if self.answer.row(&self.row).is_err() {
            self.refuse_row(row);
        }
        self.send_full();
    }

    /// A file may hold values that the declared type of their column cannot: the result ends there.
    fn refuse_row(&mut self, row: &[Value]) {
        self.is_broken = true;
        let mut probe = Answer::default();
        let fits = |at: &usize| {
            let described = described(&Column::new("", self.columns[*at]));
            probe.columns(&[described]);
            probe.row(std::slice::from_ref(&self.row[*at])).is_err()
        };
        let at = (0..self.row.len().min(row.len())).find(fits).unwrap_or(0);
        let name = self.names.get(at).map_or("", String::as_str);
        let length = row.get(at).map_or(0, |value| value.to_string().len());
        self.message(&table::value_does_not_fit_column(name, length));
    }

    fn end_result(&mut self, rows: u64) {
        if std::mem::take(&mut self.is_broken) {
            return;
        }
        let counts = match self.hides_counts {
            true => 0,
            false => done::COUNT,
        };
        self.hold(counts, done::SELECT, rows);
    }

    /// Tells the client what has changed in its session.
    fn tell_changes(&mut self, session: &Session, transaction: u64) {
        let database = session.current_database();
        if database != self.database {
            self.release(true);
            self.answer
                .change(Change::Database(database, &self.database));
            database.clone_into(&mut self.database);
        }
        if transaction == self.transaction {
            return;
        }
        self.release(true);
        match (self.transaction, transaction) {
            (0, new) => self.answer.change(Change::Begun(new)),
            (old, 0) if session.was_rolled_back() => self.answer.change(Change::RolledBack(old)),
            (old, 0) => self.answer.change(Change::Committed(old)),
            (old, new) => {
                self.answer.change(Change::Committed(old));
                self.answer.change(Change::Begun(new));
            }
        }
        self.transaction = transaction;
    }

    /// Ends the answer to a batch.
    pub(crate) fn end(mut self, session: &Session, transaction: u64, is_cancelled: bool) {
        self.tell_changes(session, transaction);
        if is_cancelled {
            self.release(true);
            self.answer.done(self.ends, done::ERROR, 0, 0);
        } else if self.pending.is_some() {
            self.release(false);
        } else {
            self.answer.done(self.ends, 0, 0, 0);
        }
        self.finish();
    }

    /// Ends the message; its last token is written.
    pub(crate) fn finish(mut self) {
        self.packets
            .end_message(&mut self.answer.tokens, &mut self.out);
        self.send();
    }

    /// Ends one of the calls of a message.
    pub(crate) fn end_call(
        &mut self,
        session: &Session,
        transaction: u64,
        status: u16,
        is_last: bool,
    ) {
        self.release(true);
        self.tell_changes(session, transaction);
        let more = if is_last { 0 } else { done::MORE };
        self.answer.done(Ends::Procedure, status | more, 0, 0);
    }
}

impl Sink for Reply<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Message(message) => {
                if message.number == table::changed_database("").number
                    && let Some(database) = message.text.split('\'').nth(1)
                {
                    self.release(true);
                    self.answer
                        .change(Change::Database(database, &self.database));
                    database.clone_into(&mut self.database);
                }
                self.message(&message);
            }
            Event::Columns(columns) => self.begin_result(columns),
            Event::Row(row) => self.row(row),
            Event::RowsEnd(rows) => self.end_result(rows),
            Event::CountsShown(are_shown) => self.hides_counts = !are_shown,
            Event::RowsAffected(rows) => self.hold(done::COUNT, UPDATE, rows),
            Event::Progress(_) => {
                if !self.answer.tokens.is_empty() && self.flushed.elapsed() >= BETWEEN_FLUSHES {
                    self.flush();
                }
            }
            Event::Planned(_)
            | Event::Completed(_)
            | Event::PlannedElsewhere(_)
            | Event::Reported { .. } => {}
        }
    }
}
