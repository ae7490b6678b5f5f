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

const SALT_BYTES: usize = 16;

/// A passphrase; wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase(Zeroizing<String>);

impl Passphrase {
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The first line of a file, without its line end.
    ///
    /// # Errors
    /// What is wrong with it: what nobody can have meant as a passphrase is refused, because whoever
    /// finds out later has lost the backup.
    pub fn of_file(bytes: Vec<u8>) -> Result<Self, &'static str> {
        let bytes = Zeroizing::new(bytes);
        let text = std::str::from_utf8(&bytes).map_err(|_| "it is not UTF-8")?;
        let line = text.lines().next().unwrap_or_default();
        if line.trim().is_empty() {
            return Err("its first line is empty");
        }
        if line.contains('\0') {
            return Err("its first line contains bytes of zero, so it is no text");
        }
        Ok(Self(Zeroizing::new(line.to_owned())))
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

/// Salt and cost parameters that turn a passphrase into a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    salt: [u8; SALT_BYTES],
    memory_kib: u32,
    passes: u32,
    lanes: u32,
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
        let is_bounded = (MEMORY_KIB_MIN..=MEMORY_KIB_MAX).contains(&stretch.memory_kib)
            && (1..=PASSES_MAX).contains(&stretch.passes)
            && (1..=LANES_MAX).contains(&stretch.lanes);
        is_bounded.then_some(stretch)
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
