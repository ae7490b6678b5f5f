//! Which registered database a file was made for.
//!
//! A name proves nothing: another database's file can replace a file under the same name, and neither a
//! SQLite file nor a data file of the page engine contains an identity of its own. So every file that an
//! instance makes for a registered database carries the identity of that registration in an extended
//! attribute, set before the file gets its name. SQLite and the engine keep the attribute, because they
//! change files in place; a file that replaces it does not have it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use rustix::fs::{SeekFrom, XattrFlags};
use rustix::io::Errno;
use windlass_base::Guid;

const ATTRIBUTE: &str = "user.windlass.made_for";

/// Bytes read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Whose file has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    Nobody,
    /// It was made for the database.
    Own,
    /// It was not, or it is no file at all.
    Other {
        why: String,
    },
    /// The file system keeps no extended attributes.
    Untold,
}

/// A file that a deletion keeps, because it was not made for the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    pub path: PathBuf,
    pub why: String,
}

/// Why a restore that waits for its end is not the database's.
pub const WAITS_FOR_OTHER: &str =
    "a restore of another database waits there for its end (RECOVERY)";

/// What carries no mark, if something else must have put it there.
const UNMARKED: &str =
    "it was put there by something else, or copied there without its extended attributes";

/// Marks a file as made for a database. A file system without extended attributes is not an error.
///
/// # Errors
/// Those of the operating system.
pub fn mark(path: &Path, made_for: Guid) -> io::Result<()> {
    let text = made_for.to_string();
    match rustix::fs::lsetxattr(path, ATTRIBUTE, text.as_bytes(), XattrFlags::empty()) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether the file at `path` was made for a database. Opens nothing, so it is safe for databases in use.
///
/// # Errors
/// Those of the operating system.
pub fn owner(path: &Path, made_for: Guid) -> io::Result<Owner> {
    let metadata = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Owner::Nobody),
        found => found?,
    };
    let other = |why: &str| {
        Ok(Owner::Other {
            why: why.to_owned(),
        })
    };
    if metadata.is_symlink() {
        return other("it is a symbolic link that was put there since");
    }
    if !metadata.is_file() {
        return other("it is no regular file");
    }
    let mut text = [0_u8; 64];
    let found = rustix::fs::lgetxattr(path, ATTRIBUTE, &mut text);
    match found {
        Ok(bytes) => {
            let text = std::str::from_utf8(text.get(..bytes).unwrap_or_default());
            match text.ok().and_then(|text| Guid::from_str(text).ok()) {
                Some(found) if found == made_for => Ok(Owner::Own),
                _ => other("it was made for another database"),
            }
        }
        Err(Errno::NODATA) if metadata.len() == 0 => Ok(Owner::Own),
        Err(Errno::NODATA) => other(UNMARKED),
        Err(Errno::RANGE) => other("it was made for another database"),
        Err(Errno::NOENT) => Ok(Owner::Nobody),
        Err(Errno::OPNOTSUPP) => Ok(Owner::Untold),
        Err(error) => Err(error.into()),
    }
}

/// The registered database that a file was made for, if it says so.
pub fn made_for(path: &Path) -> Option<Guid> {
    let mut text = [0_u8; 64];
    let bytes = rustix::fs::lgetxattr(path, ATTRIBUTE, &mut text).ok()?;
    let text = std::str::from_utf8(text.get(..bytes)?).ok()?;
    Guid::from_str(text).ok()
}

/// Whether a file was made for a database, and nothing was ever written to it: a killed process was about to
/// add it.
///
/// # Errors
/// Those of the operating system.
pub fn is_unused(path: &Path, database: Guid) -> io::Result<bool> {
    Ok(made_for(path) == Some(database) && is_blank(path)?)
}

/// As [`owner`], for a file that is to be deleted and that this process does not have open. A file without a
/// mark and without content counts as the database's own: a killed creation leaves such files.
///
/// # Errors
/// Those of the operating system.
pub fn owner_of_remains(path: &Path, made_for: Guid) -> io::Result<Owner> {
    let found = owner(path, made_for)?;
    match &found {
        Owner::Other { why } if why == UNMARKED && is_blank(path)? => Ok(Owner::Own),
        _ => Ok(found),
    }
}

/// Whether a file has no content but zeros.
fn is_blank(path: &Path) -> io::Result<bool> {
    let file = File::open(path)?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = 0;
    loop {
        match rustix::fs::seek(&file, SeekFrom::Data(at)) {
            Ok(found) => at = found,
            Err(Errno::NXIO) => return Ok(true),
            // Holes are read as zeros.
            Err(_) => {}
        }
        let bytes = file.read_at(&mut piece, at)?;
        if bytes == 0 {
            return Ok(true);
        }
        if piece[..bytes].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_database_that_it_was_made_for_and_to_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mdf");
        let (own, other) = (Guid::random(), Guid::random());
        assert_eq!(owner(&path, own).unwrap(), Owner::Nobody);
        std::fs::write(&path, "content").unwrap();
        if owner(&path, own).unwrap() == Owner::Untold {
            println!(
                "SKIPPED: no extended attributes in {}",
                folder.path().display()
            );
            return;
        }
        let is_other = |path: &Path| matches!(owner_of_remains(path, own), Ok(Owner::Other { .. }));
        assert!(is_other(&path), "a file without a mark");
        mark(&path, own).unwrap();
        assert_eq!(owner(&path, own).unwrap(), Owner::Own);
        assert!(matches!(owner(&path, other).unwrap(), Owner::Other { .. }));
        // A change in place keeps the mark, a replacement does not.
        std::fs::write(&path, "other content").unwrap();
        assert_eq!(owner(&path, own).unwrap(), Owner::Own);
        let new = folder.path().join("new");
        std::fs::write(&new, "theirs").unwrap();
        std::fs::rename(&new, &path).unwrap();
        assert!(is_other(&path), "a file that replaced it");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(is_other(&link), "a link");
        assert!(is_other(folder.path()), "a folder");
    }

    #[test]
    fn what_a_killed_creation_leaves_belongs_to_whoever_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let own = Guid::random();
        let found = |name: &str, content: &[u8], length: u64| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_len(length).unwrap();
            owner_of_remains(&path, own).unwrap()
        };
        if found("probe", b"content", 7) == Owner::Untold {
            println!(
                "SKIPPED: no extended attributes in {}",
                folder.path().display()
            );
            return;
        }
        assert_eq!(found("empty", b"", 0), Owner::Own);
        assert_eq!(found("hole", b"", 5 << 20), Owner::Own);
        assert_eq!(found("zeros", &[0; 70_000], 3 << 20), Owner::Own);
        let mut late = vec![0; 2 << 20];
        late.push(1);
        let length = late.len() as u64;
        assert!(matches!(found("late", &late, length), Owner::Other { .. }));
    }
}
