//! SQL Server's files out of Windlass media: the sets of a file, one after the other.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use windlass_bak::{CopiedFamily, Original};
use windlass_io::own;
use windlass_source::{Recovery, RestoreTarget};

use crate::target::FileTarget;
use crate::{Error, complete};

/// The files that the sets of a backup are written to: they appear all together.
#[derive(Debug)]
pub struct Unpacking {
    target: FileTarget,
}

/// The files to unpack: their family numbers, ascending, and lengths.
///
/// # Errors
/// Why the sets are not those of one backup, from the first to the last.
pub fn unpacked_files(sets: &[Original]) -> Result<Vec<(u16, u64)>, String> {
    let Some(first) = sets.first() else {
        return Err("there are no backup sets".to_owned());
    };
    if sets.len() != usize::from(first.set_count) {
        let (found, count) = (sets.len(), first.set_count);
        return Err(format!(
            "the file had {count} backup sets, of which {found} are here"
        ));
    }
    let mut files: Vec<(u16, u64)> = Vec::new();
    for family in &first.families {
        files.push((family.number, 0));
    }
    for set in sets {
        let has_all = set.families.len() == files.len();
        for (file, family) in files.iter_mut().zip(&set.families) {
            if !has_all || (family.number, family.offset) != *file {
                return Err("the backup sets here are not all those of one file".to_owned());
            }
            let end = family.end().ok_or("a length is impossible")?;
            *file = (family.number, end);
        }
    }
    files.sort_unstable();
    if files.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err("a media family is described twice".to_owned());
    }
    Ok(files)
}

impl Unpacking {
    /// Creates the files, one for each family.
    ///
    /// # Errors
    /// A file exists and is not to be replaced, or cannot be created; or SQLite would apply a log that was left
    /// beside it.
    pub fn begin(paths: BTreeMap<u16, PathBuf>, replace: bool) -> Result<Self, Error> {
        for path in paths.values() {
            own::refuse_left_log(path).map_err(|error| Error::file(path, error))?;
        }
        if let Some(primary) = paths.values().next()
            && complete(primary)?
            && !replace
        {
            return Err(Error::Exists(primary.clone()));
        }
        let target = FileTarget::create(paths, replace, NEW_FILE_MODE)?;
        Ok(Self { target })
    }

    /// The target of one set.
    pub fn set<'u>(&'u self, original: &'u Original) -> impl RestoreTarget + 'u {
        SetTarget {
            target: &self.target,
            families: &original.families,
        }
    }

    /// Gives the files their names.
    ///
    /// # Errors
    /// They cannot be synced or renamed.
    pub fn finish(self) -> Result<(), Error> {
        self.target.keep()
    }
}

/// Permissions of a file that replaces none: the owner's.
const NEW_FILE_MODE: u16 = 0o600;

/// The place of a set in the files.
struct SetTarget<'u> {
    target: &'u FileTarget,
    families: &'u [CopiedFamily],
}

impl fmt::Debug for SetTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetTarget").finish_non_exhaustive()
    }
}

impl RestoreTarget for SetTarget<'_> {
    fn write(&self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), windlass_source::Error> {
        let mut families = self.families.iter();
        let family = families.find(|family| family.number == file_id);
        let end = offset.checked_add(bytes.len() as u64);
        let inside = family.filter(|family| end.is_some_and(|end| end <= family.bytes));
        let Some(family) = inside else {
            return Err(windlass_source::Error::OutOfRange {
                file_id,
                offset,
                bytes: bytes.len() as u64,
                size_bytes: family.map_or(0, |family| family.bytes),
            });
        };
        let written = self.target.write_at(file_id, family.offset + offset, bytes);
        written.map_err(|source| windlass_source::Error::Io {
            action: "write",
            path: self.target.path(file_id),
            source,
        })
    }

    fn finish(self: Box<Self>, _recovery: Recovery) -> Result<(), windlass_source::Error> {
        Ok(())
    }

    fn abandon(self: Box<Self>) -> Result<(), windlass_source::Error> {
        Ok(())
    }
}
