//! A backup of one database.

mod base;
mod damaged;
mod emptied;
mod guard;
mod log;
mod made;
mod media;
mod offline;
mod options;
mod outcome;
mod protection;
mod rehearse;
mod repack;
mod space;
mod sqlite_log;
mod writers;

use std::sync::{Arc, Mutex, PoisonError};

use windlass_base::message::table;
use windlass_base::{Guid, Lsn};
use windlass_catalog::DatabaseRecord;
use windlass_codec::{Algorithm, DeflateProvider};
use windlass_crypt::{Certificate, Recipient};
use windlass_engine::{BackupMode, PhaseReport};
use windlass_pipeline::{
    BackupKind, BackupReport, BackupRequest, Encryption, Integrity, MediaRequest, Probe,
    ProbeRequest,
};
use windlass_source::sqlite::SpooledLog;
use windlass_source::{Content, Depth, Opened, Snapshot, SourceDatabase};

use crate::event_log::Entry;
use crate::operation::observer::Watch;
use crate::operation::{device, history, integrity, signing, timing, trace};
use crate::{Completed, Failure, Instance, Session, Sink};
pub use base::MissingBase;
pub(super) use emptied::earlier;
use media::Subject;
pub use options::{BackupOptions, CompressionChoice, LogChoice};
use options::{Settled, settle};
pub use outcome::{BackupMade, BackupOutcome};
pub(crate) use protection::recipients_of;
pub use writers::CopyChoice;

impl Session {
    /// Backs up a database.
    ///
    /// # Errors
    /// The reason, in messages; the last one says that nothing was backed up. What a finished one lacks, its outcome says
    /// ([`BackupOutcome::told`]).
    pub fn backup(
        &mut self,
        database: &str,
        options: &BackupOptions,
        sink: &mut dyn Sink,
    ) -> Result<BackupOutcome, Failure> {
        let devices = options
            .devices
            .iter()
            .chain(options.mirrors.iter().flatten());
        let entry = Entry::of_operation("BACKUP DATABASE", database, devices);
        entry.around(sink, |sink| run(self, database, options, sink))
    }
}

/// The same as part of a statement, which logs its own entry.
pub(crate) fn run(
    session: &mut Session,
    database: &str,
    options: &BackupOptions,
    sink: &mut dyn Sink,
) -> Result<BackupOutcome, Failure> {
    let mut is_worth_noting = true;
    let mut attempt = || {
        let defaults = session.instance.backup_defaults();
        let defaults = defaults?;
        let writes_objects = device::has_url(session, &options.devices)?;
        let settled = settle(options, defaults, writes_objects)?;
        let record = session.backed_up(database)?;
        let subject = Subject {
            database: &record.name,
            kind: match (&options.log, options.is_differential) {
                (Some(_), _) => "LOG",
                (None, true) => "DIFF",
                (None, false) => "FULL",
            },
            own: Some(&record),
        };
        let media = media::choose(session, options, &settled, &subject)?;
        if options.probe.is_some() || media.is_discarded() {
            is_worth_noting = false;
        }
        BackupOperation {
            session: &mut *session,
            record,
            options,
            settled,
        }
        .run_kind(media, sink)
    };
    let result = attempt().map_err(Failure::of_backup);
    result.map_err(|failure| match is_worth_noting {
        true => refused(session, database, options.operation(), failure),
        false => failure.then(table::terminating_abnormally(options.operation())),
    })
}

/// Records in the history that the backup of a database failed, and appends the closing message.
pub(crate) fn refused(
    session: &mut Session,
    database: &str,
    operation: &'static str,
    failure: Failure,
) -> Failure {
    history::record_failure(session, database, operation, &failure);
    session.note_failed_read(database, &failure);
    failure.then(table::terminating_abnormally(operation))
}

/// A backup with checked options.
struct BackupOperation<'a> {
    session: &'a mut Session,
    record: DatabaseRecord,
    options: &'a BackupOptions,
    settled: Settled,
}

impl BackupOperation<'_> {
    fn run_kind(self, media: MediaRequest, sink: &mut dyn Sink) -> Result<BackupOutcome, Failure> {
        if self.is_of_sql_server() {
            return self.run_offline(media, sink);
        }
        match self.options.log.clone() {
            Some(choice) => self.run_log(choice, media, sink),
            None => self.run(media, sink),
        }
    }

    fn run(mut self, media: MediaRequest, sink: &mut dyn Sink) -> Result<BackupOutcome, Failure> {
        self.record.base = match Session::note_other_file(&mut self.record, sink) {
            true => None,
            false => self.session.base_of(&self.record)?,
        };
        if self.session.is_rehearsal() {
            return self.rehearse(media, sink);
        }
        let _in_use = self.session.use_beside(&self.record.name)?;
        let earlier = self.session.earlier(&self.record)?;
        let source = self.source(&media, earlier.last_lsn)?;
        let (base, log) = (source.differential_base(), source.spooled_log());
        let is_discarded = media.is_discarded();
        let depth = self
            .options
            .integrity
            .filter(|_| self.options.probe.is_none());
        let of_engine = match depth {
            Some(depth) => integrity::of_engine(self.session, &self.record, depth)?,
            None => None,
        };
        let opened = source.open(self.engine_kind(base, is_discarded)?)?;
        let content = self.look_at(&opened, &media, sink)?;
        let Opened {
            snapshot, phases, ..
        } = opened;
        if let Some(probe) = self.options.probe {
            return self.measure(probe, snapshot, sink);
        }
        writers::announce(&*snapshot, &self.settled, &self.record.name, sink);
        let (snapshot, integrity) = self.check(snapshot, depth, of_engine, sink)?;
        let kind = self.kind(base, &media, sink)?;
        let snapshot = self.narrowed(snapshot, log.as_ref(), &kind, sink)?;
        self.check_space(&media, &*snapshot, sink)?;
        media::warn_of_damage(&media, sink);
        let encryption = encryption(self.session, self.options)?;
        let request = BackupRequest {
            encryption,
            content,
            integrity,
            is_known_damaged: self.is_known_damaged(integrity, sink)?,
            earlier_until: earlier.finished,
            ..self.request(media, kind)?
        };
        let seen = base::seen(self.session, &request.kind, self.options)?;
        let failures = Instance::device_failures();
        let watch = self.watch(sink);
        let (report, new_base) = windlass_pipeline::backup_undecided(&request, snapshot, &watch)?;
        watch.finish();
        if let Some(failure) = Instance::device_failure(failures) {
            sink.message(table::accelerator_failed(failure));
        }
        self.report_phases(&phases, sink);
        self.announce(&report, sink);
        let is_remembered = self.remember(&report, new_base, &request, sink);
        if !is_discarded {
            base::look_again(self.session, seen, self.options, &self.record.name)?;
        }
        Ok(self.made(report, &request, is_remembered, sink))
    }

    /// Sends the closing messages.
    fn made(
        &self,
        report: BackupReport,
        request: &BackupRequest,
        is_remembered: bool,
        sink: &mut dyn Sink,
    ) -> BackupOutcome {
        let is_discarded = request.media.is_discarded();
        if is_discarded {
            sink.message(table::nothing_kept());
        }
        let all = (request.media.devices.iter()).chain(request.media.mirrors.iter().flatten());
        for device in all.filter(|device| device.is_write_only()) {
            sink.message(table::not_read_back(device));
        }
        sink.message(timing::closing(
            self.options.operation(),
            timing::pages(&report.files),
            report.processed_bytes,
            report.elapsed,
        ));
        BackupOutcome::Made(Box::new(BackupMade {
            devices: history::device_names(&request.media.devices),
            files: media::files(&request.media),
            report,
            is_discarded,
            is_remembered,
            lacks: None,
        }))
    }

    /// Opens the database as the options say. LSNs that are made from the clock come after that of every earlier backup.
    fn source(&mut self, media: &MediaRequest, after: Lsn) -> Result<SourceDatabase, Failure> {
        let options = self.options;
        if options.is_frozen && self.record.log_path.is_some() {
            return Err(table::frozen_engine_not_supported().into());
        }
        let before = self.session.settings.lock_timeout;
        self.session.settings.lock_timeout = options.lock_timeout.or(before);
        let source = self.session.source_of(&self.record);
        self.session.settings.lock_timeout = before;
        let mut source = source?;
        if let SourceDatabase::Sqlite { options: how, .. } = &mut source {
            how.after = after;
            how.spool = options.spool.clone().or(how.spool.take());
            how.frozen = options.is_frozen;
            how.temporary_copy = writers::copy_policy(options, &self.settled, media);
        }
        Ok(source)
    }

    /// Full, or differential with the base that is found.
    fn kind(
        &mut self,
        own: Option<(Guid, Lsn)>,
        media: &MediaRequest,
        sink: &mut dyn Sink,
    ) -> Result<BackupKind, Failure> {
        if !self.options.is_differential {
            return Ok(BackupKind::Full);
        }
        let wanted = base::Wanted {
            record: &self.record,
            own,
            target: &media.devices,
            options: self.options,
        };
        let found = base::find(self.session, &wanted, sink)?;
        let encryption = encryption(self.session, self.options)?;
        let base = found.set_guid;
        protection::check(self.session, &wanted, base, encryption.as_ref(), sink)?;
        Ok(BackupKind::Differential(found))
    }

    /// Of a differential, what the log names as changed, if the log of the database is kept.
    fn narrowed(
        &self,
        mut snapshot: Box<dyn Snapshot>,
        log: Option<&SpooledLog>,
        kind: &BackupKind,
        sink: &mut dyn Sink,
    ) -> Result<Box<dyn Snapshot>, Failure> {
        let (BackupKind::Differential(base), Some(log)) = (kind, log) else {
            return Ok(snapshot);
        };
        let cancel = self.session.cancel_flag();
        match log.changed_since(base.set_guid, &*snapshot, &cancel) {
            Ok(Some(ranges)) => {
                let all = ranges.iter().flat_map(|(_, ranges)| ranges);
                let bytes: u64 = all.map(|range| range.end - range.start).sum();
                sink.message(table::log_names_changes(&self.record.name, bytes >> 10));
                snapshot.narrow(ranges);
            }
            Ok(None) => {}
            Err(windlass_source::Error::Cancelled) => {
                return Err(windlass_source::Error::Cancelled.into());
            }
            // The whole database says it as well.
            Err(error) => tracing::warn!("the changes in the log were not used: {error}"),
        }
        Ok(snapshot)
    }

    /// Checks the content, and returns its kind; warns if a checksum is requested and pages have none.
    fn look_at(
        &self,
        opened: &Opened,
        media: &MediaRequest,
        sink: &mut dyn Sink,
    ) -> Result<Content, Failure> {
        let is_as_is = self.options.is_as_is || self.record.is_as_is;
        integrity::look_at(opened, is_as_is, self.options.on_damage, sink)?;
        if self.settled.checksum && !opened.snapshot.has_page_checksums() {
            sink.message(table::database_without_checksums(&self.record.name));
        }
        match opened.content {
            Content::Empty if self.options.probe.is_none() => self.empty(media, sink),
            content => Ok(content),
        }
    }

    /// Runs SQLite's own check, if requested.
    fn check(
        &mut self,
        snapshot: Box<dyn Snapshot>,
        depth: Option<Depth>,
        of_engine: Option<integrity::Checked>,
        sink: &mut dyn Sink,
    ) -> Result<(Box<dyn Snapshot>, Option<Integrity>), Failure> {
        let (snapshot, checked) = match (of_engine, depth) {
            (Some(checked), _) => (snapshot, checked),
            (None, None) => return Ok((snapshot, None)),
            (None, Some(depth)) => integrity::of_snapshot(self.session, snapshot, depth)?,
        };
        integrity::note(self.session, &self.record, &checked, sink);
        let name = &self.record.name;
        let judged = integrity::judge(&checked, self.options.on_damage, name, sink)?;
        Ok((snapshot, Some(judged)))
    }

    fn watch<'s>(&self, sink: &'s mut dyn Sink) -> Watch<'s> {
        let (operation, stats) = (self.options.operation(), self.settled.stats);
        Watch::new(self.session, operation, &self.record.name, stats, sink)
    }

    /// Reads, and transforms if requested, and reports the rate. Devices are not used.
    fn measure(
        &self,
        probe: Probe,
        snapshot: Box<dyn Snapshot>,
        sink: &mut dyn Sink,
    ) -> Result<BackupOutcome, Failure> {
        let options = self.options;
        let request = ProbeRequest {
            probe,
            compression: self.settled.compression,
            deflate: deflate(self.session, &self.settled)?,
            encryption: options.is_encrypted().then(|| options.cipher()),
            checksum: self.settled.checksum,
            tuning: self.settled.tuning,
        };
        let watch = self.watch(sink);
        let report = windlass_pipeline::probe(&request, snapshot, &watch)?;
        watch.finish();
        sink.completed(Completed::Probe {
            database: &self.record.name,
            report: &report,
        });
        sink.message(timing::probed(&report));
        Ok(BackupOutcome::Measured(Box::new(report)))
    }

    /// The backup mode for a database that has its own differential base.
    fn engine_kind(
        &self,
        base: Option<(Guid, Lsn)>,
        is_discarded: bool,
    ) -> Result<BackupMode, Failure> {
        if self.options.is_differential {
            return match base {
                Some((set_guid, _)) if set_guid.is_nil() => {
                    Err(table::no_differential_base(&self.record.name).into())
                }
                _ => Ok(BackupMode::Differential),
            };
        }
        // A backup that is only measured, or not kept, must not change the differential base.
        let is_passing = self.options.probe.is_some() || is_discarded;
        Ok(match self.settled.is_copy_only || is_passing {
            true => BackupMode::CopyOnly,
            false => BackupMode::Full,
        })
    }

    /// Prints the phases of an engine backup if the trace flags ask for them.
    fn report_phases(&self, phases: &Mutex<Vec<PhaseReport>>, sink: &mut dyn Sink) {
        if !self.session.settings.reports_phases() {
            return;
        }
        let phases = phases.lock().unwrap_or_else(PoisonError::into_inner);
        for line in phases.iter().map(trace::phase) {
            sink.message(table::trace(line));
        }
    }

    fn request(&self, media: MediaRequest, kind: BackupKind) -> Result<BackupRequest, Failure> {
        let (options, settled) = (self.options, &self.settled);
        let is_base = matches!(kind, BackupKind::Full) && !settled.is_copy_only;
        let folder = self.session.instance.bases_folder();
        let digests_to = folder.filter(|_| is_base && !media.is_discarded());
        let guards = self.guards(&media, &kind)?;
        Ok(BackupRequest {
            media: MediaRequest { guards, ..media },
            kind,
            copy_only: settled.is_copy_only,
            compression: settled.compression,
            deflate: deflate(self.session, settled)?,
            encryption: None,
            signing: signing::signing_key(self.session, options.sign_with.as_ref())?,
            checksum: settled.checksum,
            content: Content::Database,
            integrity: None,
            is_known_damaged: false,
            on_damage: options.on_damage,
            name: options.name.clone(),
            description: options.description.clone(),
            expires: settled.expires,
            requester: self.session.instance.identity().to_requester(),
            database_backup_lsn: self.record.base.map_or(Lsn::ZERO, |base| base.lsn),
            earlier_until: None,
            digests_to,
            tuning: settled.tuning,
        })
    }
}

/// The provider that compresses, if the algorithm needs one.
fn deflate(
    session: &Session,
    settled: &Settled,
) -> Result<Option<Arc<dyn DeflateProvider>>, Failure> {
    if settled.compression.algorithm != Algorithm::QatDeflate {
        return Ok(None);
    }
    session.instance.deflate_provider().map(Some)
}

/// The recipients that can read the backup: the instance's certificate, and those given.
fn encryption(session: &Session, options: &BackupOptions) -> Result<Option<Encryption>, Failure> {
    let mut recipients = Vec::new();
    if let Some(name) = &options.certificate {
        let record = session.instance.certificate("find", name)?;
        let certificate = Certificate::read(&record.certificate)?;
        recipients.push(Recipient::Certificate(certificate));
    }
    recipients.extend_from_slice(&options.recipients);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_secs().cast_signed());
    let is_expired = |recipient: &Recipient| matches!(recipient, Recipient::Certificate(certificate) if certificate.validity().1 < now);
    if recipients.iter().any(is_expired) {
        return Err(table::backup_certificate_expired().into());
    }
    Ok((!recipients.is_empty()).then_some(Encryption {
        algorithm: options.cipher(),
        recipients,
    }))
}
