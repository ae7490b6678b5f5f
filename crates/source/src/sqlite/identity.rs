//! Identities of a database file, across backup and restore.
//!
//! `SQLite` stores no identity in a database. A restore writes two extended attributes to its file;
//! `SQLite` preserves them. A file without them gets identities that are a pure function of the
//! machine and the file's path, so that a backup identifies it the same way every time without
//! writing to it. A machine without an identity of its own is replaced by the file itself: its inode and when it
//! was created. Such is a container without `/etc/machine-id`, or with that of its image, which all containers from
//! it share. Cloned machines share their identity, so what is derived from it ([`Guid::is_named`]) proves nothing
//! across machines.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::str::FromStr;
use std::time::SystemTime;

use rustix::fs::XattrFlags;
use windlass_base::{Guid, Lsn, Moment};

use crate::Position;

const FAMILY_ATTRIBUTE: &str = "user.windlass.family_guid";
const DATABASE_ATTRIBUTE: &str = "user.windlass.database_guid";

const MACHINE_ID: &str = "/etc/machine-id";

/// Namespace of the identities derived from machine and path. Chosen once at random.
const SPACE: [u8; 16] = [
    0x6E, 0x1B, 0x8D, 0x52, 0x09, 0xC7, 0x4A, 0x43, 0x9F, 0x60, 0xD4, 0x1E, 0x35, 0x7A, 0xE8, 0x2C,
];

/// The two identities of a database file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// Of the database and everything restored from its backups.
    pub family_guid: Guid,
    pub database_guid: Guid,
}

impl FileIdentity {
    /// Reads the identities of the database at `path`, or derives them if they were never written.
    ///
    /// Opens nothing, so it is safe for databases in use; `path` must be absolute and free of links
    /// for a stable result.
    pub fn of(path: &Path) -> Self {
        let named = |space: Guid, name: &[u8]| match machine(Path::new(MACHINE_ID)) {
            Some(_) => Guid::named(space, name),
            None => Guid::named(space, name).custom(),
        };
        let family_guid = attribute(path, FAMILY_ATTRIBUTE).unwrap_or_else(|| {
            let machine = machine(Path::new(MACHINE_ID)).unwrap_or_else(|| file_itself(path));
            let machine = Guid::named(Guid::from_stored(SPACE), &machine);
            named(machine, path.as_os_str().as_encoded_bytes())
        });
        let database_guid =
            attribute(path, DATABASE_ATTRIBUTE).unwrap_or_else(|| named(family_guid, b"database"));
        Self {
            family_guid,
            database_guid,
        }
    }

    /// The family that a restore wrote to a file; `None` if none did, or the attributes are lost.
    pub fn recorded_family(path: &Path) -> Option<Guid> {
        attribute(path, FAMILY_ATTRIBUTE)
    }

    /// Writes both to a file. A file system without extended attributes is not an error: the
    /// database then has the identities of its path.
    pub(super) fn record(self, file: &File) -> std::io::Result<()> {
        for (name, guid) in [
            (FAMILY_ATTRIBUTE, self.family_guid),
            (DATABASE_ATTRIBUTE, self.database_guid),
        ] {
            let text = guid.to_string();
            match rustix::fs::fsetxattr(file, name, text.as_bytes(), XattrFlags::empty()) {
                Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// File systems that containers see as the layers of their image.
const OF_IMAGES: [u32; 2] = [0x794c_7630, 0x6573_5546];

/// Whether a file is part of a container's image: one that the host mounted there is on the host's file system.
fn is_in_image(file: &Path) -> bool {
    let found = rustix::fs::statfs(file);
    found.is_ok_and(|found| u32::try_from(found.f_type).is_ok_and(|kind| OF_IMAGES.contains(&kind)))
}

/// The identity of the machine; `None` if it has none, or not yet.
fn machine(file: &Path) -> Option<Vec<u8>> {
    if is_in_image(file) {
        return None;
    }
    let content = std::fs::read(file).ok()?;
    let id = content.trim_ascii();
    (!id.is_empty() && id != b"uninitialized").then(|| id.to_vec())
}

/// What tells a file from others of the same path on machines without an identity.
fn file_itself(path: &Path) -> Vec<u8> {
    let Ok(metadata) = std::fs::metadata(path) else {
        return Vec::new();
    };
    let created = metadata.created().ok();
    let created = created.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let nanoseconds = created.unwrap_or_default().as_nanos();
    [
        metadata.ino().to_le_bytes().as_slice(),
        &nanoseconds.to_le_bytes(),
    ]
    .concat()
}

fn attribute(path: &Path, name: &str) -> Option<Guid> {
    let mut text = [0_u8; 36];
    let bytes = rustix::fs::getxattr(path, name, &mut text).ok()?;
    let text = std::str::from_utf8(text.get(..bytes)?).ok()?;
    Guid::from_str(text).ok()
}

/// Resolution of a position: the second of the Unix clock is the virtual log file, the
/// 512-nanosecond tick within it is the block.
const TICK_NANOSECONDS: u32 = 512;
const TICKS_PER_SECOND: u32 = 1_000_000_000 / TICK_NANOSECONDS;

/// Derives a position from the moment at which a snapshot was pinned, because a `SQLite` file has
/// no LSNs: strictly after `after`, even if the clock was set back.
///
/// First and checkpoint LSN are the moment in slot 1; the last LSN is one slot later.
pub(super) fn position_at(moment: SystemTime, after: Lsn) -> Position {
    let elapsed = moment
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let now = Lsn {
        vlf: u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX),
        block: elapsed.subsec_nanos() / TICK_NANOSECONDS,
        slot: 1,
    };
    let checkpoint = if now > after { now } else { next_tick(after) };
    let last_lsn = Lsn {
        slot: checkpoint.slot + 1,
        ..checkpoint
    };
    Position {
        first_lsn: checkpoint,
        last_lsn,
        checkpoint_lsn: checkpoint,
    }
}

fn next_tick(after: Lsn) -> Lsn {
    if after.block < TICKS_PER_SECOND {
        Lsn {
            vlf: after.vlf,
            block: after.block + 1,
            slot: 1,
        }
    } else {
        Lsn {
            vlf: after.vlf.saturating_add(1),
            block: 0,
            slot: 1,
        }
    }
}

/// When the file was created, in local time, if the file system knows.
pub(crate) fn created(path: &Path) -> Option<Moment> {
    let born = std::fs::metadata(path).ok()?.created().ok()?;
    Moment::of_system_time(born)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn machines_without_an_identity_are_told_apart_by_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        for (content, expected) in [
            ("", None),
            ("\n", None),
            ("uninitialized\n", None),
            ("0123abcd\n", Some(b"0123abcd".to_vec())),
        ] {
            std::fs::write(&one, content).unwrap();
            assert_eq!(machine(&one), expected, "{content:?}");
        }
        assert_eq!(machine(&folder.path().join("missing")), None);
        std::fs::write(&other, "").unwrap();
        assert_eq!(file_itself(&one), file_itself(&one));
        assert_ne!(file_itself(&one), file_itself(&other));
    }

    #[test]
    fn positions_grow_even_when_the_clock_does_not() {
        let moment = SystemTime::UNIX_EPOCH + Duration::new(1_800_000_000, 5120);
        let first = position_at(moment, Lsn::ZERO);
        assert_eq!(format!("{:#}", first.checkpoint_lsn), "1800000000:10:1");
        assert_eq!(format!("{:#}", first.last_lsn), "1800000000:10:2");
        let mut last = first.last_lsn;
        for _ in 0..5 {
            let next = position_at(moment - Duration::from_secs(3600), last);
            assert!(next.checkpoint_lsn > last);
            last = next.last_lsn;
        }
        let at_the_end = Lsn {
            vlf: 7,
            block: TICKS_PER_SECOND,
            slot: 2,
        };
        assert_eq!(
            next_tick(at_the_end),
            Lsn {
                vlf: 8,
                block: 0,
                slot: 1
            }
        );
    }

    #[test]
    fn an_identity_is_derived_until_one_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("who.db");
        let file = File::create(&path).unwrap();
        let derived = FileIdentity::of(&path);
        assert_eq!(
            FileIdentity::of(&path),
            derived,
            "nothing but the path decides"
        );
        assert_ne!(FileIdentity::of(&folder.path().join("other.db")), derived);
        let given = FileIdentity {
            family_guid: Guid::random(),
            database_guid: Guid::random(),
        };
        given.record(&file).unwrap();
        let found = FileIdentity::of(&path);
        if found == derived {
            println!(
                "SKIPPED: no extended attributes in {}",
                folder.path().display()
            );
        } else {
            assert_eq!(found, given);
        }
    }
}
