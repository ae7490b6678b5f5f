//! `windlass repack` and `windlass unpack`: SQL Server backups on Windlass media, there and back.

use serde_json::json;
use windlass_codec::Compression;
use windlass_instance::operation::{
    BackupOptions, CompressionChoice, MediaOptions, UnpackOptions, UnpackedFile,
};
use windlass_pipeline::OnDamage;

use super::backup::{media_refused, recipients, written};
use super::{
    Outcome, absolute, disks, ended, io_method_refused, keys, placed, refused, reported, session,
};
use crate::args::{Common, RepackArguments, Threads, UnpackArguments};
use crate::output::{Console, Layout, result_json};

/// `windlass repack`
pub(crate) fn repack(arguments: &RepackArguments, common: &Common) -> Outcome {
    if let Some(outcome) = media_refused(&arguments.media, &arguments.to) {
        return outcome;
    }
    if let Some(outcome) = io_method_refused(arguments.tuning.io) {
        return outcome;
    }
    let mut console = Console::new(common.json, Layout::Table);
    let Some(mut session) = session(common, &mut console) else {
        return Outcome::Failed;
    };
    let mut options = options(arguments);
    match recipients(&arguments.media) {
        Ok(recipients) => options.recipients = recipients,
        Err(message) => return refused(message, &mut console),
    }
    let result = session.repack(&disks(&arguments.files), &options, &mut console);
    ended(result, &mut console)
}

fn options(arguments: &RepackArguments) -> BackupOptions {
    let tuning = &arguments.tuning;
    BackupOptions {
        name: arguments.name.clone(),
        description: arguments.description.clone(),
        // An archive is written once.
        compression: Some(
            arguments
                .compress
                .unwrap_or(CompressionChoice::Fixed(Compression::ZSTD_HIGH)),
        ),
        on_damage: match arguments.continue_after_error {
            true => OnDamage::Continue,
            false => OnDamage::Stop,
        },
        buffer_count: tuning.buffer_count.map(i64::from),
        transfer_bytes: tuning.max_transfer_size,
        threads: tuning.threads(),
        io_method: tuning.io,
        stats: arguments.stats.map(i64::from),
        ..written(&arguments.media, &arguments.to)
    }
}

/// `windlass unpack`
pub(crate) fn unpack(arguments: &UnpackArguments, common: &Common) -> Outcome {
    if let Some(outcome) = io_method_refused(arguments.io) {
        return outcome;
    }
    let mut console = Console::new(common.json, Layout::Table);
    let Some(mut session) = session(common, &mut console) else {
        return Outcome::Failed;
    };
    let Some(to) = placed(&session, &arguments.to, &mut console) else {
        return Outcome::Failed;
    };
    let keys = match keys::ring(&arguments.keys) {
        Ok(keys) => keys,
        Err(message) => return refused(message, &mut console),
    };
    let options = UnpackOptions {
        media: MediaOptions {
            devices: disks(&arguments.media),
            position: arguments.set.map(i64::from),
            media_name: arguments.media_name.clone(),
            ..MediaOptions::default()
        },
        to,
        replaces: arguments.replace,
        continues_after_error: arguments.continue_after_error,
        keys,
        signed_by: arguments
            .signed_by
            .iter()
            .map(|path| absolute(path))
            .collect(),
        threads: arguments.threads.and_then(Threads::count).map(i64::from),
        io_method: arguments.io,
        stats: arguments.stats.map(i64::from),
    };
    let result = session.unpack(&options, &mut console);
    match reported(result, &mut console) {
        Some(files) => {
            if common.json {
                let file = |file: &UnpackedFile| json!({ "path": file.path.display().to_string(), "bytes": file.bytes });
                let files: Vec<_> = files.iter().map(file).collect();
                result_json(&json!({ "operation": "unpack", "files": files }).to_string());
            }
            Outcome::Succeeded
        }
        None => Outcome::Failed,
    }
}
