//! The databases of backup sets and of registrations, for [`Provenance::is_same_database`].

use std::path::Path;

use windlass_base::Guid;
use windlass_catalog::provenance::{databases, distinct_names};
use windlass_catalog::{DatabaseRecord, Origin, Provenance};
use windlass_media::{SetConfiguration, SourceKind};
use windlass_source::created_ns;
use windlass_source::sqlite::FileIdentity;

use crate::chain::Times;

/// The database that a set is of. The files of a copied set are the backup's, not the database's: there the server,
/// of which a machine can have several, tells databases of one name apart.
pub fn of_set(set: &SetConfiguration) -> Provenance {
    let is_copy = set.source_kind == SourceKind::SqlServer;
    let first = set.files.first().map(|file| &file.physical_name);
    let path = if is_copy { Some(&set.server) } else { first };
    let times = Times::of(set.started, set.finished, i32::from(set.time_zone));
    Provenance {
        family_guid: set.family_guid,
        database_guid: set.database_guid,
        name: set.database.clone(),
        path: path.cloned().unwrap_or_default(),
        machine: set.machine.clone(),
        created_ns: set.files.first().and_then(|file| file.created_ns),
        at: times.map(|times| (times.finished, set.last_lsn)),
    }
}

/// A database as its next backup will describe it; `None` if its file is not there and nothing else tells its
/// family.
pub fn of_record(record: &DatabaseRecord, machine: &str) -> Option<Provenance> {
    // Their files are not SQLite's: what the catalog knows of the family counts.
    let is_by_catalog = record.log_path.is_some() || record.origin == Origin::SqlServer;
    // As a backup follows links.
    let file = record.path.canonicalize().ok().filter(|_| !is_by_catalog);
    let identity = file.as_deref().map(FileIdentity::of);
    let family = identity.map(|identity| identity.family_guid);
    let family = record.family_guid.or(family)?;
    let own = identity.map(|identity| identity.database_guid);
    Some(Provenance {
        family_guid: family,
        database_guid: match is_by_catalog {
            true => family,
            false => own.unwrap_or(Guid::NIL),
        },
        name: record.name.clone(),
        path: text(file.as_deref().unwrap_or(&record.path)),
        machine: machine.to_owned(),
        created_ns: created_ns(file.as_deref().unwrap_or(&record.path)),
        at: None,
    })
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The databases of some sets: a name that no other of them has, and the indexes of its sets.
pub fn named_databases(sets: &[Provenance]) -> Vec<(String, Vec<usize>)> {
    let groups = databases(sets);
    let last = groups.iter().filter_map(|group| group.last());
    let last: Vec<&Provenance> = last.map(|index| &sets[*index]).collect();
    distinct_names(&last).into_iter().zip(groups).collect()
}
