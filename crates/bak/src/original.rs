//! What a copy of a SQL Server backup set keeps of it: enough for HEADERONLY and FILELISTONLY, and to
//! put the file together again.
//!
//! The bytes are described in `docs/format/media.md`.

use windlass_base::Guid;
use windlass_codec::{Algorithm, Compression, Decoder, Encoder, FRAME_BYTES_MAX, Filter, Stored};

use crate::container::Container;
use crate::error::Damage;
use crate::fields::Fields;
use crate::listing::SetListing;
use crate::mtf::configuration::Configuration;
use crate::mtf::set::{SetHeader, machine};
use crate::outline::{Outline, Parts};

const VERSION: u8 = 1;

/// Bytes before the families.
const HEAD_BYTES: usize = 26;

/// Bytes of a family.
const FAMILY_BYTES: usize = 18;

/// Maximum number of families.
const FAMILIES_MAX: usize = 64;

/// Maximum bytes of the stored form: what a record of the media takes.
const STORED_BYTES_MAX: usize = 128 << 10;

/// The set that a copy was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    /// Its media set.
    pub media_set: Guid,
    /// The container of its first family.
    pub container: Container,
    /// Families in its media set.
    pub family_count: u16,
    /// Sets in its files.
    pub set_count: u16,
    /// The families that were copied.
    pub families: Vec<CopiedFamily>,
    pub listing: SetListing,
}

/// The part of a family that was copied with a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopiedFamily {
    /// Its number, from 1.
    pub number: u16,
    /// Offset in the plain file.
    pub offset: u64,
    pub bytes: u64,
}

impl CopiedFamily {
    /// Offset of the first byte after it; `None` if there is no such offset.
    pub fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.bytes)
    }
}

impl Original {
    /// The stored form of the set at `index` of the outlines of its families.
    ///
    /// # Errors
    /// The configuration is too long: there are too many files.
    pub fn store(outlines: &[Outline], index: usize) -> Result<Vec<u8>, Damage> {
        let Some((first, set)) = outlines
            .first()
            .and_then(|first| Some((first, first.sets.get(index)?)))
        else {
            return Err(impossible(index));
        };
        let media = first.media.as_ref();
        let mut stored = vec![
            VERSION,
            matches!(first.container, Container::Compressed).into(),
        ];
        stored.extend(media.map_or(Guid::NIL, |media| media.media_set).to_stored());
        stored.extend(media.map_or(1, |media| media.family_count).to_le_bytes());
        stored.extend((first.sets.len() as u16).to_le_bytes());
        stored.extend(u16::from(set.listing.is_complete).to_le_bytes());
        stored.extend((outlines.len() as u16).to_le_bytes());
        for outline in outlines {
            let family = family(outline, index).ok_or_else(|| impossible(index))?;
            stored.extend(family.number.to_le_bytes());
            stored.extend(family.offset.to_le_bytes());
            stored.extend(family.bytes.to_le_bytes());
        }
        let mut parts = Vec::new();
        let Parts {
            set,
            volume,
            start,
            end,
        } = &set.parts;
        for part in [set, volume, start, end] {
            parts.extend((part.len() as u32).to_le_bytes());
            parts.extend(part);
        }
        stored.extend((parts.len() as u32).to_le_bytes());
        let (filter, payload) = compressed(&parts).ok_or_else(|| impossible(parts.len()))?;
        stored.extend(filter.id().to_le_bytes());
        stored.extend(payload);
        match stored.len() <= STORED_BYTES_MAX {
            true => Ok(stored),
            false => Err(impossible(stored.len())),
        }
    }

    /// Reads the stored form; `None` if it is damaged.
    pub fn load(stored: &[u8]) -> Option<Self> {
        let fields = Fields(stored);
        let families = usize::from(fields.u16(24));
        let parts_at = HEAD_BYTES + families * FAMILY_BYTES;
        if fields.u8(0) != VERSION
            || !(1..=FAMILIES_MAX).contains(&families)
            || stored.len() < parts_at + 6
        {
            return None;
        }
        let family = |index: usize| {
            let at = HEAD_BYTES + index * FAMILY_BYTES;
            CopiedFamily {
                number: fields.u16(at),
                offset: fields.u64(at + 2),
                bytes: fields.u64(at + 10),
            }
        };
        let mut parts = vec![0; (fields.u32(parts_at) as usize).min(FRAME_BYTES_MAX)];
        let filter = Filter::from_id(fields.u16(parts_at + 4))?;
        let payload = stored.get(parts_at + 6..)?;
        let mut decoder = Decoder::new();
        decoder
            .decode(Algorithm::Zstd, filter, payload, &mut parts)
            .ok()?;
        Some(Self {
            container: match fields.u8(1) {
                0 => Container::Tape,
                _ => Container::Compressed,
            },
            media_set: fields.guid(2),
            family_count: fields.u16(18),
            set_count: fields.u16(20),
            families: (0..families).map(family).collect(),
            listing: listing(&parts, fields.u16(22) != 0),
        })
    }
}

/// The part of a family that is copied with the set at `index`: with the first set, everything before
/// it.
fn family(outline: &Outline, index: usize) -> Option<CopiedFamily> {
    let set = outline.sets.get(index)?;
    let offset = match index {
        0 => 0,
        _ => set.begins,
    };
    let end = outline.sets.get(index + 1);
    let end = end.map_or(outline.stream_bytes, |next| next.begins);
    Some(CopiedFamily {
        number: outline
            .media
            .as_ref()
            .map_or(1, |media| media.family_number),
        offset,
        bytes: end.checked_sub(offset)?,
    })
}

fn compressed(parts: &[u8]) -> Option<(Filter, Vec<u8>)> {
    let mut encoder = Encoder::new(Compression::ZSTD_LOW, parts.len()).ok()?;
    let mut payload = vec![0; parts.len()];
    match encoder.encode(parts, &mut payload).ok()? {
        Stored::Compressed { bytes, filter } => {
            payload.truncate(bytes);
            Some((filter, payload))
        }
        // Configurations are mostly zeros.
        Stored::Plain => None,
    }
}

fn listing(parts: &[u8], is_complete: bool) -> SetListing {
    let mut rest = parts;
    let mut part = || {
        let bytes = Fields(rest).u32(0) as usize;
        let from = rest.get(4..).unwrap_or_default();
        let (part, behind) = from.split_at_checked(bytes).unwrap_or((from, &[]));
        rest = behind;
        part
    };
    let (set, volume, start, end) = (part(), part(), part(), part());
    SetListing {
        place: crate::Place::default(),
        header: SetHeader::read(set),
        machine: machine(volume),
        start: Configuration::read(start).ok(),
        end: Configuration::read(end).ok(),
        logs: Vec::new(),
        is_complete,
    }
}

fn impossible(found: usize) -> Damage {
    Damage::Length {
        what: "the description of the set",
        found: found as u64,
    }
}
