//! Signatures that show who made a backup set: Ed25519 (RFC 8032), keys in standard files.
//!
//! A certificate says who can read a set, and is public; a signature says who made it. The private key
//! is PKCS#8 in PEM or DER, not encrypted (backups run unattended); the public key is the
//! `SubjectPublicKeyInfo` that `openssl pkey -pubout` writes. `docs/format/media.md` says what is
//! signed.

use std::fmt;

use aws_lc_rs::digest;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use pkcs8::der::pem::{self, LineEnding};
use zeroize::Zeroizing;

use crate::Error;
use crate::certificate::pem_of;

const SIGNING_KEY: &str = "signing key";
const PUBLIC_KEY: &str = "public key of a signer";

const PRIVATE_LABEL: &str = "PRIVATE KEY";
const PUBLIC_LABEL: &str = "PUBLIC KEY";

/// Prefix of everything that is signed, so that a signature is valid only for a backup set.
const DOMAIN: &[u8] = b"windlass backup set signature 1\0";

const VERSION: u8 = 1;
const KEY_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 64;

/// The DER prefix of the 32 bytes of an Ed25519 key: `SEQUENCE { SEQUENCE { 1.3.101.112 }, BIT STRING
/// }`.
const SPKI_PREFIX: [u8; 12] = [0x30, 42, 0x30, 5, 6, 3, 0x2B, 0x65, 0x70, 3, 33, 0];

/// A private key that signs backups.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    signer: Signer,
}

impl SigningKey {
    /// Generates a key.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn generate() -> Result<Self, Error> {
        let pair = Ed25519KeyPair::generate().map_err(|_| Error::Library {
            doing: "making a signing key",
        })?;
        Self::of(pair)
    }

    /// Reads a key in PKCS#8, PEM or DER.
    ///
    /// # Errors
    /// [`Error::Unreadable`], also for keys that are encrypted or not Ed25519.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let refused = |reason: String| Error::Unreadable {
            what: SIGNING_KEY,
            reason,
        };
        let der = match pem_of(bytes, &[PRIVATE_LABEL]) {
            Some((label, der)) if label == PRIVATE_LABEL => der,
            Some((label, _)) => {
                return Err(refused(format!(
                    "it is a {label}, and an Ed25519 key without a password is needed, in PKCS#8"
                )));
            }
            None => Zeroizing::new(bytes.to_vec()),
        };
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der)
            .map_err(|_| refused("it is not an Ed25519 key in PKCS#8".to_owned()))?;
        Self::of(pair)
    }

    fn of(pair: Ed25519KeyPair) -> Result<Self, Error> {
        let public = pair.public_key().as_ref().try_into();
        let key = public.map_err(|_| Error::Library {
            doing: "taking the public half of a signing key",
        })?;
        Ok(Self {
            pair,
            signer: Signer { key },
        })
    }

    /// The public half of this key.
    pub fn signer(&self) -> Signer {
        self.signer
    }

    /// Signs a set; returns the stored form of the signature.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn sign(&self, set: &[u8]) -> Result<Vec<u8>, Error> {
        let message = message(&self.signer, set);
        let signature = self.pair.try_sign(&message).map_err(|_| Error::Library {
            doing: "signing a backup set",
        })?;
        let mut stored = vec![VERSION];
        stored.extend_from_slice(&self.signer.key);
        stored.extend_from_slice(signature.as_ref());
        Ok(stored)
    }

    /// The key as a file: PKCS#8 in PEM.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn to_pem(&self) -> Result<Zeroizing<String>, Error> {
        const FAILED: Error = Error::Library {
            doing: "writing a signing key",
        };
        let der = self.pair.to_pkcs8v1().map_err(|_| FAILED)?;
        pem::encode_string(PRIVATE_LABEL, LineEnding::LF, der.as_ref())
            .map(Zeroizing::new)
            .map_err(|_| FAILED)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.signer).finish()
    }
}

/// The signer of a backup: the public half of a signing key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signer {
    key: [u8; KEY_BYTES],
}

impl Signer {
    /// Reads a public key, PEM or DER.
    ///
    /// # Errors
    /// [`Error::Unreadable`], also for keys that are not Ed25519.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let refused = |reason: String| Error::Unreadable {
            what: PUBLIC_KEY,
            reason,
        };
        let der = match pem_of(bytes, &[PUBLIC_LABEL]) {
            Some((label, der)) if label == PUBLIC_LABEL => der,
            Some((label, _)) => {
                return Err(refused(format!(
                    "it is a {label}; openssl pkey -pubout takes the public key out of a private one"
                )));
            }
            None => Zeroizing::new(bytes.to_vec()),
        };
        let key = der
            .strip_prefix(&SPKI_PREFIX)
            .and_then(|key| key.try_into().ok())
            .ok_or_else(|| refused("it is not an Ed25519 key in PEM or DER".to_owned()))?;
        Ok(Self { key })
    }

    /// The key as a file: `SubjectPublicKeyInfo` in PEM.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn to_pem(&self) -> Result<String, Error> {
        pem::encode_string(PUBLIC_LABEL, LineEnding::LF, &self.der()).map_err(|_| Error::Library {
            doing: "writing a public key",
        })
    }

    fn der(&self) -> Vec<u8> {
        [&SPKI_PREFIX[..], &self.key].concat()
    }

    /// SHA-256 of the DER form in hexadecimal: `openssl pkey -pubin -in key.pub -outform DER | sha256sum`.
    pub fn fingerprint(&self) -> String {
        use fmt::Write as _;
        let digest = digest::digest(&digest::SHA256, &self.der());
        let mut text = String::with_capacity(2 * digest.as_ref().len());
        for byte in digest.as_ref() {
            // Writing to a String cannot fail.
            let _taken = write!(text, "{byte:02x}");
        }
        text
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signer").field(&self.fingerprint()).finish()
    }
}

/// A signature as stored on media: the claimed signer, and the proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    signer: Signer,
    bytes: [u8; SIGNATURE_BYTES],
}

impl Signature {
    /// Reads the stored form: `u8` version 1, the public key (32), the signature (64).
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn from_stored(stored: &[u8]) -> Result<Self, Error> {
        let read = || {
            let (&version, rest) = stored.split_first()?;
            let (key, bytes) = rest.split_first_chunk::<KEY_BYTES>()?;
            let bytes = bytes.try_into().ok().filter(|_| version == VERSION)?;
            Some(Self {
                signer: Signer { key: *key },
                bytes,
            })
        };
        read().ok_or_else(|| Error::Unreadable {
            what: "signature",
            reason: format!("its {} bytes are not of a kind known here", stored.len()),
        })
    }

    /// The claimed signer; only [`Signature::check`] proves it.
    pub fn signer(&self) -> Signer {
        self.signer
    }

    /// Verifies that its signer signed this set.
    ///
    /// # Errors
    /// [`Error::Unauthentic`].
    pub fn check(&self, set: &[u8]) -> Result<(), Error> {
        UnparsedPublicKey::new(&ED25519, &self.signer.key)
            .verify(&message(&self.signer, set), &self.bytes)
            .map_err(|_| Error::Unauthentic)
    }
}

/// The bytes that are signed. They include the signer, so a signature is valid for no other key.
fn message(signer: &Signer, set: &[u8]) -> Vec<u8> {
    [DOMAIN, &signer.key, set].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_its_set_and_its_key_alone() {
        let (key, other) = (
            SigningKey::generate().unwrap(),
            SigningKey::generate().unwrap(),
        );
        let stored = key.sign(b"a set").unwrap();
        let signature = Signature::from_stored(&stored).unwrap();
        assert_eq!(signature.signer(), key.signer());
        assert_eq!(signature.check(b"a set"), Ok(()));
        assert_eq!(signature.check(b"a sex"), Err(Error::Unauthentic));
        assert_eq!(signature.check(b"a set\0"), Err(Error::Unauthentic));
        let relabelled = Signature {
            signer: other.signer(),
            ..signature
        };
        assert_eq!(relabelled.check(b"a set"), Err(Error::Unauthentic));
        for bit in 0..stored.len() * 8 {
            let mut flipped = stored.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let read = Signature::from_stored(&flipped);
            assert!(
                read.is_err() || read.unwrap().check(b"a set").is_err(),
                "{bit}"
            );
        }
        assert!(Signature::from_stored(&stored[1..]).is_err());
        assert!(Signature::from_stored(&[]).is_err());
    }

    #[test]
    fn keys_go_through_files_and_are_told_apart() {
        let key = SigningKey::generate().unwrap();
        let private = key.to_pem().unwrap();
        let public = key.signer().to_pem().unwrap();
        let read = SigningKey::read(private.as_bytes()).unwrap();
        assert_eq!(read.signer(), key.signer());
        assert_eq!(Signer::read(public.as_bytes()), Ok(key.signer()));
        assert_eq!(Signer::read(&key.signer().der()), Ok(key.signer()));
        // Each file in place of the other, and files of another kind.
        assert!(Signer::read(private.as_bytes()).is_err());
        assert!(SigningKey::read(public.as_bytes()).is_err());
        let rsa = crate::Identity::create("rsa", 1).unwrap();
        assert!(SigningKey::read(rsa.key().pkcs8()).is_err());
        assert!(Signer::read(rsa.certificate().to_pem().unwrap().as_bytes()).is_err());
        assert!(Signer::read(b"").is_err());
        let shown = format!("{key:?}");
        assert!(shown.contains(&key.signer().fingerprint()), "{shown}");
    }

    /// `openssl genpkey -algorithm ed25519`, `openssl pkey -pubout`, and the SHA-256 of its DER form.
    #[test]
    fn keys_that_openssl_made_are_read_and_have_the_fingerprint_that_it_gives_them() {
        let private = include_bytes!("testdata/signing.pem");
        let public = include_bytes!("testdata/signing.pub.pem");
        let key = SigningKey::read(private).unwrap();
        assert_eq!(Signer::read(public), Ok(key.signer()));
        assert_eq!(
            key.signer().fingerprint(),
            include_str!("testdata/signing.sha256").trim()
        );
    }
}
