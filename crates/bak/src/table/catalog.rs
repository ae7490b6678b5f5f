//! The tables of a database, from its system tables.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::compressed::Compression;
use super::foreign_keys::{ForeignKey, ForeignKeyFacts};
use super::layout::Field;
use super::pages::Pages;
use super::rows::{RowReader, TakeRow, Tally};
use super::scan::Problems;
use super::system::{Rowset, System};
use super::system_rows::{
    SYSCLSOBJS, SYSCOLPARS, SYSIDXSTATS, SYSISCOLS, SYSSCALARTYPES, SYSSCHOBJS, SYSSEOBJVALUES,
    SYSSINGLEOBJREFS,
};
use super::value::{SqlType, Value, id};
use crate::error::Error;

/// The class of schemas in `sysclsobjs`.
pub(super) const CLASS_SCHEMA: i64 = 50;

/// The number of the schema `dbo`.
const SCHEMA_DBO: i64 = 1;

/// Objects with lower numbers are the system tables.
const FIRST_USER_OBJECT: u32 = 100;

/// The first type number of an alias type.
const FIRST_ALIAS: i64 = 257;

/// Bits of `syscolpars.status`.
const COLUMN_NOT_NULL: i64 = 1;
const COLUMN_IDENTITY: i64 = 4;
const COLUMN_SPARSE: i64 = 0x0100_0000;

/// Bits of `sysidxstats.status`.
const INDEX_UNIQUE: i64 = 8;
const INDEX_PRIMARY: i64 = 0x20;
const INDEX_STATISTICS: i64 = 0x2000;
/// Disabled, or of some rows only: what it says does not hold for the table.
const INDEX_DISABLED: i64 = 0x80;
const INDEX_FILTERED: i64 = 0x2_0000;

/// The status of a key column in `sysiscols`.
const KEY_COLUMN: i64 = 2;

/// Whether no two rows of a table have the same key of an index, by its status.
fn is_unique(status: i64) -> bool {
    status & (INDEX_UNIQUE | INDEX_DISABLED | INDEX_FILTERED) == INDEX_UNIQUE
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub id: u32,
    pub name: String,
    pub sql_type: SqlType,
    /// The name of its alias type, if it has one.
    pub alias: Option<String>,
    pub is_nullable: bool,
    pub is_identity: bool,
}

/// Why a table cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its rows are stored by column.
    #[error("its rows are stored as a columnstore, which is not supported")]
    Columnstore,
    /// It has sparse columns.
    #[error("it has sparse columns, which are not supported")]
    Sparse,
    /// It has no rowset: an external or memory-optimised table.
    #[error("it has no pages of its own (memory-optimised or external)")]
    NoPages,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub object: u32,
    pub schema: String,
    pub name: String,
    pub columns: Vec<Column>,
    /// Names of its computed columns without stored values.
    pub computed: Vec<String>,
    /// Number of its columns whose names are missing, because `syscolpars` is incomplete: they are numbered.
    pub unnamed_columns: usize,
    pub primary_key: Vec<String>,
    pub unique_keys: Vec<Vec<String>>,
    pub foreign_keys: Vec<ForeignKey>,
    pub is_heap: bool,
    /// Number of rows according to the server.
    pub counted_rows: u64,
    pub refusal: Option<Refusal>,
    rowsets: Vec<Rowset>,
}

#[derive(Debug)]
pub struct Database {
    pub version: u16,
    /// Its user tables, by schema and name.
    pub tables: Vec<Table>,
    pub(super) system: System,
    /// Values of columns that were added without rewriting the rows, by rowset and physical number.
    defaults: HashMap<u64, HashMap<u32, Value>>,
    /// Problems with reading the system tables.
    pub problems: Problems,
}

/// A column as described by `syscolpars`.
struct Described {
    column: Column,
    is_sparse: bool,
}

/// The content of the system tables, from which tables are built.
#[derive(Default)]
struct Facts {
    /// The numbers of all objects, whatever they are.
    objects: HashSet<u32>,
    /// Tables: object, schema, name.
    tables: Vec<(u32, i64, String)>,
    schemas: HashMap<i64, String>,
    aliases: HashMap<i64, String>,
    columns: BTreeMap<u32, Vec<Described>>,
    /// Indexes by table: number, whether primary, whether unique.
    indexes: BTreeMap<u32, Vec<(i64, bool, bool)>>,
    /// Key columns by table and index: position, column.
    keys: BTreeMap<(u32, i64), Vec<(i64, u32)>>,
    foreign_keys: ForeignKeyFacts,
}

impl Database {
    /// Reads the list of tables.
    ///
    /// # Errors
    /// Pages cannot be read, or the system tables without which no table is known are missing. What else is damaged
    /// or missing of them is in [`Self::problems`]: then tables, columns or keys can be, too.
    pub fn open(pages: &mut dyn Pages) -> Result<Self, Error> {
        let mut system = System::read(pages)?;
        let problems = std::mem::take(&mut system.problems);
        let mut database = Self {
            version: system.version,
            tables: Vec::new(),
            system,
            defaults: HashMap::new(),
            problems,
        };
        let mut facts = database.facts(pages)?;
        if database.problems.count > 0 {
            database.add_nameless(&mut facts);
        }
        database.tables = database.tables_of(&facts);
        Ok(database)
    }

    fn facts(&mut self, pages: &mut dyn Pages) -> Result<Facts, Error> {
        let mut facts = Facts::default();
        self.system_rows(pages, SYSCLSOBJS, &mut |row| {
            if row.number(1) == CLASS_SCHEMA {
                facts.schemas.insert(row.number(2), row.text(3));
            }
        })?;
        self.system_rows(pages, SYSSCALARTYPES, &mut |row| {
            if row.number(1) >= FIRST_ALIAS {
                facts.aliases.insert(row.number(1), row.text(3));
            }
        })?;
        let objects = self.system_rows(pages, SYSSCHOBJS, &mut |row| {
            facts.objects.insert(row.number(1) as u32);
            // The server's own objects have negative numbers or are in the schema sys.
            let is_own = row.number(1) > 0 && row.number(3) != 4;
            match row.text(6).trim_end() {
                "U" if is_own => {
                    let object = row.number(1) as u32;
                    facts.tables.push((object, row.number(3), row.text(2)));
                }
                "F" => facts.foreign_keys.object(row),
                _ => {}
            }
        })?;
        if objects == 0 {
            return Err(self.no_objects());
        }
        self.system_rows(pages, SYSSINGLEOBJREFS, &mut |row| {
            facts.foreign_keys.reference(row);
        })?;
        self.column_facts(pages, &mut facts)?;
        self.index_facts(pages, &mut facts)?;
        let mut defaults: HashMap<u64, HashMap<u32, Value>> = HashMap::new();
        self.system_rows(pages, SYSSEOBJVALUES, &mut |row| {
            let rowset = defaults.entry(row.number(2).cast_unsigned()).or_default();
            rowset.insert(row.number(3) as u32, row.value(5));
        })?;
        self.defaults = defaults;
        Ok(facts)
    }

    fn column_facts(&mut self, pages: &mut dyn Pages, facts: &mut Facts) -> Result<(), Error> {
        let Facts {
            columns, aliases, ..
        } = facts;
        self.system_rows(pages, SYSCOLPARS, &mut |row| {
            // The parameters of procedures are also listed here, with a number above zero.
            if row.number(2) != 0 {
                return;
            }
            let status = row.number(11);
            let described = Described {
                column: Column {
                    id: row.number(3) as u32,
                    name: row.text(4),
                    sql_type: SqlType {
                        id: row.number(5) as u8,
                        length: row.number(7) as i16,
                        precision: row.number(8) as u8,
                        scale: row.number(9) as u8,
                        collation: row.number(10) as u32,
                    },
                    alias: aliases.get(&row.number(6)).cloned(),
                    is_nullable: status & COLUMN_NOT_NULL == 0,
                    is_identity: status & COLUMN_IDENTITY != 0,
                },
                is_sparse: status & COLUMN_SPARSE != 0,
            };
            columns
                .entry(row.number(1) as u32)
                .or_default()
                .push(described);
        })?;
        Ok(())
    }

    fn index_facts(&mut self, pages: &mut dyn Pages, facts: &mut Facts) -> Result<(), Error> {
        self.system_rows(pages, SYSIDXSTATS, &mut |row| {
            let status = row.number(4);
            if row.number(2) > 0 && status & INDEX_STATISTICS == 0 {
                let index = (
                    row.number(2),
                    status & INDEX_PRIMARY != 0,
                    is_unique(status),
                );
                let table = row.number(1) as u32;
                facts.indexes.entry(table).or_default().push(index);
            }
        })?;
        self.system_rows(pages, SYSISCOLS, &mut |row| {
            if row.number(4) & KEY_COLUMN != 0 {
                let key = (row.number(1) as u32, row.number(2));
                let column = (row.number(3), row.number(5) as u32);
                facts.keys.entry(key).or_default().push(column);
            }
        })?;
        Ok(())
    }

    /// Adds the tables whose names are lost: rows of objects that `sysschobjs`, which is damaged, does not list.
    fn add_nameless(&mut self, facts: &mut Facts) {
        for (object, rowsets) in self.system.rowsets_of() {
            let has_rows = rowsets.iter().any(|rowset| rowset.rows > 0);
            if object >= FIRST_USER_OBJECT && has_rows && !facts.objects.contains(&object) {
                let name = format!("object_{object}");
                self.problems.push(format!(
                    "the name of object {object}, which has rows, is lost: if they can be read, they are those of \
                     table dbo.{name}"
                ));
                facts.tables.push((object, SCHEMA_DBO, name));
            }
        }
    }

    /// The visible columns of a rowset, by number.
    pub(super) fn visible_fields(&self, rowset: &Rowset) -> Vec<Field> {
        let fields = self.system.fields.get(&rowset.id);
        let mut fields: Vec<Field> = fields
            .into_iter()
            .flatten()
            .filter(|field| field.is_visible())
            .copied()
            .collect();
        fields.sort_by_key(|field| field.column);
        fields
    }

    pub(super) fn row_unit(&self, rowset: &Rowset) -> Option<super::system::Unit> {
        let units = self.system.units.get(&rowset.id)?;
        units.iter().find(|unit| unit.kind == 1).copied()
    }

    fn tables_of(&self, facts: &Facts) -> Vec<Table> {
        let mut by_object = self.system.rowsets_of();
        let mut tables: Vec<Table> = facts
            .tables
            .iter()
            .map(|(object, schema, name)| {
                let rowsets = by_object.remove(object).unwrap_or_default();
                let schema = match facts.schemas.get(schema) {
                    Some(name) => name.clone(),
                    None if *schema == SCHEMA_DBO => "dbo".to_owned(),
                    // Its name is lost, which is a problem of the database.
                    None => format!("schema_{schema}"),
                };
                self.table(*object, schema, name.clone(), rowsets, facts)
            })
            .collect();
        tables.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        tables
    }

    fn table(
        &self,
        object: u32,
        schema: String,
        name: String,
        rowsets: Vec<Rowset>,
        facts: &Facts,
    ) -> Table {
        let described = facts
            .columns
            .get(&object)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let stored = rowsets.first().map(|rowset| self.visible_fields(rowset));
        let stored = stored.unwrap_or_default();
        let is_stored = |column: &Column| stored.iter().any(|field| field.column == column.id);
        let mut columns: Vec<Column> = described
            .iter()
            .map(|described| described.column.clone())
            .collect();
        let is_described = |field: &&Field| columns.iter().any(|column| column.id == field.column);
        let unnamed: Vec<Column> = stored
            .iter()
            .filter(|field| !is_described(field))
            .map(Column::unnamed)
            .collect();
        let unnamed_columns = unnamed.len();
        columns.extend(unnamed);
        columns.sort_by_key(|column| column.id);
        let (columns, computed): (Vec<_>, Vec<_>) = columns.into_iter().partition(is_stored);
        let name_of = |id: u32| {
            let column = columns.iter().find(|column| column.id == id);
            column.map(|column| column.name.clone())
        };
        let key = |index: i64| -> Vec<String> {
            let mut key = facts
                .keys
                .get(&(object, index))
                .cloned()
                .unwrap_or_default();
            key.sort_unstable();
            key.into_iter().filter_map(|(_, id)| name_of(id)).collect()
        };
        let indexes = facts
            .indexes
            .get(&object)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let primary = indexes.iter().find(|(_, is_primary, _)| *is_primary);
        let unique = indexes
            .iter()
            .filter(|(_, is_primary, is_unique)| *is_unique && !*is_primary);
        Table {
            object,
            schema,
            name,
            unnamed_columns,
            computed: computed.into_iter().map(|column| column.name).collect(),
            primary_key: primary.map(|(index, ..)| key(*index)).unwrap_or_default(),
            unique_keys: unique.map(|(index, ..)| key(*index)).collect(),
            foreign_keys: facts.foreign_keys.of(object, &|table, column| {
                let described = facts.columns.get(&table)?.iter();
                let mut columns = described.map(|described| &described.column);
                let found = columns.find(|found| found.id == column);
                found.map(|found| found.name.clone())
            }),
            is_heap: rowsets.iter().any(|rowset| rowset.index == 0),
            counted_rows: rowsets.iter().map(|rowset| rowset.rows).sum(),
            refusal: refusal(&rowsets, described),
            columns,
            rowsets,
        }
    }

    /// Passes the rows of a table to `take`, with a value for each column.
    ///
    /// # Errors
    /// Pages cannot be read, or `take` returns an error. Rows that cannot be decoded are counted
    /// and reported in the tally.
    pub fn read(
        &self,
        pages: &mut dyn Pages,
        table: &Table,
        take: &mut TakeRow<'_>,
    ) -> Result<Tally, Error> {
        let mut tally = Tally::default();
        let empty = HashMap::new();
        for rowset in &table.rowsets {
            let collations: HashMap<u32, SqlType> = table
                .columns
                .iter()
                .map(|column| (column.id, column.sql_type))
                .collect();
            let partition = rowset.partition;
            let mut fields = self.visible_fields(rowset);
            fields.retain(|field| collations.contains_key(&field.column));
            for field in &mut fields {
                if let Some(declared) = collations.get(&field.column) {
                    field.sql_type.collation = declared.collation;
                }
            }
            let are_all = fields.iter().map(|field| field.column);
            if !are_all.eq(table.columns.iter().map(|column| column.id)) {
                tally.problems.push(format!(
                    "partition {partition} has other columns than the first one: its rows are left out"
                ));
                continue;
            }
            let reader = RowReader {
                fields: &fields,
                defaults: self.defaults.get(&rowset.id).unwrap_or(&empty),
            };
            let Some(unit) = self.row_unit(rowset) else {
                if rowset.rows > 0 {
                    tally.problems.push(format!(
                        "where the pages of partition {partition} are is not known: sysallocunits does not list it"
                    ));
                }
                continue;
            };
            let part = reader.read(pages, rowset, &unit, take)?;
            tally.rows += part.rows;
            tally.pages += part.pages;
            tally.problems.extend(part.problems);
            tally.undecoded.extend(part.undecoded);
        }
        Ok(tally)
    }
}

/// Why a table cannot be read, or `None`. An empty table can always be read.
fn refusal(rowsets: &[Rowset], columns: &[Described]) -> Option<Refusal> {
    if rowsets.is_empty() {
        return Some(Refusal::NoPages);
    }
    if rowsets.iter().all(|rowset| rowset.rows == 0) {
        return None;
    }
    if columns.iter().any(|described| described.is_sparse) {
        return Some(Refusal::Sparse);
    }
    let columnstore = |rowset: &Rowset| rowset.compression == Compression::Columnstore;
    rowsets
        .iter()
        .any(columnstore)
        .then_some(Refusal::Columnstore)
}

impl Column {
    /// A stored column that nothing describes.
    fn unnamed(field: &Field) -> Self {
        Self {
            id: field.column,
            name: format!("column_{}", field.column),
            sql_type: field.sql_type,
            alias: None,
            is_nullable: true,
            is_identity: false,
        }
    }

    /// The declared type, or its alias.
    pub fn declaration(&self) -> String {
        self.alias
            .clone()
            .unwrap_or_else(|| self.sql_type.declaration())
    }

    /// Whether its values are decimals with more digits than a float can represent.
    pub fn is_wide_decimal(&self) -> bool {
        match self.sql_type.id {
            id::MONEY => true,
            id::DECIMAL | id::NUMERIC => self.sql_type.precision > 15,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_of_some_rows_or_of_none_makes_nothing_unique() {
        assert!(is_unique(0x0008) && is_unique(0x8_002B));
        for status in [0, 0x0080 | 8, 0x2_0008, 0x0020] {
            assert!(!is_unique(status), "{status:#x}");
        }
    }
}
