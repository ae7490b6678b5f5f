//! The effect of a backup on the writers of its database: whether it reads from a temporary copy, or how
//! long the writers have to wait.
//!
//! Only a database in rollback mode blocks its writers while it is read.

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
    /// In the folder of the media, if there is enough space.
    #[default]
    Auto,
    /// In this folder.
    Folder(PathBuf),
    /// No copy: writers wait.
    Off,
}

/// Decides whether a temporary copy pays off, and where it may go.
pub(super) fn copy_policy(
    options: &BackupOptions,
    settled: &Settled,
    media: &MediaRequest,
) -> CopyPolicy {
    let tuning = settled.tuning;
    let is_slow = settled.compression != Compression::NONE
        || options.is_encrypted()
        || !tuning.limits.is_none();
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

/// The folders of the media, without duplicates; the folder for temporary files if no device is a file.
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

/// Warns that writers wait for the whole of a backup that takes longer than a plain copy.
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
    let seconds = (bytes as f64 / rate(settled)).max(least_time(settled, bytes));
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

/// Seconds that the limits on the rates ask for; the ratio of compression is not known.
fn least_time(settled: &Settled, bytes: u64) -> f64 {
    settled.tuning.limits.least_time(bytes, bytes).as_secs_f64()
}

/// Rough estimate of the backup rate in bytes per second: the codec's rate, limited by a common disk.
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
    (one_thread * threads).min(400.0) * MEGABYTE
}
