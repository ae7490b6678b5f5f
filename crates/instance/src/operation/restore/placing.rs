//! Where restored files may go, for both kinds of databases.
//!
//! One rule: without a MOVE (or a command) that names it, a restore overwrites only the files of the
//! database that it replaces, and no other file, no matter whose. The paths in a backup are untrusted.

use std::path::{Path, PathBuf};

use windlass_base::Message;
use windlass_base::message::table;
use windlass_catalog::FILE_NAME;
use windlass_device::DeviceAddress;
use windlass_io::own::is_there;
use windlass_media::{FIRST_BYTES, begins_backup};

use crate::names::{absolute, is_own_side_file, part_of_database};
use crate::{Failure, Session};

pub(in crate::operation) struct Placing<'a> {
    pub(in crate::operation) logical: &'a str,
    pub(in crate::operation) path: &'a Path,
    /// Whether MOVE or the command names the path.
    pub(in crate::operation) is_named: bool,
    /// The files of the database to replace.
    pub(in crate::operation) own: &'a [PathBuf],
    /// The targets of all files of the set.
    pub(in crate::operation) together: &'a [PathBuf],
}

/// What applies to all files of a statement.
pub(in crate::operation) struct Wish<'a> {
    pub(in crate::operation) name: &'a str,
    /// The media that are read.
    pub(in crate::operation) devices: &'a [DeviceAddress],
    pub(in crate::operation) replace: bool,
    /// Whether other backups than these may be overwritten.
    pub(in crate::operation) replaces_backups: bool,
}

/// Tells of every file that cannot go to its place, not only of the first.
pub(in crate::operation) fn all(
    checks: impl Iterator<Item = Result<(), Failure>>,
) -> Result<(), Failure> {
    let last = table::restore_plan_problems();
    let mut failures = checks.filter_map(Result::err);
    let Some(mut all) = failures.next() else {
        return Ok(());
    };
    for failure in failures {
        all.messages.retain(|message| message.number != last.number);
        all.messages.extend(failure.messages);
    }
    Err(all)
}

impl Placing<'_> {
    /// Applies SQL Server's rules for overwriting, and Windlass's own.
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
        if let Some(cause) = outside_folders(session, self.path)? {
            return Err(self.refuse(cause));
        }
        if is_own_side_file(self.path) {
            let reason = "Windlass gives such names to its unfinished files and removes them. Give it another \
                          name.";
            return Err(self.refuse(table::path_means_no_file(self.path.display(), reason)));
        }
        // The log of the database that is restored next to it has such a name on purpose.
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
        if let Err(error) = windlass_io::own::refuse_special(self.path) {
            return Err(self.refuse(table::path_means_no_file(self.path.display(), error)));
        }
        if is_there(self.path) && !(self.is_named && wish.replace) {
            let path = self.path.display().to_string();
            let way = match self.is_named {
                true => table::WITH_REPLACE,
                false => table::WITH_MOVE,
            };
            return Err(self.refuse(table::file_exists(&path, &path, way)));
        }
        Ok(())
    }

    /// Refuses a file of another database.
    fn check_owner(&self, session: &Session, name: &str) -> Result<(), Failure> {
        self.refuse_owner(session, |owner| !owner.eq_ignore_ascii_case(name))
    }

    /// Refuses a file of any database but `own`.
    pub(in crate::operation) fn check_unowned(
        &self,
        session: &Session,
        own: Option<&str>,
    ) -> Result<(), Failure> {
        self.refuse_owner(session, |owner| {
            own.is_none_or(|own| !owner.eq_ignore_ascii_case(own))
        })
    }

    fn refuse_owner(
        &self,
        session: &Session,
        is_refused: impl Fn(&str) -> bool,
    ) -> Result<(), Failure> {
        let owner = session.instance.database_at(self.path)?;
        match owner.filter(|owner| is_refused(&owner.name)) {
            None => Ok(()),
            Some(owner) => Err(self.refuse(table::file_used_by_database(
                self.path.display(),
                owner.name,
            ))),
        }
    }

    /// Refuses the media that are being read, other backups, and catalogs: none of them is a database to replace.
    fn check_media(&self, wish: &Wish<'_>) -> Result<(), Failure> {
        let mut files = wish.devices.iter().filter_map(DeviceAddress::file);
        let is_medium = files.any(|file| absolute(file).is_ok_and(|path| path == self.path));
        let first = || DeviceAddress::disk(self.path).begin(FIRST_BYTES);
        let why = if is_medium {
            "it is the backup that is being restored."
        } else if !wish.replaces_backups && begins_backup(&first()) {
            "there is a backup, which no restore overwrites. Delete it yourself, or use another name."
        } else if self.path.file_name() == Some(FILE_NAME.as_ref()) && is_there(self.path) {
            "it is the catalog of an instance. Use another name."
        } else {
            return Ok(());
        };
        let message = table::path_means_no_file(self.path.display(), why);
        Err(self.refuse(message))
    }

    fn refuse(&self, cause: Message) -> Failure {
        Failure::from(vec![
            cause,
            table::file_cannot_be_restored(self.logical, self.path.display()).with_state(4),
            table::restore_plan_problems(),
        ])
    }
}

/// If the settings list folders, what is restored must go to one of them; otherwise the reason.
pub(in crate::operation) fn outside_folders(
    session: &Session,
    path: &Path,
) -> Result<Option<Message>, Failure> {
    let folders = session.instance.restore_folders()?;
    let is_within = |folders: &Vec<PathBuf>| {
        let resolved = folders.iter().filter_map(|folder| absolute(folder).ok());
        let mut resolved = resolved.filter(|folder| path.starts_with(folder));
        folders.is_empty() || resolved.next().is_some()
    };
    if folders.iter().all(is_within) {
        return Ok(None);
    }
    let why = "it is outside the folders that restores are confined to. EXEC sp_windlass_restore_folder and \
               'restore_folders' in config.toml list them.";
    Ok(Some(table::path_means_no_file(path.display(), why)))
}
