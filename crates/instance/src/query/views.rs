//! The catalog's views in a session's connection: `sys.databases`, `msdb.dbo.backupset`.

use std::path::PathBuf;

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use windlass_catalog::{Catalog, shown_tables};
use windlass_vfs::lend::{self, LentColumn, LentTable};

use crate::Failure;
use crate::accelerator;
use crate::engine::OpenDatabases;

/// The schema names of T-SQL's system databases.
const SCHEMAS: &[&str] = &["sys", "msdb"];

/// Adds the catalog's views to `connection`, for either text encoding.
pub(super) fn show(
    connection: &mut Connection,
    catalog: &Catalog,
    folder: Option<PathBuf>,
    engines: OpenDatabases,
    database: &str,
) -> Result<(), Failure> {
    let reader = catalog.reader()?;
    add_functions(&reader, folder, engines)?;
    let database = database.to_owned();
    let constant = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    reader.create_scalar_function("windlass_database", 0, constant, move |_| {
        Ok(database.clone())
    })?;
    let shown = shown_tables(&reader)?;
    let lent = shown.into_iter().map(|table| LentTable {
        name: table.name,
        columns: table
            .columns
            .into_iter()
            .map(|column| LentColumn {
                name: column.name,
                declared_type: column.declared_type,
                ignores_case: column.ignores_case,
            })
            .collect(),
    });
    Ok(lend::lend(connection, SCHEMAS, reader, lent.collect())?)
}

/// Adds the functions behind the views of current activity.
fn add_functions(
    reader: &Connection,
    folder: Option<PathBuf>,
    engines: OpenDatabases,
) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8;
    reader.create_scalar_function("windlass_accelerator_status", 3, flags, |context| {
        Ok(accelerator::status(
            context.get(0)?,
            context.get(1)?,
            context.get(2)?,
        ))
    })?;
    let requests = move |_: &Context<'_>| Ok(crate::requests::running(folder.as_deref()));
    reader.create_scalar_function("windlass_requests", 0, flags, requests)?;
    let figures = move |_: &Context<'_>| Ok(engines.figures());
    reader.create_scalar_function("windlass_engine_figures", 0, flags, figures)
}
