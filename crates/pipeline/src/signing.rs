//! Creates and checks signatures, which prove who made a set.
//!
//! Neighbours: `windlass-crypt` has the cryptography; `windlass-media` determines which bytes of a
//! configuration are signed, and hashes chunk headers as they are written and read.
//! `docs/format/media.md` explains how one signature covers everything.
//!
//! Invariant: if a signature is required, a set is read to its end only if one of the accepted signers
//! signed its configuration, the chunk headers on every family are exactly those that were signed, in
//! order, and every payload that is passed on matches its header.

use windlass_crypt::{Signature, Signer, SigningKey};
use windlass_media::SetConfiguration;

use crate::error::{Damage, Error};
use crate::media_set::{CompleteSet, MediaSet};
use crate::sealing::ReadKeys;

/// Bytes of the hash of a family's chunk headers.
const HASH_BYTES: usize = 32;

/// A set whose configuration was signed: what is left to compare while its chunks are read.
#[derive(Debug)]
pub(crate) struct Signed {
    pub(crate) signer: Signer,
    /// The hash of all chunk headers of each family.
    chunk_headers: Vec<[u8; HASH_BYTES]>,
}

impl Signed {
    /// What the chunk headers of a family must hash to.
    pub(crate) fn chunk_headers(&self, family: u16) -> Option<[u8; HASH_BYTES]> {
        let index = usize::from(family).checked_sub(1)?;
        self.chunk_headers.get(index).copied()
    }
}

/// Signs the final configuration, after everything else has been added to it.
pub(crate) fn sign(key: Option<&SigningKey>, set: &mut SetConfiguration) -> Result<(), Error> {
    if let Some(key) = key {
        set.signature = key.sign(&set.signed_bytes())?;
    }
    Ok(())
}

/// The signer that a set claims; `None` without a readable signature.
pub fn claimed_signer(set: &SetConfiguration) -> Option<Signer> {
    let signature = Signature::from_stored(&set.signature).ok()?;
    Some(signature.signer())
}

/// Checks the signature over the configuration of a set, if one is required, or if `looks_anyway` is set
/// and the set has one: then it must be valid, whoever the signer is.
pub(crate) fn check(
    media: &MediaSet,
    complete: &CompleteSet,
    keys: &ReadKeys,
    looks_anyway: bool,
) -> Result<Option<Signed>, Error> {
    let set = complete.configuration();
    if keys.signed_by.is_empty() && !(looks_anyway && set.is_signed()) {
        return Ok(None);
    }
    let forged = |damage| Error::SetDamaged {
        device: media.devices(),
        damage,
    };
    let not_signed = |found: Option<Signer>| Error::NotSigned {
        device: media.devices(),
        found: found.map(|signer| signer.fingerprint()),
        wanted: keys.signed_by.iter().map(Signer::fingerprint).collect(),
    };
    if !set.is_signed() {
        return Err(not_signed(None));
    }
    let signature =
        Signature::from_stored(&set.signature).map_err(|_| forged(Damage::ForgedSignature))?;
    let signer = signature.signer();
    if !keys.signed_by.is_empty() && !keys.signed_by.contains(&signer) {
        return Err(not_signed(Some(signer)));
    }
    let covered = complete.stored.signed();
    let checked = covered.map(|covered| signature.check(covered));
    let (hashes, rest) = set.chunk_headers.as_chunks::<HASH_BYTES>();
    let is_whole = hashes.len() == media.families.len() && rest.is_empty();
    match checked {
        Some(Ok(())) if is_whole => Ok(Some(Signed {
            signer,
            chunk_headers: hashes.to_vec(),
        })),
        _ => Err(forged(Damage::ForgedSignature)),
    }
}
