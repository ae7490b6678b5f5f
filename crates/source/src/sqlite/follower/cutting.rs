//! Divides a spool where a log backup ends.
//!
//! A log backup holds whole segments: those before the *cut*. Whoever makes one asks the follower that writes the spool
//! to begin another segment at the newest commit, by a file in the folder. If no follower runs, the caller follows for
//! that moment.
//!
//! Invariant: a cut is *whole* only if, after it was asked for, the names led to the files that are followed, and
//! everything up to the newest commit of their log was captured, or lies behind a gap in the spool. The follower says so
//! by renaming the request to the answer; everything else that the caller finds is a [`Lack`].

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use windlass_base::Lsn;
use windlass_io::own;

use super::super::file_error;
use super::super::spool::{self, Order, SpoolError};
use super::proof::Doubt;
use super::reading::Reading;
use super::{FollowOptions, Follower, Following};
use crate::Error;

const REQUEST_NAME: &str = "cut.request";
const REQUEST_BYTES_MAX: u64 = 64;
const ANSWER_NAME: &str = "cut.answer";
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// What the answer begins with if the spool has no room.
const FULL: &str = "full ";

/// How long a follower may take, how often to look, and how often whether it is still there.
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
const LOOKS_PER_CHECK: u32 = 100;

/// How long the follower tries to reach the newest commit, and how often.
const EFFORT: Duration = Duration::from_secs(2);
const BETWEEN_EFFORTS: Duration = Duration::from_millis(20);

/// Where a log backup ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sqlite) struct Cut {
    /// The number of the first segment that is not part of it.
    pub(in crate::sqlite) before: u32,
    /// Why the newest commits are not before it.
    pub(in crate::sqlite) lack: Option<Lack>,
}

/// Why a cut is not at the newest commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sqlite) struct Lack {
    /// Whether the spool has no room, so that backing it up helps.
    pub(in crate::sqlite) is_full: bool,
    pub(in crate::sqlite) reason: String,
}

/// Ends what a log backup holds at the newest commit of the database, or says why not. The LSN of the cut is greater than
/// `after`.
///
/// # Errors
/// [`SpoolError`], those of the follower.
pub(in crate::sqlite) fn cut(
    database: &Path,
    folder: &Path,
    after: Lsn,
    cancel: &AtomicBool,
) -> Result<Cut, Error> {
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
            let lack = answer(folder, at_least_us);
            let before = spool::last_segment(folder)?;
            return Ok(Cut { before, lack });
        }
    }
}

/// Has a follower that runs spool everything up to the newest commit. Where none runs, nothing is done: the caller may
/// hold the database.
pub(in crate::sqlite) fn catch_up(folder: &Path, cancel: &AtomicBool) -> Result<(), Error> {
    let _order = Order::take(folder)?;
    if spool::has_follower(folder)? {
        is_answered(folder, 0, cancel)?;
    }
    Ok(())
}

/// What the follower has answered; silence is a lack, too.
fn answer(folder: &Path, at_least_us: u64) -> Option<Lack> {
    let text = own::read(&folder.join(ANSWER_NAME), ANSWER_BYTES_MAX);
    let text = text.ok().and_then(|text| String::from_utf8(text).ok());
    let Some(text) = text else {
        // On a full disk it can do no more than remove the request.
        return Some(Lack {
            is_full: true,
            reason: "the follower could not say whether it has the newest commit".to_owned(),
        });
    };
    if text == at_least_us.to_string() {
        return None;
    }
    let reason = text.strip_prefix(FULL);
    Some(Lack {
        is_full: reason.is_some(),
        reason: reason.unwrap_or(&text).to_owned(),
    })
}

/// Asks the follower, and waits; `false` if it has ended.
fn is_answered(folder: &Path, at_least_us: u64, cancel: &AtomicBool) -> Result<bool, Error> {
    let path = folder.join(REQUEST_NAME);
    withdraw(&folder.join(ANSWER_NAME))?;
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

    /// Answers it.
    fn answer(self, lack: Option<&Lack>) -> Result<(), Error> {
        let answer = self.path.with_file_name(ANSWER_NAME);
        let Some(lack) = lack else {
            let renamed = std::fs::rename(&self.path, &answer);
            return match renamed {
                // Withdrawn meanwhile.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
                renamed => renamed.map_err(|error| file_error("rename", &self.path, error)),
            };
        };
        let full = if lack.is_full { FULL } else { "" };
        // Without room for it, silence says enough.
        let _written = own::replace(&answer, format!("{full}{}", lack.reason).as_bytes());
        withdraw(&self.path)
    }
}

impl Follower {
    pub(super) fn cut_if_asked(&mut self) -> Result<(), Error> {
        let Some(request) = Request::look(&self.options.folder) else {
            return Ok(());
        };
        let lack = match self.cut(request.at_least_us) {
            Ok(cut) => cut.lack,
            // Whoever asked takes what there is; trouble with the spool is told and waited out as always.
            Err(error) => {
                let reason = error.to_string();
                let is_full = spool::is_full(&error);
                self.survive(error)?;
                Some(Lack { is_full, reason })
            }
        };
        request.answer(lack.as_ref())
    }

    /// Makes everything durable that was committed until now, and begins another segment. If everything was captured,
    /// the time of the state before it is not earlier than `at_least_us`.
    pub(in crate::sqlite) fn cut(&mut self, at_least_us: u64) -> Result<Cut, Error> {
        let lack = self.capture_all()?;
        if let Some(reading) = self.reading.as_mut().filter(|_| lack.is_none()) {
            reading.seen(&mut self.spool)?;
            let state = self.spool.state_written();
            if state.time_us < at_least_us {
                // A clock was set back.
                self.spool.seen(state.position, at_least_us)?;
            }
        }
        self.spool.sync()?;
        let before = self.spool.cut()?;
        Ok(Cut { before, lack })
    }

    /// Captures everything up to the newest commit that there is now, or records a gap before it; why that was not
    /// possible.
    fn capture_all(&mut self) -> Result<Option<Lack>, Error> {
        let begun = Instant::now();
        loop {
            // Now, not once a second.
            self.look_around()?;
            let newest = self.reading.as_ref().and_then(Reading::newest);
            // Its last look at the names comes after `newest`, so that this is of the files that have them.
            self.step(true)?;
            let lack = self.lack();
            let has_all = match (&self.reading, newest) {
                (Some(reading), Some(newest)) => reading.has(&newest),
                _ => false,
            };
            match lack {
                None if has_all => return Ok(None),
                Some(lack) if lack.is_full || self.is_away => return Ok(Some(lack)),
                lack if begun.elapsed() > EFFORT => {
                    let reason = "the index of its log cannot be read".to_owned();
                    let is_full = false;
                    return Ok(Some(lack.unwrap_or(Lack { is_full, reason })));
                }
                _ => std::thread::sleep(BETWEEN_EFFORTS),
            }
        }
    }

    /// Why nothing is captured right now.
    fn lack(&self) -> Option<Lack> {
        let told = |doubt: Doubt| {
            let error = self.status.last_error.clone();
            error.unwrap_or_else(|| doubt.to_string())
        };
        match (&self.reading, self.lost) {
            _ if self.is_holding => Some(Lack {
                is_full: true,
                reason: told(Doubt::SpoolFull),
            }),
            (Some(_), _) => None,
            (None, Some((Following::Away, _))) => Some(Lack {
                is_full: false,
                reason: "the database is left to a restore".to_owned(),
            }),
            (None, lost) => Some(Lack {
                is_full: lost.is_some_and(|(following, _)| following == Following::SpoolFull),
                reason: told(lost.map_or(Doubt::OtherLog, |(_, doubt)| doubt)),
            }),
        }
    }
}
