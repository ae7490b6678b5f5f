//! Recreates the files of a database: writes every page to its position, and a log file with the log
//! from the set.

use std::collections::{BTreeMap, BTreeSet};

use crate::checksum::page_checksum;
use crate::container::Input;
use crate::error::{Damage, Error, Finding, PageId, Place};
use crate::listing::{FINDINGS_MAX, Gather, SetListing};
use crate::mtf::configuration::{Configuration, FileKind};
use crate::mtf::log::VirtualLog;
use crate::mtf::media::MediaHeader;
use crate::page::{EXTENT_BYTES, EXTENT_PAGES, Located, PAGE_BYTES, PageHeader, locate};
use crate::visit::{ExtentPlace, Visit};
use crate::walk::walk;

/// Bytes of the header of a virtual log file.
const VIRTUAL_LOG_HEADER_BYTES: usize = 0x38;

/// The first byte of the header of a virtual log file.
const VIRTUAL_LOG_MARK: u8 = 0xAB;

/// Type of the first page of every file.
const TYPE_FILE_HEADER: u8 = 15;

/// Flag of a page with a checksum.
const FLAG_CHECKSUM: u16 = 0x0200;

/// Receives the files of a database.
pub trait Target {
    /// Writes bytes into a file.
    ///
    /// # Errors
    /// The device fails.
    fn write(&mut self, file: u16, offset: u64, bytes: &[u8]) -> std::io::Result<()>;

    /// Sets the length of a file: the rest is zeros and takes no space.
    ///
    /// # Errors
    /// The device fails.
    fn set_length(&mut self, file: u16, bytes: u64) -> std::io::Result<()>;
}

/// The result of a rebuild.
#[derive(Debug)]
pub struct Rebuilt {
    /// The set, from its first family.
    pub set: SetListing,
    /// Extents written, by file.
    pub extents: BTreeMap<u16, u64>,
    /// Bytes of log written.
    pub log_bytes: u64,
    pub findings: Vec<Finding>,
}

/// Writes the files of one backup set, one family after the other.
#[expect(missing_debug_implementations, reason = "a target need not have one")]
pub struct Rebuilder<'t> {
    position: u16,
    target: &'t mut dyn Target,
    first: Option<(MediaHeader, SetListing)>,
    families: BTreeSet<u16>,
    state: State,
}

#[derive(Default)]
struct State {
    extents: BTreeMap<u16, u64>,
    log_bytes: u64,
    begun_logs: BTreeSet<u16>,
    findings: Vec<Finding>,
}

impl State {
    fn report(&mut self, place: Place, damage: Damage) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { place, damage });
        }
    }
}

impl<'t> Rebuilder<'t> {
    /// Rebuilds the set at a position.
    pub fn new(position: u16, target: &'t mut dyn Target) -> Self {
        Self {
            position,
            target,
            first: None,
            families: BTreeSet::new(),
            state: State::default(),
        }
    }

    /// Writes the content of a family.
    ///
    /// # Errors
    /// See [`walk`]; also if the target cannot be written.
    pub fn family<I: Input>(&mut self, input: I) -> Result<(), Error> {
        let mut visit = RebuildVisit {
            gather: Gather::default(),
            position: self.position,
            is_first: self.first.is_none(),
            data_files: Vec::new(),
            log_files: BTreeMap::new(),
            target: self.target,
            state: &mut self.state,
        };
        walk(input, &mut visit)?;
        let Gather { media, sets, .. } = visit.gather;
        let count = sets.len();
        let set = sets
            .into_iter()
            .find(|set| set.header.position == self.position)
            .ok_or(Error::NoSuchSet {
                position: self.position,
                sets: count,
            })?;
        let media = media.unwrap_or_else(|| MediaHeader::read(&[], &[]));
        if !set.is_complete {
            let what = "end of set (ESET)";
            self.state.report(set.place, Damage::Incomplete { what });
        }
        let number = media.family_number;
        if !self.families.insert(number) {
            let damage = Damage::FamilyTwice { number };
            self.state.report(Place::default(), damage);
        }
        if let Some((first, first_set)) = &self.first
            && (first.media_set, first_set.header.guid) != (media.media_set, set.header.guid)
        {
            let damage = Damage::OtherMediaSet {
                expected: first.media_set,
                found: media.media_set,
            };
            self.state.report(Place::default(), damage);
        }
        self.first.get_or_insert((media, set));
        Ok(())
    }

    /// Sets the lengths of the files, and writes the headers of the log file.
    ///
    /// # Errors
    /// The target cannot be written, or no family was read.
    pub fn finish(mut self) -> Result<Rebuilt, Error> {
        let Some((media, set)) = self.first else {
            return Err(Error::NoSuchSet {
                position: self.position,
                sets: 0,
            });
        };
        for number in 1..=media.family_count {
            if !self.families.contains(&number) {
                let count = media.family_count;
                let damage = Damage::FamilyMissing { number, count };
                self.state.report(Place::default(), damage);
            }
        }
        if let Some(configuration) = set.configuration() {
            for file in &configuration.files {
                self.target.set_length(file.id, file.bytes)?;
            }
            let logs = log_files(configuration);
            for &file in logs.keys() {
                let mut page = file_header_page(file);
                seal(&mut page);
                self.target.write(file, 0, &page)?;
            }
            for (index, log) in (1_u32..).zip(&set.logs) {
                let length = logs.get(&log.file).copied().unwrap_or(0);
                let header = virtual_log_header(log, index);
                if log.offset.saturating_add(header.len() as u64) <= length {
                    self.target.write(log.file, log.offset, &header)?;
                }
            }
        }
        Ok(Rebuilt {
            set,
            extents: self.state.extents,
            log_bytes: self.state.log_bytes,
            findings: self.state.findings,
        })
    }
}

/// The log files and their lengths.
fn log_files(configuration: &Configuration) -> BTreeMap<u16, u64> {
    let files = configuration.files.iter();
    files
        .filter(|file| file.kind == FileKind::Log)
        .map(|file| (file.id, file.bytes))
        .collect()
}

/// The first page of a log file, without the content of its record, which the server fills in.
fn file_header_page(file: u16) -> Vec<u8> {
    let mut page = vec![0; PAGE_BYTES];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(slot) = page.get_mut(at..at + bytes.len()) {
            slot.copy_from_slice(bytes);
        }
    };
    put(0, &[1, TYPE_FILE_HEADER]);
    put(4, &FLAG_CHECKSUM.to_le_bytes());
    put(0x24, &file.to_le_bytes());
    page
}

fn seal(page: &mut [u8]) {
    let sum = page_checksum(page);
    if let Some(slot) = page.get_mut(0x3C..0x40) {
        slot.copy_from_slice(&sum.to_le_bytes());
    }
}

/// The header at the start of a virtual log file.
fn virtual_log_header(log: &VirtualLog, counter: u32) -> Vec<u8> {
    let mut header = vec![VIRTUAL_LOG_MARK, log.parity];
    header.extend(log.version.to_le_bytes());
    header.extend(log.sequence.to_le_bytes());
    header.extend([0; 4]);
    header.extend(counter.to_le_bytes());
    header.extend(log.bytes.to_le_bytes());
    header.extend(log.offset.to_le_bytes());
    header.extend([0; 4]);
    header.extend(log.created.vlf.to_le_bytes());
    header.extend(log.created.block.to_le_bytes());
    header.extend(u32::from(log.created.slot).to_le_bytes());
    header.resize(VIRTUAL_LOG_HEADER_BYTES, 0);
    header
}

struct RebuildVisit<'s> {
    gather: Gather,
    position: u16,
    is_first: bool,
    data_files: Vec<u16>,
    /// Log files and their lengths.
    log_files: BTreeMap<u16, u64>,
    target: &'s mut dyn Target,
    state: &'s mut State,
}

impl RebuildVisit<'_> {
    fn is_inside(&self) -> bool {
        self.gather.is_inside(self.position)
    }

    /// Reports pages with a wrong checksum; they are written unchanged.
    fn check(&mut self, first: PageId, place: Place, extent: &[u8]) {
        for (index, page) in (0..EXTENT_PAGES).zip(extent.chunks(PAGE_BYTES)) {
            let header = PageHeader::new(page);
            let id = PageId {
                page: first.page + index,
                ..first
            };
            if header.version() != 1 || header.id() != id || !header.has_checksum() {
                continue;
            }
            let (found, expected) = (header.checksum(), page_checksum(page));
            if found != expected {
                let damage = Damage::PageChecksum {
                    page: id,
                    expected,
                    found,
                };
                self.state.report(place, damage);
            }
        }
    }
}

impl Visit for RebuildVisit<'_> {
    fn inner(&mut self) -> Option<&mut dyn Visit> {
        Some(&mut self.gather)
    }

    fn configuration(&mut self, configuration: &Configuration, is_final: bool) {
        if self.is_inside() {
            self.data_files = configuration.data_files();
            self.log_files = log_files(configuration);
        }
        self.gather.configuration(configuration, is_final);
    }

    fn wants_data(&mut self) -> bool {
        self.is_inside()
    }

    fn extent(&mut self, at: ExtentPlace, extent: &[u8]) -> Result<(), Error> {
        match locate(extent, &self.data_files) {
            Located::Extent { first } => {
                let offset = u64::from(first.page) * PAGE_BYTES as u64;
                debug_assert_eq!(extent.len(), EXTENT_BYTES);
                self.target.write(first.file, offset, extent)?;
                *self.state.extents.entry(first.file).or_default() += 1;
                self.check(first, at.place, extent);
            }
            Located::Filler => {}
            Located::Unknown => self.state.report(at.place, Damage::UnplacedExtent),
        }
        Ok(())
    }

    fn log(
        &mut self,
        log: &VirtualLog,
        offset: u64,
        place: Place,
        piece: &[u8],
    ) -> Result<(), Error> {
        // The log of an earlier set is not part of this one: the first piece empties the file.
        if self.is_first && self.state.begun_logs.insert(log.file) {
            if self.log_files.contains_key(&log.file) {
                self.target.set_length(log.file, 0)?;
            } else {
                let what = "log file that its log belongs to";
                self.state.report(place, Damage::Incomplete { what });
            }
        }
        if self.log_files.contains_key(&log.file) {
            self.target.write(log.file, offset, piece)?;
            self.state.log_bytes += piece.len() as u64;
        }
        Ok(())
    }

    fn finding(&mut self, finding: Finding) {
        self.state.report(finding.place, finding.damage);
    }
}
