//! What a session's connection shows besides the database: the views of `sys`, the history in `msdb`.

pub(crate) mod definition;
mod function;
mod storage;

use std::path::PathBuf;

use rusqlite::Connection;
use windlass_catalog::{Catalog, shown_tables};
use windlass_vfs::lend::{self, LentColumn, LentTable};

use self::definition::{View, views};
use crate::Failure;
use crate::engine::OpenDatabases;
use crate::sessions::Sessions;

/// The schema names of T-SQL's system databases.
const SCHEMAS: &[&str] = &["sys", "msdb"];

/// Adds the views to `connection`, for either text encoding.
pub(super) fn show(
    connection: &mut Connection,
    catalog: &Catalog,
    folder: Option<PathBuf>,
    engines: OpenDatabases,
    sessions: Sessions,
    database: &str,
) -> Result<(), Failure> {
    let reader = catalog.reader()?;
    function::add(&reader, folder, engines, sessions, database)?;
    let mut lent: Vec<LentTable> = views()
        .iter()
        .filter(|view| !view.is_own)
        .map(lent_view)
        .collect();
    for table in shown_tables(&reader)? {
        // Catalogs were made with some of the views in them.
        if views().iter().any(|view| view.name == table.name) {
            continue;
        }
        let columns = table.columns.into_iter().map(|column| LentColumn {
            name: column.name,
            declared_type: column.declared_type,
            ignores_case: false,
        });
        lent.push(LentTable {
            name: table.name,
            rows: None,
            columns: columns.collect(),
        });
    }
    Ok(lend::lend(connection, SCHEMAS, reader, lent)?)
}

fn lent_view(view: &View) -> LentTable {
    let columns = view.columns.iter().map(|column| LentColumn {
        name: column.name.to_owned(),
        declared_type: column.declared_type.to_owned(),
        ignores_case: column.declared_type.starts_with("nvarchar"),
    });
    LentTable {
        name: view.name.to_owned(),
        rows: Some(view.rows()),
        columns: columns.collect(),
    }
}
