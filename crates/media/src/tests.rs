//! Whole families: what was written is read back, and every change is detected.

use windlass_base::{Digest, Guid, checksum};

use crate::IndexEntry;
use crate::record::Records;
use crate::{
    ChunkHeader, ChunkKind, DatabaseFile, FamilyReader, FamilyWriter, MediaError, MediaHeader, Run,
    SetConfiguration, SetEnd, SetType, chunk_mix,
};

const BLOCK_BYTES: u32 = 512;

fn guid(number: u8) -> Guid {
    Guid::from_stored([number; 16])
}

fn media_header() -> MediaHeader {
    MediaHeader {
        format_version: 1,
        media_set_guid: guid(1),
        family_count: 1,
        family_number: 1,
        mirror_count: 1,
        block_bytes: BLOCK_BYTES,
        media_family_id: 0x1234_5678,
        created: "2026-11-20 12:00:00".parse().ok(),
        media_name: "nightly".to_owned(),
        media_description: "all of it".to_owned(),
        software_version: "0.1.0".to_owned(),
    }
}

fn configuration(position: u16) -> SetConfiguration {
    SetConfiguration {
        set_guid: guid(10 + position as u8),
        position,
        set_type: SetType::Full,
        name: format!("set {position}"),
        database: "app".to_owned(),
        user: "dba".to_owned(),
        started: "2026-11-20 12:00:01".parse().ok(),
        frame_bytes: 65536,
        files: vec![DatabaseFile {
            file_id: 1,
            logical_name: "app".to_owned(),
            size_bytes: 300,
            ..DatabaseFile::default()
        }],
        ..SetConfiguration::default()
    }
}

fn payload(ordinal: u64) -> Vec<u8> {
    (0..100 + ordinal * 7)
        .map(|value| (value * 31 + ordinal) as u8)
        .collect()
}

/// Appends a set of `chunks` chunks.
fn write_set(writer: &mut FamilyWriter, family: &mut Vec<u8>, position: u16, chunks: u64) {
    let mut set = configuration(position);
    family.extend(writer.begin_set(&set).unwrap());
    for ordinal in 0..chunks {
        let payload = payload(ordinal);
        let header = ChunkHeader {
            kind: ChunkKind::Data,
            codec: 0,
            filter: 0,
            file_id: 1,
            family: 1,
            set_guid: set.set_guid,
            ordinal,
            raw_bytes: payload.len() as u32,
            stored_bytes: payload.len() as u32,
            raw_checksum: checksum(&payload),
            stored_checksum: checksum(&payload),
            runs: vec![Run {
                offset: ordinal * 65536,
                bytes: payload.len() as u32,
            }],
            digests: vec![Digest([ordinal as u8; 16])],
            tag: None,
            payload_digest: None,
        };
        set.set_checksum = set
            .set_checksum
            .wrapping_add(chunk_mix(ordinal, header.raw_checksum));
        let alignment = if ordinal % 2 == 0 { 4 } else { 512 };
        writer.chunk_header(&header, alignment, family).unwrap();
        assert_eq!(family.len() as u64 % u64::from(alignment), 0);
        family.extend(payload);
        writer.chunk_written(family);
        assert_eq!(family.len() as u64, writer.offset());
    }
    set.is_final = true;
    set.chunk_count = chunks;
    family.extend(writer.end_of_data(&set).unwrap());
    family.extend(writer.end_set().unwrap());
    assert_eq!(family.len() as u64, writer.offset());
}

fn family(sets: u16, chunks: u64) -> Vec<u8> {
    let (mut writer, mut family) = FamilyWriter::format(&media_header()).unwrap();
    for position in 1..=sets {
        write_set(&mut writer, &mut family, position, chunks);
    }
    family
}

/// Everything that verification checks: header, listing, walk, payloads. Returns the number of good
/// sets.
fn verify(family: &[u8]) -> Result<usize, String> {
    let (reader, header) = FamilyReader::open(&family).map_err(|error| error.to_string())?;
    assert_eq!(header, media_header());
    let listing = reader.list();
    if let Some(trouble) = &listing.trouble {
        return Err(trouble.to_string());
    }
    for set in &listing.sets {
        let mut bad = None;
        let walked = reader.walk(set, &mut |header, offset| {
            let stored = &family[offset as usize..][..header.stored_bytes as usize];
            if checksum(stored) != header.stored_checksum {
                bad = Some(format!("payload of chunk {}", header.ordinal));
            }
            true
        });
        walked.map_err(|error| error.to_string())?;
        bad.map_or(Ok(()), Err)?;
    }
    Ok(listing.sets.len())
}

#[test]
fn sets_are_found_and_hold_what_was_written() {
    let family = family(3, 5);
    assert_eq!(family.len() % BLOCK_BYTES as usize, 0);
    assert_eq!(verify(&family), Ok(3));
    let bytes = family.as_slice();
    let (reader, _) = FamilyReader::open(&bytes).unwrap();
    let listing = reader.list();
    let names: Vec<_> = listing
        .sets
        .iter()
        .map(|set| set.configuration.name.clone())
        .collect();
    assert_eq!(names, ["set 1", "set 2", "set 3"]);
    let mut ordinals = Vec::new();
    reader
        .walk(&listing.sets[1], &mut |header, offset| {
            assert_eq!(
                bytes[offset as usize..][..header.stored_bytes as usize],
                payload(header.ordinal)
            );
            ordinals.push(header.ordinal);
            true
        })
        .unwrap();
    assert_eq!(ordinals, [0, 1, 2, 3, 4]);
}

#[test]
fn an_append_after_any_set_continues_the_family() {
    let whole = family(3, 4);
    for kept in 0..=3 {
        let bytes = whole.as_slice();
        let (reader, header) = FamilyReader::open(&bytes).unwrap();
        let position = reader.list().append_position(kept);
        let mut shorter = whole[..position.offset as usize].to_vec();
        assert_eq!(position.sets, kept);
        let mut writer = FamilyWriter::append_after(&header, position);
        write_set(&mut writer, &mut shorter, kept + 1, 2);
        assert_eq!(verify(&shorter), Ok(usize::from(kept) + 1));
    }
}

#[test]
fn many_chunks_make_several_index_segments() {
    let family = family(1, 2100);
    assert_eq!(verify(&family), Ok(1));
    let segments = family.windows(4).filter(|window| window == b"WLIX").count();
    assert_eq!(segments, 3);
}

#[test]
fn the_index_leads_to_each_chunk() {
    let bytes = family(2, 2100);
    let bytes = bytes.as_slice();
    let (reader, _) = FamilyReader::open(&bytes).unwrap();
    let listing = reader.list();
    for set in &listing.sets {
        let mut walked = Vec::new();
        let end = reader.walk(set, &mut |header, offset| {
            walked.push((header, offset));
            true
        });
        end.unwrap();
        let mut found = Vec::new();
        let indexed = reader.index(set, &mut |segment| {
            for entry in segment.entries {
                found.push(reader.chunk(set, entry.stream_offset).unwrap());
                assert_eq!(
                    IndexEntry::of(&found[found.len() - 1].0, entry.stream_offset),
                    entry
                );
            }
            true
        });
        indexed.unwrap();
        found.sort_by_key(|(header, _)| header.ordinal);
        walked.sort_by_key(|(header, _)| header.ordinal);
        assert!(found == walked, "the same chunks at the same places");
        assert!(reader.chunk(set, u64::MAX).is_err() && reader.chunk(set, 1).is_err());
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let family = family(2, 3);
    for bit in 0..family.len() * 8 {
        let mut flipped = family.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let unnoticed =
            std::panic::catch_unwind(|| verify(&flipped)).is_ok_and(|result| result.is_ok());
        assert!(!unnoticed, "bit {} of byte {:#x}", bit % 8, bit / 8);
    }
}

#[test]
fn a_cut_anywhere_leaves_the_sets_before_it() {
    let whole = family(3, 2);
    let bytes = whole.as_slice();
    let (reader, _) = FamilyReader::open(&bytes).unwrap();
    let listing = reader.list();
    let ends: Vec<u64> = (0..=3)
        .map(|sets| listing.append_position(sets).offset)
        .collect();
    for length in (ends[0]..ends[3]).step_by(7) {
        let cut = &whole[..length as usize];
        let (reader, _) = FamilyReader::open(&cut).unwrap();
        let found = reader.list();
        // A set is complete as soon as its end block is complete.
        let block = u64::from(BLOCK_BYTES);
        let complete = ends.iter().skip(1).filter(|&&end| end - block <= length);
        let complete = complete.count();
        let is_closed = ends[complete] <= length;
        assert_eq!(usize::from(found.complete_sets()), complete, "{length}");
        let has_end = found
            .sets
            .iter()
            .take(complete)
            .all(|set| set.end.is_some());
        assert!(has_end, "cut at {length}");
        assert_eq!(
            found.trouble.is_none(),
            ends.contains(&length),
            "cut at {length}"
        );
        let position = found.append_position(u16::MAX);
        let expected = if is_closed {
            ends[complete]
        } else {
            ends[complete] - block
        };
        assert_eq!(position.offset, expected, "cut at {length}");
        assert_eq!(position.needs_filemark, !is_closed);
    }
}

#[test]
fn other_bytes_are_told_apart() {
    let open = |bytes: &[u8]| FamilyReader::open(&bytes).map(drop).unwrap_err();
    assert!(matches!(open(b""), MediaError::NotMtf { .. }));
    assert!(matches!(
        open(b"SQLite format 3\0"),
        MediaError::NotMtf { .. }
    ));
    assert!(matches!(
        open(b"MSSQLBAK........"),
        MediaError::SqlServerMedia { compressed: true }
    ));
    assert!(matches!(
        open(b"TAPE"),
        MediaError::Truncated { .. } | MediaError::Damaged { .. }
    ));
    let mut newer = media_header();
    newer.format_version = 9;
    let (_, bytes) = FamilyWriter::format(&newer).unwrap();
    assert!(matches!(
        open(&bytes),
        MediaError::FormatVersion {
            found: 9,
            supported: 1
        }
    ));
}

/// A linear congruential generator: the same mutations in every run.
struct Mutations(u64);

impl Mutations {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    /// Prefers values that fields do not expect.
    fn byte(&mut self) -> u8 {
        match self.next(4) {
            0 => 0,
            1 => 0xFF,
            2 => 1 << self.next(8),
            _ => self.next(256) as u8,
        }
    }
}

#[test]
fn hostile_bytes_give_errors() {
    let mut input = vec![0];
    input.extend(family(2, 4));
    let mut mutations = Mutations(0x2545_F491_4F6C_DD1D);
    for round in 0..6000 {
        let mut mutated = input.clone();
        mutated[0] = (round % 2) as u8;
        for _ in 0..=mutations.next(3) {
            let at = 1 + mutations.next(mutated.len() - 1);
            mutated[at] = mutations.byte();
        }
        if mutations.next(8) == 0 {
            mutated.truncate(mutations.next(mutated.len()));
        }
        crate::fuzz_family(&mutated);
    }
}

#[test]
fn repaired_bytes_reach_the_code_behind_the_checksums() {
    let mut bytes = family(2, 4);
    crate::fuzzing::repair(&mut bytes);
    assert_eq!(bytes, family(2, 4), "nothing to repair");
    let name = bytes
        .windows(8)
        .position(|window| window.starts_with(b"app"));
    bytes[name.unwrap()] = b'b';
    assert!(verify(&bytes).is_err());
    crate::fuzzing::repair(&mut bytes);
    assert_eq!(verify(&bytes), Ok(2));
}

#[test]
fn calls_out_of_order_are_refused() {
    let (mut writer, _) = FamilyWriter::format(&media_header()).unwrap();
    assert!(matches!(
        writer.end_set(),
        Err(MediaError::OutOfOrder { .. })
    ));
    writer.begin_set(&configuration(1)).unwrap();
    assert!(matches!(
        writer.begin_set(&configuration(2)),
        Err(MediaError::OutOfOrder { .. })
    ));
}

/// The page must be sufficient for a second implementation.
#[test]
fn the_format_page_lists_every_record_in_order() {
    let page = include_str!("../../../docs/format/media.md");
    let listed: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| 0x"))
        .collect();
    let fields = [
        MediaHeader::FIELDS,
        SetConfiguration::FIELDS,
        DatabaseFile::FIELDS,
        SetEnd::FIELDS,
    ];
    let fields: Vec<&(u16, &str)> = fields.into_iter().flatten().collect();
    assert_eq!(listed.len(), fields.len());
    for (line, (tag, name)) in listed.iter().zip(fields) {
        assert!(
            line.starts_with(&format!("| 0x{tag:04X} | `{name}` |")),
            "{line}"
        );
    }
}
