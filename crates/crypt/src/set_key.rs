//! The key of one backup set.
//!
//! From 32 random bytes and the set's GUID, HKDF-SHA256 derives three keys: one for the chunks (AES in
//! Galois/counter mode), one that hides checksums and digests in chunk headers (BLAKE3, keyed), and one
//! that authenticates the configuration (HMAC-SHA256).

use std::fmt;

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::{hkdf, hmac, rand};
use zeroize::Zeroizing;

use crate::Error;

/// Bytes of the tag that authenticates a chunk.
pub const TAG_BYTES: usize = 16;

pub(crate) const SECRET_BYTES: usize = 32;

/// How chunks are encrypted. The numbers are stored on media and never change.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cipher {
    /// AES-128-GCM.
    Aes128 = 1,
    /// AES-192-GCM.
    Aes192 = 2,
    /// AES-256-GCM.
    Aes256 = 3,
}

impl Cipher {
    pub const ALL: [Self; 3] = [Self::Aes128, Self::Aes192, Self::Aes256];

    /// The algorithm with a number found on media.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|known| *known as u8 == id)
    }

    /// The name in `KeyAlgorithm` of result sets, as SQL Server writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes128 => "aes_128",
            Self::Aes192 => "aes_192",
            Self::Aes256 => "aes_256",
        }
    }

    fn aead(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes128 => &aead::AES_128_GCM,
            Self::Aes192 => &aead::AES_192_GCM,
            Self::Aes256 => &aead::AES_256_GCM,
        }
    }
}

/// The key of one backup set; all threads share it.
pub struct SetKey {
    algorithm: Cipher,
    set_guid: [u8; 16],
    secret: Zeroizing<[u8; SECRET_BYTES]>,
    chunks: LessSafeKey,
    mask: Zeroizing<[u8; 32]>,
    configuration: hmac::Key,
}

impl SetKey {
    /// A new key for the set with this GUID.
    ///
    /// # Errors
    /// [`Error::Library`] if no randomness is available.
    pub fn generate(algorithm: Cipher, set_guid: [u8; 16]) -> Result<Self, Error> {
        let mut secret = Zeroizing::new([0; SECRET_BYTES]);
        rand::fill(secret.as_mut_slice()).map_err(|_| Error::Library {
            doing: "making a key",
        })?;
        Self::derive(algorithm, set_guid, secret)
    }

    pub(crate) fn derive(
        algorithm: Cipher,
        set_guid: [u8; 16],
        secret: Zeroizing<[u8; SECRET_BYTES]>,
    ) -> Result<Self, Error> {
        let failed = |_| Error::Library {
            doing: "deriving keys",
        };
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, &set_guid).extract(secret.as_slice());
        let expand = |purpose: &[u8], into: &mut [u8]| {
            let purpose = [purpose];
            let key = root.expand(&purpose, Length(into.len()))?;
            key.fill(into)
        };
        let mut chunks = Zeroizing::new(vec![0; algorithm.aead().key_len()]);
        let mut mask = Zeroizing::new([0; 32]);
        let mut configuration = Zeroizing::new([0; 32]);
        expand(b"windlass chunks 1", &mut chunks).map_err(failed)?;
        expand(b"windlass mask 1", mask.as_mut_slice()).map_err(failed)?;
        expand(b"windlass configuration 1", configuration.as_mut_slice()).map_err(failed)?;
        let unbound = UnboundKey::new(algorithm.aead(), &chunks).map_err(failed)?;
        Ok(Self {
            algorithm,
            set_guid,
            secret,
            chunks: LessSafeKey::new(unbound),
            mask,
            configuration: hmac::Key::new(hmac::HMAC_SHA256, configuration.as_slice()),
        })
    }

    pub fn algorithm(&self) -> Cipher {
        self.algorithm
    }

    /// The set to which it belongs.
    pub fn set_guid(&self) -> [u8; 16] {
        self.set_guid
    }

    pub(crate) fn secret(&self) -> &[u8; SECRET_BYTES] {
        &self.secret
    }

    /// Encrypts a chunk's payload in place; its tag also covers `header`.
    ///
    /// The caller never seals two payloads under one `ordinal`.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn seal(
        &self,
        ordinal: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<[u8; TAG_BYTES], Error> {
        let failed = || Error::Library {
            doing: "encrypting a chunk",
        };
        let tag = self
            .chunks
            .seal_in_place_separate_tag(nonce(ordinal), Aad::from(header), payload)
            .map_err(|_| failed())?;
        tag.as_ref().try_into().map_err(|_| failed())
    }

    /// Decrypts a chunk's payload in place.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if payload, header or ordinal are not what was sealed; the payload is
    /// then undefined.
    pub fn open(
        &self,
        ordinal: u64,
        header: &[u8],
        tag: &[u8; TAG_BYTES],
        payload: &mut [u8],
    ) -> Result<(), Error> {
        self.chunks
            .open_in_place_separate_tag(nonce(ordinal), Aad::from(header), tag, payload)
            .map(|_| ())
            .map_err(|_| Error::Unauthentic)
    }

    /// Masks or unmasks bytes of a chunk's header; the operation is its own inverse.
    ///
    /// Each chunk has one stream of mask bytes, so everything of one chunk must go into one call.
    pub fn mask(&self, ordinal: u64, bytes: &mut [u8]) {
        let mut stream = blake3::Hasher::new_keyed(&self.mask)
            .update(&ordinal.to_le_bytes())
            .finalize_xof();
        let mut piece = [0; 64];
        for bytes in bytes.chunks_mut(piece.len()) {
            stream.fill(&mut piece);
            for (byte, mask) in bytes.iter_mut().zip(piece) {
                *byte ^= mask;
            }
        }
    }

    /// Authenticates a configuration.
    pub fn authenticate(&self, configuration: &[u8]) -> Vec<u8> {
        hmac::sign(&self.configuration, configuration)
            .as_ref()
            .to_vec()
    }

    /// Verifies the authentication of a configuration, in constant time.
    ///
    /// # Errors
    /// [`Error::Unauthentic`].
    pub fn check(&self, configuration: &[u8], found: &[u8]) -> Result<(), Error> {
        hmac::verify(&self.configuration, configuration, found).map_err(|_| Error::Unauthentic)
    }
}

impl fmt::Debug for SetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetKey")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

fn nonce(ordinal: u64) -> Nonce {
    let mut bytes = [0; aead::NONCE_LEN];
    bytes[4..].copy_from_slice(&ordinal.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// An output length for the key derivation.
pub(crate) struct Length(pub(crate) usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_opens_only_where_it_was_sealed() {
        for algorithm in Cipher::ALL {
            let key = SetKey::generate(algorithm, [7; 16]).unwrap();
            let other = SetKey::generate(algorithm, [7; 16]).unwrap();
            let mut payload = b"pages of a database".to_vec();
            let tag = key.seal(5, b"header", &mut payload).unwrap();
            assert_ne!(payload, b"pages of a database");
            let open = |key: &SetKey, ordinal, header: &[u8], flip: usize| {
                let mut payload = payload.clone();
                payload[flip / 8] ^= u8::from(!flip.is_multiple_of(8)) << (flip % 8);
                key.open(ordinal, header, &tag, &mut payload)
                    .map(|()| payload)
            };
            assert_eq!(open(&key, 5, b"header", 0).unwrap(), b"pages of a database");
            assert_eq!(open(&key, 6, b"header", 0), Err(Error::Unauthentic));
            assert_eq!(open(&key, 5, b"headex", 0), Err(Error::Unauthentic));
            assert_eq!(open(&key, 5, b"header", 9), Err(Error::Unauthentic));
            assert_eq!(open(&other, 5, b"header", 0), Err(Error::Unauthentic));
        }
    }

    #[test]
    fn masks_differ_between_chunks_and_undo_themselves() {
        let key = SetKey::generate(Cipher::Aes256, [7; 16]).unwrap();
        let (mut first, mut second) = (vec![0; 200], vec![0; 200]);
        key.mask(1, &mut first);
        key.mask(2, &mut second);
        assert_ne!(first, second);
        key.mask(1, &mut first);
        assert_eq!(first, vec![0; 200]);
    }

    #[test]
    fn nothing_secret_is_shown() {
        let key = SetKey::generate(Cipher::Aes128, [7; 16]).unwrap();
        assert_eq!(format!("{key:?}"), "SetKey { algorithm: Aes128, .. }");
    }
}
