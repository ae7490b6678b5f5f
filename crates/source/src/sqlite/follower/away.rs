//! Sends a follower away from its database for as long as somebody needs that alone: a restore over it, or its deletion.
//!
//! Two files in the folder of the spool: the request, locked by whoever waits, and the answer of the follower. A request
//! without a lock was left by a process that died, and asks for nothing.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use windlass_io::own;

use super::super::file_error;
use super::super::spool::{self, SpoolError};
use crate::Error;

const REQUEST_NAME: &str = "leave.request";
const ANSWER_NAME: &str = "left";

const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// A follower that was sent away; it comes back when this is dropped.
#[derive(Debug)]
pub struct SentAway {
    folder: PathBuf,
    _request: File,
}

impl SentAway {
    /// Sends the follower of the spool in `folder` away, and waits until it has released the database. One that begins
    /// meanwhile stays away, too.
    ///
    /// # Errors
    /// [`SpoolError::NoAnswer`], those of the operating system.
    pub fn ask(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(REQUEST_NAME);
        let request = own::claim_file(&path).map_err(|error| file_error("lock", &path, error))?;
        let sent = Self {
            folder: folder.to_owned(),
            _request: request,
        };
        let begun = Instant::now();
        while spool::has_follower(folder)? && !own::is_there(&folder.join(ANSWER_NAME)) {
            if begun.elapsed() > PATIENCE {
                let folder = folder.to_owned();
                return Err(SpoolError::NoAnswer { folder }.told());
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(sent)
    }
}

impl Drop for SentAway {
    fn drop(&mut self) {
        // What is left without the lock asks for nothing.
        let _left = own::remove(&self.folder.join(ANSWER_NAME));
        let _left = own::remove(&self.folder.join(REQUEST_NAME));
    }
}

/// Whether the follower is to be away.
pub(super) fn is_wanted(folder: &Path) -> bool {
    own::is_held(&folder.join(REQUEST_NAME)).unwrap_or(false)
}

/// Says that the follower has released the database.
pub(super) fn answer(folder: &Path) -> Result<(), Error> {
    let path = folder.join(ANSWER_NAME);
    own::create(&path)
        .map(drop)
        .map_err(|error| file_error("create", &path, error))
}
