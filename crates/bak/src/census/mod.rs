//! An overview of a file: the position of each block and stream, and the types of its pages.
//!
//! - [`Picture`]: what lies where in the file.
//! - [`ObjectCensus`]: the pages of each object.

mod objects;
mod picture;

use std::collections::{BTreeMap, BTreeSet};

use crate::container::Input;
use crate::error::{Error, Finding, PageId, Place};
use crate::listing::{Gather, Listing};
use crate::mtf::Tag;
use crate::mtf::configuration::Configuration;
use crate::mtf::log::VirtualLog;
use crate::mtf::media::MediaHeader;
use crate::mtf::set::SetHeader;
use crate::page::{EXTENT_PAGES, Located, PAGE_BYTES, PageHeader, locate};
use crate::visit::{Block, ExtentPlace, Stream, Visit};
use crate::walk::walk;

pub use self::objects::ObjectCensus;
use self::objects::SystemPages;
pub use self::picture::{PartKind, Picture};

/// Maximum number of map entries that are kept.
const ENTRIES_MAX: usize = 100_000;

/// Maximum number of allocation units counted separately.
const UNITS_MAX: usize = 1_000_000;

/// An entry of the map: a descriptor block or a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub tag: Tag,
    /// Whether it is a stream of the previous block.
    pub is_stream: bool,
    pub place: Place,
    /// Length of a block up to its first stream, or of a stream without its header.
    pub bytes: u64,
}

/// The types and owners of the pages of a data file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileCensus {
    /// Pages by their type.
    pub types: BTreeMap<u8, u64>,
    /// Pages that do not contain their own number: never formatted.
    pub unformatted: u64,
    /// Pages by their allocation unit.
    pub units: BTreeMap<u64, u64>,
    /// Pages of all other units.
    pub other_units: u64,
    pub extents: u64,
    /// Pages with a checksum, with torn-page bits, with neither.
    pub protection: [u64; 3],
}

/// The content of a file.
#[derive(Debug)]
pub struct Census {
    /// Its media and set headers.
    pub listing: Listing,
    /// Its blocks and streams in order.
    pub entries: Vec<Entry>,
    /// Number of entries that were not kept.
    pub more_entries: u64,
    /// The data files of each set, by position and file.
    pub files: BTreeMap<(u16, u16), FileCensus>,
    /// The pages of the objects of each set, by position; missing if its system tables cannot be read.
    pub objects: BTreeMap<u16, Vec<ObjectCensus>>,
    /// The sets in which pages of the system tables are damaged or missing, so that objects are missing or have no name.
    /// A stripe and a differential have only some of these pages.
    pub unsure_objects: BTreeSet<u16>,
    pub picture: Picture,
    /// Extents that only pad a transfer.
    pub fillers: u64,
    /// Extents that belong to no file.
    pub unplaced: u64,
}

pub fn page_type_name(page_type: u8) -> &'static str {
    match page_type {
        1 => "data",
        2 => "index",
        3 => "text mix",
        4 => "text tree",
        7 => "sort",
        8 => "GAM",
        9 => "SGAM",
        10 => "IAM",
        11 => "PFS",
        13 => "boot",
        15 => "file header",
        16 => "differential map",
        17 => "bulk-change map",
        _ => "other",
    }
}

impl Census {
    /// Reads a complete file.
    ///
    /// # Errors
    /// See [`walk`].
    pub fn read<I: Input>(input: I) -> Result<Self, Error> {
        let mut visit = CensusVisit::default();
        let walked = walk(input, &mut visit)?;
        visit.take_objects();
        visit.picture.end(walked.file_bytes);
        let gather = visit.gather;
        Ok(Self {
            listing: Listing {
                media: gather.media,
                sets: gather.sets,
                findings: gather.findings,
                walked,
            },
            entries: visit.entries,
            more_entries: visit.more_entries,
            files: visit.files,
            objects: visit.objects,
            unsure_objects: visit.unsure_objects,
            picture: visit.picture,
            fillers: visit.fillers,
            unplaced: visit.unplaced,
        })
    }
}

#[derive(Default)]
struct CensusVisit {
    gather: Gather,
    position: u16,
    data_files: Vec<u16>,
    entries: Vec<Entry>,
    more_entries: u64,
    files: BTreeMap<(u16, u16), FileCensus>,
    system: SystemPages,
    objects: BTreeMap<u16, Vec<ObjectCensus>>,
    unsure_objects: BTreeSet<u16>,
    picture: Picture,
    fillers: u64,
    unplaced: u64,
}

impl CensusVisit {
    /// The objects of the set that ends here.
    fn take_objects(&mut self) {
        let files = self
            .files
            .range((self.position, 0)..=(self.position, u16::MAX));
        let found = self.system.objects(files.map(|(_, file)| file));
        let is_whole = found.as_ref().is_some_and(|(_, is_whole)| *is_whole);
        if self.position > 0 && !is_whole && !self.system.are_too_many() {
            self.unsure_objects.insert(self.position);
        }
        if let Some((objects, _)) = found {
            self.objects.insert(self.position, objects);
        }
        self.system.clear();
    }

    /// Adds the pages of an extent to the picture.
    fn paint(&mut self, at: ExtentPlace, first: PageId, extent: &[u8]) {
        let kind = |(index, page): (u32, &[u8])| {
            let header = PageHeader::new(page);
            let id = PageId {
                page: first.page + index,
                ..first
            };
            match header.version() == 1 && header.id() == id {
                true => PartKind::of_page(header),
                false => PartKind::Unformatted,
            }
        };
        let kinds = (0..EXTENT_PAGES).zip(extent.chunks(PAGE_BYTES)).map(kind);
        let place = at.place;
        if place.stream == place.file {
            for (offset, kind) in (0..).step_by(PAGE_BYTES).zip(kinds) {
                self.picture.begin(place.file + offset, kind);
            }
            return;
        }
        // The pages of a compressed record have no places of their own.
        let mut counts = [0; PartKind::ALL.len()];
        for kind in kinds {
            if let Some(count) = counts.get_mut(kind as usize) {
                *count += 1;
            }
        }
        let most = PartKind::ALL.into_iter().zip(counts).rev();
        if let Some((kind, _)) = most.max_by_key(|(_, count)| *count) {
            self.picture.begin(place.file, kind);
        }
    }

    fn enter(&mut self, entry: Entry) {
        if self.entries.len() < ENTRIES_MAX {
            self.entries.push(entry);
        } else {
            self.more_entries += 1;
        }
    }
}

impl FileCensus {
    fn page(&mut self, id: PageId, page: &[u8]) {
        let header = PageHeader::new(page);
        if header.version() != 1 || header.id() != id {
            self.unformatted += 1;
            return;
        }
        *self.types.entry(header.page_type()).or_default() += 1;
        let unit = header.allocation_unit();
        if self.units.len() < UNITS_MAX || self.units.contains_key(&unit) {
            *self.units.entry(unit).or_default() += 1;
        } else {
            self.other_units += 1;
        }
        let [sums, torn, neither] = &mut self.protection;
        if header.has_checksum() {
            *sums += 1;
        } else if header.has_torn_bits() {
            *torn += 1;
        } else {
            *neither += 1;
        }
    }
}

impl Visit for CensusVisit {
    fn media(&mut self, media: &MediaHeader) {
        self.gather.media(media);
    }

    fn block(&mut self, block: Block) {
        self.picture.begin(block.place.file, PartKind::Headers);
        self.enter(Entry {
            tag: block.tag,
            is_stream: false,
            place: block.place,
            bytes: block.bytes,
        });
    }

    fn stream(&mut self, stream: Stream) {
        let kind = match stream.tag {
            Tag::MQTL => PartKind::Log,
            Tag::SPAD | Tag::APAD => PartKind::Padding,
            _ => PartKind::Headers,
        };
        self.picture.begin(stream.place.file, kind);
        self.enter(Entry {
            tag: stream.tag,
            is_stream: true,
            place: stream.place,
            bytes: stream.bytes,
        });
    }

    fn set(&mut self, header: &SetHeader, place: Place) {
        self.take_objects();
        self.position = header.position;
        self.gather.set(header, place);
    }

    fn machine(&mut self, name: &str) {
        self.gather.machine(name);
    }

    fn configuration(&mut self, configuration: &Configuration, is_final: bool) {
        self.data_files = configuration.data_files();
        self.gather.configuration(configuration, is_final);
    }

    fn virtual_log(&mut self, log: &VirtualLog) {
        self.gather.virtual_log(log);
    }

    fn extent(&mut self, at: ExtentPlace, extent: &[u8]) -> Result<(), Error> {
        let first = match locate(extent, &self.data_files) {
            Located::Extent { first } => first,
            Located::Filler => {
                self.fillers += 1;
                self.picture.begin(at.place.file, PartKind::Padding);
                return Ok(());
            }
            Located::Unknown => {
                self.unplaced += 1;
                self.picture.begin(at.place.file, PartKind::Unplaced);
                return Ok(());
            }
        };
        self.paint(at, first, extent);
        let file = self.files.entry((self.position, first.file)).or_default();
        file.extents += 1;
        for (index, page) in (0..EXTENT_PAGES).zip(extent.chunks(PAGE_BYTES)) {
            let id = PageId {
                page: first.page + index,
                ..first
            };
            file.page(id, page);
            self.system.offer(id, page);
        }
        Ok(())
    }

    fn set_ends(&mut self) {
        self.gather.set_ends();
    }

    fn finding(&mut self, finding: Finding) {
        self.gather.finding(finding);
    }
}
