//! The end of a restore in reverse: a closed database becomes files that wait for further restores, at the end of its
//! log, as after BACKUP LOG WITH STANDBY.
//!
//! Order: the state file says that the data files are being renamed; they get their temporary names; the state file says
//! that they wait. The log stays where it is, unchanged: until the last step a crash leaves a database that
//! [`super::complete`] gives its names back.
//!
//! Invariants:
//! - Nothing is renamed unless the data files have all of the log, and the log ends where the backup does.
//! - The log and the data files are locked from that check on until the files wait.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::{FileId, Guid, Lsn};
use windlass_engine::storage::{RealFileSystem, StorageFile};
use windlass_engine::{LogBackup, Reached};
use windlass_io::{directory, own};

use super::pending::{PendingRestore, Progress, remove_all, remove_state, remove_unheld};
use super::restore::claim;
use super::{engine_error, io_error, staged};
use crate::{Error, Protection};

/// The log backup after which a database waits.
#[derive(Debug, Clone)]
pub struct SavedTail {
    pub set_guid: Guid,
    pub checkpoint_lsn: Lsn,
    /// The end of the log.
    pub last_lsn: Lsn,
    /// The registered database that the files are made for.
    pub made_for: Option<Guid>,
}

/// Makes the closed database whose log is at `log` wait for further restores. `tail` is the backup of all of its log.
///
/// # Errors
/// The data files do not have all of the log, or the database has changed since; those of the operating system. It is as it was then.
pub fn wait_at_tail(log: &Path, tail: &SavedTail) -> Result<(), Error> {
    let held = claim(log)?;
    let made = begin(log, tail).and_then(|(state, _locked)| {
        state.store(Progress::Leaving)?;
        let renamed = take_temporary_names(&state).and_then(|()| state.store_ready());
        renamed.inspect_err(|_| drop(give_back(&state)))
    });
    remove_all(&[held.path().to_owned()])?;
    made
}

/// The state that the files will be in, and what keeps other programs away from them.
fn begin(log: &Path, tail: &SavedTail) -> Result<(PendingRestore, Locked), Error> {
    let files = RealFileSystem;
    let locked = LogBackup::of_file(&files, log).map_err(engine_error)?;
    let data = locked.hold_data(&files).map_err(engine_error)?;
    let description = locked.description().clone();
    if description.last_lsn() != tail.last_lsn {
        return Err(Error::InUse {
            path: log.to_owned(),
            process_id: None,
        });
    }
    let reached = Reached {
        checksum: description.ending(),
        unix_ms: description.ended_ms(),
        applied: 0,
    };
    let paths: Vec<PathBuf> = (description.data_files().iter())
        .map(|file| file.path.clone())
        .collect();
    let (mut numbers, mut modes) = (Vec::new(), BTreeMap::new());
    for (index, path) in paths.iter().enumerate() {
        // A file that a later restore would not take as its own is refused now.
        let file = own::open(path).and_then(|file| file.metadata());
        let file = file.map_err(|error| io_error("open", path, error))?;
        numbers.push(file.ino());
        modes.insert(FileId::of_data(index).0, (file.mode() & 0o7777) as u16);
    }
    // A later restore writes a new log in the place of this one.
    let replaced_log =
        std::fs::symlink_metadata(log).map_err(|error| io_error("examine", log, error))?;
    let free = paths.iter().map(|_| None);
    let state = PendingRestore {
        set_guid: tail.set_guid,
        checkpoint_lsn: tail.checkpoint_lsn,
        replaced: free.chain([Some(replaced_log.ino())]).collect(),
        data: paths,
        log: log.to_owned(),
        log_bytes: description.log_file().size,
        protection: Protection::default(),
        modes,
        as_is: true,
        made_for: tail.made_for,
        description,
        staged: numbers,
        reached,
        standby: None,
        progress: Progress::Leaving,
    };
    let locked = Locked {
        _log: locked,
        _data: data,
    };
    Ok((state, locked))
}

/// What keeps other programs away.
struct Locked {
    _log: LogBackup,
    _data: Vec<Arc<dyn StorageFile>>,
}

fn take_temporary_names(state: &PendingRestore) -> Result<(), Error> {
    for path in &state.data {
        let to = staged(path);
        remove_unheld(std::slice::from_ref(&to))?;
        directory::take_name(path, &to).map_err(|error| io_error("rename", path, error))?;
    }
    Ok(())
}

/// Gives the data files their names back, those that do not have them.
pub(super) fn give_back(state: &PendingRestore) -> Result<(), Error> {
    for (path, number) in state.data.iter().zip(&state.staged) {
        let from = staged(path);
        let is_ours = match from.symlink_metadata() {
            Ok(found) => found.ino() == *number,
            Err(_) => false,
        };
        if is_ours {
            directory::take_name(&from, path).map_err(|error| io_error("rename", &from, error))?;
        }
    }
    remove_state(&state.log)
}

#[cfg(test)]
mod tests {
    use windlass_base::page::{PAGE_BYTES, PageNumber};
    use windlass_engine::{
        BackupMode, CreateDatabase, FileSpec, Instance, InstanceOptions, OpenDatabase,
        RecoveryModel,
    };

    use super::super::{complete, pending};
    use super::*;

    /// A closed database of two files with a chain of log backups, and the backup of its tail.
    fn closed(folder: &Path) -> (PathBuf, SavedTail) {
        let options = InstanceOptions::default();
        let instance = Instance::new(options, Arc::new(RealFileSystem)).unwrap();
        let log = folder.join("a.ldf");
        let mut request = CreateDatabase::new("a", folder.join("a.mdf"), log.clone());
        let second = FileSpec::data("b", folder.join("b.ndf"));
        request.data_files.push(second);
        let database = instance.create_database(&request).unwrap();
        database.set_recovery_model(RecoveryModel::Full).unwrap();
        let mut backup = database.begin_backup(BackupMode::Full).unwrap();
        backup.finish_data().unwrap();
        backup.complete(Guid::random()).unwrap();
        let mut writer = database.begin_write(&database.begin_read()).unwrap();
        for page in 0..100 {
            let number = PageNumber::from_index(page).unwrap();
            writer
                .write_page(number, &[page as u8; PAGE_BYTES])
                .unwrap();
        }
        writer.commit().unwrap();
        database.close().unwrap();
        drop((database, instance));
        let backup = LogBackup::of_file(&RealFileSystem, &log).unwrap();
        let tail = SavedTail {
            set_guid: Guid::random(),
            checkpoint_lsn: backup.description().checkpoint_lsn(),
            last_lsn: backup.description().last_lsn(),
            made_for: None,
        };
        (log, tail)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn opens(log: &Path) {
        let options = InstanceOptions::default();
        let instance = Instance::new(options, Arc::new(RealFileSystem)).unwrap();
        let database = instance
            .open_database(&OpenDatabase::new("a", log))
            .unwrap();
        let mut content = [0; PAGE_BYTES];
        let last = PageNumber::from_index(99).unwrap();
        database.begin_read().read_page(last, &mut content).unwrap();
        assert_eq!(content, [99; PAGE_BYTES]);
        database.close().unwrap();
    }

    #[test]
    fn a_database_that_was_half_made_to_wait_gets_its_names_back() {
        for renamed in 0..=2 {
            let folder = tempfile::tempdir().unwrap();
            let (log, tail) = closed(folder.path());
            let before = names(folder.path());
            let (mut state, locked) = begin(&log, &tail).unwrap();
            state.store(Progress::Leaving).unwrap();
            // A crash after so many files.
            let data = state.data.clone();
            state.data.truncate(renamed);
            take_temporary_names(&state).unwrap();
            state.data = data;
            drop(locked);
            assert!(complete(&log).unwrap());
            assert_eq!(names(folder.path()), before);
            assert!(!complete(&log).unwrap());
            opens(&log);
        }
    }

    #[test]
    fn a_failure_gives_the_names_back_and_a_changed_database_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (log, tail) = closed(folder.path());
        let before = names(folder.path());
        // The second file cannot have its temporary name: a folder has it.
        let in_the_way = staged(&folder.path().join("b.ndf"));
        std::fs::create_dir(&in_the_way).unwrap();
        wait_at_tail(&log, &tail).unwrap_err();
        std::fs::remove_dir(&in_the_way).unwrap();
        assert_eq!(names(folder.path()), before);
        opens(&log);
        let changed = wait_at_tail(&log, &tail).unwrap_err();
        assert!(matches!(changed, Error::InUse { .. }), "{changed}");
        assert_eq!(names(folder.path()), before);
        assert!(pending(&log).unwrap().is_none());
    }
}
