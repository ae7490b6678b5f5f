//! The configuration of a set: the `MQCI` stream with the database, its filegroups and its files.

use windlass_base::{Guid, Lsn, Moment};

use crate::error::Damage;
use crate::fields::Fields;

/// Bytes of tag and length before every sub-block.
const SUB_BLOCK_HEADER_BYTES: usize = 8;

/// Bytes of the database sub-block that every version since 2005 has.
const DATABASE_BYTES_MIN: usize = 0x158;

/// Bytes of the file sub-block that every version since 2005 has.
const FILE_BYTES_MIN: usize = 0x11C;

/// Maximum number of files in a database.
const FILES_MAX: usize = 32767;

/// The type of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupType {
    /// A whole database.
    Database,
    Log,
    File,
    /// Changes of a database.
    Differential,
    /// Changes of files.
    DifferentialFile,
    /// Part of a database.
    Partial,
    /// Changes of a part of a database.
    DifferentialPartial,
    /// An unknown letter.
    Unknown(u8),
}

impl BackupType {
    fn from_letter(letter: u8) -> Self {
        match letter {
            b'D' => Self::Database,
            b'L' => Self::Log,
            b'F' => Self::File,
            b'I' => Self::Differential,
            b'G' => Self::DifferentialFile,
            b'P' => Self::Partial,
            b'Q' => Self::DifferentialPartial,
            other => Self::Unknown(other),
        }
    }

    /// The number in the column `BackupType`.
    pub fn number(self) -> Option<u8> {
        match self {
            Self::Database => Some(1),
            Self::Log => Some(2),
            Self::File => Some(4),
            Self::Differential => Some(5),
            Self::DifferentialFile => Some(6),
            Self::Partial => Some(7),
            Self::DifferentialPartial => Some(8),
            Self::Unknown(_) => None,
        }
    }

    /// Its text in result sets.
    pub fn description(self) -> &'static str {
        match self {
            Self::Database => "Database",
            Self::Log => "Transaction Log",
            Self::File => "File",
            Self::Differential => "Database Differential",
            Self::DifferentialFile => "File Differential",
            Self::Partial => "Partial",
            Self::DifferentialPartial => "Partial Differential",
            Self::Unknown(_) => "Unknown",
        }
    }

    /// Whether it is based on a full backup.
    pub fn is_differential(self) -> bool {
        matches!(
            self,
            Self::Differential | Self::DifferentialFile | Self::DifferentialPartial
        )
    }
}

/// The database at the time of the backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// Bits: 0x10 backup checksums, 0x400 copy only, 0x800 differential.
    pub flags: u32,
    /// Version of the server.
    pub version: (u8, u8, u16),
    pub backup_type: BackupType,
    /// First LSN of its log.
    pub first_lsn: Lsn,
    /// LSN of the end of its log.
    pub last_lsn: Lsn,
    /// LSN of the checkpoint it starts with.
    pub checkpoint_lsn: Lsn,
    /// Checkpoint of the last full backup before it.
    pub database_backup_lsn: Lsn,
    /// LSN at which the log chain starts.
    pub chain_start_lsn: Lsn,
    /// LSN of the last fork; zero if the database never forked.
    pub fork_point_lsn: Lsn,
    pub differential_base_lsn: Lsn,
    pub differential_base: Guid,
    pub database_created: Option<Moment>,
    pub started: Option<Moment>,
    pub finished: Option<Moment>,
    /// Name of the database.
    pub database: String,
    /// Name of the server.
    pub server: String,
    /// Id of the database on the server.
    pub database_id: u16,
    pub database_version: u16,
    pub compatibility_level: u8,
    pub sort_order: u8,
    pub locale: u32,
    /// Comparison flags of its collation.
    pub comparison_style: u32,
    /// Its collation as in the wire protocol: locale and flags, sort id.
    pub collation: (u32, u8),
    pub status: u32,
    /// `MAXTRANSFERSIZE`.
    pub transfer_bytes: u32,
    /// Size of the backup.
    pub backup_bytes: u64,
    /// Size of the compressed backup; equal to `backup_bytes` if it is not compressed.
    pub compressed_bytes: u64,
    /// Binding id shared by the files of the database.
    pub binding: Guid,
    pub recovery_fork: Guid,
    /// The fork before the last fork point.
    pub previous_fork: Guid,
    pub family: Guid,
    pub file_groups: Vec<FileGroup>,
    /// In the order of the set.
    pub files: Vec<StoredFile>,
}

/// A filegroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileGroup {
    /// Its number: 1 is PRIMARY.
    pub id: u32,
    pub name: String,
    /// Whether it is read-only.
    pub is_read_only: bool,
    pub guid: Guid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Rows.
    Data,
    Log,
    /// A kind that occurs in no sample.
    Other(u32),
}

/// A file of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Bits: 8 growth in percent, 0x40 read-only, 0x80 new differential base.
    pub flags: u32,
    pub id: u16,
    pub kind: FileKind,
    /// Number of its pages in the set.
    pub stored_pages: u32,
    /// Its filegroup; 0 for a log file.
    pub group: u32,
    /// Sector size of the volume it was on.
    pub source_block_bytes: u32,
    pub bytes: u64,
    pub max_bytes: u64,
    pub logical_name: String,
    /// Its path on the server. Never used for writing.
    pub physical_name: String,
    /// LSN at which it was created.
    pub create_lsn: Lsn,
    /// LSN at which it was dropped.
    pub drop_lsn: Lsn,
    pub differential_base_lsn: Lsn,
    /// Set that is its differential base.
    pub differential_base: Guid,
    /// LSN since which it has been read-only.
    pub read_only_lsn: Lsn,
    pub guid: Guid,
    /// Number of its bytes in the set.
    pub stored_bytes: u64,
}

impl StoredFile {
    pub fn is_read_only(&self) -> bool {
        self.flags & 0x40 != 0
    }

    fn read(fields: Fields<'_>) -> Self {
        Self {
            flags: fields.u32(0x08),
            id: fields.u32(0x14) as u16,
            stored_pages: fields.u32(0x18),
            kind: match fields.u32(0x1C) {
                1 => FileKind::Data,
                2 => FileKind::Log,
                other => FileKind::Other(other),
            },
            source_block_bytes: fields.u32(0x20),
            group: fields.u32(0x24),
            bytes: fields.u64(0x28),
            logical_name: fields.text(0x30),
            physical_name: fields.text(0x34),
            max_bytes: fields.u64(0x56),
            create_lsn: fields.lsn(0x8A),
            drop_lsn: fields.lsn(0x94),
            differential_base_lsn: fields.lsn(0x9E),
            differential_base: fields.guid(0xAA),
            guid: fields.guid(0xBA),
            stored_bytes: fields.u64(0xFA),
            read_only_lsn: fields.lsn(0x112),
        }
    }
}

impl Configuration {
    /// Reads the stream.
    pub(crate) fn read(stream: &[u8]) -> Result<Self, Damage> {
        let mut rest = stream;
        let mut database = None;
        let mut file_groups = Vec::new();
        let mut files = Vec::new();
        while rest.len() >= SUB_BLOCK_HEADER_BYTES {
            let length = Fields(rest).u32(4) as usize;
            let Some((block, behind)) = rest
                .split_at_checked(length)
                .filter(|_| length >= SUB_BLOCK_HEADER_BYTES)
            else {
                return Err(damaged("a block of the configuration", length));
            };
            let fields = Fields(block);
            match &fields.array(0) {
                b"SCIN" if length >= DATABASE_BYTES_MIN && database.is_none() => {
                    database = Some(Self::read_database(fields));
                }
                b"SFGI" => file_groups.push(FileGroup {
                    id: fields.u32(0x0C),
                    name: fields.text(0x10),
                    is_read_only: fields.u32(0x08) & 8 != 0,
                    guid: fields.guid(0x18),
                }),
                b"SFIN" if length >= FILE_BYTES_MIN => files.push(StoredFile::read(fields)),
                _ => return Err(damaged("a block of the configuration", length)),
            }
            rest = behind;
        }
        let is_whole = rest.is_empty() && files.len() <= FILES_MAX;
        let database = database.filter(|_| is_whole);
        let database = database.ok_or_else(|| damaged("the configuration", stream.len()))?;
        Ok(Self {
            file_groups,
            files,
            ..database
        })
    }

    fn read_database(fields: Fields<'_>) -> Self {
        Self {
            flags: fields.u32(0x08),
            version: (fields.u8(0x1B), fields.u8(0x1A), fields.u16(0x18)),
            first_lsn: fields.lsn(0x20),
            last_lsn: fields.lsn(0x2A),
            checkpoint_lsn: fields.lsn(0x34),
            database_backup_lsn: fields.lsn(0x3E),
            database_created: fields.moment(0x48),
            started: fields.moment(0x4D),
            finished: fields.moment(0x52),
            backup_type: BackupType::from_letter(fields.u8(0x57)),
            sort_order: fields.u8(0x58),
            compatibility_level: fields.u8(0x5B),
            database_id: fields.u16(0x5C),
            database_version: fields.u16(0x5E),
            backup_bytes: fields.u64(0x60),
            database: fields.text(0x68),
            server: fields.text(0x6C),
            locale: fields.u32(0x74),
            comparison_style: fields.u32(0x78),
            binding: fields.guid(0x7C),
            recovery_fork: fields.guid(0x9C),
            fork_point_lsn: fields.lsn(0xAC),
            previous_fork: fields.guid(0xB8),
            collation: (fields.u32(0xD8), fields.u8(0xDC)),
            family: fields.guid(0xE0),
            transfer_bytes: fields.u32(0xF0),
            status: fields.u32(0xF4),
            chain_start_lsn: fields.lsn(0xF8),
            differential_base_lsn: fields.lsn(0x104),
            differential_base: fields.guid(0x110),
            // SQL Server 2005 ends its fixed part here.
            compressed_bytes: if fields.u8(0x1B) >= 10 {
                fields.u64(0x158)
            } else {
                fields.u64(0x60)
            },
            file_groups: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Whether the set was made WITH CHECKSUM.
    pub fn has_checksums(&self) -> bool {
        self.flags & 0x10 != 0
    }

    pub fn is_copy_only(&self) -> bool {
        self.flags & 0x400 != 0
    }

    /// The first fork of the set; it differs from the last one if the database forked during the
    /// backup.
    pub fn first_recovery_fork(&self) -> Guid {
        let forked = self.fork_point_lsn != Lsn::default()
            && (self.first_lsn..=self.last_lsn).contains(&self.fork_point_lsn);
        if forked {
            self.previous_fork
        } else {
            self.recovery_fork
        }
    }

    /// The name of the recovery model.
    pub fn recovery_model(&self) -> &'static str {
        match (self.status & 8 != 0, self.status & 4 != 0) {
            (true, _) => "SIMPLE",
            (_, true) => "BULK-LOGGED",
            _ => "FULL",
        }
    }

    /// The numbers of the data files, ascending.
    pub fn data_files(&self) -> Vec<u16> {
        let data = self.files.iter().filter(|file| file.kind == FileKind::Data);
        let mut data: Vec<u16> = data.map(|file| file.id).collect();
        data.sort_unstable();
        data.dedup();
        data
    }
}

fn damaged(what: &'static str, length: usize) -> Damage {
    Damage::Length {
        what,
        found: length as u64,
    }
}
