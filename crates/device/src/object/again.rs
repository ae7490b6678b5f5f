//! Requests that are made again while they can succeed later, where `object_store` does not do that.

use std::io;
use std::thread;
use std::time::Duration;

/// How often a request is made again, and how long it waits at first; each time twice as long.
const RETRIES_MAX: u32 = 5;
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// Why a request did not do.
pub(super) enum Failed {
    /// The same request can succeed later.
    Passing(io::Error),
    ForGood(io::Error),
}

/// What a request gives in the end.
pub(super) fn repeated<T>(mut request: impl FnMut() -> Result<T, Failed>) -> io::Result<T> {
    let mut wait = RETRY_AFTER;
    let mut retries = RETRIES_MAX;
    loop {
        match request() {
            Ok(done) => return Ok(done),
            Err(Failed::Passing(_)) if retries > 0 => thread::sleep(wait),
            Err(Failed::Passing(error) | Failed::ForGood(error)) => return Err(error),
        }
        wait *= 2;
        retries -= 1;
    }
}
