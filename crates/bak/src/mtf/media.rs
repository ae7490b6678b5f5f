//! The media header: the `TAPE` block and its `RAID` stream.

use windlass_base::{Guid, Moment};

use crate::fields::Fields;

/// SQL Server's vendor id.
pub(crate) const SQL_SERVER_VENDOR: u16 = 4608;

/// The unit of the block size.
const BLOCK_UNIT_BYTES: u32 = 512;

/// The header of a media family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaHeader {
    /// Random number of this family.
    pub family_id: u32,
    /// `BLOCKSIZE`.
    pub block_bytes: u32,
    pub name: String,
    pub description: String,
    /// Whether a media password protects it.
    pub has_password: bool,
    /// The program that wrote it.
    pub software: String,
    pub vendor: u16,
    pub created: Option<Moment>,
    pub media_set: Guid,
    /// Families in the media set.
    pub family_count: u16,
    /// Copies of each family.
    pub mirror_count: u16,
    /// Number of this family, from 1.
    pub family_number: u16,
    /// The number of this file within its family, from 1.
    pub sequence_number: u16,
}

/// The software name in a media header of any program.
pub(crate) fn software(block: &[u8]) -> String {
    Fields(block).text(0x50)
}

impl MediaHeader {
    /// Reads the block and its optional `RAID` stream.
    pub(crate) fn read(block: &[u8], raid: &[u8]) -> Self {
        let fields = Fields(block);
        let raid = Fields(raid);
        Self {
            family_id: fields.u32(0x34),
            block_bytes: u32::from(fields.u16(0x40)) * BLOCK_UNIT_BYTES,
            name: fields.text(0x44),
            description: fields.text(0x48),
            has_password: fields.u16(0x4C) != 0,
            software: software(block),
            vendor: fields.u16(0x56),
            created: fields.moment(0x58),
            media_set: raid.guid(0),
            family_count: raid.u16(0x14).max(1),
            mirror_count: raid.u16(0x16).max(1),
            family_number: raid.u16(0x18).max(1),
            sequence_number: fields.u16(0x3C),
        }
    }
}
