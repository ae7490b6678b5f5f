//! What scripts can read of a catalog: its tables and views under SQL Server's names, with their
//! columns.

use rusqlite::Connection;

use crate::Error;
use crate::error::Doing;

/// A table or view that scripts may read.
#[derive(Debug, Clone)]
pub struct ShownTable {
    pub name: String,
    pub columns: Vec<ShownColumn>,
}

/// A column of a [`ShownTable`].
#[derive(Debug, Clone)]
pub struct ShownColumn {
    pub name: String,
    /// Its declared type; may be empty.
    pub declared_type: String,
}

/// All tables and views that scripts may read; names with the prefix `own_` are excluded.
///
/// `reader` is a connection to the catalog with the functions used by its views.
///
/// # Errors
/// [`Error::Sqlite`].
pub fn shown_tables(reader: &Connection) -> Result<Vec<ShownTable>, Error> {
    const COLUMNS: &str = r"
        SELECT shown.name, column.name, upper(column.type)
        FROM sqlite_schema AS shown, pragma_table_xinfo(shown.name) AS column
        WHERE shown.type IN ('table', 'view')
          AND shown.name NOT LIKE 'own\_%' ESCAPE '\'
          AND shown.name NOT LIKE 'sqlite\_%' ESCAPE '\'
        ORDER BY shown.name, column.cid";
    let doing = "listing its views";
    let mut statement = reader.prepare(COLUMNS).doing(doing)?;
    let mut rows = statement.query([]).doing(doing)?;
    let mut tables: Vec<ShownTable> = Vec::new();
    while let Some(row) = rows.next().doing(doing)? {
        let name: String = row.get(0).doing(doing)?;
        let column: String = row.get(1).doing(doing)?;
        let column = ShownColumn {
            name: column,
            declared_type: row.get(2).doing(doing)?,
        };
        match tables.last_mut().filter(|table| table.name == name) {
            Some(table) => table.columns.push(column),
            None => tables.push(ShownTable {
                name,
                columns: vec![column],
            }),
        }
    }
    Ok(tables)
}
