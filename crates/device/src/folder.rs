//! Folders of devices: those of files, and what a store has below a URL.

use std::fmt;
use std::fs::FileType;
use std::io;
use std::path::{Path, PathBuf};

use crate::address::DeviceAddress;
use crate::object::{
    Access, ListedObject, ObjectAddress, ObjectSettings, ObjectUrl, Probed, UnfinishedUpload,
};

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFolder(Place);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Disk(PathBuf),
    Objects(Box<ObjectAddress>),
}

/// What a folder has of one type, in the order of the names; links are not followed.
fn paths(folder: &Path, is_wanted: fn(&FileType) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if is_wanted(&entry.file_type()?) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

impl DeviceFolder {
    pub fn disk(path: impl Into<PathBuf>) -> Self {
        Self(Place::Disk(path.into()))
    }

    /// What a store has below a URL, whether or not that ends in a slash.
    pub fn objects(url: ObjectUrl, access: Option<Access>, settings: ObjectSettings) -> Self {
        Self::of_objects(ObjectAddress::new(url, access, settings).as_folder())
    }

    pub(crate) fn of_objects(folder: ObjectAddress) -> Self {
        Self(Place::Objects(Box::new(folder)))
    }

    /// The path of a folder of files; `None` for others.
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            Place::Disk(path) => Some(path),
            Place::Objects(_) => None,
        }
    }

    /// A name that is the same for the same folder, if it can be examined.
    pub fn identity(&self) -> Option<PathBuf> {
        match &self.0 {
            Place::Disk(path) => path.canonicalize().ok(),
            Place::Objects(folder) => Some(PathBuf::from(folder.url.to_string())),
        }
    }

    /// The devices in it, in the order of their names: the files of a folder but not those of its subfolders, links
    /// not followed; the objects of a store at any depth.
    ///
    /// # Errors
    /// If it cannot be listed to its end.
    pub fn devices(&self) -> io::Result<Vec<DeviceAddress>> {
        let mut devices = Vec::new();
        match &self.0 {
            Place::Disk(folder) => {
                let files = paths(folder, FileType::is_file)?;
                devices.extend(files.into_iter().map(DeviceAddress::disk));
            }
            Place::Objects(folder) => folder.walk(&mut |found| {
                devices.push(DeviceAddress::of_object(folder.listed(&found)));
                true
            })?,
        }
        Ok(devices)
    }

    /// The links among the files of a folder that do not lead to another file of it. They are not followed.
    ///
    /// # Errors
    /// If it cannot be listed to its end.
    pub fn links(&self) -> io::Result<Vec<PathBuf>> {
        let Place::Disk(folder) = &self.0 else {
            return Ok(Vec::new());
        };
        let mut links = paths(folder, FileType::is_symlink)?;
        let own = folder.canonicalize().ok();
        links.retain(|link| {
            let leads_here = |real: PathBuf| real.parent() == own.as_deref();
            !link.canonicalize().is_ok_and(leads_here) && !link.is_dir()
        });
        Ok(links)
    }

    /// Calls `each` with the objects of a store below the folder, in the order of their keys. A folder of files has
    /// none.
    ///
    /// # Errors
    /// If it cannot be listed to its end.
    pub fn each_object(&self, each: &mut dyn FnMut(ListedObject)) -> io::Result<()> {
        let Place::Objects(folder) = &self.0 else {
            return Ok(());
        };
        folder.walk(&mut |found| {
            each(ListedObject {
                key: found.location.to_string(),
                bytes: found.size,
            });
            true
        })
    }

    /// Tries what a backup needs of a store, with a small object that is deleted again. A folder of files is none.
    ///
    /// # Errors
    /// What the store says, if it does not write or list.
    pub fn probe(&self) -> io::Result<Option<Probed>> {
        match &self.0 {
            Place::Disk(_) => Ok(None),
            Place::Objects(folder) => folder.probe().map(Some),
        }
    }

    /// The uploads below the folder that were begun and neither completed nor aborted. A folder of files has none.
    ///
    /// # Errors
    /// If they cannot be listed to the end.
    pub fn unfinished_uploads(&self) -> io::Result<Vec<UnfinishedUpload>> {
        match &self.0 {
            Place::Disk(_) => Ok(Vec::new()),
            Place::Objects(folder) => folder.unfinished(),
        }
    }

    /// Aborts one of these: its parts are deleted.
    ///
    /// # Errors
    /// If the store does not do it.
    pub fn abort_upload(&self, upload: &UnfinishedUpload) -> io::Result<()> {
        match &self.0 {
            Place::Disk(_) => Ok(()),
            Place::Objects(folder) => folder.abort(upload),
        }
    }

    /// The folders of objects in it, and not what is below these, with their names.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn folders(&self) -> io::Result<Vec<(String, Self)>> {
        let Place::Objects(folder) = &self.0 else {
            return Ok(Vec::new());
        };
        let folders = folder.folders()?.into_iter();
        Ok(folders
            .map(|found| {
                let key = found.url.key();
                let name = key.rsplit('/').next().unwrap_or(key).to_owned();
                (name, Self::of_objects(found))
            })
            .collect())
    }
}

impl fmt::Display for DeviceFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Disk(path) => write!(f, "{}", path.display()),
            Place::Objects(folder) => write!(f, "{}", folder.url),
        }
    }
}
