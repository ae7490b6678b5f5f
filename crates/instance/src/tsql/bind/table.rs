//! Tables: where a name leads, and which types its columns have.

use windlass_base::message::table as messages;
use windlass_tsql::ast::{Expr, ObjectName};
use windlass_tsql::span::Spanned;

use super::{Binder, is_same, quoted};
use crate::query::views::definition::views;
use crate::tsql::expression::Bound;
use crate::{DataType, Failure, IntegerType};

type Result<T> = std::result::Result<T, Failure>;

/// A table as SQLite names it, and its columns.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) sql: String,
    pub(crate) columns: Vec<(String, DataType)>,
    /// Which schema of SQLite it is in.
    pub(crate) schema: String,
}

impl Table {
    /// Whether only Windlass reads it.
    pub(crate) fn is_temporary(&self) -> bool {
        self.schema == TEMPORARY
    }
}

/// What `sys.objects` adds to the numbers of SQLite's schema table: those below belong to the system.
const FIRST_OBJECT: i64 = 100;

/// The schema of temporary tables and table variables.
pub(crate) const TEMPORARY: &str = "tempdb";

impl Binder<'_> {
    /// The schema of SQLite that a name leads to.
    pub(crate) fn schema_of(&self, name: &ObjectName) -> Result<String> {
        if name.object.text.starts_with('#') {
            return Ok(TEMPORARY.to_owned());
        }
        let current = self.session.current_database().to_owned();
        let mut qualifiers: Vec<Option<&str>> = name
            .qualifiers
            .iter()
            .map(|qualifier| qualifier.as_ref().map(|qualifier| qualifier.text.as_str()))
            .collect();
        if qualifiers.len() == 3 {
            let server = qualifiers.remove(0);
            let own = &self.session.instance.identity().server;
            if server.is_some_and(|server| !is_same(server, own)) {
                return Err(messages::server_unknown(server.unwrap_or_default()).into());
            }
        }
        let of_database = |database: &str| {
            if is_same(database, "master") {
                "sys".to_owned()
            } else if is_same(database, "msdb") || is_same(database, "tempdb") {
                database.to_lowercase()
            } else {
                "main".to_owned()
            }
        };
        let own = of_database(&current);
        match qualifiers.as_slice() {
            [] | [None] => Ok(own),
            [Some(schema)] if is_same(schema, "dbo") => Ok(own),
            [Some(schema)] if is_same(schema, "sys") => Ok("sys".to_owned()),
            [Some(schema)] => Ok(schema.to_lowercase()),
            [database, schema] => {
                let database = database.unwrap_or(&current);
                if schema.is_some_and(|schema| is_same(schema, "sys")) {
                    return Ok("sys".to_owned());
                }
                let is_known = ["master", "msdb", "tempdb", &current]
                    .iter()
                    .any(|known| is_same(known, database));
                if is_known {
                    return Ok(of_database(database));
                }
                let hint = format!("Write USE {database} before the statement.");
                Err(messages::statement_not_supported(
                    "A query of another database than the current one",
                    hint,
                )
                .into())
            }
            _ => Err(messages::object_unknown(name).into()),
        }
    }

    pub(super) fn table(&mut self, name: &ObjectName) -> Result<Table> {
        let schema = self.schema_of(name)?;
        let object = &name.object.text;
        let found = self.table_in(&schema, object)?;
        // SQLite's own temporary tables have no `#`.
        let found = match found {
            None if schema == "main" && name.qualifiers.is_empty() => {
                self.table_in("temp", object)?
            }
            found => found,
        };
        found.ok_or_else(|| Failure::ending(messages::object_unknown(name)))
    }

    fn table_in(&mut self, schema: &str, object: &str) -> Result<Option<Table>> {
        if schema == "sys"
            && let Some(view) = own_view(object)
        {
            return Ok(Some(view));
        }
        let sql = format!("{}.{}", quoted(schema), quoted(object));
        let columns = self.declared_columns(&sql)?;
        Ok(columns.map(|columns| {
            let columns = columns.into_iter().map(|(name, declared)| {
                let ty = match schema {
                    "sys" | "msdb" => catalog_type(&name, &declared),
                    TEMPORARY => own_type(&declared),
                    _ => declared_type(&declared),
                };
                (name, ty)
            });
            Table {
                sql: sql.clone(),
                columns: columns.collect(),
                schema: schema.to_owned(),
            }
        }))
    }

    /// Name and declared type of the columns; `None` if there is no such table.
    fn declared_columns(&mut self, sql: &str) -> Result<Option<Vec<(String, String)>>> {
        let connection = self
            .session
            .queries
            .connection(self.session.instance.catalog())?;
        let statement = match connection.prepare(&format!("SELECT * FROM {sql} LIMIT 0")) {
            Ok(statement) => statement,
            Err(error) if is_unknown(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let columns = statement.columns();
        let columns = columns.into_iter().map(|column| {
            let declared = column.decl_type().unwrap_or_default();
            (column.name().to_owned(), declared.to_owned())
        });
        Ok(Some(columns.collect()))
    }

    /// The columns of one of SQLite's table functions.
    pub(super) fn function_columns(&mut self, name: &str) -> Result<Table> {
        let sql = quoted(name);
        let columns = self.declared_columns(&sql)?;
        let columns = columns.ok_or_else(|| Failure::from(messages::object_unknown(name)))?;
        let columns = columns
            .into_iter()
            .map(|(name, declared)| (name, declared_type(&declared)));
        Ok(Table {
            sql,
            columns: columns.collect(),
            schema: "main".to_owned(),
        })
    }

    /// The number of the table of that name, for `OBJECT_ID`: the one that `sys.objects` shows.
    pub(super) fn object_number(&mut self, name: &str) -> Result<Option<i64>> {
        let parsed = windlass_tsql::parse_batch(&format!("DROP TABLE {name}"));
        let Ok([statement]) = parsed.as_deref() else {
            return Ok(None);
        };
        let windlass_tsql::ast::Statement::Sql(sql) = &statement.node else {
            return Ok(None);
        };
        let windlass_tsql::ast::SqlTree::DropTable { names, .. } = &sql.tree else {
            return Ok(None);
        };
        let [name] = names.as_slice() else {
            return Ok(None);
        };
        let Ok(table) = self.table(&name.node) else {
            return Ok(None);
        };
        let connection = self
            .session
            .queries
            .connection(self.session.instance.catalog())?;
        let text = format!(
            "SELECT rowid FROM {}.sqlite_schema WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view')",
            quoted(&table.schema)
        );
        let found = connection.query_row(&text, [&name.node.object.text], |row| row.get(0));
        let row: i64 = found.unwrap_or(0);
        // As on SQL Server, system and temporary objects have negative numbers.
        Ok(Some(match table.schema.as_str() {
            "main" => FIRST_OBJECT + row,
            _ => -1 - row,
        }))
    }

    /// A function of SQLite's own, such as `randomblob`.
    pub(super) fn sqlite_function(
        &mut self,
        function: &ObjectName,
        arguments: &[Spanned<Expr>],
    ) -> Result<Bound> {
        let unknown =
            || Failure::from(messages::not_recognized(function, "built-in function name"));
        let name = function.object.text.to_lowercase();
        if !function.qualifiers.is_empty() || name.starts_with("windlass_") {
            return Err(unknown());
        }
        let connection = self
            .session
            .queries
            .connection(self.session.instance.catalog())?;
        let kinds: Option<String> = connection.query_row(
            "SELECT group_concat(type, '') FROM pragma_function_list WHERE name = ?1",
            [&name],
            |row| row.get(0),
        )?;
        if !kinds.is_some_and(|kinds| kinds.contains('s')) {
            return Err(unknown());
        }
        let mut written = Vec::new();
        for argument in arguments {
            let bound = self.expression(&argument.node)?;
            written.push(self.emit_stored(&bound));
        }
        let sql = format!("{name}({})", written.join(", "));
        Ok(self.leaf(sql, DataType::Variant))
    }
}

/// A view of the database that the session's connection has open.
pub(super) fn own_view(name: &str) -> Option<Table> {
    let mut own = views().iter().filter(|view| view.is_own);
    let view = own.find(|view| view.name.eq_ignore_ascii_case(name))?;
    let columns = view.columns.iter();
    Some(Table {
        sql: format!("({})", view.rows()),
        columns: columns
            .map(|column| (column.name.to_owned(), own_type(column.declared_type)))
            .collect(),
        schema: "sys".to_owned(),
    })
}

fn is_unknown(error: &rusqlite::Error) -> bool {
    let text = error.to_string();
    ["no such table", "unknown database", "no such module"]
        .iter()
        .any(|begin| text.contains(begin))
}

/// The type of a column that a table of SQLite's declares. Integers have 64 bits there, whatever the name,
/// and what is no type of T-SQL holds values of any type.
fn declared_type(declared: &str) -> DataType {
    let upper = declared.to_ascii_uppercase();
    let word = upper.split(['(', ' ']).next().unwrap_or("");
    match word {
        "INT" | "INTEGER" | "BIGINT" | "SMALLINT" | "TINYINT" | "MEDIUMINT" => DataType::BIGINT,
        "TEXT" | "CLOB" | "STRING" => DataType::TEXT,
        "REAL" | "FLOAT" | "DOUBLE" => DataType::Float,
        "DATETIME" | "SMALLDATETIME" | "DATETIME2" | "DATE" | "TIME" | "MONEY" | "SMALLMONEY"
        | "BIT" | "UNIQUEIDENTIFIER" | "VARCHAR" | "NVARCHAR" | "CHAR" | "NCHAR" | "VARBINARY"
        | "BINARY" => own_type(declared),
        "DECIMAL" | "NUMERIC" if upper.contains('(') => own_type(declared),
        _ => DataType::Variant,
    }
}

/// The type that Windlass itself has declared.
pub(crate) fn own_type(declared: &str) -> DataType {
    let parsed = windlass_tsql::parse_batch(&format!("DECLARE @x {declared}"));
    let Ok([statement]) = parsed.as_deref() else {
        return DataType::Variant;
    };
    let windlass_tsql::ast::Statement::Declare(declarations) = &statement.node else {
        return DataType::Variant;
    };
    let declaration = declarations.first();
    declaration
        .and_then(|declaration| DataType::of(&declaration.data_type, 1))
        .unwrap_or(DataType::Variant)
}

/// The type that SQL Server gives a column of its catalog; the catalog itself keeps dates and identifiers
/// as text.
fn catalog_type(name: &str, declared: &str) -> DataType {
    // Views are defined with T-SQL's types, in lower case; SQLite shows this one in capitals, and the catalog's
    // tables do not have it.
    if declared == "INT" || declared.starts_with(|first: char| first.is_ascii_lowercase()) {
        return own_type(declared);
    }
    history_type(name, declared)
}

/// The type of a column of the tables of `msdb`.
fn history_type(name: &str, declared: &str) -> DataType {
    let lower = name.to_ascii_lowercase();
    let ends = |end: &str| lower.ends_with(end);
    if ends("_date")
        || ends("_time") && declared.eq_ignore_ascii_case("text")
        || matches!(
            lower.as_str(),
            "crdate" | "start_time" | "differential_base_time" | "stop_at"
        )
    {
        return DataType::DateTime;
    }
    if ends("_lsn") {
        return DataType::Decimal {
            precision: 25,
            scale: 0,
        };
    }
    if ends("_guid") || ends("_uuid") {
        return DataType::Guid;
    }
    if lower.starts_with("is_")
        || lower.starts_with("has_")
        || matches!(
            lower.as_str(),
            "replace" | "recovery" | "restart" | "stop_before" | "begins_log_chain"
        )
    {
        return DataType::Bit;
    }
    if matches!(
        lower.as_str(),
        "backup_size" | "compressed_backup_size" | "file_size" | "backed_up_page_count"
    ) {
        return DataType::Decimal {
            precision: 20,
            scale: 0,
        };
    }
    let small = [
        "compatibility_level",
        "mirror",
        "time_zone",
        "sort_order",
        "device_type",
        "family_sequence_number",
    ];
    match declared.to_ascii_uppercase().as_str() {
        _ if lower == "state" || lower == "recovery_model" && declared.starts_with("INT") => {
            DataType::Integer(IntegerType::TinyInt)
        }
        "INTEGER" | "INT" if small.contains(&lower.as_str()) || ends("_id") || lower == "dbid" => {
            DataType::INT
        }
        "INTEGER" | "INT" => DataType::BIGINT,
        "TEXT" => DataType::text(4000, true),
        "REAL" => DataType::Float,
        "BLOB" => DataType::Binary {
            limit: None,
            padded: false,
        },
        _ => match lower.as_str() {
            "database_id" | "dbid" | "file_id" | "type" => DataType::INT,
            "name"
            | "state_desc"
            | "recovery_model_desc"
            | "type_desc"
            | "collation_name"
            | "physical_name" => DataType::text(4000, true),
            _ => DataType::Variant,
        },
    }
}
