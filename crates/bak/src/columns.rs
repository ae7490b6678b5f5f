//! The result sets of LABELONLY, HEADERONLY and FILELISTONLY, with SQL Server's column names and
//! order.

use windlass_base::{Guid, Lsn, Moment};
use windlass_codec::Algorithm;

use crate::collation;
use crate::listing::{Listing, SetListing};
use crate::mtf::configuration::{BackupType, Configuration, FileKind, StoredFile};
use crate::mtf::media::MediaHeader;

/// `DeviceType` of a file.
const DEVICE_TYPE_DISK: i64 = 2;

/// `SoftwareVendorId` of SQL Server.
const VENDOR: i64 = 4608;

const STATUS_READ_ONLY: u32 = 0x400;
const STATUS_SINGLE_USER: u32 = 0x1000;

/// A value of a result set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// `NULL`
    Null,
    /// `bit`
    Bit(bool),
    Integer(i64),
    /// `numeric(25,0)`
    Lsn(Lsn),
    Text(String),
    /// `uniqueidentifier`
    Guid(Guid),
    /// `datetime`
    Moment(Moment),
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Bit(value) => write!(f, "{}", u8::from(*value)),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Lsn(lsn) => write!(f, "{lsn}"),
            Self::Text(text) => f.write_str(text),
            Self::Guid(guid) => write!(f, "{guid}"),
            Self::Moment(moment) => write!(f, "{moment}"),
        }
    }
}

/// A row: the columns in order.
pub type Row = Vec<(&'static str, Cell)>;

/// `RESTORE LABELONLY`: the row of a media family.
pub fn label(media: &MediaHeader, is_compressed: bool) -> Row {
    let mut family = [0; 16];
    for (slot, byte) in family.iter_mut().zip(media.family_id.to_le_bytes()) {
        *slot = byte;
    }
    vec![
        ("MediaName", text(&media.name)),
        ("MediaSetId", guid(media.media_set)),
        ("FamilyCount", integer(media.family_count)),
        ("FamilySequenceNumber", integer(media.family_number)),
        ("MediaFamilyId", Cell::Guid(Guid::from_stored(family))),
        ("MediaSequenceNumber", integer(media.sequence_number)),
        ("MediaLabelPresent", Cell::Integer(0)),
        ("MediaDescription", text(&media.description)),
        ("SoftwareName", text(&media.software)),
        ("SoftwareVendorId", integer(media.vendor)),
        ("MediaDate", moment(media.created)),
        ("MirrorCount", integer(media.mirror_count)),
        ("IsCompressed", Cell::Bit(is_compressed)),
    ]
}

/// `RESTORE HEADERONLY`: one row per set.
pub fn headers(listing: &Listing) -> Vec<Row> {
    let sets = listing.sets.iter();
    sets.map(|set| header(set, listing.algorithm())).collect()
}

/// `RESTORE HEADERONLY`: the row of one set.
pub fn header(set: &SetListing, compression: Option<Algorithm>) -> Row {
    let is_compressed = compression.is_some();
    let Some(configuration) = set.configuration() else {
        return set_columns(set, None, is_compressed);
    };
    let mut row = set_columns(set, Some(configuration), is_compressed);
    row.extend(software_columns(set, configuration));
    row.extend(history_columns(set, configuration));
    row.extend(size_columns(set, configuration, compression));
    row
}

/// Columns 1 to 19.
fn set_columns(
    set: &SetListing,
    configuration: Option<&Configuration>,
    is_compressed: bool,
) -> Row {
    let header = &set.header;
    let of = |value: fn(&Configuration) -> Cell| configuration.map_or(Cell::Null, value);
    vec![
        ("BackupName", text(&header.name)),
        ("BackupDescription", text(&header.description)),
        (
            "BackupType",
            of(|c| c.backup_type.number().map_or(Cell::Null, integer)),
        ),
        ("ExpirationDate", moment(header.expires)),
        ("Compressed", Cell::Bit(is_compressed)),
        ("Position", integer(header.position)),
        ("DeviceType", Cell::Integer(DEVICE_TYPE_DISK)),
        ("UserName", text(&header.user)),
        ("ServerName", of(|c| text(&c.server))),
        ("DatabaseName", of(|c| text(&c.database))),
        ("DatabaseVersion", of(|c| integer(c.database_version))),
        ("DatabaseCreationDate", of(|c| moment(c.database_created))),
        ("BackupSize", of(|c| amount(c.backup_bytes))),
        ("FirstLSN", of(|c| Cell::Lsn(c.first_lsn))),
        ("LastLSN", of(|c| Cell::Lsn(c.last_lsn))),
        ("CheckpointLSN", of(|c| Cell::Lsn(c.checkpoint_lsn))),
        (
            "DatabaseBackupLSN",
            of(|c| Cell::Lsn(c.database_backup_lsn)),
        ),
        ("BackupStartDate", of(|c| moment(c.started))),
        ("BackupFinishDate", of(|c| moment(c.finished))),
    ]
}

/// Columns 20 to 34.
fn software_columns(set: &SetListing, configuration: &Configuration) -> Row {
    let (locale, sort) = configuration.collation;
    vec![
        ("SortOrder", integer(configuration.sort_order)),
        ("CodePage", Cell::Integer(0)),
        ("UnicodeLocaleId", integer(configuration.locale)),
        (
            "UnicodeComparisonStyle",
            integer(configuration.comparison_style),
        ),
        (
            "CompatibilityLevel",
            integer(configuration.compatibility_level),
        ),
        ("SoftwareVendorId", Cell::Integer(VENDOR)),
        ("SoftwareVersionMajor", integer(set.header.version_major)),
        ("SoftwareVersionMinor", integer(set.header.version_minor)),
        ("SoftwareVersionBuild", integer(configuration.version.2)),
        ("MachineName", text(&set.machine)),
        ("Flags", integer(configuration.flags)),
        ("BindingID", guid(configuration.binding)),
        ("RecoveryForkID", guid(configuration.recovery_fork)),
        (
            "Collation",
            collation::name(locale, sort).map_or(Cell::Null, Cell::Text),
        ),
        ("FamilyGUID", guid(configuration.family)),
    ]
}

/// Columns 35 to 51.
fn history_columns(set: &SetListing, configuration: &Configuration) -> Row {
    let is_differential = configuration.backup_type.is_differential();
    let is_log = configuration.backup_type == BackupType::Log;
    let status = configuration.status;
    let forked = !configuration.fork_point_lsn.is_zero();
    let begins = is_log && configuration.chain_start_lsn == configuration.first_lsn;
    let when = |holds: bool, cell: Cell| if holds { cell } else { Cell::Null };
    vec![
        ("HasBulkLoggedData", Cell::Bit(false)),
        ("IsSnapshot", Cell::Bit(false)),
        ("IsReadOnly", Cell::Bit(status & STATUS_READ_ONLY != 0)),
        ("IsSingleUser", Cell::Bit(status & STATUS_SINGLE_USER != 0)),
        (
            "HasBackupChecksums",
            Cell::Bit(configuration.has_checksums()),
        ),
        ("IsDamaged", Cell::Bit(false)),
        ("BeginsLogChain", Cell::Bit(begins)),
        ("HasIncompleteMetaData", Cell::Bit(false)),
        ("IsForceOffline", Cell::Bit(false)),
        ("IsCopyOnly", Cell::Bit(configuration.is_copy_only())),
        (
            "FirstRecoveryForkID",
            guid(configuration.first_recovery_fork()),
        ),
        (
            "ForkPointLSN",
            when(forked, Cell::Lsn(configuration.fork_point_lsn)),
        ),
        (
            "RecoveryModel",
            Cell::Text(configuration.recovery_model().to_owned()),
        ),
        (
            "DifferentialBaseLSN",
            when(
                is_differential,
                Cell::Lsn(configuration.differential_base_lsn),
            ),
        ),
        (
            "DifferentialBaseGUID",
            when(is_differential, guid(configuration.differential_base)),
        ),
        (
            "BackupTypeDescription",
            Cell::Text(configuration.backup_type.description().to_owned()),
        ),
        ("BackupSetGUID", guid(set.header.guid)),
    ]
}

/// Columns 52 to 59.
fn size_columns(
    set: &SetListing,
    configuration: &Configuration,
    compression: Option<Algorithm>,
) -> Row {
    let algorithm = compression.map(|algorithm| Cell::Text(algorithm.to_string()));
    vec![
        (
            "CompressedBackupSize",
            amount(configuration.compressed_bytes),
        ),
        ("Containment", Cell::Integer(0)),
        ("KeyAlgorithm", Cell::Null),
        ("EncryptorThumbprint", Cell::Null),
        ("EncryptorType", Cell::Null),
        ("LastValidRestoreTime", Cell::Null),
        ("TimeZone", Cell::Integer(set.header.time_zone.into())),
        ("CompressionAlgorithm", algorithm.unwrap_or(Cell::Null)),
    ]
}

/// `RESTORE FILELISTONLY`: one row per file of a set.
pub fn file_list(set: &SetListing) -> Vec<Row> {
    let Some(configuration) = set.configuration() else {
        return Vec::new();
    };
    let files = configuration.files.iter();
    files
        .map(|file| file_row(set, configuration, file))
        .collect()
}

fn file_row(set: &SetListing, configuration: &Configuration, file: &StoredFile) -> Row {
    let group = configuration
        .file_groups
        .iter()
        .find(|group| file.kind != FileKind::Log && group.id == file.group);
    let kind = match file.kind {
        FileKind::Data => "D",
        FileKind::Log => "L",
        FileKind::Other(_) => "S",
    };
    vec![
        ("LogicalName", text(&file.logical_name)),
        ("PhysicalName", text(&file.physical_name)),
        ("Type", Cell::Text(kind.to_owned())),
        ("FileGroupName", group.map_or(Cell::Null, |g| text(&g.name))),
        ("Size", amount(file.bytes)),
        ("MaxSize", amount(file.max_bytes)),
        ("FileID", integer(file.id)),
        ("CreateLSN", Cell::Lsn(file.create_lsn)),
        ("DropLSN", Cell::Lsn(file.drop_lsn)),
        ("UniqueID", guid(file.guid)),
        ("ReadOnlyLSN", Cell::Lsn(file.read_only_lsn)),
        ("ReadWriteLSN", Cell::Lsn(Lsn::ZERO)),
        ("BackupSizeInBytes", amount(set.stored_bytes(file))),
        ("SourceBlockSize", integer(file.source_block_bytes)),
        ("FileGroupID", integer(file.group)),
        ("LogGroupGUID", Cell::Null),
        ("DifferentialBaseLSN", Cell::Lsn(file.differential_base_lsn)),
        ("DifferentialBaseGUID", Cell::Guid(file.differential_base)),
        ("IsReadOnly", Cell::Bit(file.is_read_only())),
        ("IsPresent", Cell::Bit(true)),
        ("TDEThumbprint", Cell::Null),
        ("SnapshotURL", Cell::Null),
    ]
}

fn text(text: &str) -> Cell {
    if text.is_empty() {
        Cell::Null
    } else {
        Cell::Text(text.to_owned())
    }
}

fn integer(value: impl Into<i64>) -> Cell {
    Cell::Integer(value.into())
}

fn amount(value: u64) -> Cell {
    Cell::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

fn guid(guid: Guid) -> Cell {
    if guid.is_nil() {
        Cell::Null
    } else {
        Cell::Guid(guid)
    }
}

fn moment(moment: Option<Moment>) -> Cell {
    moment.map_or(Cell::Null, Cell::Moment)
}
