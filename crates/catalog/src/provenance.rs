//! Which database a backup is of: only backups of one database may take each other's place.
//!
//! The family GUID alone does not say it, because everything restored from a database's backups shares it: a
//! test copy would take the place of the original. Two backups are of one database if family, name and the
//! path of its first file are equal, and either its GUID or its machine's name. So a database that was restored over
//! itself is the same, and so is one with a GUID of its own on a machine that has a new name. Two kinds of GUID
//! prove nothing: one that is only derived from the machine's identity, because cloned machines share it, and
//! one that is the family's, as a page-engine database's is, because every copy of its files has it. Where
//! names change, as in containers, the setting `machine_name` gives one that stays.
//!
//! One database can have had several files and machines, but one after the other: a restore or an application
//! replaces a file, a machine gets another name. Where backups of two files, known by when they were created,
//! alternate under one path, or those of two machines, both exist at the same time: they are two databases. So are
//! volumes that are mounted under one path in several clusters, and machines cloned with the extended attributes of
//! their files.
//! In doubt two databases are told apart: then more is kept, and less is called backed up.
//!
//! The search for a differential's base, the restore of the newest state, retention, and what is said of a
//! history or a folder all use this rule.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::num::NonZeroU64;

use jiff::Timestamp;
use windlass_base::{Guid, Lsn};

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
    /// When its first file was created, in nanoseconds since 1970, if that is known.
    pub created_ns: Option<NonZeroU64>,
    /// When it was so: at the end of the backup, in seconds since 1970, UTC, and by its LSN within one second. `None`
    /// if that is not known, or now.
    pub at: Option<(i64, Lsn)>,
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

    /// Which of several files of one path it has.
    pub fn file(&self) -> String {
        let created = self.created_ns.map(|created| i128::from(created.get()));
        let created = created.and_then(|created| Timestamp::from_nanosecond(created).ok());
        created.map_or_else(
            || "a file of unknown age".to_owned(),
            |created| format!("the file created at {created:.3}"),
        )
    }

    fn key(&self) -> (Guid, String, &str) {
        (self.family_guid, self.name.to_lowercase(), &self.path)
    }
}

/// LSNs of SQLite files are times, in seconds since 1970; those of the page engine are far smaller.
const TIMES_BEGIN: u32 = 1_000_000_000;

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
            self.join_two(known, index);
        }
    }

    fn join_two(&mut self, one: usize, other: usize) {
        let (one, other) = (self.first(one), self.first(other));
        self.parents[one.max(other)] = one.min(other);
    }

    /// Joins the members of each key if the forms in which they were seen follow one another.
    fn join_successive<K: Hash + Eq, F: PartialEq>(
        &mut self,
        backups: &[&Provenance],
        key: impl Fn(usize) -> K,
        form: impl Fn(usize) -> F,
    ) {
        let mut of_key: HashMap<K, Vec<usize>> = HashMap::new();
        for index in 0..backups.len() {
            of_key.entry(key(index)).or_default().push(index);
        }
        for mut own in of_key.into_values() {
            let first = own[0];
            let all = own.clone();
            own.retain(|index| backups[*index].at.is_some());
            own.sort_by_key(|index| {
                let of = backups[*index];
                let (second, lsn) = of.at?;
                // A restore of the page engine goes back in its LSNs: those of two files are not comparable.
                let created = (lsn.vlf < TIMES_BEGIN).then_some(of.created_ns);
                Some((second, created, lsn))
            });
            if !alternate(own.into_iter().map(&form)) {
                for index in all {
                    self.join_two(first, index);
                }
            }
        }
    }
}

/// Whether one of these comes back after another.
fn alternate<F: PartialEq>(forms: impl Iterator<Item = F>) -> bool {
    let mut seen: Vec<F> = Vec::new();
    for form in forms {
        match seen.iter().position(|earlier| *earlier == form) {
            None => seen.push(form),
            Some(place) if place + 1 == seen.len() => {}
            Some(_) => return true,
        }
    }
    false
}

/// The backups of each database, by their indexes. Two are also of one database if a third says so.
pub fn databases<'a>(backups: impl IntoIterator<Item = &'a Provenance>) -> Vec<Vec<usize>> {
    let backups: Vec<&Provenance> = backups.into_iter().collect();
    let mut groups = Groups {
        parents: (0..backups.len()).collect(),
    };
    let file = |of: &'a Provenance| (&of.machine, of.created_ns);
    groups.join(backups.iter().map(|of| (of.key(), file(of))));
    groups.join_successive(
        &backups,
        |index| (backups[index].key(), &backups[index].machine),
        |index| backups[index].created_ns,
    );
    groups.join_successive(
        &backups,
        |index| (backups[index].key(), backups[index].own_guid().ok_or(index)),
        |index| file(backups[index]),
    );
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
    let further: [fn(&Provenance) -> String; 3] = [
        |of| placed_name(&of.name, &of.path, &of.machine),
        |of| {
            let family = of.family_guid;
            format!(
                "{} ('{}' on {}, family {family})",
                of.name, of.path, of.machine
            )
        },
        |of| {
            let (family, file) = (of.family_guid, of.file());
            format!(
                "{} ('{}' on {}, family {family}, {file})",
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

/// The name of a database with its place.
pub fn placed_name(name: &str, path: &str, machine: &str) -> String {
    format!("{name} ('{path}' on {machine})")
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
            created_ns: None,
            at: None,
        }
    }

    /// Backed up at a time, from the file that was created at another.
    fn seen(of: &Provenance, at: i64, created: u64) -> Provenance {
        Provenance {
            at: Some((at, Lsn::ZERO)),
            created_ns: NonZeroU64::new(created),
            ..of.clone()
        }
    }

    #[test]
    fn files_that_replace_each_other_are_of_one_database_and_those_that_alternate_are_not() {
        let app = of("app", "/data/app.db", "host", 1);
        let of_files = |created: &[u64]| -> Vec<Vec<usize>> {
            let backups = created.iter().zip(1..);
            let backups: Vec<_> = backups
                .map(|(created, at)| seen(&app, at, *created))
                .collect();
            databases(&backups)
        };
        assert_eq!(of_files(&[5, 5, 6, 6, 7]), [vec![0, 1, 2, 3, 4]]);
        assert_eq!(of_files(&[5, 6, 5, 6]), [vec![0, 2], vec![1, 3]]);
        assert_eq!(of_files(&[5, 6, 5]), [vec![0, 2], vec![1]]);
        // As found in folders: the order of the list says nothing.
        let one = [
            seen(&app, 3, 6),
            seen(&app, 1, 5),
            seen(&app, 4, 6),
            seen(&app, 2, 5),
        ];
        assert_eq!(databases(&one).len(), 1);
        // Within one second a file that was restored, with lower LSNs, is the later one.
        let at_once = [(5, 7), (5, 9), (6, 8), (6, 8)].map(|(created, lsn)| {
            let lsn = Lsn {
                vlf: lsn,
                block: 1,
                slot: 1,
            };
            Provenance {
                at: Some((1, lsn)),
                ..seen(&app, 1, created)
            }
        });
        assert_eq!(databases(&at_once).len(), 1);
        // What has no time is as it is now.
        let now = Provenance {
            at: None,
            ..seen(&app, 0, 5)
        };
        let all = [seen(&app, 1, 5), seen(&app, 2, 6), now];
        assert_eq!(databases(&all).len(), 1);
    }

    #[test]
    fn machines_that_follow_each_other_have_one_database_and_clones_do_not() {
        let on = |machine, at| seen(&of("app", "/data/app.db", machine, 1), at, 5);
        let renamed = [on("old", 1), on("old", 2), on("new", 3), on("new", 4)];
        assert_eq!(databases(&renamed).len(), 1);
        let cloned = [on("one", 1), on("two", 2), on("one", 3), on("two", 4)];
        assert_eq!(databases(&cloned), [vec![0, 2], vec![1, 3]]);
        // The files of one machine alternate, and their identity is the same.
        let both = [on("one", 1), seen(&on("one", 0), 2, 6), on("one", 3)];
        assert_eq!(databases(&both), [vec![0, 2], vec![1]]);
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
