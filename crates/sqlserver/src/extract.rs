//! Extracts the tables of a database from its backups.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use windlass_bak::table::{Database, Refusal, Table, Tally, Unsettled, UnsettledObject, Value};
use windlass_io::{directory, output, own};

use crate::csv::CsvWriter;
use crate::parquet::ParquetWriter;
use crate::sqlite::SqliteWriter;
use crate::table_folder::{CSV, PARQUET, claim_folder};
use crate::{Error, Source};

/// Suffix of unfinished files.
const UNFINISHED_SUFFIX: &str = ".extracting";

/// Receives a row.
pub(crate) type Put<'a> = dyn FnMut(&[Value]) -> Result<(), Error> + 'a;

/// Produces rows and passes them to the receiver.
pub(crate) type Fill<'a, T> = dyn FnMut(&mut Put<'_>) -> Result<T, Error> + 'a;

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// One SQLite file.
    #[default]
    Sqlite,
    /// A folder with one CSV file per table.
    Csv,
    /// A folder with one Parquet file per table.
    Parquet,
}

/// The result for one table.
#[derive(Debug)]
pub struct ExtractedTable {
    pub schema: String,
    pub name: String,
    /// The name of the table or file written; `None` if it cannot be read.
    pub written_as: Option<String>,
    /// Number of rows according to the server.
    pub counted_rows: u64,
    /// Rows, pages, and problems.
    pub tally: Tally,
    /// Why it cannot be read at all.
    pub refusal: Option<Refusal>,
    /// Names of its computed columns that are not stored.
    pub computed: Vec<String>,
    /// Number of its columns whose names are missing: they are numbered.
    pub unnamed_columns: usize,
    /// Names of the columns written as bytes, without decoding.
    pub opaque: Vec<String>,
    /// What the log of the backup says against its pages.
    pub unsettled: Option<UnsettledObject>,
    /// Its foreign keys that a SQLite file was not given, with the reason.
    pub foreign_keys_left_out: Vec<String>,
}

impl ExtractedTable {
    /// Whether every row that the server counts was written, with the names of its columns and no value in its stored
    /// form that should be another, and none that a server would undo.
    pub fn is_whole(&self) -> bool {
        self.refusal.is_none()
            && self.tally.problems.count == 0
            && self.tally.undecoded.count == 0
            && self.unnamed_columns == 0
            && self.unsettled.is_none()
            && self.tally.rows == self.counted_rows
    }
}

/// The result of an extraction.
#[derive(Debug)]
pub struct Extracted {
    pub tables: Vec<ExtractedTable>,
    /// Problems with reading the system tables.
    pub problems: Vec<String>,
    /// What the log of the backup says against its pages; `None` for data files.
    pub unsettled: Option<Unsettled>,
}

/// The output being written.
enum Writer {
    Sqlite(SqliteWriter),
    Csv(CsvWriter),
    Parquet(ParquetWriter),
}

/// Writes the tables of a source: all of them, or those named as `name` or `schema.name`.
///
/// # Errors
/// A table does not exist, the source cannot be read, or `to` already exists or cannot be written.
/// In that case no file is left behind. Problems with reading a table are not errors; they are in
/// the report.
pub fn extract(
    source: &mut Source,
    to: &Path,
    format: Format,
    wanted: &[String],
) -> Result<Extracted, Error> {
    extract_within(source, to, format, wanted, None)
}

/// As [`extract`], to a SQLite file of at most `bytes_max`.
///
/// # Errors
/// As [`extract`]; [`Error::Sqlite`] if the file would be larger.
pub fn extract_within(
    source: &mut Source,
    to: &Path,
    format: Format,
    wanted: &[String],
    bytes_max: Option<u64>,
) -> Result<Extracted, Error> {
    if to.symlink_metadata().is_ok() {
        return Err(Error::Exists(to.to_owned()));
    }
    refuse_log(to, format)?;
    let mut database = Database::open(source).map_err(Error::database)?;
    let unsettled = match source.log.clone() {
        Some(log) => Some(database.unsettled(source, &log).map_err(Error::database)?),
        None => None,
    };
    let chosen = chosen(&database, wanted)?;
    let mut unfinished = OsString::from(to);
    unfinished.push(UNFINISHED_SUFFIX);
    let unfinished = PathBuf::from(unfinished);
    // What a killed extraction left is replaced.
    let _claim = match format {
        Format::Csv => claim_folder(&unfinished, CSV)?,
        Format::Parquet => claim_folder(&unfinished, PARQUET)?,
        Format::Sqlite => {
            refuse_log(&unfinished, format)?;
            claim(&unfinished)?
        }
    };
    let written = write(source, &database, &chosen, &unfinished, (format, bytes_max));
    let written = written.and_then(|tables| {
        sync(&unfinished)?;
        refuse_log(to, format)?;
        directory::take_name(&unfinished, to).map_err(|error| Error::file(to, error))?;
        Ok(tables)
    });
    if written.is_err() {
        let removed = match format {
            Format::Sqlite => std::fs::remove_file(&unfinished),
            Format::Csv | Format::Parquet => std::fs::remove_dir_all(&unfinished),
        };
        // The original error matters more than one during cleanup.
        removed.ok();
    }
    let mut tables = written?;
    for (written, table) in tables.iter_mut().zip(&chosen) {
        let found = unsettled
            .as_ref()
            .and_then(|found| found.object(table.object));
        written.unsettled = found.cloned();
    }
    let found = &database.problems;
    let mut problems = found.texts.clone();
    let more = found.count.saturating_sub(problems.len() as u64);
    if more > 0 {
        problems.push(format!("and {more} more"));
    }
    Ok(Extracted {
        tables,
        problems,
        unsettled,
    })
}

fn refuse_log(to: &Path, format: Format) -> Result<(), Error> {
    match format {
        Format::Sqlite => own::refuse_left_log(to).map_err(|error| Error::file(to, error)),
        Format::Csv | Format::Parquet => Ok(()),
    }
}

/// An empty file that SQLite writes: nobody else takes its name, or removes it, while it is held.
fn claim(path: &Path) -> Result<File, Error> {
    let make = || {
        let file = own::claim_file(path)?;
        let mode = output::MODE_PUBLIC & !directory::umask();
        file.set_permissions(Permissions::from_mode(mode))?;
        Ok(file)
    };
    make().map_err(|error| Error::file(path, error))
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
            let name = name.clone();
            return Err(match database.problems.texts.first().cloned() {
                Some(damage) => Error::LostTable { name, damage },
                None => Error::NoSuchTable(name),
            });
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
    (format, bytes_max): (Format, Option<u64>),
) -> Result<Vec<ExtractedTable>, Error> {
    let mut writer = match format {
        Format::Sqlite => {
            let tables = tables.iter().copied().filter(|table| is_written(table));
            Writer::Sqlite(SqliteWriter::create(to, bytes_max, tables)?)
        }
        Format::Csv => Writer::Csv(CsvWriter::new(to)),
        Format::Parquet => Writer::Parquet(ParquetWriter::new(to)),
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

fn is_written(table: &Table) -> bool {
    table.refusal.is_none() && !table.columns.is_empty()
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
        unnamed_columns: table.unnamed_columns,
        opaque: opaque.map(|column| column.name.clone()).collect(),
        unsettled: None,
        foreign_keys_left_out: Vec::new(),
    };
    if !is_written(table) {
        return Ok(extracted);
    }
    if let Writer::Sqlite(sqlite) = writer {
        extracted.foreign_keys_left_out = sqlite.left_out(table);
    }
    let mut refused = Refused::default();
    let mut fill = |put: &mut Put<'_>| {
        let tally = database.read(source, table, &mut |row| refused.try_put(put, row));
        match (tally, refused.failure.take()) {
            (_, Some(failure)) => Err(failure),
            (Ok(tally), None) => Ok(tally),
            (Err(error), None) => Err(Error::database(error)),
        }
    };
    let (name, tally) = match writer {
        Writer::Sqlite(sqlite) => sqlite.table(table, &mut fill)?,
        Writer::Csv(csv) => csv.table(table, &mut fill)?,
        Writer::Parquet(parquet) => parquet.table(table, &mut fill)?,
    };
    extracted.written_as = Some(name);
    extracted.tally = tally;
    extracted.tally.rows -= refused.count;
    extracted.tally.problems.count += refused.count;
    extracted.tally.problems.texts.extend(refused.texts);
    Ok(extracted)
}

/// Rows that the output rejected.
#[derive(Default)]
struct Refused {
    count: u64,
    texts: Vec<String>,
    failure: Option<Error>,
}

impl Refused {
    /// Maximum number of texts kept.
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
