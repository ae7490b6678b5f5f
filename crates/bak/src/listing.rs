//! The headers of a media family and of its sets.

use windlass_codec::Algorithm;

use crate::container::{Container, Input};
use crate::error::{Error, Finding, Place};
use crate::mtf::configuration::{Configuration, FileKind, StoredFile};
use crate::mtf::log::VirtualLog;
use crate::mtf::media::MediaHeader;
use crate::mtf::set::SetHeader;
use crate::visit::Visit;
use crate::walk::{Walked, walk};

/// Maximum number of findings that are kept; more are counted.
pub(crate) const FINDINGS_MAX: usize = 10_000;

/// The first version whose sets contain the first extents twice, and whose final configuration
/// counts only the second copy.
pub(crate) const VERSION_WITH_SECOND_COPY: u8 = 15;

/// The headers of a media family: one file.
#[derive(Debug)]
pub struct Listing {
    /// Its header; `None` only if its block is damaged.
    pub media: Option<MediaHeader>,
    /// Its sets, in order.
    pub sets: Vec<SetListing>,
    pub findings: Vec<Finding>,
    /// Totals of the file.
    pub walked: Walked,
}

/// A backup set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetListing {
    pub place: Place,
    /// Its first block.
    pub header: SetHeader,
    pub machine: String,
    /// Its configuration at the start.
    pub start: Option<Configuration>,
    /// Its configuration at the end.
    pub end: Option<Configuration>,
    pub logs: Vec<VirtualLog>,
    /// Whether it has an end block.
    pub is_complete: bool,
}

impl SetListing {
    /// The final configuration, or the first one if the set is truncated.
    pub fn configuration(&self) -> Option<&Configuration> {
        self.end.as_ref().or(self.start.as_ref())
    }

    /// Whether it was written by a server that stores the first extents twice.
    pub fn has_second_copy(&self) -> bool {
        self.header.version_major >= VERSION_WITH_SECOND_COPY
    }

    /// Number of a file's pages in the set. Servers since 2019 count only the second copy of the
    /// first extents in the final configuration.
    pub fn stored_pages(&self, file: &StoredFile) -> u32 {
        self.counted(file).stored_pages
    }

    /// Number of a file's bytes in the set.
    pub fn stored_bytes(&self, file: &StoredFile) -> u64 {
        self.counted(file).stored_bytes
    }

    fn counted<'a>(&'a self, file: &'a StoredFile) -> &'a StoredFile {
        let earlier = self.start.iter().flat_map(|start| &start.files);
        let earlier = earlier
            .filter(|_| self.has_second_copy() && file.kind == FileKind::Data)
            .find(|earlier| earlier.id == file.id);
        earlier.unwrap_or(file)
    }
}

impl Listing {
    /// Reads a family, skipping pages and log.
    ///
    /// # Errors
    /// See [`walk`].
    pub fn read<I: Input>(input: I) -> Result<Self, Error> {
        let mut gather = Gather::default();
        let walked = walk(input, &mut gather)?;
        Ok(Self {
            media: gather.media,
            sets: gather.sets,
            findings: gather.findings,
            walked,
        })
    }

    /// The set at a position.
    ///
    /// # Errors
    /// [`Error::NoSuchSet`].
    pub fn set(&self, position: u16) -> Result<&SetListing, Error> {
        self.sets
            .iter()
            .find(|set| set.header.position == position)
            .ok_or(Error::NoSuchSet {
                position,
                sets: self.sets.len(),
            })
    }

    /// Whether the file is compressed.
    pub fn is_compressed(&self) -> bool {
        self.walked.container == Container::Compressed
    }

    /// What it is compressed with.
    pub fn algorithm(&self) -> Option<Algorithm> {
        self.walked.algorithm
    }
}

/// Collects the content of the blocks; other visitors use it too.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    pub(crate) media: Option<MediaHeader>,
    pub(crate) sets: Vec<SetListing>,
    pub(crate) findings: Vec<Finding>,
}

impl Gather {
    /// Whether the walk is inside the set at `position`.
    pub(crate) fn is_inside(&self, position: u16) -> bool {
        let last = self.sets.last();
        last.is_some_and(|set| set.header.position == position)
    }
}

impl Visit for Gather {
    fn media(&mut self, media: &MediaHeader) {
        self.media.get_or_insert_with(|| media.clone());
    }

    fn set(&mut self, header: &SetHeader, place: Place) {
        self.sets.push(SetListing {
            place,
            header: header.clone(),
            machine: String::new(),
            start: None,
            end: None,
            logs: Vec::new(),
            is_complete: false,
        });
    }

    fn machine(&mut self, name: &str) {
        if let Some(set) = self.sets.last_mut() {
            name.clone_into(&mut set.machine);
        }
    }

    fn configuration(&mut self, configuration: &Configuration, is_final: bool) {
        if let Some(set) = self.sets.last_mut() {
            let slot = if is_final {
                &mut set.end
            } else {
                &mut set.start
            };
            *slot = Some(configuration.clone());
        }
    }

    fn virtual_log(&mut self, log: &VirtualLog) {
        if let Some(set) = self.sets.last_mut() {
            set.logs.push(log.clone());
        }
    }

    fn wants_data(&mut self) -> bool {
        false
    }

    fn set_ends(&mut self) {
        if let Some(set) = self.sets.last_mut() {
            set.is_complete = set.end.is_some();
        }
    }

    fn finding(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }
}
