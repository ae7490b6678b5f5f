//! Follows the SQLite databases of an instance whose recovery model is FULL: one thread for each, and one that watches
//! over them.
//!
//! | file | what |
//! |---|---|
//! | `watch` | starts a follower for each database that needs one, and ends it when that is over |
//! | `closing` | the differential backup that closes a gap |
//! | `shown` | what each follower tells of itself, in a file in its folder, for every process |
//!
//! Followers share nothing with sessions: a log backup, and a restore that needs the database alone, ask them by files in
//! the folder of the spool (`source::sqlite`), whichever process they run in.

mod closing;
mod shown;
mod watch;

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use windlass_base::message::table;
use windlass_source::sqlite::{FollowOptions, WhenFull};

pub(crate) use shown::told;
pub use shown::{FollowerShown, followers_of};

use crate::{Failure, Session};

/// How databases are followed.
#[derive(Debug, Clone, Copy)]
pub struct FollowersOptions {
    /// How often changes become durable, as a moment that can be restored.
    pub every: Duration,
    /// Bytes of each spool.
    pub spool_bytes_max: Option<u64>,
    pub when_full: WhenFull,
}

impl Default for FollowersOptions {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(1),
            spool_bytes_max: None,
            when_full: WhenFull::Gap,
        }
    }
}

impl FollowersOptions {
    fn within(self, folder: &Path) -> FollowOptions {
        FollowOptions {
            every: self.every,
            spool_bytes_max: self.spool_bytes_max,
            when_full: self.when_full,
            ..FollowOptions::within(folder.to_owned())
        }
    }
}

/// Makes the sessions in which gaps are closed.
type Factory = Arc<dyn Fn() -> Result<Session, Failure> + Send + Sync>;

/// The running followers of an instance. Dropped, they stop as with [`Followers::stop`].
#[derive(Debug)]
pub struct Followers {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

/// Tells the watching thread to end.
#[derive(Debug, Default)]
struct Signal {
    is_stopping: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_stopping
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits; whether to end.
    fn wait(&self, time: Duration) -> bool {
        let stopping = self.lock();
        if *stopping {
            return true;
        }
        let waited = self.changed.wait_timeout(stopping, time);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Follows the databases of the instance in a folder until that is stopped.
///
/// # Errors
/// No thread can be started.
pub fn start(
    folder: &Path,
    sessions: impl Fn() -> Result<Session, Failure> + Send + Sync + 'static,
    options: FollowersOptions,
) -> Result<Followers, Failure> {
    let signal = Arc::new(Signal::default());
    let factory: Factory = Arc::new(sessions);
    let mut watch = watch::Watch::new(folder, factory, options);
    let watched = Arc::clone(&signal);
    let thread = std::thread::Builder::new()
        .name("followers".to_owned())
        .spawn(move || watch.run(&watched))
        .map_err(|error| Failure::from(table::spool_failed(error)))?;
    Ok(Followers {
        signal,
        thread: Some(thread),
    })
}

impl Followers {
    /// Returns when all that was committed until now is durable, and all databases are released.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        *self.signal.lock() = true;
        self.signal.changed.notify_all();
        if thread.join().is_err() {
            tracing::error!("the thread that watches over the followers has panicked");
        }
    }
}

impl Drop for Followers {
    fn drop(&mut self) {
        self.end();
    }
}
