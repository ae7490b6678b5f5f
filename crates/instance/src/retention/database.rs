//! Which backup sets are of one database: only those may take each other's place.
//!
//! The family GUID alone does not say it, because everything restored from a database's backups shares it: a
//! test copy would take the place of the original. Two sets are of one database if family, name and the path
//! of its first file are equal, and either its GUID (a restore makes a new one) or its server. So a database
//! that was restored over itself is the same, and so is one in a container that gets a new host name every
//! time. In doubt two databases are told apart: then more is kept.

use std::collections::HashMap;
use std::hash::Hash;

use windlass_base::Guid;
use windlass_media::SetConfiguration;

use super::FoundSet;

/// Where a backed-up database was.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Of its first file.
    pub path: String,
    pub server: String,
    pub database_guid: Guid,
}

impl Origin {
    pub(super) fn of(set: &SetConfiguration) -> Self {
        let first = set.files.first();
        Self {
            path: first.map_or_else(String::new, |file| file.physical_name.clone()),
            server: set.server.clone(),
            database_guid: set.database_guid,
        }
    }
}

/// Groups of sets that are joined one by one.
struct Groups {
    /// The index of another set of the same group, or of itself.
    parents: Vec<usize>,
}

impl Groups {
    fn first(&self, mut index: usize) -> usize {
        while self.parents[index] != index {
            index = self.parents[index];
        }
        index
    }

    /// Joins each set with the first one of the same key.
    fn join<K: Hash + Eq>(&mut self, keys: impl Iterator<Item = (usize, K)>) {
        let mut seen = HashMap::new();
        for (index, key) in keys {
            let known = *seen.entry(key).or_insert(index);
            let (one, other) = (self.first(known), self.first(index));
            self.parents[one.max(other)] = one.min(other);
        }
    }
}

/// The sets of each database, by their indexes. A set of which only the history knows has no origin: it counts
/// with the first others of its family and name.
pub(super) fn databases(sets: &[&FoundSet]) -> Vec<Vec<usize>> {
    let mut groups = Groups {
        parents: (0..sets.len()).collect(),
    };
    let name = |set: &FoundSet| (set.chain.family_guid, set.database.to_lowercase());
    let known = || {
        let sets = sets.iter().enumerate();
        sets.filter_map(|(index, set)| Some((index, *set, set.origin.as_ref()?)))
    };
    groups.join(known().map(|(index, set, at)| (index, (name(set), &at.path, &at.server))));
    groups.join(known().map(|(index, set, at)| (index, (name(set), &at.path, at.database_guid))));
    let mut firsts = HashMap::new();
    for (index, set, _) in known() {
        firsts.entry(name(set)).or_insert(index);
    }
    let unknown = sets
        .iter()
        .enumerate()
        .filter(|(_, set)| set.origin.is_none());
    let unknown = unknown.map(|(index, set)| (index, name(set)));
    groups.join(
        firsts
            .into_iter()
            .map(|(name, index)| (index, name))
            .chain(unknown),
    );
    let mut of_first: HashMap<usize, usize> = HashMap::new();
    let mut databases: Vec<Vec<usize>> = Vec::new();
    for index in 0..sets.len() {
        let group = *of_first.entry(groups.first(index)).or_insert_with(|| {
            databases.push(Vec::new());
            databases.len() - 1
        });
        databases[group].push(index);
    }
    databases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retention::tests::found_set;

    fn set(database: &str, path: &str, server: &str, guid: u8) -> FoundSet {
        let origin = Origin {
            path: path.to_owned(),
            server: server.to_owned(),
            database_guid: Guid::from_stored([guid; 16]),
        };
        FoundSet {
            database: database.to_owned(),
            origin: Some(origin),
            ..found_set()
        }
    }

    fn same(one: &FoundSet, other: &FoundSet) -> bool {
        databases(&[one, other]).len() == 1
    }

    #[test]
    fn a_copy_is_another_database_and_a_restored_original_is_not() {
        let original = set("app", "/data/app.db", "host", 1);
        assert!(same(&original, &set("APP", "/data/app.db", "host", 1)));
        // Restored over itself, or in a container with another host name.
        assert!(same(&original, &set("app", "/data/app.db", "host", 2)));
        assert!(same(&original, &set("app", "/data/app.db", "other", 1)));
        // A test copy, by another name, in another folder, on another machine.
        assert!(!same(&original, &set("test", "/data/test.db", "host", 2)));
        assert!(!same(&original, &set("app", "/test/app.db", "host", 2)));
        assert!(!same(&original, &set("app", "/test/app.db", "host", 1)));
        assert!(!same(&original, &set("app", "/data/app.db", "other", 2)));
        let family = Guid::from_stored([9; 16]);
        let mut stranger = original.clone();
        stranger.chain.family_guid = family;
        assert!(!same(&original, &stranger));
    }

    #[test]
    fn sets_are_joined_through_others_and_the_history_s_own_count_with_them() {
        let first = set("app", "/data/app.db", "host", 1);
        let restored = set("app", "/data/app.db", "host", 2);
        let moved = set("app", "/data/app.db", "other", 2);
        let test = set("app", "/test/app.db", "host", 3);
        let lost = FoundSet {
            origin: None,
            ..first.clone()
        };
        let found = databases(&[&first, &moved, &test, &lost, &restored]);
        assert_eq!(found, [vec![0, 1, 3, 4], vec![2]]);
        assert_eq!(databases(&[&lost, &lost]).len(), 1);
    }
}
