//! What is there instead of a file that is not: its folder is missing, or a file has nearly its name. Of a file that may
//! not be opened, who may.

use std::io::{Error, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use windlass_base::similar::nearest;

use crate::identity::name_of_user;

/// Folders of more entries are not searched to the end.
const ENTRIES_MAX: usize = 10_000;

/// A sentence for the message about a file that could not be opened because it, or its folder, is not there.
pub(crate) fn advice(path: &Path, error: &Error) -> Option<String> {
    match error.kind() {
        ErrorKind::NotFound => near(path),
        ErrorKind::PermissionDenied => denial(path),
        _ => None,
    }
}

/// Whose the file is, or the folder in which it cannot be looked for, and who asks.
fn denial(path: &Path) -> Option<String> {
    let owned = path.ancestors().find_map(|part| {
        let metadata = std::fs::metadata(part).ok()?;
        Some((part, metadata))
    });
    let (part, metadata) = owned?;
    let kind = if metadata.is_dir() { "folder" } else { "file" };
    Some(format!(
        "The {kind} '{}' belongs to '{}' and has the mode {:04o}; the program runs as '{}'.",
        part.display(),
        name_of_user(metadata.uid()),
        metadata.mode() & 0o7777,
        name_of_user(rustix::process::geteuid().as_raw()),
    ))
}

fn near(path: &Path) -> Option<String> {
    if let Ok(target) = std::fs::read_link(path) {
        let target = target.display();
        return Some(format!("It is a link to '{target}', which is not there."));
    }
    let folder = windlass_io::directory::parent(path);
    if !folder.exists() {
        return Some(format!(
            "The folder '{}' does not exist. Mount it, or create it.",
            folder.display()
        ));
    }
    let entries = std::fs::read_dir(&folder).ok()?.take(ENTRIES_MAX);
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: Vec<String> = names.collect();
    let written = path.file_name()?.to_str()?;
    let found = meant(written, &names)?;
    Some(format!("Did you mean '{}'?", folder.join(found).display()))
}

/// The name that was meant: with other capital letters, with an ending, or with a slip. Of one letter, all names are near.
fn meant<'a>(written: &str, names: &'a [String]) -> Option<&'a str> {
    let mut alike = names
        .iter()
        .filter(|name| name.eq_ignore_ascii_case(written));
    let mut longer = names.iter().filter(|name| {
        let stem = Path::new(name).file_stem();
        stem.is_some_and(|stem| stem == written)
    });
    let first = alike.next().or_else(|| longer.next());
    if let Some(first) = first {
        return Some(first);
    }
    let stem = Path::new(written).file_stem()?.len();
    let nearest = || nearest(written, names.iter().map(String::as_str));
    (stem > 1).then(nearest).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_is_named_and_so_is_a_file_of_nearly_that_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("app.db"), "").unwrap();
        let missing = Error::from(ErrorKind::NotFound);
        let told = |name: &str| advice(&at(name), &missing);
        assert!(told("ap.db").unwrap().ends_with("/app.db'?"));
        assert!(
            told("no/ap.db")
                .unwrap()
                .ends_with("/no' does not exist. Mount it, or create it.")
        );
        assert_eq!(told("sales.bak"), None);
        std::os::unix::fs::symlink("away.db", at("link.db")).unwrap();
        let told_of_link = told("link.db").unwrap();
        assert_eq!(
            told_of_link,
            "It is a link to 'away.db', which is not there."
        );
        assert!(told("App.DB").unwrap().ends_with("/app.db'?"));
        assert!(told("app").unwrap().ends_with("/app.db'?"));
        std::fs::write(at("f.bak"), "").unwrap();
        assert_eq!(told("x.bak"), None);
        let denied = Error::from(ErrorKind::PermissionDenied);
        let mode = std::fs::metadata(folder.path()).unwrap().mode() & 0o7777;
        let told = advice(&at("no/ap.db"), &denied).unwrap();
        assert!(
            told.contains(&format!("has the mode {mode:04o};")),
            "{told}"
        );
        assert!(
            advice(&at("app.db"), &denied)
                .unwrap()
                .starts_with("The file '")
        );
    }
}
