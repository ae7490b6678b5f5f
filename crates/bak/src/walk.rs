//! Walks through a file: descriptor blocks, their streams, and the data in them, in order.
//!
//! A damaged header is reported, and the walk continues at the next good descriptor block, so that
//! one damaged place does not hide the next.

use windlass_codec::Algorithm;

use crate::checksum::StreamChecksum;
use crate::container::{Container, Input, PlainStream};
use crate::error::{Damage, Error, Finding, Place, VersionWords};
use crate::fields::Fields;
use crate::mtf::configuration::Configuration;
use crate::mtf::log::VirtualLog;
use crate::mtf::media::MediaHeader;
use crate::mtf::set::{SetHeader, machine};
use crate::mtf::{
    DESCRIPTOR_BYTES, DescriptorHeader, LOGICAL_BLOCK_BYTES, STREAM_ALIGNMENT, STREAM_BYTES,
    StreamHeader, Tag,
};
use crate::page::EXTENT_BYTES;
use crate::visit::{Block, ExtentPlace, Stream, Visit};

/// After damage, descriptor blocks are searched at multiples of this.
const SEARCH_BYTES: u64 = 512;

/// Zero bytes before pages and log.
const LEAD_BYTES: u64 = 2;

/// Attribute of a stream that is followed by a checksum.
const HAS_CHECKSUM: u16 = 0x0100;

/// Maximum length of a configuration that is read: some ten thousand files.
const CONFIGURATION_BYTES_MAX: u64 = 1 << 24;

/// Totals of a walk through a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walked {
    pub container: Container,
    /// Length of the file, or of the part that was read.
    pub file_bytes: u64,
    /// Length of the plain stream.
    pub stream_bytes: u64,
    /// Compressed records.
    pub records: u64,
    /// What they are compressed with.
    pub algorithm: Option<Algorithm>,
    /// The version words of the compressed container.
    pub words: Option<VersionWords>,
    /// Descriptor blocks with a valid header.
    pub blocks: u64,
    /// Streams with a valid header.
    pub streams: u64,
}

/// Walks through a file from its first byte to its last.
///
/// # Errors
/// It is not a SQL Server backup, its layout is unknown, it cannot be read, or the visitor returns
/// an error. Damage is not an error: the visitor gets it as a finding.
pub fn walk<I: Input>(input: I, visit: &mut dyn Visit) -> Result<Walked, Error> {
    let mut walk = Walk {
        stream: PlainStream::open(input)?,
        visit,
        block_bytes: 0,
        set_begins: None,
        blocks: 0,
        streams: 0,
        last_was_filemark: false,
        next_control_block: 0,
    };
    if walk.visit.wants_content() {
        walk.stream.keep_records();
    }
    match walk.run() {
        Ok(()) => walk.end(),
        Err(Error::Truncated { what, .. }) => walk.report(Damage::Ends { what }),
        Err(error) => return Err(error),
    }
    walk.pass_findings();
    walk.visit.records(walk.stream.take_records());
    let stream = &walk.stream;
    Ok(Walked {
        container: stream.container(),
        file_bytes: stream.file_bytes(),
        stream_bytes: stream.offset(),
        records: stream.records(),
        algorithm: stream.algorithm(),
        words: stream.words(),
        blocks: walk.blocks,
        streams: walk.streams,
    })
}

struct Walk<'v, I> {
    stream: PlainStream<I>,
    visit: &'v mut dyn Visit,
    block_bytes: u32,
    /// Stream offset of the current set.
    set_begins: Option<u64>,
    blocks: u64,
    streams: u64,
    last_was_filemark: bool,
    next_control_block: u32,
}

/// State passed from one stream of a block to the next.
#[derive(Default)]
struct Streams {
    raid: Vec<u8>,
    sum: Option<(Tag, u32)>,
}

impl<I: Input> Walk<'_, I> {
    fn run(&mut self) -> Result<(), Error> {
        loop {
            let header = self.stream.peek(DESCRIPTOR_BYTES)?;
            if header.is_empty() {
                return Ok(());
            }
            let fields = Fields(header);
            let descriptor = DescriptorHeader(fields);
            if header.len() < DESCRIPTOR_BYTES || !descriptor.is_good() {
                let damage = bad_descriptor(descriptor);
                self.report(damage);
                if !self.search()? {
                    return Ok(());
                }
                continue;
            }
            let (tag, bytes) = (descriptor.tag(), descriptor.first_stream());
            let order = (descriptor.logical_address(), descriptor.control_block());
            self.blocks += 1;
            self.last_was_filemark = tag == Tag::SFMB;
            let place = self.stream.place(self.stream.offset());
            let begins = self.stream.offset();
            let mut block = Vec::with_capacity(bytes);
            if !self.stream.read_into(&mut block, bytes)? {
                return Err(self.truncated("a descriptor block"));
            }
            self.pass_findings();
            self.check_order(tag, begins, order);
            let bytes = bytes as u64;
            self.visit.block(Block { tag, place, bytes });
            if self.visit.wants_content() {
                self.visit.content(tag, place, &block);
            }
            if tag != Tag::SFMB {
                self.enter(tag, &block, place);
            } else if self.block_bytes == 0 {
                self.block_bytes = bytes as u32;
            }
            if tag != Tag::SFMB && !self.streams(tag, &block)? {
                return Ok(());
            }
        }
    }

    /// Checks whether the block is where its header says, in the order of the set.
    fn check_order(&mut self, tag: Tag, begins: u64, (address, number): (u64, u32)) {
        let outside = [Tag::TAPE, Tag::SFMB, Tag::ESET].contains(&tag);
        if tag == Tag::SSET {
            self.set_begins = Some(begins);
            self.next_control_block = 0;
        }
        let Some(set) = self.set_begins.filter(|_| !outside) else {
            return;
        };
        let expected = (begins - set) / LOGICAL_BLOCK_BYTES;
        let found = (address, number);
        let expected = (expected, self.next_control_block);
        self.next_control_block = number.wrapping_add(1);
        if found != expected {
            let place = self.stream.place(begins);
            let damage = Damage::BlockOrder {
                tag,
                expected,
                found,
            };
            self.visit.finding(Finding { place, damage });
        }
    }

    /// Passes the content of the block itself to the visitor.
    fn enter(&mut self, tag: Tag, block: &[u8], place: Place) {
        match tag {
            Tag::SSET => self.visit.set(&SetHeader::read(block), place),
            Tag::VOLB => self.visit.machine(&machine(block)),
            Tag::MSTL => self.visit.virtual_log(&VirtualLog::read(block)),
            Tag::ESET => self.visit.set_ends(),
            _ => {}
        }
    }

    /// Walks through the streams of a block to its end; `false` at the end of the file.
    fn streams(&mut self, block_tag: Tag, block: &[u8]) -> Result<bool, Error> {
        let mut left = Streams::default();
        loop {
            let begins = self.stream.offset();
            let place = self.stream.place(begins);
            let header = self.stream.peek(STREAM_BYTES)?;
            if header.len() < STREAM_BYTES {
                return Err(self.truncated("the streams of a block"));
            }
            let header = StreamHeader(Fields(header));
            let (tag, bytes, attributes) = (header.tag(), header.bytes(), header.attributes());
            let (found, expected) = header.checksums();
            if found == expected && header.algorithms() != (0, 0) {
                return Err(Error::SealedStream {
                    offset: place.file,
                    tag,
                    algorithms: header.algorithms(),
                });
            }
            if found != expected {
                let damage = Damage::StreamChecksum {
                    tag,
                    expected,
                    found,
                };
                self.visit.finding(Finding { place, damage });
                // Pages are worth reading in spite of the damage if the header has the expected
                // values.
                let holds_data = tag == Tag::MQDA || tag == Tag::MQTL;
                if !holds_data || bytes % EXTENT_BYTES as u64 != LEAD_BYTES {
                    self.stream.consume(STREAM_BYTES);
                    return self.search();
                }
            }
            self.streams += 1;
            self.stream.consume(STREAM_BYTES);
            self.visit.stream(Stream { tag, place, bytes });
            self.data(tag, bytes, attributes, block, &mut left)?;
            if tag == Tag::MQCI {
                self.pass_findings();
            }
            let end = self.stream.offset().next_multiple_of(STREAM_ALIGNMENT);
            self.skip(end - self.stream.offset(), "a stream")?;
            if tag == Tag::SPAD {
                if block_tag == Tag::TAPE {
                    let media = MediaHeader::read(block, &left.raid);
                    self.block_bytes = media.block_bytes;
                    self.visit.media(&media);
                }
                return Ok(true);
            }
        }
    }

    /// The data of a stream.
    fn data(
        &mut self,
        tag: Tag,
        bytes: u64,
        attributes: u16,
        block: &[u8],
        left: &mut Streams,
    ) -> Result<(), Error> {
        match tag {
            Tag::RAID => left.raid = self.read(bytes, "the media stream")?,
            Tag::MQCI => self.configuration(bytes, block)?,
            Tag::MQDA | Tag::MQTL if bytes > 0 => {
                if !self.visit.wants_data() {
                    left.sum = None;
                    return self.skip(bytes, "pages or log");
                }
                let sum = if tag == Tag::MQDA {
                    self.pages(bytes)?
                } else {
                    self.log(bytes, &VirtualLog::read(block))?
                };
                left.sum = (attributes & HAS_CHECKSUM != 0).then_some((tag, sum.0));
            }
            Tag::CSUM => {
                let place = self.stream.place(self.stream.offset());
                let stored = self.read(bytes, "a checksum")?;
                self.compare(left.sum.take(), Fields(&stored).u32(0), place);
            }
            Tag::TSMP if self.visit.wants_content() => {
                let place = self.stream.place(self.stream.offset());
                let map = self.read(bytes, "the map of the sets")?;
                self.visit.content(tag, place, &map);
            }
            _ => self.skip(bytes, "a stream")?,
        }
        Ok(())
    }

    fn compare(&mut self, computed: Option<(Tag, u32)>, found: u32, place: Place) {
        match computed {
            Some((tag, expected)) if expected != found => {
                let damage = Damage::BackupChecksum {
                    tag,
                    expected,
                    found,
                };
                self.visit.finding(Finding { place, damage });
            }
            Some((tag, _)) => self.visit.backup_checksum_is_good(tag),
            None => {}
        }
    }

    fn configuration(&mut self, bytes: u64, block: &[u8]) -> Result<(), Error> {
        let place = self.stream.place(self.stream.offset());
        let stream = self.read(bytes, "the configuration")?;
        if self.visit.wants_content() {
            self.visit.content(Tag::MQCI, place, &stream);
        }
        let is_final = DescriptorHeader(Fields(block)).tag() == Tag::MSLS;
        match Configuration::read(&stream) {
            Ok(configuration) => self.visit.configuration(&configuration, is_final),
            Err(damage) => self.visit.finding(Finding { place, damage }),
        }
        Ok(())
    }

    fn pages(&mut self, bytes: u64) -> Result<StreamChecksum, Error> {
        let mut sum = StreamChecksum::default();
        self.skip(LEAD_BYTES.min(bytes), "pages")?;
        let mut left = bytes.saturating_sub(LEAD_BYTES);
        self.stream.expect(left);
        while left >= EXTENT_BYTES as u64 {
            let offset = self.stream.offset();
            if self.stream.peek(EXTENT_BYTES)?.len() < EXTENT_BYTES {
                return Err(self.truncated("the pages"));
            }
            self.pass_findings();
            let at = ExtentPlace {
                place: self.stream.place(offset),
                in_record: (offset - self.stream.record_start(offset)) as u32,
            };
            let extent = self.stream.peek(EXTENT_BYTES)?;
            sum = sum.with(extent);
            self.visit.extent(at, extent)?;
            self.stream.consume(EXTENT_BYTES);
            left -= EXTENT_BYTES as u64;
        }
        if left > 0 {
            self.report(Damage::Length {
                what: "the stream of pages",
                found: bytes,
            });
            self.skip(left, "pages")?;
        }
        Ok(sum)
    }

    fn log(&mut self, bytes: u64, log: &VirtualLog) -> Result<StreamChecksum, Error> {
        let mut sum = StreamChecksum::default();
        self.skip(LEAD_BYTES.min(bytes), "the log")?;
        let mut left = bytes.saturating_sub(LEAD_BYTES);
        self.stream.expect(left);
        let mut offset = log.first_byte;
        while left > 0 {
            let at = self.stream.offset();
            let wanted = usize::try_from(left).map_or(EXTENT_BYTES, |left| left.min(EXTENT_BYTES));
            if self.stream.peek(wanted)?.len() < wanted {
                return Err(self.truncated("the log"));
            }
            self.pass_findings();
            let place = self.stream.place(at);
            let piece = self.stream.peek(wanted)?;
            sum = sum.with(piece);
            let inside = log.end_byte.saturating_sub(offset);
            let inside = usize::try_from(inside).map_or(wanted, |inside| inside.min(wanted));
            if let Some(piece) = piece.get(..inside).filter(|piece| !piece.is_empty()) {
                self.visit.log(log, offset, place, piece)?;
            }
            offset = offset.saturating_add(wanted as u64);
            self.stream.consume(wanted);
            left -= wanted as u64;
        }
        Ok(sum)
    }

    fn read(&mut self, bytes: u64, what: &'static str) -> Result<Vec<u8>, Error> {
        if bytes > CONFIGURATION_BYTES_MAX {
            return Err(Error::TooLarge {
                offset: self.stream.place(self.stream.offset()).file,
                what,
                found: bytes,
                maximum: CONFIGURATION_BYTES_MAX,
            });
        }
        let mut data = Vec::new();
        if !self.stream.read_into(&mut data, bytes as usize)? {
            return Err(self.truncated(what));
        }
        Ok(data)
    }

    fn skip(&mut self, bytes: u64, what: &'static str) -> Result<(), Error> {
        if self.stream.skip(bytes)? {
            Ok(())
        } else {
            Err(self.truncated(what))
        }
    }

    /// Moves to the next good descriptor block; `false` if there is none.
    fn search(&mut self) -> Result<bool, Error> {
        loop {
            let at = self.stream.offset();
            let next = (at / SEARCH_BYTES + 1) * SEARCH_BYTES;
            if !self.stream.skip(next - at)? {
                return Ok(false);
            }
            let header = self.stream.peek(DESCRIPTOR_BYTES)?;
            if header.len() < DESCRIPTOR_BYTES {
                return Ok(false);
            }
            if DescriptorHeader(Fields(header)).is_good() {
                self.pass_findings();
                return Ok(true);
            }
        }
    }

    /// Checks that are possible only at the end of the file.
    fn end(&mut self) {
        if !self.last_was_filemark {
            self.report(Damage::Incomplete {
                what: "filemark at its end",
            });
        }
        let found = self.stream.file_bytes();
        let block_bytes = self.block_bytes;
        if block_bytes != 0 && !found.is_multiple_of(u64::from(block_bytes)) {
            self.report(Damage::FileLength { found, block_bytes });
        }
    }

    fn report(&mut self, damage: Damage) {
        self.pass_findings();
        let place = self.stream.place(self.stream.offset());
        self.visit.finding(Finding { place, damage });
    }

    fn pass_findings(&mut self) {
        for finding in self.stream.take_findings() {
            self.visit.finding(finding);
        }
    }

    fn truncated(&self, what: &'static str) -> Error {
        Error::Truncated {
            offset: self.stream.file_bytes(),
            what,
        }
    }
}

/// The finding for an invalid descriptor block header.
fn bad_descriptor(header: DescriptorHeader<'_>) -> Damage {
    let tag = header.tag();
    let (found, expected) = header.checksums();
    if tag.is_block() && found != expected {
        Damage::DescriptorChecksum {
            tag,
            expected,
            found,
        }
    } else {
        Damage::NoDescriptor { found: tag.0 }
    }
}
