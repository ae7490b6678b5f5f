//! Compares settings: faster, smaller, or both in proportion.

use std::fmt;
use std::str::FromStr;

/// What to optimise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Goal {
    /// The shortest backup.
    Fast,
    /// The lowest product of time and size: taking twice as long must halve the size.
    #[default]
    Balanced,
    /// The smallest backup.
    Small,
}

impl Goal {
    /// A score for a throughput (MB/s) and a compression ratio; higher is better.
    pub(super) fn score(self, rate: f64, ratio: f64) -> f64 {
        match self {
            Self::Fast => rate,
            Self::Balanced => rate * ratio,
            Self::Small => ratio,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Fast => "the shortest backup",
            Self::Balanced => "the lowest product of time and size",
            Self::Small => "the smallest backup",
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fast => "fast",
            Self::Balanced => "balanced",
            Self::Small => "small",
        })
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Fast, Self::Balanced, Self::Small]
            .into_iter()
            .find(|goal| goal.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("'{text}' is not fast, balanced or small"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_takes_twice_the_time_only_for_half_the_size() {
        let score = |rate: f64, ratio: f64| Goal::Balanced.score(rate, ratio);
        assert!(score(100.0, 4.0) > score(210.0, 1.8));
        assert!(score(100.0, 4.0) < score(210.0, 2.0));
        assert!(Goal::Fast.score(2.0, 1.0) > Goal::Fast.score(1.0, 9.0));
        assert!(Goal::Small.score(2.0, 1.0) < Goal::Small.score(1.0, 9.0));
        assert_eq!("Small".parse(), Ok(Goal::Small));
        assert!("cheap".parse::<Goal>().is_err());
    }
}
