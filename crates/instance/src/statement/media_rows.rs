//! The rows of HEADERONLY, FILELISTONLY and LABELONLY: SQL Server's columns in order, then ours.

use windlass_base::{Guid, Lsn};
use windlass_catalog::EncryptionRecord;
use windlass_codec::{Algorithm, Level};
use windlass_crypt::{KeyBlock, RecipientKind};
use windlass_device::DeviceAddress;
use windlass_media::{DatabaseFile, MediaHeader, SetConfiguration, SetType, SourceKind};
use windlass_pipeline::claimed_signer;

use crate::{Column, ColumnType, ResultSet, Value};

use ColumnType::{
    BigInt, Bit, DateTime, Int, NChar, NVarChar, Numeric, SmallInt, TinyInt, UniqueIdentifier,
    VarBinary,
};

const LSN: ColumnType = Numeric(25);
const NAME: ColumnType = NVarChar(128);

/// `SoftwareVendorId` of SQL Server's own sets; tools look for it.
const VENDOR: i64 = 4608;

/// The compatibility level of the newest SQL Server, 2025.
pub(super) const COMPATIBILITY_LEVEL: i64 = 170;

/// The device type of files.
const DEVICE_TYPE_DISK: u8 = 2;

/// What SQL Server adds when the device was named by its logical name.
const LOGICAL: u8 = 100;

/// `DeviceType` of a device.
pub(super) fn device_type(device: &DeviceAddress) -> u8 {
    match device.logical {
        Some(_) => DEVICE_TYPE_DISK + LOGICAL,
        None => DEVICE_TYPE_DISK,
    }
}

/// A backup set as it is found on media.
pub(super) struct FoundSet<'a> {
    pub(super) set: &'a SetConfiguration,
    /// Whether its end is there on every family.
    pub(super) is_complete: bool,
    /// See [`device_type`].
    pub(super) device_type: u8,
}

pub(super) const HEADER_COLUMNS: &[(&str, ColumnType)] = &[
    ("BackupName", NAME),
    ("BackupDescription", NVarChar(255)),
    ("BackupType", SmallInt),
    ("ExpirationDate", DateTime),
    ("Compressed", Bit),
    ("Position", SmallInt),
    ("DeviceType", TinyInt),
    ("UserName", NAME),
    ("ServerName", NAME),
    ("DatabaseName", NAME),
    ("DatabaseVersion", Int),
    ("DatabaseCreationDate", DateTime),
    ("BackupSize", BigInt),
    ("FirstLSN", LSN),
    ("LastLSN", LSN),
    ("CheckpointLSN", LSN),
    ("DatabaseBackupLSN", LSN),
    ("BackupStartDate", DateTime),
    ("BackupFinishDate", DateTime),
    ("SortOrder", SmallInt),
    ("CodePage", SmallInt),
    ("UnicodeLocaleId", Int),
    ("UnicodeComparisonStyle", Int),
    ("CompatibilityLevel", TinyInt),
    ("SoftwareVendorId", Int),
    ("SoftwareVersionMajor", Int),
    ("SoftwareVersionMinor", Int),
    ("SoftwareVersionBuild", Int),
    ("MachineName", NAME),
    ("Flags", Int),
    ("BindingID", UniqueIdentifier),
    ("RecoveryForkID", UniqueIdentifier),
    ("Collation", NAME),
    ("FamilyGUID", UniqueIdentifier),
    ("HasBulkLoggedData", Bit),
    ("IsSnapshot", Bit),
    ("IsReadOnly", Bit),
    ("IsSingleUser", Bit),
    ("HasBackupChecksums", Bit),
    ("IsDamaged", Bit),
    ("BeginsLogChain", Bit),
    ("HasIncompleteMetaData", Bit),
    ("IsForceOffline", Bit),
    ("IsCopyOnly", Bit),
    ("FirstRecoveryForkID", UniqueIdentifier),
    ("ForkPointLSN", LSN),
    ("RecoveryModel", NVarChar(60)),
    ("DifferentialBaseLSN", LSN),
    ("DifferentialBaseGUID", UniqueIdentifier),
    ("BackupTypeDescription", NAME),
    ("BackupSetGUID", UniqueIdentifier),
    ("CompressedBackupSize", BigInt),
    ("Containment", TinyInt),
    ("KeyAlgorithm", NVarChar(32)),
    ("EncryptorThumbprint", VarBinary(20)),
    ("EncryptorType", NVarChar(32)),
    ("LastValidRestoreTime", DateTime),
    ("TimeZone", SmallInt),
    ("CompressionAlgorithm", NVarChar(32)),
    // Ours.
    ("CompressionLevel", NVarChar(32)),
    ("EncoderFrameBytes", Int),
    ("ChunkCount", BigInt),
    ("SourceProduct", NVarChar(32)),
    ("BackupSetComplete", Bit),
    ("IsAsIs", Bit),
    ("IntegrityCheck", NVarChar(32)),
    ("IntegrityFindings", Int),
    ("IsSigned", Bit),
    ("SignerFingerprint", NVarChar(64)),
];

/// `RESTORE HEADERONLY`: a row for each set.
pub(super) fn header_only(sets: &[FoundSet<'_>]) -> ResultSet {
    ResultSet {
        columns: columns(HEADER_COLUMNS),
        rows: sets.iter().map(header_row).collect(),
    }
}

pub(super) fn columns(list: &[(&str, ColumnType)]) -> Vec<Column> {
    list.iter()
        .map(|(name, column_type)| Column::new(*name, *column_type))
        .collect()
}

fn header_row(found: &FoundSet<'_>) -> Vec<Value> {
    let mut row = description_values(found.set, found.device_type).to_vec();
    row.extend(software_values(found.set));
    row.extend(history_values(found.set));
    row.extend(compression_values(found));
    row
}

/// Columns 1 to 19.
fn description_values(set: &SetConfiguration, device_type: u8) -> [Value; 19] {
    [
        text(&set.name),
        text(&set.description),
        Value::Integer(i64::from(set.set_type.id())),
        Value::optional_moment(set.expires),
        Value::Bit(is_compressed(set)),
        Value::Integer(i64::from(set.position)),
        Value::Integer(i64::from(device_type)),
        text(&set.user),
        text(&set.server),
        text(&set.database),
        Value::Integer(i64::from(set.database_version)),
        Value::optional_moment(set.database_created),
        Value::amount(set.backup_bytes),
        Value::lsn(set.first_lsn),
        Value::lsn(set.last_lsn),
        Value::lsn(set.checkpoint_lsn),
        Value::lsn(set.database_backup_lsn),
        Value::optional_moment(set.started),
        Value::optional_moment(set.finished),
    ]
}

/// Columns 20 to 34. SQLite compares bytes and stores UTF-8, which none of SQL Server's numbers
/// for collations means: they are zero.
fn software_values(set: &SetConfiguration) -> [Value; 15] {
    [
        Value::Integer(0),
        Value::Integer(0),
        Value::Integer(0),
        Value::Integer(0),
        Value::Integer(COMPATIBILITY_LEVEL),
        Value::Integer(VENDOR),
        Value::Integer(i64::from(set.software_major)),
        Value::Integer(i64::from(set.software_minor)),
        Value::Integer(i64::from(set.software_build)),
        text(&set.machine),
        Value::Integer(i64::from(flags(set))),
        guid(set.database_guid),
        guid(set.recovery_fork_guid),
        Value::text("BINARY"),
        guid(set.family_guid),
    ]
}

/// Columns 35 to 51.
fn history_values(set: &SetConfiguration) -> [Value; 17] {
    let differential = set.set_type == SetType::Differential;
    [
        Value::Bit(false),
        Value::Bit(false),
        Value::Bit(set.is_read_only),
        Value::Bit(false),
        Value::Bit(set.has_checksums),
        Value::Bit(set.is_damaged),
        Value::Bit(false),
        Value::Bit(false),
        Value::Bit(false),
        Value::Bit(set.is_copy_only),
        guid(set.recovery_fork_guid),
        Value::Null,
        text(&set.recovery_model),
        if differential {
            Value::lsn(set.differential_base_lsn)
        } else {
            Value::Null
        },
        if differential {
            Value::Guid(set.differential_base_guid)
        } else {
            Value::Null
        },
        Value::text(type_description(set.set_type)),
        guid(set.set_guid),
    ]
}

/// Columns 52 to 59 and ours.
fn compression_values(found: &FoundSet<'_>) -> [Value; 18] {
    let set = found.set;
    let stored = if is_compressed(set) {
        set.stored_bytes
    } else {
        set.backup_bytes
    };
    let encryption = encryption_of(set);
    let encryption = encryption.as_ref();
    let signer = claimed_signer(set).map(|signer| signer.fingerprint());
    [
        Value::amount(stored),
        Value::Integer(0),
        Value::optional_text(encryption.map(|found| found.key_algorithm.as_str())),
        encryption
            .and_then(|found| found.thumbprint)
            .map_or(Value::Null, |thumbprint| Value::Binary(thumbprint.to_vec())),
        Value::optional_text(encryption.map(|found| found.encryptor_type.as_str())),
        Value::Null,
        Value::Integer(i64::from(set.time_zone)),
        Value::optional_text(algorithm_name(set)),
        Value::optional_text(level_name(set)),
        Value::Integer(i64::from(set.frame_bytes)),
        Value::amount(set.chunk_count),
        Value::text(product(set.source_kind)),
        Value::Bit(found.is_complete),
        Value::Bit(set.seen.is_as_is),
        Value::optional_text(integrity_name(set)),
        match set.seen.integrity_check {
            0 => Value::Null,
            _ => Value::Integer(i64::from(set.seen.integrity_findings)),
        },
        Value::Bit(set.is_signed()),
        // As the set claims; not verified.
        Value::optional_text(signer.as_deref()),
    ]
}

/// How far SQLite's own check went before the copy.
fn integrity_name(set: &SetConfiguration) -> Option<&'static str> {
    match set.seen.integrity_check {
        0 => None,
        1 => Some("QUICK"),
        _ => Some("FULL"),
    }
}

fn text(text: &str) -> Value {
    if text.is_empty() {
        Value::Null
    } else {
        Value::text(text)
    }
}

fn guid(guid: Guid) -> Value {
    if guid.is_nil() {
        Value::Null
    } else {
        Value::Guid(guid)
    }
}

fn is_compressed(set: &SetConfiguration) -> bool {
    set.compression != Algorithm::None.id()
}

/// How a set is encrypted: the algorithm, and the first recipient's certificate.
pub(super) fn encryption_of(set: &SetConfiguration) -> Option<EncryptionRecord> {
    let block = KeyBlock::from_stored(&set.key_block).ok()?;
    let recipients = block.recipients();
    let thumbprint = recipients.iter().find_map(|recipient| match recipient {
        RecipientKind::Certificate(thumbprint) => Some(*thumbprint),
        RecipientKind::Passphrase => None,
    });
    let encryptor_type = match thumbprint {
        Some(_) => "CERTIFICATE",
        None => "PASSPHRASE",
    };
    Some(EncryptionRecord {
        key_algorithm: block.algorithm().name().to_owned(),
        thumbprint,
        encryptor_type: encryptor_type.to_owned(),
    })
}

/// The name of the algorithm; `None` when the set is not compressed.
pub(super) fn algorithm_name(set: &SetConfiguration) -> Option<&'static str> {
    let algorithm = Algorithm::from_id(set.compression)?;
    (algorithm != Algorithm::None).then(|| algorithm.name())
}

/// The name of the level; `None` when the algorithm has none.
pub(super) fn level_name(set: &SetConfiguration) -> Option<&'static str> {
    Level::name_of_id(set.compression_level)
}

fn type_description(set_type: SetType) -> &'static str {
    match set_type {
        SetType::Full => "Database",
        SetType::Differential => "Database Differential",
        SetType::Log => "Transaction Log",
    }
}

fn product(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Sqlite => "SQLite",
        SourceKind::Engine => "Windlass",
        SourceKind::Postgres => "PostgreSQL",
    }
}

/// The documented bits, and those that SQL Server is seen to set.
pub(super) fn flags(set: &SetConfiguration) -> u32 {
    [
        (set.is_read_only, 4),
        (set.has_checksums, 16),
        (set.is_damaged, 32),
        (true, 512),
        (set.is_copy_only, 1024),
        (set.set_type == SetType::Differential, 2048),
    ]
    .into_iter()
    .filter_map(|(is_set, bit)| is_set.then_some(bit))
    .sum()
}

pub(super) const FILE_COLUMNS: &[(&str, ColumnType)] = &[
    ("LogicalName", NAME),
    ("PhysicalName", NVarChar(260)),
    ("Type", NChar(1)),
    ("FileGroupName", NAME),
    ("Size", BigInt),
    ("MaxSize", BigInt),
    ("FileID", BigInt),
    ("CreateLSN", LSN),
    ("DropLSN", LSN),
    ("UniqueID", UniqueIdentifier),
    ("ReadOnlyLSN", LSN),
    ("ReadWriteLSN", LSN),
    ("BackupSizeInBytes", BigInt),
    ("SourceBlockSize", Int),
    ("FileGroupID", Int),
    ("LogGroupGUID", UniqueIdentifier),
    ("DifferentialBaseLSN", LSN),
    ("DifferentialBaseGUID", UniqueIdentifier),
    ("IsReadOnly", Bit),
    ("IsPresent", Bit),
    ("TDEThumbprint", VarBinary(20)),
    ("SnapshotURL", NVarChar(336)),
];

/// The largest file SQL Server makes, which it prints for files without a limit.
const MAX_SIZE_UNLIMITED: u64 = 35_184_372_080_640;

/// `RESTORE FILELISTONLY`: a row for each file of a set.
pub(super) fn file_list_only(set: &SetConfiguration) -> ResultSet {
    ResultSet {
        columns: columns(FILE_COLUMNS),
        rows: set.files.iter().map(|file| file_row(set, file)).collect(),
    }
}

fn file_row(set: &SetConfiguration, file: &DatabaseFile) -> Vec<Value> {
    let none = Value::lsn(Lsn::ZERO);
    vec![
        Value::text(&file.logical_name),
        Value::text(&file.physical_name),
        Value::text(if file.is_log { "L" } else { "D" }),
        if file.is_log {
            Value::Null
        } else {
            Value::text("PRIMARY")
        },
        Value::amount(file.size_bytes),
        Value::amount(MAX_SIZE_UNLIMITED),
        Value::Integer(i64::from(file.file_id)),
        Value::lsn(file.create_lsn),
        none.clone(),
        Value::Guid(file.file_guid),
        none.clone(),
        none,
        Value::amount(file.backup_bytes),
        Value::Integer(4096),
        Value::Integer(i64::from(!file.is_log)),
        Value::Null,
        Value::lsn(file.differential_base_lsn),
        Value::Guid(file.differential_base_guid),
        Value::Bit(set.is_read_only),
        Value::Bit(true),
        Value::Null,
        Value::Null,
    ]
}

pub(super) const LABEL_COLUMNS: &[(&str, ColumnType)] = &[
    ("MediaName", NAME),
    ("MediaSetId", UniqueIdentifier),
    ("FamilyCount", Int),
    ("FamilySequenceNumber", Int),
    ("MediaFamilyId", UniqueIdentifier),
    ("MediaSequenceNumber", Int),
    ("MediaLabelPresent", TinyInt),
    ("MediaDescription", NVarChar(255)),
    ("SoftwareName", NAME),
    ("SoftwareVendorId", Int),
    ("MediaDate", DateTime),
    ("MirrorCount", Int),
    ("IsCompressed", Bit),
];

/// `RESTORE LABELONLY`: one row.
pub(super) fn label_only(header: &MediaHeader, is_compressed: bool) -> ResultSet {
    let row = vec![
        text(&header.media_name),
        Value::Guid(header.media_set_guid),
        Value::Integer(i64::from(header.family_count)),
        Value::Integer(i64::from(header.family_number)),
        Value::Guid(family_guid(header)),
        Value::Integer(1),
        Value::Integer(0),
        text(&header.media_description),
        Value::Text(format!(
            "{} {}",
            windlass_media::SOFTWARE_NAME,
            header.software_version
        )),
        Value::Integer(i64::from(windlass_media::VENDOR_ID)),
        Value::optional_moment(header.created),
        Value::Integer(i64::from(header.mirror_count)),
        Value::Bit(is_compressed),
    ];
    ResultSet {
        columns: columns(LABEL_COLUMNS),
        rows: vec![row],
    }
}

/// The 32-bit number of a family as the first group of a GUID, as SQL Server prints it.
pub(super) fn family_guid(header: &MediaHeader) -> Guid {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&header.media_family_id.to_le_bytes());
    Guid::from_stored(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_sql_servers_and_ours_stand_behind() {
        assert_eq!(HEADER_COLUMNS.len(), 59 + 8);
        assert_eq!(HEADER_COLUMNS[58].0, "CompressionAlgorithm");
        assert_eq!(FILE_COLUMNS.len(), 22);
        assert_eq!(LABEL_COLUMNS.len(), 13);
    }

    #[test]
    fn every_row_is_as_long_as_its_columns() {
        let set = SetConfiguration {
            files: vec![DatabaseFile::default()],
            ..SetConfiguration::default()
        };
        let found = FoundSet {
            set: &set,
            is_complete: true,
            device_type: 2,
        };
        for result in [
            header_only(&[found]),
            file_list_only(&set),
            label_only(&MediaHeader::default(), false),
        ] {
            assert_eq!(result.rows[0].len(), result.columns.len());
        }
    }

    #[test]
    fn flags_are_those_seen_on_sql_server() {
        let mut set = SetConfiguration::default();
        assert_eq!(flags(&set), 512);
        set.has_checksums = true;
        set.is_copy_only = true;
        assert_eq!(flags(&set), 1552);
        let differential = SetConfiguration {
            set_type: SetType::Differential,
            ..SetConfiguration::default()
        };
        assert_eq!(flags(&differential), 2560);
    }
}
