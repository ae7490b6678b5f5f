//! Retention rules.

use std::str::FromStr;

use windlass_base::Moment;

/// What to keep. A backup is kept if any rule keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policy {
    /// Everything newer than this many hours.
    pub within_hours: Option<u32>,
    /// This many of the newest backups of each database.
    pub last: u32,
    /// This many of the newest backups of each database and kind (full, differential).
    pub last_of_kind: u32,
    /// The newest backup of each of the last days that have one, for this many days.
    pub daily: u32,
    /// The same for weeks, which start on Monday.
    pub weekly: u32,
    /// The same for months.
    pub monthly: u32,
    /// The same for years.
    pub yearly: u32,
}

/// Why a text is not a valid `ERASEFILES`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not n (days), nh (hours) or nb (backups of each kind), with n above 0")]
pub struct PolicyError(String);

/// The moment at which backups are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    pub local: Moment,
    /// Seconds since 1970.
    pub utc: i64,
}

impl Now {
    pub fn here() -> Self {
        Self {
            local: Moment::now().0,
            utc: jiff::Timestamp::now().as_second(),
        }
    }
}

impl Policy {
    /// Whether no rule keeps anything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a backup finished within `within_hours`; both times are seconds since 1970. A local time would be wrong
    /// by hours where the time zone, or summer time, is another one by now.
    pub(crate) fn is_young(&self, finished: i64, now: i64) -> bool {
        let hours = self.within_hours.map(i64::from);
        hours.is_some_and(|hours| now.saturating_sub(finished) <= hours * 3600)
    }

    /// The same of a time whose zone was not recorded.
    pub(crate) fn is_within(&self, finished: Moment, now: Moment) -> bool {
        let Some(hours) = self.within_hours else {
            return false;
        };
        let age = now.to_civil() - finished.to_civil();
        // Days of civil time have 24 hours here; if the age cannot be computed, the backup is kept.
        age.total((
            jiff::Unit::Second,
            jiff::SpanRelativeTo::days_are_24_hours(),
        ))
        .map_or(true, |seconds| seconds <= f64::from(hours) * 3600.0)
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    /// Parses the value of `ERASEFILES`: `n`, `nh` or `nb`.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let wrong = || PolicyError(text.to_owned());
        let trimmed = text.trim();
        let digits = trimmed.trim_end_matches(|last: char| !last.is_ascii_digit());
        let number: u32 = digits.parse().map_err(|_| wrong())?;
        if number == 0 {
            return Err(wrong());
        }
        match trimmed[digits.len()..].to_ascii_lowercase().as_str() {
            "" => Ok(Self {
                within_hours: Some(number.checked_mul(24).ok_or_else(wrong)?),
                ..Self::default()
            }),
            "h" => Ok(Self {
                within_hours: Some(number),
                ..Self::default()
            }),
            "b" => Ok(Self {
                last_of_kind: number,
                ..Self::default()
            }),
            _ => Err(wrong()),
        }
    }
}
