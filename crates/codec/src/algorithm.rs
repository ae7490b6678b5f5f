//! Algorithms and levels, with SQL Server's names.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// How a chunk is stored. The numbers are stored on media and never change.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Uncompressed.
    None = 0,
    /// LZ77+Huffman of [MS-XCA], in independent blocks of 64 KiB.
    MsXpress = 1,
    /// One Zstandard frame.
    Zstd = 2,
    /// One raw DEFLATE stream (RFC 1951).
    QatDeflate = 3,
}

impl Algorithm {
    pub const ALL: [Self; 4] = [Self::None, Self::MsXpress, Self::Zstd, Self::QatDeflate];

    /// The algorithm with a number found on media.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.id() == id)
    }

    /// The number stored on media.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// The name in `COMPRESSION (ALGORITHM = ...)` and in result sets.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::MsXpress => "MS_XPRESS",
            Self::Zstd => "ZSTD",
            Self::QatDeflate => "QAT_DEFLATE",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| Error::AlgorithmName {
                found: text.to_owned(),
            })
    }
}

/// How much time ZSTD spends to reduce the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The fastest; the default.
    Low,
    /// In between.
    Medium,
    /// The smallest.
    High,
}

impl Level {
    /// All levels, from fast to small.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// The number on media of a set whose chunks have different levels: `LEVEL = AUTO`.
    pub const AUTO_ID: u8 = 4;

    /// The level with a number found on media; `None` for 0 (no level given) and for
    /// [`Level::AUTO_ID`] (it varies).
    ///
    /// # Errors
    /// [`Error::LevelId`] for an unknown number.
    pub fn from_id(id: u8) -> Result<Option<Self>, Error> {
        match id {
            0 | Self::AUTO_ID => Ok(None),
            1 => Ok(Some(Self::Low)),
            2 => Ok(Some(Self::Medium)),
            3 => Ok(Some(Self::High)),
            _ => Err(Error::LevelId { found: id }),
        }
    }

    /// The number stored on media: 1, 2 or 3, or 0 if no level was given.
    pub fn to_id(level: Option<Self>) -> u8 {
        match level {
            None => 0,
            Some(Self::Low) => 1,
            Some(Self::Medium) => 2,
            Some(Self::High) => 3,
        }
    }

    /// The name of a number found on media: of a level, or `AUTO`; `None` if there is no level.
    pub fn name_of_id(id: u8) -> Option<&'static str> {
        match id {
            Self::AUTO_ID => Some("AUTO"),
            _ => Self::from_id(id).ok().flatten().map(Self::name),
        }
    }

    /// The name in `COMPRESSION (LEVEL = ...)` and in result sets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "LOW",
            Self::Medium => "MEDIUM",
            Self::High => "HIGH",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Level {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|level| level.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| Error::LevelName {
                found: text.to_owned(),
            })
    }
}

/// The requested compression.
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
    /// DEFLATE, as Intel `QuickAssist` hardware makes it.
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

    /// The same compression with the level filled in where one applies.
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
    fn numbers_on_media_never_change() {
        assert_eq!(
            Algorithm::ALL.map(Algorithm::id),
            [0, 1, 2, 3],
            "media written by released versions say so"
        );
        for id in 0..=u8::MAX {
            assert_eq!(Algorithm::from_id(id).is_some(), id < 4);
            assert_eq!(Level::from_id(id).is_ok(), id < 5);
        }
        for level in [
            None,
            Some(Level::Low),
            Some(Level::Medium),
            Some(Level::High),
        ] {
            assert_eq!(Level::from_id(Level::to_id(level)).unwrap(), level);
        }
        let names = [0, 1, 2, 3, 4, 5].map(Level::name_of_id);
        assert_eq!(
            names,
            [
                None,
                Some("LOW"),
                Some("MEDIUM"),
                Some("HIGH"),
                Some("AUTO"),
                None
            ]
        );
    }

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
