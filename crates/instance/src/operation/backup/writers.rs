//! What a backup means for the writers of its database: whether it is staged, and how long they wait else.
//!
//! Only a database in rollback mode shuts its writers out while it is read.

use std::path::{Path, PathBuf};

use windlass_base::message::table;
use windlass_base::size::Bytes;
use windlass_codec::{Algorithm, Compression, Level};
use windlass_device::DeviceAddress;
use windlass_io::directory;
use windlass_pipeline::MediaRequest;
use windlass_source::sqlite::{CopyFolder, CopyPolicy};
use windlass_source::{Snapshot, TemporaryCopy};

use super::{BackupOptions, Settled};
use crate::Sink;

/// Where the temporary copy of a backup goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CopyChoice {
    /// Beside the media, if there is room.
    #[default]
    Auto,
    /// In this folder.
    Folder(PathBuf),
    /// Nowhere: writers wait.
    Off,
}

/// Whether a backup takes longer than a plain copy of its database, and where such a copy may lie.
pub(super) fn copy_policy(
    options: &BackupOptions,
    settled: &Settled,
    media: &MediaRequest,
) -> CopyPolicy {
    let tuning = settled.tuning;
    let is_slow = settled.compression != Compression::NONE
        || options.is_encrypted()
        || tuning.max_rate.is_some()
        || tuning.max_write_rate.is_some();
    match &options.temporary_copy {
        CopyChoice::Off => CopyPolicy::Off("--no-temp-copy as given"),
        _ if options.probe.is_some() => CopyPolicy::Off("it is only measured"),
        _ if !is_slow => CopyPolicy::Off("the backup itself is a plain copy"),
        CopyChoice::Folder(path) => CopyPolicy::Into(vec![CopyFolder {
            path: path.clone(),
            is_given: true,
        }]),
        CopyChoice::Auto => CopyPolicy::Into(folders(media)),
    }
}

/// The folders of the media, each once; that of temporary files where nothing is a file.
fn folders(media: &MediaRequest) -> Vec<CopyFolder> {
    let mut folders: Vec<CopyFolder> = Vec::new();
    let devices = media.devices.iter().chain(media.mirrors.iter().flatten());
    for file in devices.filter_map(DeviceAddress::file) {
        let path = directory::parent(file);
        if !folders.iter().any(|folder| folder.path == path) {
            folders.push(CopyFolder {
                path,
                is_given: false,
            });
        }
    }
    if folders.is_empty() {
        let path =
            std::env::var_os("TMPDIR").map_or_else(|| Path::new("/var/tmp").into(), PathBuf::from);
        folders.push(CopyFolder {
            path,
            is_given: false,
        });
    }
    folders
}

/// Says beforehand that writers wait for the whole of a backup that takes longer than a plain copy.
pub(super) fn announce(
    snapshot: &dyn Snapshot,
    settled: &Settled,
    database: &str,
    sink: &mut dyn Sink,
) {
    let Some(held) = snapshot.writers_held() else {
        return;
    };
    let TemporaryCopy::None(because) = held.copied else {
        return;
    };
    let bytes: u64 = snapshot.files().iter().map(|file| file.size_bytes).sum();
    let seconds = bytes as f64 / rate(settled);
    if seconds < 1.0 {
        return;
    }
    sink.message(table::writers_wait(
        database,
        Bytes(bytes),
        seconds,
        because,
    ));
}

/// Bytes of a database in a second, roughly: what the codecs do, and no more than a common disk gives.
fn rate(settled: &Settled) -> f64 {
    const MEGABYTE: f64 = 1e6;
    let one_thread = match (settled.compression.algorithm, settled.compression.level) {
        (Algorithm::None, _) => 400.0,
        (Algorithm::MsXpress, _) => 150.0,
        (Algorithm::Zstd, Some(Level::High)) => 40.0,
        (Algorithm::Zstd, Some(Level::Medium)) => 100.0,
        (Algorithm::Zstd | Algorithm::QatDeflate, _) => 300.0,
    };
    let threads = settled.tuning.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64),
        f64::from,
    );
    let rate = (one_thread * threads).min(400.0) * MEGABYTE;
    let limit = |limit: Option<u64>| limit.map_or(f64::INFINITY, |limit| limit as f64);
    rate.min(limit(settled.tuning.max_rate))
        .min(limit(settled.tuning.max_write_rate))
}
