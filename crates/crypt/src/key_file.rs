//! Keys rewrapped for other recipients, in a file next to the media, which do not change.
//!
//! 8 bytes `WLKEYS1\0`, `u16` number of entries, then for each 16 bytes set GUID, `u16` length of the
//! key block, key block, 32 bytes HMAC-SHA256; at the end 16 bytes of the BLAKE3 hash of everything
//! before. The HMAC, with the set's key, covers `windlass key file 1`, set GUID and key block.

use windlass_base::bytes::Reader;

use crate::{Error, KeyBlock, SetKey};

const MAGIC: &[u8; 8] = b"WLKEYS1\0";
const PURPOSE: &[u8] = b"windlass key file 1";
const HASH_BYTES: usize = 16;

/// A rewrapped set key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFileEntry {
    set_guid: [u8; 16],
    block: KeyBlock,
    authentication: [u8; 32],
}

impl KeyFileEntry {
    /// The key block to use instead of the one on the media.
    pub fn block(&self) -> &KeyBlock {
        &self.block
    }

    /// Checks that the writer of the entry had the set's key.
    ///
    /// # Errors
    /// [`Error::Unauthentic`].
    pub fn check(&self, key: &SetKey) -> Result<(), Error> {
        key.check(
            &authenticated(self.set_guid, &self.block),
            &self.authentication,
        )
    }
}

/// The keys of some sets of a media set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyFile {
    entries: Vec<KeyFileEntry>,
}

impl KeyFile {
    pub fn entry(&self, set_guid: [u8; 16]) -> Option<&KeyFileEntry> {
        self.entries.iter().find(|entry| entry.set_guid == set_guid)
    }

    /// Whether everybody whom `other` lets in is let in by this one as well.
    pub fn lets_in_all_of(&self, other: &Self) -> bool {
        other.entries.iter().all(|theirs| {
            let own = self.entry(theirs.set_guid);
            own.is_some_and(|own| own.block.has_recipients_of(&theirs.block))
        })
    }

    /// Stores a set's key, replacing the previous one of the set.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn replace(&mut self, key: &SetKey, block: KeyBlock) -> Result<(), Error> {
        let set_guid = key.set_guid();
        let authentication = key.authenticate(&authenticated(set_guid, &block));
        let authentication = authentication.try_into().map_err(|_| Error::Library {
            doing: "authenticating a key block",
        })?;
        self.entries.retain(|entry| entry.set_guid != set_guid);
        self.entries.push(KeyFileEntry {
            set_guid,
            block,
            authentication,
        });
        Ok(())
    }

    /// The stored form.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if it would read back differently.
    pub fn to_stored(&self) -> Result<Vec<u8>, Error> {
        let too_many = |_| Error::Unreadable {
            what: "key file",
            reason: "it cannot hold that many keys".to_owned(),
        };
        let mut out = MAGIC.to_vec();
        let count = u16::try_from(self.entries.len()).map_err(too_many)?;
        out.extend_from_slice(&count.to_le_bytes());
        for entry in &self.entries {
            let block = entry.block.to_stored();
            out.extend_from_slice(&entry.set_guid);
            let block_bytes = u16::try_from(block.len()).map_err(too_many)?;
            out.extend_from_slice(&block_bytes.to_le_bytes());
            out.extend_from_slice(&block);
            out.extend_from_slice(&entry.authentication);
        }
        let hash = blake3::hash(&out);
        out.extend_from_slice(&hash.as_bytes()[..HASH_BYTES]);
        // The file replaces one whose keys may exist nowhere else.
        match Self::parse(&out) {
            Some(read) if read == *self => Ok(out),
            _ => Err(Error::Unreadable {
                what: "key file",
                reason: "the written content does not read back the same".to_owned(),
            }),
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn from_stored(bytes: &[u8]) -> Result<Self, Error> {
        Self::parse(bytes).ok_or_else(|| Error::Unreadable {
            what: "key file",
            reason: "it is damaged, or not a Windlass key file".to_owned(),
        })
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (body, hash) = bytes.split_at_checked(bytes.len().checked_sub(HASH_BYTES)?)?;
        if blake3::hash(body).as_bytes()[..HASH_BYTES] != *hash {
            return None;
        }
        let mut reader = Reader::new(body);
        if reader.take(MAGIC.len())? != MAGIC {
            return None;
        }
        let count = u16::from_le_bytes(reader.array()?);
        let mut entries = Vec::new();
        for _ in 0..count {
            let set_guid = reader.array()?;
            let length = u16::from_le_bytes(reader.array()?);
            let block = KeyBlock::from_stored(reader.take(length.into())?).ok()?;
            let authentication = reader.array()?;
            entries.push(KeyFileEntry {
                set_guid,
                block,
                authentication,
            });
        }
        reader.rest().is_empty().then_some(Self { entries })
    }
}

fn authenticated(set_guid: [u8; 16], block: &KeyBlock) -> Vec<u8> {
    let mut bytes = PURPOSE.to_vec();
    bytes.extend_from_slice(&set_guid);
    bytes.extend_from_slice(&block.to_stored());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cipher, Passphrase, Recipient};

    fn block(key: &SetKey, passphrase: &str) -> KeyBlock {
        let passphrase = Passphrase::new(passphrase.to_owned());
        KeyBlock::wrap(key, &[Recipient::Passphrase(passphrase)]).unwrap()
    }

    #[test]
    fn an_entry_is_replaced_and_only_the_sets_key_makes_one() {
        let key = SetKey::generate(Cipher::Aes256, [1; 16]).unwrap();
        let other = SetKey::generate(Cipher::Aes256, [1; 16]).unwrap();
        let mut file = KeyFile::default();
        file.replace(&key, block(&key, "one")).unwrap();
        let second = block(&key, "two");
        file.replace(&key, second.clone()).unwrap();
        let read = KeyFile::from_stored(&file.to_stored().unwrap()).unwrap();
        assert_eq!(read, file);
        let entry = read.entry([1; 16]).unwrap();
        assert_eq!(entry.block(), &second);
        entry.check(&key).unwrap();
        assert_eq!(entry.check(&other), Err(Error::Unauthentic));
        assert!(read.entry([2; 16]).is_none());
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let key = SetKey::generate(Cipher::Aes256, [1; 16]).unwrap();
        let mut file = KeyFile::default();
        file.replace(&key, block(&key, "one")).unwrap();
        let stored = file.to_stored().unwrap();
        for bit in 0..stored.len() * 8 {
            let mut flipped = stored.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(KeyFile::from_stored(&flipped).is_err(), "bit {bit}");
        }
    }
}
