//! Determines where each file of a set goes.

use std::path::{Path, PathBuf};

use windlass_base::message::table;
use windlass_catalog::FileRecord;
use windlass_media::{DatabaseFile, SetConfiguration, SourceKind};

use super::placing::{Placing, Wish};
use super::target::first;
use super::{RestoreOperation, RestoreOptions};
use crate::message_of::{quoted_os_error, unreadable_file};
use crate::names::absolute;
use crate::operation::media::OpenedSet;
use crate::operation::sql_server;
use crate::{Failure, Session, near};

/// A file of the set with its target path.
pub(super) struct Placed {
    pub(super) record: FileRecord,
    /// Whether MOVE or the command names the path.
    is_named: bool,
}

impl Session {
    /// The MOVE options that say in T-SQL where a restore puts the files by its target. None of backups of SQL Server,
    /// whose dry run says it.
    ///
    /// # Errors
    /// If the set cannot be read.
    pub fn moves_of_target(
        &mut self,
        name: &str,
        options: &RestoreOptions,
    ) -> Result<Vec<(String, String)>, Failure> {
        let Some(target) = options.target.as_deref() else {
            return Ok(Vec::new());
        };
        let target = absolute(target).map_err(|error| unreadable_file(target, &error))?;
        let devices = options.media.addresses(self, Some(name))?;
        if devices.is_empty() || sql_server::is_backup(&devices) {
            return Ok(Vec::new());
        }
        let opened = OpenedSet::open(self, devices, &options.media)?;
        let files = opened.set.files.iter();
        let placed = files.filter(|file| is_placed(&opened.set, file));
        let moves = placed.map(|file| {
            let path = beside(&target, file).display().to_string();
            (file.logical_name.clone(), path)
        });
        Ok(moves.collect())
    }
}

/// Whether a file of a set has a place: the log of a SQLite file is applied, and stays nowhere; those of SQL Server have
/// places of their own.
fn is_placed(set: &SetConfiguration, file: &DatabaseFile) -> bool {
    match set.source_kind {
        SourceKind::Engine => true,
        SourceKind::SqlServer | SourceKind::SqlServerFiles => false,
        _ => !file.is_log,
    }
}

impl RestoreOperation<'_> {
    /// The files of the database to replace, or of the one that waits for another restore.
    pub(super) fn own_files(&self) -> Result<Vec<FileRecord>, Failure> {
        let Some(known) = &self.known else {
            return Ok(Vec::new());
        };
        let catalog = self.session.instance.catalog();
        let files = catalog.files(known.database_id)?;
        if !files.is_empty() {
            return Ok(files);
        }
        // The catalog has at least these of every database.
        let log = known.log_path.iter().map(|path| (2, true, path));
        let all = std::iter::once((1, false, &known.path)).chain(log);
        let record = |(file_id, is_log, path): (u32, bool, &PathBuf)| FileRecord {
            file_id,
            is_log,
            logical_name: known.logical_name.clone(),
            path: path.clone(),
        };
        Ok(all.map(record).collect())
    }

    /// Determines the target of each file.
    pub(super) fn places(&self, own: &[FileRecord]) -> Result<Vec<Placed>, Failure> {
        let mut placed: Vec<Placed> = Vec::new();
        let set = &self.reader.opened.set;
        for file in set.files.iter().filter(|file| is_placed(set, file)) {
            let (path, is_named) = self.place(file, own)?;
            if let Some(first) = placed.iter().find(|other| other.record.path == path) {
                let claimed = table::file_claimed_twice(
                    path.display(),
                    &file.logical_name,
                    file.file_id,
                    &first.record.logical_name,
                    first.record.file_id,
                );
                return Err(claimed.into());
            }
            let record = FileRecord {
                file_id: u32::from(file.file_id),
                is_log: file.is_log,
                logical_name: file.logical_name.clone(),
                path,
            };
            placed.push(Placed { record, is_named });
        }
        Ok(placed)
    }

    /// The target of a file: from the command, from MOVE, from the database to replace, or else its
    /// original path. Also returns whether one of the first two named it.
    fn place(&self, file: &DatabaseFile, own: &[FileRecord]) -> Result<(PathBuf, bool), Failure> {
        let moved = self.reader.moved(self.session, &file.logical_name)?;
        let known = own
            .iter()
            .find(|known| known.file_id == u32::from(file.file_id));
        let (path, is_named) = match (&self.reader.options.target, moved, known) {
            (Some(target), ..) => (beside(target, file), true),
            (None, Some(moved), _) => (moved, true),
            (None, None, Some(known)) => (known.path.clone(), false),
            (None, None, None) => match first(own) {
                Some(first) => (beside_own(&first.path, file), false),
                None => (self.original_place(file)?, false),
            },
        };
        Ok((placed(&path)?, is_named))
    }

    /// The original path of a file: the last resort, because the path is the backup's claim.
    fn original_place(&self, file: &DatabaseFile) -> Result<PathBuf, Failure> {
        if self.reader.options.needs_target {
            let reason = "only the backup names it, which anyone can have made. Give --to FILE, or \
                          --move NAME=FILE for each file.";
            return Err(table::path_means_no_file(&file.physical_name, reason).into());
        }
        Ok(self.session.instance.drives().path(&file.physical_name)?)
    }

    /// Checks whether a file may go to its target.
    pub(super) fn check_place(
        &self,
        file: &Placed,
        own: &[PathBuf],
        together: &[PathBuf],
    ) -> Result<(), Failure> {
        let placing = Placing {
            logical: &file.record.logical_name,
            path: &file.record.path,
            is_named: file.is_named,
            own,
            together,
        };
        let wish = Wish {
            name: self.reader.name,
            devices: &self.reader.opened.devices,
            replace: self.reader.options.replaces,
            replaces_backups: false,
        };
        placing.check(self.session, &wish)
    }
}

/// The absolute path of a file to restore; its folder must exist.
pub(in crate::operation) fn placed(path: &Path) -> Result<PathBuf, Failure> {
    windlass_io::output::refuse_link_of_others(path)
        .map_err(|error| table::path_means_no_file(path.display(), error))?;
    let placed = absolute(path).map_err(|error| unreadable_file(path, &error))?;
    let folder = windlass_io::directory::parent(&placed);
    match std::fs::metadata(&folder) {
        Err(error) => {
            let lookup = table::directory_lookup_failed(placed.display(), quoted_os_error(&error));
            Err(lookup.with_advice(near::advice(&placed, &error)).into())
        }
        Ok(_) => Ok(placed),
    }
}

/// For a command with one target: the first data file is the target, the others go next to it.
fn beside(target: &Path, file: &DatabaseFile) -> PathBuf {
    if file.is_log {
        return windlass_vfs::log_path(target);
    }
    let mut name = target.as_os_str().to_owned();
    if file.file_id != 1 {
        name.push(format!(".{}", file.file_id));
    }
    PathBuf::from(name)
}

/// A file that the database does not have yet goes next to its first one, under its original name.
fn beside_own(first: &Path, file: &DatabaseFile) -> PathBuf {
    let name = file.physical_name.rsplit(['/', '\\']).next();
    let name = name.filter(|name| !name.is_empty() && !matches!(*name, "." | ".."));
    first.with_file_name(name.unwrap_or(&file.logical_name))
}
