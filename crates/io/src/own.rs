//! Files of Windlass next to files of others: staging files, states, digests, copies.
//!
//! Their names are predictable, in folders that may belong to other users. So a new file is created
//! exclusively, after anything under its name is removed; a link is removed, never its target. A file of
//! an earlier run is opened only if it is a regular file, owned by this user, with a single hard link.
//! Anything planted causes an error, and nothing is written to it.
//!
//! [`check_owner`] refuses folders that belong to another user; only their owner works in them.
//!
//! Files named by the user are opened through [`crate::DirectFile`], and written by
//! [`crate::output`].

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FlockOperation, OFlags};

use crate::file::{kind_of, open_regular};
use crate::{Access, DirectFile, FileIdentity, directory};

/// Appended to the name of a new file until it is complete.
pub const UNNAMED_SUFFIX: &str = ".windlass-new";

/// Refuses to work in a folder of another user, if this user could write to it: files left in it would stop
/// the owner's work, and files planted by the owner would act with this user's rights. So root is refused,
/// too; a user who can only read is not.
pub fn check_owner(folder: &Path) -> io::Result<()> {
    let owner = std::fs::metadata(folder)?.uid();
    let user = rustix::process::geteuid().as_raw();
    let may = |access| rustix::fs::accessat(CWD, folder, access, AtFlags::EACCESS).is_ok();
    let only_reads = || {
        may(rustix::fs::Access::READ_OK | rustix::fs::Access::EXEC_OK)
            && !may(rustix::fs::Access::WRITE_OK)
    };
    if user == owner || only_reads() {
        return Ok(());
    }
    let reason = format!(
        "it belongs to user {owner}, but this program runs as user {user}; run it as its owner"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// Removes whatever has this name; a missing file is not an error.
pub fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates an empty file of mode 0600, replacing whatever has this name.
pub fn create(path: &Path) -> io::Result<File> {
    remove(path)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    Ok(open_regular(path, &mut options, OFlags::NOFOLLOW)?.0)
}

/// Creates an empty file, replacing whatever has this name, and locks it while it is open.
///
/// # Errors
/// `WouldBlock` if the existing file is locked.
pub fn claim(path: &Path) -> io::Result<DirectFile> {
    remove_unheld(path)?;
    create_held(path)
}

/// The same for a file that is written in pieces of any length.
///
/// # Errors
/// `WouldBlock` if the existing file is locked.
pub fn claim_file(path: &Path) -> io::Result<File> {
    remove_unheld(path)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let opened = open_regular(path, &mut options, OFlags::NOFOLLOW);
    let (file, _) = opened.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => being_made(path),
        _ => error,
    })?;
    hold(&file, path)?;
    Ok(file)
}

/// Gives a file that is held here its final name, which must be free; the content must have been synced.
///
/// # Errors
/// `AlreadyExists` if the name is taken; `NotFound` if another file has the temporary name now, or none.
pub fn take_name(held: &File, from: &Path, to: &Path) -> io::Result<()> {
    check_named(held, from)?;
    directory::take_name(from, to)
}

/// The same, over whatever has the name.
pub fn replace_name(held: &File, from: &Path, to: &Path) -> io::Result<()> {
    check_named(held, from)?;
    directory::replace(from, to)
}

pub(crate) fn check_named(held: &File, path: &Path) -> io::Result<()> {
    if is_named(held, path)? {
        return Ok(());
    }
    let reason = "another program removed or replaced the file while it was being made";
    Err(io::Error::new(io::ErrorKind::NotFound, reason))
}

/// Removes a file that is held here, unless another file, or none, has this name by now.
pub fn remove_held(held: &File, path: &Path) -> io::Result<()> {
    match is_named(held, path)? {
        true => remove(path),
        false => Ok(()),
    }
}

/// Whether an open file has this name.
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let file = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(named) => Ok(FileIdentity::of(&file) == FileIdentity::of(&named)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The error for a file that another process, or another thread, holds.
fn being_made(path: &Path) -> io::Error {
    let who = match maker(path) {
        Some(process) if process == std::process::id() => "this process".to_owned(),
        Some(process) => format!("process {process}"),
        None => "another process".to_owned(),
    };
    let reason =
        format!("{who} is making it, under a temporary name; try again when that has ended");
    io::Error::new(io::ErrorKind::WouldBlock, reason)
}

/// How often the kernel's table of locks is read before a file counts as held by nobody. It comes in pieces of a page;
/// a lock that is given up between two of them can hide another.
const LOOKS_AT_LOCKS: usize = 4;

/// The process that holds the file of this name, as far as the kernel shows it.
pub fn maker(path: &Path) -> Option<u32> {
    let file = std::fs::symlink_metadata(path).ok()?;
    let inode = format!(":{}", file.ino());
    (0..LOOKS_AT_LOCKS).find_map(|_| holder(&inode))
}

/// The process in the kernel's table of locks that holds the file whose device and inode end with `inode`.
fn holder(inode: &str) -> Option<u32> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let is_lock = words.next() == Some("FLOCK");
        let process = words.nth(2)?;
        let found = words.next()?;
        (is_lock && found.ends_with(inode)).then(|| process.parse().ok())?
    })
}

fn create_held(path: &Path) -> io::Result<DirectFile> {
    let file = DirectFile::open(path, Access::CreateNew).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => being_made(path),
        _ => error,
    })?;
    hold(file.as_file(), path)?;
    Ok(file)
}

/// Opens a file of an earlier run, and locks it while it is open.
///
/// # Errors
/// `WouldBlock` if it is locked; those of [`open`].
pub fn reclaim(path: &Path) -> io::Result<DirectFile> {
    let file = DirectFile::open(path, Access::Own)?;
    hold(file.as_file(), path)?;
    Ok(file)
}

/// Locks an existing file of any origin; it must not be written. `None` if there is no regular
/// file.
///
/// # Errors
/// `WouldBlock` if it is locked.
pub fn hold_existing(path: &Path) -> io::Result<Option<File>> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Ok(None),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut options = OpenOptions::new();
    // Some file systems lock only writable descriptors.
    let opened = open_regular(path, options.read(true).write(true), OFlags::NOFOLLOW)
        .or_else(|_| open_regular(path, options.write(false), OFlags::NOFOLLOW));
    let (file, _) = match opened {
        // Its owner has just renamed or removed it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    hold(&file, path)?;
    Ok(Some(file))
}

/// Replaces a file that is locked here by a new, locked file.
///
/// # Errors
/// `WouldBlock` if another process replaced it in between.
pub fn replace_held(path: &Path, held: Option<File>) -> io::Result<DirectFile> {
    remove(path)?;
    drop(held);
    create_held(path)
}

/// Removes whatever has this name, unless it is locked.
///
/// # Errors
/// `WouldBlock` if it is.
pub fn remove_unheld(path: &Path) -> io::Result<()> {
    match hold_existing(path)? {
        Some(_held) => remove(path),
        None => match std::fs::symlink_metadata(path) {
            // Another process has created and locked it since.
            Ok(metadata) if metadata.is_file() => Err(being_made(path)),
            Ok(_) => remove(path),
            // A file created from here on is another process's and must not be removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        },
    }
}

/// How many times, and at what interval, a lock is tried: a process that is being started briefly
/// shares the locks of its parent.
const LOCK_TRIES: u32 = 10;
/// See [`LOCK_TRIES`].
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Locks the file that `path` leads to for this descriptor.
fn hold(file: &File, path: &Path) -> io::Result<()> {
    let mut tries = LOCK_TRIES;
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(rustix::io::Errno::WOULDBLOCK) if tries > 1 => {
                tries -= 1;
                std::thread::sleep(BETWEEN_TRIES);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(being_made(path)),
            Err(error) => return Err(error.into()),
        }
    }
    // The previous owner of the lock may have renamed or removed it meanwhile.
    match is_named(file, path)? {
        true => Ok(()),
        false => Err(being_made(path)),
    }
}

/// Lets readers that lock the file in; it is still claimed by nobody else.
pub fn share(held: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(
        held,
        FlockOperation::NonBlockingLockShared,
    )?)
}

/// Whether another descriptor has locked a file. Asks only: whoever wants the lock meanwhile tries again.
pub fn is_held(path: &Path) -> io::Result<bool> {
    let mut options = OpenOptions::new();
    let file = match open_regular(path, options.read(true), OFlags::NOFOLLOW) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?.0,
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(false),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Opens a file of an earlier run for reading.
///
/// # Errors
/// Also if it is not a regular file, belongs to another user, or has a second hard link.
pub fn open(path: &Path) -> io::Result<File> {
    Ok(open_checked(path, OpenOptions::new().read(true))?.0)
}

/// How often a file that is replaced meanwhile is opened again. Some file systems count no links at all.
const REPLACED_MAX: usize = 100;

/// Opens a file of an earlier run. One that another process replaces before it is checked is opened again.
pub(crate) fn open_checked(path: &Path, options: &mut OpenOptions) -> io::Result<(File, Metadata)> {
    let mut replaced = 0;
    loop {
        let (file, metadata) = open_regular(path, options, OFlags::NOFOLLOW).map_err(explain)?;
        if metadata.nlink() > 0 || replaced == REPLACED_MAX {
            check(&metadata)?;
            return Ok((file, metadata));
        }
        replaced += 1;
    }
}

/// Reads such a file, of at most `bytes_max`.
///
/// # Errors
/// Those of [`open`]; `InvalidData` if it is longer.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let reason = format!("it has more than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(bytes)
}

/// Replaces the content of a file in one step: writes a temporary file, syncs and renames it.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(path, ".new");
    let written = create(&beside)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| directory::replace(&beside, path));
    if written.is_err() {
        // Report the first error.
        let _left = std::fs::remove_file(&beside);
    }
    written
}

/// The path with a suffix appended to its last component.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Refuses a file that may have been planted.
fn check(metadata: &Metadata) -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let reason = if metadata.nlink() != 1 {
        format!(
            "it has {} hard links, but Windlass creates its files with one; someone else may have \
             linked it; remove it",
            metadata.nlink()
        )
    } else if metadata.uid() != user {
        format!(
            "it belongs to user {}, but this program runs as user {user}; run it as that user, or \
             remove the file",
            metadata.uid()
        )
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// Explains the error of `O_NOFOLLOW`.
fn explain(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        let reason = "it is a symbolic link in the place of a file of Windlass; remove it";
        return io::Error::new(io::ErrorKind::PermissionDenied, reason);
    }
    error
}

/// Whether a name is taken, even by a dangling link.
pub fn is_there(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// What SQLite keeps beside a database, and the database itself.
const PARTS_OF_DATABASE: [&str; 4] = ["", "-journal", "-wal", "-shm"];

/// Refuses a FIFO, device or folder in the place of a file that SQLite opens: it would wait for ever, and
/// no signal would end that. Nothing is opened here, because closing would drop this process's locks.
///
/// # Errors
/// `InvalidInput` with the name of the file.
pub fn refuse_special(database: &Path) -> io::Result<()> {
    for part in PARTS_OF_DATABASE {
        let path = beside(database, part);
        match std::fs::metadata(&path) {
            Ok(found) if !found.is_file() => {
                let reason = format!("'{}': {}", path.display(), not_regular(&found));
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
            // Whoever opens it reports it.
            _ => {}
        }
    }
    Ok(())
}

/// The first bytes of every SQLite database.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// Refuses to remove a SQLite database of this name in the belief that an earlier run left it. For files that
/// never are databases themselves.
///
/// # Errors
/// `AlreadyExists`; those of reading it.
pub fn refuse_database(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    // Nothing that a link leads to is ever removed.
    let Ok((file, _)) = open_regular(path, options.read(true), OFlags::NOFOLLOW) else {
        return Ok(());
    };
    let mut head = Vec::with_capacity(SQLITE_MAGIC.len());
    file.take(SQLITE_MAGIC.len() as u64)
        .read_to_end(&mut head)?;
    if head != SQLITE_MAGIC {
        return Ok(());
    }
    let reason = format!(
        "'{}' is a SQLite database under a name for temporary files; rename it",
        path.display()
    );
    Err(io::Error::new(io::ErrorKind::AlreadyExists, reason))
}

/// Refuses a new database at a name beside which SQLite would find a log or a journal: it would apply that
/// to the new file as soon as somebody opens it.
///
/// # Errors
/// `AlreadyExists` with the name of the file.
pub fn refuse_left_log(database: &Path) -> io::Result<()> {
    for part in ["-journal", "-wal"] {
        let path = beside(database, part);
        if is_there(&path) {
            let reason = format!(
                "'{}' exists, and SQLite would apply it to a new database of this name; move it away if \
                 no program needs it, or choose another name",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
        }
    }
    Ok(())
}

/// The same for a database of Windlass itself: neither links nor second names of a file, which would be
/// somebody else's.
///
/// # Errors
/// `InvalidInput` and `PermissionDenied` with the name of the file.
pub fn refuse_planted(database: &Path) -> io::Result<()> {
    refuse_special(database)?;
    for part in PARTS_OF_DATABASE {
        let path = beside(database, part);
        let reason = match std::fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                "it is a symbolic link in the place of a file of Windlass"
            }
            Ok(found) if found.nlink() > 1 => "it has a second name, which Windlass gives no file",
            _ => continue,
        };
        let reason = format!("'{}': {reason}; remove it", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok(())
}

/// The error for anything but a regular file.
pub(crate) fn not_regular(metadata: &Metadata) -> io::Error {
    let reason = format!("it is {}, not a regular file", kind_of(metadata));
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

#[cfg(test)]
mod tests;
