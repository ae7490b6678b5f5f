//! Where restored files may go, for both kinds of databases.
//!
//! One rule: a restore goes over the files of the database that it replaces, and over no other, whoever it
//! belongs to, without a MOVE (or a command) that names it. The paths in a backup are text from a stranger.

use std::path::{Path, PathBuf};

use windlass_base::Message;
use windlass_base::message::table;
use windlass_device::DeviceAddress;

use crate::names::{absolute, is_own_side_file, part_of_database};
use crate::{Failure, Session};

/// A file of a set and where it is to go.
pub(in crate::operation) struct Placing<'a> {
    /// Its logical name.
    pub(in crate::operation) logical: &'a str,
    pub(in crate::operation) path: &'a Path,
    /// Whether a MOVE or the command names the place.
    pub(in crate::operation) is_named: bool,
    /// The files of the database that is replaced.
    pub(in crate::operation) own: &'a [PathBuf],
    /// Where all files of the set go.
    pub(in crate::operation) together: &'a [PathBuf],
}

/// What a statement says of all its files.
pub(in crate::operation) struct Wish<'a> {
    /// The database.
    pub(in crate::operation) name: &'a str,
    /// What is read.
    pub(in crate::operation) devices: &'a [DeviceAddress],
    pub(in crate::operation) replace: bool,
}

impl Placing<'_> {
    /// SQL Server's rules for overwriting, and ours.
    pub(in crate::operation) fn check(
        &self,
        session: &Session,
        wish: &Wish<'_>,
    ) -> Result<(), Failure> {
        self.check_owner(session, wish.name)?;
        self.check_media(wish)?;
        let is_own = self.own.iter().any(|own| own == self.path);
        if is_own {
            return Ok(());
        }
        self.check_folder(session)?;
        if is_own_side_file(self.path) {
            let reason = "Windlass gives such names to its unfinished files and removes them. Give it another \
                          name.";
            return Err(self.refuse(table::path_means_no_file(self.path.display(), reason)));
        }
        // The log of the very database that is restored beside it is one, and is meant.
        let is_log = |database: &PathBuf| {
            windlass_vfs::log_path(database) == self.path && self.together.contains(database)
        };
        if let Some(database) = part_of_database(self.path).filter(|database| !is_log(database)) {
            let reason = format!(
                "SQLite would take a file of this name for part of '{}'. Use another name.",
                database.display()
            );
            return Err(self.refuse(table::path_means_no_file(self.path.display(), reason)));
        }
        let is_there = windlass_io::own::is_there(self.path);
        if is_there && !(self.is_named && wish.replace) {
            let path = self.path.display().to_string();
            return Err(self.refuse(table::file_exists(&path, &path)));
        }
        Ok(())
    }

    /// A file of another database is never overwritten.
    fn check_owner(&self, session: &Session, name: &str) -> Result<(), Failure> {
        let owner = session.instance.database_at(self.path)?;
        match owner.filter(|owner| !owner.name.eq_ignore_ascii_case(name)) {
            None => Ok(()),
            Some(owner) => Err(self.refuse(table::file_used_by_database(
                self.path.display(),
                owner.name,
            ))),
        }
    }

    /// Nor are the media that are being read.
    fn check_media(&self, wish: &Wish<'_>) -> Result<(), Failure> {
        let mut files = wish.devices.iter().filter_map(DeviceAddress::file);
        let is_medium = files.any(|file| absolute(file).is_ok_and(|path| path == self.path));
        match is_medium {
            false => Ok(()),
            true => Err(self.refuse(table::path_means_no_file(
                self.path.display(),
                "it is the backup that is being restored.",
            ))),
        }
    }

    /// If the settings list folders, a restore goes only there.
    fn check_folder(&self, session: &Session) -> Result<(), Failure> {
        let folders = session.instance.restore_folders()?;
        let is_within = |folders: &Vec<PathBuf>| {
            let resolved = folders.iter().filter_map(|folder| absolute(folder).ok());
            let mut resolved = resolved.filter(|folder| self.path.starts_with(folder));
            folders.is_empty() || resolved.next().is_some()
        };
        match folders.iter().all(is_within) {
            true => Ok(()),
            false => Err(self.refuse(table::path_means_no_file(
                self.path.display(),
                "it is outside the folders that restores are confined to. EXEC \
                 sp_windlass_restore_folder and 'restore_folders' in config.toml list them.",
            ))),
        }
    }

    fn refuse(&self, cause: Message) -> Failure {
        Failure::from(vec![
            cause,
            table::file_cannot_be_restored(self.logical, self.path.display()).with_state(4),
            table::restore_plan_problems(),
        ])
    }
}
