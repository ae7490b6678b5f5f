//! A reader of Microsoft Tape Format written only from the published specification.
//!
//! It shares no code with the crate; its only input is the bytes of a family. It walks from `TAPE`
//! to the end of the family, skips unknown streams by their length, as the specification requires,
//! and checks what the specification says of each block. Section and structure numbers are those of
//! MTF 1.00a, document revision 1.8.
#![expect(
    clippy::unwrap_used,
    reason = "a family that cannot be read fails its test"
)]

mod common;

use common::{FamilyBuilder, TestChunk};

/// Structure 15: the stream header.
const STREAM_BYTES: usize = 22;

fn number(bytes: &[u8], offset: usize, width: usize) -> u64 {
    bytes[offset..offset + width]
        .iter()
        .rev()
        .fold(0, |value, &byte| value << 8 | u64::from(byte))
}

fn xor_words(bytes: &[u8]) -> u64 {
    (0..bytes.len())
        .step_by(2)
        .fold(0, |sum, at| sum ^ number(bytes, at, 2))
}

/// What the walk found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Met {
    blocks: Vec<String>,
    streams: Vec<String>,
    names: Vec<String>,
}

struct Walker<'a> {
    family: &'a [u8],
    at: usize,
    physical_block: usize,
    logical_block: usize,
    filemarks: Vec<usize>,
    met: Met,
}

impl<'a> Walker<'a> {
    fn walk(family: &'a [u8]) -> Met {
        let mut walker = Walker {
            family,
            at: 0,
            physical_block: 512,
            logical_block: 512,
            filemarks: Vec::new(),
            met: Met::default(),
        };
        walker.media_header();
        let mut set_number = 0;
        while walker.at < family.len() {
            set_number += 1;
            walker.data_set(set_number);
        }
        assert_eq!(walker.at, family.len(), "the family ends with a filemark");
        walker.met
    }

    /// Section 5.1: checks the header of the block here and returns the block's type.
    fn header(&mut self, control_block_id: u64) -> &'a [u8] {
        let block = &self.family[self.at..];
        assert_eq!(
            xor_words(&block[..50]),
            number(block, 50, 2),
            "header checksum at {}",
            self.at
        );
        assert_eq!(
            number(block, 36, 4),
            control_block_id,
            "control block id at {}",
            self.at
        );
        self.met
            .blocks
            .push(String::from_utf8(block[..4].to_vec()).unwrap());
        block
    }

    /// Structure 2 and section 3.5: a string follows the fixed fields, within one logical block.
    fn text(&self, block: &[u8], field: usize, fixed_bytes: usize) -> String {
        let (size, offset) = (
            number(block, field, 2) as usize,
            number(block, field + 2, 2) as usize,
        );
        if size == 0 {
            return String::new();
        }
        assert_eq!(block[48], 2, "strings are Unicode");
        assert!(offset >= fixed_bytes && offset + size <= number(block, 8, 2) as usize);
        assert!(offset + size <= self.logical_block);
        let units: Vec<u16> = (0..size)
            .step_by(2)
            .map(|at| number(block, offset + at, 2) as u16)
            .collect();
        String::from_utf16(&units).unwrap()
    }

    /// Section 6: skips the streams of the block; `SPAD` is the last one and is zero.
    fn skip_streams(&mut self, origin: usize, before_filemark: bool) {
        let mut at = self.at + number(self.family, self.at + 8, 2) as usize;
        loop {
            at = at.next_multiple_of(4);
            let stream = &self.family[at..at + STREAM_BYTES];
            assert_eq!(
                xor_words(&stream[..20]),
                number(stream, 20, 2),
                "stream checksum at {at}"
            );
            let (data, length) = (at + STREAM_BYTES, number(stream, 8, 8) as usize);
            self.met
                .streams
                .push(String::from_utf8(stream[..4].to_vec()).unwrap());
            at = data + length;
            if &stream[..4] == b"SPAD" {
                assert!(
                    self.family[data..at].iter().all(|&byte| byte == 0),
                    "SPAD at {data} is zero"
                );
                break;
            }
        }
        let unit = if before_filemark {
            self.physical_block
        } else {
            self.logical_block
        };
        assert_eq!((at - origin) % unit, 0, "next block at {at} is aligned");
        self.at = at;
    }

    fn media_header(&mut self) {
        let block = self.header(0);
        assert_eq!(&block[..4], b"TAPE");
        assert_eq!(number(block, 20, 8), 0, "format logical address");
        assert_eq!(number(block, 56, 4) & 1, 1, "TAPE_SOFT_FILEMARK_BIT");
        assert_eq!(number(block, 60, 2), 1, "media sequence number");
        self.physical_block = number(block, 64, 2) as usize * 512;
        assert!(number(block, 66, 2) <= 2, "type of media based catalogue");
        self.logical_block = number(block, 84, 2) as usize;
        assert!([512, 1024].contains(&self.logical_block));
        for field in [68, 72] {
            let name = self.text(block, field, 94);
            self.met.names.push(name);
        }
        assert_ne!(self.text(block, 80, 94), "", "software name");
        assert_eq!(block[93], 1, "major version");
        self.skip_streams(0, true);
        self.filemark();
    }

    /// Structure 14. The array holds physical block addresses of eight bytes, newest first.
    fn filemark(&mut self) {
        assert_eq!(self.at % self.physical_block, 0);
        let block = self.header(self.filemarks.len() as u64 + 1);
        assert_eq!(&block[..4], b"SFMB");
        assert_eq!(
            number(block, 20, 8) as usize * self.physical_block,
            self.at,
            "address in physical blocks"
        );
        let (capacity, used) = (number(block, 52, 4) as usize, number(block, 56, 4) as usize);
        assert!(60 + capacity * 8 <= self.physical_block);
        assert_eq!(used, self.filemarks.len().min(capacity));
        for (index, &earlier) in self.filemarks.iter().rev().take(used).enumerate() {
            assert_eq!(
                number(block, 60 + index * 8, 8) as usize * self.physical_block,
                earlier
            );
        }
        assert!(
            block[60 + used * 8..60 + capacity * 8]
                .iter()
                .all(|&byte| byte == 0)
        );
        self.filemarks.push(self.at);
        self.at += self.physical_block;
    }

    fn data_set(&mut self, set_number: u64) {
        let origin = self.at;
        assert_eq!(origin % self.physical_block, 0);
        let sset = self.header(0);
        assert_eq!(&sset[..4], b"SSET");
        assert_eq!(
            (number(sset, 52, 4) & 0b11_1110).count_ones(),
            1,
            "one kind of backup"
        );
        assert_eq!(number(sset, 62, 2), set_number);
        for field in [64, 68, 76] {
            let name = self.text(sset, field, 98);
            self.met.names.push(name);
        }
        assert_eq!(
            number(sset, 80, 8) as usize * self.physical_block,
            origin,
            "physical block address"
        );
        let zone = sset[95].cast_signed();
        assert!((-56..=56).contains(&zone) || zone == 127);
        assert_eq!(sset[96], 0, "minor version");
        self.skip_streams(origin, false);

        let mut control_block_id = 0;
        let mut directory = None;
        loop {
            control_block_id += 1;
            let here = self.at;
            let block = self.header(control_block_id);
            assert_eq!(
                number(block, 20, 8) as usize * self.logical_block,
                here - origin,
                "format logical address"
            );
            match &block[..4] {
                b"VOLB" => {
                    assert_eq!(
                        (number(block, 52, 4) & 0b11_1100).count_ones(),
                        1,
                        "one kind of device name"
                    );
                    self.met.names.push(self.text(block, 56, 73));
                }
                b"DIRB" => {
                    assert!(self.text(block, 80, 84).ends_with('\0'));
                    directory = Some(number(block, 76, 4));
                }
                b"FILE" => {
                    assert_eq!(
                        Some(number(block, 76, 4)),
                        directory,
                        "directory of the file"
                    );
                    self.met.names.push(self.text(block, 84, 88));
                }
                other => panic!("unexpected {} at {here}", other.escape_ascii()),
            }
            let last = &block[..4] == b"FILE";
            self.skip_streams(if last { 0 } else { origin }, last);
            if last {
                break;
            }
        }
        self.filemark();
        self.set_end(sset, control_block_id + 1);
        self.filemark();
    }

    /// Structure 12: repeats the set's number and date.
    fn set_end(&mut self, sset: &[u8], control_block_id: u64) {
        let eset = self.header(control_block_id);
        assert_eq!(&eset[..4], b"ESET");
        assert_eq!(number(eset, 20, 8), 0, "format logical address");
        assert_eq!(number(eset, 52, 4), number(sset, 52, 4), "attributes");
        assert_eq!(number(eset, 56, 4), 0, "corrupt files");
        assert_eq!(eset[78..80], sset[62..64], "set number");
        assert_eq!(eset[80..85], sset[88..93], "date");
        self.skip_streams(0, true);
    }
}

#[test]
fn generic_reader_walks_from_tape_to_the_end_for_every_block_size() {
    for shift in 9..=16 {
        let mut builder = FamilyBuilder::new(1 << shift);
        builder.set(&[TestChunk::plain(4096, 4096), TestChunk::compressed(777)]);
        builder.set(&[]);
        builder.set(&[
            TestChunk::compressed(1),
            TestChunk::compressed(2),
            TestChunk::plain(512, 512),
        ]);
        let met = Walker::walk(&builder.bytes);
        let set = ["SSET", "VOLB", "DIRB", "FILE", "SFMB", "ESET", "SFMB"];
        let expected: Vec<&str> = ["TAPE", "SFMB"]
            .into_iter()
            .chain(set)
            .chain(set)
            .chain(set)
            .collect();
        assert_eq!(met.blocks, expected, "block size {}", 1 << shift);
        assert_eq!(met.streams.iter().filter(|&id| id == "WLDT").count(), 5);
        assert_eq!(met.names[..2], ["media é", "media description"]);
        assert!(met.names.iter().any(|name| name == "database"));
    }
}

#[test]
fn generic_reader_is_not_troubled_by_the_longest_names() {
    let mut builder = FamilyBuilder::with_names(4096, &"n".repeat(128), &"\u{1F600}".repeat(127));
    builder.set(&[TestChunk::compressed(3)]);
    let met = Walker::walk(&builder.bytes);
    assert_eq!(met.names[2], "n".repeat(128), "the name is whole");
    assert!(
        "\u{1F600}".repeat(127).starts_with(&met.names[3]),
        "a cut description has whole characters"
    );
}

#[test]
fn generic_reader_follows_more_filemarks_than_one_block_lists() {
    let mut builder = FamilyBuilder::new(512);
    for sets in 0..40 {
        builder.reopen(sets);
        builder.set(&[]);
    }
    assert_eq!(
        Walker::walk(&builder.bytes)
            .blocks
            .iter()
            .filter(|&id| id == "SSET")
            .count(),
        40
    );
}
