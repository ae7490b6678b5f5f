//! The owners of pages: which object an allocation unit belongs to.

use std::collections::HashMap;

use super::catalog::{CLASS_SCHEMA, Database};
use super::pages::Pages;
use super::system_rows::{SYSCLSOBJS, SYSSCHOBJS};
use crate::error::Error;

/// Kinds of allocation units.
const UNIT_ROWS: u8 = 1;

/// The index number of pages with long values in databases from SQL Server 2000.
const INDEX_LONG_VALUES: u64 = 255;

/// An object of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub object: u32,
    pub schema: String,
    pub name: String,
    /// `U` user table, `S` system table, `V` view, and so on.
    pub kind: String,
}

/// What an allocation unit has of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerPart {
    /// Its rows: a heap or the clustered index.
    Rows,
    /// Another index.
    Index,
    /// Values too long for their row.
    LongValues,
}

/// The owners of all allocation units.
#[derive(Debug, Default)]
pub struct Owners {
    units: HashMap<u64, (u32, OwnerPart)>,
    objects: HashMap<u32, Owner>,
}

impl Owners {
    /// The owner of an allocation unit, as it is in the headers of pages.
    pub fn of(&self, unit: u64) -> Option<(&Owner, OwnerPart)> {
        let (object, part) = self.units.get(&unit).copied().unwrap_or_else(|| {
            // SQL Server 2000 wrote the number of the object and of the index.
            let part = match unit >> 48 {
                0 | 1 => OwnerPart::Rows,
                INDEX_LONG_VALUES => OwnerPart::LongValues,
                _ => OwnerPart::Index,
            };
            ((unit >> 16) as u32, part)
        });
        Some((self.objects.get(&object)?, part))
    }
}

impl Database {
    /// Reads the owners of the allocation units.
    ///
    /// # Errors
    /// Pages cannot be read.
    pub fn owners(&mut self, pages: &mut dyn Pages) -> Result<Owners, Error> {
        let mut owners = Owners::default();
        for rowset in &self.system.rowsets {
            for unit in self.system.units.get(&rowset.id).into_iter().flatten() {
                let part = match (unit.kind, rowset.index) {
                    (UNIT_ROWS, 0 | 1) => OwnerPart::Rows,
                    (UNIT_ROWS, _) => OwnerPart::Index,
                    _ => OwnerPart::LongValues,
                };
                owners.units.insert(unit.id, (rowset.object, part));
            }
        }
        // What is wrong with these tables was found when the database was opened.
        let known = self.problems.clone();
        let mut schemas = HashMap::new();
        self.system_rows(pages, SYSCLSOBJS, &mut |row| {
            if row.number(1) == CLASS_SCHEMA {
                schemas.insert(row.number(2), row.text(3));
            }
        })?;
        self.system_rows(pages, SYSSCHOBJS, &mut |row| {
            let object = row.number(1) as u32;
            let owner = Owner {
                object,
                schema: schemas.get(&row.number(3)).cloned().unwrap_or_default(),
                name: row.text(2),
                kind: row.text(6).trim_end().to_owned(),
            };
            owners.objects.insert(object, owner);
        })?;
        self.problems = known;
        Ok(owners)
    }
}
