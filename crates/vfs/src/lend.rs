//! Makes tables and views of one SQLite connection available, read-only, in another.
//!
//! `ATTACH` would suffice, but SQLite does not attach databases with another text encoding: a
//! session on a UTF-16 database could not query the catalog. Here the borrower gets schemas of
//! virtual tables, whose rows come from the lender's connection, with texts converted. This also
//! keeps a transaction of the borrower from holding a lock on the lender's file.
//!
//! Invariants:
//! - The borrower's schemas are read-only images: nothing can be changed, created or dropped in
//!   them.
//! - A statement reads one state of the lender: its read transaction lasts from the first open
//!   cursor to the last.
//! - A condition is passed to the lender only if its comparison finds at least the rows that the
//!   borrower's finds; the borrower checks each row again.
#![expect(unsafe_code, reason = "SQLite's virtual tables are C structures")]

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::types::Value;
use rusqlite::vtab::{
    Context, CreateVTab, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConnection,
    VTabCursor, VTabKind, escape_double_quote, sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result, ffi};

/// The name of the module in `CREATE VIRTUAL TABLE`.
const MODULE: &str = "windlass_lent";

/// The row count that SQLite should assume for a whole table; only the ratio to one row matters.
const ROWS_EXPECTED: f64 = 10_000.0;

/// A table or view that is lent.
#[derive(Debug, Clone)]
pub struct LentTable {
    /// Its name for the borrower.
    pub name: String,
    /// The lender's SQL for its rows, if it is no table or view of that name.
    pub rows: Option<String>,
    pub columns: Vec<LentColumn>,
}

/// A column of a [`LentTable`].
#[derive(Debug, Clone)]
pub struct LentColumn {
    pub name: String,
    /// Its declared type, which determines its affinity; may be empty.
    pub declared_type: String,
    /// Whether it compares as `NOCASE`; otherwise as `BINARY`.
    pub ignores_case: bool,
}

/// Lends `tables` of `lender` to `borrower` as each of `schemas`, in the borrower's text encoding.
///
/// # Errors
/// SQLite's, also if the borrower's main database cannot be read.
pub fn lend(
    borrower: &mut Connection,
    schemas: &[&str],
    lender: Connection,
    tables: Vec<LentTable>,
) -> Result<()> {
    let shared = Shared(Arc::new(Lender {
        tables,
        state: Mutex::new(State {
            connection: lender,
            cursors: 0,
        }),
    }));
    let encoding: String =
        borrower.pragma_query_value(Some("main"), "encoding", |row| row.get(0))?;
    let image = image(&shared, &encoding)?;
    register(borrower, &shared)?;
    for schema in schemas {
        borrower.execute_batch(&format!("ATTACH ':memory:' AS {}", quoted(schema)))?;
        borrower.deserialize_read_exact(*schema, image.as_slice(), image.len(), true)?;
    }
    Ok(())
}

fn register(connection: &Connection, shared: &Shared) -> Result<()> {
    const LENT: &Module<'_, Lent> = &Module::read_only_module();
    connection.create_module(MODULE, LENT, Some(shared.clone()))
}

/// A database of `encoding` that contains only the virtual tables.
fn image(shared: &Shared, encoding: &str) -> Result<Vec<u8>> {
    let mut maker = Connection::open_in_memory()?;
    maker.pragma_update(None, "encoding", encoding)?;
    register(&maker, shared)?;
    let mut text = String::from("BEGIN;");
    for table in &shared.0.tables {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "CREATE VIRTUAL TABLE {} USING {MODULE};",
            quoted(&table.name)
        );
    }
    text.push_str("COMMIT");
    maker.execute_batch(&text)?;
    Ok(maker.serialize("main")?.to_vec())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", escape_double_quote(name))
}

/// What all tables of a borrower share.
#[derive(Clone)]
struct Shared(Arc<Lender>);

struct Lender {
    tables: Vec<LentTable>,
    state: Mutex<State>,
}

struct State {
    connection: Connection,
    cursors: usize,
}

impl Lender {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Result<()> {
        let mut state = self.state();
        if state.cursors == 0 {
            state.connection.execute_batch("BEGIN")?;
        }
        state.cursors += 1;
        Ok(())
    }

    fn end(&self) {
        let mut state = self.state();
        state.cursors -= 1;
        if state.cursors == 0 {
            // Nothing was written. COMMIT fails, harmlessly, if SQLite has already ended the
            // transaction.
            drop(state.connection.execute_batch("COMMIT"));
        }
    }
}

/// A table as the borrower's connection sees it.
#[repr(C)]
struct Lent {
    base: sqlite3_vtab,
    lender: Arc<Lender>,
    table: LentTable,
}

// SAFETY: the structure is `repr(C)` and `sqlite3_vtab` is its first field.
unsafe impl VTab<'_> for Lent {
    type Aux = Shared;
    type Cursor = Rows;

    fn connect(
        _: &mut VTabConnection,
        shared: Option<&Shared>,
        _module: &[u8],
        _database: &[u8],
        name: &[u8],
        _arguments: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let missing = || Error::ModuleError("a table that nobody lends".to_owned());
        let lender = Arc::clone(&shared.ok_or_else(missing)?.0);
        let found = lender
            .tables
            .iter()
            .find(|table| table.name.as_bytes() == name);
        let table = found.cloned().ok_or_else(missing)?;
        let declaration = CString::new(table.declaration())?;
        let lent = Self {
            base: sqlite3_vtab::default(),
            lender,
            table,
        };
        Ok((Cow::Owned(declaration), lent))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut wanted = Wanted {
            used: info.col_used(),
            equal: Vec::new(),
        };
        let mut taken = Vec::new();
        for (index, constraint) in info.constraints().enumerate() {
            let column = usize::try_from(constraint.column()).ok();
            let column = column.and_then(|number| Some((number, self.table.columns.get(number)?)));
            let is_equal = constraint.operator() == IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ;
            let Some((number, column)) = column.filter(|_| is_equal && constraint.is_usable())
            else {
                continue;
            };
            if info
                .collation(index)?
                .eq_ignore_ascii_case(column.collation())
            {
                wanted.equal.push(number);
                taken.push(index);
            }
        }
        for (position, index) in taken.iter().enumerate() {
            let position = c_int::try_from(position + 1).unwrap_or(c_int::MAX);
            info.constraint_usage(*index).set_argv_index(position);
        }
        let share = 10_f64.powi(i32::try_from(taken.len()).unwrap_or(4).min(4));
        info.set_estimated_cost(ROWS_EXPECTED / share);
        info.set_estimated_rows((ROWS_EXPECTED / share) as i64);
        info.set_idx_str(&wanted.to_text());
        Ok(true)
    }

    fn open(&mut self) -> Result<Rows> {
        self.lender.begin()?;
        Ok(Rows {
            base: sqlite3_vtab_cursor::default(),
            lender: Arc::clone(&self.lender),
            table: self.table.clone(),
            found: Vec::new(),
            position: 0,
        })
    }
}

impl CreateVTab<'_> for Lent {
    const KIND: VTabKind = VTabKind::Default;
}

impl LentTable {
    /// The equivalent `CREATE TABLE` statement.
    fn declaration(&self) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|column| {
                let name = quoted(&column.name);
                format!(
                    "{name} {} COLLATE {}",
                    column.declared_type,
                    column.collation()
                )
            })
            .collect();
        format!("CREATE TABLE lent ({})", columns.join(", "))
    }

    /// The query for the rows that `wanted` describes; a value of `None` stands for a condition that
    /// is not passed to the lender.
    fn query(&self, wanted: &Wanted, values: &[Option<Value>]) -> String {
        let columns: Vec<Cow<'_, str>> = self
            .columns
            .iter()
            .enumerate()
            .map(|(number, column)| match wanted.uses(number) {
                true => Cow::Owned(quoted(&column.name)),
                false => Cow::Borrowed("NULL"),
            })
            .collect();
        let from = match &self.rows {
            Some(rows) => format!("({rows})"),
            None => quoted(&self.name),
        };
        let mut text = format!("SELECT {} FROM {from}", columns.join(", "));
        let mut joint = "WHERE";
        for (position, number) in wanted.equal.iter().enumerate() {
            let (Some(column), Some(Some(_))) = (self.columns.get(*number), values.get(position))
            else {
                continue;
            };
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                " {joint} {} = ?{}",
                quoted(&column.name),
                position + 1
            );
            joint = "AND";
        }
        text
    }
}

impl LentColumn {
    fn collation(&self) -> &'static str {
        if self.ignores_case {
            "NOCASE"
        } else {
            "BINARY"
        }
    }

    /// Whether comparing with the parameter `value` finds everything that comparing with the
    /// borrower's expression finds. This is not so if SQLite would convert one side, because the
    /// conversion depends on the expression.
    fn compares_alike(&self, value: &Value) -> bool {
        let is_number = matches!(value, Value::Integer(_) | Value::Real(_));
        match self.declared_type.as_str() {
            "TEXT" => matches!(value, Value::Text(_)),
            "INTEGER" | "INT" | "REAL" | "NUM" | "NUMERIC" => is_number,
            _ => false,
        }
    }
}

/// What a statement needs of a table: passed from the planner to the cursor as text.
struct Wanted {
    /// One bit per column; the last one also stands for all later columns.
    used: u64,
    /// The columns that are compared for equality.
    equal: Vec<usize>,
}

impl Wanted {
    fn uses(&self, column: usize) -> bool {
        self.used >> column.min(63) & 1 == 1
    }

    fn to_text(&self) -> String {
        let mut text = self.used.to_string();
        for column in &self.equal {
            // Writing to a String cannot fail.
            let _ = write!(text, ",{column}");
        }
        text
    }

    fn of_text(text: &str) -> Option<Self> {
        let mut numbers = text.split(',');
        let used = numbers.next()?.parse().ok()?;
        let equal = numbers
            .map(|number| number.parse().ok())
            .collect::<Option<_>>()?;
        Some(Self { used, equal })
    }
}

/// The rows of one search.
#[repr(C)]
struct Rows {
    base: sqlite3_vtab_cursor,
    lender: Arc<Lender>,
    table: LentTable,
    found: Vec<Vec<Value>>,
    position: usize,
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.lender.end();
    }
}

// SAFETY: the structure is `repr(C)` and `sqlite3_vtab_cursor` is its first field.
unsafe impl VTabCursor for Rows {
    fn filter(&mut self, _: c_int, wanted: Option<&str>, values: &Filters<'_>) -> Result<()> {
        let unreadable = || Error::ModuleError("a plan that is none".to_owned());
        let wanted = wanted.and_then(Wanted::of_text).ok_or_else(unreadable)?;
        let mut alike = Vec::with_capacity(wanted.equal.len());
        for (position, number) in wanted.equal.iter().enumerate() {
            let value: Value = values.get(position)?;
            let column = self.table.columns.get(*number);
            let is_alike = column.is_some_and(|column| column.compares_alike(&value));
            alike.push(is_alike.then_some(value));
        }
        let state = self.lender.state();
        let mut statement = state
            .connection
            .prepare_cached(&self.table.query(&wanted, &alike))?;
        for (position, value) in alike.iter().enumerate() {
            if let Some(value) = value {
                statement.raw_bind_parameter(position + 1, value)?;
            }
        }
        let mut rows = statement.raw_query();
        self.found.clear();
        self.position = 0;
        while let Some(row) = rows.next()? {
            let columns = 0..self.table.columns.len();
            let values = columns
                .map(|column| row.get(column))
                .collect::<Result<_>>()?;
            self.found.push(values);
        }
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.position += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.position >= self.found.len()
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let row = self.found.get(self.position);
        let column = usize::try_from(column).ok();
        match row.and_then(|row| row.get(column?)) {
            Some(value) => context.set_result(value),
            None => Err(Error::SqliteFailure(
                ffi::Error::new(ffi::SQLITE_RANGE),
                None,
            )),
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(i64::try_from(self.position).unwrap_or(i64::MAX))
    }
}
