//! USE, CREATE DATABASE ... FOR ATTACH, DROP DATABASE, and what the attach procedures do.
//!
//! Who owns the file? An attached file belongs to another program: detaching and dropping leave it
//! alone. A file that this instance created belongs to it: DROP DATABASE deletes it, as SQL Server does,
//! unless a program has it open or another file has taken its name (see [`ownership`]).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, DatabaseState, EndedDamage, FileRecord, Origin};
use windlass_source::ownership::{self, Owner};
use windlass_source::sqlite::{self, Seized};
use windlass_source::{Content, Error as SourceError};
use windlass_tsql::ast::{CreateDatabase, DatabaseOrigin, DropDatabase, Identifier, Statement};
use windlass_tsql::span::Spanned;

use crate::event_log::Entry;
use crate::instance::{is_system_database, new_record};
use crate::message_of::{not_a_database, os_error, unreadable_file};
use crate::names::absolute;
use crate::query::{Home, Place};
use crate::sessions::InUse;
use crate::{Failure, Session, Sink};

use super::engine;
use crate::operation::database::readable;

/// `USE`
pub(super) fn use_database(
    session: &mut Session,
    name: &str,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    if session.queries.is_in_transaction() {
        return Err(Failure::ending(table::not_in_transaction("USE")));
    }
    // The statements after a failed USE were meant for another database: the batch ends.
    let place = location(session, name).map_err(|failure| Failure {
        batch: crate::AfterFailure::Ends,
        ..failure
    })?;
    let name = place.name.clone();
    session.queries.use_database(place);
    session
        .listed()
        .change(|activity| activity.database.clone_from(&name));
    sink.message(table::changed_database(&name));
    Ok(())
}

/// The name of a system database, or of one that is online, and its location for queries.
pub(super) fn location(session: &mut Session, name: &str) -> Result<Place, Failure> {
    match is_system_database(name) {
        true => Ok(Place {
            name: name.to_ascii_lowercase(),
            home: Home::System,
            in_use: None,
        }),
        false => found(session, name),
    }
}

/// The name of a database that is online, and its location for queries.
fn found(session: &mut Session, name: &str) -> Result<Place, Failure> {
    let in_use = session.use_beside(name)?;
    let record = readable(session, name)?;
    let home = if record.log_path.is_some() {
        session.instance.engine(&record)?;
        Home::Engine(session.instance.engines.uri(&record.name)?)
    } else {
        Home::File(record.path)
    };
    Ok(Place {
        name: record.name,
        home,
        in_use: Some(Arc::new(in_use)),
    })
}

/// `CREATE DATABASE`
pub(super) fn create(
    session: &mut Session,
    create: &CreateDatabase,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let name = &create.name.text;
    match &create.origin {
        DatabaseOrigin::Attach | DatabaseOrigin::AttachAsIs => {}
        DatabaseOrigin::New => {
            if is_system_database(name) || name.is_empty() {
                return Err(table::database_exists(name).into());
            }
            return engine::create(session, create, sink);
        }
        DatabaseOrigin::AttachRebuildLog => {
            return Err(table::rebuild_log_not_supported().into());
        }
        DatabaseOrigin::SnapshotOf(_) => {
            return Err(table::database_snapshot_not_supported().into());
        }
    }
    engine::refuse_filegroups(create)?;
    let filegroups = create.filegroups.iter().flat_map(|group| &group.files);
    let files: Vec<_> = create.primary_files.iter().chain(filegroups).collect();
    let attached = |name| table::database_attached(name);
    let [file] = match (files.as_slice(), create.log_files.as_slice()) {
        (&[file], []) => [file],
        (files, [log]) => {
            engine::attach(session, name, files, log)
                .map_err(|failure| failure.then(table::create_database_failed()))?;
            sink.message(attached(name));
            return Ok(());
        }
        (files, _) => {
            return Err(table::files_without_log_not_supported(files.len()).into());
        }
    };
    let Some(path) = &file.filename else {
        return Err(Failure::from(table::syntax_near(name)));
    };
    let logical = file.name.as_ref().map(|name| name.text.as_str());
    let is_as_is = create.origin == DatabaseOrigin::AttachAsIs;
    attach(session, name, &path.node, logical, is_as_is)
        .map_err(|failure| failure.then(table::create_database_failed()))?;
    sink.message(attached(name));
    Ok(())
}

/// Registers an existing file as a database.
pub(super) fn attach(
    session: &mut Session,
    name: &str,
    written_path: &str,
    logical: Option<&str>,
    is_as_is: bool,
) -> Result<(), Failure> {
    if is_system_database(name) || name.is_empty() {
        return Err(table::database_exists(name).into());
    }
    let path = session.instance.drives().path(written_path)?;
    let path = existing_file(&path)?;
    let content = sqlite::content(&path)?;
    if content == Content::Unknown && !is_as_is {
        return Err(not_a_database(&path).into());
    }
    let mut record = new_record(name, &path, Origin::Attached);
    record.is_as_is = content == Content::Unknown;
    if let Some(logical) = logical {
        logical.clone_into(&mut record.logical_name);
    }
    session.instance.register(&record)?;
    Ok(())
}

/// The absolute path of a file that must exist.
fn existing_file(path: &Path) -> Result<PathBuf, Failure> {
    let failed = |error: &std::io::Error| Failure::from(unreadable_file(path, error));
    let metadata = std::fs::metadata(path).map_err(|error| failed(&error))?;
    if !metadata.is_file() {
        return Err(failed(&std::io::Error::from(
            std::io::ErrorKind::IsADirectory,
        )));
    }
    absolute(path).map_err(|error| failed(&error))
}

/// Unregisters a database and leaves its file alone.
pub(super) fn detach(session: &mut Session, name: &str) -> Result<(), Failure> {
    if is_system_database(name) {
        return Err(table::drop_system_database(name).into());
    }
    let record = session
        .instance
        .database(name)?
        .ok_or_else(|| Failure::from(table::database_not_found_for_procedure(name)))?;
    let _alone = refuse_in_use(session, &record)?;
    let _followed = session.without_follower(&record)?;
    remove_kept_log(session, &record)?;
    session.instance.forget(&record.name)?;
    Ok(())
}

/// The log that is kept of a SQLite file belongs to its registration.
fn remove_kept_log(session: &Session, record: &DatabaseRecord) -> Result<(), Failure> {
    match session.instance.kept_log(record) {
        Some(folder) => Ok(sqlite::remove_spool(&folder)?),
        None => Ok(()),
    }
}

/// Keeps others away from a database that is about to go, until the value is dropped.
fn refuse_in_use(session: &mut Session, record: &DatabaseRecord) -> Result<InUse, Failure> {
    if session
        .current_database()
        .eq_ignore_ascii_case(&record.name)
    {
        return Err(table::drop_in_use(&record.name).into());
    }
    let alone = session.use_alone(&record.name);
    let alone = alone.ok_or_else(|| Failure::from(table::drop_in_use(&record.name)))?;
    session.queries.release(&record.path);
    session.instance.engines.close(&record.name)?;
    Ok(alone)
}

/// `DROP DATABASE`
pub(super) fn drop(
    session: &mut Session,
    drop: &DropDatabase,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    if session.queries.is_in_transaction() {
        return Err(table::not_in_transaction("DROP DATABASE").into());
    }
    for name in &drop.names {
        drop_one(session, &name.text, drop.if_exists, sink)?;
    }
    Ok(())
}

impl Session {
    /// Changes the current database, as USE does.
    ///
    /// # Errors
    /// It does not exist, or it is not online.
    pub fn use_database(&mut self, name: &str, sink: &mut dyn Sink) -> Result<(), Failure> {
        if self.is_elsewhere() {
            let text = format!("USE [{}]", name.replace(']', "]]"));
            return match self.execute_batch(&text, 1, sink) {
                crate::BatchEnd::Clean => Ok(()),
                _ => Err(Vec::new().into()),
            };
        }
        // The name is not in a batch, which would be checked.
        let name = Spanned::unplaced(Identifier::new(name));
        self.authorize(&Statement::Use(name.clone()))?;
        use_database(self, &name.node.text, sink)
    }

    /// Drops a database, as DROP DATABASE does.
    pub(crate) fn drop_database(&mut self, name: &str, sink: &mut dyn Sink) -> Result<(), Failure> {
        if self.queries.is_in_transaction() {
            return Err(table::not_in_transaction("DROP DATABASE").into());
        }
        let entry = Entry::of_operation("DROP DATABASE", name, std::iter::empty());
        entry.around(sink, |sink| drop_one(self, name, false, sink))
    }
}

fn drop_one(
    session: &mut Session,
    name: &str,
    if_exists: bool,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    if is_system_database(name) {
        return Err(table::drop_system_database(name).into());
    }
    let Some(record) = session.instance.database(name)? else {
        return if if_exists {
            Ok(())
        } else {
            Err(table::cannot_drop("database", name).into())
        };
    };
    if (record.state, record.origin) != (DatabaseState::Online, Origin::Attached) {
        session
            .instance
            .refuse_copy("DROP DATABASE", &record.name)?;
    }
    let _alone = refuse_in_use(session, &record)?;
    let _followed = session.without_follower(&record)?;
    let path = record.path.display();
    let notes = match (record.state, record.origin) {
        (_, Origin::SqlServer) => {
            let files = session.instance.catalog().files(record.database_id)?;
            let left = |file: &FileRecord| table::file_left(file.path.display());
            files.iter().map(left).collect()
        }
        (DatabaseState::Restoring | DatabaseState::Standby, _) if record.log_path.is_some() => {
            let log = record.log_path.as_deref().unwrap_or(Path::new(""));
            match windlass_source::engine::forget(log, record.made_for)? {
                None => vec![restore_removed(session, &record)?],
                Some(left) => vec![table::file_left_to_others(left.path.display(), left.why)],
            }
        }
        (DatabaseState::Online, Origin::Restored) if record.log_path.is_some() => {
            engine::delete_files(session, &record)?
        }
        (DatabaseState::Restoring | DatabaseState::Standby, _) => {
            match sqlite::forget(&record.path, record.made_for)? {
                None => vec![restore_removed(session, &record)?],
                Some(left) => vec![table::file_left_to_others(left.path.display(), left.why)],
            }
        }
        (DatabaseState::Online, Origin::Restored) => vec![match delete_files(&record)? {
            None => table::file_deleted(path),
            Some(why) => table::file_left_to_others(path, why),
        }],
        (DatabaseState::Offline, _) | (DatabaseState::Online, Origin::Attached) => {
            vec![table::file_left(path)]
        }
    };
    remove_kept_log(session, &record)?;
    session.instance.forget(&record.name)?;
    if !record.path.exists() {
        session.end_damage(&record, &EndedDamage::All)?;
    }
    for note in notes {
        sink.message(note);
    }
    Ok(())
}

/// What is left where an unfinished restore was to go: the older database, which it would have replaced at its
/// end. That is whole, and nobody asked for its deletion.
fn restore_removed(session: &Session, record: &DatabaseRecord) -> Result<Message, Failure> {
    let files = session.instance.catalog().files(record.database_id)?;
    let files = files.into_iter().map(|file| file.path);
    let mut left: Vec<String> = std::iter::once(record.path.clone())
        .chain(record.log_path.clone())
        .chain(files)
        .filter(|path| path.exists())
        .map(|path| format!("'{}'", path.display()))
        .collect();
    left.sort();
    left.dedup();
    let path = record.path.display();
    Ok(match left.as_slice() {
        [] => table::restore_removed(path),
        left => table::restore_removed_older_left(path, left.join(", ")),
    })
}

/// Deletes a database's file and SQLite's side files, unless it is open. Returns why it did not, if what has
/// its name is not the database's.
fn delete_files(record: &DatabaseRecord) -> Result<Option<String>, Failure> {
    let owner = ownership::owner_of_remains(&record.path, record.made_for)
        .map_err(|error| unreadable_file(&record.path, &error))?;
    match owner {
        Owner::Nobody => return Ok(None),
        Owner::Other { why } => return Ok(Some(why)),
        Owner::Own | Owner::Untold => {}
    }
    let seized = Seized::of(&record.path).map_err(|error| match error {
        SourceError::InUse { .. } | SourceError::Busy { .. } => {
            Failure::from(table::drop_in_use(&record.name))
        }
        other => other.into(),
    })?;
    // A restore that waits for another database stays.
    let _left = sqlite::forget(&record.path, record.made_for)?;
    std::mem::drop(seized);
    // The database itself is deleted last: until then it is complete.
    for suffix in ["-wal", "-shm", "-journal", ""] {
        let mut name = record.path.clone().into_os_string();
        name.push(suffix);
        match std::fs::remove_file(&name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(table::cannot_open_file(name.display(), os_error(&error)).into());
            }
            _ => {}
        }
    }
    Ok(None)
}
