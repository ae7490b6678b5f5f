//! Applies a retention policy to folders, and reports the result.

use std::io;
use std::path::PathBuf;

use windlass_base::Moment;
use windlass_catalog::Error as CatalogError;

use crate::Instance;
use crate::retention::{self, Decision, FoundMedia, FoundOther, Policy};

#[derive(Debug, Clone)]
pub struct ExpireOptions<'a> {
    /// The folders with the backups.
    pub folders: &'a [PathBuf],
    pub policy: &'a Policy,
    /// Only backups of this database; all when absent.
    pub database: Option<&'a str>,
    pub removal: Removal,
}

/// What happens to expired media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// They are only listed.
    Name,
    Delete,
}

/// The content of some folders, and what happened to it.
#[derive(Debug)]
pub struct ExpireReport {
    /// Media of Windlass backups.
    pub media: Vec<ExpiredMedia>,
    /// Other files; they are not touched.
    pub others: Vec<FoundOther>,
}

/// A medium with the decision about it.
#[derive(Debug)]
pub struct ExpiredMedia {
    pub media: FoundMedia,
    pub decision: Decision,
    /// The files that were deleted; `None` if nothing was to be deleted.
    pub deleted: Option<io::Result<Vec<PathBuf>>>,
}

/// Why nothing was decided.
#[derive(Debug, thiserror::Error)]
pub enum ExpireError {
    #[error("{0}")]
    Folders(io::Error),
    /// The history cannot be read, so dependencies between sets are unknown.
    #[error("{0}")]
    History(CatalogError),
}

impl Instance {
    /// Removes, or lists, what a policy does not keep.
    ///
    /// # Errors
    /// Nothing was deleted then. A medium that could not be deleted is in the report.
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
