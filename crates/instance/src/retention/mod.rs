//! Decides which backups expire, by policies that respect chains, and deletes their files.
//!
//! | file | what |
//! |---|---|
//! | [`Policy`] | what to keep: a number, an age, a grandfather-father-son scheme |
//! | [`FoundMedia`] | what the files of a medium show together: its sets, and which file has the newest of them |
//! | [`scan`] | finds the media in some folders, from their headers alone |
//! | [`add_dependents`] | adds backups elsewhere that may need one of these, and those of which nobody can tell whether they exist |
//! | [`add_bases`] | adds backups elsewhere that some of these need, as far as they are not known to be gone |
//! | [`add_known`] | adds what the history knows of media that cannot be read |
//! | [`decide`] | for each medium: keep or delete, and why; with those of which nobody knows whether they are whole |
//! | [`decide_holding`] | the same, where media stay for a reason that no rule knows |
//! | [`kept_for_presumed`] | what stays only because of these |
//! | [`refusals`] | which sets a restore would refuse before it reads their content |
//! | [`delete`] | deletes the files of a medium, after reading their headers once more |
//!
//! Invariants:
//! 1. Nothing that a kept backup needs is deleted: the base of a differential is kept with it.
//! 2. The newest restorable backup of a database is kept, whatever the policy says. A copy of a database is
//!    another database ([`crate::provenance`]).
//! 3. A backup that is dated in the future takes the place of no other.
//! 4. A medium is kept or deleted as a whole, with all its stripes.
//! 5. A backup that cannot be seen or read now stands for no other, and what needs it counts as if it were whole.
//! 6. Only files whose headers say that Windlass wrote them are deleted; unreadable files are kept.

mod bases;
mod buckets;
mod decide;
mod found;
mod known;
mod not_media;
mod outside;
mod policy;
mod presumed;
mod refused;
mod remove;
mod sake;
mod scan;
#[cfg(test)]
mod tests;

pub use bases::add_bases;
pub use decide::Decision;
pub use found::{FoundFile, FoundMedia, FoundSet};
pub use known::add_known;
pub use outside::{add_dependents, lacks_known};
pub use policy::{Now, Policy, PolicyError};
pub use presumed::{decide, decide_holding};
pub use refused::refusals;
pub use remove::delete;
pub use sake::{Sake, kept_for_presumed};
pub(crate) use scan::chain_sets;
pub(crate) use scan::scan_only;
pub use scan::{FoundOther, Place, Scan, scan, settled_sets};
