//! The limits that a user sets on the rates of a run. Each is declared once, in [`Limits::given`].

use std::time::Duration;

use crate::report::Stage;

/// The limits of a run, in bytes per second; `None` for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// `MAXRATE`: on the bytes read from the database.
    pub read: Option<u64>,
    /// `MAXWRITERATE`: on the bytes written to each device.
    pub write: Option<u64>,
}

/// A limit that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The stage that it holds back.
    pub stage: Stage,
    pub bytes_per_second: u64,
    /// Its key in a plan.
    pub key: &'static str,
    /// The option that set it, in both spellings.
    pub option: &'static str,
}

impl Limits {
    /// The limits that are set.
    pub fn given(self) -> impl Iterator<Item = Limit> {
        let limit = |stage, rate: Option<u64>, key, option| {
            rate.map(|bytes_per_second| Limit {
                stage,
                bytes_per_second,
                key,
                option,
            })
        };
        let read = limit(Stage::Read, self.read, "read_limit", "--max-rate (MAXRATE)");
        let write = limit(
            Stage::Write,
            self.write,
            "write_limit",
            "--max-write-rate (MAXWRITERATE)",
        );
        [read, write].into_iter().flatten()
    }

    pub fn is_none(self) -> bool {
        self.given().next().is_none()
    }

    /// The shortest time in which `read` bytes are read and `written` bytes are written to each device.
    pub fn least_time(self, read: u64, written: u64) -> Duration {
        let time = |limit: Limit| {
            let bytes = match limit.stage {
                Stage::Read | Stage::Transform => read,
                Stage::Write => written,
            };
            let seconds = bytes as f64 / limit.bytes_per_second.max(1) as f64;
            Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
        };
        self.given().map(time).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_of_two_limits_decides_the_time() {
        let limits = Limits {
            read: Some(100),
            write: Some(10),
        };
        assert_eq!(limits.least_time(1000, 50), Duration::from_secs(10));
        assert_eq!(limits.least_time(1000, 200), Duration::from_secs(20));
        assert_eq!(Limits::default().least_time(1000, 200), Duration::ZERO);
        assert!(Limits::default().is_none() && !limits.is_none());
    }
}
