//! Reads a backup set entirely and checks every byte of it.

use std::path::{Path, PathBuf};

use windlass_base::message::table;
use windlass_base::{Moment, range};
use windlass_catalog::{Depth, RestoreRecord, RestoreType};
use windlass_crypt::KeyRing;
use windlass_device::DeviceAddress;
use windlass_io::queue::IoMethodChoice;
use windlass_media::{SetConfiguration, SetType, SourceKind};
use windlass_pipeline::{
    MediaSet, OnDamage, ReadKeys, ReadReport, ReadRequest, Tuning, verify, verify_content,
};
use windlass_source::engine::LogVerification;
use windlass_source::{Recovery, RestoreTarget as _};

use super::media::{MediaOptions, OpenedSet, Required, check_moved_once, check_moves, moved_to};
use super::observer::Watch;
use super::verify_part::{self, Part};
use super::{history, number, rehearse, signing, sql_server};
use crate::event_log::Entry;
use crate::message_of::{loss_messages, no_space};
use crate::{Completed, Failure, Session, Sink};

/// The operation's name in messages.
pub const OPERATION: &str = "VERIFY DATABASE";

/// The options of a verification. Numbers are as given; the verification checks them.
#[derive(Debug, Clone)]
pub struct VerifyOptions {
    /// The set.
    pub media: MediaOptions,
    /// Files and the paths to which a restore would write them; checks the free space there.
    pub moves: Vec<(String, String)>,
    /// Unlike a restore, a verification continues after errors by default, to find all of them.
    pub on_damage: OnDamage,
    /// Keys in addition to those of the instance. If there are any, the set must be encrypted.
    pub keys: KeyRing,
    /// Files of public keys; one of them must have signed the set.
    pub signed_by: Vec<String>,
    /// Checks an encrypted set by its checksums alone.
    pub is_without_key: bool,
    /// Checks only this part.
    pub part: Option<Part>,
    /// Enters the set in the history.
    pub loads_history: bool,
    /// Threads; chosen by the plan when absent.
    pub threads: Option<i64>,
    pub io_method: IoMethodChoice,
    /// Percent between two progress messages.
    pub stats: Option<i64>,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self {
            media: MediaOptions::default(),
            moves: Vec::new(),
            on_damage: OnDamage::Continue,
            keys: KeyRing::default(),
            signed_by: Vec::new(),
            is_without_key: false,
            part: None,
            loads_history: false,
            threads: None,
            io_method: IoMethodChoice::default(),
            stats: None,
        }
    }
}

/// The result of a verification.
#[derive(Debug, Clone)]
pub enum VerifyOutcome {
    /// The set is valid.
    Valid {
        /// The position of the set on its media.
        position: u16,
        /// `None` for a set that SQL Server wrote.
        report: Option<Box<ReadReport>>,
    },
    /// A part was read, and is as it was written.
    Part,
    /// A dry run: only headers were read.
    Rehearsed,
}

impl Session {
    /// Verifies a backup set.
    ///
    /// # Errors
    /// Damage, or the reason why the set could not be checked.
    pub fn verify(
        &mut self,
        options: &VerifyOptions,
        sink: &mut dyn Sink,
    ) -> Result<VerifyOutcome, Failure> {
        let devices = options.media.devices.iter();
        let entry = Entry::of_operation("RESTORE VERIFYONLY", "", devices);
        entry.around(sink, |sink| run(self, options, sink))
    }
}

/// The same as part of a statement, which logs its own entry.
pub(crate) fn run(
    session: &mut Session,
    options: &VerifyOptions,
    sink: &mut dyn Sink,
) -> Result<VerifyOutcome, Failure> {
    attempt(session, options, sink)
        .map_err(|failure| failure.then(table::terminating_abnormally(OPERATION)))
}

fn attempt(
    session: &mut Session,
    options: &VerifyOptions,
    sink: &mut dyn Sink,
) -> Result<VerifyOutcome, Failure> {
    check_moved_once(&options.moves)?;
    let stats = number::within(range::STATS, options.stats)?;
    let tuning = Tuning {
        threads: number::within(range::THREADS, options.threads)?,
        io_method: options.io_method,
        ..Tuning::default()
    };
    let devices = options.media.addresses(session, None)?;
    if sql_server::is_backup(&devices) {
        return of_sql_server(session, options, &devices, sink);
    }
    let opened = OpenedSet::open(session, devices, &options.media)?;
    let (set, position) = (&opened.set, opened.position);
    check_moves(&options.moves, set, &set.database)?;
    opened.warn_of_later_sets(&options.media, sink);
    check_space(session, &options.moves, set, sink);
    let request = ReadRequest {
        keys: keys(session, options, &opened)?,
        on_damage: options.on_damage,
        tuning,
    };
    if session.is_rehearsal() {
        let plan = windlass_pipeline::plan_reading(&opened.media, position, &request)?;
        rehearse::reading(OPERATION, &set.database, set, plan, &[], sink);
        return Ok(VerifyOutcome::Rehearsed);
    }
    if let Some(part) = options.part {
        verify_part::run(session, &opened, part, &request, stats, sink)?;
        return Ok(VerifyOutcome::Part);
    }
    let is_unopened = options.is_without_key && set.is_encrypted();
    let depth = match is_unopened {
        true => Depth::Checksums,
        false => Depth::Content,
    };
    let report = {
        let watch = Watch::new(session, OPERATION, "", stats, sink);
        read_back(&opened, &request, watch)
    };
    history::record_verification(session, &opened, depth, report.as_ref().err());
    let report = report?;
    if set.is_encrypted() {
        name_unusable_key_files(&opened.media, sink);
    }
    sink.completed(Completed::Verify {
        position,
        report: &report,
    });
    if options.loads_history {
        load_history(session, &opened, sink);
    }
    if let Some(signer) = &report.signer {
        let fingerprint = signer.fingerprint();
        sink.message(match options.signed_by.is_empty() {
            true => table::signature_right(position, fingerprint),
            false => table::signed_as_asked(position, fingerprint),
        });
    }
    sink.message(match is_unopened {
        true => table::set_not_authenticated(position),
        false => table::set_valid(position),
    });
    Ok(VerifyOutcome::Valid {
        position,
        report: Some(Box::new(report)),
    })
}

fn of_sql_server(
    session: &mut Session,
    options: &VerifyOptions,
    devices: &[DeviceAddress],
    sink: &mut dyn Sink,
) -> Result<VerifyOutcome, Failure> {
    if options.part.is_some() {
        return Err(table::no_part_of_sql_server().into());
    }
    let media = sql_server::Media::new(devices, &options.media);
    let required = Required::of_verification(session, &options.keys, &options.signed_by)?;
    let position = media.verify(&required, options.on_damage, sink)?;
    let report = None;
    Ok(VerifyOutcome::Valid { position, report })
}

/// The keys to open the set with, and the signers of which one must have signed it.
fn keys(
    session: &mut Session,
    options: &VerifyOptions,
    opened: &OpenedSet,
) -> Result<ReadKeys, Failure> {
    let keys = match options.is_without_key {
        true => ReadKeys {
            without_key: true,
            ..ReadKeys::default()
        },
        false => opened.keys(session, &options.keys)?,
    };
    Ok(ReadKeys {
        signed_by: signing::signers(session, &options.signed_by)?,
        ..keys
    })
}

/// Reads a set that must be complete.
pub(super) fn read_back(
    opened: &OpenedSet,
    request: &ReadRequest,
    watch: Watch<'_>,
) -> Result<ReadReport, Failure> {
    let log = log_check(opened, request)?;
    let report = match &log {
        Some(log) => verify_content(&opened.media, opened.position, request, log, &watch),
        None => verify(&opened.media, opened.position, request, &watch),
    }?;
    if !report.damaged.is_empty() {
        return Err(Failure::from(loss_messages(&report.damaged)));
    }
    if let Some(log) = log {
        Box::new(log).finish(Recovery::NoRecovery)?;
    }
    watch.finish();
    Ok(report)
}

/// What checks that the log in a log backup has no gap; `None` for another set, or without its key.
fn log_check(
    opened: &OpenedSet,
    request: &ReadRequest,
) -> Result<Option<LogVerification>, Failure> {
    let set = &opened.set;
    let is_readable = !(request.keys.without_key && set.is_encrypted());
    match set.set_type == SetType::Log && set.source_kind == SourceKind::Engine && is_readable {
        true => Ok(LogVerification::of(&set.source_description, [])?),
        false => Ok(None),
    }
}

fn name_unusable_key_files(media: &MediaSet, sink: &mut dyn Sink) {
    for unusable in media.unusable_key_files() {
        sink.message(table::key_file_unusable(&unusable.name, &unusable.reason));
    }
}

/// Warns if the target has less free space than the database needs.
fn check_space(
    session: &Session,
    moves: &[(String, String)],
    set: &SetConfiguration,
    sink: &mut dyn Sink,
) {
    for file in &set.files {
        let written = moved_to(moves, &file.logical_name).unwrap_or(&file.physical_name);
        let Ok(path) = session.instance.drives().path(written) else {
            continue;
        };
        let folder = existing_folder(&path);
        let free = folder.and_then(|folder| windlass_io::directory::free_bytes(&folder).ok()?);
        let Some(free) = free else {
            continue;
        };
        if free < file.size_bytes {
            let missing = file.size_bytes - free;
            sink.message(table::space_problems_ahead());
            let shortage = no_space(&path, missing, free);
            // Only a warning: the set itself may be valid.
            sink.message(windlass_base::Message {
                severity: windlass_base::Severity(10),
                ..shortage
            });
        }
    }
}

fn existing_folder(path: &Path) -> Option<PathBuf> {
    path.ancestors()
        .skip(1)
        .find(|folder| folder.is_dir())
        .map(Path::to_owned)
}

fn load_history(session: &mut Session, opened: &OpenedSet, sink: &mut dyn Sink) {
    let OpenedSet { devices, set, .. } = opened;
    let record = RestoreRecord {
        backup: history::found_record(opened.media.header(), set, devices),
        restored: Moment::now().0,
        database_name: set.database.clone(),
        user_name: session.instance.identity().user.clone(),
        restore_type: RestoreType::VerifyOnly,
        replace: false,
        recovery: false,
        restart: false,
        stop_at: None,
        stop_at_mark_name: None,
        stop_before: None,
        device_count: u32::try_from(devices.len()).unwrap_or(u32::MAX),
        files: Vec::new(),
    };
    if session.instance.record_restore(&record).is_err() {
        sink.message(table::history_not_written());
    }
}
