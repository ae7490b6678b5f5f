//! How well a backup set is protected against forgery, and which sets may follow it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is needed to create a set that a restore accepts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protection {
    /// The key of the set.
    pub encryption: Sealing,
    /// Fingerprints of keys: the set was signed with one of them, and that was required. Empty if no
    /// signature was required.
    pub signed_by: Vec<String>,
}

/// For whom the key of a set is wrapped, ordered by how few can create such a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sealing {
    /// The set is not encrypted.
    #[default]
    None,
    /// A certificate, which is public.
    Certificate,
    Passphrase,
}

impl Sealing {
    /// That of a set with this `encryptor_type` in the history.
    pub fn of_encryptor(kind: &str) -> Self {
        match kind {
            "CERTIFICATE" => Self::Certificate,
            _ => Self::Passphrase,
        }
    }
}

impl Protection {
    /// Whether a set with protection `next` may follow this one. Everything that a differential must
    /// match is in the readable headers of its base, so only a key or a signature distinguishes a
    /// genuine one from a forged one.
    pub fn admits(&self, next: &Self) -> bool {
        let is_signed = self.signed_by.is_empty()
            || !next.signed_by.is_empty()
                && next
                    .signed_by
                    .iter()
                    .all(|key| self.signed_by.contains(key));
        next.encryption >= self.encryption && is_signed
    }
}

impl From<Sealing> for Protection {
    fn from(encryption: Sealing) -> Self {
        Self {
            encryption,
            ..Self::default()
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.encryption {
            Sealing::None => "not encrypted",
            Sealing::Certificate => "encrypted for a certificate",
            Sealing::Passphrase => "encrypted for a passphrase",
        })?;
        match self.signed_by.is_empty() {
            true => Ok(()),
            false => write!(f, ", signed with the key {}", self.signed_by.join(" or ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_less_protected_follows() {
        let all = [Sealing::None, Sealing::Certificate, Sealing::Passphrase];
        for (place, base) in all.into_iter().enumerate() {
            for (other, next) in all.into_iter().enumerate() {
                let (base, next) = (Protection::from(base), Protection::from(next));
                assert_eq!(base.admits(&next), other >= place, "{next} upon {base}");
            }
        }
    }

    #[test]
    fn upon_what_was_signed_follows_only_what_one_of_the_same_signed() {
        let by = |keys: &[&str]| Protection {
            signed_by: keys.iter().map(|key| (*key).to_owned()).collect(),
            ..Protection::default()
        };
        assert!(by(&[]).admits(&by(&["a"])) && by(&["a"]).admits(&by(&["a"])));
        assert!(by(&["a", "b"]).admits(&by(&["b"])));
        assert!(!by(&["a"]).admits(&by(&[])));
        assert!(!by(&["a"]).admits(&by(&["b"])) && !by(&["a"]).admits(&by(&["a", "b"])));
        assert_eq!(
            by(&["a", "b"]).to_string(),
            "not encrypted, signed with the key a or b"
        );
    }
}
