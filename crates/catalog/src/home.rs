//! Where an instance's folder is, so that a copy of it is told from the original.
//!
//! A copy knows the same databases as the original, and carries their marks. If it deleted or replaced their
//! files, the original would lose them. The catalog remembers its path and the number of its file: after a
//! move one of them is the same, or nothing is left at the old path; after a copy both differ, and the
//! original is where it was.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension as _, params};

use crate::error::Doing;
use crate::value::{path_text, text_path};
use crate::{Catalog, Error};

const DOING: &str = "looking up where the instance was";

#[derive(Debug, PartialEq, Eq)]
struct Home {
    path: PathBuf,
    number: i64,
}

impl Home {
    /// `None` if there is no such file.
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::symlink_metadata(path).ok()?;
        Some(Self {
            path: path.to_owned(),
            number: found.ino().cast_signed(),
        })
    }
}

impl Catalog {
    /// The catalog that this one is a copy of, if that is still there.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn original(&self) -> Result<Option<PathBuf>, Error> {
        let (Some(now), Some(then)) = (self.home_now(), self.home()?) else {
            return Ok(None);
        };
        let is_same = now.path == then.path || now.number == then.number;
        let is_copy = !is_same && Home::of(&then.path).as_ref() == Some(&then);
        Ok(is_copy.then_some(then.path))
    }

    /// Takes note of where the catalog is, unless it is a copy.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        let Some(now) = self.home_now() else {
            return Ok(());
        };
        if self.home()?.as_ref() == Some(&now) || self.original()?.is_some() {
            return Ok(());
        }
        let transaction = self.write("noting where the instance is")?;
        transaction
            .execute(
                "INSERT OR REPLACE INTO own_home VALUES (1, ?1, ?2)",
                params![path_text(&now.path), now.number],
            )
            .doing("noting where the instance is")?;
        transaction.commit().doing("noting where the instance is")
    }

    fn home_now(&self) -> Option<Home> {
        let path = self.path();
        Home::of(&path).filter(|_| !self.is_in_memory())
    }

    fn home(&self) -> Result<Option<Home>, Error> {
        let row =
            self.connection()
                .query_row("SELECT path, file_number FROM own_home", [], |row| {
                    Ok(Home {
                        path: text_path(row.get(0)?),
                        number: row.get(1)?,
                    })
                });
        row.optional().doing(DOING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FILE_NAME;

    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir(to).unwrap();
        std::fs::copy(from.join(FILE_NAME), to.join(FILE_NAME)).unwrap();
    }

    fn original(folder: &Path) -> Option<PathBuf> {
        Catalog::open(folder).unwrap().original().unwrap()
    }

    #[test]
    fn a_copy_is_told_from_the_original_until_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let [first, moved, copied, late] = ["a", "b", "c", "d"].map(|name| folder.join(name));
        assert_eq!(original(&first), None);
        std::fs::rename(&first, &moved).unwrap();
        assert_eq!(original(&moved), None, "moved");
        copy(&moved, &copied);
        for _ in 0..2 {
            assert_eq!(original(&copied), Some(moved.join(FILE_NAME)));
            assert_eq!(original(&moved), None, "the original");
        }
        // To another file system: a copy, after which the original is removed.
        std::fs::remove_dir_all(&moved).unwrap();
        assert_eq!(original(&copied), None);
        copy(&copied, &late);
        assert_eq!(original(&late), Some(copied.join(FILE_NAME)));
        // Put back from a copy of the folder.
        std::fs::remove_dir_all(&copied).unwrap();
        std::fs::rename(&late, &copied).unwrap();
        assert_eq!(original(&copied), None);
    }
}
