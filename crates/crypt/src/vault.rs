//! Seals small secrets with a key: private keys with an instance's master key, the master key with
//! the service key or a password.
//!
//! Sealed form: 12 bytes of nonce, AES-256-GCM ciphertext, the tag. A purpose is authenticated with
//! it, so that one secret cannot replace another.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand;
use windlass_base::bytes::Reader;
use zeroize::Zeroizing;

use crate::passphrase::{Passphrase, Stretch};
use crate::{Error, TAG_BYTES};

const SEALING: Error = Error::Library {
    doing: "encrypting a secret",
};

/// A key that seals other secrets; wiped when dropped.
#[derive(Clone)]
pub struct VaultKey(Zeroizing<[u8; 32]>);

impl VaultKey {
    /// Generates a key.
    ///
    /// # Errors
    /// [`Error::Library`] if no randomness is available.
    pub fn generate() -> Result<Self, Error> {
        let mut bytes = Zeroizing::new([0; 32]);
        rand::fill(bytes.as_mut_slice()).map_err(|_| Error::Library {
            doing: "making a key",
        })?;
        Ok(Self(bytes))
    }

    /// From the bytes of [`VaultKey::bytes`].
    pub fn from_bytes(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }

    /// The bytes to store in a private file, or sealed with another key.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn key(&self) -> Result<LessSafeKey, Error> {
        UnboundKey::new(&AES_256_GCM, self.0.as_slice())
            .map(LessSafeKey::new)
            .map_err(|_| SEALING)
    }

    /// Seals a secret for a purpose.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn seal(&self, purpose: &[u8], secret: &[u8]) -> Result<Vec<u8>, Error> {
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).map_err(|_| SEALING)?;
        let mut sealed = nonce.to_vec();
        let mut body = Zeroizing::new(secret.to_vec());
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .key()?
            .seal_in_place_separate_tag(nonce, Aad::from(purpose), &mut body)
            .map_err(|_| SEALING)?;
        sealed.extend_from_slice(&body);
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// Opens a secret sealed for a purpose.
    ///
    /// # Errors
    /// [`Error::Unauthentic`].
    pub fn open(&self, purpose: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
        let mut reader = Reader::new(sealed);
        let nonce: [u8; NONCE_LEN] = reader.array().ok_or(Error::Unauthentic)?;
        let rest = reader.rest();
        let body_bytes = rest
            .len()
            .checked_sub(TAG_BYTES)
            .ok_or(Error::Unauthentic)?;
        let (body, tag) = rest.split_at(body_bytes);
        let mut body = Zeroizing::new(body.to_vec());
        self.key()?
            .open_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(purpose),
                tag,
                &mut body,
            )
            .map_err(|_| Error::Unauthentic)?;
        Ok(body)
    }

    /// Seals this key with a passphrase: salt, cost parameters, sealed key.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn lock(&self, purpose: &[u8], passphrase: &Passphrase) -> Result<Vec<u8>, Error> {
        let stretch = Stretch::new()?;
        let mut locked = Vec::new();
        stretch.store(&mut locked);
        locked.extend(stretch.key(passphrase)?.seal(purpose, self.bytes())?);
        Ok(locked)
    }

    /// Opens a key that [`VaultKey::lock`] sealed with a passphrase.
    ///
    /// # Errors
    /// [`Error::Password`] if the passphrase is wrong, or the bytes were changed.
    pub fn unlock(purpose: &[u8], passphrase: &Passphrase, locked: &[u8]) -> Result<Self, Error> {
        const WRONG: Error = Error::Password { what: "the key" };
        let mut reader = Reader::new(locked);
        let stretch = Stretch::load(&mut reader).ok_or(WRONG)?;
        let opened = stretch
            .key(passphrase)?
            .open(purpose, reader.rest())
            .map_err(|_| WRONG)?;
        let bytes: [u8; 32] = opened.as_slice().try_into().map_err(|_| WRONG)?;
        Ok(Self(Zeroizing::new(bytes)))
    }
}

impl fmt::Debug for VaultKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VaultKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_opens_for_its_purpose_only() {
        let key = VaultKey::generate().unwrap();
        let sealed = key.seal(b"certificate 1", b"secret").unwrap();
        assert_eq!(
            key.open(b"certificate 1", &sealed).unwrap().as_slice(),
            b"secret"
        );
        assert!(key.open(b"certificate 2", &sealed).is_err());
        assert!(key.open(b"certificate 1", &sealed[..20]).is_err());
    }

    #[test]
    fn a_passphrase_opens_what_it_locked() {
        let key = VaultKey::generate().unwrap();
        let right = Passphrase::new("right".to_owned());
        let locked = key.lock(b"master key", &right).unwrap();
        let opened = VaultKey::unlock(b"master key", &right, &locked).unwrap();
        assert_eq!(opened.bytes(), key.bytes());
        let wrong = Passphrase::new("wrong".to_owned());
        assert!(matches!(
            VaultKey::unlock(b"master key", &wrong, &locked),
            Err(Error::Password { .. })
        ));
    }
}
