//! An index of a database's extents in its backups, for reading them in any order.

use std::collections::BTreeMap;

use windlass_base::Guid;

use crate::container::{Container, Expander, Input, SeekInput, read_full};
use crate::error::{Error, Finding, PageId, Place};
use crate::listing::{FINDINGS_MAX, Gather, SetListing};
use crate::mtf::configuration::Configuration;
use crate::mtf::log::VirtualLog;
use crate::mtf::media::MediaHeader;
use crate::mtf::set::SetHeader;
use crate::page::{EXTENT_BYTES, EXTENT_PAGES, Located, locate};
use crate::transactions::Transactions;
use crate::visit::{ExtentPlace, Visit};
use crate::walk::walk;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The number of the file, in the order in which files were added, from 0.
    pub input: u32,
    /// Its offset in the file, or that of its record.
    pub offset: u64,
    /// Its offset within the expanded record.
    pub in_record: u32,
}

/// The positions of all extents of a database: 32 bytes each.
#[derive(Debug, Default)]
pub struct ExtentIndex {
    extents: BTreeMap<(u16, u32), Location>,
    containers: Vec<Container>,
    /// The set that was added last, and the transactions in its log.
    log_of: Guid,
    log: Transactions,
    /// Findings about the files.
    pub findings: Vec<(u32, Finding)>,
}

impl ExtentIndex {
    /// Adds the extents of a set in a file. They replace extents added before: a differential replaces
    /// those of its full backup.
    ///
    /// # Errors
    /// See [`walk`]; also if the file has no such set.
    pub fn add<I: Input>(
        &mut self,
        input: I,
        position: u16,
    ) -> Result<(Option<MediaHeader>, SetListing), Error> {
        let mut visit = IndexVisit {
            gather: Gather::default(),
            position,
            data_files: Vec::new(),
            input: self.containers.len() as u32,
            index: self,
        };
        let walked = walk(input, &mut visit)?;
        let Gather { media, sets, .. } = visit.gather;
        self.containers.push(walked.container);
        let count = sets.len();
        let set = sets
            .into_iter()
            .find(|set| set.header.position == position)
            .ok_or(Error::NoSuchSet {
                position,
                sets: count,
            })?;
        Ok((media, set))
    }

    /// The position of the extent that contains a page.
    pub fn location(&self, id: PageId) -> Option<Location> {
        self.extents
            .get(&(id.file, id.page / EXTENT_PAGES))
            .copied()
    }

    /// Takes the transactions in the log of the set that was added last.
    pub fn take_transactions(&mut self) -> Transactions {
        std::mem::take(&mut self.log)
    }

    /// The container of a file.
    pub fn container(&self, input: u32) -> Option<Container> {
        self.containers.get(input as usize).copied()
    }
}

struct IndexVisit<'i> {
    gather: Gather,
    position: u16,
    data_files: Vec<u16>,
    input: u32,
    index: &'i mut ExtentIndex,
}

impl IndexVisit<'_> {
    fn is_inside(&self) -> bool {
        let last = self.gather.sets.last();
        last.is_some_and(|set| set.header.position == self.position)
    }
}

impl Visit for IndexVisit<'_> {
    fn media(&mut self, media: &MediaHeader) {
        self.gather.media(media);
    }

    fn set(&mut self, header: &SetHeader, place: Place) {
        self.gather.set(header, place);
        if self.is_inside() && self.index.log_of != header.guid {
            self.index.log_of = header.guid;
            self.index.log = Transactions::default();
        }
    }

    fn configuration(&mut self, configuration: &Configuration, is_final: bool) {
        if self.is_inside() {
            self.data_files = configuration.data_files();
        }
        self.gather.configuration(configuration, is_final);
    }

    fn wants_data(&mut self) -> bool {
        self.is_inside()
    }

    fn extent(&mut self, at: ExtentPlace, extent: &[u8]) -> Result<(), Error> {
        if let Located::Extent { first } = locate(extent, &self.data_files) {
            let location = Location {
                input: self.input,
                offset: at.place.file,
                in_record: at.in_record,
            };
            let key = (first.file, first.page / EXTENT_PAGES);
            self.index.extents.insert(key, location);
        }
        Ok(())
    }

    fn log(
        &mut self,
        log: &VirtualLog,
        offset: u64,
        _place: Place,
        piece: &[u8],
    ) -> Result<(), Error> {
        self.index.log.piece(log, offset, piece);
        Ok(())
    }

    fn set_ends(&mut self) {
        self.gather.set_ends();
    }

    fn finding(&mut self, finding: Finding) {
        if self.index.findings.len() < FINDINGS_MAX {
            self.index.findings.push((self.input, finding));
        }
    }
}

/// Reads extents of one file in any order.
#[derive(Debug)]
pub struct ExtentReader<I>(Source<I>);

#[derive(Debug)]
enum Source<I> {
    Tape(I),
    Compressed(Box<Expander<I>>),
}

impl<I: SeekInput> ExtentReader<I> {
    /// Creates a reader for a file with the given container.
    pub fn new(input: I, container: Container) -> Self {
        Self(match container {
            Container::Tape => Source::Tape(input),
            Container::Compressed => Source::Compressed(Box::new(Expander::anywhere(input))),
        })
    }

    /// Reads the extent at a position in this file.
    ///
    /// # Errors
    /// It cannot be read, or the file has changed since it was indexed.
    pub fn read(&mut self, location: Location, extent: &mut Vec<u8>) -> Result<(), Error> {
        extent.clear();
        match &mut self.0 {
            Source::Tape(input) => {
                input.seek(location.offset)?;
                extent.resize(EXTENT_BYTES, 0);
                if read_full(input, extent)? < EXTENT_BYTES {
                    return Err(truncated(location));
                }
            }
            Source::Compressed(expander) => {
                expander.begin_at(location.offset).seek(location.offset)?;
                let in_record = location.in_record as usize;
                // Damage was reported when the file was indexed.
                let mut findings = Vec::new();
                while extent.len() < in_record + EXTENT_BYTES {
                    if expander.next(true, extent, &mut findings)?.is_none() {
                        return Err(truncated(location));
                    }
                }
                extent.drain(..in_record);
                extent.truncate(EXTENT_BYTES);
            }
        }
        Ok(())
    }
}

fn truncated(location: Location) -> Error {
    Error::Truncated {
        offset: location.offset,
        what: "an extent",
    }
}
