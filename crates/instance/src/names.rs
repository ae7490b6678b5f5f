//! From names in statements to files: drive letters, backslashes, `NUL`.
//!
//! Scripts written for Windows run unchanged when each of their drives is mapped to a folder. A
//! mapped path cannot leave its folder: `..` stops at the drive's root, as it does on Windows. Where
//! a Windows path differs from an existing file only in case, it means that file.

use std::path::{Component, MAIN_SEPARATOR_STR, Path, PathBuf};

use windlass_catalog::Drive;
use windlass_device::{DeviceAddress, DeviceKind};

/// The folders mapped to drive letters.
#[derive(Debug, Clone, Default)]
pub struct Drives(Vec<Drive>);

/// Why a name is not a file here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A name without characters.
    #[error("the name is empty")]
    Empty,
    /// A drive letter without a folder.
    #[error("'{path}': the drive {letter}: is not mapped to a folder")]
    DriveNotMapped {
        /// The path as written.
        path: String,
        /// The letter, upper case.
        letter: char,
    },
    /// `\\server\share\...`
    #[error("'{path}' is on a network share")]
    NetworkShare {
        /// The path as written.
        path: String,
    },
    /// A name with a character that no file name has.
    #[error("'{path}' contains a control character")]
    ControlCharacter {
        /// The path, the character escaped.
        path: String,
    },
}

impl Drives {
    /// Maps a letter, replacing what it stood for.
    pub fn set(&mut self, drive: Drive) {
        let letter = drive.letter.to_ascii_uppercase();
        self.0.retain(|known| known.letter != letter);
        self.0.push(Drive { letter, ..drive });
        self.0.sort_by_key(|drive| drive.letter);
    }

    /// Forgets a letter.
    pub fn remove(&mut self, letter: char) {
        self.0
            .retain(|known| !known.letter.eq_ignore_ascii_case(&letter));
    }

    /// The mapped drives, by letter.
    pub fn list(&self) -> &[Drive] {
        &self.0
    }

    /// The file that a path in a statement means.
    ///
    /// # Errors
    /// [`NameError`] when it means none here.
    pub fn path(&self, written: &str) -> Result<PathBuf, NameError> {
        // A path of this system is taken as it is: a blank may end a name.
        let text = match written.starts_with('/') {
            true => written,
            false => written.trim(),
        };
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.chars().any(char::is_control) {
            return Err(NameError::ControlCharacter {
                path: text.escape_debug().to_string(),
            });
        }
        if text.starts_with('/') {
            return Ok(PathBuf::from(text));
        }
        if text.starts_with(r"\\") {
            return Err(NameError::NetworkShare {
                path: text.to_owned(),
            });
        }
        match drive_letter(text) {
            Some(letter) => {
                let folder = self
                    .folder(letter)
                    .ok_or_else(|| NameError::DriveNotMapped {
                        path: text.to_owned(),
                        letter,
                    })?;
                let rest = text.get(2..).unwrap_or("");
                Ok(in_any_case(folder, &inside(rest)))
            }
            // A backslash may be part of a name on this system, but not in a script that was
            // written for the other one; a name that exists is taken as it is.
            None if text.contains('\\') && !Path::new(text).exists() => {
                Ok(PathBuf::from(text.replace('\\', MAIN_SEPARATOR_STR)))
            }
            None => Ok(PathBuf::from(text)),
        }
    }

    /// The backup device that `DISK = 'written'` means.
    ///
    /// # Errors
    /// [`NameError`] when it means none here.
    pub fn disk_device(&self, written: &str) -> Result<DeviceAddress, NameError> {
        if written.trim().eq_ignore_ascii_case("NUL") {
            return Ok(DeviceAddress::nul());
        }
        Ok(DeviceAddress {
            kind: DeviceKind::Disk,
            name: match written.starts_with('/') {
                true => written.to_owned(),
                false => written.trim().to_owned(),
            },
            path: self.path(written)?,
            logical: None,
        })
    }

    fn folder(&self, letter: char) -> Option<&Path> {
        let drive = self.0.iter().find(|drive| drive.letter == letter)?;
        Some(&drive.folder)
    }
}

/// The upper-case letter of `d:...`.
fn drive_letter(text: &str) -> Option<char> {
    let mut characters = text.chars();
    let letter = characters.next().filter(char::is_ascii_alphabetic)?;
    (characters.next() == Some(':')).then(|| letter.to_ascii_uppercase())
}

/// The parts of a Windows path below its drive, `.` and `..` resolved.
fn inside(rest: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in rest.split(['\\', '/']) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts
}

/// Joins `parts` to `folder`, taking each existing name in whatever case it is.
fn in_any_case(folder: &Path, parts: &[&str]) -> PathBuf {
    let mut path = folder.to_owned();
    for part in parts {
        let exact = path.join(part);
        path = if exact.exists() {
            exact
        } else {
            other_case(&path, part).unwrap_or(exact)
        };
    }
    path
}

/// The only entry of `folder` whose name differs from `part` in nothing but case.
fn other_case(folder: &Path, part: &str) -> Option<PathBuf> {
    let mut found = std::fs::read_dir(folder).ok()?.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name();
        let same = name.to_str()?.to_lowercase() == part.to_lowercase();
        same.then(|| entry.path())
    });
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The logical name that a database file gets when none is given: its name without the extension.
pub fn logical_name(path: &Path) -> String {
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    stem.filter(|stem| !stem.is_empty())
        .unwrap_or_else(|| "database".to_owned())
}

/// The absolute path of a file that may not exist: its folder's links resolved where it exists.
pub fn absolute(path: &Path) -> std::io::Result<PathBuf> {
    if let Ok(resolved) = windlass_io::directory::follow(path) {
        return Ok(resolved);
    }
    if let Ok(resolved) = path.canonicalize() {
        return Ok(resolved);
    }
    let absolute = std::path::absolute(path)?;
    match (absolute.parent(), absolute.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => Ok(parent
            .canonicalize()
            .map_or_else(|_| absolute.clone(), |folder| folder.join(name))),
        _ => Ok(absolute),
    }
}

/// What databases keep beside them: `SQLite` its journal, its log and the log's index, the page engine its
/// log.
const PARTS: [(&str, PartOf); 4] = [
    ("-journal", PartOf::Any),
    ("-wal", PartOf::Any),
    ("-shm", PartOf::Any),
    ("-log", PartOf::Existing),
];

/// When a name is that of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartOf {
    /// Always: `SQLite` takes the file for its own, and deletes it, as soon as there is such a database.
    Any,
    /// The database exists.
    Existing,
}

/// The database to which a file with this name would belong, whether or not the database exists.
pub(crate) fn part_of_database(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    PARTS.iter().find_map(|(suffix, when)| {
        let stem = name.strip_suffix(suffix).filter(|stem| !stem.is_empty())?;
        let database = path.with_file_name(stem);
        (*when == PartOf::Any || windlass_io::own::is_there(&database)).then_some(database)
    })
}

/// Whether a file of this name is taken for what an unfinished run of ours left, and removed.
pub(crate) fn is_own_side_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.contains(".windlass-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drives(folder: &Path) -> Drives {
        let mut drives = Drives::default();
        drives.set(Drive {
            letter: 'd',
            folder: folder.to_owned(),
        });
        drives
    }

    #[test]
    fn a_drive_is_a_folder_whatever_the_case_and_the_slashes() {
        let drives = drives(Path::new("/srv/d"));
        for written in [
            r"D:\temp\a.bak",
            r"d:\temp\a.bak",
            "d:/temp/a.bak",
            r"d:temp\.\a.bak",
        ] {
            assert_eq!(
                drives.path(written).unwrap(),
                Path::new("/srv/d/temp/a.bak"),
                "{written}"
            );
        }
        assert_eq!(drives.path("/x/y").unwrap(), Path::new("/x/y"));
        assert_eq!(drives.path(r"sub\a.bak").unwrap(), Path::new("sub/a.bak"));
    }

    #[test]
    fn a_mapped_path_stays_in_its_folder() {
        let drives = drives(Path::new("/srv/d"));
        assert_eq!(
            drives.path(r"d:\..\..\etc\passwd").unwrap(),
            Path::new("/srv/d/etc/passwd")
        );
        assert_eq!(
            drives.path(r"d:\a\..\..\..\b").unwrap(),
            Path::new("/srv/d/b")
        );
    }

    #[test]
    fn what_stands_for_no_file_is_refused() {
        let drives = drives(Path::new("/srv/d"));
        assert!(matches!(
            drives.path(r"e:\x"),
            Err(NameError::DriveNotMapped { letter: 'E', .. })
        ));
        assert!(matches!(
            drives.path(r"\\s\t\x"),
            Err(NameError::NetworkShare { .. })
        ));
        assert!(matches!(drives.path(" "), Err(NameError::Empty)));
        assert!(matches!(
            drives.path("a\0b"),
            Err(NameError::ControlCharacter { .. })
        ));
    }

    #[test]
    fn an_existing_file_is_found_in_another_case() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("Temp")).unwrap();
        std::fs::write(folder.path().join("Temp/Full.BAK"), "").unwrap();
        let drives = drives(folder.path());
        assert_eq!(
            drives.path(r"D:\TEMP\full.bak").unwrap(),
            folder.path().join("Temp/Full.BAK")
        );
        assert_eq!(
            drives.path(r"D:\TEMP\new.bak").unwrap(),
            folder.path().join("Temp/new.bak")
        );
    }

    #[test]
    fn nul_discards() {
        let device = Drives::default().disk_device("nul").unwrap();
        assert_eq!(device.kind, DeviceKind::Nul);
    }
}
