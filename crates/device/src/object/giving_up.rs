//! Ends requests for what is only read, when the program is asked to end.
//!
//! A store that stalls is given 80 seconds, and asked again: so long nobody waits who has pressed Ctrl+C. What writes is not
//! ended: it cleans up, and says what became of its objects.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{Either, select};

use super::store::runtime;

/// How often a waiting request looks whether the program is to end.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// How long a request goes on then: what has nearly arrived may lead to a better end.
const GRACE: Duration = Duration::from_secs(2);

static ENDS: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on, requests of this process for what is read end soon after the flag is set. For programs that write no
/// objects; the first flag counts.
pub fn give_up_when(flag: Arc<AtomicBool>) {
    let _first = ENDS.set(flag);
}

/// The answer to a request that changes nothing.
///
/// # Errors
/// The program is asked to end; there are no threads for requests.
pub(super) fn waited<T>(request: impl Future<Output = T>) -> io::Result<T> {
    let runtime = runtime()?;
    let Some(ends) = ENDS.get() else {
        return Ok(runtime.block_on(request));
    };
    let ended = async {
        while !ends.load(Ordering::Relaxed) {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        tokio::time::sleep(GRACE).await;
    };
    let answered = runtime.block_on(async {
        match select(pin!(request), pin!(ended)).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(_) => None,
        }
    });
    answered.ok_or_else(|| {
        io::Error::other("the program was asked to end while the store did not answer")
    })
}
