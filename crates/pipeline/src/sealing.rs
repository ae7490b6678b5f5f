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
use windlass_crypt::{Cipher, KeyBlock, KeyRing, Recipient, SetKey};
use windlass_media::{ChunkHeader, SetConfiguration};

use crate::error::{Damage, Error};
use crate::media_set::MediaSet;

/// How a backup is encrypted, and for whom.
#[derive(Debug, Clone)]
pub struct Encryption {
    /// `ENCRYPTION (ALGORITHM = ...)`
    pub algorithm: Cipher,
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
    /// Whether a verification checks encrypted sets by their checksums alone: nothing is decrypted, and
    /// nothing authenticated.
    pub without_key: bool,
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
        set.authentication = key.authenticate(&set.authenticated_bytes());
    }
}

/// The key of a set that is to be read; none if it is not encrypted.
///
/// Recipients who were given the key later are asked for first; those on the media still count.
pub(crate) fn unlock(
    media: &MediaSet,
    set: &SetConfiguration,
    keys: &ReadKeys,
) -> Result<Option<SetKey>, Error> {
    let device = || media.devices();
    if !set.is_encrypted() {
        return match keys.requires_encryption {
            true => Err(Error::NotEncrypted { device: device() }),
            false => Ok(None),
        };
    }
    let guid = set.set_guid.to_stored();
    let later = media.rewrapped(set).map(|entry| {
        let key = entry.block().unlock(guid, &keys.ring)?;
        entry.check(&key).map(|()| key)
    });
    let key = match later {
        Some(Ok(key)) => key,
        later => {
            let first = KeyBlock::from_stored(&set.key_block)?.unlock(guid, &keys.ring);
            match (first, later) {
                (Ok(key), _) => key,
                // The recipients that are shown are those of the later key block.
                (_, Some(Err(source))) | (Err(source), _) => return Err(locked(media, source)),
            }
        }
    };
    key.check(&set.authenticated_bytes(), &set.authentication)
        .map_err(|_| Error::SetDamaged {
            device: device(),
            damage: Damage::UnauthenticConfiguration,
        })?;
    Ok(Some(key))
}

/// No key opens a set. Keys beside the media that cannot be used are named, as one of them may be the one.
fn locked(media: &MediaSet, source: windlass_crypt::Error) -> Error {
    let device = media.devices();
    match media.unusable_key_files().first() {
        Some(unusable) => Error::KeyAndKeyFile {
            device,
            source,
            path: unusable.path.clone(),
            reason: unusable.reason.clone(),
        },
        None => Error::Key { device, source },
    }
}

/// Encrypts a payload in place; masks what the header tells about it, and adds the tag.
pub(crate) fn seal(
    key: &SetKey,
    header: &mut ChunkHeader,
    payload: &mut [u8],
) -> Result<(), Error> {
    mask(key, header);
    let tag = key.seal(header.ordinal, &header.authenticated_bytes(), payload)?;
    header.tag = Some(tag);
    header.stored_checksum = checksum(payload);
    Ok(())
}

/// Decrypts a payload in place; returns the checksum of the raw bytes, which the header only masks.
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
            key.open(ordinal, &header.authenticated_bytes(), tag, payload)
                .map_err(|_| Damage::Unauthentic { ordinal, offset })?;
            let mut raw = header.raw_checksum.to_le_bytes();
            key.mask(ordinal, &mut raw);
            Ok(u64::from_le_bytes(raw))
        }
        _ => Err(Damage::Unauthentic { ordinal, offset }),
    }
}

/// Hides the checksum and the digests of the raw bytes: they would confirm a guess at the content.
fn mask(key: &SetKey, header: &mut ChunkHeader) {
    let mut bytes = header.raw_checksum.to_le_bytes().to_vec();
    for digest in &header.digests {
        bytes.extend_from_slice(&digest.0);
    }
    key.mask(header.ordinal, &mut bytes);
    let (raw, digests) = bytes.split_at(size_of::<u64>());
    header.raw_checksum = raw.try_into().map_or(0, u64::from_le_bytes);
    for (digest, masked) in header.digests.iter_mut().zip(digests.chunks_exact(16)) {
        digest.0.copy_from_slice(masked);
    }
}
