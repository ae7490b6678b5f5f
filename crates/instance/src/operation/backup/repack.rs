//! Copies a SQL Server backup to Windlass media: each of its sets is verified and becomes a set there.
//!
//! Nothing is entered in the history: the database is not of this instance, and the copies are not its
//! backups.

use windlass_base::Lsn;
use windlass_base::message::table;
use windlass_device::DeviceAddress;
use windlass_pipeline::{
    BackupKind, BackupReport, BackupRequest, MediaRequest, OnDamage, Overwrite,
};
use windlass_sqlserver::{BackupFiles, SetSnapshot};

use super::media::{self, Subject};
use super::options::{BackupOptions, Settled, settle};
use super::{deflate, encryption};
use crate::event_log::Entry;
use crate::names::absolute;
use crate::operation::media::MediaOptions;
use crate::operation::observer::Watch;
use crate::operation::{DeviceName, Store, device, resolve, signing, sql_server, timing};
use crate::tag::Tags;
use crate::{Completed, Failure, Session, Sink};

/// The operation's name in messages.
const OPERATION: &str = "REPACK";

impl Session {
    /// Copies all sets of a SQL Server backup, given by all its families, to Windlass media. Options
    /// about the content of a backup have no meaning here and are not used.
    ///
    /// # Errors
    /// The reason, in messages. Sets that were copied before are on the media.
    pub fn repack(
        &mut self,
        from: &[DeviceName],
        options: &BackupOptions,
        sink: &mut dyn Sink,
    ) -> Result<Vec<BackupReport>, Failure> {
        let entry = Entry::of_operation(OPERATION, "", options.devices.iter());
        let done = entry.around(sink, |sink| attempt(self, from, options, sink));
        done.map_err(|failure| {
            failure
                .of_backup()
                .then(table::terminating_abnormally(OPERATION))
        })
    }
}

fn attempt(
    session: &mut Session,
    from: &[DeviceName],
    options: &BackupOptions,
    sink: &mut dyn Sink,
) -> Result<Vec<BackupReport>, Failure> {
    let defaults = session.instance.backup_defaults()?;
    let settled = settle(
        options,
        defaults,
        device::has_url(session, &options.devices)?,
    )?;
    let tags: Tags = session.instance.tags();
    let sources = resolve(session, from, &tags, &Store::default())?;
    let files = BackupFiles::open(&sources)?;
    if let Some((path, finding)) = files.findings().first()
        && options.on_damage == OnDamage::Stop
    {
        let found = table::found_on_device(path.display(), finding);
        return Err(vec![table::set_damaged(), found].into());
    }
    let first = files.sets().next().and_then(|set| set.configuration());
    let subject = Subject {
        database: first.map_or("", |found| found.database.as_str()),
        kind: match first.map(|found| found.backup_type) {
            Some(kind) if kind.is_differential() => "DIFF",
            Some(windlass_bak::BackupType::Log) => "LOG",
            _ => "FULL",
        },
        own: None,
    };
    let media = media::choose(session, options, &settled, &subject)?;
    refuse_sources(&media, &sources)?;
    let mut run = Repack {
        session,
        options,
        settled,
        devices: files.devices().to_vec(),
        files,
        media,
    };
    let count = run.files.sets().count();
    (0..count).map(|index| run.set(index, sink)).collect()
}

/// Refuses to write to what is read.
fn refuse_sources(media: &MediaRequest, sources: &[DeviceAddress]) -> Result<(), Failure> {
    let path = |device: &DeviceAddress| {
        let file = device.file()?;
        Some(absolute(file).unwrap_or_else(|_| file.to_owned()))
    };
    for device in media.devices.iter().chain(media.mirrors.iter().flatten()) {
        let target = path(device);
        let is_target = |source: &DeviceAddress| match &target {
            Some(target) => path(source).as_ref() == Some(target),
            None => device.is_same(source),
        };
        if sources.iter().any(is_target) {
            let reason = "It is the backup that is copied; name another file";
            return Err(table::cannot_open_device(&device.name, reason).into());
        }
    }
    Ok(())
}

/// A run with checked options.
struct Repack<'a> {
    session: &'a mut Session,
    options: &'a BackupOptions,
    settled: Settled,
    /// The families, in the order of the files.
    devices: Vec<DeviceAddress>,
    files: BackupFiles,
    media: MediaRequest,
}

impl Repack<'_> {
    /// Verifies and copies one set.
    fn set(&mut self, index: usize, sink: &mut dyn Sink) -> Result<BackupReport, Failure> {
        let on_damage = self.options.on_damage;
        let (verified, snapshot) = self
            .files
            .verified(index, on_damage == OnDamage::Continue)?;
        let options = MediaOptions::default();
        let original = sql_server::Media::new(&self.devices, &options);
        sql_server::report_checks(&verified, sink);
        let Some(snapshot) = snapshot else {
            return Err(original.damages(&verified, on_damage));
        };
        if !verified.is_valid() {
            let damages = original.damages(&verified, on_damage);
            damages
                .messages
                .into_iter()
                .for_each(|message| sink.message(message));
        }
        let database = verified.set.as_ref().and_then(|set| set.configuration());
        let database = database.map_or_else(String::new, |found| found.database.clone());
        let report = self.copy(snapshot, &database, sink)?;
        // The sets that follow go to the same media.
        self.media.overwrite = Overwrite::Append;
        sink.completed(Completed::Backup {
            database: &database,
            report: &report,
        });
        let position = verified.set.as_ref().map_or(0, |set| set.header.position);
        sink.message(table::set_repacked(position, database, report.set.position));
        sink.message(timing::closing(
            OPERATION,
            timing::pages(&report.files),
            report.processed_bytes,
            report.elapsed,
        ));
        Ok(report)
    }

    fn copy(
        &mut self,
        snapshot: SetSnapshot,
        database: &str,
        sink: &mut dyn Sink,
    ) -> Result<BackupReport, Failure> {
        let (options, settled) = (self.options, &self.settled);
        let request = BackupRequest {
            media: self.media.clone(),
            kind: BackupKind::Full,
            copy_only: false,
            compression: settled.compression,
            deflate: deflate(self.session, settled)?,
            encryption: encryption(self.session, options)?,
            signing: signing::signing_key(self.session, options.sign_with.as_ref())?,
            checksum: false,
            content: windlass_source::Content::Database,
            integrity: None,
            is_known_damaged: false,
            on_damage: OnDamage::Stop,
            name: options.name.clone(),
            description: options.description.clone(),
            expires: settled.expires,
            requester: self.session.instance.identity().to_requester(),
            database_backup_lsn: Lsn::ZERO,
            earlier_until: None,
            digests_to: None,
            tuning: settled.tuning,
        };
        let watch = Watch::new(self.session, OPERATION, database, settled.stats, sink);
        let backed_up = windlass_pipeline::backup_undecided(&request, Box::new(snapshot), &watch);
        let (report, _) = backed_up?;
        watch.finish();
        Ok(report)
    }
}
