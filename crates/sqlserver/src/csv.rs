//! Writes tables as CSV files: RFC 4180, UTF-8. NULL is an empty field, an empty text is two
//! quotation marks.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use windlass_bak::table::{Table, Value};

use crate::Error;
use crate::extract::Fill;
use crate::table_folder::{CSV, TableFile, TableFolder};

/// A folder of CSV files.
#[derive(Debug)]
pub(crate) struct CsvWriter(TableFolder);

impl CsvWriter {
    /// Writes to an empty folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self(TableFolder::new(folder, CSV))
    }

    /// Creates the file of a table; `fill` gets a function that adds rows. Returns the name of the file.
    pub(crate) fn table<T>(
        &mut self,
        table: &Table,
        fill: &mut Fill<'_, T>,
    ) -> Result<(String, T), Error> {
        let TableFile { name, path, file } = self.0.file(table)?;
        let failed = |error| Error::file(&path, error);
        let mut out = BufWriter::new(file);
        let heading: Vec<Value> = table
            .columns
            .iter()
            .map(|column| Value::Text(column.name.clone()))
            .collect();
        write_row(&mut out, &heading).map_err(failed)?;
        let reported = fill(&mut |row| write_row(&mut out, row).map_err(failed))?;
        let file = out
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        Ok((name, reported))
    }
}

fn write_row(out: &mut BufWriter<File>, row: &[Value]) -> std::io::Result<()> {
    for (index, value) in row.iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        match value {
            Value::Null => {}
            Value::Text(text) => write!(out, "\"{}\"", text.replace('"', "\"\""))?,
            other => write!(out, "{other}")?,
        }
    }
    out.write_all(b"\r\n")
}
