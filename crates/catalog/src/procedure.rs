//! Stored procedures: their text, kept for each database name.
//!
//! The files of databases are their programs' own, and nothing is added to them. A procedure belongs to the
//! name of a database: it stays when the database is dropped, detached or restored.

use rusqlite::OptionalExtension as _;
use windlass_base::local_now;

use crate::error::Doing;
use crate::{Catalog, Error};

/// A stored procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProcedure {
    pub object_id: i64,
    pub name: String,
    /// The batch that created it, as written.
    pub definition: String,
}

/// What happens to a procedure that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Kept,
    Replaced,
}

impl Catalog {
    /// The procedure of that name in a database; names do not distinguish case.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn procedure(&self, database: &str, name: &str) -> Result<Option<StoredProcedure>, Error> {
        self.connection()
            .query_row(
                "SELECT object_id, name, definition FROM own_procedure
                 WHERE database_name = ?1 AND name = ?2",
                [database, name],
                |row| {
                    Ok(StoredProcedure {
                        object_id: row.get(0)?,
                        name: row.get(1)?,
                        definition: row.get(2)?,
                    })
                },
            )
            .optional()
            .doing("looking up a procedure")
    }

    /// Stores a procedure; false if it exists and is kept.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn store_procedure(
        &mut self,
        database: &str,
        name: &str,
        definition: &str,
        is_recompiled: bool,
        existing: Existing,
    ) -> Result<bool, Error> {
        let on_conflict = match existing {
            Existing::Kept => "DO NOTHING",
            Existing::Replaced => {
                "DO UPDATE SET definition = excluded.definition, modify_date = excluded.modify_date,
                     is_recompiled = excluded.is_recompiled"
            }
        };
        let text = format!(
            "INSERT INTO own_procedure (object_id, database_name, name, definition, is_recompiled,
                 create_date, modify_date)
             VALUES ((SELECT coalesce(max(object_id), 1000000000) + 1 FROM own_procedure),
                 ?1, ?2, ?3, ?4, ?5, ?5)
             ON CONFLICT (database_name, name) {on_conflict}"
        );
        let now = local_now().strftime("%Y-%m-%d %H:%M:%S").to_string();
        let stored = self
            .connection()
            .execute(&text, (database, name, definition, is_recompiled, now))
            .doing("storing a procedure")?;
        Ok(stored > 0)
    }

    /// Drops a procedure; false if it does not exist.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn drop_procedure(&mut self, database: &str, name: &str) -> Result<bool, Error> {
        let dropped = self
            .connection()
            .execute(
                "DELETE FROM own_procedure WHERE database_name = ?1 AND name = ?2",
                [database, name],
            )
            .doing("dropping a procedure")?;
        Ok(dropped > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_one_procedure_of_each_database_in_any_case() {
        let mut catalog = Catalog::in_memory().unwrap();
        let mut store = |database: &str, name: &str, text: &str, existing| {
            catalog
                .store_procedure(database, name, text, false, existing)
                .unwrap()
        };
        assert!(store("app", "Nightly", "a", Existing::Kept));
        assert!(!store("APP", "NIGHTLY", "b", Existing::Kept));
        assert!(store("app", "NIGHTLY", "c", Existing::Replaced));
        assert!(store("hr", "Nightly", "d", Existing::Kept));
        let found = catalog.procedure("App", "nightly").unwrap().unwrap();
        assert_eq!(
            (found.name.as_str(), found.definition.as_str()),
            ("Nightly", "c")
        );
        assert!(catalog.drop_procedure("app", "nightly").unwrap());
        assert_eq!(catalog.procedure("app", "nightly").unwrap(), None);
        assert!(catalog.procedure("hr", "nightly").unwrap().is_some());
    }
}
