//! How the backups in the history were encrypted.

use windlass_base::Guid;

use crate::error::Doing;
use crate::{Catalog, Error};

impl Catalog {
    /// The kinds of recipients of a set, as in `encryptor_type`, each once. Empty if it is unknown
    /// or not encrypted.
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
