//! Imports SQLite files into the page engine and exports them, at disk speed.

use std::path::{Path, PathBuf};

use windlass_base::message::table;
use windlass_engine::{CreateDatabase, FileSpec};
use windlass_source::Content;
use windlass_source::sqlite::{self, SnapshotOptions};
use windlass_vfs::import_export::PageChecksums;

use crate::instance::is_system_database;
use crate::message_of::unreadable_file;
use crate::names::absolute;
use crate::operation::database::usable;
use crate::tsql::engine;
use crate::{Failure, Session};

#[derive(Debug, Clone, Copy)]
pub struct ImportRequest<'a> {
    /// The file, which may be in use and does not change.
    pub source: &'a Path,
    pub name: &'a str,
    /// Its data files; by default one in the instance's directory.
    pub data: &'a [PathBuf],
    /// Whether every page gets a checksum, even if the source has no room for them.
    pub page_checksums: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct ImportReport {
    /// Size of its pages.
    pub bytes: u64,
    pub page_checksums: bool,
}

impl Session {
    /// Creates an engine database from a SQLite file and registers it.
    ///
    /// # Errors
    /// If the name or a file is taken, the source is not a SQLite database, or an I/O error occurs.
    pub fn import(&mut self, request: &ImportRequest<'_>) -> Result<ImportReport, Failure> {
        let name = request.name;
        let known = self.instance.database(name)?;
        if name.is_empty() || is_system_database(name) || known.is_some() {
            return Err(table::database_exists(name).into());
        }
        let source = full(request.source)?;
        self.queries.release(&source);
        let waiting = SnapshotOptions {
            busy_timeout: self
                .settings
                .lock_timeout
                .unwrap_or(SnapshotOptions::default().busy_timeout),
            cancel: Some(self.cancel_flag()),
            ..SnapshotOptions::default()
        };
        sqlite::check_name(&source, &waiting)?;
        let mut places = request.data.iter();
        let first = match places.next() {
            Some(data) => full(data)?,
            None => engine::default_place(self, &format!("{name}.mdf"))?,
        };
        let log = windlass_vfs::log_path(&first);
        let checksums = if request.page_checksums {
            PageChecksums::Always
        } else {
            PageChecksums::AsInSource
        };
        let mut made = CreateDatabase::new(name, &first, &log);
        for (data, number) in places.zip(2..) {
            let file = FileSpec::data(&format!("{name}_{number}"), full(data)?);
            made.data_files.push(file);
        }
        let imported = self.instance.engines.import(&source, &made, checksums)?;
        engine::begin(self, name, imported.database)?;
        Ok(ImportReport {
            bytes: imported.bytes,
            page_checksums: imported.page_checksums,
        })
    }

    /// Writes the last committed state of an engine database to a new SQLite file; returns its size.
    ///
    /// # Errors
    /// If it is not a page engine database, the file exists, or an I/O error occurs.
    pub fn export(&mut self, name: &str, target: &Path) -> Result<u64, Failure> {
        let target = full(target)?;
        let known = usable(self, name)?;
        if known.log_path.is_none() {
            return Err(table::export_of_sqlite_file(name).into());
        }
        let _in_use = self.use_beside(&known.name)?;
        let database = engine::engine_database(self, name)?;
        if windlass_source::engine::content(&database) == Content::Unknown {
            return Err(table::not_a_database(name).into());
        }
        windlass_vfs::import_export::export(&database, &target)
            .map_err(|error| table::engine_refused(error).into())
    }
}

fn full(path: &Path) -> Result<PathBuf, Failure> {
    absolute(path).map_err(|error| unreadable_file(path, &error).into())
}
