//! Which database a backup is of: only backups of one database may take each other's place.
//!
//! The family GUID alone does not say it, because everything restored from a database's backups shares it: a
//! test copy would take the place of the original. Two backups are of one database if family, name and the
//! path of its first file are equal, and either its GUID or its machine's name. So a database that was restored over
//! itself is the same, and so is one with a GUID of its own on a machine that has a new name. Two kinds of GUID
//! prove nothing: one that is only derived from the machine's identity, because cloned machines share it, and
//! one that is the family's, as a page-engine database's is, because every copy of its files has it. Where
//! names change, as in containers, the setting `machine_name` gives one that stays.
//! In doubt two databases are told apart: then more is kept, and less is called backed up.
//!
//! The search for a differential's base, the restore of the newest state, retention, and what is said of a
//! history or a folder all use this rule.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use windlass_base::Guid;

/// A database as its backups describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    pub family_guid: Guid,
    pub database_guid: Guid,
    pub name: String,
    /// Of its first file.
    pub path: String,
    /// The name of the machine, without the instance's.
    pub machine: String,
}

impl Provenance {
    /// Whether both are of one database.
    pub fn is_same_database(&self, other: &Self) -> bool {
        databases([self, other]).len() == 1
    }

    /// What no other database has, wherever it runs.
    fn own_guid(&self) -> Option<Guid> {
        let guid = self.database_guid;
        (!guid.is_named() && guid != self.family_guid).then_some(guid)
    }

    fn key(&self) -> (Guid, String, &str) {
        (self.family_guid, self.name.to_lowercase(), &self.path)
    }
}

/// Groups that are joined one by one.
struct Groups {
    /// The index of another member of the same group, or of itself.
    parents: Vec<usize>,
}

impl Groups {
    fn first(&self, mut index: usize) -> usize {
        while self.parents[index] != index {
            index = self.parents[index];
        }
        index
    }

    /// Joins each member with the first one of the same key.
    fn join<K: Hash + Eq>(&mut self, keys: impl Iterator<Item = K>) {
        let mut seen = HashMap::new();
        for (index, key) in keys.enumerate() {
            let known = *seen.entry(key).or_insert(index);
            let (one, other) = (self.first(known), self.first(index));
            self.parents[one.max(other)] = one.min(other);
        }
    }
}

/// The backups of each database, by their indexes. Two are also of one database if a third says so.
pub fn databases<'a>(backups: impl IntoIterator<Item = &'a Provenance>) -> Vec<Vec<usize>> {
    let backups: Vec<&Provenance> = backups.into_iter().collect();
    let mut groups = Groups {
        parents: (0..backups.len()).collect(),
    };
    groups.join(backups.iter().map(|of| (of.key(), &of.machine)));
    let proven = backups.iter().enumerate();
    groups.join(proven.map(|(index, of)| (of.key(), of.own_guid().ok_or(index))));
    let mut of_first: HashMap<usize, usize> = HashMap::new();
    let mut databases: Vec<Vec<usize>> = Vec::new();
    for index in 0..backups.len() {
        let group = *of_first.entry(groups.first(index)).or_insert_with(|| {
            databases.push(Vec::new());
            databases.len() - 1
        });
        databases[group].push(index);
    }
    databases
}

/// Names that tell databases apart: where several have one name, their places and families follow it.
pub fn distinct_names(databases: &[&Provenance]) -> Vec<String> {
    let mut names: Vec<String> = databases.iter().map(|of| of.name.clone()).collect();
    let further: [fn(&Provenance) -> String; 2] = [
        |of| format!("{} ('{}' on {})", of.name, of.path, of.machine),
        |of| {
            let family = of.family_guid;
            format!(
                "{} ('{}' on {}, family {family})",
                of.name, of.path, of.machine
            )
        },
    ];
    for longer in further {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for name in &names {
            *counts.entry(name.to_lowercase()).or_default() += 1;
        }
        for (name, of) in names.iter_mut().zip(databases) {
            if counts
                .get(&name.to_lowercase())
                .is_some_and(|count| *count > 1)
            {
                *name = longer(of);
            }
        }
    }
    names
}

/// Whether a name from [`distinct_names`] is of a database with this name.
pub fn is_named(distinct: &str, name: &str) -> bool {
    let (distinct, name) = (distinct.to_lowercase(), name.to_lowercase());
    let rest = distinct.strip_prefix(&name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ('"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, path: &str, machine: &str, guid: u8) -> Provenance {
        Provenance {
            family_guid: Guid::NIL,
            database_guid: Guid::from_stored([guid; 16]),
            name: name.to_owned(),
            path: path.to_owned(),
            machine: machine.to_owned(),
        }
    }

    #[test]
    fn a_copy_is_another_database_and_a_restored_original_is_not() {
        let original = of("app", "/data/app.db", "host", 1);
        let is_same = |other: &Provenance| original.is_same_database(other);
        assert!(is_same(&of("APP", "/data/app.db", "host", 1)));
        // Restored over itself, or in a container with another host name.
        assert!(is_same(&of("app", "/data/app.db", "host", 2)));
        assert!(is_same(&of("app", "/data/app.db", "other", 1)));
        // A test copy, by another name, in another folder, on another machine.
        assert!(!is_same(&of("test", "/data/test.db", "host", 2)));
        assert!(!is_same(&of("app", "/test/app.db", "host", 2)));
        assert!(!is_same(&of("app", "/test/app.db", "host", 1)));
        assert!(!is_same(&of("app", "/data/app.db", "other", 2)));
        // Two machines cloned from one.
        let derived = |machine| Provenance {
            database_guid: Guid::named(Guid::NIL, b"database"),
            ..of("app", "/data/app.db", machine, 1)
        };
        assert!(derived("host").is_same_database(&derived("host")));
        assert!(!derived("host").is_same_database(&derived("clone")));
        // The files of a page-engine database, copied to another machine.
        let engine = |machine| Provenance {
            database_guid: Guid::NIL,
            ..of("app", "/data/app.mdf", machine, 1)
        };
        assert!(engine("host").is_same_database(&engine("host")));
        assert!(!engine("host").is_same_database(&engine("other")));
        let mut stranger = original.clone();
        stranger.family_guid = Guid::from_stored([9; 16]);
        assert!(!is_same(&stranger));
    }

    #[test]
    fn backups_are_joined_through_others() {
        let first = of("app", "/data/app.db", "host", 1);
        let moved = of("app", "/data/app.db", "other", 2);
        let test = of("app", "/test/app.db", "host", 3);
        let restored = of("app", "/data/app.db", "host", 2);
        let found = databases([&first, &moved, &test, &restored]);
        assert_eq!(found, [vec![0, 1, 3], vec![2]]);
        let found = databases([&first, &moved, &test]);
        assert_eq!(found, [vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn databases_of_one_name_get_names_that_differ() {
        let app = of("app", "/data/app.db", "host", 1);
        let other = of("other", "/data/other.db", "host", 2);
        assert_eq!(distinct_names(&[&app, &other]), ["app", "other"]);
        let test = of("App", "/test/app.db", "host", 3);
        let newer = Provenance {
            family_guid: Guid::from_stored([9; 16]),
            ..app.clone()
        };
        let names = distinct_names(&[&app, &other, &test, &newer]);
        assert!(names[0].starts_with("app ('/data/app.db' on host, family 0"));
        assert_eq!(names[1..3], ["other", "App ('/test/app.db' on host)"]);
        assert!(names[3].contains("family 0909"), "{}", names[3]);
        for (index, name) in names.iter().enumerate() {
            assert_eq!(is_named(name, "APP"), index != 1, "{name}");
            assert!(!is_named(name, "ap"), "{name}");
        }
    }
}
