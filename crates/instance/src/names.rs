//! Maps names in statements to files: drive letters, backslashes, `NUL`.
//!
//! Scripts written for Windows run unchanged when each of their drives is mapped to a folder. A
//! mapped path cannot leave its folder: `..` stops at the drive's root, as it does on Windows. Where
//! a Windows path differs from an existing file only in case, it means that file.
//!
//! Every name that a statement gives is resolved here, so this is also where those of remote sessions are
//! [confined](crate::confinement).

use std::path::{Component, MAIN_SEPARATOR_STR, Path, PathBuf};

use windlass_catalog::Drive;
use windlass_device::DeviceAddress;

use crate::confinement::{Limits, is_open_here};

/// The folders mapped to drive letters, and the limits of a remote session.
#[derive(Debug, Clone, Default)]
pub struct Drives {
    mapped: Vec<Drive>,
    /// Where relative names begin; the process's folder otherwise.
    base: Option<PathBuf>,
    limits: Option<Limits>,
}

/// Why a name does not mean a file here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("the name is empty")]
    Empty,
    #[error("'{path}': the drive {letter}: is not mapped to a folder")]
    DriveNotMapped { path: String, letter: char },
    /// `\\server\share\...`
    #[error("'{path}' is on a network share")]
    NetworkShare { path: String },
    /// `scheme://...`
    #[error("'{path}' is a URL, and this takes files only")]
    Url { path: String },
    /// A name with a character that file names cannot contain.
    #[error("'{path}' contains a control character")]
    ControlCharacter {
        /// The path, with the character escaped.
        path: String,
    },
    /// A remote session names what is in none of its folders.
    #[error("'{path}' is outside of the folders of remote sessions")]
    Outside { path: String },
    /// A guest names what its program has open.
    #[error("'{path}' is open in this program")]
    Open { path: String },
}

impl Drives {
    /// Maps a letter; replaces an earlier mapping.
    pub fn set(&mut self, drive: Drive) {
        let letter = drive.letter.to_ascii_uppercase();
        self.mapped.retain(|known| known.letter != letter);
        self.mapped.push(Drive { letter, ..drive });
        self.mapped.sort_by_key(|drive| drive.letter);
    }

    pub fn remove(&mut self, letter: char) {
        self.mapped
            .retain(|known| !known.letter.eq_ignore_ascii_case(&letter));
    }

    /// The mapped drives, by letter.
    pub fn list(&self) -> &[Drive] {
        &self.mapped
    }

    /// Relative names begin in this folder from now on.
    pub(crate) fn begin_in(&mut self, folder: PathBuf) {
        self.base = Some(folder);
    }

    /// A path, from the folder where relative names begin.
    pub(crate) fn based(&self, path: PathBuf) -> PathBuf {
        match &self.base {
            Some(base) => base.join(path),
            None => path,
        }
    }

    /// From now on only names within the limits mean files; `None` for no limits.
    pub(crate) fn confine(&mut self, limits: Option<Limits>) {
        self.limits = limits;
    }

    /// The file that a path in a statement means.
    ///
    /// # Errors
    /// [`NameError`] if it does not mean a file here, or one that the session may not name.
    pub fn path(&self, written: &str) -> Result<PathBuf, NameError> {
        let path = self.based(self.mapped_path(written)?);
        match &self.limits {
            Some(Limits::Listed(places)) if !places.allows(&self.mapped, &path) => {
                Err(NameError::Outside {
                    path: written.to_owned(),
                })
            }
            Some(Limits::NotOpen) if is_open_here(&path) => Err(NameError::Open {
                path: written.to_owned(),
            }),
            _ => Ok(path),
        }
    }

    /// Checks that the session may name an object by its URL.
    ///
    /// # Errors
    /// [`NameError::Outside`].
    pub fn check_url(&self, url: &str) -> Result<(), NameError> {
        match &self.limits {
            Some(Limits::Listed(places)) if !places.allows_url(url) => Err(NameError::Outside {
                path: crate::shown(url),
            }),
            _ => Ok(()),
        }
    }

    /// The file that a name on the command line means: the one of this name, unless the name has
    /// [the form of one of Windows](is_of_windows).
    ///
    /// # Errors
    /// Those of [`Self::path`].
    pub fn file(&self, written: &Path) -> Result<PathBuf, NameError> {
        match written.to_str() {
            Some(name) if is_of_windows(name) => self.path(name),
            _ => Ok(written.to_owned()),
        }
    }

    fn mapped_path(&self, written: &str) -> Result<PathBuf, NameError> {
        // Paths of this system are not trimmed: a name may end with a blank.
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
        if crate::is_url(text) {
            return Err(NameError::Url {
                path: crate::shown(text),
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
            // On this system a backslash may be part of a name, but not in a script written for Windows.
            // A name that exists is used as written.
            None if text.contains('\\') && !self.based(PathBuf::from(text)).exists() => {
                Ok(PathBuf::from(text.replace('\\', MAIN_SEPARATOR_STR)))
            }
            None => Ok(PathBuf::from(text)),
        }
    }

    /// The backup device that `DISK = 'written'` means.
    ///
    /// # Errors
    /// [`NameError`] if it does not mean a file here.
    pub fn disk_device(&self, written: &str) -> Result<DeviceAddress, NameError> {
        if let Some(special) = DeviceAddress::special(written) {
            return Ok(special);
        }
        let name = match written.starts_with('/') {
            true => written,
            false => written.trim(),
        };
        Ok(DeviceAddress::named(name, self.path(written)?))
    }

    fn folder(&self, letter: char) -> Option<&Path> {
        let drive = self.mapped.iter().find(|drive| drive.letter == letter)?;
        Some(&drive.folder)
    }
}

/// Whether a name has the form of one of Windows, and no file here has it: `E:\x.bak`, `\\server\share\x.bak`.
pub fn is_of_windows(name: &str) -> bool {
    let has_drive = drive_letter(name).is_some() && name.len() > 2;
    (has_drive || name.starts_with(r"\\")) && !Path::new(name).exists()
}

/// The drive letter of `d:...`, in upper case.
fn drive_letter(text: &str) -> Option<char> {
    let mut characters = text.chars();
    let letter = characters.next().filter(char::is_ascii_alphabetic)?;
    (characters.next() == Some(':')).then(|| letter.to_ascii_uppercase())
}

/// The parts of a Windows path after the drive, with `.` and `..` resolved.
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

/// Joins `parts` to `folder`; ignores case where only that finds an existing name.
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

/// The only entry of `folder` whose name differs from `part` just in case.
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

/// The default logical name of a database file: its name without the extension.
pub fn logical_name(path: &Path) -> String {
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    stem.filter(|stem| !stem.is_empty())
        .unwrap_or_else(|| "database".to_owned())
}

/// The absolute path of a file that may not exist; links in its folder are resolved if it exists.
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

/// Files that databases keep next to them: `SQLite` its journal, its write-ahead log and the log's
/// index, the page engine its log.
const PARTS: [(&str, PartOf); 4] = [
    ("-journal", PartOf::Any),
    ("-wal", PartOf::Any),
    ("-shm", PartOf::Any),
    ("-log", PartOf::Existing),
];

/// When a file with such a name belongs to a database.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartOf {
    /// Always: `SQLite` uses and deletes the file as soon as such a database exists.
    Any,
    /// If the database exists.
    Existing,
}

/// The database to which a file with this name would belong, whether or not it exists.
pub(crate) fn part_of_database(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    PARTS.iter().find_map(|(suffix, when)| {
        let stem = name.strip_suffix(suffix).filter(|stem| !stem.is_empty())?;
        let database = path.with_file_name(stem);
        (*when == PartOf::Any || windlass_io::own::is_there(&database)).then_some(database)
    })
}

/// Whether Windlass would take a file of this name for an unfinished file of its own, and remove it.
pub(crate) fn is_own_side_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.contains(".windlass-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confinement::Confinement;

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
    fn a_confined_name_is_refused_wherever_it_leads_out_and_nul_is_not() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("out")).unwrap();
        let mut drives = drives(folder.path());
        assert!(drives.path("/etc/passwd").is_ok());
        drives.confine(Some(Limits::Listed(Confinement::default())));
        assert!(drives.path(r"D:\a.bak").is_ok());
        assert!(drives.disk_device("NUL").is_ok());
        for written in ["/etc/passwd", r"D:\out\passwd", "a.bak", r"..\a.bak"] {
            let outside = drives.path(written);
            assert!(
                matches!(outside, Err(NameError::Outside { .. })),
                "{written}"
            );
            assert!(drives.disk_device(written).is_err(), "{written}");
        }
        assert!(drives.check_url("s3://host/bucket/a.bak").is_err());
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
        assert!(device.discards());
    }
}
