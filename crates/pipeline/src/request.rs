//! What a backup, a restore or a verification is asked to do: typed, conflicts resolved, defaults
//! not yet filled. `plan` fills them and says why.

use std::path::PathBuf;
use std::sync::Arc;

use windlass_base::{Guid, Lsn, Moment};
use windlass_codec::{Compression, DeflateProvider};
use windlass_crypt::Cipher;
use windlass_device::{DeviceAddress, DeviceKind};
use windlass_io::queue::IoMethodChoice;
use windlass_source::Depth;

use crate::digests::DigestFile;
use crate::sealing::{Encryption, ReadKeys};

/// What happens to backup sets that are on the media already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// `NOINIT`: the new set goes behind them.
    Append,
    /// `INIT`: they go, the media header stays.
    Initialize,
    /// `FORMAT`: everything goes, a new media set begins.
    Format,
}

/// Which media a backup goes to.
#[derive(Debug, Clone)]
pub struct MediaRequest {
    /// One device per media family (stripe), in order.
    pub devices: Vec<DeviceAddress>,
    /// Up to three further copies of the same shape: `MIRROR TO`.
    pub mirrors: Vec<Vec<DeviceAddress>>,
    /// What happens to sets that are there already.
    pub overwrite: Overwrite,
    /// `SKIP`: expiry and names are not checked before overwriting.
    pub skip_checks: bool,
    /// `MEDIANAME`: written on new media, compared on existing media.
    pub media_name: Option<String>,
    /// `MEDIADESCRIPTION`.
    pub media_description: Option<String>,
    /// `BLOCKSIZE` in bytes; the media's own, or the device's, when absent.
    pub block_bytes: Option<u32>,
}

impl MediaRequest {
    /// Whether nothing that is written is kept.
    pub fn is_discarded(&self) -> bool {
        let mut all = self.devices.iter().chain(self.mirrors.iter().flatten());
        all.any(|device| device.kind == DeviceKind::Nul)
    }
}

/// What a differential is taken against.
#[derive(Debug, Clone)]
pub struct DifferentialBase {
    /// The full backup's set GUID.
    pub set_guid: Guid,
    /// Its checkpoint LSN.
    pub lsn: Lsn,
    /// The digests of its extents.
    pub digests: Option<Arc<DigestFile>>,
}

/// Full, or against a base.
#[derive(Debug, Clone)]
pub enum BackupKind {
    /// Everything.
    Full,
    /// Extents that changed since the base.
    Differential(DifferentialBase),
}

/// What to do about damage in what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDamage {
    /// `STOP_ON_ERROR`.
    Stop,
    /// `CONTINUE_AFTER_ERROR`.
    Continue,
}

/// Numbers the user fixed; everything absent is chosen by the plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tuning {
    /// `BUFFERCOUNT`: transfers in flight between the stages.
    pub buffer_count: Option<u32>,
    /// `MAXTRANSFERSIZE` in bytes: a multiple of 64 KB, 64 KB to 4 MB.
    pub transfer_bytes: Option<u32>,
    /// `THREADCOUNT`: transform threads.
    pub threads: Option<u32>,
    /// What carries reads and writes.
    pub io_method: IoMethodChoice,
    /// What a backup adapts itself to.
    pub goal: Goal,
    /// `LEVEL = AUTO`: the level of ZSTD is picked for each chunk.
    pub adapts_level: bool,
    /// `MAXRATE`: bytes of the database that a backup may read in a second.
    pub max_rate: Option<u64>,
    /// `MAXWRITERATE`: bytes that a backup may write to each device in a second.
    pub max_write_rate: Option<u64>,
}

/// What a backup adapts itself to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Goal {
    /// The shortest time; the smallest size that costs no time.
    #[default]
    Fast,
    /// The smallest size within three times the shortest time.
    Small,
    /// The database's users keep their processors and disks.
    Gentle,
}

impl Goal {
    /// The name in `GOAL = ...`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "FAST",
            Self::Small => "SMALL",
            Self::Gentle => "GENTLE",
        }
    }
}

/// How far the pages of a measuring run come. Nothing is written: it makes no backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// `NOCOMPRESSWRITE`: read only. The rate that the source can give.
    Read,
    /// `NOWRITE`: read and transform. The rate that the processors can give, if the source can.
    Transform,
}

/// A measuring run over one database.
#[derive(Debug, Clone)]
pub struct ProbeRequest {
    /// How far pages come.
    pub probe: Probe,
    /// How chunks are compressed.
    pub compression: Compression,
    /// What compresses `QAT_DEFLATE` instead of the bundled library.
    pub deflate: Option<Arc<dyn DeflateProvider>>,
    /// How chunks are encrypted, under a key that nobody keeps.
    pub encryption: Option<Cipher>,
    /// Verify the database's own page checksums on the way.
    pub checksum: bool,
    /// Numbers the user fixed.
    pub tuning: Tuning,
}

/// What SQLite's own check of a database said before it was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integrity {
    /// How far it went.
    pub depth: Depth,
    /// What it found.
    pub findings: u32,
}

/// A backup of one database.
#[derive(Debug, Clone)]
pub struct BackupRequest {
    /// Where it goes.
    pub media: MediaRequest,
    /// Full or differential.
    pub kind: BackupKind,
    /// `COPY_ONLY`: does not become a differential base.
    pub copy_only: bool,
    /// How chunks are compressed.
    pub compression: Compression,
    /// How chunks are encrypted, and for whom.
    pub encryption: Option<Encryption>,
    /// What compresses `QAT_DEFLATE` instead of the bundled library.
    pub deflate: Option<Arc<dyn DeflateProvider>>,
    /// `CHECKSUM`: verify the database's own page checksums and mark the set.
    pub checksum: bool,
    /// The content has no header of SQLite's, and is wanted all the same.
    pub is_as_is: bool,
    /// What SQLite's own check of the database said; the set tells it.
    pub integrity: Option<Integrity>,
    /// `STOP_ON_ERROR` or `CONTINUE_AFTER_ERROR`.
    pub on_damage: OnDamage,
    /// `NAME`, `DESCRIPTION`.
    pub name: Option<String>,
    /// See `name`.
    pub description: Option<String>,
    /// `EXPIREDATE` or `RETAINDAYS`: until then the set is not overwritten unless `SKIP`.
    pub expires: Option<Moment>,
    /// Who asks: login, server, machine.
    pub requester: Requester,
    /// The last full, non-copy-only backup before this one; zero when there is none.
    pub database_backup_lsn: Lsn,
    /// The folder in which the extent digests of a full backup are also kept, for the differentials to
    /// come: a file for each set.
    pub digests_to: Option<PathBuf>,
    /// Numbers the user fixed.
    pub tuning: Tuning,
}

impl BackupRequest {
    /// A full backup, appended to what the devices hold; everything else as when nobody asks for it.
    pub fn new(devices: Vec<DeviceAddress>, compression: Compression) -> Self {
        Self {
            media: MediaRequest {
                devices,
                mirrors: Vec::new(),
                overwrite: Overwrite::Append,
                skip_checks: false,
                media_name: None,
                media_description: None,
                block_bytes: None,
            },
            kind: BackupKind::Full,
            copy_only: false,
            compression,
            encryption: None,
            deflate: None,
            checksum: false,
            is_as_is: false,
            integrity: None,
            on_damage: OnDamage::Stop,
            name: None,
            description: None,
            expires: None,
            requester: Requester::default(),
            database_backup_lsn: Lsn::ZERO,
            digests_to: None,
            tuning: Tuning::default(),
        }
    }
}

/// Who asks for a backup, as the headers tell it.
#[derive(Debug, Clone, Default)]
pub struct Requester {
    /// Login.
    pub user: String,
    /// Server or instance.
    pub server: String,
    /// Machine.
    pub machine: String,
}

/// How a set is restored or verified.
#[derive(Debug, Clone)]
pub struct ReadRequest {
    /// Keys for sets that are encrypted.
    pub keys: ReadKeys,
    /// What to do about damage.
    pub on_damage: OnDamage,
    /// Numbers the user fixed.
    pub tuning: Tuning,
}
