//! The order of a followed database's backups and the ends of its log backups.
//!
//! LSNs of `SQLite` files are times. So that they order backups of the database, and the places where its spool is cut
//! for a log backup, as their states are ordered, a snapshot is pinned, and a cut made, while the folder's *order* is
//! held: by one of them at a time, each with its time in between.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags};
use windlass_base::Lsn;
use windlass_io::own;

use super::super::file_error;
use crate::Error;

const ORDER_NAME: &str = "order.lock";

/// Ticks in the LSN of a `SQLite` file.
const TICK_NANOSECONDS: u64 = 512;

/// The right to pin a snapshot of a followed database, or to cut its spool.
#[derive(Debug)]
pub struct Order(#[expect(dead_code, reason = "locked while it is open")] File);

impl Order {
    /// Waits for whoever has it.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn take(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(ORDER_NAME);
        let fail = |error| file_error("lock", &path, error);
        own::check_owner(folder).map_err(fail)?;
        let mut options = OpenOptions::new();
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        options.read(true).write(true).create(true).truncate(false);
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
        let file = options.open(&path).map_err(fail)?;
        loop {
            match rustix::fs::flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Self(file)),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(fail(error.into())),
            }
        }
    }
}

/// The LSN of a time in a spool.
pub fn lsn_of(time_us: u64) -> Lsn {
    Lsn {
        vlf: u32::try_from(time_us / 1_000_000).unwrap_or(u32::MAX),
        block: (time_us % 1_000_000 * 1000 / TICK_NANOSECONDS) as u32,
        slot: 1,
    }
}

/// The first time whose LSN is behind `lsn`.
pub(in crate::sqlite) fn time_behind(lsn: Lsn) -> u64 {
    let next_tick = (u64::from(lsn.block) + 1) * TICK_NANOSECONDS;
    u64::from(lsn.vlf) * 1_000_000 + next_tick.div_ceil(1000)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_behind_an_lsn_has_a_greater_one() {
        for time_us in [0, 1, 999_999, 1_800_000_000_000_001] {
            let lsn = Lsn {
                slot: 9,
                ..lsn_of(time_us)
            };
            assert!(lsn_of(time_behind(lsn)) > lsn, "{time_us}");
            assert!(lsn_of(time_us + 1) > lsn, "{time_us}");
        }
    }

    #[test]
    fn one_at_a_time_has_the_order() {
        let folder = tempfile::tempdir().unwrap();
        let order = Order::take(folder.path()).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _order = Order::take(folder.path()).unwrap();
                sender.send(()).unwrap();
            });
            let early = receiver.recv_timeout(Duration::from_millis(50));
            assert!(early.is_err());
            drop(order);
            receiver.recv().unwrap();
        });
    }
}
