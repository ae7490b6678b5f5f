//! Encryption of a set: its key made or found, its chunks sealed and opened, its configuration
//! authenticated.
//!
//! Neighbours: `windlass-crypt` has the cryptography, `windlass-media` the places where keys, tags and
//! the authentication are stored. Payloads are encrypted and decrypted in the buffers they are in.
//!
//! Invariant: what is read of an encrypted set is handed on only after its tag was right, under a key
//! that also authenticated the configuration.

use std::sync::Arc;

use windlass_base::checksum;
use windlass_crypt::{Algorithm, KeyBlock, KeyRing, Recipient, SetKey};
use windlass_media::{ChunkHeader, SetConfiguration};

use crate::error::{Damage, Error};

/// How a backup is encrypted, and for whom.
#[derive(Debug, Clone)]
pub struct Encryption {
    /// `ENCRYPTION (ALGORITHM = ...)`
    pub algorithm: Algorithm,
    /// Whoever can read it.
    pub recipients: Vec<Recipient>,
}

/// Keys for a restore or a verification.
#[derive(Debug, Clone, Default)]
pub struct ReadKeys {
    /// The keys at hand.
    pub ring: Arc<KeyRing>,
    /// Whether a set that is not encrypted is refused: somebody may have put it in the place of one
    /// that was.
    pub requires_encryption: bool,
}

/// Makes the key of a new set and wraps it into its configuration.
pub(crate) fn begin(
    encryption: Option<&Encryption>,
    set: &mut SetConfiguration,
) -> Result<Option<SetKey>, Error> {
    let Some(encryption) = encryption else {
        return Ok(None);
    };
    let key = SetKey::generate(encryption.algorithm, set.set_guid.to_stored())?;
    set.key_block = KeyBlock::wrap(&key, &encryption.recipients)?.to_stored();
    Ok(Some(key))
}

/// Authenticates the final configuration.
pub(crate) fn authenticate(key: Option<&SetKey>, set: &mut SetConfiguration) {
    if let Some(key) = key {
        set.authentication = key.authenticate(&set.authenticated_octets());
    }
}

/// The key of a set that is to be read; none if it is not encrypted.
pub(crate) fn unlock(
    device: &str,
    set: &SetConfiguration,
    keys: &ReadKeys,
) -> Result<Option<SetKey>, Error> {
    if !set.is_encrypted() {
        if keys.requires_encryption {
            return Err(Error::NotEncrypted {
                device: device.to_owned(),
            });
        }
        return Ok(None);
    }
    let block = KeyBlock::from_stored(&set.key_block)?;
    let key = block
        .unlock(set.set_guid.to_stored(), &keys.ring)
        .map_err(|source| Error::Key {
            device: device.to_owned(),
            source,
        })?;
    key.check(&set.authenticated_octets(), &set.authentication)
        .map_err(|_| Error::SetDamaged {
            device: device.to_owned(),
            damage: Damage::UnauthenticConfiguration,
        })?;
    Ok(Some(key))
}

/// Encrypts a payload in place; masks what the header tells about it, and adds the tag.
pub(crate) fn seal(
    key: &SetKey,
    header: &mut ChunkHeader,
    payload: &mut [u8],
) -> Result<(), Error> {
    mask(key, header);
    let tag = key.seal(header.ordinal, &header.authenticated_octets(), payload)?;
    header.tag = Some(tag);
    header.stored_checksum = checksum(payload);
    Ok(())
}

/// Decrypts a payload in place; returns the checksum of the raw octets, which the header only masks.
pub(crate) fn open(
    key: Option<&SetKey>,
    header: &ChunkHeader,
    payload: &mut [u8],
    offset: u64,
) -> Result<u64, Damage> {
    let ordinal = header.ordinal;
    match (key, &header.tag) {
        (None, None) => Ok(header.raw_checksum),
        (Some(key), Some(tag)) => {
            key.open(ordinal, &header.authenticated_octets(), tag, payload)
                .map_err(|_| Damage::Unauthentic { ordinal, offset })?;
            let mut raw = header.raw_checksum.to_le_bytes();
            key.mask(ordinal, &mut raw);
            Ok(u64::from_le_bytes(raw))
        }
        _ => Err(Damage::Unauthentic { ordinal, offset }),
    }
}

/// Hides the checksum and the digests of the raw octets: they would confirm a guess at the content.
fn mask(key: &SetKey, header: &mut ChunkHeader) {
    let mut octets = header.raw_checksum.to_le_bytes().to_vec();
    for digest in &header.digests {
        octets.extend_from_slice(&digest.0);
    }
    key.mask(header.ordinal, &mut octets);
    let (raw, digests) = octets.split_at(size_of::<u64>());
    header.raw_checksum = raw.try_into().map_or(0, u64::from_le_bytes);
    for (digest, masked) in header.digests.iter_mut().zip(digests.chunks_exact(16)) {
        digest.0.copy_from_slice(masked);
    }
}
