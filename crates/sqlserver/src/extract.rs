//! The tables of a database, out of its backups.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use windlass_bak::table::{Database, Refusal, Table, Tally, Value};
use windlass_io::directory;

use crate::csv::CsvWriter;
use crate::sqlite::SqliteWriter;
use crate::{Error, Source};

/// Behind the name of what is not finished.
const UNFINISHED_SUFFIX: &str = ".extracting";

/// Takes a row.
pub(crate) type Put<'a> = dyn FnMut(&[Value]) -> Result<(), Error> + 'a;

/// Gives rows to what takes them.
pub(crate) type Fill<'a, T> = dyn FnMut(&mut Put<'_>) -> Result<T, Error> + 'a;

/// What tables become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// One SQLite file.
    #[default]
    Sqlite,
    /// A folder with a CSV file for each.
    Csv,
}

/// What became of a table.
#[derive(Debug)]
pub struct ExtractedTable {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The table or file that it became; nothing if it cannot be read.
    pub written_as: Option<String>,
    /// Rows as the server counts them.
    pub counted_rows: u64,
    /// Rows, pages, and what could not be read.
    pub tally: Tally,
    /// Why it cannot be read at all.
    pub refusal: Option<Refusal>,
    /// Columns that are computed and not stored.
    pub computed: Vec<String>,
    /// Columns that are given as their bytes.
    pub opaque: Vec<String>,
}

impl ExtractedTable {
    /// Whether every row that the server counts was written.
    pub fn is_whole(&self) -> bool {
        self.refusal.is_none()
            && self.tally.problems.count == 0
            && self.tally.rows == self.counted_rows
    }
}

/// What was extracted.
#[derive(Debug)]
pub struct Extracted {
    /// The tables.
    pub tables: Vec<ExtractedTable>,
    /// What could not be read of the system tables.
    pub problems: Vec<String>,
}

/// What is being written.
enum Writer {
    Sqlite(SqliteWriter),
    Csv(CsvWriter),
}

/// Writes the tables of a source: all of them, or those named as `name` or `schema.name`.
///
/// # Errors
/// When there is no such table, when the source cannot be read, or when `to` exists or cannot be written. Then
/// nothing is left there. What could not be read of a table is no error: it is in the report.
pub fn extract(
    source: &mut Source,
    to: &Path,
    format: Format,
    wanted: &[String],
) -> Result<Extracted, Error> {
    if to.symlink_metadata().is_ok() {
        return Err(Error::Exists(to.to_owned()));
    }
    let failed = |error| Error::backup(Path::new("the database"), error);
    let database = Database::open(source).map_err(failed)?;
    let tables = chosen(&database, wanted)?;
    let mut unfinished = OsString::from(to);
    unfinished.push(UNFINISHED_SUFFIX);
    let unfinished = PathBuf::from(unfinished);
    if unfinished.symlink_metadata().is_ok() {
        return Err(Error::Exists(unfinished));
    }
    let written = write(source, &database, &tables, &unfinished, format);
    let written = written.and_then(|tables| {
        sync(&unfinished)?;
        directory::replace(&unfinished, to).map_err(|error| Error::file(to, error))?;
        Ok(tables)
    });
    if written.is_err() {
        let removed = match format {
            Format::Sqlite => std::fs::remove_file(&unfinished),
            Format::Csv => std::fs::remove_dir_all(&unfinished),
        };
        // The error that led here counts more than one in clearing up.
        removed.ok();
    }
    Ok(Extracted {
        tables: written?,
        problems: database.problems.texts.clone(),
    })
}

fn sync(path: &Path) -> Result<(), Error> {
    let synced = std::fs::File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| Error::file(path, error))
}

fn chosen<'d>(database: &'d Database, wanted: &[String]) -> Result<Vec<&'d Table>, Error> {
    let is_called = |table: &Table, name: &str| {
        let full = format!("{}.{}", table.schema, table.name);
        name.eq_ignore_ascii_case(&table.name) || name.eq_ignore_ascii_case(&full)
    };
    for name in wanted {
        if !database.tables.iter().any(|table| is_called(table, name)) {
            return Err(Error::NoSuchTable(name.clone()));
        }
    }
    let tables = database
        .tables
        .iter()
        .filter(|table| wanted.is_empty() || wanted.iter().any(|name| is_called(table, name)));
    Ok(tables.collect())
}

fn write(
    source: &mut Source,
    database: &Database,
    tables: &[&Table],
    to: &Path,
    format: Format,
) -> Result<Vec<ExtractedTable>, Error> {
    let mut writer = match format {
        Format::Sqlite => Writer::Sqlite(SqliteWriter::create(to)?),
        Format::Csv => Writer::Csv(CsvWriter::create(to)?),
    };
    let mut written = Vec::new();
    for table in tables {
        written.push(write_table(source, database, table, &mut writer)?);
    }
    if let Writer::Sqlite(sqlite) = writer {
        sqlite.finish()?;
    }
    Ok(written)
}

fn write_table(
    source: &mut Source,
    database: &Database,
    table: &Table,
    writer: &mut Writer,
) -> Result<ExtractedTable, Error> {
    let opaque = table
        .columns
        .iter()
        .filter(|column| column.sql_type.is_opaque());
    let mut extracted = ExtractedTable {
        schema: table.schema.clone(),
        name: table.name.clone(),
        written_as: None,
        counted_rows: table.counted_rows,
        tally: Tally::default(),
        refusal: table.refusal.clone(),
        computed: table.computed.clone(),
        opaque: opaque.map(|column| column.name.clone()).collect(),
    };
    if table.refusal.is_some() || table.columns.is_empty() {
        return Ok(extracted);
    }
    let mut refused = Refused::default();
    let mut fill = |put: &mut Put<'_>| {
        let tally = database.read(source, table, &mut |row| refused.try_put(put, row));
        match (tally, refused.failure.take()) {
            (_, Some(failure)) => Err(failure),
            (Ok(tally), None) => Ok(tally),
            (Err(error), None) => Err(Error::backup(Path::new("the database"), error)),
        }
    };
    let (name, tally) = match writer {
        Writer::Sqlite(sqlite) => sqlite.table(table, &mut fill)?,
        Writer::Csv(csv) => csv.table(table, &mut fill)?,
    };
    extracted.written_as = Some(name);
    extracted.tally = tally;
    extracted.tally.rows -= refused.count;
    extracted.tally.problems.count += refused.count;
    extracted.tally.problems.texts.extend(refused.texts);
    Ok(extracted)
}

/// Rows that the target does not take.
#[derive(Default)]
struct Refused {
    count: u64,
    texts: Vec<String>,
    failure: Option<Error>,
}

impl Refused {
    /// Texts that are kept.
    const TEXTS_MAX: usize = 20;

    fn try_put(&mut self, put: &mut Put<'_>, row: &[Value]) -> Result<(), windlass_bak::Error> {
        match put(row) {
            Ok(()) => Ok(()),
            Err(Error::Sqlite(error))
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) =>
            {
                self.count += 1;
                if self.texts.len() < Self::TEXTS_MAX {
                    self.texts
                        .push(format!("a row does not fit its own keys: {error}"));
                }
                Ok(())
            }
            Err(error) => {
                self.failure = Some(error);
                Err(std::io::Error::other("the target cannot be written").into())
            }
        }
    }
}
