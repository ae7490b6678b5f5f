//! Applies a retention policy to folders, and reports the result.
//!
//! | file | what |
//! |---|---|
//! | `deciding` | what is known while it is decided, and the reading of what decisions rely on |
//! | `unreadable` | backups whose headers cannot be read |
//! | `read_back` | the content of those that stay, copy by copy |
//! | `locked` | what a store keeps, whatever is decided |
//! | `unseen` | what stays because of files elsewhere that cannot be seen now |
//! | `newer` | what was made while others were read back |
//! | `waiting` | what stays because it waits to be copied, or because its database is damaged |

mod deciding;
mod locked;
mod newer;
mod read_back;
#[cfg(test)]
mod tests;
mod unreadable;
mod unseen;
mod waiting;

use std::collections::BTreeSet;
use std::io;

use windlass_base::Moment;
use windlass_base::message::table;
use windlass_base::size::counted;
use windlass_catalog::Error as CatalogError;
use windlass_catalog::provenance::databases;
use windlass_device::{DeviceAddress, DeviceFolder, Removed};

use self::deciding::Deciding;
use super::Reach;
use crate::chain::Ends;
use crate::retention::{self, Decision, FoundMedia, FoundOther, FoundSet, Place, Policy};
use crate::{Session, Sink, presence};

/// How long a verification of unchanged media counts, if nothing else is said.
pub const VERIFIED_WITHIN_HOURS: u32 = 7 * 24;

#[derive(Debug, Clone)]
pub struct ExpireOptions<'a> {
    /// The folders with the backups.
    pub folders: &'a [DeviceFolder],
    pub policy: &'a Policy,
    /// Only backups of this database; all when absent.
    pub database: Option<&'a str>,
    pub removal: Removal,
    /// What is believed of the backups that stay.
    pub trust: Trust,
    /// Folders whose missing files are gone for good, though they look as if something were not mounted.
    pub gone: &'a [DeviceFolder],
}

/// What is believed of the backups for whose sake others go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Their headers.
    Headers,
    /// Their content: they are read back, unless the same files were found valid within so many hours and
    /// have not changed since.
    Content { within_hours: u32 },
}

impl Default for Trust {
    fn default() -> Self {
        Self::Content {
            within_hours: VERIFIED_WITHIN_HOURS,
        }
    }
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
    /// Whether a backup that deletions would have relied on, or a copy of it, cannot be read back, or may be
    /// among the files that cannot be read, or others stay because they need one that cannot be read. It was reported.
    pub is_damaged: bool,
}

/// A medium with the decision about it.
#[derive(Debug)]
pub struct ExpiredMedia {
    pub media: FoundMedia,
    pub decision: Decision,
    /// The files that were deleted, and what became of each; `None` if nothing was to be deleted.
    pub deleted: Option<io::Result<Vec<(DeviceAddress, Removed)>>>,
}

/// Why nothing was decided.
#[derive(Debug, thiserror::Error)]
pub enum ExpireError {
    #[error("{0}")]
    Folders(io::Error),
    /// The history cannot be read, so dependencies between sets are unknown.
    #[error("{0}")]
    History(CatalogError),
    /// The history has no missing file in a folder that is said to be gone.
    #[error("the history has no missing file in '{0}'")]
    NothingGone(DeviceFolder),
    /// The user did.
    #[error("it was cancelled")]
    Cancelled,
}

impl Session {
    /// Removes, or lists, what a policy does not keep.
    ///
    /// Headers do not show whether a backup can be restored. So the sets on which deletions rely are read
    /// back before anything is deleted; a damaged one does not count, and what it would have replaced is
    /// kept. One that cannot be read now, as while another backup appends to its medium, is not damaged: what needs it
    /// is kept too. A set counts if each family has one copy that is intact. What cannot even be told to be a backup
    /// may be the newest one: nothing is deleted then. What was made while others were read back is looked at before
    /// anything goes.
    ///
    /// # Errors
    /// Nothing was deleted then. A medium that could not be deleted is in the report.
    pub fn expire(
        &mut self,
        options: &ExpireOptions<'_>,
        sink: &mut dyn Sink,
    ) -> Result<ExpireReport, ExpireError> {
        let mut deciding = Deciding::begin(self, options, sink)?;
        let decisions = self.decided(&mut deciding, sink)?;
        deciding.tell(sink);
        let Deciding {
            scan,
            states,
            mut locks,
            mut is_damaged,
            ..
        } = deciding;
        let deletes = options.removal == Removal::Delete;
        if deletes {
            locks.extend(&scan.media, sink);
        }
        let needs = needs(&scan.media, &decisions);
        let mut deleted = Vec::new();
        for ((media, decision), needs) in scan.media.iter().zip(&decisions).zip(&needs) {
            deleted.push(match deletes && decision.goes {
                // Immediately before: what is relied on must still be what was read.
                true => Some(
                    check_unchanged(needs, &scan.media, &states)
                        .and_then(|()| retention::delete(media)),
                ),
                false => None,
            });
        }
        is_damaged |= decisions.iter().any(|decision| decision.is_doubtful);
        let media = scan.media.into_iter().zip(decisions).zip(deleted);
        let media = media.map(|((media, decision), deleted)| ExpiredMedia {
            media,
            decision,
            deleted,
        });
        Ok(ExpireReport {
            media: media.collect(),
            others: scan.others,
            is_damaged,
        })
    }

    /// The sets that are relied on and whose content nobody has looked at.
    fn unread(
        &self,
        media: &[FoundMedia],
        decisions: &[Decision],
        looked_at: &BTreeSet<Place>,
        trust: Trust,
        now: Moment,
    ) -> Result<Vec<Place>, ExpireError> {
        let Trust::Content { within_hours } = trust else {
            return Ok(Vec::new());
        };
        let recently = Policy {
            within_hours: Some(within_hours),
            ..Policy::default()
        };
        let mut unread = Vec::new();
        for (medium, decision) in decisions.iter().enumerate() {
            if decision.relied_on.is_empty() {
                continue;
            }
            for place in decision.relied_on.iter().copied() {
                let copies = media[medium].copies(place);
                let states: Vec<String> = copies.iter().map(|copy| presence::state(copy)).collect();
                let set = media[medium].sets[place].chain.set_guid;
                let mut is_known = within_hours > 0;
                for state in &states {
                    let valid = self.instance.catalog().valid_on(set, state);
                    let valid = valid.map_err(ExpireError::History)?;
                    // One that a clock which was ahead has dated is not recent.
                    let is_recent = |at| at <= now && recently.is_within(at, now);
                    is_known &= !state.is_empty() && valid.is_some_and(is_recent);
                }
                if !is_known && !looked_at.contains(&(medium, place)) {
                    unread.push((medium, place));
                }
            }
        }
        Ok(unread)
    }
}

/// The log backups whose log has to be looked at, and for which states.
fn unread_logs(decisions: &[Decision]) -> Vec<(Place, Ends)> {
    let all = decisions.iter().enumerate();
    let all = all.flat_map(|(medium, decision)| {
        let unread = decision.unread.iter();
        unread.map(move |(place, ends)| ((medium, *place), ends.clone()))
    });
    all.collect()
}

fn states(media: &[FoundMedia]) -> Vec<String> {
    media.iter().map(state).collect()
}

/// The state of all its files.
fn state(media: &FoundMedia) -> String {
    let files = media.files.iter().map(|file| file.device.clone());
    presence::state(&files.collect::<Vec<_>>())
}

/// For each medium, the media that stay in its place if it goes: those that are relied on for its databases, and
/// what these are based on.
fn needs(media: &[FoundMedia], decisions: &[Decision]) -> Vec<BTreeSet<usize>> {
    let places = media.iter().enumerate();
    let places = places.flat_map(|(medium, found)| {
        let sets = found.sets.iter().enumerate();
        sets.map(move |(place, set)| (medium, place, set))
    });
    let places: Vec<(usize, usize, &FoundSet)> = places.collect();
    let own = databases(places.iter().map(|(.., set)| &set.of));
    let is_relied_on = |(medium, place, _): &&(usize, usize, &FoundSet)| {
        decisions[*medium].relied_on.contains(place)
    };
    let mut needs = vec![BTreeSet::new(); media.len()];
    for database in own {
        let sets = || database.iter().map(|index| &places[*index]);
        let relied_on = sets().filter(is_relied_on);
        let mut staying: BTreeSet<usize> = relied_on.clone().map(|(medium, ..)| *medium).collect();
        // The base of a differential may be a backup of the database from which this one was restored.
        for (.., set) in relied_on {
            let base = |other: &&(usize, usize, &FoundSet)| other.2.chain.is_base_of(&set.chain);
            let bases = places.iter().filter(base).filter(is_relied_on);
            staying.extend(bases.map(|(medium, ..)| *medium));
        }
        for (medium, ..) in sets() {
            needs[*medium].extend(&staying);
        }
    }
    needs
}

/// Fails if a medium that stays in the place of one that goes is not in the state in which it was examined, or
/// cannot be examined. Media of other databases are examined before their own deletions.
fn check_unchanged(
    needs: &BTreeSet<usize>,
    media: &[FoundMedia],
    states: &[String],
) -> io::Result<()> {
    for index in needs {
        let (media, then) = (&media[*index], &states[*index]);
        if then.is_empty() || state(media) != *then {
            let file = media.files.first();
            let name = file.map_or_else(String::new, |file| file.device.to_string());
            let reason = format!(
                "'{name}', which stays in its place, was changed or removed meanwhile; run the command again"
            );
            return Err(io::Error::other(reason));
        }
    }
    Ok(())
}

/// Tells what is read, or would be, and why.
fn announce(media: &[FoundMedia], unread: &[Place], removal: Removal, sink: &mut dyn Sink) {
    let bytes = |(medium, place): &Place| media[*medium].sets[*place].stored_bytes;
    let bytes: u64 = unread.iter().map(bytes).sum();
    let megabytes = bytes as f64 / f64::from(1 << 20);
    let sets = counted(unread.len(), "backup set");
    sink.message(match removal {
        Removal::Name => table::relied_sets_would_be_read(sets, megabytes),
        Removal::Delete => table::relied_sets_read(sets, megabytes),
    });
}
