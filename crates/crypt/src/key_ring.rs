//! The keys available for reading, and what they have opened.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use zeroize::Zeroizing;

use crate::certificate::{Identity, PrivateKey};
use crate::passphrase::Passphrase;
use crate::set_key::SECRET_BYTES;

/// Keys available for reading.
#[derive(Debug, Clone, Default)]
pub struct KeyRing {
    /// Certificates with their private keys.
    pub identities: Vec<Arc<Identity>>,
    /// Private keys whose certificate is not known.
    pub keys: Vec<Arc<PrivateKey>>,
    pub passphrases: Vec<Passphrase>,
    /// Secrets of sets that were opened with these keys.
    pub opened: Opened,
}

/// The secrets of the key blocks that a ring has opened, so that stretching a passphrase costs time only
/// once per set. All clones of a ring share them.
#[derive(Clone, Default)]
pub struct Opened(Arc<Mutex<Vec<OpenedBlock>>>);

/// A hash of a key block with its set, and the set's secret.
type OpenedBlock = ([u8; 32], Zeroizing<[u8; SECRET_BYTES]>);

impl Opened {
    pub(crate) fn secret(&self, block: &[u8; 32]) -> Option<Zeroizing<[u8; SECRET_BYTES]>> {
        let opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = opened.iter().find(|(known, _)| known == block);
        found.map(|(_, secret)| secret.clone())
    }

    pub(crate) fn keep(&self, block: [u8; 32], secret: &Zeroizing<[u8; SECRET_BYTES]>) {
        let mut opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        opened.push((block, secret.clone()));
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opened(..)")
    }
}
