//! How the file of a new family gets the name of its device, and how it gives it back.
//!
//! The file is written as `NAME.windlass-new`. Where other files must get their names too, it changes places
//! with the earlier file (`RENAME_EXCHANGE`), which stays under the temporary name until all of them have
//! theirs.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use windlass_io::other_name::{self, OtherName};
use windlass_io::{directory, own, succession};

/// Appended to the name of a device while its new content is written.
pub const STAGING_SUFFIX: &str = ".windlass-new";

/// The name of a device's new content until it is complete.
pub fn staging_path(target: &Path) -> PathBuf {
    own::beside(target, STAGING_SUFFIX)
}

/// A complete file on its way to its name.
#[derive(Debug)]
pub(crate) struct Naming {
    target: PathBuf,
    /// The number of the file that the new one may replace, in its file system.
    earlier: Option<u64>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Staged,
    /// The earlier file, of this number, has the temporary name.
    Exchanged(u64),
    /// There was no earlier file.
    Named,
    /// The earlier file is gone.
    Replaced,
}

impl Naming {
    pub(crate) fn new(target: PathBuf, earlier: Option<u64>) -> Self {
        Self {
            target,
            earlier,
            state: State::Staged,
        }
    }

    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    pub(crate) fn staging(&self) -> PathBuf {
        staging_path(&self.target)
    }

    pub(crate) fn is_staged(&self) -> bool {
        self.state == State::Staged
    }

    /// Where the new content is now.
    pub(crate) fn place(&self) -> PathBuf {
        match self.is_staged() {
            true => self.staging(),
            false => self.target.clone(),
        }
    }

    /// Names the file, durably; keeps the earlier one if `keeps_earlier` and the file system can.
    ///
    /// # Errors
    /// `AlreadyExists` if the name has been given to another file than the earlier one, which stays; those of the
    /// operating system.
    pub(crate) fn take(&mut self, keeps_earlier: bool) -> io::Result<()> {
        let staging = self.staging();
        succession::check(&self.target, self.earlier)?;
        let Some(earlier) = self.earlier.filter(|_| own::is_there(&self.target)) else {
            directory::take_name(&staging, &self.target).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => succession::taken(),
                _ => error,
            })?;
            self.state = State::Named;
            return Ok(());
        };
        self.state = match keeps_earlier && exchange(&staging, &self.target)? {
            true => {
                if let Err(taken) = succession::check(&staging, Some(earlier)) {
                    exchange(&staging, &self.target)?;
                    return Err(taken);
                }
                State::Exchanged(earlier)
            }
            false => {
                std::fs::rename(&staging, &self.target)?;
                State::Replaced
            }
        };
        directory::sync(&directory::parent(&self.target))
    }

    /// Puts the earlier file back, or leaves the name free if there was none.
    ///
    /// # Errors
    /// If the earlier file is gone, or cannot be renamed; the new one keeps the name then.
    pub(crate) fn give_back(&mut self) -> io::Result<()> {
        let staging = self.staging();
        match self.state {
            State::Staged => return Ok(()),
            State::Exchanged(earlier) => {
                let is_earlier = succession::check(&staging, Some(earlier)).is_ok();
                if !is_earlier || !exchange(&staging, &self.target)? {
                    return Err(io::ErrorKind::NotFound.into());
                }
            }
            State::Named => directory::take_name(&self.target, &staging)?,
            State::Replaced => return Err(io::ErrorKind::NotFound.into()),
        }
        self.state = State::Staged;
        directory::sync(&directory::parent(&self.target))
    }

    /// Removes the earlier file.
    pub(crate) fn settle(&self) {
        if let State::Exchanged(_) = self.state {
            // What stays is a complete earlier file, which the next overwrite removes.
            let _left = own::remove_unheld(&self.staging());
        }
    }
}

/// Lets two files change places; `false` if the file system cannot do that.
fn exchange(one: &Path, other: &Path) -> io::Result<bool> {
    #[cfg(test)]
    if tests::CANNOT_EXCHANGE.get() {
        return Ok(false);
    }
    directory::exchange(one, other)
}

/// Refuses a name that cannot be given to another file: a mount point, or another user's file in a folder
/// with the sticky bit.
pub(crate) fn refuse_fixed(target: &Path) -> io::Result<()> {
    if other_name::of(target)? == Some(OtherName::Mount) {
        let reason = "it is itself a mount point, so that no new file can take its name; mount its \
                      folder instead, or append to it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    let Ok(file) = std::fs::symlink_metadata(target) else {
        return Ok(());
    };
    let folder = std::fs::metadata(directory::parent(target))?;
    let user = rustix::process::geteuid();
    let is_sticky = folder.mode() & 0o1000 != 0;
    let owners = [file.uid(), folder.uid()];
    if is_sticky && !user.is_root() && !owners.contains(&user.as_raw()) {
        let reason = format!(
            "it belongs to user {}, in a folder with the sticky bit, where only its owner can give \
             its name to a new file; run as that user, or use another folder",
            file.uid()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    thread_local! {
        /// Lets the file system of a test be one that cannot exchange files.
        pub(crate) static CANNOT_EXCHANGE: Cell<bool> = const { Cell::new(false) };
    }
}
