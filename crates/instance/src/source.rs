//! Opens databases for reading: for BACKUP and for measurements.

use windlass_base::Lsn;
use windlass_base::message::table;
use windlass_catalog::{Base, DatabaseRecord, DatabaseState, EarlierBackups, Provenance};
use windlass_source::SourceDatabase;
use windlass_source::sqlite::{FileIdentity, SnapshotOptions};

use crate::operation::database;
use crate::{Failure, Session, Sink, provenance};

impl Session {
    /// Opens a database for reading as BACKUP does. It stays open until the session ends, or a statement
    /// closes it.
    ///
    /// # Errors
    /// Those for which BACKUP refuses a database: it does not exist, it is being restored, it is a
    /// system database, the session is in a transaction, the page engine cannot open it.
    pub fn source(&mut self, name: &str) -> Result<SourceDatabase, Failure> {
        let record = self.readable(name)?;
        self.source_of(&record)
    }

    /// The catalog entry of a database that a backup may read.
    pub(crate) fn readable(&self, name: &str) -> Result<DatabaseRecord, Failure> {
        database::check_own(
            self,
            name,
            "A backup",
            "The instance stores its own data in the file windlass.catalog in its directory: \
             attach a copy of it.",
        )?;
        let record = database::readable(self, name)?;
        match record.state {
            DatabaseState::Standby => Err(table::standby_not_backed_up(&record.name).into()),
            DatabaseState::Online | DatabaseState::Restoring | DatabaseState::Offline => Ok(record),
        }
    }

    /// The current differential base according to the history.
    pub(crate) fn base_of(&self, record: &DatabaseRecord) -> Result<Option<Base>, Failure> {
        if record.base.is_some() {
            return Ok(record.base);
        }
        let Some(of) = self.provenance_of(record) else {
            return Ok(None);
        };
        Ok(self.instance.catalog().base_of(record.database_id, &of)?)
    }

    /// What the history knows of the earlier backups of a database.
    pub(crate) fn earlier(&self, record: &DatabaseRecord) -> Result<EarlierBackups, Failure> {
        let base = record.base.map_or(Lsn::ZERO, |base| base.lsn);
        let Some(of) = self.provenance_of(record) else {
            return Ok(EarlierBackups {
                last_lsn: base,
                chain_lsns: vec![base],
                finished: None,
            });
        };
        let mut known = self.instance.catalog().earlier_backups(&of)?;
        known.last_lsn = known.last_lsn.max(base);
        known.chain_lsns.push(base);
        Ok(known)
    }

    /// The database as its next backup will describe it.
    pub(crate) fn provenance_of(&self, record: &DatabaseRecord) -> Option<Provenance> {
        provenance::of_record(record, &self.instance.identity().machine)
    }

    /// Tells if the file of a SQLite database is another one by now, whose backups are of a family of their own.
    /// Whether it is: then the known base is none.
    pub(crate) fn note_other_file(record: &mut DatabaseRecord, sink: &mut dyn Sink) -> bool {
        let found =
            FileIdentity::recorded_family(&record.path).filter(|_| record.log_path.is_none());
        let (Some(found), Some(known)) = (found, record.family_guid) else {
            return false;
        };
        if found != known {
            let (name, path) = (&record.name, record.path.display());
            sink.message(table::file_of_another_database(name, path, found, known));
            record.family_guid = Some(found);
        }
        found != known
    }

    /// Opens the database of a catalog entry.
    pub(crate) fn source_of(&mut self, record: &DatabaseRecord) -> Result<SourceDatabase, Failure> {
        if self.principal.is_guest() && !self.instance.engines.is_lent(&record.name) {
            return Err(table::not_lent(&record.name).into());
        }
        // The session's own connection would lose its locks, see `Session`.
        self.queries.release(&record.path);
        if record.log_path.is_some() {
            let limit = self.settings.lock_timeout.unwrap_or_default();
            let cancel = self.cancel_flag();
            self.instance.refuse_forgotten_files(record)?;
            let engines = self.instance.engines.waiting(limit, cancel);
            let database = engines.database(record)?;
            if let Err(error) = self.instance.note_files(record, &database) {
                tracing::warn!("the files of '{}' were not noted: {error}", record.name);
            }
            return Ok(SourceDatabase::Engine {
                database,
                name: record.name.clone(),
            });
        }
        Ok(SourceDatabase::Sqlite {
            path: record.path.clone(),
            options: SnapshotOptions {
                database_name: Some(record.name.clone()),
                logical_name: Some(record.logical_name.clone()),
                family_guid: record.family_guid,
                after: record.base.map_or(Lsn::ZERO, |base| base.lsn),
                busy_timeout: self
                    .settings
                    .lock_timeout
                    .unwrap_or(SnapshotOptions::default().busy_timeout),
                cancel: Some(self.cancel_flag()),
                spool: self.instance.kept_log(record),
                ..SnapshotOptions::default()
            },
        })
    }
}
