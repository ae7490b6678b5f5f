//! Options for which a backup can choose the value itself.

use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use windlass_base::range::THREADS;
use windlass_base::word::Word;

use super::number::number;

/// `--threads`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// As many as have work.
    Auto,
    Count(u32),
}

impl Threads {
    /// The number, unless it is `auto`.
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
            _ => number(THREADS)(text)
                .map(Self::Count)
                .map_err(|reason| format!("{reason}, nor auto")),
        }
    }
}

/// Parses one of an option's words, in lower case; the help shows the meaning of each.
pub(crate) fn word<T: Word>() -> impl TypedValueParser<Value = T> {
    let value = |word: &T| {
        // Leaks a few bytes per run: clap keeps names until the program ends.
        let name: &'static str = word.spelling().to_lowercase().leak();
        PossibleValue::new(name).help(word.meaning())
    };
    PossibleValuesParser::new(T::WORDS.iter().map(value)).try_map(|text| text.parse())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_is_a_word_beside_the_numbers() {
        assert_eq!("auto".parse(), Ok(Threads::Auto));
        assert_eq!("3".parse(), Ok(Threads::Count(3)));
        assert!("many".parse::<Threads>().is_err());
    }
}
