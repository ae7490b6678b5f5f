//! A set's key, wrapped for its recipients: what lies in the set's headers.
//!
//! `u8` version (1), `u8` algorithm, `u16` number of recipients, then for each `u8` kind, `u16` length, body.
//! Kind 1, certificate: SHA-1 of its DER form (20), RSA-OAEP-SHA256 ciphertext. Kind 2, passphrase: salt
//! (16), `u32` memory in KiB, `u32` passes, `u32` lanes, sealed key. Both are bound to set and algorithm.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::certificate::{Certificate, Identity, PrivateKey};
use crate::passphrase::{Passphrase, Stretch};
use crate::set_key::SECRET_BYTES;
use crate::{Algorithm, Error, SetKey};

/// Most recipients of a set.
pub const RECIPIENTS_MAX: usize = 64;

const VERSION: u8 = 1;
const KIND_CERTIFICATE: u8 = 1;
const KIND_PASSPHRASE: u8 = 2;

/// Whom a set's key is wrapped for.
#[derive(Debug, Clone)]
pub enum Recipient {
    /// Whoever has the private key of a certificate.
    Certificate(Certificate),
    /// Whoever knows a passphrase.
    Passphrase(Passphrase),
}

/// What is known of a recipient without any key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipientKind {
    /// A certificate with this thumbprint.
    Certificate([u8; 20]),
    /// A passphrase.
    Passphrase,
}

/// Keys at hand for reading.
#[derive(Debug, Clone, Default)]
pub struct KeyRing {
    /// Certificates with their private keys.
    pub identities: Vec<Arc<Identity>>,
    /// Private keys whose certificate is not known.
    pub keys: Vec<Arc<PrivateKey>>,
    /// Passphrases.
    pub passphrases: Vec<Passphrase>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Wrapped {
    Certificate { thumbprint: [u8; 20], key: Vec<u8> },
    Passphrase { stretch: Stretch, key: Vec<u8> },
}

/// A set's key, wrapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBlock {
    algorithm: Algorithm,
    recipients: Vec<Wrapped>,
}

impl KeyBlock {
    /// Wraps a key for recipients.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if there are none or too many; those of the library.
    pub fn wrap(key: &SetKey, recipients: &[Recipient]) -> Result<Self, Error> {
        if recipients.is_empty() || recipients.len() > RECIPIENTS_MAX {
            return Err(Error::Unreadable {
                what: "recipients",
                reason: format!(
                    "{} given, 1 to {RECIPIENTS_MAX} are needed",
                    recipients.len()
                ),
            });
        }
        let context = context(key.algorithm(), key.set_guid());
        let wrap = |recipient: &Recipient| match recipient {
            Recipient::Certificate(certificate) => Ok(Wrapped::Certificate {
                thumbprint: certificate.thumbprint(),
                key: certificate.wrap(key.secret(), &context)?,
            }),
            Recipient::Passphrase(passphrase) => {
                let stretch = Stretch::new()?;
                let key = stretch.key(passphrase)?.seal(&context, key.secret())?;
                Ok(Wrapped::Passphrase { stretch, key })
            }
        };
        Ok(Self {
            algorithm: key.algorithm(),
            recipients: recipients.iter().map(wrap).collect::<Result<_, Error>>()?,
        })
    }

    /// How chunks are encrypted.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// For whom the key is wrapped.
    pub fn recipients(&self) -> Vec<RecipientKind> {
        let kind = |wrapped: &Wrapped| match wrapped {
            Wrapped::Certificate { thumbprint, .. } => RecipientKind::Certificate(*thumbprint),
            Wrapped::Passphrase { .. } => RecipientKind::Passphrase,
        };
        self.recipients.iter().map(kind).collect()
    }

    /// The set's key, unwrapped with whatever key at hand fits.
    ///
    /// # Errors
    /// [`Error::KeyMissing`] if none belongs to a recipient, [`Error::WrongKey`] if one should fit and
    /// does not.
    pub fn unlock(&self, set_guid: [u8; 16], ring: &KeyRing) -> Result<SetKey, Error> {
        let context = context(self.algorithm, set_guid);
        let mut failed = None;
        for wrapped in &self.recipients {
            match wrapped.open(ring, &context) {
                Ok(Some(secret)) => return SetKey::derive(self.algorithm, set_guid, secret),
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| Error::KeyMissing {
            recipients: self.to_string(),
        }))
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
                Wrapped::Passphrase { stretch, key } => {
                    stretch.store(&mut body);
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
    pub fn from_stored(octets: &[u8]) -> Result<Self, Error> {
        Self::parse(&mut Reader::new(octets)).ok_or_else(|| Error::Unreadable {
            what: "key block",
            reason: format!("its {} bytes are not of a kind known here", octets.len()),
        })
    }

    fn parse(reader: &mut Reader<'_>) -> Option<Self> {
        let [version, algorithm] = reader.array()?;
        let algorithm = Algorithm::from_id(algorithm).filter(|_| version == VERSION)?;
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
                    key: body.rest().to_vec(),
                },
                _ => return None,
            });
        }
        reader.rest().is_empty().then_some(Self {
            algorithm,
            recipients,
        })
    }
}

/// The recipients, for a message.
impl fmt::Display for KeyBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, recipient) in self.recipients().iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            match recipient {
                RecipientKind::Certificate(thumbprint) => {
                    write!(f, "{separator}0x")?;
                    thumbprint
                        .iter()
                        .try_for_each(|octet| write!(f, "{octet:02X}"))?;
                }
                RecipientKind::Passphrase => write!(f, "{separator}a passphrase")?,
            }
        }
        Ok(())
    }
}

impl Wrapped {
    /// The secret, if a key at hand belongs to this recipient.
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
            Self::Passphrase { stretch, key } => {
                for passphrase in &ring.passphrases {
                    if let Ok(opened) = stretch.key(passphrase)?.open(context, key)
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

/// What a wrapped key is bound to.
fn context(algorithm: Algorithm, set_guid: [u8; 16]) -> Vec<u8> {
    let mut context = b"windlass set key 1".to_vec();
    context.push(algorithm as u8);
    context.extend_from_slice(&set_guid);
    context
}

/// Takes octets from the front.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let key = SetKey::generate(Algorithm::Aes256, [3; 16]).unwrap();
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
        let missing = block.unlock([3; 16], &KeyRing::default()).unwrap_err();
        assert!(missing.to_string().ends_with(", a passphrase"), "{missing}");
    }

    #[test]
    fn damaged_key_blocks_are_refused_without_panic() {
        let key = SetKey::generate(Algorithm::Aes128, [3; 16]).unwrap();
        let block = KeyBlock::wrap(&key, &[Recipient::Passphrase(passphrase("p"))]).unwrap();
        let stored = block.to_stored();
        for length in 0..stored.len() {
            let cut = KeyBlock::from_stored(&stored[..length]);
            let opens = cut.is_ok_and(|block| block.unlock([3; 16], &ring("p")).is_ok());
            assert!(!opens, "{length} octets");
        }
    }
}
