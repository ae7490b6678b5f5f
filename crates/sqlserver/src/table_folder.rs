//! A folder with a file for each table.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use windlass_bak::table::Table;

use crate::Error;
use crate::target::safe_name;

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
