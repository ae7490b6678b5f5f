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
    /// Whether a remote session has created or altered it.
    pub is_remote: bool,
}

/// A procedure that is created or altered.
#[derive(Debug, Clone, Copy)]
pub struct ProcedureText<'a> {
    /// The batch that defines it.
    pub definition: &'a str,
    /// `WITH RECOMPILE`
    pub is_recompiled: bool,
    /// Whether a remote session writes it.
    pub is_remote: bool,
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
                "SELECT object_id, name, definition,
                     EXISTS (SELECT 1 FROM own_remote_procedure AS remote
                             WHERE remote.database_name = ?1 AND remote.name = ?2)
                 FROM own_procedure WHERE database_name = ?1 AND name = ?2",
                [database, name],
                |row| {
                    Ok(StoredProcedure {
                        object_id: row.get(0)?,
                        name: row.get(1)?,
                        definition: row.get(2)?,
                        is_remote: row.get(3)?,
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
        text: ProcedureText<'_>,
        existing: Existing,
    ) -> Result<bool, Error> {
        let ProcedureText {
            definition,
            is_recompiled,
            is_remote,
        } = text;
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
        let doing = "storing a procedure";
        let transaction = self.write(doing)?;
        let stored = transaction
            .execute(&text, (database, name, definition, is_recompiled, now))
            .doing(doing)?;
        if stored > 0 {
            // All of it is written by the one who stores it.
            let mark = match is_remote {
                true => "INSERT OR IGNORE INTO own_remote_procedure VALUES (?1, ?2)",
                false => "DELETE FROM own_remote_procedure WHERE database_name = ?1 AND name = ?2",
            };
            transaction.execute(mark, [database, name]).doing(doing)?;
        }
        transaction.commit().doing(doing)?;
        Ok(stored > 0)
    }

    /// Drops a procedure; false if it does not exist.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn drop_procedure(&mut self, database: &str, name: &str) -> Result<bool, Error> {
        let doing = "dropping a procedure";
        let transaction = self.write(doing)?;
        let delete = |table: &str| {
            let text = format!("DELETE FROM {table} WHERE database_name = ?1 AND name = ?2");
            transaction.execute(&text, [database, name]).doing(doing)
        };
        let dropped = delete("own_procedure")?;
        delete("own_remote_procedure")?;
        transaction.commit().doing(doing)?;
        Ok(dropped > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(definition: &str, is_remote: bool) -> ProcedureText<'_> {
        ProcedureText {
            definition,
            is_recompiled: false,
            is_remote,
        }
    }

    #[test]
    fn a_name_stands_for_one_procedure_of_each_database_in_any_case() {
        let mut catalog = Catalog::in_memory().unwrap();
        let mut store = |database: &str, name: &str, text: &str, existing| {
            catalog
                .store_procedure(database, name, text_of(text, false), existing)
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

    #[test]
    fn a_procedure_is_of_the_session_that_wrote_its_text() {
        let mut catalog = Catalog::in_memory().unwrap();
        let is_remote =
            |catalog: &Catalog| catalog.procedure("app", "p").unwrap().unwrap().is_remote;
        let store = |catalog: &mut Catalog, existing, is_remote| {
            catalog
                .store_procedure("app", "P", text_of("text", is_remote), existing)
                .unwrap()
        };
        assert!(store(&mut catalog, Existing::Kept, false));
        assert!(!is_remote(&catalog));
        assert!(!store(&mut catalog, Existing::Kept, true), "it exists");
        assert!(!is_remote(&catalog));
        store(&mut catalog, Existing::Replaced, true);
        assert!(is_remote(&catalog));
        store(&mut catalog, Existing::Replaced, false);
        assert!(!is_remote(&catalog));
        store(&mut catalog, Existing::Replaced, true);
        catalog.drop_procedure("APP", "p").unwrap();
        store(&mut catalog, Existing::Kept, false);
        assert!(!is_remote(&catalog));
    }
}
