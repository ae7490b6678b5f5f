//! Recreates the files of a database: writes every page to its position, and a log file with the log
//! from the set. Everything that verification checks is checked on the way.

use std::collections::{BTreeMap, BTreeSet};

use crate::checksum::page_checksum;
use crate::container::Input;
use crate::error::{Damage, Error, Finding, PageId};
use crate::listing::SetListing;
use crate::mtf::configuration::{Configuration, FileKind};
use crate::mtf::log::VirtualLog;
use crate::page::{EXTENT_BYTES, PAGE_BYTES};
use crate::verify::{Content, Verifier};

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
    /// What verification of the same set finds; the files have the pages as they were found.
    pub findings: Vec<Finding>,
    /// Number of findings that were not kept.
    pub more_findings: u64,
}

/// Verifies one backup set, one family after the other, and writes its files.
#[expect(missing_debug_implementations, reason = "a target need not have one")]
pub struct Rebuilder<'t> {
    position: u16,
    verifier: Verifier,
    writer: Writer<'t>,
}

impl<'t> Rebuilder<'t> {
    /// Rebuilds the set at a position.
    pub fn new(position: u16, target: &'t mut dyn Target) -> Self {
        Self {
            position,
            verifier: Verifier::new(position),
            writer: Writer {
                target,
                log_files: BTreeMap::new(),
                begun_logs: BTreeSet::new(),
                extents: BTreeMap::new(),
                log_bytes: 0,
            },
        }
    }

    /// Writes the content of a family.
    ///
    /// # Errors
    /// See [`Verifier::family`]; also if the target cannot be written.
    pub fn family<I: Input>(&mut self, input: I) -> Result<(), Error> {
        self.verifier.family_into(input, Some(&mut self.writer))
    }

    /// Sets the lengths of the files, and writes the headers of the log file.
    ///
    /// # Errors
    /// The target cannot be written, or no family was read.
    pub fn finish(mut self) -> Result<Rebuilt, Error> {
        let Some((_, set)) = self.verifier.first() else {
            return Err(Error::NoSuchSet {
                position: self.position,
                sets: 0,
            });
        };
        let set = set.clone();
        if let Some(configuration) = set.configuration() {
            self.writer.end(configuration, &set)?;
        }
        let verified = self.verifier.finish();
        let findings = verified.findings.into_iter().map(|found| found.finding);
        Ok(Rebuilt {
            set,
            extents: self.writer.extents,
            log_bytes: self.writer.log_bytes,
            findings: findings.collect(),
            more_findings: verified.more_findings,
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

/// Writes what belongs to the set.
struct Writer<'t> {
    target: &'t mut dyn Target,
    /// Log files and their lengths.
    log_files: BTreeMap<u16, u64>,
    begun_logs: BTreeSet<u16>,
    extents: BTreeMap<u16, u64>,
    log_bytes: u64,
}

impl Writer<'_> {
    fn end(&mut self, configuration: &Configuration, set: &SetListing) -> Result<(), Error> {
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
        Ok(())
    }
}

impl Content for Writer<'_> {
    fn configuration(&mut self, configuration: &Configuration) {
        self.log_files = log_files(configuration);
    }

    fn extent(&mut self, first: PageId, extent: &[u8]) -> Result<(), Error> {
        let offset = u64::from(first.page) * PAGE_BYTES as u64;
        debug_assert_eq!(extent.len(), EXTENT_BYTES);
        self.target.write(first.file, offset, extent)?;
        *self.extents.entry(first.file).or_default() += 1;
        Ok(())
    }

    fn log(
        &mut self,
        log: &VirtualLog,
        offset: u64,
        piece: &[u8],
        is_first: bool,
    ) -> Result<Option<Damage>, Error> {
        let is_known = self.log_files.contains_key(&log.file);
        // The log of an earlier set is not part of this one: the first piece empties the file.
        if is_first && self.begun_logs.insert(log.file) {
            if !is_known {
                let what = "log file that its log belongs to";
                return Ok(Some(Damage::Incomplete { what }));
            }
            self.target.set_length(log.file, 0)?;
        }
        if is_known {
            self.target.write(log.file, offset, piece)?;
            self.log_bytes += piece.len() as u64;
        }
        Ok(None)
    }
}
