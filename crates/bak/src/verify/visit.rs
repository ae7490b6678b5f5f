//! Verifies one family during its walk.

use super::State;
use crate::error::{Damage, Error, Finding, PageId, Place};
use crate::listing::{Gather, SetListing};
use crate::mtf::Tag;
use crate::mtf::configuration::Configuration;
use crate::mtf::log::VirtualLog;
use crate::visit::{ExtentPlace, Visit};

/// Receives the content of a set while it is verified.
pub(crate) trait Content {
    fn configuration(&mut self, configuration: &Configuration);

    /// The extent that begins with page `first`.
    fn extent(&mut self, first: PageId, extent: &[u8]) -> Result<(), Error>;

    /// A piece of the log at `offset` of its file, `is_first` for those of the first family. Returns damage to
    /// report.
    fn log(
        &mut self,
        log: &VirtualLog,
        offset: u64,
        piece: &[u8],
        is_first: bool,
    ) -> Result<Option<Damage>, Error>;
}

/// The walk through one family.
pub(super) struct VerifyVisit<'s, 'c> {
    pub(super) gather: Gather,
    pub(super) position: u16,
    pub(super) is_first: bool,
    pub(super) data_files: Vec<u16>,
    pub(super) state: &'s mut State,
    pub(super) content: Option<&'c mut dyn Content>,
}

impl VerifyVisit<'_, '_> {
    fn is_inside(&self) -> bool {
        self.gather.is_inside(self.position)
    }
}

impl Visit for VerifyVisit<'_, '_> {
    fn inner(&mut self) -> Option<&mut dyn Visit> {
        Some(&mut self.gather)
    }

    fn configuration(&mut self, configuration: &Configuration, is_final: bool) {
        if self.is_inside() {
            self.data_files = configuration.data_files();
            if let Some(content) = &mut self.content {
                content.configuration(configuration);
            }
        }
        self.gather.configuration(configuration, is_final);
    }

    fn virtual_log(&mut self, log: &VirtualLog) {
        self.gather.virtual_log(log);
        if self.is_inside() && self.is_first {
            self.state.log.add(log);
        }
    }

    fn wants_data(&mut self) -> bool {
        self.is_inside()
    }

    fn extent(&mut self, at: ExtentPlace, extent: &[u8]) -> Result<(), Error> {
        let twice = self
            .gather
            .sets
            .last()
            .is_some_and(SetListing::has_second_copy);
        let found = self.state.extent(at, extent, &self.data_files, twice);
        match (found, &mut self.content) {
            (Some(first), Some(content)) => content.extent(first, extent),
            _ => Ok(()),
        }
    }

    fn log(
        &mut self,
        log: &VirtualLog,
        offset: u64,
        place: Place,
        piece: &[u8],
    ) -> Result<(), Error> {
        let mut findings = Vec::new();
        self.state
            .log
            .piece(log, offset, place, piece, &mut findings);
        self.state.transactions.piece(log, offset, piece);
        for finding in findings {
            self.state.report(finding.place, finding.damage);
        }
        if let Some(content) = &mut self.content
            && let Some(damage) = content.log(log, offset, piece, self.is_first)?
        {
            self.state.report(place, damage);
        }
        Ok(())
    }

    fn backup_checksum_is_good(&mut self, _tag: Tag) {
        self.state.checked.backup_checksums += 1;
    }

    fn finding(&mut self, finding: Finding) {
        self.state.report(finding.place, finding.damage);
    }
}
