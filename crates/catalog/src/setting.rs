//! Settings of an instance: folders mapped to drive letters, folders for restores, folders of remote sessions.

use std::path::{Path, PathBuf};

use crate::error::Doing;
use crate::value::{path_text, text_path};
use crate::{Catalog, Error};

/// A folder mapped to a drive letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drive {
    /// Upper case.
    pub letter: char,
    pub folder: PathBuf,
}

impl Catalog {
    /// The mapped drives, by letter.
    ///
    /// # Errors
    /// [`Error::Sqlite`], [`Error::Stored`].
    pub fn drives(&self) -> Result<Vec<Drive>, Error> {
        let mut statement = self
            .connection()
            .prepare_cached("SELECT letter, folder FROM own_drive ORDER BY letter")
            .doing("listing drives")?;
        let mut rows = statement.query([]).doing("listing drives")?;
        let mut drives = Vec::new();
        while let Some(row) = rows.next().doing("listing drives")? {
            let letter: String = row.get(0).doing("listing drives")?;
            drives.push(Drive {
                letter: letter.chars().next().ok_or(Error::Stored {
                    found: letter,
                    expected: "a drive letter",
                })?,
                folder: text_path(row.get(1).doing("listing drives")?),
            });
        }
        Ok(drives)
    }

    /// The folders to which restores are confined; empty for no limit.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn restore_folders(&self) -> Result<Vec<PathBuf>, Error> {
        let doing = "listing the folders of restores";
        let mut statement = self
            .connection()
            .prepare_cached("SELECT folder FROM own_restore_folder ORDER BY folder")
            .doing(doing)?;
        let rows = statement
            .query_map([], |row| row.get::<_, String>(0))
            .doing(doing)?;
        let folders = rows.map(|row| row.map(text_path));
        folders.collect::<Result<_, _>>().doing(doing)
    }

    /// Allows restores to a folder.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn add_restore_folder(&mut self, folder: &Path) -> Result<(), Error> {
        self.connection()
            .execute(
                "INSERT OR REPLACE INTO own_restore_folder (folder) VALUES (?1)",
                [path_text(folder)],
            )
            .map(|_| ())
            .doing("adding a folder of restores")
    }

    /// Removes a folder from the list; false if it was not listed.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn remove_restore_folder(&mut self, folder: &Path) -> Result<bool, Error> {
        self.connection()
            .execute(
                "DELETE FROM own_restore_folder WHERE folder = ?1",
                [path_text(folder)],
            )
            .map(|rows| rows > 0)
            .doing("removing a folder of restores")
    }

    /// The folders and URL prefixes in which remote sessions may name files, besides the mapped drives.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn remote_folders(&self) -> Result<Vec<String>, Error> {
        let doing = "listing the folders of remote sessions";
        let mut statement = self
            .connection()
            .prepare_cached("SELECT folder FROM own_remote_folder ORDER BY folder")
            .doing(doing)?;
        let rows = statement.query_map([], |row| row.get(0)).doing(doing)?;
        rows.collect::<Result<_, _>>().doing(doing)
    }

    /// Lets remote sessions name files in a folder.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn add_remote_folder(&mut self, folder: &str) -> Result<(), Error> {
        self.connection()
            .execute(
                "INSERT OR REPLACE INTO own_remote_folder (folder) VALUES (?1)",
                [folder],
            )
            .map(|_| ())
            .doing("adding a folder of remote sessions")
    }

    /// Removes such a folder; false if it was not listed.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn remove_remote_folder(&mut self, folder: &str) -> Result<bool, Error> {
        self.connection()
            .execute("DELETE FROM own_remote_folder WHERE folder = ?1", [folder])
            .map(|rows| rows > 0)
            .doing("removing a folder of remote sessions")
    }

    /// Maps a drive, replacing its previous folder.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn set_drive(&mut self, drive: &Drive) -> Result<(), Error> {
        self.connection()
            .execute(
                "INSERT OR REPLACE INTO own_drive (letter, folder) VALUES (upper(?1), ?2)",
                [drive.letter.to_string(), path_text(&drive.folder)],
            )
            .map(|_| ())
            .doing("mapping a drive")
    }

    /// Removes a drive; false if it was not mapped.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn remove_drive(&mut self, letter: char) -> Result<bool, Error> {
        let removed = self
            .connection()
            .execute(
                "DELETE FROM own_drive WHERE letter = upper(?1)",
                [letter.to_string()],
            )
            .doing("removing a drive")?;
        Ok(removed > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_stands_for_one_folder() {
        let mut catalog = Catalog::in_memory().unwrap();
        for (letter, folder) in [('d', "/one"), ('C', "/two"), ('D', "/three")] {
            catalog
                .set_drive(&Drive {
                    letter,
                    folder: folder.into(),
                })
                .unwrap();
        }
        let drives = catalog.drives().unwrap();
        let listed: Vec<_> = drives
            .iter()
            .map(|drive| (drive.letter, drive.folder.to_str()))
            .collect();
        assert_eq!(listed, [('C', Some("/two")), ('D', Some("/three"))]);
        assert!(catalog.remove_drive('d').unwrap());
        assert!(!catalog.remove_drive('d').unwrap());
    }
}
