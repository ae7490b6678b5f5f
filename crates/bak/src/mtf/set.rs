//! The start of a backup set: the `SSET` and `VOLB` blocks.

use windlass_base::{Guid, Moment};

use crate::fields::Fields;

/// The first block of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetHeader {
    /// Attributes: 4; 8 for a differential; 6 for a copy-only full backup.
    pub attributes: u32,
    /// Position on the media, from 1.
    pub position: u16,
    pub name: String,
    pub description: String,
    /// Whether a password protects it.
    pub has_password: bool,
    pub user: String,
    pub written: Option<Moment>,
    /// The date until which it must not be overwritten.
    pub expires: Option<Moment>,
    pub version_major: u8,
    pub version_minor: u8,
    /// Quarter hours from UTC.
    pub time_zone: i8,
    pub guid: Guid,
}

impl SetHeader {
    /// Reads the block.
    pub(crate) fn read(block: &[u8]) -> Self {
        let fields = Fields(block);
        let own = Fields(fields.bytes(fields.u16(0x2E).into(), fields.u16(0x2C).into()));
        Self {
            attributes: fields.u32(0x34),
            position: fields.u16(0x3E),
            name: fields.text(0x40),
            description: fields.text(0x44),
            has_password: fields.u16(0x48) != 0,
            user: fields.text(0x4C),
            written: fields.moment(0x58),
            expires: own.moment(0x10),
            version_major: fields.u8(0x5D),
            version_minor: fields.u8(0x5E),
            time_zone: fields.u8(0x5F).cast_signed(),
            guid: own.guid(0),
        }
    }
}

/// The machine named in the `VOLB` block.
pub(crate) fn machine(block: &[u8]) -> String {
    Fields(block).text(0x40)
}
