//! `windlass backup`

use std::path::{Path, PathBuf};

use windlass_base::Message;
use windlass_base::message::table;
use windlass_codec::Compression;
use windlass_crypt::Recipient;
use windlass_device::DeviceAddress;
use windlass_instance::operation::{
    BackupOptions, CompressionChoice, LogChoice, MissingBase, StoreOptions,
};
use windlass_instance::tsql::print;
use windlass_instance::{Failure, Session, Sink, is_of_windows, is_url};
use windlass_pipeline::{OnDamage, Overwrite, Probe};

use super::{
    Outcome, absolute, database_name, disks, ended, engine_elsewhere, io_method_refused, keys,
    misused, refused, run_served, session_for,
};
use crate::args::{BackupArguments, Common, WrittenArguments};
use crate::output::{Console, Layout, error_line};

/// The message about a differential without a full backup.
const NO_BASE: u32 = 3035;

/// Runs the command.
pub(crate) fn run(arguments: &BackupArguments, common: &Common) -> Outcome {
    if let Some(outcome) = media_refused(&arguments.media, &arguments.to) {
        return outcome;
    }
    if let Some(outcome) = io_method_refused(arguments.tuning.io) {
        return outcome;
    }
    if let Some(folder) = arguments.locking.temp_copy_dir.as_deref()
        && !folder.is_dir()
    {
        let folder = folder.display();
        return misused(&format!(
            "--temp-copy-dir {folder}: there is no folder of this name"
        ));
    }
    let mut console = Console::new(common.json, Layout::Table).with_plan(arguments.run.plan);
    let Some(mut session) = session_for(arguments.run.dry_run, common, &mut console) else {
        return Outcome::Failed;
    };
    if arguments.many.all {
        return super::backup_all::run(arguments, common, session, &mut console);
    }
    let database = arguments.database.as_deref().unwrap_or_default();
    let Some(name) = database_name(&mut session, database, &mut console) else {
        return Outcome::Failed;
    };
    let mut options = options(arguments);
    match session.devices(&arguments.base) {
        Ok(base) => options.base = base,
        Err(failure) => return ended(Err::<(), _>(failure), &mut console),
    }
    if arguments.run.tsql || arguments.run.dry_run {
        console.tsql(&print::backup(&name, &options));
    }
    match recipients(&arguments.media) {
        Ok(recipients) => options.recipients = recipients,
        Err(message) => return refused(message, &mut console),
    }
    let result = back_up(&mut session, &name, &options, &mut console);
    let outcome = ended(result, &mut console);
    if console.has_reported(NO_BASE) {
        console.message(match common.instance {
            Some(_) => table::give_base_known(),
            None => table::give_base(),
        });
    }
    outcome
}

/// Backs up a database, here or by the program that has it open.
pub(super) fn back_up(
    session: &mut Session,
    name: &str,
    options: &BackupOptions,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let has_keys = !options.recipients.is_empty();
    if !engine_elsewhere(session, name, has_keys, "windlass backup") {
        return Err(Failure::from(Vec::new()));
    }
    if session.is_elsewhere() {
        if !options.base.is_empty() {
            error_line(
                "another program has this database open, and --base does not go through it: leave it out, so that the base of \
                 the history counts, or end that program",
            );
            return Err(Failure::from(Vec::new()));
        }
        return run_served(session, &print::backup(name, options), sink);
    }
    session.backup(name, options, sink)?.told()
}

/// The options on the command line, except the recipients, whose files are not read.
pub(super) fn options(arguments: &BackupArguments) -> BackupOptions {
    let (tuning, locking) = (&arguments.tuning, &arguments.locking);
    let of_log = &arguments.of_log;
    BackupOptions {
        is_differential: arguments.differential,
        log: of_log
            .log
            .then_some(match (of_log.no_truncate, of_log.no_recovery) {
                (true, _) => LogChoice::NoTruncate,
                (false, true) => LogChoice::NoRecovery,
                (false, false) => LogChoice::Truncate,
            }),
        spool: of_log.follow.clone(),
        missing_base: match arguments.base_missing_ok {
            true => MissingBase::Warns,
            false => MissingBase::Refuses,
        },
        is_copy_only: arguments.copy_only,
        name: arguments.name.clone(),
        description: arguments.description.clone(),
        compression: Some(match (arguments.compress, arguments.goal) {
            (Some(choice), _) => choice,
            (None, Some(_)) => CompressionChoice::Auto,
            (None, None) => CompressionChoice::Fixed(Compression::ZSTD_LOW),
        }),
        checksum: arguments.checksum.then_some(true),
        on_damage: match arguments.continue_after_error {
            true => OnDamage::Continue,
            false => OnDamage::Stop,
        },
        is_as_is: arguments.as_is,
        integrity: arguments.integrity,
        probe: match (arguments.no_write, arguments.no_compress_write) {
            (true, _) => Some(Probe::Transform),
            (false, true) => Some(Probe::Read),
            (false, false) => None,
        },
        goal: arguments.goal.unwrap_or_default(),
        buffer_count: tuning.buffer_count.map(i64::from),
        transfer_bytes: tuning.max_transfer_size,
        threads: tuning.threads(),
        max_rate: arguments.max_rate.map(i64::from),
        io_method: tuning.io,
        lock_timeout: locking.lock_timeout,
        is_frozen: locking.frozen,
        temporary_copy: locking.temporary_copy(),
        stats: arguments.run.stats.map(i64::from),
        ..written(&arguments.media, &arguments.to)
    }
}

/// Refuses mirrors of another shape than the first copy, and a file that is named twice.
pub(super) fn media_refused(arguments: &WrittenArguments, to: &[String]) -> Option<Outcome> {
    let is_alike = arguments.mirror.is_empty() || arguments.mirror.len().is_multiple_of(to.len());
    if !is_alike {
        return Some(misused(
            "give each mirror as many --mirror as there are --to",
        ));
    }
    let mut seen: Vec<(&str, PathBuf)> = Vec::new();
    for written in to.iter().chain(&arguments.mirror) {
        let Some(file) = own_file(written) else {
            continue;
        };
        if let Some((first, _)) = seen.iter().find(|(_, other)| *other == file) {
            return Some(misused(&format!(
                "'{first}' and '{written}' are the same file: each --to and each --mirror needs a file \
                 of its own"
            )));
        }
        seen.push((written.as_str(), file));
    }
    None
}

/// The file that a name means, whatever its spelling; `None` if the same name may mean another file: NUL, tags, and folders.
fn own_file(written: &str) -> Option<PathBuf> {
    // In a folder, each gets a file of its own.
    let is_folder = written.ends_with('/') || Path::new(written).is_dir();
    if DeviceAddress::special(written).is_some() || written.contains('<') || is_folder {
        return None;
    }
    if is_url(written) || is_of_windows(written) {
        return Some(PathBuf::from(written));
    }
    let path = PathBuf::from(absolute(Path::new(written)));
    let in_folder = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    let real = path.canonicalize().ok().or_else(in_folder);
    Some(real.unwrap_or(path))
}

/// Reads the certificates and the passphrase for which the sets are encrypted.
pub(super) fn recipients(arguments: &WrittenArguments) -> Result<Vec<Recipient>, Message> {
    keys::recipients(&arguments.encrypt_to, arguments.passphrase_file.as_deref())
}

/// The options that concern the media, except the recipients.
pub(super) fn written(arguments: &WrittenArguments, to: &[String]) -> BackupOptions {
    BackupOptions {
        devices: match to {
            // Only a measuring run has no target: it names a device and uses none.
            [] => disks(&["NUL".to_owned()]),
            to => disks(to),
        },
        mirrors: arguments
            .mirror
            .chunks(to.len().max(1))
            .map(disks)
            .collect(),
        overwrite: match (arguments.format, arguments.init) {
            (true, _) => Overwrite::Format,
            (false, true) => Overwrite::Initialize,
            (false, false) => Overwrite::Append,
        },
        skips_checks: arguments.skip,
        media_name: arguments.media_name.clone(),
        media_description: arguments.media_description.clone(),
        block_bytes: arguments.block_size,
        expires: arguments.expire,
        retain_days: arguments.retain_days.map(i64::from),
        sign_with: arguments.sign_with.as_deref().map(absolute),
        max_write_rate: arguments.max_write_rate.map(i64::from),
        is_even: arguments.even_stripes,
        store: StoreOptions {
            json: arguments.backup_options.clone(),
            ..StoreOptions::default()
        },
        ..BackupOptions::default()
    }
}
