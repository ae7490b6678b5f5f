//! Texts that this program obeys: settings, whose commands run with this user's rights.
//!
//! Whoever can write to such a file acts as the user who reads it. So it belongs to that user or to root, and
//! nobody else may write to it. The rule is that of `ssh` for its configuration.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::file;

const GROUP_WRITES: u32 = 0o020;

const OTHERS_WRITE: u32 = 0o002;

const ROOT: u32 = 0;

/// Reads a text as [`crate::read_text`] does, if nobody but its reader and root can have written it.
///
/// # Errors
/// Those of [`crate::read_text`]; `PermissionDenied` with the reason for a regular file of another user, one that
/// everybody may write, or one that root reads and a group other than root's may write.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<String> {
    let user = rustix::process::geteuid().as_raw();
    file::read_text_if(path, bytes_max, |metadata| check(metadata, user))
}

fn check(metadata: &Metadata, user: u32) -> io::Result<()> {
    // The devices that are no FIFO, such as /dev/null, are root's to make.
    if !metadata.is_file() {
        return Ok(());
    }
    let reason = refusal(metadata.uid(), metadata.gid(), metadata.mode(), user);
    reason.map_or(Ok(()), |reason| {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
    })
}

/// Why `user` does not obey a file of this owner, group and mode.
fn refusal(owner: u32, group: u32, mode: u32, user: u32) -> Option<String> {
    let only = match user {
        ROOT => "root".to_owned(),
        _ => format!("root or user {user}"),
    };
    if owner != user && owner != ROOT {
        return Some(format!(
            "it belongs to user {owner}, who could run commands as user {user} through it; settings must belong \
             to {only} (chown)"
        ));
    }
    let writer = match mode {
        _ if mode & OTHERS_WRITE != 0 => "everybody".to_owned(),
        _ if mode & GROUP_WRITES != 0 && user == ROOT && group != ROOT => format!("group {group}"),
        _ => return None,
    };
    Some(format!(
        "{writer} may write to it, and could run commands as user {user} through it; only {only} may write to \
         settings (chmod go-w)"
    ))
}

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn settings_belong_to_their_reader_or_root() {
        for (owner, group, mode, user, is_obeyed) in [
            (0, 0, 0o644, 0, true),
            (0, 0, 0o644, 1000, true),
            (1000, 1000, 0o600, 1000, true),
            (1000, 1000, 0o664, 1000, true),
            (0, 0, 0o664, 0, true),
            (1000, 1000, 0o600, 0, false),
            (1001, 1001, 0o644, 1000, false),
            (0, 50, 0o664, 0, false),
            (0, 0, 0o646, 0, false),
            (0, 0, 0o646, 1000, false),
            (1000, 1000, 0o602, 1000, false),
        ] {
            let reason = refusal(owner, group, mode, user);
            assert_eq!(
                reason.is_none(),
                is_obeyed,
                "{owner}:{group} {mode:o} read by {user}: {reason:?}"
            );
        }
    }
}
