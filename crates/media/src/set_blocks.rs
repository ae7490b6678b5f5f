//! The descriptor blocks of a backup set: `SSET`, `VOLB`, `DIRB`, `FILE` at its start, `ESET` at
//! its end.
//!
//! All are standard: a generic reader sees a data set with one volume, one directory and one file
//! with unknown streams.

use windlass_base::Guid;

use crate::configuration::{SetConfiguration, SetType};
use crate::cursor::Emission;
use crate::error::MediaError;
use crate::header::{FamilyIdentity, SOFTWARE_NAME, VENDOR_ID};
use crate::mtf::{BlockBuilder, Id, LOGICAL_BLOCK_BYTES, emit_pad_stream, emit_stream};
use crate::record::{Records, records};
use crate::streams::emit_check_stream;

/// MTF's kinds of data set, as bits of the set's attributes.
const SSET_COPY: u32 = 1 << 1;
const SSET_NORMAL: u32 = 1 << 2;
const SSET_DIFFERENTIAL: u32 = 1 << 3;

/// The device name of a volume is meaningful only to the writing program.
const VOLB_DEVICE_VENDOR_SPECIFIC: u32 = 1 << 5;

/// Control block ids: 0 is the `SSET`, then one more for each block up to the `ESET`.
const VOLB_CONTROL_ID: u32 = 1;
const DIRB_CONTROL_ID: u32 = 2;
const FILE_CONTROL_ID: u32 = 3;
const ESET_CONTROL_ID: u32 = 4;

records! {
    /// The end of a set on one family. Offsets are relative to the set's first block.
    SetEnd, "set end" {
        /// Identity of the set.
        0x8001 set_guid: Guid,
        /// Position on the media.
        0x8002 position: u16,
        /// Number of the family.
        0x8003 family_number: u16,
        /// Family offset of the set's first block.
        0x8004 set_offset: u64,
        /// Where the final configuration's stream header is.
        0x8005 configuration_offset: u64,
        /// Where the last index segment's stream header is; 0 when the family has no chunk.
        0x8006 index_offset: u64,
        /// Chunks on this family.
        0x8007 chunk_count: u64,
        /// Bytes of their payloads.
        0x8008 stored_bytes: u64,
    }
}

fn attributes(set: &SetConfiguration) -> u32 {
    match set.set_type {
        SetType::Differential => SSET_DIFFERENTIAL,
        _ if set.is_copy_only => SSET_COPY,
        _ => SSET_NORMAL,
    }
}

/// Appends everything from the set's first block to the first chunk.
pub(crate) fn emit_set_start(
    set: &SetConfiguration,
    family: &FamilyIdentity,
    out: &mut Emission<'_>,
) -> Result<(), MediaError> {
    let begin = out.offset();
    emit_set(set, family, out)?;
    emit_volume(set, begin, out);
    emit_directory(set, begin, out);
    emit_file(set, begin, out);
    Ok(())
}

fn emit_set(
    set: &SetConfiguration,
    family: &FamilyIdentity,
    out: &mut Emission<'_>,
) -> Result<(), MediaError> {
    let begin = out.offset();
    let mut block = BlockBuilder::new(out, Id::SSET, 0, 0);
    let fields = block.fields();
    fields.u32(attributes(set));
    fields.u16(0);
    fields.u16(0);
    fields.u16(VENDOR_ID);
    fields.u16(set.position);
    block.text(&set.name);
    block.text(&set.description);
    block.text("");
    block.text(&set.user);
    let fields = block.fields();
    fields.u64(begin / u64::from(family.block_bytes));
    fields.moment(set.started);
    fields.u8(set.software_major);
    fields.u8(set.software_minor);
    fields.bytes(&set.time_zone.to_le_bytes());
    fields.zeros(2);
    block.finish();
    emit_stream(out, Id::WLSC, &set.emit()?);
    emit_check_stream(out, begin);
    emit_pad_stream(out, LOGICAL_BLOCK_BYTES, begin);
    Ok(())
}

fn logical_address(out: &Emission<'_>, set_begin: u64) -> u64 {
    (out.offset() - set_begin) / LOGICAL_BLOCK_BYTES
}

fn emit_volume(set: &SetConfiguration, set_begin: u64, out: &mut Emission<'_>) {
    let begin = out.offset();
    let address = logical_address(out, set_begin);
    let mut block = BlockBuilder::new(out, Id::VOLB, address, VOLB_CONTROL_ID);
    block.fields().u32(VOLB_DEVICE_VENDOR_SPECIFIC);
    block.text(SOFTWARE_NAME);
    block.text(&set.server);
    block.text(&set.machine);
    block.fields().moment(set.started);
    block.finish();
    emit_check_stream(out, begin);
    emit_pad_stream(out, LOGICAL_BLOCK_BYTES, set_begin);
}

fn emit_directory(set: &SetConfiguration, set_begin: u64, out: &mut Emission<'_>) {
    let begin = out.offset();
    let address = logical_address(out, set_begin);
    let mut block = BlockBuilder::new(out, Id::DIRB, address, DIRB_CONTROL_ID);
    let fields = block.fields();
    fields.u32(0);
    for _ in 0..4 {
        fields.moment(set.started);
    }
    fields.u32(1);
    // The root directory is a single separator, which MTF writes as a zero character.
    block.text("\0");
    block.finish();
    emit_check_stream(out, begin);
    emit_pad_stream(out, LOGICAL_BLOCK_BYTES, set_begin);
}

fn emit_file(set: &SetConfiguration, set_begin: u64, out: &mut Emission<'_>) {
    let begin = out.offset();
    let address = logical_address(out, set_begin);
    let mut block = BlockBuilder::new(out, Id::FILE, address, FILE_CONTROL_ID);
    let fields = block.fields();
    fields.u32(0);
    for _ in 0..4 {
        fields.moment(set.started);
    }
    fields.u32(1);
    fields.u32(1);
    block.text(&set.database);
    block.finish();
    emit_check_stream(out, begin);
}

/// Appends the `ESET` block, padded to a multiple of the block size.
///
/// As MTF allows, it repeats the attributes, number and date of the set's `SSET`.
pub(crate) fn emit_set_end(
    end: &SetEnd,
    set: &SetConfiguration,
    family: &FamilyIdentity,
    out: &mut Emission<'_>,
) {
    let begin = out.offset();
    let mut block = BlockBuilder::new(out, Id::ESET, 0, ESET_CONTROL_ID);
    let fields = block.fields();
    fields.u32(attributes(set));
    fields.u32(0);
    fields.u64(0);
    fields.u64(0);
    fields.u16(0);
    fields.u16(set.position);
    fields.moment(set.started);
    block.finish();
    emit_stream(out, Id::WLES, &end.store_list());
    emit_check_stream(out, begin);
    emit_pad_stream(out, family.block_bytes.into(), 0);
}
