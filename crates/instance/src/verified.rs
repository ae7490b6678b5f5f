//! What verifications and restores have said of the files of a backup: the one rule for `check`, `doctor`, the
//! reports, the metrics, and the search for the base of a differential.
//!
//! A verification speaks of the files that it read, not of their set: a copy that is intact says nothing of its
//! original. It is a verdict only if it succeeded or found damage: that a key was missing, that a file could not
//! be opened, or that the run was cancelled says nothing of the backup.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use windlass_base::{Guid, Moment};
use windlass_catalog::{Catalog, Depth, Error, PastBackup, PastMedium, Verification};

use crate::Failure;
use crate::presence::paths_of;

/// The messages that say that what was read is damaged: a page or chunk, the medium, its structure, an end that is
/// missing, or a place that cannot be read.
const DAMAGE: [u32; 5] = [824, 3189, 3203, 3241, 3256];

/// The message of a failure that is a verdict on what was read; `None` if there is none.
pub(crate) fn damage_in(failure: &Failure) -> Option<u32> {
    let errors = failure.messages.iter().filter(|message| message.is_error());
    let mut numbers = errors.map(|error| error.number);
    numbers.find(|number| DAMAGE.contains(number))
}

/// Damage that was found and is not refuted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub at: Moment,
    /// The number of the message.
    pub error_number: u32,
    depth: Depth,
}

/// What is known of a set in a file.
#[derive(Debug, Clone, Copy, Default)]
struct Verdict {
    valid: Option<(Moment, Depth)>,
    damage: Option<Found>,
}

/// The verdicts on all sets, by set and file.
#[derive(Debug, Default)]
pub struct Verifications {
    of: HashMap<(Guid, PathBuf), Verdict>,
}

impl Verifications {
    /// Reads all of them.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn read(catalog: &Catalog) -> Result<Self, Error> {
        Ok(Self::of(&catalog.verifications()?))
    }

    /// Those of some verifications, the oldest first.
    fn of(all: &[Verification]) -> Self {
        let mut known = Self::default();
        for one in all {
            for path in paths_of(&one.media) {
                known.of.entry((one.set, path)).or_default().add(one);
            }
        }
        known
    }

    fn verdict(&self, backup: &PastBackup, medium: &PastMedium) -> Option<&Verdict> {
        let path = match Path::new(&medium.device) {
            path if path.is_absolute() => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
            url if crate::is_url(&medium.device) => url.to_owned(),
            _ => PathBuf::new(),
        };
        self.of.get(&(backup.set_guid?, path))
    }

    /// The damage of a backup on one of its media.
    pub fn damage(&self, backup: &PastBackup, medium: &PastMedium) -> Option<Found> {
        self.verdict(backup, medium)?.damage
    }

    /// When all stripes of a backup were last found valid, and at what depth.
    pub fn valid(&self, backup: &PastBackup) -> Option<(Moment, Depth)> {
        let of = |family: u32| {
            let own = backup.media.iter().filter(|medium| medium.family == family);
            let valid = own.filter_map(|medium| self.verdict(backup, medium)?.valid);
            valid.max_by_key(|(at, _)| *at)
        };
        let stripes = backup.media.iter().map(|medium| of(medium.family));
        let stripes: Option<Vec<(Moment, Depth)>> = stripes.collect();
        stripes?.into_iter().min_by_key(|(at, _)| *at)
    }
}

impl Verdict {
    fn add(&mut self, one: &Verification) {
        if one.error_number != 0 {
            self.damage = Some(Found {
                at: one.at,
                error_number: one.error_number,
                depth: one.depth,
            });
            return;
        }
        self.valid = Some((one.at, one.depth));
        // Checksums do not refute what was found in the content.
        self.damage = self.damage.filter(|found| found.depth > one.depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presence::tests::Place;

    const AT: &str = "2026-11-20 08:00:00";

    #[test]
    fn a_verification_speaks_of_the_files_that_it_read_and_at_its_depth() {
        let place = Place::new();
        let backup = place.back_up(&["1", "2"], true);
        let path = |name: &str| place.path(name).canonicalize().unwrap();
        let line = |name: &str| format!("{}\t1\t2.0\t3.0\t4:5", path(name).display());
        std::fs::copy(place.path("1"), place.path("copy")).unwrap();
        let of = |names: &[&str], depth, error_number| Verification {
            set: backup.set_guid.unwrap(),
            at: AT.parse().unwrap(),
            depth,
            error_number,
            media: names
                .iter()
                .map(|name| line(name))
                .collect::<Vec<_>>()
                .join("\n"),
        };
        let is_damaged = |all: &[Verification]| {
            let known = Verifications::of(all);
            let found = |medium: &PastMedium| known.damage(&backup, medium).is_some();
            let found: Vec<bool> = backup.media.iter().map(found).collect();
            (found, known.valid(&backup).is_some())
        };
        let damage = of(&["1", "2"], Depth::Content, 3189);
        let copy = of(&["copy", "2"], Depth::Content, 0);
        assert_eq!(
            is_damaged(std::slice::from_ref(&damage)),
            (vec![true, true], false)
        );
        // The other half of what a verification of a copy read was of the original.
        let both = [damage.clone(), copy.clone()];
        assert_eq!(is_damaged(&both), (vec![true, false], false));
        let shallow = of(&["1", "2"], Depth::Checksums, 0);
        let all = [damage.clone(), shallow];
        assert_eq!(is_damaged(&all), (vec![true, true], true));
        let again = of(&["1", "2"], Depth::Restored, 0);
        assert_eq!(is_damaged(&[damage, again]), (vec![false, false], true));
        let of_copy = of(&["copy", "copy"], Depth::Content, 3189);
        assert_eq!(is_damaged(&[of_copy]), (vec![false, false], false));
    }
}
