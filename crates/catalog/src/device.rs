//! Logical backup devices: names for files, created by `sp_addumpdevice`.

use rusqlite::OptionalExtension as _;

use crate::error::Doing;
use crate::{Catalog, Error};

/// A logical backup device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupDevice {
    /// As given.
    pub name: String,
    /// The path as given: drive letters and name tags are resolved at each use.
    pub physical_name: String,
}

impl Catalog {
    /// The names of all logical devices.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn backup_device_names(&self) -> Result<Vec<String>, Error> {
        let doing = "listing logical devices";
        let mut statement = self
            .connection()
            .prepare_cached("SELECT name FROM own_backup_device ORDER BY name")
            .doing(doing)?;
        let names = statement.query_map([], |row| row.get(0)).doing(doing)?;
        names.collect::<Result<_, _>>().doing(doing)
    }

    /// The device of that name, case-insensitively.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn backup_device(&self, name: &str) -> Result<Option<BackupDevice>, Error> {
        self.connection()
            .query_row(
                "SELECT name, physical_name FROM own_backup_device WHERE name = ?1",
                [name],
                |row| {
                    Ok(BackupDevice {
                        name: row.get(0)?,
                        physical_name: row.get(1)?,
                    })
                },
            )
            .optional()
            .doing("looking up a backup device")
    }

    /// Adds a device; false if the name exists.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn add_backup_device(&mut self, device: &BackupDevice) -> Result<bool, Error> {
        let added = self
            .connection()
            .execute(
                "INSERT OR IGNORE INTO own_backup_device (name, physical_name) VALUES (?1, ?2)",
                [&device.name, &device.physical_name],
            )
            .doing("adding a backup device")?;
        Ok(added > 0)
    }

    /// Drops a device; false if the name does not exist.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn drop_backup_device(&mut self, name: &str) -> Result<bool, Error> {
        let dropped = self
            .connection()
            .execute("DELETE FROM own_backup_device WHERE name = ?1", [name])
            .doing("dropping a backup device")?;
        Ok(dropped > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_one_file_in_any_case() {
        let mut catalog = Catalog::in_memory().unwrap();
        let device = BackupDevice {
            name: "Nightly".to_owned(),
            physical_name: "/b/n.bak".to_owned(),
        };
        assert!(catalog.add_backup_device(&device).unwrap());
        let other = BackupDevice {
            name: "NIGHTLY".to_owned(),
            physical_name: "/b/m.bak".to_owned(),
        };
        assert!(!catalog.add_backup_device(&other).unwrap());
        assert_eq!(catalog.backup_device("nightly").unwrap(), Some(device));
        assert!(catalog.drop_backup_device("nightLY").unwrap());
        assert_eq!(catalog.backup_device("Nightly").unwrap(), None);
    }
}
