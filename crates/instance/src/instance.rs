//! An instance: its databases, drives and identity.
//!
//! Neighbours: `catalog` below stores them; sessions above use them. An instance without a directory
//! lives as long as its value, as one-off commands need it.

mod recovery_model;
mod share;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::message::table;
use windlass_base::{Guid, Moment};
use windlass_catalog::{
    Catalog, DatabaseRecord, DatabaseState, Drive, Error as CatalogError, FileRecord, Origin,
    RestoreRecord, ServerOption,
};
use windlass_codec::Compression;
use windlass_crypt::VaultKey;
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{Database, LogIdentity};

use crate::confinement::Limits;
use crate::engine::{EngineDatabases, file_records};
use crate::names::{Drives, absolute, logical_name};
use crate::sessions::Sessions;
use crate::tag::Tags;
use crate::{Failure, Identity};

pub use self::share::{InstanceShare, Settings};
use self::share::{SharedSettings, drives};

/// The system databases and their ids. Statements must not change them.
pub const SYSTEM_DATABASES: [(&str, i64); 4] =
    [("master", 1), ("tempdb", 2), ("model", 3), ("msdb", 4)];

/// The server options that apply to backups without such options of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupDefaults {
    /// `backup compression default`
    pub compresses: bool,
    /// `backup compression algorithm`: the algorithm of COMPRESSION without a name.
    pub compression: Compression,
    /// `backup checksum default`
    pub checksum: bool,
    /// `media retention`, in days.
    pub retain_days: u32,
}

/// Restrictions on restores.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestorePolicy {
    /// Folders to which restores are confined; empty for no restriction.
    pub folders: Vec<PathBuf>,
    /// Whether restores refuse backups that are not encrypted.
    pub must_be_encrypted: bool,
    /// Files of public keys; one of them must have signed the backup. Empty: no signature needed.
    pub signed_by: Vec<PathBuf>,
}

#[derive(Debug)]
pub struct Instance {
    catalog: Catalog,
    folder: Option<PathBuf>,
    drives: Drives,
    identity: Identity,
    /// Temporary databases, opened for one command and not registered. Their ids are negative.
    passing: Vec<DatabaseRecord>,
    settings: SharedSettings,
    pub(crate) service_key: Option<VaultKey>,
    pub(crate) engines: EngineDatabases,
    sessions: Sessions,
}

/// Why a file that the log does not name stands against opening its database.
const FORGOTTEN: &str = "it was added to the database, but the log does not know it: the log is a copy of before, as are the files that it names";

impl Instance {
    /// Opens the instance in `folder` and creates it if necessary; without a folder, creates an instance
    /// that ends with the value.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn open(folder: Option<&Path>) -> Result<Self, CatalogError> {
        let catalog = match folder {
            Some(folder) => Catalog::open(folder)?,
            None => Catalog::in_memory()?,
        };
        let folder = folder
            .map(|_| catalog.path().parent().map(Path::to_owned))
            .unwrap_or_default();
        Self::of(catalog, folder)
    }

    /// Opens the instance in `folder` for a session that changes nothing: its catalog is a copy in
    /// memory, and no instance is created if there is none.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn rehearsal(folder: Option<&Path>) -> Result<Self, CatalogError> {
        let catalog = match folder {
            Some(folder) => Catalog::rehearsal(folder)?,
            None => Catalog::in_memory()?,
        };
        Self::of(
            catalog,
            folder.and_then(|folder| folder.canonicalize().ok()),
        )
    }

    /// Closes all engine databases. Returns those that could not be closed, by name: the log redoes at the next
    /// opening what their files lack.
    pub fn close_engine_databases(&self) -> Vec<(String, Failure)> {
        self.engines.close_all()
    }

    /// The sessions of this process on the instance.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    fn of(mut catalog: Catalog, folder: Option<PathBuf>) -> Result<Self, CatalogError> {
        catalog.restart()?;
        let drives = drives(&catalog, &[])?;
        let recovery_interval = catalog.option_in_use(ServerOption::RecoveryInterval)?;
        let memory = catalog.option_in_use(ServerOption::MaxServerMemory)?;
        let identity = Identity::of_instance(folder.as_deref());
        Ok(Self {
            catalog,
            folder,
            drives,
            identity,
            passing: Vec::new(),
            settings: SharedSettings::default(),
            service_key: None,
            engines: EngineDatabases::new(recovery_interval, memory),
            sessions: Sessions::default(),
        })
    }

    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub fn catalog_mut(&mut self) -> &mut Catalog {
        &mut self.catalog
    }

    pub fn backup_defaults(&self) -> Result<BackupDefaults, CatalogError> {
        let in_use = |option| self.catalog.option_in_use(option);
        let algorithm = match in_use(ServerOption::BackupCompressionAlgorithm)? {
            2 => Compression::QAT_DEFLATE,
            3 => Compression::ZSTD_LOW,
            _ => Compression::MS_XPRESS,
        };
        let days = in_use(ServerOption::MediaRetention)?;
        Ok(BackupDefaults {
            compresses: in_use(ServerOption::BackupCompressionDefault)? != 0,
            compression: algorithm,
            checksum: in_use(ServerOption::BackupChecksumDefault)? != 0,
            retain_days: u32::try_from(days).unwrap_or(0),
        })
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The values of the name tags that the instance provides.
    pub(crate) fn tags(&self) -> Tags {
        Tags {
            server: self.identity.machine.clone(),
            instance: self.identity.instance.clone(),
            ..Tags::default()
        }
    }

    /// The folders mapped to drive letters.
    pub fn drives(&self) -> &Drives {
        &self.drives
    }

    /// Maps a drive for the sessions of this process.
    pub fn map_drive(&mut self, drive: Drive) {
        self.settings
            .change(|settings| settings.drives.push(drive.clone()));
        self.drives.set(drive);
    }

    /// The drives that are mapped for the sessions of this process.
    pub(crate) fn drives_of_process(&self) -> Vec<Drive> {
        self.settings.get().drives
    }

    /// Maps a drive permanently.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn keep_drive(&mut self, drive: Drive) -> Result<(), CatalogError> {
        self.catalog.set_drive(&drive)?;
        self.drives.set(drive);
        Ok(())
    }

    /// Removes a drive permanently.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn forget_drive(&mut self, letter: char) -> Result<(), CatalogError> {
        self.catalog.remove_drive(letter)?;
        self.drives.remove(letter);
        Ok(())
    }

    /// Gives the machine a name that stays, where the system's changes.
    pub fn name_machine(&mut self, name: String) {
        self.identity = self.identity.clone().on_machine(name);
    }

    /// Names the login in whose name backups are made.
    pub(crate) fn name_user(&mut self, name: &str) {
        name.clone_into(&mut self.identity.user);
    }

    /// Relative names in statements mean files below this folder: a command's, whose batches run in a server.
    pub fn begin_in(&mut self, folder: PathBuf) {
        self.drives.begin_in(folder);
    }

    /// Confines the names of files in statements, or ends that.
    pub(crate) fn confine(&mut self, limits: Option<Limits>) {
        self.drives.confine(limits);
    }

    /// Adds restrictions on restores, until this value is dropped.
    pub fn restrict_restores(&mut self, policy: RestorePolicy) {
        self.settings.change(|settings| settings.restores = policy);
    }

    /// Two lists of folders; a restore must go to a folder of each list that is not empty.
    pub(crate) fn restore_folders(&self) -> Result<[Vec<PathBuf>; 2], CatalogError> {
        let folders = self.settings.get().restores.folders;
        Ok([folders, self.catalog.restore_folders()?])
    }

    pub(crate) fn restores_must_be_encrypted(&self) -> Result<bool, CatalogError> {
        let option = ServerOption::RestoresMustBeEncrypted;
        let by_settings = self.settings.get().restores.must_be_encrypted;
        Ok(by_settings || self.catalog.option_in_use(option)? != 0)
    }

    /// See [`RestorePolicy::signed_by`].
    pub(crate) fn restores_signed_by(&self) -> Vec<PathBuf> {
        self.settings.get().restores.signed_by
    }

    /// The database of that name.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn database(&self, name: &str) -> Result<Option<DatabaseRecord>, CatalogError> {
        let passing = self
            .passing
            .iter()
            .find(|known| known.name.eq_ignore_ascii_case(name));
        match passing {
            Some(record) => Ok(Some(record.clone())),
            None => self.catalog.database(name),
        }
    }

    /// The database to which this file belongs.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn database_at(&self, path: &Path) -> Result<Option<DatabaseRecord>, CatalogError> {
        match self.passing.iter().find(|known| known.path == path) {
            Some(record) => Ok(Some(record.clone())),
            None => self.catalog.database_at(path),
        }
    }

    /// Registers a file as a database.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn register(&mut self, record: &DatabaseRecord) -> Result<i64, CatalogError> {
        self.catalog.register(record)
    }

    /// Uses a file as a database without registering it. Returns its name: the file's name, with a
    /// number appended if another database has that name.
    pub fn pass(&mut self, path: &Path) -> Result<String, CatalogError> {
        let path = absolute(path).map_err(|source| CatalogError::NoFile {
            path: path.to_owned(),
            source,
        })?;
        if let Some(known) = self.database_at(&path)? {
            return Ok(known.name);
        }
        let stem = logical_name(&path);
        let mut name = stem.clone();
        let mut number = 2;
        while is_system_database(&name) || self.database(&name)?.is_some() {
            name = format!("{stem}_{number}");
            number += 1;
        }
        self.use_passing(&name, &path)?;
        Ok(name)
    }

    /// Uses a file as a database of that name without registering it.
    ///
    /// # Errors
    /// Those of the catalog, and if the name or the file is taken.
    pub fn pass_as(&mut self, name: &str, path: &Path) -> Result<(), CatalogError> {
        let path = absolute(path).map_err(|source| CatalogError::NoFile {
            path: path.to_owned(),
            source,
        })?;
        if is_system_database(name) || self.database(name)?.is_some() {
            return Err(CatalogError::NameTaken {
                name: name.to_owned(),
            });
        }
        if let Some(known) = self.database_at(&path)? {
            return Err(CatalogError::PathTaken {
                path,
                database: known.name,
            });
        }
        self.use_passing(name, &path)
    }

    fn use_passing(&mut self, name: &str, path: &Path) -> Result<(), CatalogError> {
        let mut record = new_record(name, path, Origin::Attached);
        // A program that uses the engine's VFS keeps the log next to the database file.
        record.log_path = Some(windlass_vfs::log_path(path)).filter(|log| log.exists());
        // Without a directory the catalog ends with the value anyway, and its views should show the
        // database.
        if self.folder.is_none() {
            return self.catalog.register(&record).map(|_| ());
        }
        let lowest = self.passing.iter().map(|known| known.database_id).min();
        record.database_id = lowest.unwrap_or(0) - 1;
        self.passing.push(record);
        Ok(())
    }

    /// Opens a database of the page engine, if it is not open, and sees to it that the catalog lists all of its
    /// files: a process may have been killed after it added one.
    pub(crate) fn engine(&mut self, record: &DatabaseRecord) -> Result<Arc<Database>, Failure> {
        self.refuse_forgotten_files(record)?;
        let database = self.engines.database(record)?;
        if let Err(error) = self.note_files(record, &database) {
            tracing::warn!("the files of '{}' were not noted: {error}", record.name);
        }
        Ok(database)
    }

    /// Files are added, never removed: a log that knows fewer than the catalog is a copy of before, and so are
    /// the files that it knows.
    pub(crate) fn refuse_forgotten_files(&self, record: &DatabaseRecord) -> Result<(), Failure> {
        // In standby its files still have temporary names.
        let is_placed = record.database_id >= 0 && record.state != DatabaseState::Standby;
        let log = record.log_path.as_ref();
        let Some(log) = log.filter(|_| is_placed && !self.engines.is_open(record)) else {
            return Ok(());
        };
        // A log that cannot be read is reported when the database is opened.
        let Ok(Some(found)) = LogIdentity::of(&RealFileSystem, log) else {
            return Ok(());
        };
        let files = self.catalog.files(record.database_id)?;
        let known: Vec<FileRecord> = files.into_iter().filter(|file| !file.is_log).collect();
        match known.get(found.data_paths.len()) {
            None => Ok(()),
            Some(forgotten) => {
                let path = forgotten.path.display();
                Err(table::files_do_not_match(path, FORGOTTEN).into())
            }
        }
    }

    /// Stores the list of a database's files in the catalog, if it has changed.
    pub(crate) fn note_files(
        &mut self,
        record: &DatabaseRecord,
        database: &Database,
    ) -> Result<(), CatalogError> {
        let files = file_records(database);
        // In standby they still have temporary names.
        let is_passing = record.database_id < 0 || record.state == DatabaseState::Standby;
        match is_passing || self.catalog.files(record.database_id)? == files {
            true => Ok(()),
            false => self.catalog.set_files(record.database_id, &files),
        }
    }

    /// Refuses to delete or replace the files of a database that another instance has, too: this one is a copy
    /// of that one's folder.
    pub(crate) fn refuse_copy(&self, operation: &str, database: &str) -> Result<(), Failure> {
        let Some(original) = self.catalog.original()? else {
            return Ok(());
        };
        let folder = self.folder.as_deref().unwrap_or(Path::new(""));
        let original = original.parent().unwrap_or(&original);
        let (folder, original) = (folder.display(), original.display());
        Err(table::copied_instance(operation, database, folder, original).into())
    }

    /// Stores a changed database.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn store(&mut self, record: &DatabaseRecord) -> Result<(), CatalogError> {
        let passing = self
            .passing
            .iter_mut()
            .find(|known| known.database_id == record.database_id);
        match passing {
            Some(known) => {
                known.clone_from(record);
                Ok(())
            }
            None => self.catalog.update(record),
        }
    }

    /// Unregisters a database.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn forget(&mut self, name: &str) -> Result<bool, CatalogError> {
        let before = self.passing.len();
        self.passing
            .retain(|known| !known.name.eq_ignore_ascii_case(name));
        Ok(self.passing.len() < before || self.catalog.unregister(name)?)
    }

    /// Adds a restore to the history.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn record_restore(&mut self, record: &RestoreRecord) -> Result<i64, CatalogError> {
        self.catalog.record_restore(record)
    }

    /// The folder of the log that is kept of a SQLite database whose recovery model is FULL; `None` without a directory,
    /// and for a database that is not registered, or of the page engine.
    pub(crate) fn place_of_log(&self, record: &DatabaseRecord) -> Option<PathBuf> {
        place_of_log(self.folder.as_ref()?, record)
    }

    /// The same, if its log is kept.
    pub(crate) fn kept_log(&self, record: &DatabaseRecord) -> Option<PathBuf> {
        self.place_of_log(record).filter(|folder| folder.is_dir())
    }

    /// The folder of the digests of differential bases; `None` without a directory.
    pub fn bases_folder(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join("bases"))
    }
}

/// See [`Instance::place_of_log`].
pub(crate) fn place_of_log(folder: &Path, record: &DatabaseRecord) -> Option<PathBuf> {
    let is_one = record.log_path.is_none() && record.database_id > 0;
    is_one.then(|| folder.join("follow").join(record.made_for.to_string()))
}

pub fn is_system_database(name: &str) -> bool {
    SYSTEM_DATABASES
        .iter()
        .any(|(system, _)| system.eq_ignore_ascii_case(name))
}

/// The catalog entry for a database that is about to be registered.
pub(crate) fn new_record(name: &str, path: &Path, origin: Origin) -> DatabaseRecord {
    DatabaseRecord {
        database_id: 0,
        name: name.to_owned(),
        logical_name: logical_name(path),
        path: path.to_owned(),
        log_path: None,
        is_as_is: false,
        family_guid: None,
        state: DatabaseState::Online,
        origin,
        create_date: Moment::now().0,
        base: None,
        made_for: Guid::random(),
    }
}
