//! Which databases `backup --all` backs up, and the medium of each.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use windlass_base::message::table;
use windlass_base::pattern::matches;
use windlass_catalog::DatabaseState;
use windlass_instance::Session;
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

/// What there is to back up, and how many databases are left out.
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
    pub(super) to: String,
}

/// The databases of the folder that is named, or of the instance, as far as the patterns leave them.
pub(super) fn find(
    arguments: &BackupArguments,
    common: &Common,
    session: &Session,
    console: &mut Console,
) -> Result<Found, Outcome> {
    let is_meant = |database: &Database| is_meant(database, &arguments.many);
    match &arguments.database {
        Some(folder) => {
            let all = files_in(Path::new(folder)).map_err(|reason| misused(&reason))?;
            let (databases, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_meant);
            let skipped = others.len();
            Ok(Found {
                databases,
                skipped,
                refused: 0,
            })
        }
        None if common.instance.is_none() => Err(misused(
            "--all needs a folder of SQLite files, or --instance",
        )),
        None => registered(session, console, is_meant).map_err(|error| failed(&error, console)),
    }
}

/// The registered databases that can be backed up; of the others that are meant, it is told why not.
fn registered(
    session: &Session,
    console: &mut Console,
    is_meant: impl Fn(&Database) -> bool,
) -> Result<Found, windlass_catalog::Error> {
    let mut found = Found {
        databases: Vec::new(),
        skipped: 0,
        refused: 0,
    };
    for record in session.instance().catalog().databases()? {
        let database = Database {
            name: record.name,
            file: None,
        };
        let why_not = match record.state {
            DatabaseState::Online => None,
            DatabaseState::Restoring | DatabaseState::Standby => {
                Some(table::database_restoring(&database.name))
            }
            DatabaseState::Offline => Some(table::database_of_sql_server(&database.name)),
        };
        match (is_meant(&database), why_not) {
            (true, None) => found.databases.push(database),
            (true, Some(message)) => {
                console.message(message);
                found.refused += 1;
            }
            (false, _) => found.skipped += 1,
        }
    }
    Ok(found)
}

/// The databases in a folder, in the order of their names: what begins as a SQLite database does or is called like one.
fn files_in(folder: &Path) -> Result<Vec<Database>, String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(told)? {
        let path = entry.map_err(told)?.path();
        if let (true, Some(name)) = (is_database(&path), path.file_name()) {
            found.push(Database {
                name: name.to_string_lossy().into_owned(),
                file: Some(path.to_string_lossy().into_owned()),
            });
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

fn is_database(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    let is_called_so = ENDINGS
        .iter()
        .any(|known| ending.eq_ignore_ascii_case(known));
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => is_called_so || begins_as_database(path),
        Ok(_) => false,
        Err(_) => is_called_so,
    }
}

fn begins_as_database(path: &Path) -> bool {
    let mut head = [0; FIRST_BYTES];
    let mut read = || File::open(path)?.read_exact(&mut head);
    read().is_ok() && begins_database(&head)
}

/// Whether the patterns leave it. `shop` means shop.db too.
fn is_meant(database: &Database, many: &ManyArguments) -> bool {
    let fits =
        |pattern: &String| matches(pattern, &database.name) || matches(pattern, database.stem());
    (many.only.is_empty() || many.only.iter().any(fits)) && !many.except.iter().any(fits)
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
        let name = name.replace(['/', '\\', ':', '\0'], "_");
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
        let database = database.file.unwrap_or(database.name);
        let earlier = seen.insert(to.to_lowercase(), database.clone());
        if let Some(earlier) = earlier.filter(|_| !is_url) {
            return Err(format!(
                "'{earlier}' and '{database}' would have the same backup, {to}: leave one out with --except, and back it \
                 up alone"
            ));
        }
        targets.push(Target { database, to });
    }
    Ok(targets)
}
