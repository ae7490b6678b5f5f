//! The end of a restore of a page engine database: its files get their final names.
//!
//! Order: the log is applied, and data files are synced; the old log is removed (from here on the old
//! database cannot be opened); the data files are renamed, the new log last. A crash in between leaves
//! data files without a log, which no engine opens. The state file, written before the old log is
//! removed, records that all files are complete: [`complete`] then renames the rest.
//!
//! Only the files that were there when the restore began are replaced: see [`succession`]. A file that
//! another program has put there since stays, and the restore ends when it is moved away.

use std::path::{Path, PathBuf};

use windlass_base::{FileId, Guid};
use windlass_engine::{DifferentialBase, FileSpec, Restore, RestoredFiles};
use windlass_io::{Access, DirectFile, directory, output, own, succession};

use super::pending::{PendingRestore, Progress, forget_files, pending, remove_all, remove_state};
use super::restore::claim;
use super::tail::give_back;
use super::{FIRST_BYTES, LOG_FILE_ID, engine_error, io_error, staged};
use crate::{Error, ownership};

/// Creates the log; then all files are complete, and have their attributes. Returns them, still held.
pub(super) fn make_whole(
    mut restore: Restore,
    state: &PendingRestore,
    name: &str,
) -> Result<RestoredFiles, Error> {
    check_content(&restore, state)?;
    let staged_log = staged(&state.log);
    restore.rename_to(&state.data, state.log.clone());
    let mut log = FileSpec {
        path: staged_log.clone(),
        ..state.description.log_file().clone()
    };
    log.size = log.size.max(state.log_bytes);
    // After another backup, the extents that differ from the base are no longer known.
    let is_full = !state.description.is_differential() && !state.description.is_log();
    let base = is_full.then_some(DifferentialBase {
        set: state.set_guid,
        first_lsn: state.checkpoint_lsn,
    });
    let restored = restore.finish(name, &log, base).map_err(engine_error)?;
    let mut moves: Vec<(PathBuf, PathBuf)> = state
        .staged_data()
        .into_iter()
        .zip(state.data.iter().cloned())
        .collect();
    moves.push((staged_log, state.log.clone()));
    for (index, (from, to)) in moves.iter().enumerate() {
        let is_log = index + 1 == moves.len();
        let file_id = match is_log {
            true => LOG_FILE_ID,
            false => FileId::of_data(index).0,
        };
        set_attributes(from, to, state.modes.get(&file_id).copied(), state.made_for)?;
    }
    Ok(restored)
}

/// Fails if one of the final names is another program's by now.
pub(super) fn check_names(state: &PendingRestore) -> Result<(), Error> {
    for (to, replaced) in state.replacing() {
        succession::check(to, replaced).map_err(|error| io_error("replace", to, error))?;
    }
    Ok(())
}

/// Removes the old log, and renames all files to their final names.
pub(super) fn place(state: &PendingRestore, restored: &RestoredFiles) -> Result<(), Error> {
    let replaced = state.replaced.last().copied().flatten();
    succession::remove(&state.log, replaced)
        .map_err(|error| io_error("replace", &state.log, error))?;
    sync_folder(&state.log)?;
    give_names(state, Some(restored))
}

/// Renames all files that still have temporary names, the log last. Those that a killed process left are
/// held first, all of them.
fn give_names(state: &PendingRestore, restored: Option<&RestoredFiles>) -> Result<(), Error> {
    let from: Vec<PathBuf> = state.targets().map(|to| staged(to)).collect();
    let mut left = Vec::new();
    for from in from.iter().filter(|_| restored.is_none()) {
        left.push(own::hold_existing(from).map_err(|error| io_error("open", from, error))?);
    }
    let made = restored
        .iter()
        .flat_map(|made| made.data.iter().chain([&made.log]));
    let made: Vec<_> = made.map(|file| file.direct()).collect();
    for (index, (from, (to, replaced))) in from.iter().zip(state.replacing()).enumerate() {
        let left = left.get(index).and_then(Option::as_ref);
        let made = made.get(index).and_then(Option::as_ref);
        let held = left.or(made.map(|made| made.as_file()));
        succession::take_place_again(held, from, to, replaced)
            .map_err(|error| io_error("replace", to, error))?;
    }
    remove_state(&state.log)
}

/// Completes a restore that was killed while its files were being renamed, or gives those of a database back that was
/// being made to wait. Returns whether there is a whole database now.
///
/// # Errors
/// [`Error::RestoreRunning`], and if a file cannot be renamed.
pub fn complete(log: &Path) -> Result<bool, Error> {
    let Some(found) = half_renamed(log)? else {
        return Ok(false);
    };
    let held = claim(&found.log)?;
    // Somebody else may have completed it before this claim, and even begun another restore.
    let completed = half_renamed(log).and_then(|state| match state {
        None => Ok(pending(log)?.is_none()),
        Some(state) => complete_claimed(&state),
    });
    remove_all(&[held.path().to_owned()])?;
    completed
}

/// The database that was left while its files were given other names.
fn half_renamed(log: &Path) -> Result<Option<PendingRestore>, Error> {
    match pending(log) {
        // Its files are those of the place from where it was copied.
        Err(Error::StateOfOtherPlace { .. }) => Ok(None),
        found => {
            let is_half = |state: &PendingRestore| {
                matches!(state.progress, Progress::Placing | Progress::Leaving)
            };
            Ok(found?.filter(is_half))
        }
    }
}

fn complete_claimed(state: &PendingRestore) -> Result<bool, Error> {
    if state.progress == Progress::Leaving {
        return give_back(state).map(|()| true);
    }
    let staged_log = own::is_there(&staged(&state.log));
    match (own::is_there(&state.log), staged_log) {
        // The old database is whole: it was not touched yet.
        (true, true) => forget_files(&state.log).map(|()| false),
        (true, false) => remove_state(&state.log).map(|()| true),
        (false, _) => give_names(state, None).map(|()| true),
    }
}

/// Gives a finished file the permissions and owner of the file that it replaces, or the permissions of
/// the original file.
fn set_attributes(
    from: &Path,
    to: &Path,
    mode: Option<u16>,
    made_for: Option<Guid>,
) -> Result<(), Error> {
    let file = DirectFile::open(from, Access::Own).map_err(|e| io_error("open", from, e))?;
    let dressed = match std::fs::symlink_metadata(to) {
        Ok(replaced) if replaced.is_file() => output::keep(file.as_file(), &replaced),
        _ => {
            let mode = output::mode_for_new(mode);
            let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
            file.as_file().set_permissions(permissions)
        }
    };
    dressed
        .and_then(|()| made_for.map_or(Ok(()), |database| ownership::mark(from, database)))
        .and_then(|()| file.sync())
        .map_err(|error| io_error("set the attributes of", from, error))
}

/// The content of a set must be a database, because its target path can come from the media too.
fn check_content(restore: &Restore, state: &PendingRestore) -> Result<(), Error> {
    if state.as_is {
        return Ok(());
    }
    let path = state.data.first().unwrap_or(&state.log);
    let first = restore.first_page().map_err(engine_error)?;
    match first {
        Some(page) if !page.starts_with(FIRST_BYTES) => Err(Error::NotADatabase {
            path: path.clone(),
            defect: "its first page does not begin with a SQLite header".to_owned(),
        }),
        _ => Ok(()),
    }
}

pub(super) fn sync_folder(path: &Path) -> Result<(), Error> {
    let folder = directory::parent(path);
    directory::sync(&folder).map_err(|error| io_error("sync", &folder, error))
}
