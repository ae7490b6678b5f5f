//! Writes tables as Parquet files: one per table, compressed with ZSTD.
//!
//! Types are exact: what a Parquet type cannot hold for every value of the SQL Server type is text, such as
//! `datetime2(7)`, whose range no timestamp in nanoseconds has. The declared types are in the metadata of the file.
//! Rows are collected for a row group, of at most [`GROUP_BYTES_MAX`].

mod column;
mod time;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use windlass_bak::table::{Table, Value};

use self::column::ColumnBuffer;
use crate::Error;
use crate::extract::Fill;
use crate::table_folder::{PARQUET, TableFile, TableFolder};

/// Bytes of values that are collected before they are written.
const GROUP_BYTES_MAX: usize = 32 << 20;

/// Rows that are collected before they are written.
const GROUP_ROWS_MAX: usize = 1 << 20;

/// A folder of Parquet files.
#[derive(Debug)]
pub(crate) struct ParquetWriter(TableFolder);

impl ParquetWriter {
    /// Writes to an empty folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self(TableFolder::new(folder, PARQUET))
    }

    /// Creates the file of a table; `fill` gets a function that adds rows. Returns the name of the file.
    pub(crate) fn table<T>(
        &mut self,
        table: &Table,
        fill: &mut Fill<'_, T>,
    ) -> Result<(String, T), Error> {
        let TableFile { name, path, file } = self.0.file(table)?;
        let mut writer = TableWriter::new(table, file).map_err(|error| failed(&path, error))?;
        let reported = fill(&mut |row| writer.put(row).map_err(|error| error.at(&path)))?;
        let file = writer.finish().map_err(|error| failed(&path, error))?;
        file.sync_all().map_err(|error| Error::file(&path, error))?;
        Ok((name, reported))
    }
}

fn failed(path: &Path, error: parquet::errors::ParquetError) -> Error {
    let source = match error {
        parquet::errors::ParquetError::External(source) => std::io::Error::other(source),
        error => std::io::Error::other(error),
    };
    Error::file(path, source)
}

/// Why a row is not written.
enum Trouble {
    File(parquet::errors::ParquetError),
    /// A value that the type of its column cannot hold.
    Value {
        column: String,
        value: String,
    },
}

impl Trouble {
    fn at(self, path: &Path) -> Error {
        match self {
            Self::File(error) => failed(path, error),
            Self::Value { column, value } => Error::Inexact { column, value },
        }
    }
}

/// The file of a table.
struct TableWriter {
    file: SerializedFileWriter<File>,
    names: Vec<String>,
    columns: Vec<ColumnBuffer>,
    rows: usize,
    bytes: usize,
}

impl TableWriter {
    fn new(table: &Table, file: File) -> Result<Self, parquet::errors::ParquetError> {
        let columns: Vec<ColumnBuffer> = table.columns.iter().map(ColumnBuffer::of).collect();
        let mut fields = Vec::new();
        for (column, buffer) in table.columns.iter().zip(&columns) {
            fields.push(Arc::new(buffer.schema(&column.name)?));
        }
        let schema = Type::group_type_builder("schema")
            .with_fields(fields)
            .build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by("windlass".to_owned())
            .build();
        let mut file = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        for column in &table.columns {
            let key = format!("sql_server.type.{}", column.name);
            file.append_key_value_metadata(KeyValue::new(key, column.declaration()));
        }
        Ok(Self {
            file,
            names: table
                .columns
                .iter()
                .map(|column| column.name.clone())
                .collect(),
            columns,
            rows: 0,
            bytes: 0,
        })
    }

    fn put(&mut self, row: &[Value]) -> Result<(), Trouble> {
        for (index, (buffer, value)) in self.columns.iter_mut().zip(row).enumerate() {
            let Some(bytes) = buffer.put(value) else {
                return Err(Trouble::Value {
                    column: self.names.get(index).cloned().unwrap_or_default(),
                    value: value.to_string(),
                });
            };
            self.bytes += bytes;
        }
        self.rows += 1;
        if self.rows >= GROUP_ROWS_MAX || self.bytes >= GROUP_BYTES_MAX {
            self.write_group().map_err(Trouble::File)?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), parquet::errors::ParquetError> {
        let mut group = self.file.next_row_group()?;
        for buffer in &mut self.columns {
            if let Some(mut column) = group.next_column()? {
                buffer.write(&mut column)?;
                column.close()?;
            }
        }
        group.close()?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    fn finish(mut self) -> Result<File, parquet::errors::ParquetError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.into_inner()
    }
}
