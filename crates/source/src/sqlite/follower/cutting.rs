//! Divides a spool where a log backup ends.
//!
//! A log backup holds whole segments: those before the *cut*. Whoever makes one asks the follower that writes the spool
//! to begin another segment at the newest commit, by a file in the folder that the follower removes when it has done so.
//! If no follower runs, the caller follows for that moment.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use windlass_base::Lsn;
use windlass_io::own;

use super::super::file_error;
use super::super::spool::{self, Order, SpoolError};
use super::{FollowOptions, Follower};
use crate::Error;

const REQUEST_NAME: &str = "cut.request";
const REQUEST_BYTES_MAX: u64 = 64;

/// How long a follower may take, how often to look, and how often whether it is still there.
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
const LOOKS_PER_CHECK: u32 = 100;

/// Ends what a log backup holds at the newest commit of the database: the number of the first segment that is not
/// part of it. Its LSN is greater than `after`.
///
/// # Errors
/// [`SpoolError`], those of the follower.
pub(in crate::sqlite) fn cut(
    database: &Path,
    folder: &Path,
    after: Lsn,
    cancel: &AtomicBool,
) -> Result<u32, Error> {
    // Whoever names another folder by mistake gets no new spool there.
    spool::last_segment(folder)?;
    let _order = Order::take(folder)?;
    let at_least_us = spool::time_behind(after);
    loop {
        if !spool::has_follower(folder)? {
            let options = FollowOptions::within(folder.to_owned());
            match Follower::begin(database, &options) {
                Ok(mut follower) => return follower.cut(at_least_us),
                Err(Error::Spool(SpoolError::InUse { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        if is_answered(folder, at_least_us, cancel)? {
            return spool::last_segment(folder);
        }
    }
}

/// Asks the follower, and waits; `false` if it has ended.
fn is_answered(folder: &Path, at_least_us: u64, cancel: &AtomicBool) -> Result<bool, Error> {
    let path = folder.join(REQUEST_NAME);
    let written = own::replace(&path, at_least_us.to_string().as_bytes());
    written.map_err(|error| file_error("write", &path, error))?;
    let begun = Instant::now();
    for look in 1_u32.. {
        if !own::is_there(&path) {
            return Ok(true);
        }
        let is_late = begun.elapsed() > PATIENCE;
        if is_late || cancel.load(Ordering::Relaxed) {
            withdraw(&path)?;
            return Err(match is_late {
                true => SpoolError::NoAnswer {
                    folder: folder.to_owned(),
                }
                .told(),
                false => Error::Cancelled,
            });
        }
        if look % LOOKS_PER_CHECK == 0 && !spool::has_follower(folder)? {
            break;
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    withdraw(&path)?;
    Ok(false)
}

fn withdraw(path: &Path) -> Result<(), Error> {
    own::remove(path).map_err(|error| file_error("remove", path, error))
}

/// A request for a cut in the folder of a follower.
#[derive(Debug)]
pub(super) struct Request {
    path: PathBuf,
    pub(super) at_least_us: u64,
}

impl Request {
    pub(super) fn look(folder: &Path) -> Option<Self> {
        let path = folder.join(REQUEST_NAME);
        if !own::is_there(&path) {
            return None;
        }
        let text = own::read(&path, REQUEST_BYTES_MAX).ok()?;
        let at_least_us = std::str::from_utf8(&text).ok()?.parse().unwrap_or(0);
        Some(Self { path, at_least_us })
    }

    /// Says that it was followed, as far as that was possible.
    pub(super) fn answer(self) -> Result<(), Error> {
        withdraw(&self.path)
    }
}
