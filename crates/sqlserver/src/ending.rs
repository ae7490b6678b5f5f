//! The end of a restore: its files are renamed to their final names, all or none.
//!
//! Several renames are not one step. So a state file next to the primary file records, before the first
//! of them, that all files are complete. Then the old primary file is removed, without which no server
//! attaches the others, and the new one is renamed last: no crash leaves a mixture of old and new files
//! that could be attached. The next restore to the same place completes what a crash left.
//!
//! Only the files that were there when the restore began are replaced: see [`succession`].

use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use windlass_io::{directory, own, succession};

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

/// A whole file that is to get its name.
#[derive(Debug)]
pub(crate) struct Whole<'a> {
    pub(crate) path: PathBuf,
    /// The number of the file that it replaces; see [`succession::Predecessor`].
    pub(crate) replaced: Option<u64>,
    /// The file itself, held by who wrote it.
    pub(crate) held: Option<&'a File>,
}

/// Says that whole, synced files are to get their names: from here on the restore can only be completed.
/// `files` begins with the primary file.
pub(crate) fn announce(files: &[Whole<'_>]) -> Result<(), Error> {
    let Some(primary) = files.first() else {
        return Ok(());
    };
    for file in files {
        succession::check(&file.path, file.replaced)
            .map_err(|error| Error::target(&file.path, error))?;
    }
    let mut state = Vec::new();
    for file in files {
        let number = file.replaced.map(|number| number.to_string());
        state.extend_from_slice(number.unwrap_or_default().as_bytes());
        state.push(0);
        state.extend_from_slice(file.path.as_os_str().as_bytes());
        state.push(0);
    }
    own::replace(&own::beside(&primary.path, STATE_SUFFIX), &state)
        .map_err(|error| Error::target(&primary.path, error))
}

/// What was announced; `None` if it is damaged.
fn announced(state: &[u8]) -> Option<Vec<Whole<'static>>> {
    let mut fields = state.strip_suffix(&[0])?.split(|byte| *byte == 0);
    let mut files = Vec::new();
    while let Some(number) = fields.next() {
        let replaced = match number {
            [] => None,
            number => Some(std::str::from_utf8(number).ok()?.parse().ok()?),
        };
        files.push(Whole {
            path: PathBuf::from(std::ffi::OsString::from_vec(fields.next()?.to_vec())),
            replaced,
            held: None,
        });
    }
    Some(files)
}

/// Gives files that were announced their names. `reached` is called before each step that changes anything.
pub(crate) fn give_names(
    files: &[Whole<'_>],
    reached: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> Result<(), Error> {
    let Some((first, others)) = files.split_first() else {
        return Ok(());
    };
    let primary = first.path.as_path();
    if own::is_there(&unfinished(primary)) {
        step(primary, reached, || {
            succession::remove(primary, first.replaced)?;
            directory::sync(&directory::parent(primary))
        })?;
    }
    for file in others.iter().chain([first]) {
        let path = file.path.as_path();
        step(path, reached, || {
            succession::take_place_again(file.held, &unfinished(path), path, file.replaced)
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
    let files = announced(&state).unwrap_or_default();
    if files.first().map(|first| &first.path) != Some(&primary) {
        let reason = "the state of an interrupted restore beside it is damaged; remove it";
        return Err(failed(io::Error::new(io::ErrorKind::InvalidData, reason)));
    }
    let mut held = Vec::new();
    for file in &files {
        held.push(own::hold_existing(&unfinished(&file.path)).map_err(failed)?);
    }
    if held.iter().all(Option::is_none) && !files.iter().all(|file| own::is_there(&file.path)) {
        // It failed as it announced them, and took its files with it.
        own::remove(&own::beside(&primary, STATE_SUFFIX)).map_err(failed)?;
        return Ok(false);
    }
    let files = files.into_iter().zip(&held);
    let files = files.map(|(file, held)| Whole {
        held: held.as_ref(),
        ..file
    });
    give_names(&files.collect::<Vec<_>>(), &mut |_| Ok(()))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["a.mdf", "b.ndf", "l.ldf"];

    fn content(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap_or_default()
    }

    fn whole(paths: &[PathBuf]) -> Vec<Whole<'static>> {
        let of = |path: &PathBuf| Whole {
            path: path.clone(),
            replaced: succession::Predecessor::of(path)
                .unwrap()
                .map(|file| file.number()),
            held: None,
        };
        paths.iter().map(of).collect()
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
                let files = whole(&paths);
                announce(&files).unwrap();
                let mut steps = 0;
                let ended = give_names(&files, &mut |_| {
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
    fn a_file_that_another_program_has_put_there_meanwhile_is_not_overwritten() {
        for stop in 0..4 {
            let folder = tempfile::tempdir().unwrap();
            let paths = NAMES.map(|name| folder.path().join(name));
            for path in &paths {
                std::fs::write(path, "old").unwrap();
                std::fs::write(unfinished(path), "new").unwrap();
            }
            let files = whole(&paths);
            announce(&files).unwrap();
            let theirs = &paths[2];
            let mut steps = 0;
            let ended = give_names(&files, &mut |_| {
                if steps == stop {
                    // As editors and copies save: under another name, then renamed.
                    let beside = own::beside(theirs, ".tmp");
                    std::fs::write(&beside, "theirs")?;
                    std::fs::rename(&beside, theirs)?;
                }
                steps += 1;
                Ok(())
            });
            assert_eq!(content(theirs), "theirs", "at step {stop}");
            // The last one comes after the rename: then it is the file of the database that was replaced.
            if stop == 3 {
                ended.unwrap();
                continue;
            }
            let error = ended.unwrap_err().to_string();
            assert!(error.contains("move that file away"), "{error}");
            complete(&paths[0]).unwrap_err();
            std::fs::rename(theirs, folder.path().join("kept")).unwrap();
            assert!(complete(&paths[0]).unwrap());
            for path in &paths {
                assert_eq!(content(path), "new");
            }
            assert_eq!(content(&folder.path().join("kept")), "theirs");
        }
    }

    #[test]
    fn a_state_that_names_other_files_moves_none() {
        let folder = tempfile::tempdir().unwrap();
        let [victim, primary] = ["victim", "a.mdf"].map(|name| folder.path().join(name));
        std::fs::write(&victim, "theirs").unwrap();
        std::fs::write(unfinished(&victim), "new").unwrap();
        announce(&whole(std::slice::from_ref(&victim))).unwrap();
        std::fs::rename(
            own::beside(&victim, STATE_SUFFIX),
            own::beside(&primary, STATE_SUFFIX),
        )
        .unwrap();
        assert!(complete(&primary).is_err());
        assert_eq!(content(&victim), "theirs");
    }
}
