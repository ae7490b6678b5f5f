//! Applies a follower's spool onto a restored backup: the last step of a sequence of restores.
//!
//! The staging file has the state of the backup, and the state file its position in the history of the log. What is to
//! be applied is determined first; a refusal leaves the sequence as it is. Then the sequence is marked as being
//! applied, the pages of all moments up to the wanted one are written in their order, and the file gets the length of
//! the last one. From there on it is published as after any other restore.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windlass_media::WalPosition;

use super::staging_file::StagingFile;
use super::state::{self, RestoreProgress, RestoringState};
use super::{Existing, Publish, fault, replaceable, resolve};
use crate::Error;
use crate::sqlite::spool::{self, Kind, Pages, Parts, Reach, Records, SpoolError, Stop};

/// A restore to a moment of a spool.
#[derive(Debug, Clone)]
pub struct ForwardRequest {
    /// The target of the restore WITH NORECOVERY before it.
    pub target: PathBuf,
    /// The folder of the spool.
    pub spool: PathBuf,
    pub stop: Stop,
    pub existing: Existing,
    /// Setting it makes the restore stop.
    pub cancel: Arc<AtomicBool>,
}

/// What a restore to a moment would reach. Changes nothing.
///
/// # Errors
/// [`SpoolError`] if it cannot be reached; [`Error::NotRestoring`].
pub fn forward_reach(request: &ForwardRequest) -> Result<Reach, Error> {
    let target = resolve(&request.target)?;
    let state = state::read_ready(&target)?;
    spool::find(&request.spool, &position_of(&state)?, request.stop)
}

/// Applies the spool up to the wanted moment, and ends the sequence.
///
/// # Errors
/// [`SpoolError`] if it cannot be reached, and nothing is changed then; those of a restore.
pub fn forward(request: &ForwardRequest) -> Result<Reach, Error> {
    let target = resolve(&request.target)?;
    let mut state = state::read_ready(&target)?;
    let reach = spool::find(&request.spool, &position_of(&state)?, request.stop)?;
    let staging = StagingFile::reopen(&target, state.size_bytes)?;
    let mut old = replaceable(&target, request.existing, Some(&state))?;
    if let Err(error) = apply(request, &target, &mut state, &reach, &staging) {
        if state.progress == RestoreProgress::Applying {
            // It is neither the backup nor the moment.
            state::remove(&target)?;
            staging.remove()?;
        }
        return Err(error);
    }
    let publish = Publish {
        target: &target,
        state: &state,
        cancel: &request.cancel,
    };
    publish.run(old.as_mut(), staging)?;
    Ok(reach)
}

pub(super) fn position_of(state: &RestoringState) -> Result<WalPosition, Error> {
    if state.wal_position.is_empty() {
        let reason = "the database was not in WAL mode, or its log was empty, or an earlier version made the backup";
        return Err(SpoolError::NoPosition { reason }.told());
    }
    state.wal_position.parse().map_err(|_| {
        SpoolError::NoPosition {
            reason: "the state of the restore has an unreadable one",
        }
        .told()
    })
}

fn apply(
    request: &ForwardRequest,
    target: &Path,
    state: &mut RestoringState,
    reach: &Reach,
    staging: &StagingFile,
) -> Result<(), Error> {
    let mut size_bytes = state.size_bytes;
    if reach.records.is_some() {
        state.progress = RestoreProgress::Applying;
        state.is_differential = true;
        state.write(target)?;
        fault::point("spool marked");
        let mut applier = Applier {
            records: Records::open(&request.spool)?,
            staging,
            size_bytes: &mut size_bytes,
            cancel: &request.cancel,
        };
        applier.run(reach)?;
        fault::point("spool applied");
    }
    staging.sync(size_bytes)?;
    staging.check_content(target, state.as_is)?;
    // From here on, a failure does not cost the sequence: RECOVERY alone can be repeated.
    state.size_bytes = size_bytes;
    state.wal_position = reach.position.to_string();
    state.progress = RestoreProgress::Ready;
    state.write(target)?;
    fault::point("spool ready");
    Ok(())
}

/// Writes pages into the staging file.
pub(super) struct Applier<'a> {
    pub(super) records: Records,
    pub(super) staging: &'a StagingFile,
    /// Length of the staging file.
    pub(super) size_bytes: &'a mut u64,
    pub(super) cancel: &'a AtomicBool,
}

impl Applier<'_> {
    pub(super) fn run(&mut self, reach: &Reach) -> Result<(), Error> {
        let Some((first, last)) = reach.records else {
            return Ok(());
        };
        self.records.go_back(&first)?;
        let mut patcher = Patcher {
            staging: self.staging,
            size_bytes: *self.size_bytes,
            page_count: 0,
            page: Vec::new(),
            unlike: HashSet::new(),
        };
        let result = self.moments(&last, &mut patcher);
        *self.size_bytes = patcher.size_bytes;
        result
    }

    fn moments(&mut self, last: &spool::Found, patcher: &mut Patcher<'_>) -> Result<(), Error> {
        // Pages count only with the moment behind them: a crash may have left some without.
        let mut begun = None;
        while let Some(found) = self.records.next()? {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            match found.head.kind {
                Kind::Pages | Kind::Parts => {
                    begun.get_or_insert(found);
                }
                Kind::Moment => {
                    let moment = self.records.moment(&found)?;
                    let first = begun.take().unwrap_or(found);
                    patcher.page_count = moment.page_count;
                    let count = self.pages(&first, patcher)?;
                    if count != moment.records {
                        return Err(self.records.damaged_at(&found, "a moment has lost pages"));
                    }
                    let bytes = u64::from(moment.page_count) * u64::from(moment.page_bytes);
                    patcher.resize(bytes)?;
                    if found != *last {
                        continue;
                    }
                    return match patcher.is_right() {
                        true => Ok(()),
                        false => Err(self.records.damaged_at(&found, UNLIKE)),
                    };
                }
                Kind::Segment | Kind::Start | Kind::Gap | Kind::Seen | Kind::Clock => begun = None,
            }
        }
        Err(self.records.damaged_at(last, "it is not there any more"))
    }

    /// Writes the pages from `first` up to the moment behind them; the number of records. The walk is behind that
    /// moment then.
    fn pages(&mut self, first: &spool::Found, patcher: &mut Patcher<'_>) -> Result<u32, Error> {
        self.records.go_back(first)?;
        let mut count = 0;
        while let Some(found) = self.records.next()? {
            if !found.head.kind.has_pages() {
                break;
            }
            count += 1;
            let body = self.records.body(&found)?;
            let written = match found.head.kind {
                Kind::Parts => Parts::parse(body).map(|parts| patcher.patch(&parts)),
                _ => Pages::parse(body).map(|pages| patcher.write(&pages)),
            };
            match written {
                Some(written) => written?,
                None => return Err(self.records.damaged_at(&found, "pages cannot be read")),
            }
        }
        Ok(count)
    }
}

/// A page does not have the content that the log says.
const UNLIKE: &str = "a page does not become what it was by what the log has of it";

/// The staging file, page by page.
struct Patcher<'a> {
    staging: &'a StagingFile,
    /// Its length.
    size_bytes: u64,
    /// Pages of the database in the moment that is applied.
    page_count: u32,
    page: Vec<u8>,
    /// Pages that did not have their content when parts of them were written last. An interrupted restore that is
    /// repeated begins with pages that have a later content, which they get again.
    unlike: HashSet<u32>,
}

impl Patcher<'_> {
    /// Writes the pages that the moment has; a later commit of it may have cut off others.
    fn write(&mut self, pages: &Pages<'_>) -> Result<(), Error> {
        for (number, content) in pages.each() {
            if let Some(offset) = self.offset(number, pages.page_bytes) {
                self.staging.write(offset, content)?;
                self.unlike.remove(&number);
                let end = offset + u64::from(pages.page_bytes);
                self.size_bytes = self.size_bytes.max(end);
            }
        }
        Ok(())
    }

    /// Writes parts of pages.
    fn patch(&mut self, parts: &Parts<'_>) -> Result<(), Error> {
        self.page.resize(parts.page_bytes as usize, 0);
        for page_parts in parts.each() {
            let number = page_parts.number;
            let Some(offset) = self.offset(number, parts.page_bytes) else {
                continue;
            };
            if !self.staging.read(offset, &mut self.page)? {
                self.unlike.insert(number);
                continue;
            }
            if page_parts.apply(&mut self.page) {
                self.unlike.remove(&number);
            } else {
                self.unlike.insert(number);
            }
            self.staging.write(offset, &self.page)?;
        }
        Ok(())
    }

    /// Where a page is, if the database has it.
    fn offset(&self, number: u32, page_bytes: u32) -> Option<u64> {
        let index = number
            .checked_sub(1)
            .filter(|_| number <= self.page_count)?;
        Some(u64::from(index) * u64::from(page_bytes))
    }

    fn resize(&mut self, bytes: u64) -> Result<(), Error> {
        let page_count = self.page_count;
        self.unlike.retain(|number| *number <= page_count);
        if bytes != self.size_bytes {
            self.staging.resize(self.size_bytes, bytes)?;
            self.size_bytes = bytes;
        }
        Ok(())
    }

    /// Whether every page has the content that the log says.
    fn is_right(&self) -> bool {
        self.unlike.is_empty()
    }
}
