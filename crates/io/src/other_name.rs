//! Other names that a file has: hard links, the place from which it was mounted, and a mounted overlay
//! that shows it.
//!
//! `SQLite` finds the log and the journal of a database beside the name by which it was opened. They
//! stay unseen by whoever uses another name. And a rename gives a file's name to another file; the other
//! names keep the old one, and a mount point cannot be renamed at all.
//!
//! Source: proc(5), `/proc/PID/mountinfo` and `/proc/PID/fdinfo`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxAttributes, StatxFlags};

use crate::{FileIdentity, directory};

/// How else a file can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherName {
    /// It is itself a mount point: its folder here is not the one it was made in.
    Mount,
    /// It is in the written layer of an overlay that is mounted, as those of containers are: programs use it by the
    /// mount's name, and locks taken there are not seen here.
    Layer,
    /// It has this many hard links.
    Links(u64),
}

impl fmt::Display for OtherName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mount => f.write_str(
                "is itself a mount point (as with docker -v FILE:FILE), so that its folder here is \
                 not the one it was made in",
            ),
            Self::Layer => f.write_str(
                "is in a layer of a mounted overlay (as that of a container), where the locks of the \
                 programs that use the mount are not seen",
            ),
            Self::Links(links) => write!(f, "has {links} names (hard links)"),
        }
    }
}

/// How else the file at `path` can be reached. `None` if it cannot, or if there is no file. The last
/// component of `path` is not followed if it is a symbolic link.
///
/// # Errors
/// Those of examining it.
pub fn of(path: &Path) -> io::Result<Option<OtherName>> {
    let file = match std::fs::symlink_metadata(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let folder = std::fs::canonicalize(directory::parent(path))?;
    let path = folder.join(path.file_name().unwrap_or_default());
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    if is_mounted(&path, file.dev(), &table) {
        return Ok(Some(OtherName::Mount));
    }
    if is_in_layer(&path, &table) {
        return Ok(Some(OtherName::Layer));
    }
    let links = file.nlink();
    Ok((file.is_file() && links > 1).then_some(OtherName::Links(links)))
}

/// Whether the file is a mount point that shows a file of another folder or name.
fn is_mounted(path: &Path, device: u64, table: &[u8]) -> bool {
    let folder = directory::parent(path);
    match (mount_line(path, table), mount_line(&folder, table)) {
        (Some(file), Some(folder)) if file.id == folder.id => false,
        (Some(file), Some(folder)) => !folder.shows(path, &file),
        // No /proc.
        _ => is_mount_root(path).unwrap_or_else(|| {
            std::fs::metadata(&folder).is_ok_and(|folder| folder.dev() != device)
        }),
    }
}

/// Whether a folder above the file is the layer that a mounted overlay writes to, by whatever name. Lower layers
/// are never written through the mount.
fn is_in_layer(path: &Path, table: &[u8]) -> bool {
    let lines = table.split(|byte| *byte == b'\n');
    let layers: Vec<(PathBuf, MountLine)> = lines.filter_map(written_layer).collect();
    let (absolute, relative): (Vec<_>, Vec<_>) =
        layers.iter().partition(|(layer, _)| layer.is_absolute());
    let written: Vec<_> = absolute
        .into_iter()
        .filter_map(|(layer, _)| FileIdentity::at(layer))
        .collect();
    let mut above = path.ancestors().skip(1).filter_map(FileIdentity::at);
    if !written.is_empty() && above.any(|folder| written.contains(&folder)) {
        return true;
    }
    let mut relative = relative.into_iter();
    relative.any(|(layer, overlay)| may_be_in(path, layer, overlay, table))
}

/// Whether a file may be in a layer of an overlay whose name is relative to a folder that nobody knows any more:
/// by its name, or because the overlay shows a file like it.
fn may_be_in(path: &Path, layer: &Path, overlay: &MountLine, table: &[u8]) -> bool {
    let mount = mount_line(path, table);
    if mount
        .as_ref()
        .is_some_and(|mount| mount.device == overlay.device)
    {
        return false;
    }
    let point = Path::new(OsStr::from_bytes(&overlay.point));
    let mut own = vec![path.to_owned()];
    // The layer, or a folder in it, may be mounted here as well.
    own.extend(mount.and_then(|mount| mount.inside(path)));
    let is_up = |part: &Component<'_>| *part == Component::ParentDir;
    let rest = layer.components().collect::<Vec<_>>();
    let named = rest.rsplit(is_up).next().unwrap_or_default();
    let named: PathBuf = named
        .iter()
        .filter(|part| **part != Component::CurDir)
        .collect();
    let mut above = own.iter().flat_map(|own| own.ancestors().skip(1));
    if above.any(|folder| folder.ends_with(&named)) {
        return true;
    }
    let looks = |path: &Path| {
        let found = std::fs::metadata(path)?;
        let times = (
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec(),
        );
        io::Result::Ok((found.len(), found.mode(), times))
    };
    let shows = |below: &Path| {
        // Whoever writes to the file changes it between two looks.
        (0..3).any(|_| matches!((looks(path), looks(&point.join(below))), (Ok(a), Ok(b)) if a == b))
    };
    let mut below = own.iter().flat_map(|own| {
        let above = own.ancestors().skip(1);
        above.filter_map(|folder| own.strip_prefix(folder).ok())
    });
    looks(point).is_err() || below.any(shows)
}

/// The upper layer of an overlay, as its line in the table of mounts names it, and that line.
fn written_layer(line: &[u8]) -> Option<(PathBuf, MountLine)> {
    let separator = b" - overlay ";
    line.windows(separator.len())
        .find(|part| part == separator)?;
    let options = line.rsplit(|byte| *byte == b' ').next()?;
    let mut options = options.split(|byte| *byte == b',');
    let upper = options.find_map(|option| option.strip_prefix(b"upperdir="))?;
    let upper = PathBuf::from(OsString::from_vec(unescaped(upper)));
    Some((upper, MountLine::parse(line)?))
}

/// What the kernel says since Linux 5.8.
fn is_mount_root(path: &Path) -> Option<bool> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let found = rustix::fs::statx(CWD, path, flags, StatxFlags::TYPE).ok()?;
    let is_known = (found.stx_attributes_mask).contains(StatxAttributes::MOUNT_ROOT);
    is_known.then(|| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// A line of the table of mounts.
#[derive(Debug, PartialEq, Eq)]
struct MountLine {
    id: String,
    device: String,
    /// What of the file system is mounted.
    root: Vec<u8>,
    /// Where.
    point: Vec<u8>,
}

impl MountLine {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == b' ');
        let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
        let (id, _parent) = (text(words.next()?), words.next()?);
        Some(Self {
            id,
            device: text(words.next()?),
            root: unescaped(words.next()?),
            point: unescaped(words.next()?),
        })
    }

    /// The path of a file below the mount in its file system.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        let point = Path::new(OsStr::from_bytes(&self.point));
        let root = Path::new(OsStr::from_bytes(&self.root));
        Some(root.join(path.strip_prefix(point).ok()?))
    }

    /// Whether `path` would be that mounted file if the mount were not there: a mount of a file onto
    /// itself.
    fn shows(&self, path: &Path, file: &Self) -> bool {
        let path = path.as_os_str().as_bytes();
        let point = self.point.strip_suffix(b"/").unwrap_or(&self.point);
        let root = self.root.strip_suffix(b"/").unwrap_or(&self.root);
        let Some(below) = path.strip_prefix(point) else {
            return false;
        };
        self.device == file.device && [root, below].concat() == file.root
    }
}

/// The line of the mount that `path` lies in.
fn mount_line(path: &Path, table: &[u8]) -> Option<MountLine> {
    // A descriptor of this kind opens nothing: closing it drops no lock.
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let known = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()));
    let known = known.ok()?;
    let mut lines = known.lines();
    let id = lines.find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
    let mut mounts = table.split(|byte| *byte == b'\n');
    mounts.find_map(|line| MountLine::parse(line).filter(|mount| mount.id == id))
}

/// Replaces `\040` and the like.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| *first == b'\\');
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_link_is_another_name_and_a_file_of_its_own_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("a.db");
        assert_eq!(of(&path).unwrap(), None);
        std::fs::write(&path, "a").unwrap();
        assert_eq!(of(&path).unwrap(), None);
        std::fs::hard_link(&path, folder.path().join("b.db")).unwrap();
        assert_eq!(of(&path).unwrap(), Some(OtherName::Links(2)));
        assert_eq!(is_mount_root(&path), Some(false));
    }

    #[test]
    fn a_file_in_the_written_layer_of_an_overlay_has_another_name_however_that_is_reached() {
        let folder = tempfile::tempdir().unwrap();
        let layer = folder.path().join("my layer");
        std::fs::create_dir_all(layer.join("data")).unwrap();
        std::os::unix::fs::symlink(&layer, folder.path().join("link")).unwrap();
        let table = format!(
            "30 29 254:0 / / rw - ext4 /dev/vda rw\n31 29 0:40 / /c/merged rw - overlay overlay \
             rw,lowerdir=/:/usr,upperdir={}/link,workdir=/c/1/work,index=off\n",
            folder.path().display()
        );
        for (inside, is_in) in [
            ("my layer/s.db", true),
            ("my layer/data/s.db", true),
            ("s.db", false),
        ] {
            let path = folder.path().join(inside);
            assert_eq!(is_in_layer(&path, table.as_bytes()), is_in, "{inside}");
        }
        let line = b"31 29 0:40 / /m rw - overlay o rw,lowerdir=a,upperdir=/my\\040up,workdir=w";
        let (layer, overlay) = written_layer(line).unwrap();
        assert_eq!(
            (layer, &*overlay.point),
            (PathBuf::from("/my up"), &b"/m"[..])
        );
    }

    #[test]
    fn a_file_that_may_be_in_a_written_layer_of_a_relative_name_has_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for made in ["c/up/data", "link/data", "merged/data", "other/data"] {
            std::fs::create_dir_all(path(made)).unwrap();
        }
        for file in ["c/up/data/s.db", "link/data/s.db", "other/data/s.db"] {
            std::fs::write(path(file), file).unwrap();
        }
        // What the overlay shows of a layer whose name says nothing.
        std::fs::hard_link(path("link/data/s.db"), path("merged/data/s.db")).unwrap();
        let table = |upper: &str, point: &str| {
            let point = path(point);
            let point = point.display();
            format!("31 29 0:40 / {point} rw - overlay o rw,lowerdir=a,upperdir={upper},workdir=w")
        };
        for (upper, file, may_be) in [
            ("up", "c/up/data/s.db", true),
            ("../c/./up", "c/up/data/s.db", true),
            ("up", "link/data/s.db", true),
            ("up", "other/data/s.db", false),
        ] {
            let table = table(upper, "merged");
            let found = is_in_layer(&path(file), table.as_bytes());
            assert_eq!(found, may_be, "{upper} {file}");
        }
        let unseen = table("up", "gone");
        assert!(is_in_layer(&path("other/data/s.db"), unseen.as_bytes()));
    }

    #[test]
    fn a_file_mounted_onto_itself_is_the_one_beside_its_log() {
        let line = |text: &[u8]| MountLine::parse(text).unwrap();
        let folder = line(b"30 29 254:0 /vol /srv/my\\040data rw - ext4 /dev/vda rw");
        let itself = line(b"31 30 254:0 /vol/x/a.db /srv/my\\040data/x/a.db ro - ext4 /dev/vda rw");
        let path = Path::new("/srv/my data/x/a.db");
        assert!(folder.shows(path, &itself));
        for other in [
            &b"31 30 254:0 /vol/a.db /srv/my\\040data/x/a.db ro - ext4 /dev/vda rw"[..],
            b"31 30 254:1 /vol/x/a.db /srv/my\\040data/x/a.db ro - ext4 /dev/vdb rw",
            b"31 30 254:0 /vol/x/a.db//deleted /srv/my\\040data/x/a.db ro - ext4 /dev/vda rw",
        ] {
            assert!(!folder.shows(path, &line(other)));
        }
        let root = line(b"29 1 254:0 / / rw - ext4 /dev/vda rw");
        let mounted = line(b"31 29 254:0 /a.db /a.db rw - ext4 /dev/vda rw");
        assert!(root.shows(Path::new("/a.db"), &mounted));
        assert!(MountLine::parse(b"").is_none());
        assert_eq!(unescaped(b"\\134\\"), b"\\\\");
    }
}
