//! Which databases an instance watches over, and whose the failures in its history are: one answer for `check`,
//! `doctor`, `report`, `history --rpo`, `metrics` and the server's page.
//!
//! A failure is of the database at its path, because several databases can have one name: the success of one must
//! not stand for another. A database whose backups have all failed has no other trace than these failures; it is
//! watched like any other.

use std::collections::BTreeSet;

use windlass_catalog::provenance::{is_named, placed_name};
use windlass_catalog::{Catalog, DatabaseRecord, Error, Failures, PastBackup};

use crate::damage::place;
use crate::standing::Standing;

/// A database that the instance knows, with what is known of it.
#[derive(Debug)]
pub struct Watched<'a, 's> {
    /// The name that tells it from all others.
    pub name: &'a str,
    /// Whether it is registered, or named by its path: a database that was dropped is only in the history.
    pub is_kept: bool,
    pub record: Option<&'a DatabaseRecord>,
    /// Its backups; `None` if there are none.
    pub standing: Option<&'s Standing<'a>>,
    pub failures: Option<&'a Failures>,
}

/// All databases: the registered ones, those with backups, and those of which only failures are known. `failures` has
/// them by the names that [`failures`] gives.
pub fn watched<'a, 's>(
    registered: &'a [DatabaseRecord],
    standings: &'s [Standing<'a>],
    failures: &'a [Failures],
) -> Vec<Watched<'a, 's>> {
    let registered_names = registered.iter().map(|record| (record.name.as_str(), true));
    let standing = standings.iter().map(|one| (one.database, one.is_by_path()));
    let failed = failures
        .iter()
        .map(|one| (one.last.database.as_str(), one.last.is_by_path));
    let mut all: Vec<Watched<'a, 's>> = Vec::new();
    for (name, is_kept) in registered_names.chain(standing).chain(failed) {
        let is_it = |other: &str| other.eq_ignore_ascii_case(name);
        if let Some(known) = all.iter_mut().find(|known| is_it(known.name)) {
            known.is_kept |= is_kept;
            continue;
        }
        all.push(Watched {
            name,
            is_kept,
            record: registered.iter().find(|record| is_it(&record.name)),
            standing: standings.iter().find(|one| is_it(one.database)),
            failures: failures.iter().find(|one| is_it(&one.last.database)),
        });
    }
    all
}

/// The names of those that are kept.
pub fn kept_names<'a>(
    registered: &'a [DatabaseRecord],
    standings: &[Standing<'a>],
    failures: &'a [Failures],
) -> Vec<&'a str> {
    let all = watched(registered, standings, failures).into_iter();
    all.filter(|one| one.is_kept).map(|one| one.name).collect()
}

/// The failures of each database, by the name that tells it from all others. `past` has such names already
/// ([`crate::standing::tell_apart`]); they stay as they are, whatever fails.
///
/// # Errors
/// Those of the catalog.
pub fn failures(
    catalog: &Catalog,
    past: &[PastBackup],
    registered: &[DatabaseRecord],
    machine: &str,
) -> Result<Vec<Failures>, Error> {
    let found = catalog.failures()?;
    let known = Known {
        registered: registered.iter().map(|one| (place(one), one)).collect(),
        past,
        machine,
    };
    Ok(known.assigned(&found))
}

/// The databases of which more is known than failures.
struct Known<'k> {
    /// With their places.
    registered: Vec<(String, &'k DatabaseRecord)>,
    past: &'k [PastBackup],
    machine: &'k str,
}

impl Known<'_> {
    fn assigned(&self, found: &[Failures]) -> Vec<Failures> {
        let owners: Vec<BTreeSet<&str>> = found.iter().map(|one| self.owners(one)).collect();
        let alone: Vec<&Failures> = found
            .iter()
            .zip(&owners)
            .filter(|(one, owners)| owners.is_empty() && one.last.path.is_some())
            .map(|(one, _)| one)
            .collect();
        let mut all = Vec::new();
        for (one, owners) in found.iter().zip(&owners) {
            let mut names: Vec<String> = owners.iter().map(|name| (*name).to_owned()).collect();
            if names.is_empty() && one.last.path.is_none() {
                // What an older version has recorded of a database that was never backed up since.
                let name = &one.last.database;
                let same = alone
                    .iter()
                    .filter(|other| is_same(&other.last.database, name));
                names = same.map(|other| self.own_name(other, &alone)).collect();
            }
            if names.is_empty() {
                names.push(self.own_name(one, &alone));
            }
            for name in names {
                self.add(&mut all, one, name);
            }
        }
        all
    }

    /// The names of the databases that these failures are of: several only where the path is not known.
    fn owners(&self, failures: &Failures) -> BTreeSet<&str> {
        let last = &failures.last;
        let mut records = self.registered.iter().map(|(_, record)| *record);
        let of_name = records.find(|record| is_same(&record.name, &last.database));
        let Some(path) = &last.path else {
            let backups = self.past.iter();
            let of_backups = backups
                .filter(|backup| is_same(&backup.of.name, &last.database))
                .map(|backup| backup.database.as_str());
            let of_name = of_name.map(|record| record.name.as_str());
            return of_backups.chain(of_name).collect();
        };
        // Perhaps it was registered since.
        let mut places = self.registered.iter();
        if let Some((_, record)) = places.find(|(place, _)| place == path) {
            return BTreeSet::from([record.name.as_str()]);
        }
        // A registered one may have moved.
        if let Some(record) = of_name.filter(|_| !last.is_by_path) {
            return BTreeSet::from([record.name.as_str()]);
        }
        let there = |one: &&PastBackup| one.of.path == *path;
        let here = |one: &&PastBackup| there(one) && one.of.machine == self.machine;
        let newest = self.past.iter().rev().find(here);
        let newest = newest.or_else(|| self.past.iter().rev().find(there));
        let name = newest.map(|one| one.database.as_str());
        name.into_iter().collect()
    }

    /// The name of a database of which nothing but failures is known; `alone` are all of these.
    fn own_name(&self, failures: &Failures, alone: &[&Failures]) -> String {
        let name = failures.last.database.as_str();
        let namesakes = alone
            .iter()
            .filter(|other| is_same(&other.last.database, name));
        let mut records = self.registered.iter();
        let is_taken = namesakes.count() > 1
            || records.any(|(_, record)| is_same(&record.name, name))
            || self
                .past
                .iter()
                .any(|backup| is_named(&backup.database, name));
        match &failures.last.path {
            Some(path) if is_taken => placed_name(name, path, self.machine),
            _ => name.to_owned(),
        }
    }

    /// Adds failures to those of a database. They come in the order of their last ones.
    fn add(&self, all: &mut Vec<Failures>, one: &Failures, name: String) {
        let mut records = self.registered.iter();
        let is_registered = records.any(|(_, record)| is_same(&record.name, &name));
        let mut last = one.last.clone();
        last.is_by_path &= !is_registered;
        last.database = name;
        let known = all
            .iter_mut()
            .find(|known| is_same(&known.last.database, &last.database));
        if let Some(known) = known {
            known.count += one.count;
            if one.is_latest || !known.is_latest {
                known.last = last;
            }
            known.is_latest |= one.is_latest;
            return;
        }
        all.push(Failures {
            count: one.count,
            last,
            is_latest: one.is_latest,
        });
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

#[cfg(test)]
mod tests {
    use std::slice;

    use windlass_catalog::FailureRecord;

    use super::*;

    fn failed(path: Option<&str>, error_number: u32, is_latest: bool) -> Failures {
        let last = FailureRecord {
            database: "shop".to_owned(),
            operation: "BACKUP DATABASE".to_owned(),
            failed: "2026-11-20 08:00:00".parse().unwrap(),
            error_number,
            message: "no".to_owned(),
            is_by_path: true,
            path: path.map(str::to_owned),
        };
        Failures {
            count: 1,
            last,
            is_latest,
        }
    }

    /// Name, count, number of the last error, whether the last run failed.
    fn assigned(found: &[Failures]) -> Vec<(String, u64, u32, bool)> {
        let known = Known {
            registered: Vec::new(),
            past: &[],
            machine: "host",
        };
        let all = known.assigned(found).into_iter();
        let row = |one: Failures| {
            (
                one.last.database,
                one.count,
                one.last.error_number,
                one.is_latest,
            )
        };
        all.map(row).collect()
    }

    #[test]
    fn databases_of_which_nothing_but_failures_is_known_are_told_apart() {
        let (a, b) = (
            failed(Some("/a/shop.db"), 1, true),
            failed(Some("/b/shop.db"), 2, false),
        );
        let old = failed(None, 3, true);
        assert_eq!(
            assigned(slice::from_ref(&a)),
            [("shop".to_owned(), 1, 1, true)]
        );
        assert_eq!(
            assigned(slice::from_ref(&old)),
            [("shop".to_owned(), 1, 3, true)]
        );
        // What an older version has recorded is of the one that has failed since, or of all.
        let found = assigned(&[old.clone(), a.clone()]);
        assert_eq!(found, [("shop".to_owned(), 2, 1, true)]);
        let names = ["a", "b"].map(|folder| format!("shop ('/{folder}/shop.db' on host)"));
        let [of_a, of_b] = names;
        let found = assigned(&[a.clone(), b.clone()]);
        let expected = [(of_a.clone(), 1, 1, true), (of_b.clone(), 1, 2, false)];
        assert_eq!(found, expected);
        let found = assigned(&[old, a, b]);
        assert_eq!(found, [(of_a, 2, 1, true), (of_b, 2, 3, true)]);
    }

    #[test]
    fn a_database_counts_that_has_nothing_but_failures() {
        let by_path = failed(Some("/a/shop.db"), 1, true);
        assert_eq!(kept_names(&[], &[], slice::from_ref(&by_path)), ["shop"]);
        let mut dropped = by_path;
        dropped.last.is_by_path = false;
        assert!(kept_names(&[], &[], &[dropped]).is_empty());
    }
}
