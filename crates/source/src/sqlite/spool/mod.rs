//! The spool of a follower: what a `SQLite` database committed, in files that are only appended to.
//!
//! The format is described in `docs/format/spool.md`.
//!
//! | file | what |
//! |---|---|
//! | `record` | records and their checksums: bytes to values and back |
//! | `parts` | the bytes of pages that a moment has touched: bytes to values and back |
//! | `writer` | appends records and makes them durable, within a limit |
//! | `reader` | walks the records of all segments, in order |
//! | `range` | which moments can be restored onto a backup, and which not |
//! | `slice` | what a log backup holds |
//! | `changed` | which extents have changed since the base of differential backups |
//! | `order` | the order of backups and log backups of one database |
//!
//! Invariants:
//! 1. A record is read only if its own checksum is right and it names the checksum of the record before it: no
//!    record can be missing, exchanged or repeated unnoticed.
//! 2. Pages count only together with the moment that follows them.
//! 3. What was synced is never changed.

mod changed;
mod error;
mod fuzzing;
mod order;
mod parts;
mod range;
mod reader;
mod record;
mod slice;
#[cfg(test)]
mod tests;
mod writer;

pub(super) use changed::{NewBase, changed_since, keep as keep_changed};
pub use error::SpoolError;
pub use fuzzing::fuzz_spool;
pub use order::Order;
pub use order::lsn_of as lsn_of_time;
pub(super) use order::{lsn_of, time_behind};
pub(super) use parts::Parts;
pub use range::{Listed, Reach, Stop, list};
pub(super) use range::{find, find_in};
pub(super) use reader::{Found, Records, last_segment};
pub(super) use record::{ClockChange, Commit, Gap, Kind, Moment, Pages, Span, State};
pub use slice::Slice;
pub(super) use slice::{SliceReader, slices};
pub(super) use writer::{SpoolWriter, has_follower, is_full};
pub use writer::{has_follower as is_followed, remove as remove_spool};

/// Version of the format that is written; earlier ones are read.
const VERSION: u16 = 2;

/// Ends the name of a segment.
const SEGMENT_SUFFIX: &str = ".wspool";

/// The time as stored: microseconds since 1970, UTC.
pub(super) fn now_us() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}
