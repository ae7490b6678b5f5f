//! BACKUP LOG: the log of a page engine database since its last log backup. For that of a SQLite file, see
//! `sqlite_log`.
//!
//! It needs no data file: with `NO_TRUNCATE` the log is read from its file if the database cannot be opened. With
//! NORECOVERY the database is closed first, so that what is backed up is the end of its log, and left restoring; with
//! STANDBY it can be read then.
//!
//! The log is truncated last, when the set is complete and in the history. What goes to NUL is kept nowhere, so it
//! truncates nothing.

use std::path::Path;

use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, DatabaseState};
use windlass_media::{SetConfiguration, SourceKind};
use windlass_pipeline::{BackupKind, BackupReport, BackupRequest, MediaRequest, NewBase};
use windlass_source::Snapshot;
use windlass_source::engine::{EngineLogSnapshot, SavedTail, pending, wait_at_tail};

use super::{BackupOperation, BackupOutcome, LogChoice, encryption, media};
use crate::operation::restore::standby_path;
use crate::{Failure, Instance, Sink};

impl BackupOperation<'_> {
    pub(super) fn run_log(
        mut self,
        choice: LogChoice,
        media: MediaRequest,
        sink: &mut dyn Sink,
    ) -> Result<BackupOutcome, Failure> {
        if self.session.is_rehearsal() {
            return Err(table::not_built_yet(
                "A dry run of BACKUP LOG",
                "Run it: it changes no data, and a second copy can be made WITH COPY_ONLY.",
            )
            .into());
        }
        match choice {
            choice if self.record.log_path.is_none() => self.run_sqlite_log(&choice, media, sink),
            LogChoice::NoRecovery => self.back_up_tail(None, media, sink),
            LogChoice::Standby(file) => self.back_up_tail(Some(&file), media, sink),
            LogChoice::Truncate | LogChoice::NoTruncate => {
                let _in_use = self.session.use_beside(&self.record.name)?;
                let snapshot = self.log(&choice, &media)?;
                self.back_up_log(snapshot, media, sink)
            }
        }
    }

    /// Opens the log of the database, or of its log file alone.
    fn log(
        &mut self,
        choice: &LogChoice,
        media: &MediaRequest,
    ) -> Result<Box<dyn Snapshot>, Failure> {
        let truncates =
            *choice == LogChoice::Truncate && !self.settled.is_copy_only && !media.is_discarded();
        match self.session.source_of(&self.record) {
            Ok(source) => match source.open_log(truncates) {
                Ok(opened) => Ok(opened.snapshot),
                Err(error) => Err(self.without_chain(error.into())),
            },
            Err(_) if *choice == LogChoice::NoTruncate => Ok(Box::new(self.log_of_file()?)),
            Err(failure) => Err(failure),
        }
    }

    /// Says more about 4214 if there is a full backup.
    fn without_chain(&self, failure: Failure) -> Failure {
        let number = table::no_current_backup().number;
        let is_missing = failure
            .messages
            .iter()
            .any(|message| message.number == number);
        match is_missing && self.record.base.is_some() {
            true => failure.then(table::chain_has_ended(&self.record.name)),
            false => failure,
        }
    }

    /// Opens the log of a database that is closed, or cannot be opened.
    fn log_of_file(&self) -> Result<EngineLogSnapshot, Failure> {
        let path = self.record.log_path.as_deref();
        let path = path.ok_or_else(|| Failure::from(table::internal_consistency()))?;
        let snapshot = EngineLogSnapshot::of_file(path)?.named(&self.record.name);
        let found = snapshot.identity().family_guid;
        match self.record.family_guid.filter(|known| *known != found) {
            None => Ok(snapshot),
            Some(known) => Err(table::files_of_another_database(
                &self.record.name,
                path.display(),
                &self.record.name,
                found,
                known,
            )
            .into()),
        }
    }

    /// Closes the database, backs up the end of its log, and leaves it restoring, or to be read with the file `standby`.
    fn back_up_tail(
        mut self,
        standby: Option<&str>,
        media: MediaRequest,
        sink: &mut dyn Sink,
    ) -> Result<BackupOutcome, Failure> {
        let name = self.record.name.clone();
        if self.session.current_database().eq_ignore_ascii_case(&name) {
            return Err(table::in_use_by_session("BACKUP LOG", &name).into());
        }
        if media.is_discarded() {
            let option = standby.map_or("NORECOVERY", |_| "STANDBY");
            return Err(table::option_conflict(option, "DISK = 'NUL'").into());
        }
        let standby = standby.map(|written| standby_path(self.session, written));
        let standby = standby.transpose()?;
        let alone = self.session.use_alone(&name);
        let alone = alone.ok_or_else(|| Failure::from(table::exclusive_access()))?;
        // Recovers it, if a crash left it open.
        self.session.source_of(&self.record)?;
        self.session.instance.engines.close(&name)?;
        let snapshot = self.log_of_file()?;
        if let Some(path) = &standby {
            snapshot.check_standby(path)?;
        }
        // While the log file is locked, nobody opens the database; afterwards the catalog keeps it from being
        // opened. After a crash, RESTORE DATABASE WITH RECOVERY takes it back.
        self.store(DatabaseState::Restoring)?;
        let outcome = self.back_up_log(Box::new(snapshot), media, sink);
        let outcome = match (&outcome, &standby) {
            (Ok(BackupOutcome::Made(made)), Some(standby)) => {
                self.stand_by(&made.report.set, standby).and(outcome)
            }
            _ => outcome,
        };
        if outcome.is_err() && !self.waits()? {
            self.store(DatabaseState::Online)?;
        }
        drop(alone);
        outcome
    }

    /// Lets the closed database be read, until a restore continues it or makes it a database again.
    fn stand_by(&mut self, tail: &SetConfiguration, file: &Path) -> Result<(), Failure> {
        let log = self.record.log_path.clone().unwrap_or_default();
        let made_for = Some(self.record.made_for);
        let saved = SavedTail {
            set_guid: tail.set_guid,
            checkpoint_lsn: tail.checkpoint_lsn,
            last_lsn: tail.last_lsn,
            made_for,
        };
        wait_at_tail(&log, &saved)?;
        windlass_source::engine::stand_by(&log, &self.record.name, file)?;
        self.store(DatabaseState::Standby)
    }

    /// Whether the files wait for a restore.
    fn waits(&self) -> Result<bool, Failure> {
        let log = self.record.log_path.as_deref();
        Ok(log.map(pending).transpose()?.flatten().is_some())
    }

    fn store(&mut self, state: DatabaseState) -> Result<(), Failure> {
        let record = DatabaseRecord {
            state,
            ..self.record.clone()
        };
        Ok(self.session.instance.store(&record)?)
    }

    pub(super) fn back_up_log(
        &mut self,
        snapshot: Box<dyn Snapshot>,
        media: MediaRequest,
        sink: &mut dyn Sink,
    ) -> Result<BackupOutcome, Failure> {
        media::warn_of_damage(&media, sink);
        let earlier = self.session.earlier(&self.record)?;
        let request = BackupRequest {
            encryption: encryption(self.session, self.options)?,
            earlier_until: earlier.finished,
            // The log is verified as it is read.
            checksum: true,
            ..self.request(media, BackupKind::Log)?
        };
        let failures = Instance::device_failures();
        let watch = self.watch(sink);
        let (report, log) = windlass_pipeline::backup_undecided(&request, snapshot, &watch)?;
        watch.finish();
        if let Some(failure) = Instance::device_failure(failures) {
            sink.message(table::accelerator_failed(failure));
        }
        self.announce(&report, sink);
        let is_remembered = self.remember(&report, log, &request, sink);
        Ok(self.made(report, &request, is_remembered, sink))
    }

    /// A differential begins the chain of log backups of a database of the page engine, if it has none.
    pub(super) fn begin_chain(
        &self,
        report: &BackupReport,
        request: &BackupRequest,
        differential: NewBase,
        sink: &mut dyn Sink,
    ) {
        let is_kept = !report.set.is_damaged && !request.media.is_discarded();
        if report.set.source_kind != SourceKind::Engine || !is_kept {
            return;
        }
        if let Err(error) = differential.take() {
            sink.message(table::chain_not_begun(&self.record.name, error));
        }
    }

    /// The log that is backed up may be reused.
    pub(super) fn truncate(&self, log: NewBase, sink: &mut dyn Sink) {
        if let Err(error) = log.take() {
            sink.message(table::log_not_truncated(&self.record.name, error));
        }
    }
}
