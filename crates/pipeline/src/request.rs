//! Requests for a backup, a restore or a verification: typed, conflicts resolved, defaults not yet
//! filled in. `plan` fills them in, with reasons.

use std::path::PathBuf;
use std::sync::Arc;

pub use windlass_base::word::Goal;
use windlass_base::{Guid, Lsn, Moment};
use windlass_codec::{Compression, DeflateProvider};
use windlass_crypt::{Cipher, SigningKey};
use windlass_device::DeviceAddress;
use windlass_io::queue::IoMethodChoice;
use windlass_source::{Content, Depth};

use crate::digests::DigestFile;
use crate::guard::Guard;
use crate::limits::Limits;
use crate::sealing::{Encryption, ReadKeys};

/// What happens to backup sets already on the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// `NOINIT`: the new set is appended.
    Append,
    /// `INIT`: they are discarded, the media header stays.
    Initialize,
    /// `FORMAT`: discards everything and starts a new media set.
    Format,
}

/// The media of a backup.
#[derive(Debug, Clone)]
pub struct MediaRequest {
    /// One device per media family (stripe), in order.
    pub devices: Vec<DeviceAddress>,
    /// Up to three mirrors of the same shape: `MIRROR TO`.
    pub mirrors: Vec<Vec<DeviceAddress>>,
    pub overwrite: Overwrite,
    /// `SKIP`: expiry and names are not checked before overwriting.
    pub skip_checks: bool,
    /// `MEDIANAME`: written on new media, compared on existing media.
    pub media_name: Option<String>,
    /// `MEDIADESCRIPTION`.
    pub media_description: Option<String>,
    /// `BLOCKSIZE` in bytes; if absent, that of the media or the device.
    pub block_bytes: Option<u32>,
    /// What is asked before sets are overwritten, whatever `skip_checks` says.
    pub guards: Vec<Guard>,
}

impl MediaRequest {
    /// Whether it is written to objects.
    pub fn is_in_objects(&self) -> bool {
        let mut all = self.devices.iter().chain(self.mirrors.iter().flatten());
        all.any(DeviceAddress::is_object)
    }

    /// Whether all written data is discarded.
    pub fn is_discarded(&self) -> bool {
        let mut all = self.devices.iter().chain(self.mirrors.iter().flatten());
        all.any(DeviceAddress::discards)
    }
}

#[derive(Debug, Clone)]
pub struct DifferentialBase {
    /// Set GUID of the full backup.
    pub set_guid: Guid,
    /// Its checkpoint LSN.
    pub lsn: Lsn,
    /// The digests of its extents.
    pub digests: Option<Arc<DigestFile>>,
}

#[derive(Debug, Clone)]
pub enum BackupKind {
    Full,
    /// Extents that changed since the base.
    Differential(DifferentialBase),
    /// The log that the source delivers, and no data.
    Log,
}

/// What to do about damage found while reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDamage {
    /// `STOP_ON_ERROR`.
    Stop,
    /// `CONTINUE_AFTER_ERROR`.
    Continue,
}

/// Values set by the user; the plan chooses the absent ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tuning {
    /// `BUFFERCOUNT`: transfers in flight between the stages.
    pub buffer_count: Option<u32>,
    /// `MAXTRANSFERSIZE` in bytes: a multiple of 64 KB, 64 KB to 4 MB.
    pub transfer_bytes: Option<u32>,
    /// `THREADCOUNT`: transform threads.
    pub threads: Option<u32>,
    pub io_method: IoMethodChoice,
    pub goal: Goal,
    /// `LEVEL = AUTO`: the ZSTD level is picked for each chunk.
    pub adapts_level: bool,
    pub limits: Limits,
    /// `EVEN_STRIPES`: all media families get the same number of bytes.
    pub is_even: bool,
}

/// The stages of a measuring run. Nothing is written, and no backup is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// `NOCOMPRESSWRITE`: read only. Shows the rate of the source.
    Read,
    /// `NOWRITE`: read and transform. Shows the rate of the cores, if the source keeps up.
    Transform,
}

/// A measuring run on one database.
#[derive(Debug, Clone)]
pub struct ProbeRequest {
    pub probe: Probe,
    pub compression: Compression,
    /// Compresses `QAT_DEFLATE` instead of the bundled library.
    pub deflate: Option<Arc<dyn DeflateProvider>>,
    /// Encryption with a key that is discarded.
    pub encryption: Option<Cipher>,
    /// Whether to verify the database's own page checksums.
    pub checksum: bool,
    pub tuning: Tuning,
}

/// Result of SQLite's own check of a database before it was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integrity {
    pub depth: Depth,
    pub findings: u32,
}

#[derive(Debug, Clone)]
pub struct BackupRequest {
    pub media: MediaRequest,
    pub kind: BackupKind,
    /// `COPY_ONLY`: does not become a differential base.
    pub copy_only: bool,
    pub compression: Compression,
    pub encryption: Option<Encryption>,
    /// The key that signs the set.
    pub signing: Option<Arc<SigningKey>>,
    /// Compresses `QAT_DEFLATE` instead of the bundled library.
    pub deflate: Option<Arc<dyn DeflateProvider>>,
    /// `CHECKSUM`: verify the database's own page checksums and mark the set.
    pub checksum: bool,
    /// What the database looks like: unknown content is backed up as it is, and the set of a truncated
    /// database is damaged.
    pub content: Content,
    /// Result of SQLite's own check of the database, recorded in the set.
    pub integrity: Option<Integrity>,
    /// Whether the database is known to be damaged: the set then is, too.
    pub is_known_damaged: bool,
    /// `STOP_ON_ERROR` or `CONTINUE_AFTER_ERROR`.
    pub on_damage: OnDamage,
    /// `NAME`, `DESCRIPTION`.
    pub name: Option<String>,
    /// See `name`.
    pub description: Option<String>,
    /// `EXPIREDATE` or `RETAINDAYS`: before that date, the set is overwritten only with `SKIP`.
    pub expires: Option<Moment>,
    pub requester: Requester,
    /// The last full backup before this one that was not copy-only; zero if there is none.
    pub database_backup_lsn: Lsn,
    /// The latest end of the earlier backups of the database, in seconds since 1970, UTC, if any is known.
    pub earlier_until: Option<i64>,
    /// Folder for an extra copy of the extent digests of a full backup, used by later
    /// differentials: one file per set.
    pub digests_to: Option<PathBuf>,
    pub tuning: Tuning,
}

impl BackupRequest {
    /// A full backup, appended to the devices, with defaults for everything else.
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
                guards: Vec::new(),
            },
            kind: BackupKind::Full,
            copy_only: false,
            compression,
            encryption: None,
            signing: None,
            deflate: None,
            checksum: false,
            content: Content::Database,
            integrity: None,
            is_known_damaged: false,
            on_damage: OnDamage::Stop,
            name: None,
            description: None,
            expires: None,
            requester: Requester::default(),
            database_backup_lsn: Lsn::ZERO,
            earlier_until: None,
            digests_to: None,
            tuning: Tuning::default(),
        }
    }
}

/// Who requested a backup, as recorded in the headers.
#[derive(Debug, Clone, Default)]
pub struct Requester {
    /// Login.
    pub user: String,
    /// Server or instance.
    pub server: String,
    pub machine: String,
}

/// Request for a restore or verification.
#[derive(Debug, Clone)]
pub struct ReadRequest {
    pub keys: ReadKeys,
    pub on_damage: OnDamage,
    pub tuning: Tuning,
}
