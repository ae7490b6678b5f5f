//! Retention on folders: which backups a policy lets go, and what became of them.

use std::io;
use std::path::PathBuf;

use windlass_base::Moment;
use windlass_catalog::Error as CatalogError;

use crate::Instance;
use crate::retention::{self, Decision, FoundMedia, FoundOther, Policy};

/// What is to expire.
#[derive(Debug, Clone)]
pub struct ExpireOptions<'a> {
    /// Where backups lie.
    pub folders: &'a [PathBuf],
    /// What is to be kept.
    pub policy: &'a Policy,
    /// The database that is meant; all when absent.
    pub database: Option<&'a str>,
    /// What happens to media that go.
    pub removal: Removal,
}

/// What happens to media that go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// They are named.
    Name,
    /// They are deleted.
    Delete,
}

/// What was found in some folders, and what became of it.
#[derive(Debug)]
pub struct ExpireReport {
    /// The media of ours.
    pub media: Vec<ExpiredMedia>,
    /// Files that are no backups of ours; they stay.
    pub others: Vec<FoundOther>,
}

/// A medium, whether it goes, and why.
#[derive(Debug)]
pub struct ExpiredMedia {
    /// What it holds.
    pub media: FoundMedia,
    /// Whether it goes.
    pub decision: Decision,
    /// The files that were deleted; none where nothing was to be deleted.
    pub deleted: Option<io::Result<Vec<PathBuf>>>,
}

/// Why nothing was decided.
#[derive(Debug, thiserror::Error)]
pub enum ExpireError {
    /// The folders cannot be listed.
    #[error("{0}")]
    Folders(io::Error),
    /// The history cannot be read, and with it what needs what.
    #[error("{0}")]
    History(CatalogError),
}

impl Instance {
    /// Lets go what a policy does not keep.
    ///
    /// # Errors
    /// Nothing was deleted then. A medium that could not be deleted is told in the report.
    pub fn expire(&self, options: &ExpireOptions<'_>) -> Result<ExpireReport, ExpireError> {
        let mut scan = retention::scan(options.folders).map_err(ExpireError::Folders)?;
        let past = self.catalog().past_backups(None);
        retention::add_dependents(&mut scan, &past.map_err(ExpireError::History)?);
        let now = Moment::now().0;
        let decisions = retention::decide(&scan.media, options.policy, options.database, now);
        let media = scan.media.into_iter().zip(decisions);
        let media = media.map(|(media, decision)| {
            let deletes = decision.goes && options.removal == Removal::Delete;
            ExpiredMedia {
                deleted: deletes.then(|| retention::delete(&media)),
                media,
                decision,
            }
        });
        Ok(ExpireReport {
            media: media.collect(),
            others: scan.others,
        })
    }
}
