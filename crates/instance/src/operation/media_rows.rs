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

impl FoundSet<'_> {
    fn of_differential(&self, value: Value) -> Value {
        match self.set.set_type {
            SetType::Differential => value,
            SetType::Full | SetType::Log => Value::Null,
        }
    }

    fn compressed_bytes(&self) -> u64 {
        match is_compressed(self.set) {
            true => self.set.stored_bytes,
            false => self.set.backup_bytes,
        }
    }

    fn encryption(&self, value: impl FnOnce(&EncryptionRecord) -> Value) -> Value {
        encryption_of(self.set).as_ref().map_or(Value::Null, value)
    }

    fn signer(&self) -> Value {
        let signer = claimed_signer(self.set).map(|signer| signer.fingerprint());
        Value::optional_text(signer.as_deref())
    }

    fn integrity_findings(&self) -> Value {
        match self.set.seen.integrity_check {
            0 => Value::Null,
            _ => number(self.set.seen.integrity_findings),
        }
    }
}

/// A column of a statement that describes media: its name, its type, and how it is read.
pub(super) struct ColumnOf<S> {
    pub(super) name: &'static str,
    column_type: ColumnType,
    value: fn(&S) -> Value,
}

const fn column<S>(
    name: &'static str,
    column_type: ColumnType,
    value: fn(&S) -> Value,
) -> ColumnOf<S> {
    ColumnOf {
        name,
        column_type,
        value,
    }
}

pub(super) fn columns<S>(list: &[ColumnOf<S>]) -> Vec<Column> {
    list.iter()
        .map(|column| Column::new(column.name, column.column_type))
        .collect()
}

fn result<S>(list: &[ColumnOf<S>], subjects: &[S]) -> ResultSet {
    let row = |subject| list.iter().map(|column| (column.value)(subject)).collect();
    ResultSet {
        columns: columns(list),
        rows: subjects.iter().map(row).collect(),
    }
}

/// The columns of HEADERONLY. SQLite compares bytes and stores UTF-8, which none of SQL Server's numbers
/// for collations means: they are zero.
#[rustfmt::skip]
pub(super) const fn header_columns<'a>() -> [ColumnOf<FoundSet<'a>>; 69] {
    [
        column("BackupName", NAME, |found| text(&found.set.name)),
        column("BackupDescription", NVarChar(255), |found| text(&found.set.description)),
        column("BackupType", SmallInt, |found| number(found.set.set_type.id())),
        column("ExpirationDate", DateTime, |found| Value::optional_moment(found.set.expires)),
        column("Compressed", Bit, |found| Value::Bit(is_compressed(found.set))),
        column("Position", SmallInt, |found| number(found.set.position)),
        column("DeviceType", TinyInt, |found| number(found.device_type)),
        column("UserName", NAME, |found| text(&found.set.user)),
        column("ServerName", NAME, |found| text(&found.set.server)),
        column("DatabaseName", NAME, |found| text(&found.set.database)),
        column("DatabaseVersion", Int, |found| number(found.set.database_version)),
        column("DatabaseCreationDate", DateTime, |found| Value::optional_moment(found.set.database_created)),
        column("BackupSize", BigInt, |found| Value::amount(found.set.backup_bytes)),
        column("FirstLSN", LSN, |found| Value::lsn(found.set.first_lsn)),
        column("LastLSN", LSN, |found| Value::lsn(found.set.last_lsn)),
        column("CheckpointLSN", LSN, |found| Value::lsn(found.set.checkpoint_lsn)),
        column("DatabaseBackupLSN", LSN, |found| Value::lsn(found.set.database_backup_lsn)),
        column("BackupStartDate", DateTime, |found| Value::optional_moment(found.set.started)),
        column("BackupFinishDate", DateTime, |found| Value::optional_moment(found.set.finished)),
        column("SortOrder", SmallInt, |_| Value::Integer(0)),
        column("CodePage", SmallInt, |_| Value::Integer(0)),
        column("UnicodeLocaleId", Int, |_| Value::Integer(0)),
        column("UnicodeComparisonStyle", Int, |_| Value::Integer(0)),
        column("CompatibilityLevel", TinyInt, |_| Value::Integer(COMPATIBILITY_LEVEL)),
        column("SoftwareVendorId", Int, |_| Value::Integer(VENDOR)),
        column("SoftwareVersionMajor", Int, |found| number(found.set.software_major)),
        column("SoftwareVersionMinor", Int, |found| number(found.set.software_minor)),
        column("SoftwareVersionBuild", Int, |found| number(found.set.software_build)),
        column("MachineName", NAME, |found| text(&found.set.machine)),
        column("Flags", Int, |found| number(flags(found.set))),
        column("BindingID", UniqueIdentifier, |found| guid(found.set.database_guid)),
        column("RecoveryForkID", UniqueIdentifier, |found| guid(found.set.recovery_fork_guid)),
        column("Collation", NAME, |_| Value::text("BINARY")),
        column("FamilyGUID", UniqueIdentifier, |found| guid(found.set.family_guid)),
        column("HasBulkLoggedData", Bit, |_| Value::Bit(false)),
        column("IsSnapshot", Bit, |_| Value::Bit(false)),
        column("IsReadOnly", Bit, |found| Value::Bit(found.set.is_read_only)),
        column("IsSingleUser", Bit, |_| Value::Bit(false)),
        column("HasBackupChecksums", Bit, |found| Value::Bit(found.set.has_checksums)),
        column("IsDamaged", Bit, |found| Value::Bit(found.set.is_damaged)),
        column("BeginsLogChain", Bit, |_| Value::Bit(false)),
        column("HasIncompleteMetaData", Bit, |_| Value::Bit(false)),
        column("IsForceOffline", Bit, |_| Value::Bit(false)),
        column("IsCopyOnly", Bit, |found| Value::Bit(found.set.is_copy_only)),
        column("FirstRecoveryForkID", UniqueIdentifier, |found| guid(found.set.recovery_fork_guid)),
        column("ForkPointLSN", LSN, |_| Value::Null),
        column("RecoveryModel", NVarChar(60), |found| text(&found.set.recovery_model)),
        column("DifferentialBaseLSN", LSN, |found| found.of_differential(Value::lsn(found.set.differential_base_lsn))),
        column("DifferentialBaseGUID", UniqueIdentifier, |found| found.of_differential(Value::Guid(found.set.differential_base_guid))),
        column("BackupTypeDescription", NAME, |found| Value::text(type_description(found.set.set_type))),
        column("BackupSetGUID", UniqueIdentifier, |found| guid(found.set.set_guid)),
        column("CompressedBackupSize", BigInt, |found| Value::amount(found.compressed_bytes())),
        column("Containment", TinyInt, |_| Value::Integer(0)),
        column("KeyAlgorithm", NVarChar(32), |found| found.encryption(|how| Value::text(&how.key_algorithm))),
        column("EncryptorThumbprint", VarBinary(20), |found| found.encryption(|how| how.thumbprint.map_or(Value::Null, |thumbprint| Value::Binary(thumbprint.to_vec())))),
        column("EncryptorType", NVarChar(32), |found| found.encryption(|how| Value::text(&how.encryptor_type))),
        column("LastValidRestoreTime", DateTime, |_| Value::Null),
        column("TimeZone", SmallInt, |found| number(found.set.time_zone)),
        column("CompressionAlgorithm", NVarChar(32), |found| Value::optional_text(algorithm_name(found.set))),
        // Ours.
        column("CompressionLevel", NVarChar(32), |found| Value::optional_text(level_name(found.set))),
        column("EncoderFrameBytes", Int, |found| number(found.set.frame_bytes)),
        column("ChunkCount", BigInt, |found| Value::amount(found.set.chunk_count)),
        column("SourceProduct", NVarChar(32), |found| Value::text(product(found.set.source_kind))),
        column("BackupSetComplete", Bit, |found| Value::Bit(found.is_complete)),
        column("IsAsIs", Bit, |found| Value::Bit(found.set.seen.is_as_is)),
        column("IntegrityCheck", NVarChar(32), |found| Value::optional_text(integrity_name(found.set))),
        column("IntegrityFindings", Int, FoundSet::integrity_findings),
        column("IsSigned", Bit, |found| Value::Bit(found.set.is_signed())),
        // As the set claims; not verified.
        column("SignerFingerprint", NVarChar(64), FoundSet::signer),
    ]
}

/// `RESTORE HEADERONLY`: a row for each set.
pub(super) fn header_only(sets: &[FoundSet<'_>]) -> ResultSet {
    result(&header_columns(), sets)
}

/// How far SQLite's own check went before the copy.
fn integrity_name(set: &SetConfiguration) -> Option<&'static str> {
    match set.seen.integrity_check {
        0 => None,
        1 => Some("QUICK"),
        _ => Some("FULL"),
    }
}

fn number(number: impl Into<i64>) -> Value {
    Value::Integer(number.into())
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

/// A file of a backup set.
pub(super) struct FoundFile<'a> {
    set: &'a SetConfiguration,
    file: &'a DatabaseFile,
}

/// The columns of FILELISTONLY.
#[rustfmt::skip]
pub(super) const fn file_columns<'a>() -> [ColumnOf<FoundFile<'a>>; 22] {
    [
        column("LogicalName", NAME, |found| Value::text(&found.file.logical_name)),
        column("PhysicalName", NVarChar(260), |found| Value::text(&found.file.physical_name)),
        column("Type", NChar(1), |found| Value::text(if found.file.is_log { "L" } else { "D" })),
        column("FileGroupName", NAME, |found| if found.file.is_log { Value::Null } else { Value::text("PRIMARY") }),
        column("Size", BigInt, |found| Value::amount(found.file.size_bytes)),
        column("MaxSize", BigInt, |_| Value::amount(MAX_SIZE_UNLIMITED)),
        column("FileID", BigInt, |found| number(found.file.file_id)),
        column("CreateLSN", LSN, |found| Value::lsn(found.file.create_lsn)),
        column("DropLSN", LSN, |_| Value::lsn(Lsn::ZERO)),
        column("UniqueID", UniqueIdentifier, |found| Value::Guid(found.file.file_guid)),
        column("ReadOnlyLSN", LSN, |_| Value::lsn(Lsn::ZERO)),
        column("ReadWriteLSN", LSN, |_| Value::lsn(Lsn::ZERO)),
        column("BackupSizeInBytes", BigInt, |found| Value::amount(found.file.backup_bytes)),
        column("SourceBlockSize", Int, |_| Value::Integer(4096)),
        column("FileGroupID", Int, |found| Value::Integer(i64::from(!found.file.is_log))),
        column("LogGroupGUID", UniqueIdentifier, |_| Value::Null),
        column("DifferentialBaseLSN", LSN, |found| Value::lsn(found.file.differential_base_lsn)),
        column("DifferentialBaseGUID", UniqueIdentifier, |found| Value::Guid(found.file.differential_base_guid)),
        column("IsReadOnly", Bit, |found| Value::Bit(found.set.is_read_only)),
        column("IsPresent", Bit, |_| Value::Bit(true)),
        column("TDEThumbprint", VarBinary(20), |_| Value::Null),
        column("SnapshotURL", NVarChar(336), |_| Value::Null),
    ]
}

/// The largest file SQL Server makes, which it prints for files without a limit.
const MAX_SIZE_UNLIMITED: u64 = 35_184_372_080_640;

/// `RESTORE FILELISTONLY`: a row for each file of a set.
pub(super) fn file_list_only(set: &SetConfiguration) -> ResultSet {
    let files = set.files.iter().map(|file| FoundFile { set, file });
    result(&file_columns(), &files.collect::<Vec<_>>())
}

/// A family of media.
pub(super) struct FoundFamily<'a> {
    header: &'a MediaHeader,
    is_compressed: bool,
}

/// The columns of LABELONLY.
#[rustfmt::skip]
pub(super) const fn label_columns<'a>() -> [ColumnOf<FoundFamily<'a>>; 13] {
    [
        column("MediaName", NAME, |found| text(&found.header.media_name)),
        column("MediaSetId", UniqueIdentifier, |found| Value::Guid(found.header.media_set_guid)),
        column("FamilyCount", Int, |found| number(found.header.family_count)),
        column("FamilySequenceNumber", Int, |found| number(found.header.family_number)),
        column("MediaFamilyId", UniqueIdentifier, |found| Value::Guid(family_guid(found.header))),
        column("MediaSequenceNumber", Int, |_| Value::Integer(1)),
        column("MediaLabelPresent", TinyInt, |_| Value::Integer(0)),
        column("MediaDescription", NVarChar(255), |found| text(&found.header.media_description)),
        column("SoftwareName", NAME, |found| Value::Text(format!("{} {}", windlass_media::SOFTWARE_NAME, found.header.software_version))),
        column("SoftwareVendorId", Int, |_| number(windlass_media::VENDOR_ID)),
        column("MediaDate", DateTime, |found| Value::optional_moment(found.header.created)),
        column("MirrorCount", Int, |found| number(found.header.mirror_count)),
        column("IsCompressed", Bit, |found| Value::Bit(found.is_compressed)),
    ]
}

/// `RESTORE LABELONLY`: one row.
pub(super) fn label_only(header: &MediaHeader, is_compressed: bool) -> ResultSet {
    let family = FoundFamily {
        header,
        is_compressed,
    };
    result(&label_columns(), &[family])
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
        assert_eq!(header_columns().len(), 59 + 10);
        assert_eq!(header_columns()[58].name, "CompressionAlgorithm");
        assert_eq!(file_columns().len(), 22);
        assert_eq!(label_columns().len(), 13);
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
