//! RESTORE VERIFYONLY.

use std::path::{Path, PathBuf};

use windlass_base::{Moment, message::table};
use windlass_catalog::{Depth, RestoreRecord, RestoreType};
use windlass_crypt::KeyRing;
use windlass_device::DeviceAddress;
use windlass_io::queue::IoMethodChoice;
use windlass_media::SetConfiguration;
use windlass_pipeline::{MediaSet, OnDamage, ReadKeys, ReadReport, ReadRequest, Tuning, verify};
use windlass_tsql::ast::RestoreStatement;
use windlass_tsql::option::StatementKind;

use super::observer::Watch;
use super::reading::{self, OpenSet};
use super::restore::{check_moves, moved_to};
use super::sql_server::Media;
use super::{history, rehearse, signing};
use crate::message_of::loss_messages;
use crate::option::{self, RestoreChoices};
use crate::{Completed, Failure, Session, Sink};

const OPERATION: &str = "VERIFY DATABASE";

/// What plain commands can say about reading media and T-SQL cannot.
#[derive(Debug, Clone, Default)]
pub struct VerifyExtras {
    /// Keys beside those of the instance. If there are any, the set must be encrypted.
    pub keys: KeyRing,
    /// The number of threads; chosen by the plan when absent.
    pub threads: Option<u32>,
    /// What carries the reads.
    pub io_method: IoMethodChoice,
}

pub(super) fn execute(
    session: &mut Session,
    statement: &RestoreStatement,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    run(session, statement, &VerifyExtras::default(), sink)
}

/// Executes a RESTORE VERIFYONLY statement.
pub(crate) fn run(
    session: &mut Session,
    statement: &RestoreStatement,
    extras: &VerifyExtras,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    attempt(session, statement, extras, sink)
        .map_err(|failure| failure.then(table::terminating_abnormally(OPERATION)))
}

fn attempt(
    session: &mut Session,
    statement: &RestoreStatement,
    extras: &VerifyExtras,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let kind = StatementKind::VerifyOnly;
    if let Some(media) = Media::recognise(session, statement, kind)? {
        return media.verify_only(sink);
    }
    let choices = option::choose_restore(&statement.options, kind, session)?;
    let OpenSet {
        devices,
        media,
        position,
        set,
    } = reading::open_set(session, statement, &choices)?;
    check_moves(&choices, &set)?;
    reading::tell_later_sets(&media, &choices, sink);
    check_space(session, &choices, &set, sink);
    let request = request(session, &choices, &set, extras)?;
    if session.is_rehearsal() {
        let plan = windlass_pipeline::plan_reading(&media, position, &request)?;
        rehearse::reading(OPERATION, &set.database, &set, plan, &[], sink);
        return Ok(());
    }
    let watch = Watch::new(session, OPERATION, "", choices.stats, sink);
    let outcome = verify(&media, position, &request, &watch)
        .map_err(Failure::from)
        .and_then(undamaged);
    match outcome {
        Ok(_) => watch.finish(),
        Err(_) => drop(watch),
    }
    let failure = outcome.as_ref().err();
    let depth = match choices.without_key && set.is_encrypted() {
        true => Depth::Checksums,
        false => Depth::Content,
    };
    history::record_verification(session, &set, depth, failure);
    let report = outcome?;
    if set.is_encrypted() {
        name_unusable_key_files(&media, sink);
    }
    sink.completed(Completed::Verify {
        position,
        report: &report,
    });
    if choices.loads_history {
        load_history(session, &media, &set, &devices, sink);
    }
    if let Some(signer) = report.signer {
        let fingerprint = signer.fingerprint();
        sink.message(match choices.signed_by.is_empty() {
            true => table::signature_right(position, fingerprint),
            false => table::signed_as_asked(position, fingerprint),
        });
    }
    sink.message(match choices.without_key && set.is_encrypted() {
        true => table::set_not_authenticated(position),
        false => table::set_valid(position),
    });
    Ok(())
}

fn request(
    session: &mut Session,
    choices: &RestoreChoices,
    set: &SetConfiguration,
    extras: &VerifyExtras,
) -> Result<ReadRequest, Failure> {
    let keys = match choices.without_key {
        true => ReadKeys {
            without_key: true,
            ..ReadKeys::default()
        },
        false => reading::keys(session, set, &extras.keys)?,
    };
    Ok(ReadRequest {
        keys: ReadKeys {
            signed_by: signing::signers(session, &choices.signed_by)?,
            ..keys
        },
        // Unlike RESTORE, VERIFYONLY goes on by default, to find all there is.
        on_damage: choices.on_damage.unwrap_or(OnDamage::Continue),
        tuning: Tuning {
            threads: extras.threads,
            io_method: extras.io_method,
            ..Tuning::default()
        },
    })
}

fn name_unusable_key_files(media: &MediaSet, sink: &mut dyn Sink) {
    for unusable in media.unusable_key_files() {
        let path = unusable.path.display();
        sink.message(table::key_file_unusable(path, &unusable.reason));
    }
}

/// The report of a set that is whole.
fn undamaged(report: ReadReport) -> Result<ReadReport, Failure> {
    match report.damaged.is_empty() {
        true => Ok(report),
        false => Err(Failure::from(loss_messages(&report.damaged))),
    }
}

/// Warns when the target has less room than the database needs.
fn check_space(
    session: &Session,
    choices: &RestoreChoices,
    set: &SetConfiguration,
    sink: &mut dyn Sink,
) {
    for file in &set.files {
        let written = moved_to(choices, &file.logical_name).unwrap_or(&file.physical_name);
        let Ok(path) = session.instance.drives().path(written) else {
            continue;
        };
        let folder = existing_folder(&path);
        let Some(free) = folder.and_then(|folder| windlass_io::directory::free_bytes(&folder).ok())
        else {
            continue;
        };
        if free < file.size_bytes {
            let missing = file.size_bytes - free;
            sink.message(table::space_problems_ahead());
            let shortage = table::insufficient_space(path.display(), missing, free);
            // A warning here: the set itself may be perfect.
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

fn load_history(
    session: &mut Session,
    media: &MediaSet,
    set: &SetConfiguration,
    devices: &[DeviceAddress],
    sink: &mut dyn Sink,
) {
    let record = RestoreRecord {
        backup: history::found_record(media.header(), set, devices),
        restored: Moment::now().0,
        database_name: set.database.clone(),
        user_name: session.instance.identity().user.clone(),
        restore_type: RestoreType::VerifyOnly,
        replace: false,
        recovery: false,
        restart: false,
        device_count: u32::try_from(devices.len()).unwrap_or(u32::MAX),
        files: Vec::new(),
    };
    if session.instance.record_restore(&record).is_err() {
        sink.message(table::history_not_written());
    }
}
