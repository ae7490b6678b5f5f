//! The SQLite connection of a session, for all SQL text that Windlass does not execute itself.
//!
//! The connection is opened when a statement first needs it and behaves as in any other SQLite program:
//! writes, checkpoints and temporary tables are the user's own. It has the catalog's views as `sys` and
//! `msdb`, see [`views`]. Without a user database (`master`, `msdb`, `tempdb`) it is an empty database
//! in memory; the executor refuses to write there, so that nothing is created only to be lost.
//!
//! Invariant: [`Queries::release`] closes the connection before anything else opens or replaces one
//! of its files.

mod guard;
mod mark;
pub(crate) mod views;
mod waiting;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use windlass_base::message::table;
use windlass_catalog::Catalog;
use windlass_engine::Database;

pub(crate) use self::mark::{Marked, PendingMark};
use crate::Failure;
use crate::engine::OpenDatabases;
use crate::message_of::unreadable_file;
use crate::sessions::{InUse, Sessions};
use crate::tsql::bind::TEMPORARY;
use crate::tsql::program::Program;

/// How long a statement waits for another program's lock unless `SET LOCK_TIMEOUT` says otherwise.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// How many steps SQLite's virtual machine makes between two checks for cancellation.
const STEPS_BETWEEN_LOOKS: i32 = 1000;

/// Distinguishes the temporary databases of sessions in one process.
static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// The current database and the connection to it.
pub(crate) struct Queries {
    name: String,
    home: Home,
    /// Keeps the current database from being dropped or replaced by other sessions.
    in_use: Option<Arc<InUse>>,
    connection: Option<Connection>,
    /// Requested by `PRAGMA encoding`; has an effect only while the database is empty.
    encoding: Option<String>,
    depth: u32,
    /// The mark of the open transaction.
    mark: Option<PendingMark>,
    /// Whether the transaction can only be rolled back.
    is_doomed: bool,
    /// Whether the last transaction that ended was committed.
    is_committed: bool,
    /// How the last transaction ended, until somebody asks.
    end: Option<TransactionEnd>,
    lock_timeout: Duration,
    /// What the connection's functions compute.
    pub(crate) program: Program,
    /// Keeps the database of temporary tables while no other connection is open.
    temporary: Option<Connection>,
    temporary_uri: String,
    folder: Option<PathBuf>,
    engines: OpenDatabases,
    sessions: Sessions,
    cancel: Arc<AtomicBool>,
    /// Whether SQL may not open files by itself.
    is_guarded: bool,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionEnd {
    Committed,
    RolledBack,
}

/// Location of the current database.
#[derive(Debug, Clone)]
pub(crate) enum Home {
    /// A system database: it has no file.
    System,
    /// In a SQLite file.
    File(PathBuf),
    /// In the page engine, under this URI.
    Engine(String),
}

/// A database that a session can make its current one.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) home: Home,
    pub(crate) in_use: Option<Arc<InUse>>,
}

impl std::fmt::Debug for Queries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queries")
            .field("name", &self.name)
            .field("home", &self.home)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl Queries {
    /// Starts on `master`.
    pub(crate) fn new(
        folder: Option<PathBuf>,
        engines: OpenDatabases,
        sessions: Sessions,
        cancel: Arc<AtomicBool>,
    ) -> Self {
        Self {
            folder,
            engines,
            sessions,
            name: "master".to_owned(),
            home: Home::System,
            in_use: None,
            connection: None,
            encoding: None,
            depth: 0,
            mark: None,
            is_doomed: false,
            is_committed: false,
            end: None,
            lock_timeout: LOCK_TIMEOUT,
            program: Program::default(),
            temporary: None,
            temporary_uri: String::new(),
            cancel,
            is_guarded: false,
        }
    }

    /// Keeps SQL from opening files by itself, or ends that.
    pub(crate) fn guard(&mut self, is_guarded: bool) {
        self.connection = None;
        self.is_guarded = is_guarded;
    }

    /// The name of the current database.
    pub(crate) fn database_name(&self) -> &str {
        &self.name
    }

    /// Makes a database the current one. The caller has checked that no transaction is open.
    pub(crate) fn use_database(&mut self, place: Place) {
        self.connection = None;
        self.encoding = None;
        self.ended();
        self.program.enter(&place.name);
        self.name = place.name;
        self.home = place.home;
        self.in_use = place.in_use;
    }

    /// Number of open `BEGIN TRANSACTION`.
    pub(crate) fn transaction_depth(&self) -> u32 {
        self.depth
    }

    /// Whether a transaction is open, however it was begun.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.depth > 0
            || self
                .connection
                .as_ref()
                .is_some_and(|connection| !connection.is_autocommit())
    }

    #[cfg(test)]
    pub(crate) fn waits(&self) -> Duration {
        self.lock_timeout
    }

    /// Waits for locks as long as a new session does.
    pub(crate) fn forget_lock_timeout(&mut self) {
        // SQLite takes any timeout.
        let _set = self.set_lock_timeout(LOCK_TIMEOUT);
    }

    pub(crate) fn set_lock_timeout(&mut self, timeout: Duration) -> Result<(), Failure> {
        self.lock_timeout = timeout;
        match (&self.connection, &self.home) {
            (Some(connection), Home::File(_) | Home::System) => {
                Ok(connection.busy_timeout(timeout)?)
            }
            // Its limit is read each time that it is used.
            (Some(_), Home::Engine(_)) | (None, _) => Ok(()),
        }
    }

    /// Returns the connection; opens it if necessary.
    pub(crate) fn connection(&mut self, catalog: &Catalog) -> Result<&Connection, Failure> {
        if self.connection.is_none() {
            self.connection = Some(self.open(catalog)?);
        }
        if let Home::Engine(_) = &self.home {
            let database = self.engines.database(&self.name);
            waiting::prepare(database, self.lock_timeout, &self.cancel);
        }
        self.connection
            .as_ref()
            .ok_or_else(|| table::internal_consistency().into())
    }

    /// What the engine says of the last failure of the connection to one of its databases.
    pub(crate) fn reason_of_engine(&self) -> Option<String> {
        let is_engine = matches!(self.home, Home::Engine(_));
        let connection = self.connection.as_ref().filter(|_| is_engine)?;
        let reason = connection.pragma_query_value(None, "windlass_last_error", |row| row.get(0));
        reason.ok().filter(|reason: &String| !reason.is_empty())
    }

    /// `PRAGMA encoding = ...`: the text encoding of a database that is still empty. SQLite accepts
    /// it only as the first statement, so the connection is reopened.
    pub(crate) fn set_encoding(
        &mut self,
        catalog: &Catalog,
        encoding: &str,
    ) -> Result<(), Failure> {
        let connection = self.connection(catalog)?;
        let pages: i64 =
            connection.pragma_query_value(Some("main"), "page_count", |row| row.get(0))?;
        if pages == 0 && !self.is_system() && !self.is_in_transaction() {
            self.connection = None;
            self.encoding = Some(encoding.to_owned());
        }
        Ok(())
    }

    /// Where the session is, to return to.
    pub(crate) fn place(&self) -> Place {
        Place {
            name: self.name.clone(),
            home: self.home.clone(),
            in_use: self.in_use.clone(),
        }
    }

    /// Drops the temporary tables.
    pub(crate) fn forget_temporary(&mut self) {
        self.connection = None;
        self.temporary = None;
    }

    fn open(&mut self, catalog: &Catalog) -> Result<Connection, Failure> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if let Home::File(path) = &self.home {
            windlass_io::own::refuse_special(path)
                .map_err(|error| Failure::from(unreadable_file(path, &error)))?;
        }
        let mut connection = match &self.home {
            // A leading `file:` would make it a URI; absolute paths never have one.
            Home::File(path) => Connection::open_with_flags(path, flags)?,
            Home::Engine(uri) => Connection::open_with_flags(uri, flags)?,
            Home::System => Connection::open_with_flags(":memory:", flags)?,
        };
        match &self.home {
            Home::Engine(_) => connection.busy_handler(Some(waiting::wait))?,
            Home::File(_) | Home::System => connection.busy_timeout(self.lock_timeout)?,
        }
        if let Some(encoding) = &self.encoding {
            connection.pragma_update(None, "encoding", encoding)?;
        }
        let (folder, engines) = (self.folder.clone(), self.engines.clone());
        let sessions = self.sessions.clone();
        views::show(
            &mut connection,
            catalog,
            folder,
            engines,
            sessions,
            &self.name,
        )?;
        let cancel = Arc::clone(&self.cancel);
        connection.progress_handler(
            STEPS_BETWEEN_LOOKS,
            Some(move || cancel.load(Ordering::Relaxed)),
        )?;
        self.program.register(&connection)?;
        self.attach_temporary(&connection)?;
        if self.is_guarded {
            guard::watch(&mut connection)?;
        }
        Ok(connection)
    }

    /// Attaches the session's temporary tables. SQLite only joins databases of one text encoding: beside
    /// a database in UTF-16 there are no temporary tables.
    fn attach_temporary(&mut self, connection: &Connection) -> Result<(), Failure> {
        let encoding: String = connection.pragma_query_value(None, "encoding", |row| row.get(0))?;
        if !encoding.starts_with("UTF-8") {
            return Ok(());
        }
        if self.temporary.is_none() {
            let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
            self.temporary_uri =
                format!("file:windlass-temporary-{number}?mode=memory&cache=shared");
            self.temporary = Some(Connection::open(&self.temporary_uri)?);
        }
        let attach = format!("ATTACH ?1 AS {TEMPORARY}");
        connection.execute(&attach, [&self.temporary_uri])?;
        Ok(())
    }

    /// The names of the session's temporary tables.
    pub(crate) fn temporary_tables(&self) -> Vec<String> {
        // An open transaction hides its tables from the other connection.
        let names = |connection: &Connection, schema: &str| -> rusqlite::Result<Vec<String>> {
            let text = format!(
                "SELECT name FROM {schema}.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            );
            let mut statement = connection.prepare(&text)?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        let found = match (&self.connection, &self.temporary) {
            (_, None) => return Vec::new(),
            (Some(connection), Some(_)) => names(connection, TEMPORARY),
            (None, Some(keeper)) => names(keeper, "main"),
        };
        found.unwrap_or_default()
    }

    /// Whether the current database is a system database, without user data.
    pub(crate) fn is_system(&self) -> bool {
        matches!(self.home, Home::System)
    }

    /// Whether the connection has `path` open.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|connection| has_open(connection, path))
    }

    /// Closes the connection if it has `path` open, to free the file for a backup or restore.
    pub(crate) fn release(&mut self, path: &Path) {
        if self.holds(path) {
            self.connection = None;
            self.ended();
        }
    }

    /// Closes the connection if it is on the database `name`, which also drops SQLite's cache.
    pub(crate) fn leave(&mut self, name: &str) {
        if self.name.eq_ignore_ascii_case(name) {
            self.connection = None;
            self.ended();
        }
    }

    /// No transaction is open any more.
    fn ended(&mut self) {
        self.is_committed &= self.depth == 0;
        if self.depth > 0 {
            self.end = Some(TransactionEnd::RolledBack);
        }
        self.depth = 0;
        self.is_doomed = false;
        self.forget_mark();
    }

    /// How a transaction has ended since the last call.
    pub(crate) fn take_end(&mut self) -> Option<TransactionEnd> {
        self.end.take()
    }

    /// Makes an open transaction one that can only be rolled back.
    pub(crate) fn doom(&mut self) {
        self.is_doomed = self.depth > 0;
    }

    pub(crate) fn is_doomed(&self) -> bool {
        self.is_doomed
    }

    /// Whether the last transaction that ended was rolled back, by whatever.
    pub(crate) fn was_rolled_back(&self) -> bool {
        !self.is_committed
    }

    /// `XACT_STATE()`
    pub(crate) fn transaction_state(&self) -> i64 {
        match (self.depth, self.is_doomed) {
            (0, _) => 0,
            (_, false) => 1,
            (_, true) => -1,
        }
    }

    /// Refuses what a transaction that can only be rolled back cannot do.
    pub(crate) fn refuse_doomed(&self) -> Result<(), Failure> {
        match self.is_doomed {
            true => Err(Failure::ending(table::transaction_doomed())),
            false => Ok(()),
        }
    }

    /// `BEGIN TRANSACTION`
    pub(crate) fn begin(&mut self, catalog: &Catalog) -> Result<(), Failure> {
        self.refuse_doomed()?;
        if self.depth == 0 {
            self.run(catalog, "BEGIN")?;
            self.is_committed = false;
        }
        self.depth += 1;
        Ok(())
    }

    /// The open engine database, if the current one is of the page engine.
    pub(crate) fn engine(&self) -> Option<Arc<Database>> {
        match &self.home {
            Home::Engine(_) => self.engines.database(&self.name),
            Home::File(_) | Home::System => None,
        }
    }

    /// `COMMIT`: the outermost one commits. Returns its mark, if the log has it.
    pub(crate) fn commit(&mut self, catalog: &Catalog) -> Result<Option<Marked>, Failure> {
        self.refuse_doomed()?;
        let mut marked = None;
        match self.depth {
            0 => return Err(table::commit_without_begin().into()),
            1 => {
                self.run(catalog, "COMMIT")?;
                self.is_committed = true;
                self.end = Some(TransactionEnd::Committed);
                marked = self.mark.clone().and_then(|mark| self.marked(mark));
                self.forget_mark();
            }
            _ => {}
        }
        self.depth -= 1;
        Ok(marked)
    }

    /// `ROLLBACK`: ends all levels.
    pub(crate) fn roll_back(&mut self, catalog: &Catalog) -> Result<(), Failure> {
        if self.depth == 0 {
            return Err(table::rollback_without_begin().into());
        }
        self.ended();
        self.run(catalog, "ROLLBACK")
    }

    /// Rolls back an open transaction; returns whether there was one.
    pub(crate) fn roll_back_all(&mut self) -> bool {
        let open = self.is_in_transaction();
        if open && let Some(connection) = &self.connection {
            // If this fails, closing rolls back as well.
            drop(connection.execute_batch("ROLLBACK"));
        }
        self.ended();
        open
    }

    /// SQLite ends a transaction by itself after some errors; the depth must follow.
    pub(crate) fn notice_rollback(&mut self) {
        if self
            .connection
            .as_ref()
            .is_some_and(Connection::is_autocommit)
        {
            self.ended();
        }
    }

    fn run(&mut self, catalog: &Catalog, text: &str) -> Result<(), Failure> {
        Ok(self.connection(catalog)?.execute_batch(text)?)
    }
}

fn has_open(connection: &Connection, path: &Path) -> bool {
    let files = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare("PRAGMA database_list")?;
        let rows = statement.query_map([], |row| row.get::<_, Option<String>>("file"))?;
        rows.filter_map(Result::transpose).collect()
    };
    // If SQLite cannot say, close the connection: that is always safe.
    files().map_or(true, |files| {
        files
            .iter()
            .any(|file| crate::absolute(Path::new(file)).is_ok_and(|file| file == path))
    })
}
