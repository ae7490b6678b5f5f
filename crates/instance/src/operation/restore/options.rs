//! The options of a restore.

use std::path::PathBuf;

use windlass_base::range;
use windlass_crypt::KeyRing;
use windlass_io::queue::IoMethodChoice;
use windlass_media::SetType;
use windlass_pipeline::{OnDamage, Tuning};
use windlass_source::Recovery;
use windlass_source::engine::StopAt;
use windlass_source::sqlite::Stop;

use crate::Failure;
use crate::operation::media::{MediaOptions, check_moved_once};
use crate::operation::number;

/// What follows the restored backups.
#[derive(Debug, Clone)]
pub struct FollowedRestore {
    /// The folder of the spool.
    pub folder: PathBuf,
    pub stop: Stop,
}

/// The options of a restore of one set. What is absent comes from the media, or from the plan. Numbers
/// are as given; the restore checks them.
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
#[derive(Debug, Clone)]
pub struct RestoreOptions {
    /// The set. Without devices nothing is read, and a sequence of restores ends.
    pub media: MediaOptions,
    /// The kind of set that is restored; any if absent.
    pub wants: Option<RestoreKind>,
    /// Where the restore of a log backup stops.
    pub stop: StopAt,
    /// Ends the sequence with what a follower has spooled. Only without devices, for a SQLite file.
    pub follow: Option<FollowedRestore>,
    /// The state in which the restore leaves the database.
    pub recovery: Recovery,
    /// The standby file by which a database that is left without recovery is read meanwhile, as written.
    pub standby: Option<String>,
    /// Logical names of files, and the paths they go to.
    pub moves: Vec<(String, String)>,
    /// The path of the database, instead of its original ones.
    pub target: Option<PathBuf>,
    /// Whether to refuse a path that comes only from the backup, which nobody has checked.
    pub needs_target: bool,
    pub is_unregistered: bool,
    /// Overwrites a database or file even if it does not belong to the backup.
    pub replaces: bool,
    /// RESTART: recorded in the history, without any other effect.
    pub restarts: bool,
    /// Accepts content that is not a database.
    pub is_as_is: bool,
    /// Allows a set with weaker protection than its base.
    pub allows_unencrypted: bool,
    /// Files of public keys; one of them must have signed the set.
    pub signed_by: Vec<String>,
    /// What to do about damage.
    pub on_damage: OnDamage,
    /// Keys in addition to those of the instance. If there are any, the set must be encrypted.
    pub keys: KeyRing,
    /// Number of transfers in flight.
    pub buffer_count: Option<i64>,
    /// Bytes per transfer.
    pub transfer_bytes: Option<i64>,
    /// Threads; chosen by the plan when absent.
    pub threads: Option<i64>,
    pub io_method: IoMethodChoice,
    /// Percent between two progress messages.
    pub stats: Option<i64>,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        Self {
            media: MediaOptions::default(),
            wants: None,
            stop: StopAt::End,
            follow: None,
            recovery: Recovery::Recovery,
            standby: None,
            moves: Vec::new(),
            target: None,
            needs_target: false,
            is_unregistered: false,
            replaces: false,
            restarts: false,
            is_as_is: false,
            allows_unencrypted: false,
            signed_by: Vec::new(),
            on_damage: OnDamage::Stop,
            keys: KeyRing::default(),
            buffer_count: None,
            transfer_bytes: None,
            threads: None,
            io_method: IoMethodChoice::default(),
            stats: None,
        }
    }
}

/// The kind of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreKind {
    /// `RESTORE DATABASE`: of a full or differential backup.
    Database,
    /// `RESTORE LOG`
    Log,
}

impl RestoreKind {
    /// What restores a set of this type.
    pub fn of(set: SetType) -> Self {
        match set {
            SetType::Full | SetType::Differential => Self::Database,
            SetType::Log => Self::Log,
        }
    }

    /// The operation's name in messages.
    pub(crate) fn operation(self) -> &'static str {
        match self {
            Self::Database => "RESTORE DATABASE",
            Self::Log => "RESTORE LOG",
        }
    }
}

impl RestoreOptions {
    /// The operation's name in messages, as far as it is known without the set.
    pub(crate) fn operation(&self) -> &'static str {
        self.wants.unwrap_or(RestoreKind::Database).operation()
    }
}

/// Checked options.
#[derive(Debug, Clone, Copy)]
pub(in crate::operation) struct Settled {
    pub(in crate::operation) tuning: Tuning,
    pub(in crate::operation) stats: Option<u32>,
}

/// Checks the options.
///
/// # Errors
/// 3217, 3250, 3253, and a file that is moved twice.
pub(super) fn settle(options: &RestoreOptions) -> Result<Settled, Failure> {
    check_moved_once(&options.moves)?;
    options.media.position()?;
    options.media.block_bytes()?;
    Ok(Settled {
        tuning: Tuning {
            buffer_count: number::within(range::BUFFER_COUNT, options.buffer_count)?,
            transfer_bytes: number::transfer_bytes(options.transfer_bytes)?,
            threads: number::within(range::THREADS, options.threads)?,
            io_method: options.io_method,
            ..Tuning::default()
        },
        stats: number::within(range::STATS, options.stats)?,
    })
}
