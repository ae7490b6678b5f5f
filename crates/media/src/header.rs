//! The media header: the `TAPE` block with its `WLMS` stream.

use windlass_base::{Guid, Moment, hash};

use crate::configuration::SetConfiguration;
use crate::cursor::{Cursor, Emission, align_up};
use crate::error::MediaError;
use crate::mtf::{
    BlockBuilder, BlockHeader, FILEMARK_UNIT_BYTES, Id, LOGICAL_BLOCK_BYTES, MTF_MAJOR_VERSION,
    emit_pad_stream, emit_stream,
};
use crate::record::{self, Records, records};
use crate::streams::{ReadAt, Streams, emit_check_stream, read_exact};

/// Newest version of Windlass's data in tape format.
pub const FORMAT_VERSION: u16 = 1;

/// Windlass's software vendor id. The list in the specification is closed, so this is an unused number:
/// "WL" as two characters.
pub const VENDOR_ID: u16 = u16::from_le_bytes(*b"WL");

/// Software name in the media header.
pub const SOFTWARE_NAME: &str = "Windlass";

/// Minimum and maximum block size.
pub const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 512..=65536;

/// Maximum number of families in a media set.
pub const FAMILIES_MAX: u16 = 64;

/// Attribute of the media header: filemarks are `SFMB` blocks.
const TAPE_SOFT_FILEMARK: u32 = 1;

/// Tag of the format version, fixed in all versions of the format.
const FORMAT_VERSION_TAG: u16 = 0x8001;

/// First bytes of SQL Server's compressed container.
const SQL_SERVER_CONTAINER: &[u8; 8] = b"MSSQLBAK";

/// Number of bytes that [`begins_medium`] and [`begins_backup`] examine.
pub const FIRST_BYTES: usize = SQL_SERVER_CONTAINER.len();

/// Whether these bytes begin a medium in Microsoft Tape Format, of whichever program.
pub fn begins_medium(first: &[u8]) -> bool {
    first.starts_with(&Id::TAPE.0)
}

/// The same, or SQL Server's container of one.
pub fn begins_backup(first: &[u8]) -> bool {
    begins_medium(first) || first.starts_with(SQL_SERVER_CONTAINER)
}

records! {
    /// What a media family says about itself and its media set.
    MediaHeader, "media header" {
        /// Version of the format with which the family was created.
        0x8001 format_version: u16,
        /// Identity of the media set.
        0x8002 media_set_guid: Guid,
        /// Families in the media set.
        0x8003 family_count: u16,
        /// Number of this family, from 1.
        0x8004 family_number: u16,
        /// Number of copies of each family, including this one.
        0x8005 mirror_count: u8,
        /// Unit of the layout of descriptor blocks.
        0x8006 block_bytes: u32,
        /// Random number of this family, for tape libraries.
        0x07 media_family_id: u32,
        /// When the media set was created.
        0x08 created: Option<Moment>,
        /// `MEDIANAME`.
        0x09 media_name: String,
        /// `MEDIADESCRIPTION`.
        0x0A media_description: String,
        /// Version of the program that created it.
        0x0B software_version: String,
    }
}

/// Distinguishes a family of a media set from all others, and describes its layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FamilyIdentity {
    pub(crate) media_set_guid: Guid,
    pub(crate) number: u16,
    pub(crate) block_bytes: u32,
}

impl MediaHeader {
    pub(crate) fn identity(&self) -> FamilyIdentity {
        FamilyIdentity {
            media_set_guid: self.media_set_guid,
            number: self.family_number,
            block_bytes: self.block_bytes,
        }
    }

    /// The binding of a set's final configuration: a digest of the media set, as far as it is
    /// common to all families, and of the stored form of the set's start.
    pub(crate) fn binding_of(&self, start: &[u8]) -> Vec<u8> {
        let shared = Self {
            family_number: 0,
            media_family_id: 0,
            ..self.clone()
        };
        hash(&[&shared.store_list(), start]).to_vec()
    }

    /// The [`binding`](SetConfiguration::binding) of a set that starts with `start`.
    ///
    /// # Errors
    /// If the configuration is longer than readers accept.
    pub fn binding(&self, start: &SetConfiguration) -> Result<Vec<u8>, MediaError> {
        Ok(self.binding_of(&start.emit()?))
    }

    /// Appends the `TAPE` block, padded to a multiple of the block size.
    pub(crate) fn emit(&self, out: &mut Emission<'_>) -> Result<(), MediaError> {
        check_block_bytes(self.block_bytes)?;
        let begin = out.offset();
        let mut block = BlockBuilder::new(out, Id::TAPE, 0, 0);
        let fields = block.fields();
        fields.u32(self.media_family_id);
        fields.u32(TAPE_SOFT_FILEMARK);
        fields.u16(1);
        fields.u16(0);
        fields.u16((self.block_bytes / FILEMARK_UNIT_BYTES) as u16);
        fields.u16(0);
        block.text(&self.media_name);
        block.text(&self.media_description);
        block.text("");
        block.text(SOFTWARE_NAME);
        let fields = block.fields();
        fields.u16(LOGICAL_BLOCK_BYTES as u16);
        fields.u16(VENDOR_ID);
        fields.moment(self.created);
        fields.u8(MTF_MAJOR_VERSION);
        block.finish();
        emit_stream(out, Id::WLMS, &self.store_list());
        emit_check_stream(out, begin);
        emit_pad_stream(out, self.block_bytes.into(), begin);
        Ok(())
    }

    /// Reads the media header at the start of a family; also returns its end.
    pub(crate) fn read(family: &dyn ReadAt) -> Result<(Self, u64), MediaError> {
        let filemark_bytes = recognise(family)?;
        let mut streams = Streams::open(family, 0, Id::TAPE)?;
        let list = streams.expect(Id::WLMS)?;
        let bytes = streams.read_data(&list)?;
        check_format_version(&bytes, list.data_offset)?;
        let header = Self::load_list(&bytes, list.data_offset)?;
        check_block_bytes(header.block_bytes)?;
        if header.block_bytes != filemark_bytes {
            return Err(MediaError::Damaged {
                offset: list.data_offset,
                what: "block size",
                expected: filemark_bytes.into(),
                found: header.block_bytes.into(),
            });
        }
        let families = 1..=FAMILIES_MAX;
        if !families.contains(&header.family_count)
            || !(1..=header.family_count).contains(&header.family_number)
        {
            let (what, offset) = ("family number", list.data_offset);
            let (expected, found) = (header.family_count.into(), header.family_number.into());
            return Err(MediaError::Damaged {
                offset,
                what,
                expected,
                found,
            });
        }
        streams.check_stream()?;
        let end = streams.pad()?;
        let aligned = align_up(end, header.block_bytes.into());
        if aligned != end {
            let what = "end of the media header";
            return Err(MediaError::Damaged {
                offset: end,
                what,
                expected: aligned,
                found: end,
            });
        }
        Ok((header, end))
    }
}

/// Refuses media of a newer format first, because anything else in the header may have changed.
fn check_format_version(list: &[u8], offset: u64) -> Result<(), MediaError> {
    let records = record::open(list, offset, "media header")?;
    let found = record::find(records, FORMAT_VERSION_TAG).unwrap_or(0);
    if found == 0 || found > FORMAT_VERSION {
        let supported = FORMAT_VERSION;
        return Err(MediaError::FormatVersion { found, supported });
    }
    Ok(())
}

/// Distinguishes Windlass media from everything else on a device; returns the length of their filemarks.
fn recognise(family: &dyn ReadAt) -> Result<u32, MediaError> {
    let mut start = [0; 94];
    let present = family.len().min(start.len() as u64) as usize;
    let start = start.get_mut(..present).unwrap_or_default();
    family.read_at(0, start)?;
    if start.starts_with(SQL_SERVER_CONTAINER) {
        return Err(MediaError::SqlServerMedia { compressed: true });
    }
    if !start.starts_with(&Id::TAPE.0) {
        return Err(MediaError::NotMtf {
            found: start.iter().take(4).copied().collect(),
        });
    }
    let header = BlockHeader::parse(start, 0)?;
    let mut fields = Cursor::new(start.get(52..).unwrap_or_default(), 52, "media header");
    fields.take(12)?;
    let filemark_units = u32::from(fields.u16()?);
    fields.take(14)?;
    let (name_bytes, name_offset) = (fields.u16()?, fields.u16()?);
    fields.take(2)?;
    let vendor = fields.u16()?;
    fields.take(5)?;
    let version = fields.u8()?;
    if version != MTF_MAJOR_VERSION {
        return Err(MediaError::MtfVersion {
            found: version,
            supported: MTF_MAJOR_VERSION,
        });
    }
    let mut stream = [0; 4];
    let at = header.first_stream.into();
    read_exact(family, at, &mut stream, "first stream of the media header")?;
    if stream == Id::WLMS.0 || vendor == VENDOR_ID {
        return Ok(filemark_units * FILEMARK_UNIT_BYTES);
    }
    let mut name = vec![0; usize::from(name_bytes.min(256))];
    read_exact(family, u64::from(name_offset), &mut name, "software name")?;
    let units = name.as_chunks::<2>().0.iter();
    let units: Vec<u16> = units.map(|unit| u16::from_le_bytes(*unit)).collect();
    let software = String::from_utf16_lossy(&units);
    let software = software.trim_end_matches('\0').to_owned();
    // SQL Server's media start with a RAID stream.
    if stream == Id::RAID.0 || software == "Microsoft SQL Server" {
        return Err(MediaError::SqlServerMedia { compressed: false });
    }
    Err(MediaError::ForeignMtf { software, vendor })
}

/// Checks that tape format and direct I/O support the block size.
pub(crate) fn check_block_bytes(found: u32) -> Result<(), MediaError> {
    if BLOCK_BYTES.contains(&found) && found.is_power_of_two() {
        Ok(())
    } else {
        Err(MediaError::BlockSize { found })
    }
}
