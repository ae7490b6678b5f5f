//! CREATE DATABASE for the page engine, ALTER DATABASE, CHECKPOINT.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_base::message::table;
use windlass_base::{Guid, Message};
use windlass_catalog::{DatabaseRecord, EndedDamage, Origin};
use windlass_engine::storage::unnamed;
use windlass_engine::{
    CreateDatabase as Request, Database, FileSpec, Growth, NewDatabase, OpenDatabase,
};
use windlass_source::Error as SourceError;
use windlass_source::engine::Removal;
use windlass_source::ownership;
use windlass_tsql::ast::{
    AlterDatabase, AlterDatabaseAction, AlteredDatabase, CreateDatabase, DatabaseOption,
    FileDefinition, FileGrowth, FileSize, FileSizeLimit, Filegroup, RecoveryModel, SizeUnit,
    TimeUnit, Value,
};
use windlass_tsql::span::Spanned;

use crate::engine::file_records;
use crate::instance::new_record;
use crate::message_of::unreadable_file;
use crate::names::absolute;
use crate::operation::database::{known, usable};
use crate::operation::follow::{forget_log, keep_log};
use crate::tsql::expression::integer;
use crate::tsql::option;
use crate::{Failure, Session, Sink};

/// Folder, within the instance's, for files without a given path.
pub(crate) const DATA_FOLDER: &str = "data";

/// Creates a page engine database.
pub(super) fn create(
    session: &mut Session,
    create: &CreateDatabase,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let name = &create.name.text;
    if session.instance.database(name)?.is_some() {
        return Err(table::database_exists(name).into());
    }
    let request = request(session, create)?;
    let result = make(session, &request);
    result.map_err(|failure| failure.then(table::create_database_failed()))?;
    sink.message(table::database_created(name));
    Ok(())
}

fn make(session: &mut Session, request: &Request) -> Result<(), Failure> {
    let files: Vec<&FileSpec> = request.data_files.iter().chain([&request.log]).collect();
    for file in &files {
        if let Some(owner) = session.instance.database_at(&file.path)? {
            return Err(table::file_used_by_database(file.path.display(), owner.name).into());
        }
        if file.path.exists() {
            return Err(table::file_cannot_be_created(file.path.display()).into());
        }
    }
    let new = session.instance.engines.prepare(request)?;
    begin(session, &request.name, new)
}

/// Registers a new database, and then gives its files their names. Whoever opens it ends what a crash in
/// between left: no files have these names and belong to nobody.
pub(crate) fn begin(session: &mut Session, name: &str, new: NewDatabase) -> Result<(), Failure> {
    register(session, name, new.database(), Origin::Restored)?;
    let published = session.instance.engines.publish(new);
    if published.is_err() {
        session.instance.forget(name)?;
    }
    published.map(|_| ())
}

/// Registers an open database in the catalog.
pub(crate) fn register(
    session: &mut Session,
    name: &str,
    database: &Database,
    origin: Origin,
) -> Result<(), Failure> {
    let files = file_records(database);
    let first = files.iter().find(|file| !file.is_log);
    let path = first.map(|file| file.path.clone()).unwrap_or_default();
    let mut record = new_record(name, &path, origin);
    if let Some(first) = first {
        record.logical_name.clone_from(&first.logical_name);
    }
    record.log_path = Some(database.log_path());
    record.family_guid = Some(database.guid());
    if origin == Origin::Restored {
        for file in &files {
            mark(&unnamed(&file.path), record.made_for)?;
        }
    }
    let catalog = session.instance.catalog_mut();
    catalog.register_with_files(&record, &files)?;
    if origin == Origin::Restored {
        session.end_damage(&record, &EndedDamage::All)?;
    }
    Ok(())
}

/// Marks a file that was made for a registered database.
fn mark(path: &Path, made_for: Guid) -> Result<(), Failure> {
    ownership::mark(path, made_for).map_err(|error| unreadable_file(path, &error).into())
}

/// Registers an existing page engine database.
pub(super) fn attach(
    session: &mut Session,
    name: &str,
    data: &[&Spanned<FileDefinition>],
    log: &Spanned<FileDefinition>,
) -> Result<(), Failure> {
    let path = |file: &FileDefinition| match &file.filename {
        Some(path) => place(session, &path.node),
        None => Err(Failure::from(table::syntax_near(name))),
    };
    let log_path = path(log)?;
    let data_paths = data
        .iter()
        .map(|file| path(file))
        .collect::<Result<_, _>>()?;
    let request = OpenDatabase {
        data_paths,
        ..OpenDatabase::new(name, log_path)
    };
    let database = session.instance.engines.open(&request)?;
    let registered = register(session, name, &database, Origin::Attached);
    if registered.is_err() {
        session.instance.engines.close(name)?;
    }
    registered
}

/// Deletes the files of a closed database, also those that a killed deletion left. Files that have replaced
/// one of them since are kept.
pub(super) fn delete_files(
    session: &mut Session,
    record: &DatabaseRecord,
) -> Result<Vec<Message>, Failure> {
    let files = session.instance.catalog().files(record.database_id)?;
    let data = files.iter().filter(|file| !file.is_log);
    let data: Vec<PathBuf> = data.map(|file| file.path.clone()).collect();
    let log = record.log_path.as_deref().unwrap_or(&record.path);
    let removal = Removal {
        log,
        data: &data,
        made_for: record.made_for,
        guid: record.family_guid,
    };
    let removed = removal.run().map_err(|error| match error {
        SourceError::InUse { .. } => Failure::from(table::drop_in_use(&record.name)),
        other => other.into(),
    })?;
    let mut messages = Vec::new();
    if removed.count > 0 || removed.left.is_empty() {
        messages.push(table::files_deleted(removed.count, &record.name));
    }
    let left = removed.left.iter();
    messages.extend(left.map(|left| table::file_left_to_others(left.path.display(), &left.why)));
    Ok(messages)
}

/// The file for a path in a script.
fn place(session: &Session, written: &str) -> Result<PathBuf, Failure> {
    let path = session.instance.drives().path(written)?;
    absolute(&path).map_err(|error| unreadable_file(&path, &error).into())
}

/// All data files share all pages: a filegroup of its own would be lost without a word.
pub(super) fn refuse_filegroups(create: &CreateDatabase) -> Result<(), Failure> {
    let is_other = |group: &Filegroup| !group.name.node.text.eq_ignore_ascii_case("PRIMARY");
    match create.filegroups.iter().any(is_other) {
        true => Err(table::filegroup_not_supported().into()),
        false => Ok(()),
    }
}

fn request(session: &mut Session, create: &CreateDatabase) -> Result<Request, Failure> {
    let name = &create.name.text;
    refuse_filegroups(create)?;
    let filegroups = create.filegroups.iter().flat_map(|group| &group.files);
    let data: Vec<_> = create.primary_files.iter().chain(filegroups).collect();
    let mut request = Request::new(name, PathBuf::new(), PathBuf::new());
    request.data_files.clear();
    for (index, file) in data.iter().enumerate() {
        let logical = match index {
            0 => name.clone(),
            _ => format!("{name}_{}", index + 1),
        };
        let mut spec = FileSpec::data(&logical, PathBuf::new());
        define(session, &mut spec, file, ".mdf")?;
        request.data_files.push(spec);
    }
    if data.is_empty() {
        let path = default_place(session, &format!("{name}.mdf"))?;
        request.data_files.push(FileSpec::data(name, path));
    }
    match create.log_files.as_slice() {
        [] => {
            let beside = request
                .data_files
                .first()
                .and_then(|file| file.path.parent());
            let folder = beside.map(std::path::Path::to_owned).unwrap_or_default();
            request.log.path = folder.join(format!("{name}_log.ldf"));
        }
        [log] => define(session, &mut request.log, log, ".ldf")?,
        _ => {
            return Err(table::several_logs_not_supported().into());
        }
    }
    Ok(request)
}

/// Applies a file definition.
fn define(
    session: &mut Session,
    spec: &mut FileSpec,
    file: &FileDefinition,
    extension: &str,
) -> Result<(), Failure> {
    if let Some(name) = &file.name {
        spec.logical_name.clone_from(&name.text);
    }
    spec.path = match &file.filename {
        Some(path) => place(session, &path.node)?,
        None => default_place(session, &format!("{}{extension}", spec.logical_name))?,
    };
    if let Some(size) = file.size {
        spec.size = bytes(size)?;
    }
    spec.growth = match file.growth {
        None => spec.growth,
        Some(FileGrowth::Size(FileSize { count: 0, .. }) | FileGrowth::Percent(0)) => Growth::Fixed,
        Some(FileGrowth::Size(size)) => Growth::Bytes(bytes(size)?),
        Some(FileGrowth::Percent(percent)) => match u32::try_from(percent) {
            Ok(percent) => Growth::Percent(percent),
            Err(_) => return Err(table::out_of_range(percent, "FILEGROWTH").into()),
        },
    };
    if let Some(FileSizeLimit::Size(size)) = file.max_size {
        spec.max_size = Some(bytes(size)?);
    }
    Ok(())
}

/// A number without a unit counts megabytes, as in SQL Server.
fn bytes(size: FileSize) -> Result<u64, Failure> {
    let shift = match size.unit {
        Some(SizeUnit::Kilobyte) => 10,
        None | Some(SizeUnit::Megabyte) => 20,
        Some(SizeUnit::Gigabyte) => 30,
        Some(SizeUnit::Terabyte) => 40,
    };
    let bytes = size.count.checked_mul(1 << shift);
    let bytes = bytes.filter(|bytes| *bytes < 1 << 62);
    bytes.ok_or_else(|| table::out_of_range(size.count, "SIZE").into())
}

/// The path of a file that has only a name.
pub(crate) fn default_place(session: &Session, name: &str) -> Result<PathBuf, Failure> {
    let is_plain =
        !name.contains(['/', '\\']) && !name.contains(char::is_control) && !name.starts_with('.');
    let Some(folder) = session.instance.folder().filter(|_| is_plain) else {
        return Err(table::create_without_filename().into());
    };
    let folder = folder.join(DATA_FOLDER);
    windlass_io::directory::create(&folder).map_err(|error| unreadable_file(&folder, &error))?;
    Ok(folder.join(name))
}

/// Opens the engine database of that name.
pub(crate) fn engine_database(session: &mut Session, name: &str) -> Result<Arc<Database>, Failure> {
    let record = usable(session, name)?;
    if record.log_path.is_none() {
        return Err(table::statement_on_sqlite_file(name).into());
    }
    session.instance.engine(&record)
}

/// `ALTER DATABASE`
pub(super) fn alter(
    session: &mut Session,
    alter: &AlterDatabase,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let name = match &alter.database {
        AlteredDatabase::Named(name) => name.text.clone(),
        AlteredDatabase::Current => session.current_database().to_owned(),
    };
    if known(session, &name).is_ok_and(|record| record.origin == Origin::SqlServer) {
        return Err(table::database_of_sql_server(&name).into());
    }
    if let Some(is_exclusive) = user_access(&alter.action) {
        let record = known(session, &name)?;
        if is_exclusive {
            sink.message(table::stays_shared(&record.name));
        }
        return Ok(());
    }
    if let Some(model) = recovery_model(&alter.action)
        && known(session, &name)?.log_path.is_none()
    {
        return match model {
            RecoveryModel::Simple => forget_log(session, &name, sink),
            RecoveryModel::Full => keep_log(session, &name, sink),
            RecoveryModel::BulkLogged => Err(table::bulk_logged_not_supported().into()),
        };
    }
    let database = engine_database(session, &name)?;
    match &alter.action {
        AlterDatabaseAction::Set(options) => options
            .iter()
            .try_for_each(|option| set(&database, option.node)),
        AlterDatabaseAction::AddFiles { files, filegroup } => {
            if filegroup
                .as_ref()
                .is_some_and(|group| !group.text.eq_ignore_ascii_case("PRIMARY"))
            {
                return Err(table::filegroup_not_supported().into());
            }
            add_files(session, &name, &database, files)
        }
        // The batch is refused before it runs.
        AlterDatabaseAction::AddLogFiles { .. } | AlterDatabaseAction::Other { .. } => Ok(()),
    }
}

/// The recovery model, if the statement sets nothing else.
fn recovery_model(action: &AlterDatabaseAction) -> Option<RecoveryModel> {
    let AlterDatabaseAction::Set(options) = action else {
        return None;
    };
    let mut models = options.iter().map(|option| match option.node {
        DatabaseOption::Recovery(model) => Some(model),
        DatabaseOption::TargetRecoveryTime { .. } => None,
    });
    let last = models.next_back().flatten()?;
    models.all(|model| model.is_some()).then_some(last)
}

/// Whether `SET SINGLE_USER`, `RESTRICTED_USER` or `MULTI_USER` asks to keep others out; `None` for
/// another action.
fn user_access(action: &AlterDatabaseAction) -> Option<bool> {
    let AlterDatabaseAction::Other { text } = action else {
        return None;
    };
    let upper = text.to_ascii_uppercase();
    let words: Vec<&str> = upper.split_whitespace().collect();
    let (access, rest) = match words.as_slice() {
        // Nothing waits for others.
        ["SET", "RECOVERY", "SIMPLE", rest @ ..] => ("MULTI_USER", rest),
        ["SET", access, rest @ ..] => (*access, rest),
        _ => return None,
    };
    let is_known = match rest {
        [] | ["WITH", "ROLLBACK", "IMMEDIATE"] | ["WITH", "NO_WAIT"] => true,
        ["WITH", "ROLLBACK", "AFTER", count] | ["WITH", "ROLLBACK", "AFTER", count, "SECONDS"] => {
            count.parse::<u32>().is_ok()
        }
        _ => false,
    };
    match access {
        "SINGLE_USER" | "RESTRICTED_USER" if is_known => Some(true),
        "MULTI_USER" if is_known => Some(false),
        _ => None,
    }
}

pub(super) fn is_user_access(action: &AlterDatabaseAction) -> bool {
    user_access(action).is_some()
}

fn set(database: &Database, option: DatabaseOption) -> Result<(), Failure> {
    match option {
        DatabaseOption::Recovery(model) => {
            let model = match model {
                RecoveryModel::Simple => windlass_engine::RecoveryModel::Simple,
                RecoveryModel::Full => windlass_engine::RecoveryModel::Full,
                RecoveryModel::BulkLogged => {
                    return Err(table::bulk_logged_not_supported().into());
                }
            };
            Ok(database.set_recovery_model(model)?)
        }
        DatabaseOption::TargetRecoveryTime { count, unit } => {
            let seconds = match unit {
                TimeUnit::Seconds => u64::from(count),
                TimeUnit::Minutes => u64::from(count) * 60,
            };
            let target = (seconds > 0).then(|| Duration::from_secs(seconds));
            Ok(database.set_target_recovery_time(target)?)
        }
    }
}

fn add_files(
    session: &mut Session,
    name: &str,
    database: &Arc<Database>,
    files: &[Spanned<FileDefinition>],
) -> Result<(), Failure> {
    let record = known(session, name)?;
    let mut taken: HashSet<String> = database
        .files()
        .into_iter()
        .map(|file| file.spec.logical_name.to_lowercase())
        .collect();
    for file in files {
        let logical = format!("{name}_{}", taken.len());
        let mut spec = FileSpec::data(&logical, PathBuf::new());
        define(session, &mut spec, file, ".ndf")?;
        if !taken.insert(spec.logical_name.to_lowercase()) {
            return Err(table::engine_refused(format!(
                "database '{name}' has a file '{}' already",
                spec.logical_name
            ))
            .into());
        }
        if let Some(owner) = session.instance.database_at(&spec.path)? {
            return Err(table::file_used_by_database(spec.path.display(), owner.name).into());
        }
        remove_unused(&record, database, &spec.path)?;
        let dress = |path: &Path| ownership::mark(path, record.made_for);
        database.add_dressed_file(&spec, &dress)?;
    }
    Ok(session.instance.note_files(&record, database)?)
}

/// Removes a file that a killed process was about to add: nothing of the database is in it.
fn remove_unused(record: &DatabaseRecord, database: &Database, path: &Path) -> Result<(), Failure> {
    let is_part = database.files().iter().any(|file| file.spec.path == path);
    let fail = |error| Failure::from(unreadable_file(path, &error));
    if !is_part && ownership::is_unused(path, record.made_for).map_err(fail)? {
        windlass_io::own::remove(path).map_err(fail)?;
    }
    Ok(())
}

/// `CHECKPOINT [seconds]`, of the current database.
pub(super) fn checkpoint(
    session: &mut Session,
    wanted: Option<&Spanned<Value>>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let wanted = match wanted {
        Some(value) => match integer(&option::value_of(&value.node, session)?)? {
            seconds @ 1.. => Some(Duration::from_secs(seconds.unsigned_abs())),
            other => return Err(table::out_of_range(other, "CHECKPOINT").into()),
        },
        None => None,
    };
    let name = session.current_database().to_owned();
    if crate::instance::is_system_database(&name) {
        return Ok(());
    }
    let record = usable(session, &name)?;
    if record.log_path.is_none() {
        return Err(table::checkpoint_of_sqlite_file().into());
    }
    let database = session.instance.engine(&record)?;
    let begun = Instant::now();
    database.checkpoint()?;
    // It runs at full speed; all it can report is that it took longer than requested.
    if wanted.is_some_and(|wanted| begun.elapsed() > wanted) {
        sink.message(table::checkpoint_slow(begun.elapsed().as_secs_f32()));
    }
    Ok(())
}
