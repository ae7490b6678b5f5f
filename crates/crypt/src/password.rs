//! Passwords of logins: Argon2id, kept as PHC strings (`$argon2id$v=19$m=65536,t=3,p=1$salt$key`).
//!
//! Neighbours: `catalog` stores the string, `instance` decides who may log in.
//!
//! Invariants:
//! 1. At most [`PARALLEL_MAX`] passwords are worked on at a time, whoever asks: 64 MiB each.
//! 2. A check costs the same whether the password is right, wrong, or there is no login.

use std::fmt;
use std::sync::{Condvar, Mutex, PoisonError};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64ct::{Base64Unpadded, Encoding as _};

use crate::passphrase::{Passphrase, SALT_BYTES, Stretch};
use crate::{Error, VaultKey};

/// How many passwords are hashed or checked at once in this process.
pub const PARALLEL_MAX: usize = 2;

/// Argon2 1.3, the only version that is written and read.
const PREFIX: &str = "$argon2id$v=19$";

const KEY_BYTES: usize = 32;

/// What is kept of a password. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Hashes a password with a new salt.
    ///
    /// # Errors
    /// [`Error::Library`] if memory or randomness is short.
    pub fn of(password: &Passphrase) -> Result<Self, Error> {
        let _turn = Turn::wait();
        let stretch = Stretch::new()?;
        let key = stretch.key(password)?;
        Ok(Self(written(&stretch, &key)))
    }

    /// From the text of [`PasswordHash::text`]. Whether it is one shows when a password is checked.
    pub fn from_text(text: String) -> Self {
        Self(text)
    }

    /// The PHC string.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether this is the hash of `password`; false for a text that is no hash, at the same cost.
    ///
    /// # Errors
    /// [`Error::Library`] if memory is short.
    pub fn is_of(&self, password: &Passphrase) -> Result<bool, Error> {
        match read(&self.0) {
            Some((stretch, key)) => {
                let _turn = Turn::wait();
                let found = stretch.key(password)?;
                Ok(verify_slices_are_equal(found.bytes(), &key).is_ok())
            }
            None => Self::spend(password).map(|()| false),
        }
    }

    /// Does the work of a check of which nothing can come: nobody learns from the time which logins exist.
    ///
    /// # Errors
    /// [`Error::Library`] if memory or randomness is short.
    pub fn spend(password: &Passphrase) -> Result<(), Error> {
        let _turn = Turn::wait();
        Stretch::new()?.key(password).map(drop)
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

fn written(stretch: &Stretch, key: &VaultKey) -> String {
    let (memory, passes, lanes) = (stretch.memory_kib, stretch.passes, stretch.lanes);
    let salt = Base64Unpadded::encode_string(&stretch.salt);
    let key = Base64Unpadded::encode_string(key.bytes());
    format!("{PREFIX}m={memory},t={passes},p={lanes}${salt}${key}")
}

/// Parameters and key; `None` if the text is no hash, or one that costs too little or too much.
fn read(text: &str) -> Option<(Stretch, [u8; KEY_BYTES])> {
    let mut parts = text.strip_prefix(PREFIX)?.split('$');
    let (costs, salt, key) = (parts.next()?, parts.next()?, parts.next()?);
    let mut costs = costs.split(',');
    let mut cost = |name: &str| costs.next()?.strip_prefix(name)?.parse::<u32>().ok();
    let mut stretch = Stretch {
        memory_kib: cost("m=")?,
        passes: cost("t=")?,
        lanes: cost("p=")?,
        salt: [0; SALT_BYTES],
    };
    let is_whole = parts.next().is_none() && costs.next().is_none() && stretch.is_bounded();
    let mut bytes = [0; KEY_BYTES];
    let filled = Base64Unpadded::decode(salt, &mut stretch.salt).ok()?.len() == SALT_BYTES
        && Base64Unpadded::decode(key, &mut bytes).ok()?.len() == KEY_BYTES;
    (is_whole && filled).then_some((stretch, bytes))
}

/// How many are at work, and who waits for a turn.
static WORKING: Mutex<usize> = Mutex::new(0);
static FREE: Condvar = Condvar::new();

/// Permission to use the memory of one password, returned when dropped.
struct Turn;

impl Turn {
    fn wait() -> Self {
        let working = WORKING.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |working: &mut usize| *working >= PARALLEL_MAX;
        let mut working = FREE
            .wait_while(working, full)
            .unwrap_or_else(PoisonError::into_inner);
        *working += 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut working = WORKING.lock().unwrap_or_else(PoisonError::into_inner);
        *working = working.saturating_sub(1);
        FREE.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(text: &str) -> Passphrase {
        Passphrase::new(text.to_owned())
    }

    #[test]
    fn a_password_is_recognised_by_its_hash_and_no_other() {
        let hash = PasswordHash::of(&password("correct horse")).unwrap();
        assert!(hash.text().starts_with("$argon2id$v=19$m=65536,t=3,p=1$"));
        let again = PasswordHash::from_text(hash.text().to_owned());
        assert!(again.is_of(&password("correct horse")).unwrap());
        assert!(!again.is_of(&password("correct horsf")).unwrap());
        assert_ne!(
            PasswordHash::of(&password("correct horse")).unwrap(),
            hash,
            "the salt is new"
        );
        assert_eq!(format!("{hash:?}"), "PasswordHash(..)");
    }

    #[test]
    fn a_text_that_is_no_hash_or_a_cheap_or_costly_one_opens_for_nobody() {
        let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let salt = "AAAAAAAAAAAAAAAAAAAAAA";
        assert!(read(&format!("{PREFIX}m=65536,t=3,p=1${salt}${key}")).is_some());
        for text in [
            String::new(),
            format!("{PREFIX}m=8,t=1,p=1${salt}${key}"),
            format!("{PREFIX}m=4194304,t=3,p=1${salt}${key}"),
            format!("{PREFIX}m=65536,t=3,p=1${salt}$"),
            format!("{PREFIX}m=65536,t=3,p=1$AAAA${key}"),
            format!("{PREFIX}m=65536,t=3,p=1${salt}${key}${key}"),
            format!("$argon2i$v=19$m=65536,t=3,p=1${salt}${key}"),
        ] {
            assert!(read(&text).is_none(), "{text}");
        }
        let empty = PasswordHash::from_text(String::new());
        assert!(!empty.is_of(&password("")).unwrap());
    }

    #[test]
    fn no_more_than_two_are_worked_on_at_a_time() {
        let (first, second) = (Turn::wait(), Turn::wait());
        let third = std::thread::spawn(Turn::wait);
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!third.is_finished());
        drop(first);
        drop(third.join().unwrap());
        drop(second);
    }
}
