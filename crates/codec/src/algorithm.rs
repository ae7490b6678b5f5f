//! Algorithms and levels, with SQL Server's names.

use std::fmt;
use std::str::FromStr;

pub use windlass_base::word::{Algorithm, Level};

use crate::Error;

/// The compression that a backup requests.
///
/// Formatted and parsed as `MS_XPRESS` or `ZSTD:HIGH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Compression {
    pub algorithm: Algorithm,
    /// Only for [`Algorithm::Zstd`], where `None` means [`Level::Low`].
    pub level: Option<Level>,
}

impl Compression {
    pub const NONE: Self = Self::of(Algorithm::None, None);
    /// SQL Server's default algorithm.
    pub const MS_XPRESS: Self = Self::of(Algorithm::MsXpress, None);
    /// Zstandard, fastest.
    pub const ZSTD_LOW: Self = Self::of(Algorithm::Zstd, Some(Level::Low));
    /// Zstandard, in between.
    pub const ZSTD_MEDIUM: Self = Self::of(Algorithm::Zstd, Some(Level::Medium));
    /// Zstandard, smallest.
    pub const ZSTD_HIGH: Self = Self::of(Algorithm::Zstd, Some(Level::High));
    /// DEFLATE, as Intel `QuickAssist` hardware produces it.
    pub const QAT_DEFLATE: Self = Self::of(Algorithm::QatDeflate, None);

    /// All combinations, in the order of the table in the documentation.
    pub const ALL: [Self; 6] = [
        Self::NONE,
        Self::MS_XPRESS,
        Self::ZSTD_LOW,
        Self::ZSTD_MEDIUM,
        Self::ZSTD_HIGH,
        Self::QAT_DEFLATE,
    ];

    const fn of(algorithm: Algorithm, level: Option<Level>) -> Self {
        Self { algorithm, level }
    }

    /// `algorithm` at `level`; ZSTD without a level is LOW.
    ///
    /// # Errors
    /// [`Error::LevelNotTaken`] if the algorithm has no levels.
    pub fn new(algorithm: Algorithm, level: Option<Level>) -> Result<Self, Error> {
        Self::of(algorithm, level).resolved()
    }

    /// The same compression with the default level filled in.
    pub(crate) fn resolved(self) -> Result<Self, Error> {
        match (self.algorithm, self.level) {
            (Algorithm::Zstd, None) => Ok(Self::ZSTD_LOW),
            (Algorithm::Zstd, Some(_)) | (_, None) => Ok(self),
            (algorithm, Some(_)) => Err(Error::LevelNotTaken { algorithm }),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            None => f.pad(self.algorithm.name()),
            Some(level) => f.pad(&format!("{}:{level}", self.algorithm)),
        }
    }
}

impl FromStr for Compression {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_once(':') {
            None => Self::new(text.parse()?, None),
            Some((algorithm, level)) => Self::new(algorithm.parse()?, Some(level.parse()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case_and_printed_in_sql_servers() {
        for compression in Compression::ALL {
            let text = compression.to_string();
            assert_eq!(text.parse::<Compression>().unwrap(), compression);
            assert_eq!(
                text.to_lowercase().parse::<Compression>().unwrap(),
                compression
            );
        }
        assert_eq!(
            "zstd".parse::<Compression>().unwrap(),
            Compression::ZSTD_LOW
        );
        assert_eq!(Compression::ZSTD_HIGH.to_string(), "ZSTD:HIGH");
    }

    #[test]
    fn a_level_is_refused_where_there_are_none() {
        assert_eq!(
            "MS_XPRESS:LOW".parse::<Compression>(),
            Err(Error::LevelNotTaken {
                algorithm: Algorithm::MsXpress
            })
        );
        assert!("LZ4".parse::<Compression>().is_err());
        assert!("ZSTD:19".parse::<Compression>().is_err());
    }
}
