//! One agent for each instance: a lock on a file in its folder, which ends with the process.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags};
use windlass_base::message::table;

use crate::Failure;

/// Within the instance's folder.
const FILE: &str = "agent.lock";

const ATTEMPTS: u32 = 10;

const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

/// The right to run the jobs of an instance.
#[derive(Debug)]
pub(super) struct Lock {
    _file: std::fs::File,
}

impl Lock {
    pub(super) fn take(folder: &Path) -> Result<Self, Failure> {
        let shown = folder.display();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(folder.join(FILE))
            .map_err(|error| table::agent_not_started(&shown, error))?;
        for _ in 0..ATTEMPTS {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _file: file }),
                // Perhaps somebody only looks.
                Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(BETWEEN_ATTEMPTS),
                Err(error) => return Err(table::agent_not_started(&shown, error).into()),
            }
        }
        Err(table::agent_runs_already(shown).into())
    }
}

/// Whether an agent runs the jobs of the instance in a folder, in this process or another.
pub fn is_running(folder: &Path) -> bool {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let Ok(file) = options.open(folder.join(FILE)) else {
        return false;
    };
    // An agent that starts at this moment is kept out by the look at its lock, and tries again.
    matches!(
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared),
        Err(rustix::io::Errno::WOULDBLOCK)
    )
}
