//! Keys from passphrases: Argon2id, which costs an attacker memory for every guess.

use std::fmt;

use argon2::{Argon2, Params, Version};
use aws_lc_rs::rand;
use windlass_base::bytes::Reader;
use zeroize::Zeroizing;

use crate::Error;
use crate::vault::VaultKey;

/// The cost of a new key: 64 MiB, three passes; about a tenth of a second.
const MEMORY_KIB: u32 = 64 << 10;
const PASSES: u32 = 3;
const LANES: u32 = 1;

/// Limits for parameters from media: a hostile set can neither exhaust memory nor make guessing
/// cheap.
const MEMORY_KIB_MIN: u32 = 8 << 10;
const MEMORY_KIB_MAX: u32 = 256 << 10;
const PASSES_MAX: u32 = 16;
const LANES_MAX: u32 = 16;

pub(crate) const SALT_BYTES: usize = 16;

/// A passphrase; wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase(Zeroizing<String>);

impl Passphrase {
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The first line of a file, without its line end, and without the byte order mark that some editors
    /// put before UTF-8.
    ///
    /// # Errors
    /// If the file is not text, or that line is empty or has control characters: then it is not the file that
    /// was meant, and nobody could type the passphrase again.
    pub fn from_file(bytes: Vec<u8>) -> Result<Self, PassphraseError> {
        let bytes = Zeroizing::new(bytes);
        if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
            return Err(PassphraseError::Utf16);
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| PassphraseError::NotText)?;
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let line = text.lines().next().unwrap_or_default();
        if line.is_empty() {
            return Err(PassphraseError::Empty);
        }
        if line.chars().any(|one| one.is_control() && one != '\t') {
            return Err(PassphraseError::Control);
        }
        Ok(Self::new(line.to_owned()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

/// Why a file has no passphrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PassphraseError {
    #[error("it is not UTF-8")]
    NotText,
    #[error("it is UTF-16; save it as UTF-8")]
    Utf16,
    #[error("its first line is empty")]
    Empty,
    #[error("its first line has control characters")]
    Control,
}

/// Salt and cost parameters that turn a passphrase into a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) salt: [u8; SALT_BYTES],
    pub(crate) memory_kib: u32,
    pub(crate) passes: u32,
    pub(crate) lanes: u32,
}

impl Stretch {
    pub(crate) fn new() -> Result<Self, Error> {
        let mut salt = [0; SALT_BYTES];
        rand::fill(&mut salt).map_err(|_| Error::Library {
            doing: "making a salt",
        })?;
        Ok(Self {
            salt,
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            lanes: LANES,
        })
    }

    pub(crate) fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.salt);
        for number in [self.memory_kib, self.passes, self.lanes] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    pub(crate) fn load(reader: &mut Reader<'_>) -> Option<Self> {
        let stretch = Self {
            salt: reader.array()?,
            memory_kib: u32::from_le_bytes(reader.array()?),
            passes: u32::from_le_bytes(reader.array()?),
            lanes: u32::from_le_bytes(reader.array()?),
        };
        stretch.is_bounded().then_some(stretch)
    }

    pub(crate) fn is_bounded(&self) -> bool {
        (MEMORY_KIB_MIN..=MEMORY_KIB_MAX).contains(&self.memory_kib)
            && (1..=PASSES_MAX).contains(&self.passes)
            && (1..=LANES_MAX).contains(&self.lanes)
    }

    /// The cost, in KiB times passes.
    pub(crate) fn cost(&self) -> u64 {
        u64::from(self.memory_kib) * u64::from(self.passes)
    }

    pub(crate) fn key(&self, passphrase: &Passphrase) -> Result<VaultKey, Error> {
        let failed = |_| Error::Library {
            doing: "deriving a key from a passphrase",
        };
        let params =
            Params::new(self.memory_kib, self.passes, self.lanes, Some(32)).map_err(failed)?;
        let argon2 = Argon2::new(argon2::Algorithm::Argon2id, Version::V0x13, params);
        let mut key = Zeroizing::new([0; 32]);
        argon2
            .hash_password_into(passphrase.text().as_bytes(), &self.salt, key.as_mut_slice())
            .map_err(failed)?;
        Ok(VaultKey::from_bytes(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_line_of_text_is_no_passphrase() {
        let read = |bytes: &[u8]| Passphrase::from_file(bytes.to_vec());
        assert_eq!(read(b"a b\r\nc"), Ok(Passphrase::new("a b".to_owned())));
        assert_eq!(read("ä€".as_bytes()), Ok(Passphrase::new("ä€".to_owned())));
        let marked = "\u{FEFF}a b\r\n".as_bytes();
        assert_eq!(read(marked), Ok(Passphrase::new("a b".to_owned())));
        for (bytes, defect) in [
            (&b""[..], PassphraseError::Empty),
            (b"\nsecret", PassphraseError::Empty),
            (b"\0\0\0\0", PassphraseError::Control),
            (b"a\x1Bb", PassphraseError::Control),
            (b"\xFFa", PassphraseError::NotText),
            (b"\xFF\xFEa\0", PassphraseError::Utf16),
            (b"\xFE\xFF\0a", PassphraseError::Utf16),
            (b"\xEF\xBB\xBF", PassphraseError::Empty),
        ] {
            assert_eq!(read(bytes), Err(defect));
        }
    }
}
