//! Crafted media with correct checksums and arbitrary content, for tests and fuzzers: what an
//! attacker who can write files can produce without a key. The program itself does not use this.
//!
//! ```
//! use windlass_media::craft::{Medium, Set};
//!
//! // A full backup that lacks its second chunk. All counts and checksums are correct.
//! let mut set = Set::full("shop", &[7; 300_000]);
//! set.chunks.remove(1);
//! let bytes = Medium::new().with(&set).bytes();
//! # assert_eq!(windlass_media::craft::sets(&bytes)[0].chunk_count, 4);
//! ```
//!
//! | goal | how |
//! |---|---|
//! | a missing, duplicated or overlapping chunk | editing [`Set::chunks`] |
//! | a forged differential based on any full backup, even an encrypted one | [`Set::differential_upon`] one of [`sets`] |
//! | hostile names and paths | editing [`Set::configuration`]: `database`, `name`, `files[0].logical_name`, `.physical_name` |
//! | values that do not match the chunks | [`Set::ending`], which edits the final configuration last |
//! | several stripes, one missing | [`Medium::striped`], [`Chunk::family`], [`Medium::families`] |
//! | sets that overlap; sets with very many files | [`overlapping_sets`], [`crowded_sets`] |
//! | any edit of finished media | change the bytes, then call [`repair`] to correct all checksums |

use std::cell::Cell;

use windlass_base::{EXTENT_BYTES, Guid, Lsn, checksum, digest};

use crate::chunk::{ChunkHeader, ChunkKind, Run, chunk_mix};
use crate::configuration::{DatabaseFile, SetConfiguration, SetType};
use crate::cursor::Emission;
use crate::error::ReadError;
use crate::filemark::{Filemark, capacity};
use crate::header::{FORMAT_VERSION, MediaHeader};
use crate::held::{HELD_BYTES_MAX, Held};
use crate::mtf::{BlockBuilder, Id, StreamHeader};
use crate::reader::FamilyReader;
use crate::record::LIST_BYTES_MAX;
use crate::streams::ReadAt;
use crate::writer::FamilyWriter;

/// Bytes of the database in each chunk made by [`Set::full`].
pub const FRAME_BYTES: usize = EXTENT_BYTES;

const BLOCK_BYTES: u32 = 512;

/// An uncompressed range of a database file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Media family of the chunk, from 1.
    pub family: u16,
    /// Database file.
    pub file_id: u16,
    /// Whether it belongs to the log.
    pub is_log: bool,
    /// Offset in the file.
    pub offset: u64,
    pub bytes: Vec<u8>,
}

impl Chunk {
    /// Pages of the first data file, on the first family.
    pub fn new(offset: u64, bytes: &[u8]) -> Self {
        Self {
            family: 1,
            file_id: 1,
            is_log: false,
            offset,
            bytes: bytes.to_vec(),
        }
    }

    fn header(&self, ordinal: u64, set_guid: Guid) -> ChunkHeader {
        let bytes = self.bytes.len() as u32;
        let sum = checksum(&self.bytes);
        ChunkHeader {
            kind: if self.is_log {
                ChunkKind::Log
            } else {
                ChunkKind::Data
            },
            codec: 0,
            filter: 0,
            file_id: self.file_id,
            family: self.family,
            set_guid,
            ordinal,
            raw_bytes: bytes,
            stored_bytes: bytes,
            raw_checksum: sum,
            stored_checksum: sum,
            runs: vec![Run {
                offset: self.offset,
                bytes,
            }],
            digests: self.bytes.chunks(EXTENT_BYTES).map(digest).collect(),
            tag: None,
            payload_digest: None,
        }
    }
}

/// A backup set to write.
#[derive(Debug, Clone)]
pub struct Set {
    /// The configuration at the start. The final one gets totals that match the chunks.
    pub configuration: SetConfiguration,
    /// Its chunks, in the order of the ordinals.
    pub chunks: Vec<Chunk>,
    /// Edits the final configuration before it is written.
    pub ending: fn(&mut SetConfiguration),
}

impl Set {
    /// A full backup of a database with one file.
    pub fn full(database: &str, content: &[u8]) -> Self {
        let file = DatabaseFile {
            file_id: 1,
            logical_name: database.to_owned(),
            physical_name: format!("/data/{database}.db"),
            size_bytes: content.len() as u64,
            page_bytes: 4096,
            file_guid: Guid::random(),
            ..DatabaseFile::default()
        };
        let checkpoint_lsn = Lsn {
            vlf: 1,
            block: 16,
            slot: 1,
        };
        let configuration = SetConfiguration {
            set_guid: Guid::random(),
            database: database.to_owned(),
            started: "2026-11-20 21:00:00".parse().ok(),
            frame_bytes: FRAME_BYTES as u32,
            page_bytes: 4096,
            checkpoint_lsn,
            first_lsn: checkpoint_lsn,
            last_lsn: checkpoint_lsn,
            family_guid: Guid::random(),
            database_guid: Guid::random(),
            recovery_model: "SIMPLE".to_owned(),
            files: vec![file],
            ..SetConfiguration::default()
        };
        let frames = (0..).step_by(FRAME_BYTES).zip(content.chunks(FRAME_BYTES));
        Self {
            configuration,
            chunks: frames
                .map(|(offset, bytes)| Chunk::new(offset, bytes))
                .collect(),
            ending: |_| {},
        }
    }

    /// A differential that matches a full backup in everything its headers say, and is never
    /// encrypted.
    pub fn differential_upon(full: &SetConfiguration, chunks: Vec<Chunk>) -> Self {
        let mut configuration = SetConfiguration {
            set_guid: Guid::random(),
            set_type: SetType::Differential,
            is_final: false,
            is_copy_only: false,
            differential_base_guid: full.set_guid,
            differential_base_lsn: full.checkpoint_lsn,
            database_backup_lsn: full.checkpoint_lsn,
            checkpoint_lsn: Lsn {
                block: full.checkpoint_lsn.block + 1,
                ..full.checkpoint_lsn
            },
            key_block: Vec::new(),
            authentication: Vec::new(),
            chunk_headers: Vec::new(),
            signature: Vec::new(),
            ..full.clone()
        };
        for file in &mut configuration.files {
            file.differential_base_guid = full.set_guid;
            file.differential_base_lsn = full.checkpoint_lsn;
        }
        Self {
            configuration,
            chunks,
            ending: |_| {},
        }
    }

    /// The extents of a file that are in the chunks, in the stored form of a differential.
    fn held(&self, file_id: u16) -> Vec<u8> {
        let extent = EXTENT_BYTES as u64;
        let own = self.chunks.iter().filter(|chunk| chunk.file_id == file_id);
        let mut extents: Vec<u64> = own
            .flat_map(|chunk| {
                let end = chunk.offset.saturating_add(chunk.bytes.len() as u64);
                chunk.offset / extent..end.div_ceil(extent)
            })
            .collect();
        extents.sort_unstable();
        extents.dedup();
        let runs: Vec<_> = extents
            .chunk_by(|first, second| first + 1 == *second)
            .filter_map(|run| Some(*run.first()?..*run.last()? + 1))
            .collect();
        Held::store(runs.into_iter(), HELD_BYTES_MAX)
    }

    /// The configuration at the end.
    fn finished(&self, header: &MediaHeader) -> SetConfiguration {
        let mut set = self.configuration.clone();
        set.is_final = true;
        set.binding = header.binding(&self.configuration).unwrap_or_default();
        set.finished = set.finished.or(set.started);
        set.chunk_count = self.chunks.len() as u64;
        set.set_checksum = (0..)
            .zip(&self.chunks)
            .fold(0, |sum: u64, (ordinal, chunk)| {
                sum.wrapping_add(chunk_mix(ordinal, checksum(&chunk.bytes)))
            });
        let bytes = |chunks: &mut dyn Iterator<Item = &Chunk>| -> u64 {
            chunks.map(|chunk| chunk.bytes.len() as u64).sum()
        };
        set.stored_bytes = bytes(&mut self.chunks.iter());
        set.backup_bytes = set.stored_bytes;
        for file in &mut set.files {
            let mut own = self
                .chunks
                .iter()
                .filter(|chunk| chunk.file_id == file.file_id);
            file.backup_bytes = bytes(&mut own);
            if set.set_type == SetType::Differential && !file.is_log {
                file.held = self.held(file.file_id);
            }
        }
        (self.ending)(&mut set);
        set
    }
}

/// A family that counts the bytes read.
#[derive(Debug)]
pub struct Counted<'a> {
    bytes: &'a [u8],
    /// Bytes so far.
    pub read: Cell<u64>,
}

impl<'a> Counted<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            read: Cell::new(0),
        }
    }
}

impl ReadAt for Counted<'_> {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.read.set(self.read.get() + buffer.len() as u64);
        self.bytes.read_at(offset, buffer)
    }
}

/// A media set under construction.
#[derive(Debug)]
pub struct Medium {
    header: MediaHeader,
    families: Vec<(Vec<u8>, FamilyWriter)>,
    sets: u16,
}

impl Medium {
    /// A media set with one family.
    pub fn new() -> Self {
        Self::striped(1)
    }

    /// A media set with several families.
    pub fn striped(family_count: u16) -> Self {
        Self::begin(&MediaHeader {
            family_count,
            media_family_id: 7,
            ..header()
        })
    }

    /// A media set with this header on each family, except for the family's number.
    pub fn begin(header: &MediaHeader) -> Self {
        let family = |family_number| {
            let header = MediaHeader {
                family_number,
                ..header.clone()
            };
            // A header that cannot be written produces no family.
            FamilyWriter::format(&header)
                .ok()
                .map(|(writer, bytes)| (bytes, writer))
        };
        Self {
            header: header.clone(),
            families: (1..=header.family_count).filter_map(family).collect(),
            sets: 0,
        }
    }

    /// Appends after the complete sets of existing families, in the order of their numbers.
    pub fn behind(families: &[Vec<u8>]) -> Self {
        let mut sets = 0;
        let mut header = header();
        let go_on = |bytes: &Vec<u8>| {
            let family = bytes.as_slice();
            let (reader, own) = FamilyReader::open(&family).ok()?;
            let position = reader.list().append_position(u16::MAX);
            sets = position.sets;
            let kept = family.get(..position.offset as usize)?.to_vec();
            header = own;
            Some((kept, FamilyWriter::append_after(&header, position)))
        };
        let families = families.iter().filter_map(go_on).collect();
        Self {
            header,
            families,
            sets,
        }
    }

    /// Adds a set at the next position. Skips a set that the writer refuses.
    pub fn with(mut self, set: &Set) -> Self {
        let mut start = set.clone();
        start.configuration.position = self.sets + 1;
        let finished = start.finished(&self.header);
        for (number, (bytes, writer)) in (1..).zip(&mut self.families) {
            if let Ok(begun) = writer.begin_set(&start.configuration) {
                bytes.extend(begun);
            }
            for (ordinal, chunk) in (0..).zip(&start.chunks) {
                if chunk.family == number {
                    let header = chunk.header(ordinal, start.configuration.set_guid);
                    drop(writer.chunk_header(&header, 4, bytes));
                    bytes.extend(&chunk.bytes);
                    writer.chunk_written(bytes);
                }
            }
            bytes.extend(writer.end_of_data(&finished).unwrap_or_default());
            bytes.extend(writer.end_set().unwrap_or_default());
        }
        self.sets += 1;
        self
    }

    /// The families, in the order of their numbers.
    pub fn families(self) -> Vec<Vec<u8>> {
        self.families.into_iter().map(|(bytes, _)| bytes).collect()
    }

    /// The first family.
    pub fn bytes(self) -> Vec<u8> {
        self.families().into_iter().next().unwrap_or_default()
    }
}

impl Default for Medium {
    fn default() -> Self {
        Self::new()
    }
}

fn header() -> MediaHeader {
    MediaHeader {
        format_version: FORMAT_VERSION,
        media_set_guid: Guid::random(),
        family_count: 1,
        family_number: 1,
        mirror_count: 1,
        block_bytes: BLOCK_BYTES,
        software_version: "0.1.0".to_owned(),
        ..MediaHeader::default()
    }
}

/// The configurations in the headers of a family, which are never encrypted.
pub fn sets(family: &[u8]) -> Vec<SetConfiguration> {
    let Ok((reader, _)) = FamilyReader::open(&family) else {
        return Vec::new();
    };
    let sets = reader.list().sets.into_iter();
    sets.filter_map(|set| reader.configuration(&set).ok())
        .collect()
}

/// Corrects all checksums that a walk over `family` finds, except those of payloads: descriptor blocks,
/// streams, lists, chunk headers and filemarks.
pub fn repair(family: &mut [u8]) {
    crate::fuzzing::repair(family);
}

/// Binds all sets of `family` to its header and their starts again, and corrects the checksums.
pub fn rebind(family: &mut [u8]) {
    repair(family);
    let bindings: Vec<[Vec<u8>; 2]> = match FamilyReader::open(&&*family) {
        Ok((reader, header)) => {
            let sets = reader.list().sets.into_iter();
            sets.filter_map(|set| {
                let old = reader.configuration(&set).ok()?.binding;
                Some([old, reader.binding(&header, &set).ok()?])
            })
            .collect()
        }
        Err(_) => Vec::new(),
    };
    for [old, new] in bindings {
        replace(family, &old, &new);
    }
    repair(family);
}

/// Moves the dates of the only set of `family` by hours; also the end of its state, if its description has that, in
/// milliseconds since 1970.
pub fn redate(family: &mut [u8], hours: i64, ended_ms: Option<u64>) {
    let set = sets(family).remove(0);
    let minutes = i32::try_from(hours * 60).unwrap_or(0);
    for at in [set.started, set.finished].into_iter().flatten() {
        let other = at.plus_minutes(minutes);
        replace(family, &at.to_stored(), &other.to_stored());
    }
    if let Some(old) = ended_ms {
        let new = old.saturating_add_signed(hours * 3_600_000);
        replace(family, &old.to_le_bytes(), &new.to_le_bytes());
    }
    rebind(family);
}

/// Replaces bytes by others, as many, wherever they are.
pub fn replace(family: &mut [u8], old: &[u8], new: &[u8]) {
    let mut start = 0;
    while let Some(part) = family
        .get_mut(start..start + old.len())
        .filter(|_| !old.is_empty())
    {
        if part == old {
            part.copy_from_slice(new);
        }
        start += 1;
    }
}

/// A family of about `bytes` bytes whose filemarks say that a set starts in each of its blocks.
/// Each set claims 4 MB of configuration, so they overlap. Only one filemark in fifty exists, which
/// is enough to find all others.
pub fn overlapping_sets(bytes: usize) -> Vec<u8> {
    let header = header();
    let identity = header.identity();
    let Ok((_, mut content)) = FamilyWriter::format(&header) else {
        return Vec::new();
    };
    let block = BLOCK_BYTES as usize;
    let mut start = Vec::with_capacity(block);
    let mut out = Emission::new(&mut start, 0);
    BlockBuilder::new(&mut out, Id::SSET, 0, 0).finish();
    StreamHeader {
        id: Id::WLSC,
        length: LIST_BYTES_MAX,
    }
    .emit(&mut out);
    start.resize(block, 0);
    let first = (content.len() - block) as u64;
    let listed = capacity(BLOCK_BYTES);
    let count = ((bytes.saturating_sub(content.len()) / block) as u32 | 1).min(2 * 65535 + 1);
    for number in 2..=count {
        let offset = content.len() as u64;
        if number % listed as u32 != 1 && number != count {
            content.extend(&start);
            continue;
        }
        let nearest = (1..=listed as u64).map(|count| offset.saturating_sub(count * block as u64));
        let mark = Filemark {
            offset,
            number,
            earlier: nearest.take_while(|&earlier| earlier >= first).collect(),
        };
        mark.emit(&identity, &mut Emission::new(&mut content, offset));
    }
    content
}

/// A family of sets, each with as many database files as fit in its configuration.
pub fn crowded_sets(sets: u16) -> Vec<u8> {
    const FILES: u16 = 26_000;
    let mut set = Set::full("crowded", b"x");
    let files = (1..=FILES).map(|file_id| DatabaseFile {
        file_id,
        ..DatabaseFile::default()
    });
    set.configuration.files = files.collect();
    (0..sets)
        .fold(Medium::new(), |medium, _| medium.with(&set))
        .bytes()
}
