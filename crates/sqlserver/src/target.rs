//! Files written under temporary names until they are complete.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use windlass_bak::Target;
use windlass_io::succession::Predecessor;
use windlass_io::{directory, output, own};

use crate::Error;
use crate::ending::{self, Whole};

/// The files of a database, by number. They are removed on drop unless [`FileTarget::keep`] was
/// called.
#[derive(Debug)]
pub(crate) struct FileTarget {
    files: BTreeMap<u16, Entry>,
}

#[derive(Debug)]
struct Entry {
    file: File,
    unfinished: PathBuf,
    path: PathBuf,
    /// The file that it replaces.
    replaced: Option<Predecessor>,
}

impl Entry {
    fn whole(&self) -> Whole<'_> {
        Whole {
            path: self.path.clone(),
            replaced: self.replaced.as_ref().map(Predecessor::number),
            held: Some(&self.file),
        }
    }

    fn remove(&self) {
        // The original error matters more than one during cleanup.
        own::remove_held(&self.file, &self.unfinished).ok();
    }
}

impl FileTarget {
    /// Creates the files. New files get `mode` less the umask; those that replace a file keep its mode.
    pub(crate) fn create(
        paths: BTreeMap<u16, PathBuf>,
        replace: bool,
        mode: u16,
    ) -> Result<Self, Error> {
        let mut target = Self {
            files: BTreeMap::new(),
        };
        for (id, path) in paths {
            if !replace && own::is_there(&path) {
                return Err(Error::Exists(path));
            }
            let path = directory::follow(&path).map_err(|error| Error::target(&path, error))?;
            let unfinished = ending::unfinished(&path);
            let replaced = Predecessor::of(&path).map_err(|error| Error::target(&path, error))?;
            if !replace && replaced.is_some() {
                return Err(Error::Exists(path));
            }
            let make = || {
                let file = own::claim_file(&unfinished)?;
                match std::fs::metadata(&path) {
                    Ok(replaced) => output::keep(&file, &replaced)?,
                    Err(_) => {
                        let mode = output::mode_for_new(Some(mode));
                        file.set_permissions(Permissions::from_mode(mode))?;
                    }
                }
                Ok(file)
            };
            let file = make().map_err(|error| Error::target(&path, error))?;
            let entry = Entry {
                file,
                unfinished,
                path,
                replaced,
            };
            target.files.insert(id, entry);
        }
        Ok(target)
    }

    /// Renames the files to their final names.
    pub(crate) fn keep(mut self) -> Result<(), Error> {
        for entry in self.files.values() {
            let synced = entry.file.sync_all();
            synced.map_err(|error| Error::target(&entry.path, error))?;
        }
        // By number, so that the primary file is the first.
        let entries: Vec<Entry> = std::mem::take(&mut self.files).into_values().collect();
        let files: Vec<Whole<'_>> = entries.iter().map(Entry::whole).collect();
        let announced = ending::announce(&files);
        if announced.is_ok() {
            return ending::give_names(&files, &mut |_| Ok(()));
        }
        entries.iter().for_each(Entry::remove);
        announced
    }

    /// Writes to a file, from any thread.
    pub(crate) fn write_at(&self, file: u16, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file(file)?.write_all_at(bytes, offset)
    }

    /// The final name of a file.
    pub(crate) fn path(&self, id: u16) -> PathBuf {
        let entry = self.files.get(&id);
        entry.map(|entry| entry.path.clone()).unwrap_or_default()
    }

    fn file(&self, id: u16) -> io::Result<&File> {
        let entry = self.files.get(&id);
        entry.map(|entry| &entry.file).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the database has no file {id}"),
            )
        })
    }
}

impl Target for FileTarget {
    fn write(&mut self, file: u16, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_at(file, offset, bytes)
    }

    fn set_length(&mut self, file: u16, bytes: u64) -> io::Result<()> {
        self.file(file)?.set_len(bytes)
    }
}

impl Drop for FileTarget {
    fn drop(&mut self) {
        self.files.values().for_each(Entry::remove);
    }
}

/// A file name made from a logical name, which may contain any characters.
pub fn safe_name(logical: &str, extension: &str) -> PathBuf {
    let name: String = logical
        .chars()
        .map(|letter| {
            let is_safe = letter.is_alphanumeric() || "-_. ".contains(letter);
            if is_safe { letter } else { '_' }
        })
        .collect();
    let name = name.trim_start_matches('.').trim();
    let name = if name.is_empty() { "file" } else { name };
    let limited: String = name.chars().take(100).collect();
    Path::new(&limited).with_file_name(format!("{limited}.{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_a_backup_never_leaves_the_folder() {
        assert_eq!(safe_name("Northwind", "mdf"), Path::new("Northwind.mdf"));
        assert_eq!(
            safe_name("../../etc/passwd", "mdf"),
            Path::new("_.._etc_passwd.mdf")
        );
        assert_eq!(safe_name("..", "ldf"), Path::new("file.ldf"));
        assert_eq!(safe_name("C:\\x\0y", "ndf"), Path::new("C__x_y.ndf"));
    }
}
