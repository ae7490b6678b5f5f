//! BACKUP DATABASE.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use windlass_base::message::table;
use windlass_base::{Guid, Lsn, Moment};
use windlass_catalog::DatabaseRecord;
use windlass_codec::{Algorithm, DeflateProvider};
use windlass_crypt::{Certificate, Cipher, Recipient};
use windlass_device::DeviceAddress;
use windlass_engine::{BackupMode, PhaseReport};
use windlass_io::queue::IoMethodChoice;
use windlass_pipeline::{
    BackupKind, BackupReport, BackupRequest, Encryption, Integrity, MediaRequest, NewBase, Probe,
    ProbeRequest,
};
use windlass_source::{Content, Depth, Opened, Snapshot, SourceDatabase};
use windlass_tsql::ast::{BackupStatement, BackupTarget};

pub use super::base::MissingBase;
use super::observer::Watch;
pub use super::writers::CopyChoice;
use super::{
    backup_media, base, database, history, integrity, signing, space, timing, trace, writers,
};
use crate::option::{self, BackupChoices};
use crate::{Completed, Failure, Instance, Session, Sink};

/// Options of a backup that only plain commands have.
#[derive(Debug, Clone, Default)]
pub struct BackupExtras {
    /// The media that hold the full backup a differential counts from.
    pub base: Vec<DeviceAddress>,
    /// Who can read the backup beside the certificate that the statement names.
    pub recipients: Vec<Recipient>,
    /// What carries reads and writes.
    pub io_method: IoMethodChoice,
    /// The cipher for those, where the statement names none; AES-256 when absent.
    pub algorithm: Option<Cipher>,
    /// What becomes of a differential whose base's media are away.
    pub missing_base: MissingBase,
    /// How long to wait for other programs' locks, where the session does not say it.
    pub lock_timeout: Option<Duration>,
    /// The user promises that no program writes to the database.
    pub frozen: bool,
    /// Where a copy lies that lets writers go on.
    pub temporary_copy: CopyChoice,
}

/// `event_type` of a page that does not match its checksum, in `suspect_pages`.
pub(super) const BAD_CHECKSUM: u8 = 2;

/// The pages named in messages about damage; the report has all.
const DAMAGED_PAGES_TOLD: usize = 10;

pub(super) fn execute(
    session: &mut Session,
    statement: &BackupStatement,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    run(session, statement, &BackupExtras::default(), sink)
}

/// Executes a BACKUP statement.
pub(crate) fn run(
    session: &mut Session,
    statement: &BackupStatement,
    extras: &BackupExtras,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let (name, files) = match &statement.target {
        BackupTarget::Database { name, files } => (name, files),
        BackupTarget::Log { name } => {
            let name = option::name(&name.node, session)?;
            let refusal = database::refuse_log(session, &name);
            return Err(refusal.then(table::terminating_abnormally("BACKUP LOG")));
        }
        BackupTarget::Group { .. } | BackupTarget::Server => {
            return Err(table::several_backups_not_supported().into());
        }
    };
    let mut operation = "BACKUP DATABASE";
    // The database whose backup has failed if this does.
    let mut failing = None;
    let mut attempt = || {
        let name = option::name(&name.node, session)?;
        failing = Some(name.clone());
        let defaults = session.instance.backup_defaults()?;
        let mut choices = option::choose_backup(&statement.options, defaults, session)?;
        choices.tuning.io_method = extras.io_method;
        if choices.differential {
            operation = "BACKUP DATABASE WITH DIFFERENTIAL";
        }
        if !files.is_empty() {
            return Err(table::file_backup_not_supported().into());
        }
        let record = session.readable(&name)?;
        let media = backup_media::choose(session, statement, &choices, &record)?;
        if choices.probe.is_some() || media.is_discarded() {
            failing = None;
        }
        Work {
            session: &mut *session,
            record,
            choices,
            operation,
        }
        .run(media, extras, sink)
    };
    let result = attempt().map_err(Failure::of_backup);
    if let (Err(failure), Some(database)) = (&result, failing) {
        history::record_failure(session, &database, operation, failure);
    }
    result.map_err(|failure| failure.then(table::terminating_abnormally(operation)))
}

/// A backup whose statement has been understood.
pub(super) struct Work<'a> {
    pub(super) session: &'a mut Session,
    pub(super) record: DatabaseRecord,
    pub(super) choices: BackupChoices,
    pub(super) operation: &'static str,
}

impl Work<'_> {
    fn run(
        mut self,
        media: MediaRequest,
        extras: &BackupExtras,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        self.record.base = self.session.base_of(&self.record)?;
        if self.session.is_rehearsal() {
            return self.rehearse(media, extras, sink);
        }
        let source = self.source(&media, extras)?;
        let base = source.differential_base();
        let is_discarded = media.is_discarded();
        let depth = self
            .choices
            .integrity
            .filter(|_| self.choices.probe.is_none());
        let of_engine = match depth {
            Some(depth) => integrity::of_engine(self.session, &self.record, depth)?,
            None => None,
        };
        let opened = source.open(self.engine_kind(base, is_discarded)?)?;
        self.look_at(&opened, sink)?;
        let Opened {
            snapshot,
            content,
            phases,
        } = opened;
        if let Some(probe) = self.choices.probe {
            return self.measure(probe, snapshot, sink);
        }
        writers::announce(&*snapshot, &self.choices, &self.record.name, sink);
        let (snapshot, integrity) = self.check(snapshot, depth, of_engine, sink)?;
        let family = snapshot.identity().family_guid;
        let kind = self.kind(family, base, &media, extras, sink)?;
        space::check(self.session, &media, &self.choices, &*snapshot, sink)?;
        let encryption = self.encryption(extras)?;
        let request = BackupRequest {
            encryption,
            is_as_is: content == Content::Unknown,
            integrity,
            ..self.request(media, kind)?
        };
        let failures = Instance::device_failures();
        let watch = Watch::new(
            self.session,
            self.operation,
            &self.record.name,
            self.choices.stats,
            sink,
        );
        let (report, new_base) = windlass_pipeline::backup_undecided(&request, snapshot, &watch)?;
        watch.finish();
        if let Some(failure) = Instance::device_failure(failures) {
            sink.message(table::accelerator_failed(failure));
        }
        self.tell_phases(&phases, sink);
        self.tell(&report, sink);
        self.remember(&report, new_base, &request, sink);
        if is_discarded {
            sink.message(table::nothing_kept());
        }
        sink.message(timing::closing(
            self.operation,
            timing::pages(&report.files),
            report.processed_bytes,
            report.elapsed,
        ));
        Ok(())
    }

    /// The database, opened with the options of the command line.
    fn source(
        &mut self,
        media: &MediaRequest,
        extras: &BackupExtras,
    ) -> Result<SourceDatabase, Failure> {
        if extras.frozen && self.record.log_path.is_some() {
            return Err(table::frozen_engine_not_supported().into());
        }
        let before = self.session.settings.lock_timeout;
        self.session.settings.lock_timeout = extras.lock_timeout.or(before);
        let source = self.session.source_of(&self.record);
        self.session.settings.lock_timeout = before;
        let mut source = source?;
        if let SourceDatabase::Sqlite { options, .. } = &mut source {
            options.frozen = extras.frozen;
            options.temporary_copy =
                writers::copy_policy(&self.choices, media, &extras.temporary_copy);
        }
        Ok(source)
    }

    /// Full, or differential upon the base that is found.
    fn kind(
        &mut self,
        family: Guid,
        own: Option<(Guid, Lsn)>,
        media: &MediaRequest,
        extras: &BackupExtras,
        sink: &mut dyn Sink,
    ) -> Result<BackupKind, Failure> {
        if !self.choices.differential {
            return Ok(BackupKind::Full);
        }
        let wanted = base::Wanted {
            record: &self.record,
            family,
            own,
            target: &media.devices,
            extras,
        };
        base::find(self.session, &wanted, sink).map(BackupKind::Differential)
    }

    /// What the snapshot looks like from outside.
    fn look_at(&self, opened: &Opened, sink: &mut dyn Sink) -> Result<(), Failure> {
        let is_as_is = self.choices.is_as_is || self.record.is_as_is;
        integrity::look_at(opened, is_as_is, sink)?;
        if self.choices.checksum && !opened.snapshot.has_page_checksums() {
            sink.message(table::database_without_checksums(&self.record.name));
        }
        Ok(())
    }

    /// SQLite's own check, if requested.
    fn check(
        &self,
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
        let name = &self.record.name;
        let judged = integrity::judge(&checked, self.choices.on_damage, name, sink)?;
        Ok((snapshot, Some(judged)))
    }

    /// Reads, and transforms if requested, and reports the rate. Devices are not used.
    fn measure(
        &self,
        probe: Probe,
        snapshot: Box<dyn Snapshot>,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let request = ProbeRequest {
            probe,
            compression: self.choices.compression,
            deflate: self.deflate()?,
            encryption: self
                .choices
                .encryption
                .as_ref()
                .map(|(algorithm, _)| *algorithm),
            checksum: self.choices.checksum,
            tuning: self.choices.tuning,
        };
        let watch = Watch::new(
            self.session,
            self.operation,
            &self.record.name,
            self.choices.stats,
            sink,
        );
        let report = windlass_pipeline::probe(&request, snapshot, &watch)?;
        watch.finish();
        sink.completed(Completed::Probe {
            database: &self.record.name,
            report: &report,
        });
        sink.message(timing::probed(&report));
        Ok(())
    }

    /// What the backup is to a database that knows its differential base.
    fn engine_kind(
        &self,
        base: Option<(Guid, Lsn)>,
        is_discarded: bool,
    ) -> Result<BackupMode, Failure> {
        match &self.choices {
            choices if choices.differential => match base {
                Some((set_guid, _)) if set_guid.is_nil() => {
                    Err(table::no_differential_base(&self.record.name).into())
                }
                _ => Ok(BackupMode::Differential),
            },
            // What is only measured, or not kept, must not touch the differential base.
            choices if choices.copy_only || choices.probe.is_some() || is_discarded => {
                Ok(BackupMode::CopyOnly)
            }
            _ => Ok(BackupMode::Full),
        }
    }

    /// The phases of an engine backup, where the trace flags ask for them.
    fn tell_phases(&self, phases: &Mutex<Vec<PhaseReport>>, sink: &mut dyn Sink) {
        if !self.session.settings.tells_phases() {
            return;
        }
        let phases = phases.lock().unwrap_or_else(PoisonError::into_inner);
        for line in phases.iter().map(trace::phase) {
            sink.message(table::trace(line));
        }
    }

    pub(super) fn request(
        &self,
        media: MediaRequest,
        kind: BackupKind,
    ) -> Result<BackupRequest, Failure> {
        let choices = &self.choices;
        let is_base = matches!(kind, BackupKind::Full) && !choices.copy_only;
        let folder = self.session.instance.bases_folder();
        let digests_to = folder.filter(|_| is_base && !media.is_discarded());
        Ok(BackupRequest {
            media,
            kind,
            copy_only: choices.copy_only,
            compression: choices.compression,
            deflate: self.deflate()?,
            encryption: None,
            signing: signing::signing_key(self.session, choices.sign_with.as_ref())?,
            checksum: choices.checksum,
            is_as_is: false,
            integrity: None,
            on_damage: choices.on_damage,
            name: choices.name.clone(),
            description: choices.description.clone(),
            expires: choices.expires,
            requester: self.session.instance.identity().to_requester(),
            database_backup_lsn: self.record.base.map_or(Lsn::ZERO, |base| base.lsn),
            digests_to,
            tuning: choices.tuning,
        })
    }

    /// Who compresses, if that is not for the codec alone to say.
    fn deflate(&self) -> Result<Option<Arc<dyn DeflateProvider>>, Failure> {
        if self.choices.compression.algorithm != Algorithm::QatDeflate {
            return Ok(None);
        }
        let provider = self.session.instance.deflate_provider();
        Ok(Some(provider?))
    }

    /// The recipients of the backup: the certificate of the statement, and those of the command
    /// line.
    pub(super) fn encryption(&self, extras: &BackupExtras) -> Result<Option<Encryption>, Failure> {
        let mut recipients = Vec::new();
        let mut algorithm = extras.algorithm.unwrap_or(Cipher::Aes256);
        if let Some((chosen, name)) = &self.choices.encryption {
            algorithm = *chosen;
            let record = self.session.instance.certificate("find", name)?;
            let certificate = Certificate::read(&record.certificate)?;
            recipients.push(Recipient::Certificate(certificate));
        }
        recipients.extend_from_slice(&extras.recipients);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs().cast_signed());
        let is_expired = |recipient: &Recipient| matches!(recipient, Recipient::Certificate(certificate) if certificate.validity().1 < now);
        if recipients.iter().any(is_expired) {
            return Err(table::backup_certificate_expired().into());
        }
        Ok((!recipients.is_empty()).then_some(Encryption {
            algorithm,
            recipients,
        }))
    }

    /// The messages before the closing one.
    fn tell(&self, report: &BackupReport, sink: &mut dyn Sink) {
        sink.completed(Completed::Backup {
            database: &self.record.name,
            report,
        });
        for file in &report.files {
            sink.message(table::processed_pages(
                file.pages,
                &self.record.name,
                &file.logical_name,
                report.set.position,
            ));
        }
        if report.damaged.is_empty() {
            return;
        }
        for page in report.damaged.iter().take(DAMAGED_PAGES_TOLD) {
            sink.message(table::page_mismatch(page.file_id, page.page, &page.file));
        }
        if report.damaged.len() > DAMAGED_PAGES_TOLD {
            let more = report.damaged.len() - DAMAGED_PAGES_TOLD;
            sink.message(table::more_pages(more));
        }
        sink.message(table::damaged_database_backed_up());
    }

    /// The history, and the new differential base if the history finds no newer one. Nothing here makes a
    /// good backup a bad one.
    fn remember(
        &mut self,
        report: &BackupReport,
        new_base: NewBase,
        request: &BackupRequest,
        sink: &mut dyn Sink,
    ) {
        let record =
            history::backup_record(&report.media, &report.set, &request.media, report.elapsed);
        let of = base::backed_up(&self.record, &report.set, request.media.is_discarded());
        let catalog = self.session.instance.catalog_mut();
        let is_base = catalog.record_backup(&record, Some(&of));
        let suspect = report.damaged.iter().try_for_each(|page| {
            catalog.suspect_page(
                self.record.database_id,
                page.file_id,
                page.page,
                BAD_CHECKSUM,
                Moment::now().0,
            )
        });
        for error in [is_base.as_ref().err(), suspect.as_ref().err()]
            .into_iter()
            .flatten()
        {
            tracing::warn!("the history was not written: {error}");
            sink.message(table::history_not_written());
        }
        // Without a row in the history it is not a base: the previous one stays.
        if !is_base.unwrap_or(false) {
            return;
        }
        if let Err(error) = new_base.take() {
            sink.message(table::history_not_written());
            sink.message(table::base_not_taken(&self.record.name, error));
        }
        base::tidy(self.session);
    }
}
