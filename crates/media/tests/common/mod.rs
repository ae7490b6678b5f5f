//! Small families with fixed identities and dates, for the tests of this crate.

use windlass_base::{Digest, Guid, Lsn, blake3, checksum, digest};
use windlass_media::{
    ChunkHeader, ChunkKind, DatabaseFile, FORMAT_VERSION, FamilyReader, FamilyWriter, MediaHeader,
    Run, SetConfiguration, SetType, TAG_BYTES, chunk_mix,
};

pub(crate) fn guid(last: u8) -> Guid {
    let mut stored = [0x5A; 16];
    stored[15] = last;
    Guid::from_stored(stored)
}

/// A chunk to write: its length, and the alignment of its payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestChunk {
    codec: u8,
    stored_bytes: u32,
    alignment: u32,
}

impl TestChunk {
    pub(crate) fn plain(bytes: u32, alignment: u32) -> Self {
        Self {
            codec: 0,
            stored_bytes: bytes,
            alignment,
        }
    }

    pub(crate) fn compressed(bytes: u32) -> Self {
        Self {
            codec: 2,
            stored_bytes: bytes,
            alignment: 4,
        }
    }

    /// The payload of chunk `ordinal`.
    pub(crate) fn payload(self, ordinal: u64) -> Vec<u8> {
        (0..u64::from(self.stored_bytes))
            .map(|at| (at * 7 + ordinal + 1) as u8)
            .collect()
    }

    pub(crate) fn header(self, ordinal: u64, family: u16, set_guid: Guid) -> ChunkHeader {
        let payload = self.payload(ordinal);
        let raw_bytes = if self.codec == 0 {
            self.stored_bytes
        } else {
            self.stored_bytes * 3
        };
        let (first, second) = (raw_bytes / 2, raw_bytes - raw_bytes / 2);
        let offset = ordinal << 20;
        let mut runs = vec![
            Run {
                offset,
                bytes: first,
            },
            Run {
                offset: offset + 65536,
                bytes: second,
            },
        ];
        runs.retain(|run| run.bytes > 0);
        let digests: Vec<Digest> = runs
            .iter()
            .map(|run| digest(&run.offset.to_le_bytes()))
            .collect();
        let raw_checksum = if self.codec == 0 {
            checksum(&payload)
        } else {
            ordinal ^ 0x1234_5678_9ABC_DEF0
        };
        ChunkHeader {
            kind: ChunkKind::Data,
            codec: self.codec,
            filter: u16::from(self.codec != 0),
            file_id: 1,
            family,
            set_guid,
            ordinal,
            raw_bytes,
            stored_bytes: self.stored_bytes,
            raw_checksum,
            stored_checksum: checksum(&payload),
            runs,
            digests,
            tag: None,
            payload_digest: None,
        }
    }
}

/// Builds a family set by set.
pub(crate) struct FamilyBuilder {
    pub(crate) bytes: Vec<u8>,
    pub(crate) header: MediaHeader,
    writer: FamilyWriter,
    name: String,
    description: String,
    sets: u16,
    pub(crate) is_encrypted: bool,
    pub(crate) is_signed: bool,
}

impl FamilyBuilder {
    pub(crate) fn new(block_bytes: u32) -> Self {
        Self::with_names(block_bytes, "set name", "set description")
    }

    pub(crate) fn with_names(block_bytes: u32, name: &str, description: &str) -> Self {
        let header = MediaHeader {
            format_version: FORMAT_VERSION,
            media_set_guid: guid(1),
            family_count: 2,
            family_number: 2,
            mirror_count: 1,
            block_bytes,
            media_family_id: 0x1234_5678,
            created: "2026-11-20 21:00:00".parse().ok(),
            media_name: "media \u{e9}".to_owned(),
            media_description: "media description".to_owned(),
            software_version: "0.1.0".to_owned(),
        };
        let (writer, bytes) = FamilyWriter::format(&header).unwrap();
        Self {
            bytes,
            header,
            writer,
            name: name.to_owned(),
            description: description.to_owned(),
            sets: 0,
            is_encrypted: false,
            is_signed: false,
        }
    }

    /// Continues after set `sets`, as a later backup does; truncates what follows it.
    pub(crate) fn reopen(&mut self, sets: u16) {
        let listing = FamilyReader::open(&self.bytes.as_slice()).unwrap().0.list();
        let position = listing.append_position(sets);
        self.bytes.truncate(position.offset as usize);
        self.sets = position.sets;
        self.writer = FamilyWriter::append_after(&self.header, position);
    }

    pub(crate) fn configuration(&self, position: u16) -> SetConfiguration {
        SetConfiguration {
            set_guid: guid(100 + position as u8),
            position,
            set_type: if position == 1 {
                SetType::Full
            } else {
                SetType::Differential
            },
            name: self.name.clone(),
            description: self.description.clone(),
            user: "user".to_owned(),
            server: "server".to_owned(),
            machine: "machine".to_owned(),
            database: "database".to_owned(),
            started: "2026-11-20 21:00:01".parse().ok(),
            time_zone: -20,
            checkpoint_lsn: Lsn {
                vlf: 1,
                block: 2,
                slot: 3,
            },
            family_guid: guid(2),
            key_block: vec![0xEE; if self.is_encrypted { 99 } else { 0 }],
            files: vec![DatabaseFile {
                file_id: 1,
                logical_name: "database".to_owned(),
                physical_name: "/data/database.db".to_owned(),
                size_bytes: 1 << 20,
                page_bytes: 4096,
                ..DatabaseFile::default()
            }],
            ..SetConfiguration::default()
        }
    }

    /// Adds a whole set.
    pub(crate) fn set(&mut self, chunks: &[TestChunk]) {
        let end = self.set_without_end(chunks);
        self.bytes.extend(end);
        let end = self.writer.end_set().unwrap();
        self.bytes.extend(end);
        self.sets += 1;
    }

    /// Adds a set up to its last chunk; returns what ends the data.
    pub(crate) fn set_without_end(&mut self, chunks: &[TestChunk]) -> Vec<u8> {
        let mut set = self.configuration(self.sets + 1);
        let start = self.writer.begin_set(&set).unwrap();
        self.bytes.extend(start);
        for (ordinal, chunk) in (0..).zip(chunks) {
            let mut header = chunk.header(ordinal, self.header.family_number, set.set_guid);
            header.tag = self.is_encrypted.then_some([0xA7; TAG_BYTES]);
            header.payload_digest = self.is_signed.then(|| blake3(&chunk.payload(ordinal)));
            self.writer
                .chunk_header(&header, chunk.alignment, &mut self.bytes)
                .unwrap();
            assert_eq!(
                self.bytes.len() % chunk.alignment as usize,
                0,
                "payload is aligned"
            );
            self.bytes.extend(chunk.payload(ordinal));
            self.writer.chunk_written(&mut self.bytes);
            set.chunk_count += 1;
            set.stored_bytes += u64::from(header.stored_bytes);
            set.backup_bytes += u64::from(header.raw_bytes);
            set.set_checksum = set
                .set_checksum
                .wrapping_add(chunk_mix(ordinal, header.raw_checksum));
        }
        set.binding = self
            .header
            .binding(&self.configuration(set.position))
            .unwrap();
        set.is_final = true;
        if self.is_encrypted {
            set.authentication = vec![0xAA; 32];
        }
        if self.is_signed {
            // Of the other family nothing is known here.
            set.chunk_headers = [[0x33; 32], self.writer.chunk_headers().unwrap()].concat();
            set.signature = [&[1][..], &[0x5C; 96]].concat();
        }
        set.finished = "2026-11-20 21:00:02".parse().ok();
        self.writer.end_of_data(&set).unwrap()
    }
}
