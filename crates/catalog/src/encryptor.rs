//! How the backups that are remembered were encrypted.

use windlass_base::Guid;

use crate::error::Doing;
use crate::{Catalog, Error};

impl Catalog {
    /// For whom a set was encrypted, as `encryptor_type` says: each kind once. Nothing of one that is not
    /// known or not encrypted.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn encryptors_of(&self, set: Guid) -> Result<Vec<String>, Error> {
        let doing = "reading how a backup was encrypted";
        let mut statement = self
            .connection()
            .prepare_cached(
                "SELECT DISTINCT encryptor_type FROM own_backupset \
                 WHERE backup_set_uuid = ?1 AND encryptor_type IS NOT NULL",
            )
            .doing(doing)?;
        let rows = statement
            .query_map([set.to_string()], |row| row.get(0))
            .doing(doing)?
            .collect::<rusqlite::Result<_>>();
        rows.doing(doing)
    }
}
