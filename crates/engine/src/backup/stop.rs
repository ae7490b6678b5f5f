//! Where a restore of log backups stops.

use windlass_base::Lsn;

/// The first mark of a name that is not earlier than a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedMark {
    /// As the transaction was named; case counts.
    pub name: String,
    /// In milliseconds since 1970, UTC; 0 for any.
    pub after_ms: u64,
}

/// Where a restore of log backups stops.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StopAt {
    /// At the end of the set.
    #[default]
    End,
    /// Before the first commit after this time, in milliseconds since 1970, UTC.
    Time(u64),
    /// After the commit with this record.
    Lsn(Lsn),
    /// Before the commit with this record.
    BeforeLsn(Lsn),
    /// After the transaction with this mark.
    Mark(WantedMark),
    /// Before the transaction with this mark.
    BeforeMark(WantedMark),
}

impl StopAt {
    pub fn is_mark(&self) -> bool {
        matches!(self, Self::Mark(_) | Self::BeforeMark(_))
    }

    /// The time to stop at, in milliseconds since 1970, UTC.
    pub fn time(&self) -> Option<u64> {
        match self {
            Self::Time(unix_ms) => Some(*unix_ms),
            _ => None,
        }
    }

    /// The mark to stop at, in T-SQL's words.
    pub fn mark_name(&self) -> Option<String> {
        match self {
            Self::End | Self::Time(_) => None,
            Self::Lsn(lsn) | Self::BeforeLsn(lsn) => Some(format!("lsn:{lsn}")),
            Self::Mark(mark) | Self::BeforeMark(mark) => Some(mark.name.clone()),
        }
    }

    /// Whether the transaction to stop at is left out.
    pub fn is_before(&self) -> bool {
        matches!(self, Self::BeforeLsn(_) | Self::BeforeMark(_))
    }

    /// Whether it is at a mark of this name.
    pub(super) fn is_named(&self, name: &str) -> bool {
        match self {
            Self::Mark(mark) | Self::BeforeMark(mark) => mark.name == name,
            Self::End | Self::Time(_) | Self::Lsn(_) | Self::BeforeLsn(_) => false,
        }
    }
}
