//! A set's key, wrapped for its recipients, as stored in the set's headers.
//!
//! `u8` version (1), `u8` algorithm, `u16` number of recipients, then for each `u8` kind, `u16` length, body.
//! Kind 1, certificate: SHA-1 of its DER form (20), RSA-OAEP-SHA256 ciphertext. Kind 2, passphrase: salt
//! (16), `u32` memory in KiB, `u32` passes, `u32` lanes, commitment (32), sealed key. Both are bound to set and
//! algorithm.
//!
//! AES-GCM is not key-committing: a crafted ciphertext can open with many passphrases, and an
//! attacker who sees which of them succeeds can test many guesses at once. So the output of
//! Argon2id is expanded (HKDF-SHA256) to the sealing key and a commitment, which is compared before
//! anything is opened.

use std::fmt;

use aws_lc_rs::{constant_time, hkdf};
use windlass_base::bytes::Reader;
use zeroize::Zeroizing;

use crate::certificate::Certificate;
use crate::key_ring::KeyRing;
use crate::passphrase::{Passphrase, Stretch};
use crate::set_key::{Length, SECRET_BYTES};
use crate::vault::VaultKey;
use crate::{Cipher, Error, SetKey};

/// Maximum number of recipients of a set.
pub const RECIPIENTS_MAX: usize = 64;

/// Maximum number of passphrases among them: each costs time and memory to try.
pub const PASSPHRASES_MAX: usize = 4;

/// Maximum total cost of the passphrases of a block: 1 GiB times passes.
const COST_MAX: u64 = 1 << 20;

/// Maximum length of the stored form.
const BYTES_MAX: usize = u16::MAX as usize;

const COMMITMENT_BYTES: usize = 32;

const VERSION: u8 = 1;
const KIND_CERTIFICATE: u8 = 1;
const KIND_PASSPHRASE: u8 = 2;

/// A recipient of a set's key.
#[derive(Debug, Clone)]
pub enum Recipient {
    /// The owner of a certificate's private key.
    Certificate(Certificate),
    /// Anyone who knows a passphrase.
    Passphrase(Passphrase),
}

/// What the key block shows of a recipient without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipientKind {
    /// A certificate with this thumbprint.
    Certificate([u8; 20]),
    Passphrase,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Wrapped {
    Certificate {
        thumbprint: [u8; 20],
        key: Vec<u8>,
    },
    Passphrase {
        stretch: Stretch,
        commitment: [u8; COMMITMENT_BYTES],
        key: Vec<u8>,
    },
}

/// A set's key, wrapped for its recipients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBlock {
    algorithm: Cipher,
    recipients: Vec<Wrapped>,
}

impl KeyBlock {
    /// Whether it wraps the key for all recipients of `other`, in the same form.
    pub(crate) fn has_recipients_of(&self, other: &Self) -> bool {
        let mut wrapped = other.recipients.iter();
        wrapped.all(|wrapped| self.recipients.contains(wrapped))
    }

    /// Wraps a key for recipients.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if there are none or too many; those of the library.
    pub fn wrap(key: &SetKey, recipients: &[Recipient]) -> Result<Self, Error> {
        let none = Self {
            algorithm: key.algorithm(),
            recipients: Vec::new(),
        };
        none.with(key, recipients)
    }

    /// Returns this block with additional recipients. One with the same certificate replaces the earlier
    /// one.
    ///
    /// # Errors
    /// As [`KeyBlock::wrap`].
    pub fn with(&self, key: &SetKey, recipients: &[Recipient]) -> Result<Self, Error> {
        let context = context(key.algorithm(), key.set_guid());
        let mut block = self.clone();
        for recipient in recipients {
            let wrapped = wrap(recipient, key, &context)?;
            if let Recipient::Certificate(certificate) = recipient {
                let again = RecipientKind::Certificate(certificate.thumbprint());
                block.recipients.retain(|earlier| earlier.kind() != again);
            }
            block.recipients.push(wrapped);
        }
        block.check_bounds()?;
        Ok(block)
    }

    fn check_bounds(&self) -> Result<(), Error> {
        let refused = |reason| {
            Err(Error::Unreadable {
                what: "recipients",
                reason,
            })
        };
        let count = self.recipients.len();
        if !(1..=RECIPIENTS_MAX).contains(&count) {
            return refused(format!("{count} given, 1 to {RECIPIENTS_MAX} are needed"));
        }
        let stretches: Vec<_> = self.stretches().collect();
        if stretches.len() > PASSPHRASES_MAX {
            let found = stretches.len();
            return refused(format!(
                "{found} are passphrases; at most {PASSPHRASES_MAX} are allowed"
            ));
        }
        if stretches.iter().map(|stretch| stretch.cost()).sum::<u64>() > COST_MAX {
            return refused("deriving keys from their passphrases is too expensive".to_owned());
        }
        let bytes = self.to_stored().len();
        if bytes > BYTES_MAX {
            return refused(format!(
                "their keys take {bytes} bytes, at most {BYTES_MAX} can be stored; give fewer, or certificates \
                 with smaller keys"
            ));
        }
        Ok(())
    }

    fn stretches(&self) -> impl Iterator<Item = &Stretch> {
        self.recipients.iter().filter_map(|wrapped| match wrapped {
            Wrapped::Passphrase { stretch, .. } => Some(stretch),
            Wrapped::Certificate { .. } => None,
        })
    }

    pub fn algorithm(&self) -> Cipher {
        self.algorithm
    }

    pub fn recipients(&self) -> Vec<RecipientKind> {
        self.recipients.iter().map(Wrapped::kind).collect()
    }

    /// Unwraps the set's key with any given key that fits.
    ///
    /// # Errors
    /// [`Error::KeyMissing`] if none belongs to a recipient, [`Error::WrongKey`] if one should fit
    /// and does not.
    pub fn unlock(&self, set_guid: [u8; 16], ring: &KeyRing) -> Result<SetKey, Error> {
        let block = self.identity(set_guid);
        if let Some(secret) = ring.opened.secret(&block) {
            return SetKey::derive(self.algorithm, set_guid, secret);
        }
        let context = context(self.algorithm, set_guid);
        let mut failed = None;
        for wrapped in &self.recipients {
            match wrapped.open(ring, &context) {
                Ok(Some(secret)) => {
                    ring.opened.keep(block, &secret);
                    return SetKey::derive(self.algorithm, set_guid, secret);
                }
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| Error::KeyMissing {
            recipients: self.to_string(),
        }))
    }

    /// A hash that identifies this block of this set.
    fn identity(&self, set_guid: [u8; 16]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&set_guid);
        *hasher.update(&self.to_stored()).finalize().as_bytes()
    }

    /// The stored form.
    pub fn to_stored(&self) -> Vec<u8> {
        let mut out = vec![VERSION, self.algorithm as u8];
        out.extend_from_slice(&(self.recipients.len() as u16).to_le_bytes());
        for wrapped in &self.recipients {
            let mut body = Vec::new();
            let kind = match wrapped {
                Wrapped::Certificate { thumbprint, key } => {
                    body.extend_from_slice(thumbprint);
                    body.extend_from_slice(key);
                    KIND_CERTIFICATE
                }
                Wrapped::Passphrase {
                    stretch,
                    commitment,
                    key,
                } => {
                    stretch.store(&mut body);
                    body.extend_from_slice(commitment);
                    body.extend_from_slice(key);
                    KIND_PASSPHRASE
                }
            };
            out.push(kind);
            out.extend_from_slice(&(body.len() as u16).to_le_bytes());
            out.extend_from_slice(&body);
        }
        out
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn from_stored(bytes: &[u8]) -> Result<Self, Error> {
        Self::parse(&mut Reader::new(bytes)).ok_or_else(|| Error::Unreadable {
            what: "key block",
            reason: format!("its {} bytes are of an unknown kind", bytes.len()),
        })
    }

    fn parse(reader: &mut Reader<'_>) -> Option<Self> {
        let [version, algorithm] = reader.array()?;
        let algorithm = Cipher::from_id(algorithm).filter(|_| version == VERSION)?;
        let count = usize::from(u16::from_le_bytes(reader.array()?));
        if !(1..=RECIPIENTS_MAX).contains(&count) {
            return None;
        }
        let mut recipients = Vec::with_capacity(count);
        for _ in 0..count {
            let [kind] = reader.array()?;
            let length = u16::from_le_bytes(reader.array()?);
            let mut body = Reader::new(reader.take(length.into())?);
            recipients.push(match kind {
                KIND_CERTIFICATE => Wrapped::Certificate {
                    thumbprint: body.array()?,
                    key: body.rest().to_vec(),
                },
                KIND_PASSPHRASE => Wrapped::Passphrase {
                    stretch: Stretch::load(&mut body)?,
                    commitment: body.array()?,
                    key: body.rest().to_vec(),
                },
                _ => return None,
            });
        }
        let block = Self {
            algorithm,
            recipients,
        };
        (reader.rest().is_empty() && block.check_bounds().is_ok()).then_some(block)
    }
}

/// Lists the recipients, for messages.
impl fmt::Display for KeyBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, recipient) in self.recipients().iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            match recipient {
                RecipientKind::Certificate(thumbprint) => {
                    write!(f, "{separator}0x")?;
                    thumbprint
                        .iter()
                        .try_for_each(|byte| write!(f, "{byte:02X}"))?;
                }
                RecipientKind::Passphrase => write!(f, "{separator}a passphrase")?,
            }
        }
        Ok(())
    }
}

fn wrap(recipient: &Recipient, key: &SetKey, context: &[u8]) -> Result<Wrapped, Error> {
    Ok(match recipient {
        Recipient::Certificate(certificate) => Wrapped::Certificate {
            thumbprint: certificate.thumbprint(),
            key: certificate.wrap(key.secret(), context)?,
        },
        Recipient::Passphrase(passphrase) => {
            let stretch = Stretch::new()?;
            let (sealing, commitment) = committed(&stretch.key(passphrase)?, context)?;
            Wrapped::Passphrase {
                stretch,
                commitment,
                key: sealing.seal(context, key.secret())?,
            }
        }
    })
}

/// Derives the key that seals with a passphrase, and the commitment to it.
fn committed(
    stretched: &VaultKey,
    context: &[u8],
) -> Result<(VaultKey, [u8; COMMITMENT_BYTES]), Error> {
    let failed = |_| Error::Library {
        doing: "deriving a key from a passphrase",
    };
    let root = hkdf::Salt::new(hkdf::HKDF_SHA256, context).extract(stretched.bytes());
    let expand = |purpose: &[u8], into: &mut [u8]| {
        let purpose = [purpose];
        root.expand(&purpose, Length(into.len()))?.fill(into)
    };
    let mut sealing = Zeroizing::new([0; 32]);
    let mut commitment = [0; COMMITMENT_BYTES];
    expand(b"windlass passphrase 1", sealing.as_mut_slice()).map_err(failed)?;
    expand(b"windlass passphrase commitment 1", &mut commitment).map_err(failed)?;
    Ok((VaultKey::from_bytes(sealing), commitment))
}

impl Wrapped {
    fn kind(&self) -> RecipientKind {
        match self {
            Self::Certificate { thumbprint, .. } => RecipientKind::Certificate(*thumbprint),
            Self::Passphrase { .. } => RecipientKind::Passphrase,
        }
    }

    /// Opens the secret if a given key belongs to this recipient.
    fn open(
        &self,
        ring: &KeyRing,
        context: &[u8],
    ) -> Result<Option<Zeroizing<[u8; SECRET_BYTES]>>, Error> {
        match self {
            Self::Certificate { thumbprint, key } => {
                let known = ring
                    .identities
                    .iter()
                    .find(|identity| identity.certificate().thumbprint() == *thumbprint);
                if let Some(identity) = known {
                    let opened = identity.key().unwrap(key, context);
                    return opened.map(Some).ok_or(Error::WrongKey {
                        what: "private key",
                    });
                }
                Ok(ring
                    .keys
                    .iter()
                    .find_map(|candidate| candidate.unwrap(key, context)))
            }
            Self::Passphrase {
                stretch,
                commitment,
                key,
            } => {
                for passphrase in &ring.passphrases {
                    let (sealing, expected) = committed(&stretch.key(passphrase)?, context)?;
                    if constant_time::verify_slices_are_equal(&expected, commitment).is_ok()
                        && let Ok(opened) = sealing.open(context, key)
                        && let Ok(secret) = <[u8; SECRET_BYTES]>::try_from(opened.as_slice())
                    {
                        return Ok(Some(Zeroizing::new(secret)));
                    }
                }
                match ring.passphrases.is_empty() {
                    true => Ok(None),
                    false => Err(Error::WrongKey { what: "passphrase" }),
                }
            }
        }
    }
}

/// The context to which a wrapped key is bound.
fn context(algorithm: Cipher, set_guid: [u8; 16]) -> Vec<u8> {
    let mut context = b"windlass set key 1".to_vec();
    context.push(algorithm as u8);
    context.extend_from_slice(&set_guid);
    context
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Identity;

    fn passphrase(text: &str) -> Passphrase {
        Passphrase::new(text.to_owned())
    }

    fn ring(text: &str) -> KeyRing {
        KeyRing {
            passphrases: vec![passphrase(text)],
            ..KeyRing::default()
        }
    }

    #[test]
    fn every_recipient_gets_the_same_key_and_nobody_else() {
        let identity = Arc::new(Identity::create("Backup", 365).unwrap());
        let key = SetKey::generate(Cipher::Aes256, [3; 16]).unwrap();
        let recipients = [
            Recipient::Certificate(identity.certificate().clone()),
            Recipient::Passphrase(passphrase("correct")),
        ];
        let block = KeyBlock::wrap(&key, &recipients).unwrap();
        let block = KeyBlock::from_stored(&block.to_stored()).unwrap();
        let by_certificate = KeyRing {
            identities: vec![Arc::clone(&identity)],
            ..KeyRing::default()
        };
        for ring in [by_certificate, ring("correct")] {
            assert_eq!(block.unlock([3; 16], &ring).unwrap().secret(), key.secret());
            assert!(block.unlock([4; 16], &ring).is_err(), "another set");
        }
        assert_eq!(
            block.unlock([3; 16], &ring("wrong")).unwrap_err(),
            Error::WrongKey { what: "passphrase" }
        );
        // Another ring must not use what this one opened, and it opens no other set.
        let once = ring("correct");
        block.unlock([3; 16], &once).unwrap();
        assert_eq!(block.unlock([3; 16], &once).unwrap().secret(), key.secret());
        assert!(block.unlock([4; 16], &once).is_err(), "another set");
        let missing = block.unlock([3; 16], &KeyRing::default()).unwrap_err();
        assert!(missing.to_string().ends_with(", a passphrase"), "{missing}");
    }

    /// As [`KeyBlock::with`], without its limits.
    fn unbounded(count: usize, memory_kib: u32, passes: u32) -> Vec<u8> {
        let mut stored = vec![VERSION, Cipher::Aes256 as u8];
        stored.extend_from_slice(&(count as u16).to_le_bytes());
        for _ in 0..count {
            let mut body = vec![7; 16];
            for number in [memory_kib, passes, 1] {
                body.extend_from_slice(&number.to_le_bytes());
            }
            body.resize(body.len() + COMMITMENT_BYTES + 60, 7);
            stored.push(KIND_PASSPHRASE);
            stored.extend_from_slice(&(body.len() as u16).to_le_bytes());
            stored.extend_from_slice(&body);
        }
        stored
    }

    #[test]
    fn a_passphrase_is_stretched_once_for_a_set() {
        let key = SetKey::generate(Cipher::Aes256, [3; 16]).unwrap();
        let recipient = Recipient::Passphrase(passphrase("correct"));
        let block = KeyBlock::wrap(&key, &[recipient]).unwrap();
        let mut once = ring("correct");
        block.unlock([3; 16], &once).unwrap();
        // Without its passphrase, the ring and its clones still have what they opened.
        once.passphrases.clear();
        let again = block.unlock([3; 16], &once.clone()).unwrap();
        assert_eq!(again.secret(), key.secret());
        assert!(block.unlock([3; 16], &KeyRing::default()).is_err());
        assert_eq!(format!("{:?}", once.opened), "Opened(..)");
    }

    #[test]
    fn what_passphrases_of_a_block_cost_is_bounded() {
        let reads = |count, memory_mib: u32, passes| {
            KeyBlock::from_stored(&unbounded(count, memory_mib << 10, passes)).is_ok()
        };
        assert!(reads(4, 64, 3) && reads(1, 256, 4) && reads(1, 64, 16));
        assert!(!reads(5, 64, 3), "too many");
        assert!(!reads(2, 256, 4) && !reads(4, 64, 5), "too much together");
        assert!(!reads(1, 512, 1), "too much memory");
        assert!(!reads(1, 4, 16), "too cheap to guess");
        assert!(!reads(1, 64, 0), "no pass at all");
    }

    #[test]
    fn a_passphrase_is_refused_by_its_commitment_before_anything_is_opened() {
        let key = SetKey::generate(Cipher::Aes256, [3; 16]).unwrap();
        let mut block = KeyBlock::wrap(&key, &[Recipient::Passphrase(passphrase("p"))]).unwrap();
        assert!(block.unlock([3; 16], &ring("p")).is_ok());
        let Wrapped::Passphrase { commitment, .. } = &mut block.recipients[0] else {
            panic!("a passphrase");
        };
        commitment[31] ^= 1;
        assert_eq!(
            block.unlock([3; 16], &ring("p")).unwrap_err(),
            Error::WrongKey { what: "passphrase" },
            "the sealed key alone would still open"
        );
    }

    #[test]
    fn recipients_whose_keys_overflow_the_stored_length_are_refused() {
        let der = include_bytes!("testdata/rsa8192.der");
        let key = SetKey::generate(Cipher::Aes256, [3; 16]).unwrap();
        // A different signature makes a different certificate; the issuer is not checked.
        let certificates: Vec<_> = (0..RECIPIENTS_MAX as u8)
            .map(|number| {
                let mut der = der.to_vec();
                *der.last_mut().unwrap() = number;
                Recipient::Certificate(Certificate::read(&der).unwrap())
            })
            .collect();
        let error = KeyBlock::wrap(&key, &certificates).unwrap_err();
        assert!(error.to_string().contains("bytes"), "{error}");
        let block = KeyBlock::wrap(&key, &certificates[..60]).unwrap();
        assert_eq!(KeyBlock::from_stored(&block.to_stored()), Ok(block));
    }

    #[test]
    fn further_recipients_join_the_earlier_ones() {
        let identity = Arc::new(Identity::create("Backup", 365).unwrap());
        let certificate = || Recipient::Certificate(identity.certificate().clone());
        let key = SetKey::generate(Cipher::Aes256, [3; 16]).unwrap();
        let block = KeyBlock::wrap(&key, &[certificate()]).unwrap();
        let more = [certificate(), Recipient::Passphrase(passphrase("p"))];
        let block = block.with(&key, &more).unwrap();
        let thumbprint = identity.certificate().thumbprint();
        assert_eq!(
            block.recipients(),
            [
                RecipientKind::Certificate(thumbprint),
                RecipientKind::Passphrase
            ]
        );
        let crowd: Vec<_> = (0..PASSPHRASES_MAX)
            .map(|_| Recipient::Passphrase(passphrase("p")))
            .collect();
        let refused = block.with(&key, &crowd).unwrap_err();
        assert!(refused.to_string().contains("at most 4"), "{refused}");
    }

    #[test]
    fn damaged_key_blocks_are_refused_without_panic() {
        let key = SetKey::generate(Cipher::Aes128, [3; 16]).unwrap();
        let block = KeyBlock::wrap(&key, &[Recipient::Passphrase(passphrase("p"))]).unwrap();
        let stored = block.to_stored();
        for length in 0..stored.len() {
            let cut = KeyBlock::from_stored(&stored[..length]);
            let opens = cut.is_ok_and(|block| block.unlock([3; 16], &ring("p")).is_ok());
            assert!(!opens, "{length} bytes");
        }
    }
}
