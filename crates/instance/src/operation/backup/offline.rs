//! A backup of a SQL Server database that was restored here, and is offline: its files as they are, page by page checked.
//!
//! Nothing changes such a database here, so that there are only full backups, and none is the base of another.

use std::path::PathBuf;

use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, DatabaseState, FileRecord, Origin};
use windlass_pipeline::{BackupKind, BackupRequest, MediaRequest};
use windlass_source::Snapshot;
use windlass_sqlserver::{OfflineFile, OfflineSnapshot};

use super::{BackupOperation, BackupOptions, BackupOutcome, base, encryption, media};
use crate::operation::database;
use crate::{Failure, Session, Sink};

impl Session {
    /// The entry of a database that a backup may read: that can be read here, or is offline and of SQL Server.
    pub(super) fn backed_up(&self, name: &str) -> Result<DatabaseRecord, Failure> {
        let known = self.instance.database(name)?;
        match known.filter(is_offline) {
            None => self.readable(name),
            Some(record) => {
                database::check_own(self, name, "A backup", "")?;
                Ok(record)
            }
        }
    }
}

fn is_offline(record: &DatabaseRecord) -> bool {
    (record.origin, record.state) == (Origin::SqlServer, DatabaseState::Offline)
}

/// Refuses what can be done only with a database that changes, or that SQLite reads.
pub(super) fn refuse(options: &BackupOptions, name: &str) -> Result<(), Failure> {
    if options.is_differential || options.log.is_some() {
        return Err(table::sql_server_full_only(name).into());
    }
    let meaningless = [
        (options.integrity.is_some(), "SQLite's check"),
        (options.is_frozen, "The promise that nothing writes"),
        (options.is_as_is, "Content that is not a database"),
        (options.spool.is_some(), "The log of a follower"),
    ];
    match meaningless.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => Err(table::sql_server_option_refused(option, name).into()),
        None => Ok(()),
    }
}

impl BackupOperation<'_> {
    /// Whether the database is one of SQL Server.
    pub(super) fn is_of_sql_server(&self) -> bool {
        is_offline(&self.record)
    }

    pub(super) fn run_offline(
        mut self,
        media: MediaRequest,
        sink: &mut dyn Sink,
    ) -> Result<BackupOutcome, Failure> {
        refuse(self.options, &self.record.name)?;
        self.settled.is_copy_only = true;
        let _in_use = self.session.use_beside(&self.record.name)?;
        let files = self
            .session
            .instance
            .catalog()
            .files(self.record.database_id)?;
        let files: Vec<OfflineFile> = files.into_iter().filter_map(offline_file).collect();
        let snapshot = OfflineSnapshot::open(&self.record.name, &files)?;
        // An entry that was made before backups knew the family.
        self.record.family_guid = Some(snapshot.identity().family_guid);
        if self.session.is_rehearsal() {
            return self.rehearse(media, sink);
        }
        if let Some(probe) = self.options.probe {
            return self.measure(probe, Box::new(snapshot), sink);
        }
        self.check_space(&media, &snapshot, sink)?;
        media::warn_of_damage(&media, sink);
        let earlier = self.session.earlier(&self.record)?;
        let request = BackupRequest {
            encryption: encryption(self.session, self.options)?,
            // Nothing else looks at the pages of a database that nothing opens.
            checksum: true,
            earlier_until: earlier.finished,
            is_known_damaged: self.is_known_damaged(None, sink)?,
            ..self.request(media, BackupKind::Full)?
        };
        let seen = base::seen(self.session, &request.kind, self.options)?;
        let watch = self.watch(sink);
        let (report, new_base) =
            windlass_pipeline::backup_undecided(&request, Box::new(snapshot), &watch)?;
        watch.finish();
        self.announce(&report, sink);
        let is_remembered = self.remember(&report, new_base, &request, sink);
        if !request.media.is_discarded() {
            base::look_again(self.session, seen, self.options, &self.record.name)?;
        }
        Ok(self.made(report, &request, is_remembered, sink))
    }
}

fn offline_file(file: FileRecord) -> Option<OfflineFile> {
    Some(OfflineFile {
        id: u16::try_from(file.file_id).ok()?,
        is_log: file.is_log,
        logical_name: file.logical_name,
        path: file.path,
        bytes: 0,
    })
}

/// The files of a database of SQL Server, for a dry run.
pub(super) fn paths(session: &Session, record: &DatabaseRecord) -> Result<Vec<PathBuf>, Failure> {
    let files = session.instance.catalog().files(record.database_id)?;
    Ok(files.into_iter().map(|file| file.path).collect())
}
