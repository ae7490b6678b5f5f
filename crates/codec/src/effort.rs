//! What a compressor may change from chunk to chunk: how much time it spends to reduce the size.

use std::fmt;

/// How hard ZSTD tries. Every effort produces the same format, so a set may mix them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effort {
    /// Less than LOW; only `LEVEL = AUTO` uses it.
    Least,
    Low,
    Medium,
    High,
}

impl Effort {
    /// All steps, from fast to small.
    pub const ALL: [Self; 4] = [Self::Least, Self::Low, Self::Medium, Self::High];

    /// The number of steps.
    pub const COUNT: usize = Self::ALL.len();

    pub fn index(self) -> usize {
        self as usize
    }

    /// The name in reports: that of the level, if it corresponds to one.
    pub fn name(self) -> &'static str {
        match self {
            Self::Least => "LEAST",
            Self::Low => "LOW",
            Self::Medium => "MEDIUM",
            Self::High => "HIGH",
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<crate::Level> for Effort {
    fn from(level: crate::Level) -> Self {
        match level {
            crate::Level::Low => Self::Low,
            crate::Level::Medium => Self::Medium,
            crate::Level::High => Self::High,
        }
    }
}
