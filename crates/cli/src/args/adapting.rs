//! What a backup may choose for itself, on the command line.

use std::str::FromStr;

use clap::ValueEnum;
use windlass_codec::Compression;

/// `--compress`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compress {
    /// The ZSTD level is picked while the backup runs.
    Auto,
    Fixed(Compression),
}

impl FromStr for Compress {
    type Err = windlass_codec::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "auto" | "zstd:auto" => Ok(Self::Auto),
            _ => text.parse().map(Self::Fixed),
        }
    }
}

/// `--threads`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// As many as have work.
    Auto,
    Count(u32),
}

impl Threads {
    /// The number, if one was given.
    pub(crate) fn count(self) -> Option<u32> {
        match self {
            Self::Auto => None,
            Self::Count(count) => Some(count),
        }
    }
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => text
                .parse()
                .map(Self::Count)
                .map_err(|_| format!("'{text}' is neither a number nor auto")),
        }
    }
}

/// `--integrity`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Integrity {
    /// Check each page and row: PRAGMA `quick_check`
    Quick,
    /// Also check indexes against their tables: PRAGMA `integrity_check`
    Full,
}

/// `--goal`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Goal {
    /// Shortest time; for equal times, the smallest backup
    Fast,
    /// Smallest backup that takes at most three times the shortest time
    Small,
    /// Lowest CPU and I/O priority, half the cores, no level above LOW
    Gentle,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_is_a_word_beside_the_numbers() {
        assert_eq!("auto".parse(), Ok(Threads::Auto));
        assert_eq!("3".parse(), Ok(Threads::Count(3)));
        assert!("many".parse::<Threads>().is_err());
        assert_eq!("AUTO".parse(), Ok(Compress::Auto));
        assert_eq!(
            "zstd:high".parse(),
            Ok(Compress::Fixed(Compression::ZSTD_HIGH))
        );
        assert!("ms_xpress:auto".parse::<Compress>().is_err());
    }
}
