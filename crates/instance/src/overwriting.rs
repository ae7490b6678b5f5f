//! What neither a backup nor a copy of one overwrites, no matter what the options say: databases, and
//! files next to them.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use windlass_base::message::table;
use windlass_catalog::DatabaseRecord;

use crate::names::{absolute, is_own_side_file, part_of_database};
use crate::{Failure, Session};

/// Refuses a path because of its name, of what is registered, or of the files next to it. `name` is the
/// user's name for it, `own` the database being backed up.
pub(crate) fn refuse(
    session: &Session,
    path: &Path,
    name: &str,
    own: Option<&DatabaseRecord>,
) -> Result<(), Failure> {
    let path = absolute(path).unwrap_or_else(|_| path.to_owned());
    let is_own = |record: &&DatabaseRecord| {
        let mut parts = ["", "-wal", "-shm", "-journal"].iter();
        parts.any(|suffix| path == with_suffix(&record.path, suffix))
    };
    let owner = match own.filter(is_own) {
        Some(own) => Some(own.clone()),
        None => session.instance.database_at(&path)?,
    };
    if let Some(owner) = owner {
        return Err(table::file_used_by_database(name, &owner.name).into());
    }
    // SQLite or the engine would take such a file for part of a database, and delete it or write to it.
    if let Some(database) = part_of_database(&path) {
        let reason = format!(
            "A file of this name would be taken for part of the database '{}'; give the backup another \
             name, for example ending in .bak",
            database.display()
        );
        return Err(table::cannot_open_device(name, reason).into());
    }
    // Or Windlass would take it for an unfinished file of an earlier run, and remove it.
    if is_own_side_file(&path) {
        let reason = "Windlass gives such names to its unfinished files and removes them; give the backup \
                      another name, for example ending in .bak";
        return Err(table::cannot_open_device(name, reason).into());
    }
    // An encrypted database looks like noise, but the files that SQLite keeps next to it have its name.
    let beside = ["-wal", "-journal", "-shm"].map(|suffix| with_suffix(&path, suffix));
    if let Some(part) = beside.iter().find(|part| windlass_io::own::is_there(part)) {
        let reason = format!(
            "It may be a database in use, because '{}' exists next to it; name another file",
            part.display()
        );
        return Err(table::cannot_open_device(name, reason).into());
    }
    Ok(())
}

/// Refuses an existing file whose content starts like part of a database.
pub(crate) fn refuse_content(path: &Path) -> std::io::Result<()> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Ok(found) if !found.is_file() => {
            let reason = "it is no regular file; name another one";
            return Err(std::io::Error::new(
                std::io::ErrorKind::InvalidInput,
                reason,
            ));
        }
        found => {
            found?;
        }
    }
    let mut first = [0; windlass_source::FIRST_BYTES];
    let read = File::open(path)?.read(&mut first)?;
    match windlass_source::part_of_database(&first[..read]) {
        None => Ok(()),
        Some(part) => {
            let reason =
                format!("it is {part} and not a backup; name another file, or delete it first");
            Err(std::io::Error::new(
                std::io::ErrorKind::AlreadyExists,
                reason,
            ))
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
