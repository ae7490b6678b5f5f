//! Which databases `backup --all` backs up, and the medium of each.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use windlass_base::message::table;
use windlass_base::pattern::matches;
use windlass_catalog::{DatabaseRecord, DatabaseState};
use windlass_instance::message_of::unreadable_file;
use windlass_instance::{Failure, Session};
use windlass_source::{FIRST_BYTES, begins_database};

use super::super::{Outcome, failed, misused};
use crate::args::{BackupArguments, Common, ManyArguments};
use crate::output::Console;

/// How files of databases are called. One that cannot be read, or is encrypted, is to be backed up too: that fails, and
/// nobody takes the night for complete.
const ENDINGS: [&str; 5] = ["db", "db3", "sqlite", "sqlite3", "s3db"];

/// A database, before its medium is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Database {
    /// A registered name, or a file name; the patterns are compared with it.
    pub(super) name: String,
    /// The file, if it is not a registered database.
    pub(super) file: Option<String>,
}

impl Database {
    fn registered(record: &DatabaseRecord) -> Self {
        Self {
            name: record.name.clone(),
            file: None,
        }
    }

    /// Whether a pattern names it: `shop` means shop.db too.
    fn fits(&self, pattern: &str) -> bool {
        matches(pattern, &self.name) || matches(pattern, self.stem())
    }

    /// The name, for files without its ending.
    fn stem(&self) -> &str {
        let stem = self
            .file
            .is_some()
            .then(|| Path::new(&self.name).file_stem());
        stem.flatten()
            .and_then(|stem| stem.to_str())
            .unwrap_or(&self.name)
    }
}

/// What there is to back up, and how many databases are left out; each of these is told.
#[derive(Default)]
pub(super) struct Found {
    pub(super) databases: Vec<Database>,
    pub(super) skipped: usize,
    /// Those that are meant and cannot be backed up.
    pub(super) refused: usize,
}

/// A database to back up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The name of a registered database, or a file.
    pub(super) database: String,
    pub(super) is_registered: bool,
    pub(super) to: String,
}

impl Target {
    /// The session's name for it. A name of which the database is gone by now means no file.
    pub(super) fn name_in(&self, session: &mut Session) -> Result<String, Failure> {
        match (
            self.is_registered,
            session.instance().database(&self.database)?,
        ) {
            (true, Some(record)) => Ok(record.name),
            (true, None) => Err(table::database_does_not_exist(&self.database).into()),
            (false, _) => Ok(session.instance_mut().pass(Path::new(&self.database))?),
        }
    }
}

/// The databases of the folder that is named, or of the instance, as far as the patterns leave them.
pub(super) fn find(
    arguments: &BackupArguments,
    common: &Common,
    session: &Session,
    console: &mut Console,
) -> Result<Found, Outcome> {
    let many = &arguments.many;
    match &arguments.database {
        Some(folder) => in_folder(Path::new(folder), console, many),
        None if common.instance.is_none() => Err(misused(
            "--all needs a folder of SQLite files, or --instance",
        )),
        None => registered(session, console, many).map_err(|error| failed(&error, console)),
    }
}

/// The databases of a folder.
fn in_folder(folder: &Path, console: &mut Console, many: &ManyArguments) -> Result<Found, Outcome> {
    let mut found = Found::default();
    let all = files_in(folder).map_err(|reason| misused(&reason))?;
    let names: Vec<&Database> = all.iter().map(|(database, _)| database).collect();
    found.tell_idle(&names, many, console);
    for (database, seen) in all {
        match (why_not_meant(&database, many), seen) {
            (Some(why), _) | (None, Seen::Doubtful(why)) => {
                found.leave_out(&database, &why, console);
            }
            (None, Seen::Unknown(error)) => found.refuse(&database, &error, console),
            (None, Seen::Database) => found.databases.push(database),
        }
    }
    Ok(found)
}

impl Found {
    /// Reports the patterns of --only that name none of the databases: each may be a misspelt name.
    fn tell_idle(&mut self, all: &[&Database], many: &ManyArguments, console: &mut Console) {
        let is_idle = |pattern: &&String| !all.iter().any(|database| database.fits(pattern));
        for pattern in many.only.iter().filter(is_idle) {
            console.message(table::pattern_names_none(pattern));
            self.refused += 1;
        }
    }

    /// What may be a database that is not to be missed.
    fn refuse(&mut self, database: &Database, error: &std::io::Error, console: &mut Console) {
        let path = Path::new(database.file.as_deref().unwrap_or(&database.name));
        let advice = "It is not known whether it is a database. If it is none: --except.";
        console.message(unreadable_file(path, error).with_advice(Some(advice)));
        self.refused += 1;
    }

    fn leave_out(&mut self, database: &Database, why: &str, console: &mut Console) {
        console.message(table::database_left_out(&database.name, why));
        self.skipped += 1;
    }
}

/// The registered databases that can be backed up; of the others that are meant, it is told why not.
fn registered(
    session: &Session,
    console: &mut Console,
    many: &ManyArguments,
) -> Result<Found, windlass_catalog::Error> {
    let mut found = Found::default();
    let records = session.instance().catalog().databases()?;
    let databases: Vec<Database> = records.iter().map(Database::registered).collect();
    found.tell_idle(&databases.iter().collect::<Vec<_>>(), many, console);
    for (record, database) in records.into_iter().zip(databases) {
        let why_not = match record.state {
            DatabaseState::Online => None,
            DatabaseState::Restoring | DatabaseState::Standby => {
                Some(table::database_restoring(&database.name))
            }
            DatabaseState::Offline => Some(table::database_of_sql_server(&database.name)),
        };
        match (why_not_meant(&database, many), why_not) {
            (Some(why), _) => found.leave_out(&database, &why, console),
            (None, Some(message)) => {
                console.message(message);
                found.refused += 1;
            }
            (None, None) => found.databases.push(database),
        }
    }
    Ok(found)
}

/// The databases in a folder, in the order of their names: what begins as a SQLite database does or is called like one.
/// With each, what was seen of it.
fn files_in(folder: &Path) -> Result<Vec<(Database, Seen)>, String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(told)? {
        let path = entry.map_err(told)?.path();
        let Some(mut seen) = seen(&path) else {
            continue;
        };
        if path.to_str().is_none() && matches!(seen, Seen::Database) {
            let why = "its name is not UTF-8, in which media have names";
            seen = Seen::Unknown(std::io::Error::new(ErrorKind::InvalidFilename, why));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let database = Database {
            name: name.into_owned(),
            file: Some(path.to_string_lossy().into_owned()),
        };
        found.push((database, seen));
    }
    found.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    Ok(found)
}

/// What is, or may be, a database.
enum Seen {
    Database,
    /// Somebody may take it for a database; why it is not backed up.
    Doubtful(String),
    /// It cannot be read, or leads nowhere: it may be a database that is not to be missed.
    Unknown(std::io::Error),
}

/// What a file is seen as; `None` if it is none of this.
fn seen(path: &Path) -> Option<Seen> {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    let is_called_so = ENDINGS
        .iter()
        .any(|known| ending.eq_ignore_ascii_case(known));
    match (std::fs::metadata(path), is_called_so) {
        (Ok(found), true) if found.is_dir() => {
            let why = "it is a folder, and subfolders are not looked into";
            Some(Seen::Doubtful(why.to_owned()))
        }
        (Ok(found), true) if !found.is_file() => Some(Seen::Doubtful("it is no file".to_owned())),
        (_, true) => Some(Seen::Database),
        (Ok(found), false) if found.is_file() => match begins_as_database(path) {
            Ok(begins) => begins.then_some(Seen::Database),
            Err(error) => Some(Seen::Unknown(error)),
        },
        (Ok(_), false) => None,
        (Err(error), false) => match std::fs::symlink_metadata(path) {
            Err(gone) if gone.kind() == ErrorKind::NotFound => None,
            _ => Some(Seen::Unknown(error)),
        },
    }
}

fn begins_as_database(path: &Path) -> std::io::Result<bool> {
    let mut head = [0; FIRST_BYTES];
    match File::open(path)?.read_exact(&mut head) {
        Ok(()) => Ok(begins_database(&head)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Why the patterns do not leave it, if they do not.
fn why_not_meant(database: &Database, many: &ManyArguments) -> Option<String> {
    let fits = |pattern: &&String| database.fits(pattern);
    if let Some(pattern) = many.except.iter().find(fits) {
        return Some(format!("--except '{pattern}' names it"));
    }
    let is_named = many.only.is_empty() || many.only.iter().any(|pattern| fits(&pattern));
    (!is_named).then(|| "--only does not name it".to_owned())
}

/// Where each database goes: NAME.bak in the folder, for files without their ending unless two would have the same. Two
/// that would still have the same medium, whatever the case of letters, are refused: with --format, one would take the
/// place of the other. Below a URL, each backup makes its own name.
pub(super) fn targets(
    databases: Vec<Database>,
    to: &str,
    is_url: bool,
) -> Result<Vec<Target>, String> {
    let mut stems: HashMap<String, usize> = HashMap::new();
    for database in &databases {
        *stems.entry(database.stem().to_lowercase()).or_default() += 1;
    }
    let medium = |database: &Database| {
        let stem = database.stem();
        let name = match stems.get(&stem.to_lowercase()) {
            Some(1) => stem,
            _ => &database.name,
        };
        // A tag in brackets would become another name later.
        let name = name.replace(['/', '\\', ':', '<', '>', '\0'], "_");
        let path = Path::new(to).join(format!("{name}.bak"));
        path.to_string_lossy().into_owned()
    };
    let mut seen: HashMap<String, String> = HashMap::new();
    let mut targets = Vec::new();
    for database in databases {
        let to = match is_url {
            true => to.to_owned(),
            false => medium(&database),
        };
        let is_registered = database.file.is_none();
        let database = database.file.unwrap_or(database.name);
        let earlier = seen.insert(to.to_lowercase(), database.clone());
        if let Some(earlier) = earlier.filter(|_| !is_url) {
            return Err(format!(
                "'{earlier}' and '{database}' would have the same backup, {to}: leave one out with --except, and back it \
                 up alone"
            ));
        }
        targets.push(Target {
            database,
            is_registered,
            to,
        });
    }
    Ok(targets)
}
