//! Which backups go: policies that know chains, and the deletion of files whose headers were read.
//!
//! | file | what |
//! |---|---|
//! | [`Policy`] | what is to be kept: so many, so long, a grandfather-father-son scheme |
//! | [`scan`] | the media in some folders, from their headers alone |
//! | [`decide`] | for each medium: stays or goes, and why |
//! | [`delete`] | removes the files of a medium, after reading their headers once more |
//!
//! Invariants:
//! 1. Nothing that a staying backup needs goes: the full backup below a differential stays with it.
//! 2. The newest restorable backup of a database stays, whatever the policy says.
//! 3. A medium goes as a whole, with all its stripes, or stays as a whole.
//! 4. Only files go whose headers say that Windlass wrote them; what cannot be read stays.

mod decide;
mod policy;
mod remove;
mod scan;
#[cfg(test)]
mod tests;

pub use decide::{Decision, decide};
pub use policy::{Policy, PolicyError};
pub use remove::delete;
pub use scan::{
    FoundFile, FoundMedia, FoundOther, FoundSet, Place, Scan, add_dependents, chain_sets, scan,
};
