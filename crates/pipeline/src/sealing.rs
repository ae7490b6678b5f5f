//! Encryption of a set: creates or finds its key, seals and opens its chunks, authenticates its
//! configuration.
//!
//! Neighbours: `windlass-crypt` has the cryptography, `windlass-media` the fields for keys, tags
//! and the authentication. Payloads are encrypted and decrypted in place.
//!
//! Invariant: content of an encrypted set is passed on only after its tag was verified, with a key
//! that also authenticated the configuration.

use std::sync::Arc;

use windlass_base::checksum;
use windlass_crypt::{Cipher, KeyBlock, KeyRing, Recipient, SetKey, Signer};
use windlass_media::{ChunkHeader, SetConfiguration};

use crate::error::{Damage, Error};
use crate::media_set::{CompleteSet, MediaSet};

/// The encryption of a backup, and its recipients.
#[derive(Debug, Clone)]
pub struct Encryption {
    /// `ENCRYPTION (ALGORITHM = ...)`
    pub algorithm: Cipher,
    pub recipients: Vec<Recipient>,
}

/// Keys for a restore or a verification, and what a set must fulfil.
#[derive(Debug, Clone, Default)]
pub struct ReadKeys {
    pub ring: Arc<KeyRing>,
    /// Whether an unencrypted set is refused, because it may have replaced an encrypted one.
    pub requires_encryption: bool,
    /// Whether verification only checks the checksums of encrypted sets: nothing is decrypted or
    /// authenticated.
    pub without_key: bool,
    /// The accepted signers of a set: one of them must have signed it. Empty: no signature is required.
    pub signed_by: Vec<Signer>,
}

/// Generates the key of a new set and stores it, wrapped, in the configuration.
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

pub(crate) fn authenticate(key: Option<&SetKey>, set: &mut SetConfiguration) {
    if let Some(key) = key {
        set.authentication = key.authenticate(&set.authenticated_bytes());
    }
}

/// The key of a set to be read; `None` if it is not encrypted.
///
/// Recipients added later are tried first; those on the media remain valid.
pub(crate) fn unlock(
    media: &MediaSet,
    complete: &CompleteSet,
    keys: &ReadKeys,
) -> Result<Option<SetKey>, Error> {
    let set = complete.configuration();
    let device = || media.devices();
    if !set.is_encrypted() {
        return match keys.requires_encryption {
            true => Err(Error::NotEncrypted { device: device() }),
            false => Ok(None),
        };
    }
    let guid = set.set_guid.to_stored();
    let mut later = None;
    for entry in media.key_files().entries(guid) {
        let key = entry.block().unlock(guid, &keys.ring);
        let key = key.and_then(|key| entry.check(&key).map(|()| key));
        if key.is_ok() || later.is_none() {
            later = Some(key);
        }
        if matches!(later, Some(Ok(_))) {
            break;
        }
    }
    let key = match later {
        Some(Ok(key)) => key,
        later => {
            let first = KeyBlock::from_stored(&set.key_block)?.unlock(guid, &keys.ring);
            match (first, later) {
                (Ok(key), _) => key,
                // Show the recipients of the newer key block.
                (_, Some(Err(source))) | (Err(source), _) => return Err(locked(media, source)),
            }
        }
    };
    key.check(&complete.stored.authenticated(), &set.authentication)
        .map_err(|_| Error::SetDamaged {
            device: device(),
            damage: Damage::UnauthenticConfiguration,
        })?;
    Ok(Some(key))
}

/// The error if no key opens a set. It names unusable key files next to the media, because one of them
/// may contain the right key.
fn locked(media: &MediaSet, source: windlass_crypt::Error) -> Error {
    let device = media.devices();
    match media.unusable_key_files().first() {
        Some(unusable) => Error::KeyAndKeyFile {
            device,
            source,
            file: unusable.name.clone(),
            reason: unusable.reason.clone(),
        },
        None => Error::Key { device, source },
    }
}

/// Encrypts a payload in place, masks its checksum and digests in the header, and adds the tag.
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

/// Decrypts a payload in place; returns the checksum of the raw bytes, which the header stores
/// masked.
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

/// Hides the checksum and the digests of the raw bytes, which would confirm a guess at the content.
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
