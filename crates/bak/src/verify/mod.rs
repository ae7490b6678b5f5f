//! RESTORE VERIFYONLY: checks everything that has a checksum or is stored in two places.
//!
//! A [`Verifier`] reads the families of a media set in any order, each once and forward, and then
//! returns its findings. It keeps in memory: one or two bits for each page, the allocation maps,
//! and one entry for each run of consecutive extents.

mod file;
mod log;
mod notes;
mod sparse;
mod visit;

use std::collections::{BTreeMap, BTreeSet};

use file::FileCheck;
pub(crate) use file::{PFS_ALLOCATED, PFS_AT, PFS_PAGES};
use log::LogCheck;
pub(crate) use visit::Content;
use visit::VerifyVisit;

use crate::checksum::{page_checksum, torn_bits_agree};
use crate::container::Input;
use crate::error::{Damage, Error, Finding, PageId, Place};
use crate::listing::{FINDINGS_MAX, Gather, SetListing};
use crate::mtf::configuration::{BackupType, Configuration, FileKind};
use crate::mtf::media::MediaHeader;
use crate::page::{EXTENT_PAGES, Located, PAGE_BYTES, PageHeader, is_sealed, locate};
use crate::transactions::Transactions;
use crate::visit::ExtentPlace;
use crate::walk::{Walked, walk};

/// Numbers of the structures checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checked {
    /// Descriptor block headers.
    pub blocks: u64,
    /// Stream headers.
    pub streams: u64,
    /// Records of a compressed container.
    pub records: u64,
    pub backup_checksums: u64,
    /// Extents that belong to a file.
    pub extents: u64,
    /// Extents that pad a transfer.
    pub fillers: u64,
    pub page_checksums: u64,
    /// Pages with torn-page bits.
    pub torn_pages: u64,
    /// Pages with their own number but without protection of their content.
    pub unprotected_pages: u64,
    /// Pages that are not allocated and were never formatted.
    pub unformatted_pages: u64,
    /// Allocated pages with their own number.
    pub allocated_pages: u64,
    /// Files whose extents match their map.
    pub mapped_files: u64,
    /// Consecutive log blocks.
    pub log_blocks: u64,
    /// Virtual log files without gaps.
    pub virtual_logs: u64,
    /// Records in the log.
    pub log_records: u64,
}

/// A finding and its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFinding {
    /// Index of the file, in the order given.
    pub input: usize,
    pub finding: Finding,
}

/// The result of verification.
#[derive(Debug)]
pub struct Verified {
    /// The set, from its first family.
    pub set: Option<SetListing>,
    /// Totals of the files, in the order given.
    pub walked: Vec<Walked>,
    pub checked: Checked,
    /// The findings kept.
    pub findings: Vec<FileFinding>,
    /// Number of findings that were not kept.
    pub more_findings: u64,
    /// Notable facts that are not problems.
    pub notes: Vec<String>,
    /// What could not be checked, and why.
    pub unchecked: Vec<String>,
}

impl Verified {
    /// Whether there are no findings.
    pub fn is_valid(&self) -> bool {
        self.findings.is_empty() && self.more_findings == 0
    }
}

/// Verifies a backup set, one family after the other.
#[derive(Debug)]
pub struct Verifier {
    position: u16,
    first: Option<(MediaHeader, SetListing)>,
    families: Vec<u16>,
    walked: Vec<Walked>,
    state: State,
}

/// The state shared by all families.
#[derive(Debug, Default)]
struct State {
    input: usize,
    files: BTreeMap<u16, FileCheck>,
    log: LogCheck,
    transactions: Transactions,
    /// Pages that seem to be encrypted, and the first of them with its flags.
    sealed_pages: u64,
    first_sealed: Option<(PageId, u16)>,
    checked: Checked,
    findings: Vec<FileFinding>,
    more_findings: u64,
    notes: Vec<String>,
    unchecked: Vec<String>,
}

impl Verifier {
    /// Verifies the set at a position.
    pub fn new(position: u16) -> Self {
        Self {
            position,
            first: None,
            families: Vec::new(),
            walked: Vec::new(),
            state: State::default(),
        }
    }

    /// Reads a family.
    ///
    /// # Errors
    /// See [`walk`]; also if the family has no such set.
    pub fn family<I: Input>(&mut self, input: I) -> Result<(), Error> {
        self.family_into(input, None)
    }

    /// Reads a family, and passes on the content of the set.
    ///
    /// # Errors
    /// As [`Verifier::family`], and those of `content`.
    pub(crate) fn family_into<I: Input>(
        &mut self,
        input: I,
        content: Option<&mut dyn Content>,
    ) -> Result<(), Error> {
        self.state.input = self.walked.len();
        let mut visit = VerifyVisit {
            gather: Gather::default(),
            position: self.position,
            is_first: self.first.is_none(),
            data_files: Vec::new(),
            state: &mut self.state,
            content,
        };
        let walked = walk(input, &mut visit)?;
        let Gather {
            media, mut sets, ..
        } = visit.gather;
        self.walked.push(walked);
        let checked = &mut self.state.checked;
        checked.blocks += walked.blocks;
        checked.streams += walked.streams;
        checked.records += walked.records;
        let count = sets.len();
        let found = sets
            .iter()
            .position(|set| set.header.position == self.position);
        let Some(found) = found else {
            return Err(Error::NoSuchSet {
                position: self.position,
                sets: count,
            });
        };
        let set = sets.swap_remove(found);
        self.state.check_complete(&set);
        let media = media.unwrap_or_else(|| MediaHeader::read(&[], &[]));
        self.check_family(&media, &set);
        self.first.get_or_insert((media, set));
        Ok(())
    }

    /// Checks that the family belongs with the previous ones.
    fn check_family(&mut self, media: &MediaHeader, set: &SetListing) {
        if let Some((first, first_set)) = &self.first {
            if (first.media_set, first_set.header.guid) != (media.media_set, set.header.guid) {
                self.state.report(
                    Place::default(),
                    Damage::OtherMediaSet {
                        expected: first.media_set,
                        found: media.media_set,
                    },
                );
            } else if self.families.contains(&media.family_number) {
                self.state.report(
                    Place::default(),
                    Damage::FamilyTwice {
                        number: media.family_number,
                    },
                );
            }
        }
        self.families.push(media.family_number);
    }

    /// The media header and the set of the first family that was read.
    pub(crate) fn first(&self) -> Option<&(MediaHeader, SetListing)> {
        self.first.as_ref()
    }

    /// Returns the result.
    pub fn finish(mut self) -> Verified {
        let Some((media, set)) = self.first else {
            return self.state.into_verified(None, self.walked);
        };
        let missing: Vec<u16> = (1..=media.family_count)
            .filter(|number| !self.families.contains(number))
            .collect();
        for &number in missing.iter().take(FINDINGS_MAX) {
            let count = media.family_count;
            let damage = Damage::FamilyMissing { number, count };
            self.state.report(Place::default(), damage);
        }
        self.state.input = 0;
        if missing.is_empty() {
            self.state.check_whole(&set);
        } else {
            self.state.unchecked.push(
                "that the extents match the allocation maps, and that the log is complete: media \
                 families are missing"
                    .to_owned(),
            );
        }
        self.state.check_pages(&set);
        self.state.into_verified(Some(set), self.walked)
    }
}

impl State {
    fn report(&mut self, place: Place, damage: Damage) {
        if self.findings.len() >= FINDINGS_MAX {
            self.more_findings += 1;
            return;
        }
        self.findings.push(FileFinding {
            input: self.input,
            finding: Finding { place, damage },
        });
    }

    fn check_complete(&mut self, set: &SetListing) {
        if set.start.is_none() && set.end.is_none() {
            self.report(
                set.place,
                Damage::Incomplete {
                    what: "readable configuration",
                },
            );
        } else if set.end.is_none() {
            self.report(
                set.place,
                Damage::Incomplete {
                    what: "final configuration (MSLS)",
                },
            );
        }
        if !set.is_complete {
            self.report(
                set.place,
                Damage::Incomplete {
                    what: "end of set (ESET)",
                },
            );
        }
    }

    /// Checks that need all families.
    fn check_whole(&mut self, set: &SetListing) {
        let Some(configuration) = set.configuration() else {
            return;
        };
        let is_log = configuration.backup_type == BackupType::Log;
        if !is_log {
            self.check_extents(set, configuration);
        }
        self.check_log(set, configuration);
    }

    fn check_extents(&mut self, set: &SetListing, configuration: &Configuration) {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        for file in &configuration.files {
            if file.kind != FileKind::Data || !seen.insert(file.id) {
                continue;
            }
            let mut outcome = file::Outcome::default();
            let empty = FileCheck::default();
            let check = self.files.get(&file.id).unwrap_or(&empty);
            check.compare(set, configuration, file, &mut outcome);
            found.push(outcome);
        }
        for outcome in found {
            self.checked.mapped_files += u64::from(outcome.is_mapped);
            self.notes.extend(outcome.notes);
            self.unchecked.extend(outcome.unchecked);
            for (input, finding) in outcome.findings {
                self.input = input;
                self.report(finding.place, finding.damage);
            }
        }
        self.input = 0;
    }

    fn check_log(&mut self, set: &SetListing, configuration: &Configuration) {
        let log = std::mem::take(&mut self.log);
        let mut findings = Vec::new();
        log.finish(set, configuration, &mut self.checked, &mut findings);
        for damage in findings {
            self.report(set.place, damage);
        }
    }

    /// Checks that allocated pages have their own number; suspected pages are reported if they are
    /// allocated.
    fn check_pages(&mut self, set: &SetListing) {
        let is_full = set
            .configuration()
            .is_some_and(|found| found.backup_type == BackupType::Database);
        let files = std::mem::take(&mut self.files);
        for (&id, file) in &files {
            let mut outcome = file::Outcome::default();
            file.check_pages(id, is_full, &mut self.checked, &mut outcome);
            for (input, finding) in outcome.findings {
                self.input = input;
                self.report(finding.place, finding.damage);
            }
        }
        self.input = 0;
        self.findings
            .sort_by_key(|found| (found.input, found.finding.place));
    }

    fn into_verified(mut self, set: Option<SetListing>, walked: Vec<Walked>) -> Verified {
        if self.checked.unprotected_pages > 0 {
            self.unchecked.push(format!(
                "the content of {} pages that have neither a checksum nor torn-page bits",
                self.checked.unprotected_pages
            ));
        }
        self.report_sealed();
        self.report_transactions();
        let found = set.as_ref().and_then(SetListing::configuration);
        if found.is_some_and(|found| !found.has_checksums()) {
            self.unchecked.push(
                "the backup as a whole: it was made without CHECKSUM, so the data between the \
                 pages is only known to be well-formed"
                    .to_owned(),
            );
        }
        Verified {
            set,
            walked,
            checked: self.checked,
            findings: self.findings,
            more_findings: self.more_findings,
            notes: self.notes,
            unchecked: self.unchecked,
        }
    }

    /// Returns the first page of an extent that belongs to a file.
    fn extent(
        &mut self,
        at: ExtentPlace,
        extent: &[u8],
        data_files: &[u16],
        twice: bool,
    ) -> Option<PageId> {
        let first = match locate(extent, data_files) {
            Located::Extent { first } => first,
            Located::Filler => {
                self.checked.fillers += 1;
                return None;
            }
            Located::Unknown => {
                self.report(at.place, Damage::UnplacedExtent);
                return None;
            }
        };
        self.checked.extents += 1;
        let input = self.input;
        let file = self.files.entry(first.file).or_default();
        if !file.add(first.page / EXTENT_PAGES, input, at.place) && !twice {
            self.report(at.place, Damage::ExtentTwice { page: first });
        }
        for (index, page) in (0..EXTENT_PAGES).zip(extent.chunks(PAGE_BYTES)) {
            let id = PageId {
                page: first.page + index,
                ..first
            };
            let place = Place {
                stream: at.place.stream + u64::from(index) * PAGE_BYTES as u64,
                file: if at.place.file == at.place.stream {
                    at.place.file + u64::from(index) * PAGE_BYTES as u64
                } else {
                    at.place.file
                },
            };
            self.page(id, place, page);
        }
        Some(first)
    }

    fn page(&mut self, id: PageId, place: Place, page: &[u8]) {
        let header = PageHeader::new(page);
        let Some(file) = self.files.get_mut(&id.file) else {
            return;
        };
        let is_own = header.version() == 1 && header.id() == id;
        file.note_page(id.page, is_own, header.page_type(), page);
        if !is_own {
            if file.suspects.len() < FINDINGS_MAX && page.iter().any(|byte| *byte != 0) {
                let found = header.id();
                let damage = Damage::PageIdentity { page: id, found };
                file.suspect(id.page, self.input, Finding { place, damage });
            }
            return;
        }
        if is_sealed(page) {
            self.sealed_pages += 1;
            self.first_sealed.get_or_insert((id, header.flags()));
        }
        if header.has_checksum() {
            let (found, expected) = (header.checksum(), page_checksum(page));
            if found == expected {
                self.checked.page_checksums += 1;
                return;
            }
            let damage = Damage::PageChecksum {
                page: id,
                expected,
                found,
            };
            file.suspect(id.page, self.input, Finding { place, damage });
        } else if header.has_torn_bits() {
            if torn_bits_agree(page) {
                self.checked.torn_pages += 1;
                return;
            }
            let damage = Damage::TornPage { page: id };
            file.suspect(id.page, self.input, Finding { place, damage });
        } else {
            self.checked.unprotected_pages += 1;
        }
    }
}
