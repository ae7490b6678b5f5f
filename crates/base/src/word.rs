//! The words that options take as values, each declared once, with its spelling and its meaning.
//!
//! T-SQL's grammar and printer, the command line and its help, plans and result sets use this
//! declaration; the crate that implements a word also exports it under its own name.
//!
//! The numbers of [`Algorithm`], [`Level`] and [`Depth`] are stored on media and never change.

use std::fmt;
use std::str::FromStr;

/// A word of an option, for code that lists or parses any kind of words.
pub trait Word: Copy + Send + Sync + FromStr<Err = UnknownWord> + 'static {
    /// Every word, in the order of the documentation.
    const WORDS: &'static [Self];

    /// How it is spelled in T-SQL and in result sets.
    fn spelling(self) -> &'static str;

    fn meaning(self) -> &'static str;
}

/// A text that is not one of the words of an option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' is not {what}: {words}")]
pub struct UnknownWord {
    /// The text.
    pub found: String,
    /// What it should be.
    pub what: &'static str,
    /// The words.
    pub words: String,
}

impl UnknownWord {
    fn new<T: Word>(found: impl Into<String>, what: &'static str) -> Self {
        let words: Vec<&str> = T::WORDS.iter().map(|word| word.spelling()).collect();
        Self {
            found: found.into(),
            what,
            words: choices(&words),
        }
    }
}

/// `A, B or C`
pub fn choices(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

macro_rules! words {
    (
        $(#[$attribute:meta])*
        $name:ident, $what:literal:
        $($word:ident = $number:literal $spelling:literal $meaning:literal,)+
    ) => {
        $(#[$attribute])*
        #[repr(u8)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = $meaning] $word = $number,)+
        }

        impl $name {
            /// All words, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$word),+];

            /// How it is spelled in T-SQL and in result sets.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$word => $spelling,)+
                }
            }
        }

        impl Word for $name {
            const WORDS: &'static [Self] = Self::ALL;

            fn spelling(self) -> &'static str {
                self.name()
            }

            fn meaning(self) -> &'static str {
                match self {
                    $(Self::$word => $meaning,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                let mut words = Self::ALL.iter().copied();
                let found = words.find(|word| word.name().eq_ignore_ascii_case(text));
                found.ok_or_else(|| UnknownWord::new::<Self>(text, $what))
            }
        }
    };
}

words! {
    /// How a chunk is stored.
    Algorithm, "a compression algorithm":
    None = 0 "NONE" "As it is.",
    MsXpress = 1 "MS_XPRESS" "LZ77+Huffman of [MS-XCA], in independent blocks of 64 KiB.",
    Zstd = 2 "ZSTD" "One Zstandard frame.",
    QatDeflate = 3 "QAT_DEFLATE" "One raw DEFLATE stream (RFC 1951).",
}

words! {
    /// How much time ZSTD spends on size.
    Level, "a compression level":
    Low = 1 "LOW" "The fastest, and what is taken when none is given.",
    Medium = 2 "MEDIUM" "Between.",
    High = 3 "HIGH" "The smallest.",
}

words! {
    /// What a backup adapts itself to.
    Goal, "a goal":
    Fast = 1 "FAST" "Shortest time; for equal times, the smallest backup",
    Small = 2 "SMALL" "Smallest backup that takes at most three times the shortest time",
    Gentle = 3 "GENTLE" "Lowest CPU and I/O priority, half the cores, no level above LOW",
}

words! {
    /// How much of a database SQLite's own check looks at.
    Depth, "a depth":
    Quick = 1 "QUICK" "Check each page and row: SQLite's quick check",
    Full = 2 "FULL" "Also check indexes against their tables: SQLite's integrity check",
}

#[expect(
    clippy::derivable_impls,
    reason = "the words are declared without attributes"
)]
impl Default for Goal {
    fn default() -> Self {
        Self::Fast
    }
}

impl Algorithm {
    /// The algorithm with a number found on media.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.id() == id)
    }

    /// The number stored on media.
    pub const fn id(self) -> u8 {
        self as u8
    }
}

impl Level {
    /// The number on media of a set whose chunks have different levels: `LEVEL = AUTO`.
    pub const AUTO_ID: u8 = 4;

    /// The level with a number found on media; `None` for 0, if none was given, and for
    /// [`Level::AUTO_ID`], if levels vary.
    ///
    /// # Errors
    /// [`UnknownWord`] for a number without a level.
    pub fn from_id(id: u8) -> Result<Option<Self>, UnknownWord> {
        match id {
            0 | Self::AUTO_ID => Ok(None),
            _ => {
                let found = Self::ALL.iter().copied().find(|known| *known as u8 == id);
                let unknown = || UnknownWord::new::<Self>(id.to_string(), "a compression level");
                found.map(Some).ok_or_else(unknown)
            }
        }
    }

    /// The number stored on media: 1, 2 or 3, and 0 if no level was given.
    pub fn to_id(level: Option<Self>) -> u8 {
        level.map_or(0, |level| level as u8)
    }

    /// The name of a number found on media: of a level, or `AUTO`; `None` where there is no level.
    pub fn name_of_id(id: u8) -> Option<&'static str> {
        match id {
            Self::AUTO_ID => Some("AUTO"),
            _ => Self::from_id(id).ok().flatten().map(Self::name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_any_case_and_printed_in_sql_servers() {
        fn check<T: Word + PartialEq + fmt::Debug>() {
            for word in T::WORDS {
                assert_eq!(word.spelling().parse::<T>().as_ref(), Ok(word));
                let lower = word.spelling().to_lowercase();
                assert_eq!(lower.parse::<T>().as_ref(), Ok(word));
                assert!(!word.meaning().is_empty());
            }
        }
        check::<Algorithm>();
        check::<Level>();
        check::<Goal>();
        check::<Depth>();
    }

    #[test]
    fn a_word_that_is_none_is_told_which_there_are() {
        let error = "LZ4".parse::<Algorithm>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'LZ4' is not a compression algorithm: NONE, MS_XPRESS, ZSTD or QAT_DEFLATE"
        );
    }

    #[test]
    fn numbers_on_media_never_change() {
        let numbers: Vec<u8> = Algorithm::ALL.iter().map(|known| known.id()).collect();
        assert_eq!(
            numbers,
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
        assert_eq!((Depth::Quick as u8, Depth::Full as u8), (1, 2));
    }
}
