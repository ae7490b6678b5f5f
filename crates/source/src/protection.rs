//! How well a backup set is protected against forgery, and which sets may follow it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What an attacker needs to forge an acceptable set, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Nothing: the set is not encrypted.
    #[default]
    None,
    /// A certificate, which is public.
    Certificate,
    Passphrase,
}

impl Protection {
    /// Whether a set with protection `next` may follow. Everything that a differential must match
    /// is in the unencrypted headers of its base, so only the key distinguishes a genuine
    /// differential from a forged one.
    pub fn admits(self, next: Self) -> bool {
        next >= self
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "not encrypted",
            Self::Certificate => "encrypted for a certificate",
            Self::Passphrase => "encrypted for a passphrase",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_less_protected_follows() {
        let all = [
            Protection::None,
            Protection::Certificate,
            Protection::Passphrase,
        ];
        for (place, base) in all.iter().enumerate() {
            for (other, next) in all.iter().enumerate() {
                assert_eq!(base.admits(*next), other >= place, "{next} upon {base}");
            }
        }
    }
}
