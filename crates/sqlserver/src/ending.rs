//! The end of a restore: its files are renamed to their final names, all or none.
//!
//! Several renames are not one step. So a state file next to the primary file records, before the first
//! of them, that all files are complete. Then the old primary file is removed, without which no server
//! attaches the others, and the new one is renamed last: no crash leaves a mixture of old and new files
//! that could be attached. The next restore to the same place completes what a crash left.

use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use windlass_io::{directory, own};

use crate::Error;

/// Behind the name of a file that is not finished.
const UNFINISHED_SUFFIX: &str = ".windlass-restoring";

/// Behind the name of the primary file: all files are whole, and are being given their names.
const STATE_SUFFIX: &str = ".windlass-placing";

/// Maximum length of a state file: a path for each of the files that a database can have.
const STATE_BYTES_MAX: u64 = 64 << 20;

/// The temporary name of a file.
pub(crate) fn unfinished(path: &Path) -> PathBuf {
    own::beside(path, UNFINISHED_SUFFIX)
}

/// Says that whole, synced files are to get their names: from here on the restore can only be completed.
/// `paths` begins with the primary file.
pub(crate) fn announce(paths: &[PathBuf]) -> Result<(), Error> {
    let Some(primary) = paths.first() else {
        return Ok(());
    };
    let names = paths.iter().map(|path| path.as_os_str().as_bytes());
    let state = names.collect::<Vec<_>>().join(&0);
    own::replace(&own::beside(primary, STATE_SUFFIX), &state)
        .map_err(|error| Error::target(primary, error))
}

/// Gives files that were announced their names. `reached` is called before each step that changes anything.
pub(crate) fn give_names(
    paths: &[PathBuf],
    reached: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> Result<(), Error> {
    let Some((primary, others)) = paths.split_first() else {
        return Ok(());
    };
    if own::is_there(&unfinished(primary)) {
        step(primary, reached, || {
            own::remove(primary)?;
            directory::sync(&directory::parent(primary))
        })?;
    }
    for path in others.iter().chain([primary]) {
        step(path, reached, || {
            match directory::replace(&unfinished(path), path) {
                // It has its name already.
                Err(error) if error.kind() == io::ErrorKind::NotFound && own::is_there(path) => {
                    Ok(())
                }
                renamed => renamed,
            }
        })?;
    }
    step(primary, reached, || {
        own::remove(&own::beside(primary, STATE_SUFFIX))
    })
}

fn step(
    path: &Path,
    reached: &mut dyn FnMut(&Path) -> io::Result<()>,
    work: impl FnOnce() -> io::Result<()>,
) -> Result<(), Error> {
    reached(path)
        .and_then(|()| work())
        .map_err(|error| Error::target(path, error))
}

/// Ends a restore that was interrupted while its files were given their names. Whether there was one.
///
/// # Errors
/// If a file cannot be renamed, another restore is working on it, or the state is not ours.
pub fn complete(primary: &Path) -> Result<bool, Error> {
    let failed = |error| Error::target(primary, error);
    // A missing folder contains no state.
    let primary = directory::follow(primary).unwrap_or_else(|_| primary.to_owned());
    let state = match own::read(&own::beside(&primary, STATE_SUFFIX), STATE_BYTES_MAX) {
        Ok(state) => state,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    let names = state.split(|byte| *byte == 0);
    let paths: Vec<PathBuf> = names
        .map(|name| PathBuf::from(std::ffi::OsString::from_vec(name.to_vec())))
        .collect();
    if paths.first() != Some(&primary) {
        let reason = "the state of an interrupted restore beside it is damaged; remove it";
        return Err(failed(io::Error::new(io::ErrorKind::InvalidData, reason)));
    }
    let mut held = Vec::new();
    for path in &paths {
        held.push(own::hold_existing(&unfinished(path)).map_err(failed)?);
    }
    if held.iter().all(Option::is_none) && !paths.iter().all(|path| own::is_there(path)) {
        // It failed as it announced them, and took its files with it.
        own::remove(&own::beside(&primary, STATE_SUFFIX)).map_err(failed)?;
        return Ok(false);
    }
    give_names(&paths, &mut |_| Ok(()))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["a.mdf", "b.ndf", "l.ldf"];

    fn content(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap_or_default()
    }

    /// At every step the process ends, and the next one comes.
    #[test]
    fn a_restore_that_ends_between_any_two_names_is_completed_and_never_mixed() {
        for is_new in [true, false] {
            let mut stops = 0;
            for stop in 0.. {
                let folder = tempfile::tempdir().unwrap();
                let paths = NAMES.map(|name| folder.path().join(name));
                for path in &paths {
                    if !is_new {
                        std::fs::write(path, "old").unwrap();
                    }
                    std::fs::write(unfinished(path), "new").unwrap();
                }
                announce(&paths).unwrap();
                let mut steps = 0;
                let ended = give_names(&paths, &mut |_| {
                    steps += 1;
                    match steps > stop {
                        true => Err(io::ErrorKind::Other.into()),
                        false => Ok(()),
                    }
                });
                // With a primary file there are the others of its time.
                let found = paths.each_ref().map(|path| content(path));
                assert!(
                    found[0].is_empty() || found.iter().all(|other| *other == found[0]),
                    "{found:?} after {stop} steps"
                );
                assert_eq!(complete(&paths[0]).unwrap(), ended.is_err());
                let whole = paths.each_ref().map(|path| content(path));
                assert!(whole.iter().all(|content| content == "new"), "{whole:?}");
                let left = std::fs::read_dir(folder.path()).unwrap().count();
                assert_eq!(left, NAMES.len());
                if ended.is_ok() {
                    break;
                }
                stops += 1;
            }
            assert_eq!(stops, 5, "steps at which a process can end");
        }
    }

    #[test]
    fn a_state_that_names_other_files_moves_none() {
        let folder = tempfile::tempdir().unwrap();
        let [victim, primary] = ["victim", "a.mdf"].map(|name| folder.path().join(name));
        std::fs::write(&victim, "theirs").unwrap();
        std::fs::write(unfinished(&victim), "new").unwrap();
        std::fs::write(
            own::beside(&primary, STATE_SUFFIX),
            victim.as_os_str().as_bytes(),
        )
        .unwrap();
        assert!(complete(&primary).is_err());
        assert_eq!(content(&victim), "theirs");
    }
}
