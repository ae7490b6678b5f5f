//! Media that a backup of many databases would overwrite although they hold another database's backups: two folders
//! can have files of one name, and the name of the medium is made from it.

use windlass_base::message::table;
use windlass_pipeline::{MediaSet, Overwrite};

use crate::provenance::of_set;
use crate::{Failure, Session};

impl Session {
    /// Refuses to overwrite a medium with backups of another database than `database`.
    ///
    /// # Errors
    /// Which database it holds.
    pub fn refuse_medium_of_another(
        &self,
        database: &str,
        medium: &str,
        overwrite: Overwrite,
    ) -> Result<(), Failure> {
        if overwrite == Overwrite::Append {
            return Ok(());
        }
        let record = self.instance.database(database)?;
        let own = record.and_then(|record| self.provenance_of(&record));
        // What cannot be read as a medium holds no backup.
        let media = MediaSet::open_any(&self.devices(&[medium.to_owned()])?);
        let (Some(own), Ok(media)) = (own, media) else {
            return Ok(());
        };
        let mut held = media
            .sets()
            .into_iter()
            .map(|entry| of_set(&entry.configuration));
        let other = held.find(|of| {
            !of.is_same_database(&own) && (&of.path, &of.machine) != (&own.path, &own.machine)
        });
        match other {
            Some(other) => {
                let held = format!("'{}' ('{}' on {})", other.name, other.path, other.machine);
                Err(table::medium_of_another(medium, held, database).into())
            }
            None => Ok(()),
        }
    }
}
