//! Points in the history of a database.

use windlass_base::{Lsn, TimeError};
use windlass_instance::operation::StopAt;

/// A point in the history of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// Microseconds since 1970, UTC.
    Time(u64),
    /// The state after the commit with this record.
    Lsn(Lsn),
}

impl Point {
    /// Where log backups stop for it.
    pub(crate) fn stop(self) -> StopAt {
        match self {
            Self::Time(time_us) => StopAt::Time(time_us / 1000),
            Self::Lsn(lsn) => StopAt::Lsn(lsn),
        }
    }
}

pub(crate) fn parse_point(text: &str) -> Result<Point, String> {
    let lsn = text.strip_prefix("lsn:").and_then(|lsn| lsn.parse().ok());
    if let Some(lsn) = lsn {
        return Ok(Point::Lsn(lsn));
    }
    windlass_base::time_of_text(text)
        .map(Point::Time)
        .map_err(|error| match error {
            TimeError::NoTime => {
                "a time such as '2026-11-24 10:15:00.5' or 2026-11-24T09:15:00Z, or lsn:N"
                    .to_owned()
            }
            TimeError::Twice(_) | TimeError::Skipped => error.to_string(),
        })
}
