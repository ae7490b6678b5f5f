//! Foreign keys, from the system tables.
//!
//! A key is an object of type `F` in `sysschobjs`, with its table. `syssingleobjrefs` has the rest, one row each: the
//! table that it references, and for each column, by position, its own column and the one that it references. The same
//! in all versions from SQL Server 2005 to 2022.

use std::collections::{BTreeMap, HashMap};

use super::system_rows::SystemRow;

/// Classes of `syssingleobjrefs`.
const CLASS_TABLE: i64 = 27;
const CLASS_COLUMN: i64 = 28;
const CLASS_REFERENCED: i64 = 29;

/// A foreign key of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    pub name: String,
    /// Its columns; none if they cannot be read.
    pub columns: Vec<String>,
    /// The object number of the table that it references.
    pub referenced: u32,
    /// The columns there, as many.
    pub referenced_columns: Vec<String>,
}

/// What the system tables say of foreign keys, by the number of the key.
#[derive(Debug, Default)]
pub(super) struct ForeignKeyFacts {
    /// By table: the number and the name of the key.
    keys: BTreeMap<u32, Vec<(u32, String)>>,
    referenced: HashMap<u32, u32>,
    /// Columns by position.
    own: HashMap<u32, BTreeMap<i64, u32>>,
    others: HashMap<u32, BTreeMap<i64, u32>>,
}

impl ForeignKeyFacts {
    /// A row of `sysschobjs` of type `F`.
    pub(super) fn object(&mut self, row: &SystemRow<'_>) {
        let key = (row.number(1) as u32, row.text(2));
        self.keys.entry(row.number(7) as u32).or_default().push(key);
    }

    /// A row of `syssingleobjrefs`.
    pub(super) fn reference(&mut self, row: &SystemRow<'_>) {
        let (key, position) = (row.number(2) as u32, row.number(3));
        let (object, part) = (row.number(4) as u32, row.number(5) as u32);
        match row.number(1) {
            CLASS_TABLE => drop(self.referenced.insert(key, object)),
            CLASS_COLUMN => drop(self.own.entry(key).or_default().insert(position, part)),
            CLASS_REFERENCED => drop(self.others.entry(key).or_default().insert(position, part)),
            _ => {}
        }
    }

    /// The keys of a table. `name_of` names a column of a table.
    pub(super) fn of(
        &self,
        table: u32,
        name_of: &dyn Fn(u32, u32) -> Option<String>,
    ) -> Vec<ForeignKey> {
        let key = |(key, name): &(u32, String)| {
            let referenced = self.referenced.get(key).copied().unwrap_or_default();
            let names = |columns: Option<&BTreeMap<i64, u32>>, table| -> Option<Vec<String>> {
                let columns = columns?.values();
                columns.map(|column| name_of(table, *column)).collect()
            };
            let columns = names(self.own.get(key), table).unwrap_or_default();
            let others = names(self.others.get(key), referenced).unwrap_or_default();
            let is_known = columns.len() == others.len();
            ForeignKey {
                name: name.clone(),
                columns: if is_known { columns } else { Vec::new() },
                referenced,
                referenced_columns: if is_known { others } else { Vec::new() },
            }
        };
        self.keys
            .get(&table)
            .into_iter()
            .flatten()
            .map(key)
            .collect()
    }
}
