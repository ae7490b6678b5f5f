//! A folder with a file for each table.
//!
//! It is written under another name, and locked meanwhile: what a killed extraction left there is told from what
//! another one writes, and is removed.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use windlass_bak::table::Table;

use crate::Error;
use crate::target::safe_name;

/// Extensions of the files.
pub(crate) const CSV: &str = "csv";
pub(crate) const PARQUET: &str = "parquet";

/// Makes a folder, or empties the one that a killed extraction left, and locks it while it is open.
pub(crate) fn claim_folder(path: &Path, extension: &str) -> Result<File, Error> {
    let failed = |error| Error::file(path, error);
    let refused = |reason: String| Error::Sequence {
        path: path.to_owned(),
        reason,
    };
    let is_new = match std::fs::create_dir(path) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(failed(error)),
    };
    let named = path.symlink_metadata().map_err(failed)?;
    if !named.is_dir() {
        return Err(refused("it exists and is no folder: remove it".to_owned()));
    }
    let folder = File::open(path).map_err(failed)?;
    let other = || refused("another extraction writes it".to_owned());
    match folder.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(other()),
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    // Whoever held it may have given it its name.
    let is_same =
        |found: std::fs::Metadata| found.ino() == named.ino() && found.dev() == named.dev();
    let still = path.symlink_metadata().is_ok_and(is_same);
    if !still || !folder.metadata().is_ok_and(is_same) {
        return Err(other());
    }
    if is_new {
        return Ok(folder);
    }
    let mut left = Vec::new();
    for entry in path.read_dir().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let is_ours = entry.file_type().is_ok_and(|kind| kind.is_file())
            && entry
                .path()
                .extension()
                .is_some_and(|found| found == extension);
        if !is_ours {
            let name = entry.file_name();
            return Err(refused(format!(
                "it exists, with '{}', which no extraction writes: remove it",
                name.display()
            )));
        }
        left.push(entry.path());
    }
    for file in left {
        std::fs::remove_file(&file).map_err(|error| Error::file(&file, error))?;
    }
    Ok(folder)
}

/// A new, empty folder, and the names in it.
#[derive(Debug)]
pub(crate) struct TableFolder {
    folder: PathBuf,
    extension: &'static str,
    names: BTreeSet<PathBuf>,
}

/// The new file of a table.
#[derive(Debug)]
pub(crate) struct TableFile {
    /// Its name in the folder.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

impl TableFolder {
    pub(crate) fn new(folder: &Path, extension: &'static str) -> Self {
        Self {
            folder: folder.to_owned(),
            extension,
            names: BTreeSet::new(),
        }
    }

    /// Creates the file of a table. Two tables whose names differ in what no file name has get files of their own.
    pub(crate) fn file(&mut self, table: &Table) -> Result<TableFile, Error> {
        let plain = format!("{}.{}", table.schema, table.name);
        let mut name = safe_name(&plain, self.extension);
        let mut number = 2;
        while !self.names.insert(name.clone()) {
            name = safe_name(&format!("{plain} ({number})"), self.extension);
            number += 1;
        }
        let path = self.folder.join(&name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        Ok(TableFile {
            name: name.display().to_string(),
            file: file.map_err(|error| Error::file(&path, error))?,
            path,
        })
    }
}
