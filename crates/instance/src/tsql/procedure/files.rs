//! `xp_fileexist`, `xp_dirtree`, `xp_create_subdir`, `xp_delete_file`, `xp_fixeddrives`: files of backups.
//!
//! They see and change only what is in the folders of mapped drives and in those that restores are confined to.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::DateTime;
use windlass_base::message::table;
use windlass_device::DeviceAddress;
use windlass_media::{FIRST_BYTES, begins_medium};
use windlass_tsql::ast::{Argument, ArgumentDirection, ArgumentValue, Value as Written};
use windlass_tsql::span::Spanned;

use super::{Arguments, argument_value};
use crate::confinement::resolved;
use crate::message_of::unreadable_file;
use crate::tsql::expression::{integer, text_of};
use crate::{Column, ColumnType, DataType, Failure, ResultSet, Session, Sink, Value, convert};

/// How many entries `xp_dirtree` lists.
const ENTRIES_MAX: usize = 100_000;

/// How deep it goes.
const DEPTH_MAX: i64 = 64;

/// `xp_fileexist 'path' [, @exists OUTPUT]`
pub(super) fn file_exists(
    session: &mut Session,
    written: &[Spanned<Argument>],
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let procedure = "xp_fileexist";
    let (path, output) = match written {
        [path] => (path, None),
        [path, output] => (path, Some(output)),
        [] => return Err(table::parameter_missing(procedure, "@filename").into()),
        _ => return Err(table::too_many_arguments(procedure).into()),
    };
    let path = text_of(&argument_value(session, &path.node.value)?)?;
    let path = confined(session, procedure, &path)?;
    let metadata = std::fs::metadata(&path).ok();
    let is = |kind: fn(&Metadata) -> bool| Value::Bit(metadata.as_ref().is_some_and(kind));
    if let Some(output) = output {
        let ArgumentValue::Value(Written::Variable(variable)) = &output.node.value else {
            return Err(table::invalid_parameter("@exists").into());
        };
        if output.node.direction == ArgumentDirection::Output {
            let exists = is(Metadata::is_file);
            return session
                .variables
                .set(&variable.name, &exists, DataType::Bit);
        }
    }
    let columns = [
        "File Exists",
        "File is a Directory",
        "Parent Directory Exists",
    ];
    let parent = path.parent().is_some_and(Path::is_dir);
    let row = vec![
        is(Metadata::is_file),
        is(Metadata::is_dir),
        Value::Bit(parent),
    ];
    ResultSet {
        columns: columns
            .map(|name| Column::new(name, ColumnType::Bit))
            .to_vec(),
        rows: vec![row],
    }
    .send(sink);
    Ok(())
}

/// `xp_dirtree 'folder' [, depth [, 1 for files too]]`
pub(super) fn tree(
    session: &mut Session,
    arguments: &Arguments<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let folder = arguments.required("@directory")?;
    let folder = confined(session, arguments.procedure, &folder)?;
    let number = |name| arguments.value(name).map_or(Ok(0), integer);
    let depth = match number("@depth")? {
        0 => DEPTH_MAX,
        depth => depth.clamp(1, DEPTH_MAX),
    };
    let shows_files = number("@file")? != 0;
    let mut rows = Vec::new();
    // A folder that is not there has no entries, as on SQL Server.
    list(session, &folder, 1, depth, shows_files, &mut rows)?;
    let mut columns = vec![
        Column::new("subdirectory", ColumnType::NVarChar(512)),
        Column::new("depth", ColumnType::Int),
    ];
    if shows_files {
        columns.push(Column::new("file", ColumnType::Int));
    }
    ResultSet { columns, rows }.send(sink);
    Ok(())
}

fn list(
    session: &Session,
    folder: &Path,
    depth: i64,
    depth_max: i64,
    shows_files: bool,
    rows: &mut Vec<Vec<Value>>,
) -> Result<(), Failure> {
    for (path, is_folder) in entries(folder)? {
        if session.is_cancelled() {
            return Ok(());
        }
        if !is_folder && !shows_files {
            continue;
        }
        if rows.len() >= ENTRIES_MAX {
            let what = format!("xp_dirtree of more than {ENTRIES_MAX} entries");
            let hint = "Name a folder further down, or a depth.";
            return Err(table::statement_not_supported(what, hint).into());
        }
        let name = path.file_name().unwrap_or_default();
        let mut row = vec![
            Value::Text(name.to_string_lossy().into_owned()),
            Value::Integer(depth),
        ];
        if shows_files {
            row.push(Value::Integer(i64::from(!is_folder)));
        }
        rows.push(row);
        if is_folder && depth < depth_max {
            list(session, &path, depth + 1, depth_max, shows_files, rows)?;
        }
    }
    Ok(())
}

/// The files and folders in a folder, by name; links are left out. One that is not there has none; one that cannot be
/// read is no empty one.
fn entries(folder: &Path) -> Result<Vec<(PathBuf, bool)>, Failure> {
    let unread = |error: std::io::Error| unreadable_file(folder, &error);
    let read = match std::fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        read => read.map_err(unread)?,
    };
    let mut entries = Vec::new();
    for entry in read {
        let entry = entry.map_err(unread)?;
        let kind = entry.file_type().map_err(unread)?;
        if kind.is_dir() || kind.is_file() {
            entries.push((entry.path(), kind.is_dir()));
        }
    }
    entries.sort();
    Ok(entries)
}

/// `xp_create_subdir 'folder'`
pub(super) fn create_folder(
    session: &mut Session,
    arguments: &Arguments<'_>,
) -> Result<(), Failure> {
    let folder = arguments.required("@directory")?;
    let folder = confined(session, arguments.procedure, &folder)?;
    let created = std::fs::create_dir_all(&folder);
    created.map_err(|error| unreadable_file(&folder, &error).into())
}

/// `xp_delete_file 0, 'folder', 'bak', 'date' [, 1 for the folders in it too]`: deletes backups that were
/// changed last before the date.
pub(super) fn delete(session: &mut Session, arguments: &Arguments<'_>) -> Result<(), Failure> {
    let kind = arguments.value("@filetype").map_or(Ok(0), integer)?;
    if kind != 0 {
        let hint = "Write 0: it deletes backups.";
        return Err(table::statement_not_supported("xp_delete_file of reports", hint).into());
    }
    let folder = arguments.required("@folderpath")?;
    let folder = confined(session, arguments.procedure, &folder)?;
    let extension = arguments.required("@extension")?;
    let Some(written) = arguments.value("@cutoff") else {
        return Err(table::parameter_missing(arguments.procedure, "@cutoff").into());
    };
    let Value::DateTime(before) = convert(written, DataType::DateTime, None)? else {
        return Err(table::invalid_parameter("@cutoff").into());
    };
    let with_folders = arguments.value("@subfolder").map_or(Ok(0), integer)? != 0;
    if folder.is_file() {
        return delete_file(&folder, None, before);
    }
    let mut folders = vec![folder.clone()];
    if with_folders {
        let inner = entries(&folder)?.into_iter();
        folders.extend(
            inner
                .filter(|(_, is_folder)| *is_folder)
                .map(|(path, _)| path),
        );
    }
    let extension = extension.trim_start_matches('.');
    for folder in folders {
        for (path, is_folder) in entries(&folder)? {
            if session.is_cancelled() {
                return Ok(());
            }
            if !is_folder {
                delete_file(&path, Some(extension), before)?;
            }
        }
    }
    Ok(())
}

fn delete_file(path: &Path, extension: Option<&str>, before: DateTime) -> Result<(), Failure> {
    let has_extension = extension.is_none_or(|wanted| {
        let own = path.extension().unwrap_or_default().to_string_lossy();
        wanted == "*" || own.eq_ignore_ascii_case(wanted)
    });
    if !has_extension || !is_backup(path) || !is_older(path, before) {
        return Ok(());
    }
    std::fs::remove_file(path).map_err(|error| unreadable_file(path, &error).into())
}

/// Whether there is a backup, of Windlass or of SQL Server.
fn is_backup(path: &Path) -> bool {
    begins_medium(&DeviceAddress::disk(path).begin(FIRST_BYTES))
}

fn is_older(path: &Path, before: DateTime) -> bool {
    let changed = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    let changed = changed.ok().and_then(|time| Timestamp::try_from(time).ok());
    let zone = windlass_base::local_now().time_zone().clone();
    changed.is_some_and(|time| time.to_zoned(zone).datetime() < before)
}

/// `xp_fixeddrives`: the mapped drives and what is free there.
pub(super) fn drives(session: &Session, sink: &mut dyn Sink) {
    let drives = session.instance.drives().list().iter();
    let rows = drives.map(|drive| {
        let free = rustix::fs::statvfs(&drive.folder).ok();
        let free = free.map(|space| space.f_bavail.saturating_mul(space.f_frsize) >> 20);
        vec![
            Value::text(drive.letter),
            free.map_or(Value::Null, Value::amount),
        ]
    });
    ResultSet {
        columns: vec![
            Column::new("drive", ColumnType::NChar(1)),
            Column::new("MB free", ColumnType::BigInt),
        ],
        rows: rows.collect(),
    }
    .send(sink);
}

/// A path in one of the folders that these procedures may see, or such a folder.
fn confined(session: &Session, procedure: &str, written: &str) -> Result<PathBuf, Failure> {
    let path = session.instance.drives().path(written)?;
    let drives = session.instance.drives().list().iter();
    let mut folders: Vec<PathBuf> = drives.map(|drive| drive.folder.clone()).collect();
    folders.extend(session.instance.restore_folders()?.into_iter().flatten());
    let found = resolved(&path).filter(|path| {
        let mut folders = folders
            .iter()
            .filter_map(|folder| folder.canonicalize().ok());
        folders.any(|folder| path.starts_with(folder))
    });
    found.ok_or_else(|| {
        let what = format!("{procedure} of '{written}', outside of the mapped drives,");
        let hint = "Map its folder to a drive: EXEC sp_windlass_drive 'd', '/folder'.";
        table::statement_not_supported(what, hint).into()
    })
}
