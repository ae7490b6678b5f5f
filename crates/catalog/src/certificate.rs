//! The master key and the certificates. Every secret is sealed; the keys that open them are not
//! stored here.

use rusqlite::{OptionalExtension as _, Row, params};
use windlass_base::Moment;

use crate::error::Doing;
use crate::{Catalog, Error};

/// The master key, sealed twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterKeyRecord {
    /// With the instance's service key.
    pub by_service: Vec<u8>,
    pub by_password: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRecord {
    pub name: String,
    /// SHA-1 of its DER form.
    pub thumbprint: [u8; 20],
    /// DER form.
    pub certificate: Vec<u8>,
    /// The private key, sealed with the master key, if present.
    pub private_key: Option<Vec<u8>>,
    /// Its subject's name.
    pub subject: String,
    /// Its serial number, in hexadecimal.
    pub serial_number: String,
    /// Valid from, UTC.
    pub start_date: Moment,
    /// Valid until, UTC.
    pub expiry_date: Moment,
}

const COLUMNS: &str = "name, thumbprint, certificate, private_key, subject, serial_number, \
                       start_date, expiry_date";

impl CertificateRecord {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let date = |column: &str| {
            let text: String = row.get(column)?;
            text.parse().map_err(|_| {
                rusqlite::Error::InvalidColumnType(
                    0,
                    column.to_owned(),
                    rusqlite::types::Type::Text,
                )
            })
        };
        Ok(Self {
            name: row.get("name")?,
            thumbprint: row.get("thumbprint")?,
            certificate: row.get("certificate")?,
            private_key: row.get("private_key")?,
            subject: row.get("subject")?,
            serial_number: row.get("serial_number")?,
            start_date: date("start_date")?,
            expiry_date: date("expiry_date")?,
        })
    }
}

impl Catalog {
    /// The master key, if there is one.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn master_key(&self) -> Result<Option<MasterKeyRecord>, Error> {
        self.connection()
            .query_row(
                "SELECT by_service, by_password FROM own_master_key",
                [],
                |row| {
                    Ok(MasterKeyRecord {
                        by_service: row.get(0)?,
                        by_password: row.get(1)?,
                    })
                },
            )
            .optional()
            .doing("reading the master key")
    }

    /// Stores the master key; false if there is one.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn add_master_key(&mut self, key: &MasterKeyRecord) -> Result<bool, Error> {
        let added = self
            .connection()
            .execute(
                "INSERT OR IGNORE INTO own_master_key VALUES (1, ?1, ?2, ?3)",
                params![key.by_service, key.by_password, Moment::now().0.to_string()],
            )
            .doing("keeping the master key")?;
        Ok(added > 0)
    }

    /// Deletes the master key; false if there is none.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn drop_master_key(&mut self) -> Result<bool, Error> {
        let dropped = self
            .connection()
            .execute("DELETE FROM own_master_key", [])
            .doing("dropping the master key")?;
        Ok(dropped > 0)
    }

    /// All certificates, by name.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn certificates(&self) -> Result<Vec<CertificateRecord>, Error> {
        let doing = "listing certificates";
        let query = format!("SELECT {COLUMNS} FROM own_certificate ORDER BY name");
        let mut statement = self.connection().prepare_cached(&query).doing(doing)?;
        let rows = statement
            .query_map([], CertificateRecord::read)
            .doing(doing)?
            .collect::<rusqlite::Result<_>>();
        rows.doing(doing)
    }

    /// Adds a certificate; false if its name or thumbprint exists.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn add_certificate(&mut self, record: &CertificateRecord) -> Result<bool, Error> {
        let added = self
            .connection()
            .execute(
                &format!("INSERT OR IGNORE INTO own_certificate ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"),
                params![
                    record.name,
                    record.thumbprint,
                    record.certificate,
                    record.private_key,
                    record.subject,
                    record.serial_number,
                    record.start_date.to_string(),
                    record.expiry_date.to_string(),
                ],
            )
            .doing("adding a certificate")?;
        Ok(added > 0)
    }

    /// Drops a certificate with its private key; false if the name does not exist.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn drop_certificate(&mut self, name: &str) -> Result<bool, Error> {
        let dropped = self
            .connection()
            .execute("DELETE FROM own_certificate WHERE name = ?1", [name])
            .doing("dropping a certificate")?;
        Ok(dropped > 0)
    }

    /// Records that a private key has been backed up.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn note_key_backup(&mut self, name: &str) -> Result<(), Error> {
        self.connection()
            .execute(
                "UPDATE own_certificate SET key_backup_date = ?2 WHERE name = ?1",
                params![name, Moment::now().0.to_string()],
            )
            .map(|_| ())
            .doing("noting the backup of a key")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_thumbprints_are_unique_and_the_master_key_is_one() {
        let mut catalog = Catalog::in_memory().unwrap();
        let record = CertificateRecord {
            name: "Backup".to_owned(),
            thumbprint: [1; 20],
            certificate: vec![1],
            private_key: None,
            subject: "CN=Backup".to_owned(),
            serial_number: "01".to_owned(),
            start_date: "2026-01-01 00:00:00".parse().unwrap(),
            expiry_date: "2027-01-01 00:00:00".parse().unwrap(),
        };
        assert!(catalog.add_certificate(&record).unwrap());
        let other = CertificateRecord {
            name: "BACKUP".to_owned(),
            thumbprint: [2; 20],
            ..record.clone()
        };
        assert!(!catalog.add_certificate(&other).unwrap());
        let other = CertificateRecord {
            name: "other".to_owned(),
            ..record.clone()
        };
        assert!(!catalog.add_certificate(&other).unwrap());
        assert_eq!(catalog.certificates().unwrap(), [record]);
        assert!(catalog.drop_certificate("backup").unwrap());
        let key = MasterKeyRecord {
            by_service: vec![1],
            by_password: vec![2],
        };
        assert!(catalog.add_master_key(&key).unwrap());
        assert!(!catalog.add_master_key(&key).unwrap());
        assert_eq!(catalog.master_key().unwrap(), Some(key));
        assert!(catalog.drop_master_key().unwrap());
    }
}
