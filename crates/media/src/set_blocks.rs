//! The descriptor blocks of a backup set: `SSET`, `VOLB`, `DIRB`, `FILE` at its start, `ESET` at its end.
//!
//! All of them standard: a generic reader sees a data set with one volume, one directory and one
//! file whose streams it does not know.

use windlass_base::Guid;

use crate::configuration::{SetConfiguration, SetType};
use crate::cursor::Emission;
use crate::error::MediaError;
use crate::header::VENDOR_ID;
use crate::mtf::{BlockBuilder, Id, LOGICAL_BLOCK_BYTES, emit_pad_stream, emit_stream};
use crate::record::records;
use crate::streams::emit_check_stream;

/// MTF's kinds of data set, as bits of the set's attributes.
const SSET_COPY: u32 = 1 << 1;
const SSET_NORMAL: u32 = 1 << 2;
const SSET_DIFFERENTIAL: u32 = 1 << 3;

/// Version of the media catalogue that MTF asks for.
const CATALOG_VERSION: u8 = 2;

records! {
    /// The end of a set on one family. Offsets count from the set's first block.
    SetEnd, "set end" {
        /// Identity of the set.
        0x8001 set_guid: Guid,
        /// Position on the media.
        0x8002 position: u16,
        /// The family.
        0x8003 family_number: u16,
        /// Family offset of the set's first block.
        0x8004 set_offset: u64,
        /// Where the final configuration's stream header is.
        0x8005 configuration_offset: u64,
        /// Where the last index segment's stream header is; 0 when the family has no chunk.
        0x8006 index_offset: u64,
        /// Chunks on this family.
        0x8007 chunk_count: u64,
        /// Octets of their payloads.
        0x8008 stored_bytes: u64,
    }
}

fn attributes(set: &SetConfiguration) -> u32 {
    match set.set_type {
        SetType::Differential => SSET_DIFFERENTIAL,
        _ if set.is_copy_only => SSET_NORMAL | SSET_COPY,
        _ => SSET_NORMAL,
    }
}

/// Appends everything from the set's first block to the place where the first chunk goes.
pub(crate) fn emit_set_start(
    set: &SetConfiguration,
    out: &mut Emission<'_>,
) -> Result<(), MediaError> {
    let begin = out.offset();
    emit_set(set, out)?;
    emit_volume(set, begin, out);
    emit_directory(set, begin, out);
    emit_file(set, begin, out);
    Ok(())
}

fn emit_set(set: &SetConfiguration, out: &mut Emission<'_>) -> Result<(), MediaError> {
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
    fields.u64(begin);
    fields.moment(set.started);
    fields.u8(set.software_major);
    fields.u8(set.software_minor);
    fields.bytes(&set.time_zone.to_le_bytes());
    fields.u8(0);
    fields.u8(CATALOG_VERSION);
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
    let mut block = BlockBuilder::new(out, Id::VOLB, address, 1);
    block.fields().u32(0);
    block.text("C:");
    block.text("");
    block.text(&set.machine);
    block.fields().moment(set.started);
    block.finish();
    emit_check_stream(out, begin);
    emit_pad_stream(out, LOGICAL_BLOCK_BYTES, set_begin);
}

fn emit_directory(set: &SetConfiguration, set_begin: u64, out: &mut Emission<'_>) {
    let begin = out.offset();
    let address = logical_address(out, set_begin);
    let mut block = BlockBuilder::new(out, Id::DIRB, address, 2);
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
    let mut block = BlockBuilder::new(out, Id::FILE, address, 3);
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
pub(crate) fn emit_set_end(
    end: &SetEnd,
    set: &SetConfiguration,
    block_bytes: u32,
    out: &mut Emission<'_>,
) {
    let begin = out.offset();
    let mut block = BlockBuilder::new(out, Id::ESET, 0, 0);
    let fields = block.fields();
    fields.u32(attributes(set));
    fields.u32(0);
    fields.u64(0);
    fields.u64(0);
    fields.u16(1);
    fields.u16(set.position);
    fields.moment(set.finished);
    block.finish();
    emit_stream(out, Id::WLES, &end.store_list());
    emit_check_stream(out, begin);
    emit_pad_stream(out, block_bytes.into(), 0);
}
