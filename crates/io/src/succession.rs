//! Finished files that take the place of earlier ones, and of no others.
//!
//! A rename replaces whatever has the name by then. So an earlier file that may go is remembered when the
//! work begins ([`Predecessor`]); at the end the two files change places, and what came out must be that
//! one. The steps can be repeated after a crash.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use crate::{directory, own};

/// A file that may be replaced. It stays open, so that its number is given to no other file; that drops no
/// locks.
#[derive(Debug)]
pub struct Predecessor {
    number: u64,
    _open: File,
}

impl Predecessor {
    /// The file of this name; `None` if the name is free.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        options.read(true).custom_flags(flags.bits().cast_signed());
        match options.open(path) {
            Ok(open) => Ok(Some(Self {
                number: open.metadata()?.ino(),
                _open: open,
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Its number in its file system.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// The number of the file of this name; `None` if the name is free.
fn number_of(path: &Path) -> io::Result<Option<u64>> {
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Fails if a name is taken by another file than the predecessor of this number.
///
/// # Errors
/// `AlreadyExists`; those of the operating system.
pub fn check(path: &Path, predecessor: Option<u64>) -> io::Result<()> {
    match number_of(path)? {
        None => Ok(()),
        found if found == predecessor => Ok(()),
        Some(_) => Err(taken()),
    }
}

/// The error for a name that was given to another file meanwhile.
pub fn taken() -> io::Error {
    let reason = "another program has given this name to a file of its own since the work began, \
                  which is not overwritten; move that file away and try again";
    io::Error::new(io::ErrorKind::AlreadyExists, reason)
}

/// Removes the predecessor, unless it is gone.
///
/// # Errors
/// `AlreadyExists` if another file has its name.
pub fn remove(path: &Path, predecessor: Option<u64>) -> io::Result<()> {
    check(path, predecessor)?;
    own::remove(path)
}

/// Gives a file that is held here its final name, in the place of its predecessor or, without one, where
/// there is no file. Its content must have been synced.
///
/// # Errors
/// `AlreadyExists` if another file has the name, which stays; `NotFound` if the temporary name is not that of
/// the held file any more.
pub fn take_place(held: &File, from: &Path, to: &Path, predecessor: Option<u64>) -> io::Result<()> {
    check(to, predecessor)?;
    if number_of(to)?.is_none() {
        return own::take_name(held, from, to);
    }
    own::check_named(held, from)?;
    if !directory::exchange(from, to)? {
        // The best that such a file system can do.
        return directory::replace(from, to);
    }
    if number_of(from)? != predecessor {
        // Another file had come there meanwhile.
        directory::exchange(from, to)?;
        return Err(taken());
    }
    directory::sync(&directory::parent(to))?;
    own::remove(from)
}

/// As [`take_place`], for a step that an earlier attempt may have done, wholly or in part. Without `held` the
/// file is one that a killed process left.
///
/// # Errors
/// Those of [`take_place`] and [`own::hold_existing`].
pub fn take_place_again(
    held: Option<&File>,
    from: &Path,
    to: &Path,
    predecessor: Option<u64>,
) -> io::Result<()> {
    match number_of(from)? {
        None if own::is_there(to) => directory::sync(&directory::parent(to)),
        found @ Some(_) if found == predecessor => own::remove(from),
        _ => match held {
            Some(held) => take_place(held, from, to, predecessor),
            None => {
                let left = own::hold_existing(from)?.ok_or(io::ErrorKind::NotFound)?;
                take_place(&left, from, to, predecessor)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    struct Case {
        _folder: tempfile::TempDir,
        from: PathBuf,
        to: PathBuf,
        held: File,
    }

    /// A finished file, next to an earlier one.
    fn case() -> Case {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["a.new", "a"].map(|name| folder.path().join(name));
        std::fs::write(&to, "old").unwrap();
        let held = own::claim(&from).unwrap().into_file();
        std::fs::write(&from, "new").unwrap();
        Case {
            _folder: folder,
            from,
            to,
            held,
        }
    }

    fn content(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap_or_default()
    }

    /// Another program saves its file under the name, as editors and copies do.
    fn replace_by_theirs(path: &Path) {
        let beside = own::beside(path, ".theirs");
        std::fs::write(&beside, "theirs").unwrap();
        std::fs::rename(beside, path).unwrap();
    }

    #[test]
    fn only_the_predecessor_is_replaced() {
        for cannot_exchange in [false, true] {
            directory::tests::CANNOT_EXCHANGE.set(cannot_exchange);
            let case = case();
            let old = Predecessor::of(&case.to).unwrap().unwrap();
            take_place(&case.held, &case.from, &case.to, Some(old.number())).unwrap();
            assert_eq!(content(&case.to), "new");
            assert!(!own::is_there(&case.from));
        }
        directory::tests::CANNOT_EXCHANGE.set(false);
    }

    #[test]
    fn another_file_that_has_the_name_by_then_stays() {
        for was_there in [true, false] {
            let case = case();
            if !was_there {
                std::fs::remove_file(&case.to).unwrap();
            }
            let old = Predecessor::of(&case.to).unwrap();
            replace_by_theirs(&case.to);
            let number = old.as_ref().map(Predecessor::number);
            for take in [
                take_place(&case.held, &case.from, &case.to, number),
                take_place_again(Some(&case.held), &case.from, &case.to, number),
            ] {
                assert_eq!(take.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            }
            assert!(remove(&case.to, number).is_err());
            assert_eq!(content(&case.to), "theirs");
            assert_eq!(content(&case.from), "new");
        }
    }

    #[test]
    fn a_process_that_dies_after_any_step_is_followed_by_one_that_ends_its_work() {
        // Before, between the exchange and the removal, and after it.
        for steps in 0..3 {
            let case = case();
            let old = Predecessor::of(&case.to).unwrap().unwrap();
            if steps > 0 {
                assert!(directory::exchange(&case.from, &case.to).unwrap());
            }
            if steps > 1 {
                std::fs::remove_file(&case.from).unwrap();
            }
            drop(case.held);
            for _ in 0..2 {
                take_place_again(None, &case.from, &case.to, Some(old.number())).unwrap();
                assert_eq!(content(&case.to), "new", "after {steps} steps");
                assert!(!own::is_there(&case.from));
            }
        }
    }

    #[test]
    fn the_number_of_a_predecessor_that_is_gone_is_no_other_files() {
        let case = case();
        let old = Predecessor::of(&case.to).unwrap().unwrap();
        std::fs::remove_file(&case.to).unwrap();
        std::fs::write(&case.to, "theirs").unwrap();
        assert!(check(&case.to, Some(old.number())).is_err());
    }
}
