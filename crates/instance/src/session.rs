//! A session: executes batches, statement by statement.
//!
//! Neighbours: `tsql` parses the text; [`crate::tsql`] executes each statement; a [`Sink`] gets the results.
//!
//! Invariants:
//! 1. A batch with a syntax error executes nothing.
//! 2. A statement's messages are sent in SQL Server's order; a later one never replaces an earlier one.
//! 3. No SQLite connection of the session is open on a file while a backup or restore works on it:
//!    closing it would drop the process's POSIX locks on the file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windlass_base::message::table;
use windlass_base::{Message, Moment};
use windlass_tsql::ast::Statement;
use windlass_tsql::parser::parse_batch;
use windlass_tsql::span::Spanned;

use crate::event_log;
use crate::failure::{AfterFailure, place};
use crate::message_of::parse_message;
use crate::operation::Trust;
use crate::placed::{Placed, located};
use crate::query::Queries;
use crate::session_settings::Settings;
use crate::sessions::{Client, Entry};
use crate::tsql::flow::{Flow, Ran};
use crate::{Elsewhere, Failure, Instance, Sink, Variables, tsql};

/// Maximum depth of batches that execute batches (`sp_executesql`, procedures).
const NESTING_MAX: u32 = 32;

/// Errors that SQL Server finds when it compiles a batch: they end that batch, not the one around it.
const CONFINED: &[u32] = &[137, 207, 208, 1087, 2715];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchEnd {
    /// Without any error.
    Clean,
    /// At least one message was an error.
    Failed,
    /// It asked for a session setting that there is not, on which what follows relies, and nothing of it ran.
    Refused,
}

/// A session on an instance.
#[derive(Debug)]
pub struct Session {
    // Dropped before the instance: its connection may be to a page engine database.
    pub(crate) queries: Queries,
    pub(crate) instance: Instance,
    pub(crate) variables: Variables,
    pub(crate) settings: Settings,
    pub(crate) last_error: u32,
    pub(crate) row_count: i64,
    cancel: Arc<AtomicBool>,
    pub(crate) nesting: u32,
    /// The table variables of the batch, and how many there were in the session.
    pub(crate) tables: tsql::temporary::Tables,
    pub(crate) table_count: u64,
    pub(crate) cursors: tsql::cursor::Cursors,
    /// How many TRY blocks are open.
    pub(crate) tries: u32,
    /// The errors that CATCH blocks handle, the innermost last.
    pub(crate) caught: Vec<Message>,
    /// The number that `@@ERROR` keeps after a statement that succeeded.
    pub(crate) keeps_error: Option<u32>,
    /// The line of the script on which the running batch starts.
    first_line: u32,
    /// The stored procedure that runs.
    pub(crate) procedure: Option<Box<str>>,
    /// The greatest severity among the errors that the running batch has sent; 0 without any.
    worst: u8,
    makes_folders: bool,
    /// What retention believes of the backups that stay.
    trust: Trust,
    /// The headers of media that were read for a plan.
    pub(crate) headers: crate::headers::HeaderCache,
    /// What log backups have said of the states within them.
    pub(crate) logs_within: crate::operation::LogsWithin,
    is_rehearsal: bool,
    /// Its place in the list of sessions.
    pub(crate) entry: Entry,
    /// Where its batches run, if not here.
    pub(crate) elsewhere: Option<Box<dyn Elsewhere>>,
    /// For whom it acts.
    pub(crate) principal: crate::Principal,
    /// How many more statements may run, if only those may that touch no files.
    pub(crate) steps_left: Option<u32>,
}

impl Session {
    /// Creates a session whose current database is `master`.
    pub fn new(instance: Instance) -> Self {
        Self::cancelled_by(instance, Arc::default())
    }

    /// The same on another instance, cancelled together with this one.
    pub(crate) fn beside(&self, instance: Instance) -> Self {
        Self::cancelled_by(instance, self.cancel_flag())
    }

    /// Creates a session that is cancelled by a flag of others.
    pub fn cancelled_by(instance: Instance, cancel: Arc<AtomicBool>) -> Self {
        let identity = instance.identity();
        let client = Client {
            host: identity.machine.clone(),
            program: crate::PRODUCT.to_owned(),
            process: std::process::id(),
            ..Client::default()
        };
        Self::with(instance, client, cancel)
    }

    /// Creates a session for a client of a server.
    pub fn of_client(instance: Instance, client: Client) -> Self {
        Self::with(instance, client, Arc::default())
    }

    fn with(instance: Instance, client: Client, cancel: Arc<AtomicBool>) -> Self {
        let entry = instance.sessions().enter(client, &cancel);
        let principal = crate::Principal::administrator(&instance.identity().user);
        Self {
            entry,
            elsewhere: None,
            queries: Queries::new(
                instance.folder().map(Path::to_owned),
                instance.engines.open_databases(),
                instance.sessions().clone(),
                Arc::clone(&cancel),
            ),
            instance,
            variables: Variables::default(),
            settings: Settings::default(),
            last_error: 0,
            row_count: 0,
            cancel,
            nesting: 0,
            tables: tsql::temporary::Tables::default(),
            table_count: 0,
            cursors: tsql::cursor::Cursors::default(),
            tries: 0,
            caught: Vec::new(),
            keeps_error: None,
            first_line: 1,
            procedure: None,
            worst: 0,
            makes_folders: false,
            trust: Trust::default(),
            headers: crate::headers::HeaderCache::default(),
            logs_within: crate::operation::LogsWithin::default(),
            is_rehearsal: false,
            principal,
            steps_left: None,
        }
    }

    /// Makes BACKUP, RESTORE and VERIFYONLY only report what they would do. The session must be on
    /// [`Instance::rehearsal`].
    #[must_use]
    pub fn rehearsing(self) -> Self {
        Self {
            is_rehearsal: true,
            ..self
        }
    }

    /// Whether it only reports what it would do.
    pub fn is_rehearsal(&self) -> bool {
        self.is_rehearsal
    }

    /// Sets whether missing folders for copies of backups are created.
    pub fn make_folders(&mut self, makes_folders: bool) {
        self.makes_folders = makes_folders;
    }

    /// Erases backups after a look at the headers of those that stay, and does not read these back.
    pub fn trust_headers(&mut self) {
        self.trust = Trust::Headers;
    }

    pub(crate) fn set_trust(&mut self, trust: Trust) {
        self.trust = trust;
    }

    pub(crate) fn trust(&self) -> Trust {
        self.trust
    }

    pub(crate) fn makes_folders(&self) -> bool {
        self.makes_folders
    }

    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    pub fn instance_mut(&mut self) -> &mut Instance {
        &mut self.instance
    }

    /// Whether the numbers of rows are not shown: `SET NOCOUNT ON`.
    pub fn hides_counts(&self) -> bool {
        self.settings.hides_counts
    }

    pub fn current_database(&self) -> &str {
        match &self.elsewhere {
            Some(elsewhere) => elsewhere.database(),
            None => self.queries.database_name(),
        }
    }

    /// Setting the flag stops the running statement; it stays set until cleared.
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Executes a batch. `first_line` is the line of the script on which `text` starts.
    pub fn execute_batch(&mut self, text: &str, first_line: u32, sink: &mut dyn Sink) -> BatchEnd {
        self.execute_batch_with(text, first_line, Variables::default(), sink)
    }

    /// Executes a batch that begins with variables; [`Session::variable_value`] returns their values afterwards.
    pub fn execute_batch_with(
        &mut self,
        text: &str,
        first_line: u32,
        variables: Variables,
        sink: &mut dyn Sink,
    ) -> BatchEnd {
        if let Some(refusal) = self.differing_drive(text) {
            sink.message(refusal);
            return BatchEnd::Refused;
        }
        if let Some(elsewhere) = &mut self.elsewhere {
            return elsewhere.execute(text, first_line, &self.cancel, sink);
        }
        self.variables = variables;
        self.listed().change(|activity| {
            activity.is_running = true;
            activity.requests += 1;
            activity.request_at = Moment::now().0;
        });
        let end = self.run_batch(text, first_line, sink);
        let in_transaction = self.queries.is_in_transaction();
        self.listed().change(|activity| {
            activity.is_running = false;
            activity.in_transaction = in_transaction;
            activity.ended_at = Moment::now().0;
        });
        end
    }

    fn run_batch(&mut self, text: &str, first_line: u32, sink: &mut dyn Sink) -> BatchEnd {
        let statements = match parse_batch(text) {
            Ok(statements) => statements,
            Err(error) => {
                let message = parse_message(&located(error, first_line));
                event_log::refused(&message);
                self.last_error = message.number;
                sink.message(message);
                return BatchEnd::Failed;
            }
        };
        if let Err(refusal) = tsql::check::check(&statements) {
            let line = refusal.line.saturating_add(first_line.saturating_sub(1));
            let message = refusal.message.at_line(line);
            self.last_error = message.number;
            sink.message(message);
            return match refusal.ends_script {
                true => BatchEnd::Refused,
                false => BatchEnd::Failed,
            };
        }
        let mut end = self.execute_statements(&statements, first_line, sink);
        if self.end_doomed(sink) {
            end = BatchEnd::Failed;
        }
        crate::agent::follow_transaction(self);
        tsql::temporary::drop_variables(self);
        self.cursors.end_batch();
        end
    }

    /// Executes statements that are already parsed or built.
    pub fn execute_statements(
        &mut self,
        statements: &[Spanned<Statement>],
        first_line: u32,
        sink: &mut dyn Sink,
    ) -> BatchEnd {
        self.first_line = first_line;
        self.worst = 0;
        let flow = tsql::flow::run(self, statements, sink);
        match flow {
            Ok(Flow::Ended) | Err(_) => BatchEnd::Failed,
            Ok(_) if self.worst > 0 => BatchEnd::Failed,
            Ok(_) => BatchEnd::Clean,
        }
    }

    /// The line of the script on which a statement starts.
    pub(crate) fn line_of(&self, statement: &Spanned<Statement>) -> u32 {
        match statement.span.line {
            0 => 0,
            line => line.saturating_add(self.first_line.saturating_sub(1)),
        }
    }

    /// Executes a statement that is no control flow.
    pub(crate) fn execute_statement(
        &mut self,
        statement: &Spanned<Statement>,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let line = self.line_of(statement);
        crate::agent::follow_transaction(self);
        let entry = tsql::logged::begin(&statement.node);
        let mut placed = Placed {
            sink: &mut *sink,
            line,
            procedure: self.procedure.clone(),
        };
        entry.around(&mut placed, |sink| {
            tsql::execute(self, &statement.node, sink)
        })?;
        self.succeeded(&statement.node);
        Ok(())
    }

    /// Sends the messages of a failure, and sets `@@ERROR`.
    pub(crate) fn refuse(&mut self, failure: Failure, sink: &mut dyn Sink) {
        self.failed(failure, 0, sink);
    }

    /// Executes a batch within a statement, with its own variables, which it returns. USE within it ends
    /// with it.
    pub(crate) fn execute_nested(
        &mut self,
        text: &str,
        variables: Variables,
        sink: &mut dyn Sink,
    ) -> Result<Variables, Failure> {
        self.refuse_nesting()?;
        let statements = parse_batch(text).map_err(|error| {
            let message = parse_message(&error);
            match message.number == table::dbcc_not_supported().number {
                // The batch around it relies on what is not supported.
                true => Failure::ending(message),
                false => Failure::from(message),
            }
        })?;
        tsql::check::check(&statements).map_err(|refusal| Failure::ending(refusal.message))?;
        let place = self.queries.place();
        let procedure = self.procedure.take();
        let ran = self.execute_scope(&statements, variables, sink);
        self.procedure = procedure;
        if !self
            .queries
            .database_name()
            .eq_ignore_ascii_case(&place.name)
            && !self.queries.is_in_transaction()
        {
            self.queries.use_database(place);
        }
        // Outside of TRY, inner failures have already been reported.
        let ran = ran?;
        match ran.worst {
            0 => Ok(ran.variables),
            _ => Err(Failure::from(Vec::new())),
        }
    }

    /// An error if no further batch may run within this one.
    pub(crate) fn refuse_nesting(&self) -> Result<(), Failure> {
        match self.nesting >= NESTING_MAX {
            true => Err(Failure::ending(table::nesting_exceeded(NESTING_MAX))),
            false => Ok(()),
        }
    }

    /// Executes statements with variables, table variables, local cursors and `#temp` tables of their own.
    ///
    /// # Errors
    /// Within TRY an error of a statement; else, without a message, that the batch around it ends too.
    pub(crate) fn execute_scope(
        &mut self,
        statements: &[Spanned<Statement>],
        variables: Variables,
        sink: &mut dyn Sink,
    ) -> Result<Ran, Failure> {
        let outer = std::mem::replace(&mut self.variables, variables);
        let tables = std::mem::take(&mut self.tables);
        let first_line = std::mem::replace(&mut self.first_line, 1);
        let worst_before = std::mem::take(&mut self.worst);
        let cursors = self.cursors.begin_scope();
        let temporary = self.queries.temporary_tables();
        self.nesting += 1;
        let flow = tsql::flow::run(self, statements, sink);
        self.nesting -= 1;
        tsql::temporary::drop_variables(self);
        tsql::temporary::drop_since(self, &temporary);
        self.cursors.end_scope(cursors);
        let worst = self.worst;
        self.worst = worst.max(worst_before);
        self.first_line = first_line;
        self.tables = tables;
        let variables = std::mem::replace(&mut self.variables, outer);
        let return_code = match flow? {
            Flow::Return(code) => Some(code),
            Flow::Ended if !CONFINED.contains(&self.last_error) || self.is_cancelled() => {
                return Err(Failure {
                    batch: AfterFailure::Ends,
                    ..Failure::from(Vec::new())
                });
            }
            _ => None,
        };
        Ok(Ran {
            variables,
            return_code,
            worst,
        })
    }

    pub(crate) fn failed(
        &mut self,
        failure: Failure,
        line: u32,
        sink: &mut dyn Sink,
    ) -> AfterFailure {
        let severities = failure.messages.iter().map(|message| message.severity.0);
        self.worst = self.worst.max(severities.max().unwrap_or(1));
        let number = failure
            .messages
            .iter()
            .rev()
            .find(|message| message.is_error());
        // A nested batch has already sent its messages and set the number.
        if let Some(message) = number {
            self.last_error = message.number;
        }
        self.row_count = 0;
        let raised = failure.batch == AfterFailure::Raised;
        let aborts = self.settings.aborts_transactions && !raised;
        let ends = failure.ends_transaction();
        for message in failure.messages {
            sink.message(place(message, line, self.procedure.as_deref()));
        }
        if aborts || ends {
            if self.queries.roll_back_all() {
                sink.message(match aborts {
                    true => table::transaction_aborted(),
                    false => table::transaction_ended(),
                });
            }
            return AfterFailure::Ends;
        }
        failure.batch
    }

    /// What an error that CATCH handles does to the transaction: it may only be rolled back then.
    pub(crate) fn doom_by(&mut self, failure: &Failure) {
        if self.settings.aborts_transactions || failure.ends_transaction() {
            self.queries.doom();
        }
    }

    /// A transaction that can only be rolled back does not outlive its batch.
    fn end_doomed(&mut self, sink: &mut dyn Sink) -> bool {
        let is_doomed = self.queries.is_doomed();
        if is_doomed {
            self.queries.roll_back_all();
            self.last_error = table::doomed_at_end().number;
            sink.message(table::doomed_at_end());
        }
        is_doomed
    }

    /// Ends the session: rolls back an open transaction and reports that.
    pub fn close(mut self, sink: &mut dyn Sink) {
        let is_open = self
            .elsewhere
            .as_ref()
            .map(|there| there.is_in_transaction());
        if is_open.unwrap_or_else(|| self.queries.roll_back_all()) {
            sink.message(table::transaction_left_open());
        }
    }
}
