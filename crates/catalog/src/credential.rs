//! Credentials: the keys of object storage, by the URLs that they are for. Every secret is sealed.

use rusqlite::{OptionalExtension as _, params};
use windlass_base::Moment;

use crate::error::Doing;
use crate::{Catalog, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialRecord {
    /// A URL, or any name.
    pub name: String,
    pub identity: String,
    /// Sealed with the service key.
    pub secret: Vec<u8>,
}

impl Catalog {
    /// All credentials, by name.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn credentials(&self) -> Result<Vec<CredentialRecord>, Error> {
        let doing = "listing credentials";
        let query = "SELECT name, identity, secret FROM own_credential ORDER BY name";
        let mut statement = self.connection().prepare_cached(query).doing(doing)?;
        let rows = statement
            .query_map([], |row| {
                Ok(CredentialRecord {
                    name: row.get(0)?,
                    identity: row.get(1)?,
                    secret: row.get(2)?,
                })
            })
            .doing(doing)?
            .collect::<rusqlite::Result<_>>();
        rows.doing(doing)
    }

    /// Whether there is any credential.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn has_credentials(&self) -> Result<bool, Error> {
        let found = self
            .connection()
            .query_row("SELECT 1 FROM own_credential LIMIT 1", [], |_| Ok(()))
            .optional();
        found
            .doing("looking for credentials")
            .map(|found| found.is_some())
    }

    /// Adds a credential; false if its name exists.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn add_credential(&mut self, record: &CredentialRecord) -> Result<bool, Error> {
        let added = self
            .connection()
            .execute(
                "INSERT OR IGNORE INTO own_credential (name, identity, secret, create_date, modify_date)
                 VALUES (?1, ?2, ?3, ?4, ?4)",
                params![
                    record.name,
                    record.identity,
                    record.secret,
                    Moment::now().0.to_string()
                ],
            )
            .doing("adding a credential")?;
        Ok(added > 0)
    }

    /// Gives a credential another identity and secret; false if the name does not exist.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn change_credential(&mut self, record: &CredentialRecord) -> Result<bool, Error> {
        let changed = self
            .connection()
            .execute(
                "UPDATE own_credential SET identity = ?2, secret = ?3, modify_date = ?4 WHERE name = ?1",
                params![
                    record.name,
                    record.identity,
                    record.secret,
                    Moment::now().0.to_string()
                ],
            )
            .doing("changing a credential")?;
        Ok(changed > 0)
    }

    /// Drops a credential; false if the name does not exist.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn drop_credential(&mut self, name: &str) -> Result<bool, Error> {
        let dropped = self
            .connection()
            .execute("DELETE FROM own_credential WHERE name = ?1", [name])
            .doing("dropping a credential")?;
        Ok(dropped > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_credential_in_any_case() {
        let mut catalog = Catalog::in_memory().unwrap();
        let record = |name: &str, secret: u8| CredentialRecord {
            name: name.to_owned(),
            identity: "S3 Access Key".to_owned(),
            secret: vec![secret],
        };
        assert!(!catalog.has_credentials().unwrap());
        assert!(catalog.add_credential(&record("s3://h/b", 1)).unwrap());
        assert!(!catalog.add_credential(&record("S3://H/B", 2)).unwrap());
        assert!(catalog.change_credential(&record("S3://h/b", 3)).unwrap());
        assert!(!catalog.change_credential(&record("s3://h/c", 4)).unwrap());
        assert_eq!(catalog.credentials().unwrap(), [record("s3://h/b", 3)]);
        assert!(catalog.drop_credential("s3://H/b").unwrap());
        assert!(!catalog.drop_credential("s3://h/b").unwrap());
        assert!(!catalog.has_credentials().unwrap());
    }
}
