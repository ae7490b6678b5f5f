//! The checksum of Windlass's formats, and the digest that finds changed extents.
//!
//! CRC-64/NVME protects every byte on media: it detects every single-bit error and every burst
//! error up to 64 bits, and runs at memory speed with carry-less multiplication. It does not
//! protect against deliberate changes; authenticated encryption does.
//!
//! Digests (the first 128 bits of BLAKE3) decide whether an extent changed since a full backup. A
//! collision would silently lose a change, and users often control the content of a database, so a
//! fast but forgeable hash is not sufficient.

use crc_fast::CrcAlgorithm;

/// CRC-64/NVME of `bytes`.
pub fn checksum(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes)
}

/// CRC-64/NVME over several pieces, in order.
#[derive(Debug)]
pub struct ChecksumBuilder(crc_fast::Digest);

impl ChecksumBuilder {
    /// Starts with no bytes.
    pub fn new() -> Self {
        Self(crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme))
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of everything added.
    pub fn finish(&self) -> u64 {
        self.0.finalize()
    }
}

impl Default for ChecksumBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// 128 bits that represent the content of an extent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// Bytes in the stored form.
    pub const BYTES: usize = 16;
}

/// BLAKE3 of several pieces, each preceded by its length, so that no byte can move from one to the
/// next.
pub fn hash(pieces: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for piece in pieces {
        hasher.update(&(piece.len() as u64).to_le_bytes());
        hasher.update(piece);
    }
    *hasher.finalize().as_bytes()
}

/// BLAKE3 of `bytes`, whole: for what a signature covers.
pub fn blake3(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

/// Computes a BLAKE3 hash over bytes that arrive in pieces, in order.
#[derive(Debug, Default)]
pub struct Blake3Builder(Box<blake3::Hasher>);

impl Blake3Builder {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of everything added.
    pub fn finish(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }
}

/// The digest of an extent: the first 16 bytes of its BLAKE3 hash.
pub fn digest(bytes: &[u8]) -> Digest {
    let hash = blake3::hash(bytes);
    let mut digest = [0; 16];
    digest.copy_from_slice(&hash.as_bytes()[..16]);
    Digest(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_crc64_nvme() {
        assert_eq!(
            checksum(b"123456789"),
            0xAE8B_1486_0A79_9888,
            "check value of the catalogue"
        );
    }

    #[test]
    fn pieces_give_the_checksum_of_the_whole() {
        let mut builder = ChecksumBuilder::new();
        builder.update(b"1234");
        builder.update(b"");
        builder.update(b"56789");
        assert_eq!(builder.finish(), checksum(b"123456789"));
    }

    #[test]
    fn digest_is_the_start_of_blake3() {
        assert_eq!(
            digest(b"").0[..4],
            [0xAF, 0x13, 0x49, 0xB9],
            "published BLAKE3 test vector"
        );
    }
}
