//! Finds other users of a file.
//!
//! A connection in rollback mode that is not in a transaction holds no lock, but would continue to
//! write to the replaced file. The descriptors in `/proc` show it.
//!
//! Only privileged processes can see the processes of other users. What cannot be seen is not
//! counted; `SQLite`'s locks still protect users that are in a transaction or in WAL mode.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::super::descriptors::{self, FileId};

/// How many times, and at what interval, a user must be seen: a process that is being started
/// briefly has the descriptors of its parent.
const LOOKS: u32 = 10;
/// See [`LOOKS`].
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// A process that has `file` open, other than this process with its `own_count` descriptors.
pub(super) fn other_user(file: FileId, own_count: usize) -> Option<u32> {
    let mut user = look(file, own_count)?;
    for _ in 1..LOOKS {
        std::thread::sleep(BETWEEN_LOOKS);
        user = look(file, own_count)?;
    }
    Some(user)
}

fn look(file: FileId, own_count: usize) -> Option<u32> {
    let own_id = std::process::id();
    let allowed = own_count + descriptors::count(file);
    let processes = fs::read_dir("/proc").ok()?;
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .find(|&id| {
            let open = descriptors_on(file, id);
            if id == own_id {
                open > allowed
            } else {
                open > 0
            }
        })
}

fn descriptors_on(file: FileId, process_id: u32) -> usize {
    let Ok(folder) = fs::read_dir(Path::new("/proc").join(process_id.to_string()).join("fd"))
    else {
        return 0;
    };
    folder
        .filter_map(Result::ok)
        .filter_map(|entry| fs::metadata(entry.path()).ok())
        .filter(|metadata| FileId::of(metadata) == file)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_of_this_process_is_found_unless_it_is_our_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("open");
        let file = fs::File::create(&path).unwrap();
        let id = FileId::of(&file.metadata().unwrap());
        assert_eq!(other_user(id, 0), Some(std::process::id()));
        assert_eq!(other_user(id, 1), None);
        drop(file);
        assert_eq!(other_user(id, 0), None);
    }
}
