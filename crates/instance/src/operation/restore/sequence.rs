//! The state in which a sequence of restores without recovery waits.

use std::path::{Path, PathBuf};

use windlass_base::Guid;
use windlass_source::sqlite::RestoreProgress;
use windlass_source::{engine, sqlite};

use super::Reached;
use crate::chain::LogEnd;
use crate::names::absolute;
use crate::{Failure, Session};

/// The state of a sequence of restores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequence {
    /// There is none.
    None,
    /// It waits for a differential based on this set, or for recovery.
    Waits(Guid),
    /// A differential was applied only in part: the sequence must be restarted.
    Torn,
}

impl Session {
    /// The state in which restores without recovery have left a database, or the file that will become
    /// one.
    ///
    /// # Errors
    /// If that state cannot be read.
    pub fn sequence(&self, name: &str, target: Option<&Path>) -> Result<Sequence, Failure> {
        let Some((path, log)) = self.waiting_at(name, target)? else {
            return Ok(Sequence::None);
        };
        match sqlite::restoring(&path)? {
            Some(state) if state.progress == RestoreProgress::Applying => {
                return Ok(Sequence::Torn);
            }
            // A log that was applied in part can be applied again.
            Some(state) if !state.is_differential => return Ok(Sequence::Waits(state.set_guid)),
            Some(_) | None => {}
        }
        let pending = engine::pending(&log)?;
        Ok(match pending {
            None => Sequence::None,
            Some(pending) if pending.is_interrupted() => Sequence::Torn,
            Some(pending) => Sequence::Waits(pending.set_guid),
        })
    }

    /// How far restores without recovery have brought a database, or the file that will become one; `None` if none waits.
    pub(crate) fn reached(
        &self,
        name: &str,
        target: Option<&Path>,
    ) -> Result<Option<Reached>, Failure> {
        let Some((path, log)) = self.waiting_at(name, target)? else {
            return Ok(None);
        };
        if let Some(state) = sqlite::restoring(&path)? {
            return Ok(Some(Reached {
                family: state.family_guid,
                fork: state.family_guid,
                set_guid: match state.is_differential {
                    true => Guid::NIL,
                    false => state.set_guid,
                },
                lsn: state.reached_lsn(),
                ending: (state.wal_position.parse().ok()).and_then(LogEnd::of_position),
                unix_ms: state.reached_ms(),
            }));
        }
        let pending = engine::pending(&log)?;
        Ok(pending.map(|pending| {
            let (family, fork) = pending.history();
            Reached {
                family,
                fork,
                set_guid: pending.set_guid,
                lsn: pending.reached_lsn(),
                ending: pending.reached_checksum().map(LogEnd::Block),
                unix_ms: pending.reached_ms(),
            }
        }))
    }

    /// The first file and the log of a database, or of the file that will become one; `None` if nobody says where it is.
    fn waiting_at(
        &self,
        name: &str,
        target: Option<&Path>,
    ) -> Result<Option<(PathBuf, PathBuf)>, Failure> {
        let known = self.instance.database(name)?;
        let path = match (target, &known) {
            (Some(target), _) => absolute(target).ok(),
            (None, Some(known)) => Some(known.path.clone()),
            (None, None) => None,
        };
        // Nothing waits in a folder that is missing; the restore says that it is.
        let Some(path) = path.filter(|path| windlass_io::directory::parent(path).exists()) else {
            return Ok(None);
        };
        let log = known
            .and_then(|known| known.log_path)
            .filter(|_| target.is_none())
            .unwrap_or_else(|| windlass_vfs::log_path(&path));
        Ok(Some((path, log)))
    }
}
