//! What a restore is asked to be.

use std::path::PathBuf;

use windlass_crypt::KeyRing;
use windlass_io::queue::IoMethodChoice;
use windlass_pipeline::{OnDamage, Tuning};
use windlass_source::Recovery;

use crate::Failure;
use crate::operation::media::{MediaOptions, check_moved_once};
use crate::operation::number;

/// What a restore of one set is asked to be. What is absent is for the media, or for the plan. Numbers are as
/// they were given: the restore checks them.
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
#[derive(Debug, Clone)]
pub struct RestoreOptions {
    /// The set. Without devices nothing is read, and a sequence of restores ends.
    pub media: MediaOptions,
    /// What the restore leaves behind.
    pub recovery: Recovery,
    /// Logical names and the paths that the files go to.
    pub moves: Vec<(String, String)>,
    /// Where the database goes, whatever its files were called.
    pub target: Option<PathBuf>,
    /// Whether a path that only the backup names is refused: nobody has looked at it.
    pub needs_target: bool,
    /// Whether the restored database is left unregistered.
    pub is_unregistered: bool,
    /// Overwrites a database or file although it does not belong to the backup.
    pub replaces: bool,
    /// Continues what was interrupted; told to the history, no more.
    pub restarts: bool,
    /// What is restored need not be a database.
    pub is_as_is: bool,
    /// The set may follow upon one that is better protected.
    pub allows_unencrypted: bool,
    /// Files of public keys, one of which must have signed the set.
    pub signed_by: Vec<String>,
    /// What to do about damage.
    pub on_damage: OnDamage,
    /// Keys beside those of the instance. If there are any, the set must be encrypted.
    pub keys: KeyRing,
    /// Transfers in flight.
    pub buffer_count: Option<i64>,
    /// Bytes in a transfer.
    pub transfer_bytes: Option<i64>,
    /// Threads; chosen by the plan when absent.
    pub threads: Option<i64>,
    /// What carries the reads.
    pub io_method: IoMethodChoice,
    /// Percent between two reports of progress.
    pub stats: Option<i64>,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        Self {
            media: MediaOptions::default(),
            recovery: Recovery::Recovery,
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

/// What options come to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settled {
    pub(super) tuning: Tuning,
    pub(super) stats: Option<u32>,
}

/// Checks options.
///
/// # Errors
/// 3217, 3250, 3253, and a file that is moved twice.
pub(super) fn settle(options: &RestoreOptions) -> Result<Settled, Failure> {
    check_moved_once(&options.moves)?;
    options.media.position()?;
    options.media.block_bytes()?;
    Ok(Settled {
        tuning: Tuning {
            buffer_count: number::BUFFER_COUNT.check(options.buffer_count)?,
            transfer_bytes: number::transfer_bytes(options.transfer_bytes)?,
            threads: number::THREADS.check(options.threads)?,
            io_method: options.io_method,
            ..Tuning::default()
        },
        stats: number::STATS.check(options.stats)?,
    })
}
