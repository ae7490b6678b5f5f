//! The configuration of a backup set: everything in its headers.
//!
//! Stored twice in a set: at its start, as known then, and at its end, with the final values.

use std::collections::HashSet;
use std::num::NonZeroU64;

use windlass_base::{Guid, Lsn, Moment};

use crate::cursor::require_at_most;
use crate::error::MediaError;
use crate::record::{self, Known, Records, Stored, records};
use crate::wal_position::WalPosition;

/// Maximum number of database files in a set.
pub const FILES_MAX: usize = 32_767;

const WHAT: &str = "set configuration";
const FILE_TAG: u16 = 0x0100;

/// A bit for each mandatory record of a database file: tags 1 to 8.
const FILE_TAGS_NEEDED: u32 = 0b1_1111_1110;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum SetType {
    /// A full backup.
    #[default]
    Full = 1,
    /// A log backup.
    Log = 2,
    /// A differential backup.
    Differential = 5,
}

impl SetType {
    /// `BackupType` of RESTORE HEADERONLY.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// In a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Log => "log",
            Self::Differential => "differential",
        }
    }
}

impl Stored for SetType {
    fn store(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [1] => Some(Self::Full),
            [2] => Some(Self::Log),
            [5] => Some(Self::Differential),
            _ => None,
        }
    }
}

/// The kind of database in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum SourceKind {
    /// A SQLite file.
    #[default]
    Sqlite = 1,
    /// A database of the page engine.
    Engine = 2,
    /// A PostgreSQL cluster.
    Postgres = 3,
    /// A backup set of SQL Server.
    SqlServer = 4,
    /// The files of a SQL Server database that is offline.
    SqlServerFiles = 5,
}

impl Stored for SourceKind {
    fn store(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [1] => Some(Self::Sqlite),
            [2] => Some(Self::Engine),
            [3] => Some(Self::Postgres),
            [4] => Some(Self::SqlServer),
            [5] => Some(Self::SqlServerFiles),
            _ => None,
        }
    }
}

/// The permissions of a file: the low 12 bits of POSIX's file mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(u16);

impl FileMode {
    /// The permissions in a mode; ignores its other bits.
    pub fn of(mode: u32) -> Self {
        Self((mode & u32::from(Self::MASK)) as u16)
    }

    /// The 12 bits.
    pub fn bits(self) -> u16 {
        self.0
    }

    const MASK: u16 = 0o7777;
}

impl Stored for Option<FileMode> {
    fn store(&self, out: &mut Vec<u8>) {
        self.map_or(0, FileMode::bits).store(out);
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        let bits = u16::load(bytes)?;
        (bits <= FileMode::MASK).then_some(Some(FileMode(bits)))
    }

    fn is_left_out(&self) -> bool {
        self.is_none()
    }
}

records! {
    DatabaseFile, "database file" {
        /// Number within the database.
        0x01 file_id: u16,
        /// Whether it is a log file; a data file otherwise.
        0x02 is_log: bool,
        /// Name within the database.
        0x03 logical_name: String,
        /// Path on the machine where it was backed up.
        0x04 physical_name: String,
        /// Length in bytes.
        0x05 size_bytes: u64,
        /// Bytes per page.
        0x06 page_bytes: u32,
        /// Number of its bytes in this set.
        0x07 backup_bytes: u64,
        /// Its own identity.
        0x08 file_guid: Guid,
        /// LSN at which it was created.
        0x09 create_lsn: Lsn,
        /// The base of a differential: its LSN.
        0x0A differential_base_lsn: Lsn,
        /// The base of a differential: its set.
        0x0B differential_base_guid: Guid,
        /// Which of its extents are in this set: see [`Held`](crate::Held). Empty if all are; final
        /// only.
        0x0C held: Vec<u8>,
        /// Permissions on the machine where it was backed up: the low 12 bits of POSIX's file mode.
        0x0D mode: Option<FileMode>,
        /// When its file system created it: nanoseconds since 1970, UTC. Tells files of one path apart.
        0x0E created_ns: Option<NonZeroU64>,
    }
}

records! {
    /// A backup set. The columns of RESTORE HEADERONLY correspond to its fields.
    SetConfiguration, "set configuration" {
        /// Identity of the set.
        0x8001 set_guid: Guid,
        /// Position on the media, from 1.
        0x8002 position: u16,
        /// Full, differential or log.
        0x8003 set_type: SetType,
        /// The kind of database.
        0x8004 source_kind: SourceKind,
        /// Whether this is the final configuration.
        0x8005 is_final: bool,
        /// `COPY_ONLY`.
        0x10 is_copy_only: bool,
        /// `NAME`.
        0x11 name: String,
        /// `DESCRIPTION`.
        0x12 description: String,
        /// Login.
        0x13 user: String,
        /// Server.
        0x14 server: String,
        /// Machine.
        0x15 machine: String,
        /// Database.
        0x16 database: String,
        /// Version of the database's own format or product.
        0x17 database_version: u32,
        /// When the database was created.
        0x18 database_created: Option<Moment>,
        /// When the backup started.
        0x19 started: Option<Moment>,
        /// When it was finished; only in the final configuration.
        0x1A finished: Option<Moment>,
        /// The set is protected until then.
        0x1B expires: Option<Moment>,
        /// Offset from UTC in quarter hours.
        0x1C time_zone: i8,
        /// Requested algorithm: 0 none, 1 `MS_XPRESS`, 2 ZSTD, 3 `QAT_DEFLATE`.
        0x20 compression: u8,
        /// Requested level: 0 none, 1 LOW, 2 MEDIUM, 3 HIGH, 4 AUTO.
        0x21 compression_level: u8,
        /// Bytes of the database in a full chunk.
        0x8022 frame_bytes: u32,
        /// First log record that a restore needs.
        0x30 first_lsn: Lsn,
        /// One past the last log record.
        0x31 last_lsn: Lsn,
        /// The checkpoint with which the backup started.
        0x32 checkpoint_lsn: Lsn,
        /// Checkpoint of the last full backup before this one.
        0x33 database_backup_lsn: Lsn,
        /// The base of a differential: its checkpoint.
        0x34 differential_base_lsn: Lsn,
        /// The base of a differential: its set.
        0x35 differential_base_guid: Guid,
        /// Identity of the database that survives restores.
        0x36 family_guid: Guid,
        /// Identity of this copy of the database.
        0x37 database_guid: Guid,
        /// Recovery fork at the end of the set.
        0x38 recovery_fork_guid: Guid,
        /// `SIMPLE` or `FULL`.
        0x39 recovery_model: String,
        /// Bytes per page of the database.
        0x3A page_bytes: u32,
        /// Whether the database was read-only.
        0x3B is_read_only: bool,
        /// `CHECKSUM`: the database's own page checksums were verified.
        0x3C has_checksums: bool,
        /// Damage was found and tolerated.
        0x3D is_damaged: bool,
        /// Results of checks of the content before the copy.
        0x3E seen: Seen,
        /// Of a copy of another program's set: the identity of that set, by which others name it.
        0x3F original_guid: Option<Guid>,
        /// Version of the program: major.
        0x40 software_major: u8,
        /// Version of the program: minor.
        0x41 software_minor: u8,
        /// Version of the program: build.
        0x42 software_build: u16,
        /// Bytes of the database in the set, before compression.
        0x50 backup_bytes: u64,
        /// Bytes of all chunks as stored.
        0x51 stored_bytes: u64,
        /// Chunks in the set, over all families.
        0x52 chunk_count: u64,
        /// Sum over all chunks of [`chunk_mix`](crate::chunk_mix).
        0x53 set_checksum: u64,
        /// Bytes of the database in chunks whose text was narrowed.
        0x54 narrowed_bytes: u64,
        /// The end of an earlier backup of the database, in seconds since 1970, UTC, if that is dated later than this
        /// one began: a clock was wrong.
        0x55 contradicted_until: Option<NonZeroU64>,
        /// The snapshot of a `SQLite` database in WAL mode: its position in the log.
        0x70 wal_position: Option<WalPosition>,
        /// The set's key, wrapped for its recipients; empty if the set is not encrypted.
        0x8060 key_block: Vec<u8>,
        /// Authenticates all other records with the set's key; final only.
        0x8061 authentication: Vec<u8>,
        /// What the source needs, apart from the bytes of its files, to recreate them; final only.
        0x8062 source_description: Vec<u8>,
        /// The digest of the media header and of the start of the set, to which the set is bound;
        /// final only.
        0x8063 binding: Vec<u8>,
        /// BLAKE3 of all chunk headers of each family, in the order of the families; final only, and only of
        /// signed sets.
        0x8064 chunk_headers: Vec<u8>,
        /// The database's files.
        0x8100 files: Vec<DatabaseFile>,
        /// The signature over all previous records, which proves who made the set; final only.
        0x8101 signature: Vec<u8>,
    }
}

/// Results of checks of a database before the copy; usually empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// The content has no SQLite header and was backed up unchanged on request.
    pub is_as_is: bool,
    /// Depth of SQLite's own check: 0 none, 1 `quick_check`, 2 `integrity_check`.
    pub integrity_check: u8,
    /// Number of findings.
    pub integrity_findings: u32,
}

impl Stored for Seen {
    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[u8::from(self.is_as_is), self.integrity_check]);
        out.extend_from_slice(&self.integrity_findings.to_le_bytes());
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        let [is_as_is @ 0..=1, integrity_check, findings @ ..] = *bytes.first_chunk::<6>()? else {
            return None;
        };
        (bytes.len() == 6).then_some(Self {
            is_as_is: is_as_is == 1,
            integrity_check,
            integrity_findings: u32::from_le_bytes(findings),
        })
    }

    fn is_left_out(&self) -> bool {
        *self == Self::default()
    }
}

impl Stored for Vec<DatabaseFile> {
    fn store(&self, out: &mut Vec<u8>) {
        for file in self {
            let mut records = Vec::new();
            file.store_records(&mut records);
            record::put(out, FILE_TAG, &Nested(records));
        }
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        let mut files = Self::new();
        let mut ids = HashSet::new();
        record::each(bytes, 0, WHAT, |tag, bytes| match load_file(bytes) {
            Some(file)
                if tag == FILE_TAG && files.len() < FILES_MAX && ids.insert(file.file_id) =>
            {
                files.push(file);
                Known::Read
            }
            _ => Known::Unreadable,
        })
        .ok()?;
        Some(files)
    }
}

/// One file; `None` if a record is damaged, or a mandatory one is absent. This way the list needs not
/// much more memory than its length.
fn load_file(bytes: &[u8]) -> Option<DatabaseFile> {
    let mut file = DatabaseFile::default();
    let mut present = 0_u32;
    let take = |tag: u16, bytes: &[u8]| {
        present |= 1_u32.checked_shl(tag.into()).unwrap_or(0);
        file.load_record(tag, bytes)
    };
    record::each(bytes, 0, WHAT, take).ok()?;
    (present & FILE_TAGS_NEEDED == FILE_TAGS_NEEDED).then_some(file)
}

/// Records inside a record.
struct Nested(Vec<u8>);

impl Stored for Nested {
    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        Some(Self(bytes.to_vec()))
    }
}

impl SetConfiguration {
    /// The stored form.
    ///
    /// # Errors
    /// If it is longer than readers accept.
    pub(crate) fn emit(&self) -> Result<Vec<u8>, MediaError> {
        let list = self.store_list();
        require_at_most(list.len() as u64, record::LIST_BYTES_MAX, WHAT, 0)?;
        require_at_most(
            self.files.len() as u64,
            FILES_MAX as u64,
            "number of database files",
            0,
        )?;
        Ok(list)
    }

    /// Whether chunks are encrypted.
    pub fn is_encrypted(&self) -> bool {
        !self.key_block.is_empty()
    }

    /// Whether the set has a signature; it may be forged.
    pub fn is_signed(&self) -> bool {
        !self.signature.is_empty()
    }

    /// What [`SetConfiguration::authentication`] authenticates: all records but itself and the signature,
    /// which is made last.
    pub fn authenticated_bytes(&self) -> Vec<u8> {
        let without = Self {
            authentication: Vec::new(),
            ..self.clone()
        };
        without.signed_bytes()
    }

    /// What [`SetConfiguration::signature`] covers: all records but itself.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let without = Self {
            signature: Vec::new(),
            ..self.clone()
        };
        without.store_records(&mut bytes);
        bytes
    }

    /// Reads the stored form, found at `offset` of a family.
    pub(crate) fn parse(list: &[u8], offset: u64) -> Result<Self, MediaError> {
        Self::load_list(list, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_with_files_round_trips() {
        let file = |file_id| DatabaseFile {
            file_id,
            logical_name: format!("file {file_id} \u{e9}"),
            size_bytes: 1 << 40,
            ..DatabaseFile::default()
        };
        let set = SetConfiguration {
            set_guid: Guid::random(),
            position: 3,
            set_type: SetType::Differential,
            name: "nightly".to_owned(),
            started: "2026-11-20 21:00:00".parse().ok(),
            checkpoint_lsn: Lsn {
                vlf: 1,
                block: 2,
                slot: 3,
            },
            set_checksum: u64::MAX,
            seen: Seen {
                is_as_is: true,
                integrity_check: 2,
                integrity_findings: 7,
            },
            files: vec![file(1), file(2)],
            ..SetConfiguration::default()
        };
        let list = set.emit().unwrap();
        assert_eq!(SetConfiguration::parse(&list, 0).unwrap(), set);
        for bit in 0..list.len() * 8 {
            let mut flipped = list.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(SetConfiguration::parse(&flipped, 0).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_file_twice_or_without_what_every_file_has_is_refused() {
        let file = |file_id| DatabaseFile {
            file_id,
            ..DatabaseFile::default()
        };
        let parsed = |files: Vec<DatabaseFile>| {
            let set = SetConfiguration {
                files,
                ..SetConfiguration::default()
            };
            SetConfiguration::parse(&set.emit().unwrap(), 0)
        };
        assert_eq!(parsed(vec![file(1), file(2)]).unwrap().files.len(), 2);
        assert!(parsed(vec![file(1), file(2), file(1)]).is_err());
        let mut all = Vec::new();
        file(3).store_records(&mut all);
        let mut tags = Vec::new();
        record::each(&all, 0, WHAT, |tag, bytes| {
            tags.push((tag, bytes.to_vec()));
            Known::Read
        })
        .unwrap();
        for left_out in 0..tags.len() {
            let mut records = Vec::new();
            for (tag, bytes) in tags
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != left_out)
                .map(|one| one.1)
            {
                record::put(&mut records, *tag, &Nested(bytes.clone()));
            }
            let mut list = Vec::new();
            record::put(&mut list, FILE_TAG, &Nested(records));
            let is_needed = tags[left_out].0 <= 8;
            assert_eq!(
                Vec::<DatabaseFile>::load(&list).is_none(),
                is_needed,
                "{left_out}"
            );
        }
        assert!(
            Vec::<DatabaseFile>::load(&[0, 1, 0, 0, 0, 0]).is_none(),
            "an empty record"
        );
    }
}
