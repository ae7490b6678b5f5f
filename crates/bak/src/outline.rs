//! The structure of a file, for a copy of it in plain tape format.
//!
//! The stream of a compressed file is plain tape format except for the addresses in it, which are
//! offsets in the compressed file, and the announcement of its index. [`Outline::patches`] has what
//! must be there instead.

use std::collections::BTreeMap;

use crate::checksum::xor16;
use crate::container::{Container, Input};
use crate::error::{Error, Finding, Place};
use crate::fields::Fields;
use crate::listing::{FINDINGS_MAX, Gather, SetListing};
use crate::mtf::media::MediaHeader;
use crate::mtf::{DESCRIPTOR_BYTES, Tag};
use crate::visit::Visit;
use crate::walk::walk;

/// Address of a set's first block, in that block.
const SET_ADDRESS_AT: u64 = 0x50;

/// Address of the first end block, in the second one.
const END_ADDRESS_AT: u64 = 0x3C;

/// The addresses of earlier filemarks: their number, where they start.
const FILEMARK_COUNT_AT: usize = 0x38;
const FILEMARK_LIST_AT: usize = 0x48;

/// Attribute of a filemark behind an index record.
const HAS_INDEX: u32 = 0x0004_0000;

/// The map of the sets: its entries, and the set's address and its size in that of a set.
const MAP_ENTRIES_AT: usize = 8;
const MAP_ADDRESS_AT: usize = 12;
const MAP_SIZE_AT: usize = 52;
const MAP_ENTRY_BYTES_MIN: usize = 60;

/// In the configuration: the size of the set, and its compressed size since SQL Server 2008.
const SIZE_AT: usize = 0x60;
const COMPRESSED_SIZE_AT: usize = 0x158;

/// Its version, and the first with compression.
const VERSION_AT: usize = 0x1B;
const VERSION_WITH_COMPRESSION: u8 = 10;

/// The structure of a media family.
#[derive(Debug)]
pub struct Outline {
    /// Its header; `None` only if its block is damaged.
    pub media: Option<MediaHeader>,
    pub container: Container,
    /// Length of the plain stream.
    pub stream_bytes: u64,
    /// Its sets, in order.
    pub sets: Vec<OutlinedSet>,
    /// What a plain copy has in place of the bytes of the stream, by offset. A plain file has it already.
    pub patches: BTreeMap<u64, Vec<u8>>,
    /// Stream offset and file offset of each record of a compressed file.
    pub records: Vec<(u64, u64)>,
    pub findings: Vec<Finding>,
}

/// A set of an [`Outline`].
#[derive(Debug)]
pub struct OutlinedSet {
    pub listing: SetListing,
    /// Offset of its first block in the stream.
    pub begins: u64,
    /// Its headers.
    pub(crate) parts: Parts,
}

/// The bytes of a set that describe it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Parts {
    /// `SSET`
    pub(crate) set: Vec<u8>,
    /// `VOLB`
    pub(crate) volume: Vec<u8>,
    /// `MQCI` at the start.
    pub(crate) start: Vec<u8>,
    /// `MQCI` at the end.
    pub(crate) end: Vec<u8>,
}

impl Outline {
    /// Reads a family without its pages and its log.
    ///
    /// # Errors
    /// See [`walk`].
    pub fn read<I: Input>(input: I) -> Result<Self, Error> {
        let mut collect = Collect::default();
        let walked = walk(input, &mut collect)?;
        let patches = collect.patches();
        let Gather {
            media,
            sets,
            findings,
        } = collect.gather;
        let sets = sets.into_iter().zip(collect.parts);
        let sets = sets.map(|(listing, parts)| OutlinedSet {
            begins: listing.place.stream,
            listing,
            parts,
        });
        Ok(Self {
            media,
            container: walked.container,
            stream_bytes: match walked.container {
                Container::Tape => walked.file_bytes,
                Container::Compressed => walked.stream_bytes,
            },
            sets: sets.collect(),
            patches,
            records: collect.records,
            findings,
        })
    }
}

/// Collects the headers and the places with addresses.
#[derive(Default)]
struct Collect {
    gather: Gather,
    parts: Vec<Parts>,
    records: Vec<(u64, u64)>,
    /// The block that the walk is in.
    block: Option<Tag>,
    /// Stream offset and size of each set so far.
    sizes: Vec<(u64, u64)>,
    /// Stream offset of the first block at each file offset.
    blocks: BTreeMap<u64, u64>,
    /// Stream offsets of addresses, with the address.
    addresses: Vec<(u64, u64)>,
    /// Bytes that follow from the stream itself.
    patches: BTreeMap<u64, Vec<u8>>,
}

impl Collect {
    /// All patches. An address that leads to no block stays as it is.
    fn patches(&mut self) -> BTreeMap<u64, Vec<u8>> {
        let mut patches = std::mem::take(&mut self.patches);
        for (at, address) in &self.addresses {
            if let Some(stream) = self.blocks.get(address) {
                patches.insert(*at, stream.to_le_bytes().to_vec());
            }
        }
        patches
    }

    fn filemark(&mut self, at: u64, block: &[u8]) {
        let fields = Fields(block);
        let room = block.len().saturating_sub(FILEMARK_LIST_AT) / 8;
        let count = room.min(fields.u32(FILEMARK_COUNT_AT) as usize);
        for index in 0..count {
            let place = FILEMARK_LIST_AT + index * 8;
            self.addresses.push((at + place as u64, fields.u64(place)));
        }
        let attributes = fields.u32(4);
        if attributes & HAS_INDEX != 0 {
            let mut header = fields.bytes(0, DESCRIPTOR_BYTES - 2).to_vec();
            if let Some(slot) = header.get_mut(4..8) {
                slot.copy_from_slice(&(attributes & !HAS_INDEX).to_le_bytes());
            }
            header.extend(xor16(&header).to_le_bytes());
            self.patches.insert(at, header);
        }
    }

    fn configuration(&mut self, at: u64, stream: &[u8]) {
        let is_final = self.block == Some(Tag::MSLS);
        if let Some(parts) = self.parts.last_mut() {
            let slot = match is_final {
                true => &mut parts.end,
                false => &mut parts.start,
            };
            stream.clone_into(slot);
        }
        let fields = Fields(stream);
        if let Some((_, size)) = self.sizes.last_mut().filter(|_| is_final) {
            *size = fields.u64(SIZE_AT);
        }
        // SQL Server 2005 has no compression, and other things there.
        if fields.u8(VERSION_AT) >= VERSION_WITH_COMPRESSION {
            let size = fields.u64(SIZE_AT).to_le_bytes().to_vec();
            self.patches.insert(at + COMPRESSED_SIZE_AT as u64, size);
        }
    }

    fn map(&mut self, at: u64, stream: &[u8]) {
        let mut sizes = self.sizes.iter();
        let mut entry_at = MAP_ENTRIES_AT;
        loop {
            let entry = Fields(Fields(stream).bytes(entry_at, usize::from(u16::MAX)));
            let bytes = usize::from(entry.u16(0));
            if bytes < MAP_ENTRY_BYTES_MIN {
                return;
            }
            // Behind the entry of a set are those of its volumes.
            if entry.array(2) != Tag::VOLB.0 {
                let Some((begins, size)) = sizes.next() else {
                    return;
                };
                let mut insert = |inside: usize, value: u64| {
                    let place = at + (entry_at + inside) as u64;
                    self.patches.insert(place, value.to_le_bytes().to_vec());
                };
                insert(MAP_ADDRESS_AT, *begins);
                insert(MAP_SIZE_AT, *size);
            }
            entry_at += bytes;
        }
    }
}

impl Visit for Collect {
    fn inner(&mut self) -> Option<&mut dyn Visit> {
        Some(&mut self.gather)
    }

    fn wants_content(&self) -> bool {
        true
    }

    fn wants_data(&mut self) -> bool {
        false
    }

    fn content(&mut self, tag: Tag, place: Place, bytes: &[u8]) {
        let at = place.stream;
        if tag.is_block() {
            self.block = Some(tag);
            self.blocks.entry(place.file).or_insert(at);
        }
        match tag {
            Tag::SSET => {
                self.sizes.push((at, 0));
                let address = at.to_le_bytes().to_vec();
                self.patches.insert(at + SET_ADDRESS_AT, address);
                self.parts.push(Parts {
                    set: bytes.to_vec(),
                    ..Parts::default()
                });
            }
            Tag::VOLB => {
                if let Some(parts) = self.parts.last_mut() {
                    parts.volume = bytes.to_vec();
                }
            }
            Tag::SFMB => self.filemark(at, bytes),
            Tag::ESET => {
                let address = Fields(bytes).u64(END_ADDRESS_AT as usize);
                if address != 0 {
                    self.addresses.push((at + END_ADDRESS_AT, address));
                }
            }
            Tag::MQCI => self.configuration(at, bytes),
            Tag::TSMP => self.map(at, bytes),
            _ => {}
        }
    }

    fn records(&mut self, records: Vec<(u64, u64)>) {
        self.records = records;
    }

    fn finding(&mut self, finding: Finding) {
        if self.gather.findings.len() < FINDINGS_MAX {
            self.gather.findings.push(finding);
        }
    }
}
