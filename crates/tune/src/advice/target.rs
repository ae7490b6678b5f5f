//! Where the backups go: folders, whose files are named after the database, or files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::database::Database;

/// Maximum number of files of a media set.
const FILES_MAX: usize = 64;

#[derive(Debug, Clone)]
pub(super) struct Targets {
    all: Vec<Target>,
    database: String,
}

#[derive(Debug, Clone)]
enum Target {
    Folder(PathBuf),
    File(PathBuf),
}

impl Targets {
    /// The targets named by the user, or the folder of the database.
    pub(super) fn new(named: &[PathBuf], database: &Database) -> Self {
        let own = || windlass_io::directory::parent(database.path());
        let of = |path: &PathBuf| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            if path.is_dir() {
                Target::Folder(path)
            } else {
                Target::File(path)
            }
        };
        let mut all: Vec<Target> = named.iter().map(of).collect();
        if all.is_empty() {
            let folder = std::path::absolute(own()).unwrap_or_else(|_| own());
            all.push(Target::Folder(folder));
        }
        Self {
            all,
            database: file_name(database.name()),
        }
    }

    /// The folders to try, one per target.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let folder = |target: &Target| match target {
            Target::Folder(folder) => folder.clone(),
            Target::File(file) => windlass_io::directory::parent(file),
        };
        self.all.iter().map(folder).collect()
    }

    /// The numbers of files to try.
    pub(super) fn counts(&self) -> Vec<usize> {
        let targets = self.all.len();
        let mut counts = vec![1, targets, targets * 2];
        if targets == 1 {
            counts.push(4);
        }
        counts.retain(|count| *count <= FILES_MAX);
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// The names of a backup's files.
    pub(super) fn devices(&self, count: usize) -> Vec<PathBuf> {
        (0..count).map(|index| self.device(index)).collect()
    }

    fn device(&self, index: usize) -> PathBuf {
        match &self.all[index % self.all.len()] {
            Target::Folder(folder) if index == 0 => folder.join(format!("{}.bak", self.database)),
            Target::Folder(folder) => folder.join(format!("{}_{}.bak", self.database, index + 1)),
            Target::File(file) if index < self.all.len() => file.clone(),
            Target::File(file) => numbered(file, index + 1),
        }
    }
}

/// `app.bak` as `app_2.bak`.
fn numbered(file: &Path, number: usize) -> PathBuf {
    let mut name = OsString::from(file.file_stem().unwrap_or_default());
    name.push(format!("_{number}"));
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    file.with_file_name(name)
}

/// A database's name without characters that file names cannot have.
fn file_name(database: &str) -> String {
    let allowed = |character: char| {
        if character.is_control() || matches!(character, '/' | '\\' | ':') {
            '_'
        } else {
            character
        }
    };
    database.chars().map(allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(all: Vec<Target>) -> Targets {
        let database = file_name("a/b\nc");
        Targets { all, database }
    }

    #[test]
    fn files_are_spread_over_the_targets_and_named_apart() {
        let folders = targets(vec![
            Target::Folder("/x".into()),
            Target::Folder("/y".into()),
        ]);
        let names = ["/x/a_b_c.bak", "/y/a_b_c_2.bak", "/x/a_b_c_3.bak"];
        assert_eq!(folders.devices(3), names.map(PathBuf::from));
        assert_eq!(folders.counts(), [1, 2, 4]);
        let files = targets(vec![Target::File("/x/one.bak".into())]);
        assert_eq!(
            files.devices(2),
            ["/x/one.bak", "/x/one_2.bak"].map(PathBuf::from)
        );
        assert_eq!(files.counts(), [1, 2, 4]);
        assert_eq!(files.folders(), [PathBuf::from("/x")]);
    }
}
