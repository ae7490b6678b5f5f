//! The SQLite connection of a session, for all SQL text that Windlass does not execute itself.
//!
//! The connection is opened when a statement first needs it and behaves as in any other SQLite program:
//! writes, checkpoints and temporary tables are the user's own. It has the catalog's views as `sys` and
//! `msdb`, see [`views`]. Without a user database (`master`, `msdb`, `tempdb`) it is an empty database
//! in memory that cannot be written, so that nothing is created only to be lost.
//!
//! Invariant: [`Queries::release`] closes the connection before anything else opens or replaces one
//! of its files.

mod views;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::functions::FunctionFlags;
use rusqlite::types::{Value as SqliteValue, ValueRef};
use rusqlite::{Connection, OpenFlags};
use windlass_base::message::table;
use windlass_catalog::Catalog;

use crate::engine::OpenDatabases;
use crate::message_of::os_error;
use crate::tsql::expression::sqlite_function;
use crate::{Failure, Identity, Value};

/// How long a statement waits for another program's lock unless `SET LOCK_TIMEOUT` says otherwise.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// How many steps SQLite's virtual machine makes between two checks for cancellation.
const STEPS_BETWEEN_LOOKS: i32 = 1000;

/// The T-SQL functions that SQLite lacks and queries may call.
const FUNCTIONS: &[&str] = &[
    "GETDATE",
    "GETUTCDATE",
    "SYSDATETIME",
    "SYSUTCDATETIME",
    "NEWID",
    "YEAR",
    "MONTH",
    "DAY",
    "LEN",
    "DATALENGTH",
    "LEFT",
    "RIGHT",
    "CHARINDEX",
    "REPLICATE",
    "SPACE",
    "STUFF",
    "REVERSE",
    "QUOTENAME",
    "STR",
    "CEILING",
    "FLOOR",
    "POWER",
    "SQRT",
    "ISNUMERIC",
    "ISDATE",
    "EOMONTH",
    "DATEADD",
    "DATEDIFF",
    "DATEDIFF_BIG",
    "DATENAME",
    "DATEPART",
    "TSQL_CONVERT",
    "TSQL_TRY_CONVERT",
    "TSQL_FORMAT",
];

/// The functions about server and login that queries may call.
const IDENTITY_FUNCTIONS: &[&str] = &[
    "SERVERPROPERTY",
    "HOST_NAME",
    "SUSER_SNAME",
    "SUSER_NAME",
    "ORIGINAL_LOGIN",
];

/// The current database and the connection to it.
pub(crate) struct Queries {
    name: String,
    home: Home,
    connection: Option<Connection>,
    /// Requested by `PRAGMA encoding`; has an effect only while the database is empty.
    encoding: Option<String>,
    depth: u32,
    lock_timeout: Duration,
    identity: Identity,
    folder: Option<PathBuf>,
    engines: OpenDatabases,
    cancel: Arc<AtomicBool>,
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
        identity: Identity,
        folder: Option<PathBuf>,
        engines: OpenDatabases,
        cancel: Arc<AtomicBool>,
    ) -> Self {
        Self {
            folder,
            engines,
            name: "master".to_owned(),
            home: Home::System,
            connection: None,
            encoding: None,
            depth: 0,
            lock_timeout: LOCK_TIMEOUT,
            identity,
            cancel,
        }
    }

    /// The name of the current database.
    pub(crate) fn database_name(&self) -> &str {
        &self.name
    }

    /// Makes a database the current one. The caller has checked that no transaction is open.
    pub(crate) fn use_database(&mut self, name: &str, home: Home) {
        self.connection = None;
        self.encoding = None;
        self.depth = 0;
        name.clone_into(&mut self.name);
        self.home = home;
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

    pub(crate) fn set_lock_timeout(&mut self, timeout: Duration) -> Result<(), Failure> {
        self.lock_timeout = timeout;
        match &self.connection {
            Some(connection) => Ok(connection.busy_timeout(timeout)?),
            None => Ok(()),
        }
    }

    /// Returns the connection; opens it if necessary.
    pub(crate) fn connection(&mut self, catalog: &Catalog) -> Result<&Connection, Failure> {
        if self.connection.is_none() {
            self.connection = Some(self.open(catalog)?);
        }
        self.connection
            .as_ref()
            .ok_or_else(|| table::internal_consistency().into())
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

    fn open(&self, catalog: &Catalog) -> Result<Connection, Failure> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if let Home::File(path) = &self.home {
            windlass_io::own::refuse_special(path).map_err(|error| {
                Failure::from(table::cannot_open_file(path.display(), os_error(&error)))
            })?;
        }
        let mut connection = match &self.home {
            // A leading `file:` would make it a URI; absolute paths never have one.
            Home::File(path) => Connection::open_with_flags(path, flags)?,
            Home::Engine(uri) => Connection::open_with_flags(uri, flags)?,
            Home::System => Connection::open_with_flags(":memory:", flags)?,
        };
        connection.busy_timeout(self.lock_timeout)?;
        if let Some(encoding) = &self.encoding {
            connection.pragma_update(None, "encoding", encoding)?;
        }
        let (folder, engines) = (self.folder.clone(), self.engines.clone());
        views::show(&mut connection, catalog, folder, engines)?;
        if self.is_system() {
            connection.pragma_update(None, "query_only", true)?;
        }
        let cancel = Arc::clone(&self.cancel);
        connection.progress_handler(
            STEPS_BETWEEN_LOOKS,
            Some(move || cancel.load(Ordering::Relaxed)),
        )?;
        add_functions(&connection, &self.name, &self.identity)?;
        Ok(connection)
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
            self.depth = 0;
        }
    }

    /// Closes the connection if it is on the database `name`, which also drops SQLite's cache.
    pub(crate) fn leave(&mut self, name: &str) {
        if self.name.eq_ignore_ascii_case(name) {
            self.connection = None;
            self.depth = 0;
        }
    }

    /// `BEGIN TRANSACTION`
    pub(crate) fn begin(&mut self, catalog: &Catalog) -> Result<(), Failure> {
        if self.depth == 0 {
            self.run(catalog, "BEGIN")?;
        }
        self.depth += 1;
        Ok(())
    }

    /// `COMMIT`: the outermost one commits.
    pub(crate) fn commit(&mut self, catalog: &Catalog) -> Result<(), Failure> {
        match self.depth {
            0 => return Err(table::commit_without_begin().into()),
            1 => self.run(catalog, "COMMIT")?,
            _ => {}
        }
        self.depth -= 1;
        Ok(())
    }

    /// `ROLLBACK`: ends all levels.
    pub(crate) fn roll_back(&mut self, catalog: &Catalog) -> Result<(), Failure> {
        if self.depth == 0 {
            return Err(table::rollback_without_begin().into());
        }
        self.depth = 0;
        self.run(catalog, "ROLLBACK")
    }

    /// Rolls back an open transaction; returns whether there was one.
    pub(crate) fn roll_back_all(&mut self) -> bool {
        let open = self.is_in_transaction();
        if open && let Some(connection) = &self.connection {
            // If this fails, closing rolls back as well.
            drop(connection.execute_batch("ROLLBACK"));
        }
        self.depth = 0;
        open
    }

    /// SQLite ends a transaction by itself after some errors; the depth must follow.
    pub(crate) fn notice_rollback(&mut self) {
        if self
            .connection
            .as_ref()
            .is_some_and(Connection::is_autocommit)
        {
            self.depth = 0;
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

fn add_functions(
    connection: &Connection,
    database: &str,
    identity: &Identity,
) -> rusqlite::Result<()> {
    for name in IDENTITY_FUNCTIONS {
        let identity = identity.clone();
        connection.create_scalar_function(
            *name,
            -1,
            FunctionFlags::SQLITE_UTF8,
            move |context| {
                let argument = (!context.is_empty()).then(|| value_of(context.get_raw(0)));
                Ok(to_sqlite(&identity_function(name, argument, &identity)))
            },
        )?;
    }
    for name in FUNCTIONS {
        connection.create_scalar_function(
            *name,
            -1,
            FunctionFlags::SQLITE_UTF8,
            move |context| {
                let arguments = (0..context.len())
                    .map(|index| value_of(context.get_raw(index)))
                    .collect::<Vec<_>>();
                sqlite_function(name, arguments)
                    .map(|value| to_sqlite(&value))
                    .map_err(|failure| {
                        let text = failure.messages.first().map(|message| message.text.clone());
                        rusqlite::Error::UserFunctionError(text.unwrap_or_default().into())
                    })
            },
        )?;
    }
    let database = database.to_owned();
    connection.create_scalar_function("DB_NAME", 0, FunctionFlags::SQLITE_UTF8, move |_| {
        Ok(database.clone())
    })
}

fn identity_function(name: &str, argument: Option<Value>, identity: &Identity) -> Value {
    match (name, argument) {
        ("SERVERPROPERTY", Some(property)) => identity.property(&property.to_string()),
        ("SERVERPROPERTY", None) => Value::Null,
        ("HOST_NAME", _) => Value::text(&identity.machine),
        _ => Value::text(&identity.user),
    }
}

/// Converts a value of SQLite.
pub(crate) fn value_of(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Float(number),
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::Binary(bytes.to_vec()),
    }
}

/// Converts a value for SQLite: exact numbers that do not fit, and dates, become text.
pub(crate) fn to_sqlite(value: &Value) -> SqliteValue {
    match value {
        Value::Null => SqliteValue::Null,
        Value::Bit(bit) => SqliteValue::Integer(i64::from(*bit)),
        Value::Integer(number) => SqliteValue::Integer(*number),
        Value::Float(number) => SqliteValue::Real(*number),
        Value::Decimal(decimal) => match decimal.to_string().parse() {
            Ok(number) => SqliteValue::Integer(number),
            Err(_) => SqliteValue::Real(decimal.to_f64()),
        },
        Value::Binary(bytes) => SqliteValue::Blob(bytes.clone()),
        // In the history's format, so that comparing the texts compares the dates.
        Value::DateTime(at) | Value::DateTime2(at) => {
            SqliteValue::Text(at.strftime("%Y-%m-%d %H:%M:%S%.f").to_string())
        }
        other => SqliteValue::Text(other.to_string()),
    }
}
