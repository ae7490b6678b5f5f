//! Microsoft Tape Format as SQL Server writes it: descriptor blocks, stream headers, and their
//! content.
//!
//! The generic headers follow the published specification; the fields of the blocks and the streams
//! `MQCI`, `MQDA`, `MQTL` and `CSUM` are SQL Server's own. `windlass-media` writes and reads Windlass
//! media, with other streams, rules and checks, so the two share only the header layout.

pub(crate) mod configuration;
pub(crate) mod log;
pub(crate) mod media;
pub(crate) mod set;

use std::fmt;

use crate::checksum::xor16;
use crate::fields::Fields;

/// Bytes of a descriptor block header.
pub(crate) const DESCRIPTOR_BYTES: usize = 52;

/// Bytes of a stream header.
pub(crate) const STREAM_BYTES: usize = 22;

/// Streams start at multiples of this.
pub(crate) const STREAM_ALIGNMENT: u64 = 4;

/// Descriptor blocks of a set start at multiples of this, counted from the start of the set.
pub(crate) const LOGICAL_BLOCK_BYTES: u64 = 1024;

/// Four letters that name a descriptor block or a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub [u8; 4]);

impl Tag {
    /// Media header.
    pub const TAPE: Self = Self(*b"TAPE");
    /// Soft filemark.
    pub const SFMB: Self = Self(*b"SFMB");
    /// Start of a set.
    pub const SSET: Self = Self(*b"SSET");
    /// Volume.
    pub const VOLB: Self = Self(*b"VOLB");
    /// Configuration at the start.
    pub const MSCI: Self = Self(*b"MSCI");
    /// Data pages.
    pub const MSDA: Self = Self(*b"MSDA");
    /// A virtual log file.
    pub const MSTL: Self = Self(*b"MSTL");
    /// Configuration at the end.
    pub const MSLS: Self = Self(*b"MSLS");
    /// End of a set.
    pub const ESET: Self = Self(*b"ESET");
    /// Stream: the media set.
    pub const RAID: Self = Self(*b"RAID");
    /// Stream: the rest of a block.
    pub const SPAD: Self = Self(*b"SPAD");
    /// Stream: what aligns the data behind it.
    pub const APAD: Self = Self(*b"APAD");
    /// Stream: configuration.
    pub const MQCI: Self = Self(*b"MQCI");
    /// Stream: pages.
    pub const MQDA: Self = Self(*b"MQDA");
    /// Stream: log.
    pub const MQTL: Self = Self(*b"MQTL");
    /// Stream: the sets of a family.
    pub const TSMP: Self = Self(*b"TSMP");
    /// Stream: checksum of the previous stream.
    pub const CSUM: Self = Self(*b"CSUM");

    /// The descriptor blocks of a backup.
    const BLOCKS: [Self; 9] = [
        Self::TAPE,
        Self::SFMB,
        Self::SSET,
        Self::VOLB,
        Self::MSCI,
        Self::MSDA,
        Self::MSTL,
        Self::MSLS,
        Self::ESET,
    ];

    /// Whether this is the name of a descriptor block.
    pub(crate) fn is_block(self) -> bool {
        Self::BLOCKS.contains(&self)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The 52 bytes at the start of every descriptor block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DescriptorHeader<'a>(pub(crate) Fields<'a>);

impl DescriptorHeader<'_> {
    pub(crate) fn tag(self) -> Tag {
        Tag(self.0.array(0))
    }

    /// Offset of the first stream; for a filemark, its length.
    pub(crate) fn first_stream(self) -> usize {
        self.0.u16(8).into()
    }

    pub(crate) fn logical_address(self) -> u64 {
        self.0.u64(0x14)
    }

    pub(crate) fn control_block(self) -> u32 {
        self.0.u32(0x24)
    }

    /// The stored checksum and the computed one.
    pub(crate) fn checksums(self) -> (u16, u16) {
        (self.0.u16(0x32), xor16(self.0.bytes(0, 0x32)))
    }

    pub(crate) fn is_good(self) -> bool {
        let (found, expected) = self.checksums();
        self.tag().is_block() && found == expected && self.first_stream() >= DESCRIPTOR_BYTES
    }
}

/// The 22 bytes before every stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamHeader<'a>(pub(crate) Fields<'a>);

impl StreamHeader<'_> {
    pub(crate) fn tag(self) -> Tag {
        Tag(self.0.array(0))
    }

    pub(crate) fn attributes(self) -> u16 {
        self.0.u16(6)
    }

    pub(crate) fn bytes(self) -> u64 {
        self.0.u64(8)
    }

    /// The algorithms that the data are encrypted and compressed with: 0 in every file that was seen.
    pub(crate) fn algorithms(self) -> (u16, u16) {
        (self.0.u16(0x10), self.0.u16(0x12))
    }

    /// The stored checksum and the computed one.
    pub(crate) fn checksums(self) -> (u16, u16) {
        (self.0.u16(0x14), xor16(self.0.bytes(0, 0x14)))
    }
}
