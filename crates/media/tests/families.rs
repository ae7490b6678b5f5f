//! Whole families through the public interface: what was written is read back, and damage to one
//! set does not affect the others.
#![expect(
    clippy::unwrap_used,
    reason = "a family that cannot be read fails its test"
)]

mod common;

use std::path::Path;

use common::{FamilyBuilder, TestChunk};
use proptest::prelude::*;
use windlass_base::{blake3, checksum};
use windlass_media::{ChunkHeader, FamilyReader, FamilyWriter, Listing, MediaError};

const BLOCK: usize = 512;

fn list(family: &[u8]) -> Listing {
    FamilyReader::open(&family).unwrap().0.list()
}

/// Everything that verification checks, including payloads.
fn verify(family: &[u8]) -> Result<(), MediaError> {
    let (reader, _) = FamilyReader::open(&family)?;
    let listing = reader.list();
    for set in &listing.sets {
        reader.walk(set, &mut |header, offset| {
            let payload = &family[offset as usize..][..header.stored_bytes as usize];
            checksum(payload) == header.stored_checksum
        })?;
    }
    listing.trouble.map_or(Ok(()), Err)
}

fn three_sets() -> FamilyBuilder {
    let mut builder = FamilyBuilder::new(BLOCK as u32);
    builder.set(&[TestChunk::plain(700, 4), TestChunk::compressed(33)]);
    builder.set(&[TestChunk::compressed(1)]);
    builder.set(&[TestChunk::plain(512, 512)]);
    builder
}

/// Offsets at which the sets of a family end, preceded by the start of the first.
fn ends(family: &[u8]) -> Vec<usize> {
    let listing = list(family);
    let sets = 0..=listing.complete_sets();
    sets.map(|sets| listing.append_position(sets).offset as usize)
        .collect()
}

/// An encrypted set and one that is not; the format does not depend on the cipher.
fn encrypted_sets() -> FamilyBuilder {
    let mut builder = FamilyBuilder::new(BLOCK as u32);
    builder.is_encrypted = true;
    builder.set(&[TestChunk::plain(700, 4096), TestChunk::compressed(33)]);
    builder.is_encrypted = false;
    builder.set(&[TestChunk::compressed(1)]);
    builder
}

/// A signed set, one that is also encrypted; who signs is of no concern to the format.
fn signed_sets() -> FamilyBuilder {
    let mut builder = FamilyBuilder::new(BLOCK as u32);
    builder.is_signed = true;
    builder.set(&[TestChunk::plain(700, 4096), TestChunk::compressed(33)]);
    builder.is_encrypted = true;
    builder.set(&[TestChunk::compressed(1)]);
    builder
}

/// Every version must stay readable, and a change of the written bytes needs a new version.
fn golden(name: &str, written: &[u8]) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("WINDLASS_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, written).unwrap();
    }
    let golden = std::fs::read(&path).unwrap();
    let same = written
        .iter()
        .zip(&golden)
        .take_while(|(a, b)| a == b)
        .count();
    assert!(
        written == golden,
        "what is written differs from byte {same:#x} on. A new field must be left out of sets that do \
         not have it (Stored::is_left_out): then golden files stay as they are, and so does what users have"
    );
    verify(&golden).unwrap();
    golden
}

#[test]
fn golden_family_of_version_1_is_written_and_read_unchanged() {
    let golden = golden("version-1.family", &three_sets().bytes);
    let names = list(&golden)
        .sets
        .into_iter()
        .map(|set| set.configuration.server);
    assert_eq!(names.collect::<Vec<_>>(), ["server"; 3]);
}

#[test]
fn golden_family_with_an_encrypted_set_is_written_and_read_unchanged() {
    let golden = golden("version-1-encrypted.family", &encrypted_sets().bytes);
    let sets = list(&golden).sets;
    let encrypted = sets.iter().map(|set| set.configuration.is_encrypted());
    assert_eq!(encrypted.collect::<Vec<_>>(), [true, false]);
    let bytes = golden.as_slice();
    let (reader, _) = FamilyReader::open(&bytes).unwrap();
    let mut tags = Vec::new();
    let visit = &mut |header: ChunkHeader, _| {
        tags.push(header.tag);
        true
    };
    reader.walk(&sets[0], visit).unwrap();
    assert_eq!(tags, [Some([0xA7; 16]); 2]);
}

#[test]
fn golden_family_with_signed_sets_is_written_and_read_unchanged() {
    let golden = golden("version-1-signed.family", &signed_sets().bytes);
    let sets = list(&golden).sets;
    let signed = sets.iter().map(|set| set.configuration.is_signed());
    assert_eq!(signed.collect::<Vec<_>>(), [true, true]);
    let bytes = golden.as_slice();
    let (reader, _) = FamilyReader::open(&bytes).unwrap();
    for set in &sets {
        let mut digests = Vec::new();
        let visit = &mut |header: ChunkHeader, offset: u64| {
            let payload = &bytes[offset as usize..][..header.stored_bytes as usize];
            digests.push(header.payload_digest == Some(blake3(payload)));
            true
        };
        let walked = reader.walk(set, visit).unwrap();
        assert!(!digests.is_empty() && digests.iter().all(|is_right| *is_right));
        let (configuration, stored) = reader.final_configuration(set).unwrap();
        assert_eq!(&configuration.chunk_headers[32..], walked.chunk_headers);
        assert_eq!(
            stored.signed(),
            Some(configuration.signed_bytes().as_slice())
        );
    }
}

/// Except in the media header, without which the rest cannot be identified.
#[test]
fn one_flipped_bit_neither_goes_unnoticed_nor_hides_another_set() {
    let whole = three_sets();
    let (family, ends) = (&whole.bytes, ends(&whole.bytes));
    let first_filemark = ends[0] - BLOCK;
    for at in first_filemark..family.len() {
        let mut flipped = family.clone();
        flipped[at] ^= 1 << (at % 8);
        assert!(verify(&flipped).is_err(), "byte {at:#x}");
        let listing = list(&flipped);
        assert_eq!(listing.complete_sets(), 3, "byte {at:#x}");
        for (index, set) in listing.sets.iter().enumerate() {
            assert_eq!(usize::from(set.configuration.position), index + 1);
            let is_hit = (ends[index] - BLOCK..ends[index + 1]).contains(&at);
            assert!(
                set.end.is_some() || is_hit,
                "byte {at:#x} hides set {}",
                index + 1
            );
        }
        let position = listing.append_position(3);
        let expected = family.len() - if position.needs_filemark { BLOCK } else { 0 };
        assert_eq!(position.offset as usize, expected, "byte {at:#x}");
    }
}

#[test]
fn an_interrupted_append_is_seen_even_behind_a_damaged_set() {
    let mut builder = three_sets();
    let ends = ends(&builder.bytes);
    let good = builder.bytes.len();
    drop(builder.set_without_end(&[TestChunk::compressed(5000)]));
    // The start of a set says nothing before its configuration is complete.
    for cut in [good + 1, good + 700, good + 3000, builder.bytes.len()] {
        let mut family = builder.bytes[..cut].to_vec();
        let chunk = family[ends[0]..]
            .windows(4)
            .position(|id| id == b"WLDT")
            .unwrap();
        family[ends[0] + chunk + 40] ^= 1;
        let listing = list(&family);
        assert_eq!(listing.complete_sets(), 3, "cut at {cut}");
        assert!(
            listing
                .trouble
                .is_some_and(|trouble| trouble.is_truncation())
        );
        let listing = list(&family);
        assert_eq!(listing.append_position(3).offset as usize, good);
        assert_eq!(
            listing.sets.len(),
            if cut < good + 3000 { 3 } else { 4 },
            "cut at {cut}"
        );
        let unfinished = listing.sets.get(3);
        assert!(unfinished.is_none_or(|set| set.end.is_none() && set.configuration.position == 4));
    }
}

#[test]
fn what_a_crash_leaves_of_unwritten_blocks_is_no_set() {
    let mut family = three_sets().bytes;
    let good = family.len();
    family.extend(vec![0; 20 * BLOCK + 3]);
    let listing = list(&family);
    assert_eq!((listing.sets.len(), listing.complete_sets()), (3, 3));
    assert_eq!(listing.append_position(3).offset as usize, good);
    assert!(matches!(listing.trouble, Some(MediaError::Damaged { .. })));
}

/// A database may contain the bytes of another family, or of this one.
#[test]
fn filemarks_inside_a_payload_are_not_taken_for_those_of_the_family() {
    let mut builder = three_sets();
    let good = builder.bytes.len();
    let copy = builder.bytes.clone();
    drop(builder.set_without_end(&[]));
    builder.bytes.truncate(good + BLOCK);
    builder.bytes.extend(copy);
    let listing = list(&builder.bytes);
    assert_eq!(
        (
            listing.complete_sets(),
            listing.append_position(3).offset as usize
        ),
        (3, good)
    );
}

#[test]
fn a_lost_filemark_behind_a_good_set_is_written_again_by_the_next_append() {
    for damage in [true, false] {
        let mut builder = three_sets();
        let length = builder.bytes.len();
        if damage {
            builder.bytes[length - 100] ^= 4;
        } else {
            builder.bytes.truncate(length - 100);
        }
        let listing = list(&builder.bytes);
        assert!(listing.trouble.is_some());
        assert!(listing.sets[2].end.is_some());
        builder.reopen(3);
        builder.set(&[TestChunk::compressed(9)]);
        let mut undisturbed = three_sets();
        undisturbed.set(&[TestChunk::compressed(9)]);
        assert!(builder.bytes == undisturbed.bytes);
    }
}

#[test]
fn sets_are_found_through_more_filemarks_than_a_block_lists_and_past_bad_ones() {
    let mut builder = FamilyBuilder::new(BLOCK as u32);
    for _ in 0..70 {
        builder.set(&[]);
    }
    let good = builder.bytes.clone();
    let ends = ends(&good);
    assert_eq!(ends.len(), 71);
    assert!(list(&good).trouble.is_none());
    for bad in [1, 44, 45, 46, 69] {
        builder.bytes[ends[bad] - 30] ^= 0x80;
    }
    let listing = list(&builder.bytes);
    assert_eq!(
        listing.sets.iter().filter(|set| set.end.is_some()).count(),
        70
    );
    let position = listing.append_position(70);
    assert_eq!(position.filemarks.len(), 141);
    assert_eq!(position.offset as usize, good.len());
    builder.bytes = good;
    builder.reopen(70);
    builder.set(&[]);
    verify(&builder.bytes).unwrap();
}

#[test]
fn the_index_leads_to_every_chunk_without_a_walk() {
    let mut builder = FamilyBuilder::new(4096);
    builder.set(&vec![TestChunk::compressed(3); 2500]);
    let family = builder.bytes.as_slice();
    let (reader, _) = FamilyReader::open(&family).unwrap();
    let listing = reader.list();
    let mut walked: Vec<ChunkHeader> = Vec::new();
    let mut keep = |header: ChunkHeader, _| {
        walked.push(header);
        true
    };
    reader.walk(&listing.sets[0], &mut keep).unwrap();
    let mut segments = Vec::new();
    let mut keep = |segment| {
        segments.push(segment);
        true
    };
    reader.index(&listing.sets[0], &mut keep).unwrap();
    let entries: Vec<_> = segments
        .iter()
        .rev()
        .flat_map(|segment| &segment.entries)
        .collect();
    assert_eq!((segments.len(), entries.len()), (3, 2500));
    for (entry, chunk) in entries.iter().zip(&walked) {
        assert_eq!((entry.ordinal, &entry.runs), (chunk.ordinal, &chunk.runs));
        assert_eq!(entry.digests, chunk.digests);
        let stream = (listing.sets[0].offset + entry.stream_offset) as usize;
        assert_eq!(family[stream..][..4], *b"WLDT");
    }
}

#[test]
fn an_index_that_says_anything_else_than_the_chunks_is_refused_although_its_checksum_is_right() {
    let mut builder = FamilyBuilder::new(BLOCK as u32);
    builder.set(&[TestChunk::plain(700, 4), TestChunk::compressed(33)]);
    let mut found = builder.bytes.windows(4);
    let stream = found.position(|window| window == b"WLIX").unwrap();
    let bytes = u64::from_le_bytes(builder.bytes[stream + 8..][..8].try_into().unwrap());
    for at in stream + 22..stream + 22 + bytes as usize {
        let mut family = builder.bytes.clone();
        family[at] ^= 1;
        windlass_media::craft::repair(&mut family);
        if family != builder.bytes {
            verify(&family).unwrap_err();
        }
    }
}

#[test]
fn chunks_of_another_family_are_refused() {
    let mut builder = FamilyBuilder::new(BLOCK as u32);
    let (mut writer, mut family) = FamilyWriter::format(&builder.header).unwrap();
    let mut set = builder.configuration(1);
    family.extend(writer.begin_set(&set).unwrap());
    let header = TestChunk::compressed(10).header(0, 1, set.set_guid);
    writer.chunk_header(&header, 4, &mut family).unwrap();
    family.extend(TestChunk::compressed(10).payload(0));
    writer.chunk_written(&mut family);
    set.is_final = true;
    family.extend(writer.end_of_data(&set).unwrap());
    family.extend(writer.end_set().unwrap());
    builder.bytes = family;
    assert!(matches!(
        verify(&builder.bytes),
        Err(MediaError::Damaged {
            what: "family of a chunk",
            expected: 2,
            found: 1,
            ..
        })
    ));
}

fn chunks() -> impl Strategy<Value = Vec<TestChunk>> {
    let plain =
        (0..5000_u32, 2..=12_u32).prop_map(|(bytes, shift)| TestChunk::plain(bytes, 1 << shift));
    let compressed = (0..3000_u32).prop_map(TestChunk::compressed);
    prop::collection::vec(prop_oneof![plain, compressed], 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(
        block_shift in 9..=16_u32,
        name in ".{0,128}",
        description in ".{0,255}",
        sets in prop::collection::vec(chunks(), 0..4),
    ) {
        let mut builder = FamilyBuilder::with_names(1 << block_shift, &name, &description);
        for chunks in &sets {
            builder.set(chunks);
        }
        verify(&builder.bytes).unwrap();
        let family = builder.bytes.as_slice();
        let (reader, header) = FamilyReader::open(&family).unwrap();
        prop_assert_eq!(&header, &builder.header);
        let listing = reader.list();
        prop_assert_eq!(listing.sets.len(), sets.len());
        for (set, chunks) in listing.sets.iter().zip(&sets) {
            prop_assert_eq!(&set.configuration.name, &name);
            prop_assert_eq!(&set.configuration.description, &description);
            prop_assert_eq!(set.configuration.chunk_count, chunks.len() as u64);
            let mut expected = (0..).zip(chunks);
            let walked = reader.walk(set, &mut |header, offset| {
                let (ordinal, chunk) = expected.next().unwrap();
                assert_eq!(header, chunk.header(ordinal, 2, set.configuration.set_guid));
                assert!(family[offset as usize..].starts_with(&chunk.payload(ordinal)));
                true
            });
            let walked = walked.map(|walked| walked.configuration);
            prop_assert_eq!(walked.ok(), reader.configuration(set).ok());
            prop_assert!(expected.next().is_none());
        }
    }
}
