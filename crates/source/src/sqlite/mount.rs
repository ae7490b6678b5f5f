//! The mount of a database's file, and what it proves.
//!
//! `statvfs` reports a read-only *mount*; others can write to the same file system through another
//! one. `/proc/self/mountinfo` has both: the options of the mount and those of its file system.
//!
//! Source: proc(5), "/proc/[pid]/mountinfo" and "/proc/[pid]/fdinfo".

use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// A mount and its file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// Kind of the file system: `ext4`, `nfs4`.
    pub(super) kind: String,
    /// No process can write through this mount.
    pub(super) is_read_only: bool,
    /// No process on this machine can write to the file system, through any mount.
    pub(super) is_medium_read_only: bool,
}

/// File systems of which this kernel sees every change: times and locks of their files are
/// reliable. Network and FUSE file systems are not among them.
const LOCAL: [&str; 28] = [
    "bcachefs", "btrfs", "cramfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hfsplus",
    "iso9660", "jffs2", "jfs", "minix", "msdos", "nilfs2", "ntfs3", "overlay", "ramfs", "reiserfs",
    "romfs", "squashfs", "tmpfs", "ubifs", "udf", "vfat", "xfs", "zfs",
];

/// File systems that store files in memory.
const IN_MEMORY: [&str; 2] = ["ramfs", "tmpfs"];

impl Mount {
    /// The mount of `path`; `None` if the system does not say.
    pub(super) fn of(path: &Path) -> Option<Self> {
        // A descriptor of this kind opens nothing: closing it drops no lock.
        let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let known = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()));
        let known = known.ok()?;
        let id = known
            .lines()
            .find_map(|line| line.strip_prefix("mnt_id:"))?
            .trim();
        let table = std::fs::read("/proc/self/mountinfo").ok()?;
        let table = String::from_utf8_lossy(&table);
        let line = table
            .lines()
            .find(|line| line.split(' ').next() == Some(id))?;
        Self::parse(line)
    }

    fn parse(line: &str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let options = mount.split(' ').nth(5)?;
        let mut file_system = file_system.split(' ');
        let kind = file_system.next()?.to_owned();
        let medium_options = file_system.nth(1)?;
        let is_medium_read_only = has(medium_options, "ro");
        Some(Self {
            kind,
            is_read_only: is_medium_read_only || has(options, "ro"),
            is_medium_read_only,
        })
    }

    /// Whether this kernel sees every change of a file.
    pub(super) fn is_local(&self) -> bool {
        LOCAL.contains(&self.kind.as_str())
    }

    /// Whether files are stored in memory.
    pub(super) fn is_in_memory(&self) -> bool {
        IN_MEMORY.contains(&self.kind.as_str())
    }

    /// Whether the file system cannot change at all.
    pub(super) fn is_unchanging(&self) -> bool {
        self.is_local() && self.is_medium_read_only
    }
}

fn has(options: &str, option: &str) -> bool {
    options.split(',').any(|one| one == option)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> (bool, bool, bool) {
        let mount = Mount::parse(line).unwrap();
        (
            mount.is_local(),
            mount.is_read_only,
            mount.is_medium_read_only,
        )
    }

    #[test]
    fn the_options_of_a_mount_are_not_those_of_its_file_system() {
        let bind = "41 29 254:0 /data /mnt/a\\040b ro,relatime shared:1 master:2 - ext4 /dev/vda rw,errors=remount-ro";
        assert_eq!(parsed(bind), (true, true, false));
        let disc = "42 29 7:0 / /cd ro,relatime - iso9660 /dev/loop0 ro,nojoliet";
        assert_eq!(parsed(disc), (true, true, true));
        let disk = "43 29 254:0 / / rw,relatime - ext4 /dev/vda rw";
        assert_eq!(parsed(disk), (true, false, false));
    }

    #[test]
    fn what_is_read_only_here_may_be_written_on_a_server() {
        let share = "44 29 0:50 / /srv ro,relatime - nfs4 server:/export ro,vers=4.2";
        assert_eq!(parsed(share), (false, true, true));
        assert!(!Mount::parse(share).unwrap().is_unchanging());
        assert!(Mount::parse("44 29 0:50 / /srv").is_none());
    }

    #[test]
    fn the_mount_of_a_folder_is_found() {
        let mount = Mount::of(Path::new("/proc/self")).unwrap();
        assert_eq!(mount.kind, "proc");
        assert!(!mount.is_local());
    }
}
