//! The rows of HEADERONLY, FILELISTONLY and LABELONLY: SQL Server's columns in order, then Windlass's own.

use windlass_base::page::pages_of;
use windlass_base::{Guid, Lsn};
use windlass_catalog::{NamedValues, StoredValue};
use windlass_codec::{Algorithm, Level};
use windlass_crypt::{KeyBlock, RecipientKind};
use windlass_device::DeviceAddress;
use windlass_media::{DatabaseFile, MediaHeader, SetConfiguration, SetType, SourceKind};
use windlass_pipeline::claimed_signer;

use super::columns::{ColumnOf, column, history_row, kept, result, stored};
use crate::{ColumnType, ResultSet, Value};

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

/// The device type of URLs.
const DEVICE_TYPE_URL: u8 = 9;

/// Added to the device type if the device was named by its logical name, as on SQL Server.
const LOGICAL: u8 = 100;

/// `DeviceType` of a device.
pub(super) fn device_type(device: &DeviceAddress) -> u8 {
    match device.logical {
        Some(_) => DEVICE_TYPE_DISK + LOGICAL,
        None if device.is_object() => DEVICE_TYPE_URL,
        None => DEVICE_TYPE_DISK,
    }
}

/// A backup set as found on media.
pub(super) struct FoundSet<'a> {
    pub(super) set: &'a SetConfiguration,
    /// Whether its end is on every family.
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

    fn encryption(&self, value: impl FnOnce(&Encryption) -> Value) -> Value {
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

/// The columns of HEADERONLY. The collation columns are zero: SQLite compares bytes and stores UTF-8,
/// which matches none of SQL Server's collation numbers.
#[rustfmt::skip]
pub(super) const fn header_columns<'a>() -> [ColumnOf<FoundSet<'a>>; 70] {
    [
        kept("BackupName", "name", NAME, |found| text(&found.set.name)),
        kept("BackupDescription", "description", NVarChar(255), |found| text(&found.set.description)),
        column("BackupType", SmallInt, |found| number(found.set.set_type.id())),
        kept("ExpirationDate", "expiration_date", DateTime, |found| Value::optional_moment(found.set.expires)),
        column("Compressed", Bit, |found| Value::Bit(is_compressed(found.set))),
        kept("Position", "position", SmallInt, |found| number(found.set.position)),
        column("DeviceType", TinyInt, |found| number(found.device_type)),
        kept("UserName", "user_name", NAME, |found| text(&found.set.user)),
        kept("ServerName", "server_name", NAME, |found| text(&found.set.server)),
        kept("DatabaseName", "database_name", NAME, |found| text(&found.set.database)),
        kept("DatabaseVersion", "database_version", Int, |found| number(found.set.database_version)),
        kept("DatabaseCreationDate", "database_creation_date", DateTime, |found| Value::optional_moment(found.set.database_created)),
        kept("BackupSize", "backup_size", BigInt, |found| Value::amount(found.set.backup_bytes)),
        kept("FirstLSN", "first_lsn", LSN, |found| Value::lsn(found.set.first_lsn)),
        kept("LastLSN", "last_lsn", LSN, |found| Value::lsn(found.set.last_lsn)),
        kept("CheckpointLSN", "checkpoint_lsn", LSN, |found| Value::lsn(found.set.checkpoint_lsn)),
        kept("DatabaseBackupLSN", "database_backup_lsn", LSN, |found| Value::lsn(found.set.database_backup_lsn)),
        kept("BackupStartDate", "backup_start_date", DateTime, |found| Value::optional_moment(found.set.started)),
        kept("BackupFinishDate", "backup_finish_date", DateTime, |found| Value::optional_moment(found.set.finished)),
        kept("SortOrder", "sort_order", SmallInt, |_| Value::Integer(0)),
        kept("CodePage", "code_page", SmallInt, |_| Value::Integer(0)),
        kept("UnicodeLocaleId", "unicode_locale", Int, |_| Value::Integer(0)),
        kept("UnicodeComparisonStyle", "unicode_compare_style", Int, |_| Value::Integer(0)),
        kept("CompatibilityLevel", "compatibility_level", TinyInt, |_| Value::Integer(COMPATIBILITY_LEVEL)),
        kept("SoftwareVendorId", "software_vendor_id", Int, |_| Value::Integer(VENDOR)),
        kept("SoftwareVersionMajor", "software_major_version", Int, |found| number(found.set.software_major)),
        kept("SoftwareVersionMinor", "software_minor_version", Int, |found| number(found.set.software_minor)),
        kept("SoftwareVersionBuild", "software_build_version", Int, |found| number(found.set.software_build)),
        kept("MachineName", "machine_name", NAME, |found| text(&found.set.machine)),
        kept("Flags", "flags", Int, |found| number(flags(found.set))),
        kept("BindingID", "database_guid", UniqueIdentifier, |found| guid(found.set.database_guid)),
        kept("RecoveryForkID", "last_recovery_fork_guid", UniqueIdentifier, |found| guid(found.set.recovery_fork_guid)),
        kept("Collation", "collation_name", NAME, |_| Value::text("BINARY")),
        kept("FamilyGUID", "family_guid", UniqueIdentifier, |found| guid(found.set.family_guid)),
        kept("HasBulkLoggedData", "has_bulk_logged_data", Bit, |_| Value::Bit(false)),
        kept("IsSnapshot", "is_snapshot", Bit, |_| Value::Bit(false)),
        kept("IsReadOnly", "is_readonly", Bit, |found| Value::Bit(found.set.is_read_only)),
        kept("IsSingleUser", "is_single_user", Bit, |_| Value::Bit(false)),
        kept("HasBackupChecksums", "has_backup_checksums", Bit, |found| Value::Bit(found.set.has_checksums)),
        kept("IsDamaged", "is_damaged", Bit, |found| Value::Bit(found.set.is_damaged)),
        kept("BeginsLogChain", "begins_log_chain", Bit, |_| Value::Bit(false)),
        kept("HasIncompleteMetaData", "has_incomplete_metadata", Bit, |_| Value::Bit(false)),
        kept("IsForceOffline", "is_force_offline", Bit, |_| Value::Bit(false)),
        kept("IsCopyOnly", "is_copy_only", Bit, |found| Value::Bit(found.set.is_copy_only)),
        kept("FirstRecoveryForkID", "first_recovery_fork_guid", UniqueIdentifier, |found| guid(found.set.recovery_fork_guid)),
        kept("ForkPointLSN", "fork_point_lsn", LSN, |_| Value::Null),
        kept("RecoveryModel", "recovery_model", NVarChar(60), |found| text(&found.set.recovery_model)),
        kept("DifferentialBaseLSN", "differential_base_lsn", LSN, |found| found.of_differential(Value::lsn(found.set.differential_base_lsn))),
        kept("DifferentialBaseGUID", "differential_base_guid", UniqueIdentifier, |found| found.of_differential(Value::Guid(found.set.differential_base_guid))),
        column("BackupTypeDescription", NAME, |found| Value::text(type_description(found.set.set_type))),
        kept("BackupSetGUID", "backup_set_uuid", UniqueIdentifier, |found| guid(found.set.set_guid)),
        kept("CompressedBackupSize", "compressed_backup_size", BigInt, |found| Value::amount(found.compressed_bytes())),
        column("Containment", TinyInt, |_| Value::Integer(0)),
        kept("KeyAlgorithm", "key_algorithm", NVarChar(32), |found| found.encryption(|how| Value::text(&how.key_algorithm))),
        kept("EncryptorThumbprint", "encryptor_thumbprint", VarBinary(20), |found| found.encryption(|how| how.thumbprint.map_or(Value::Null, |thumbprint| Value::Binary(thumbprint.to_vec())))),
        kept("EncryptorType", "encryptor_type", NVarChar(32), |found| found.encryption(|how| Value::text(how.encryptor_type))),
        kept("LastValidRestoreTime", "last_valid_restore_time", DateTime, |_| Value::Null),
        kept("TimeZone", "time_zone", SmallInt, |found| number(found.set.time_zone)),
        kept("CompressionAlgorithm", "compression_algorithm", NVarChar(32), |found| Value::optional_text(algorithm_name(found.set))),
        // Windlass's own columns.
        kept("CompressionLevel", "compression_level", NVarChar(32), |found| Value::optional_text(level_name(found.set))),
        column("EncoderFrameBytes", Int, |found| number(found.set.frame_bytes)),
        column("ChunkCount", BigInt, |found| Value::amount(found.set.chunk_count)),
        column("NarrowedSize", BigInt, |found| Value::amount(found.set.narrowed_bytes)),
        column("SourceProduct", NVarChar(32), |found| Value::text(product(found.set.source_kind))),
        column("BackupSetComplete", Bit, |found| Value::Bit(found.is_complete)),
        column("IsAsIs", Bit, |found| Value::Bit(found.set.seen.is_as_is)),
        column("IntegrityCheck", NVarChar(32), |found| Value::optional_text(integrity_name(found.set))),
        column("IntegrityFindings", Int, FoundSet::integrity_findings),
        column("IsSigned", Bit, |found| Value::Bit(found.set.is_signed())),
        // As recorded in the set, not verified.
        column("SignerFingerprint", NVarChar(64), FoundSet::signer),
    ]
}

/// `RESTORE HEADERONLY`: a row for each set.
pub(super) fn header_only(sets: &[FoundSet<'_>]) -> ResultSet {
    result(&header_columns(), sets)
}

/// The row of `backupset` for a set, without the columns that only the history has.
pub(super) fn set_row(set: &SetConfiguration) -> NamedValues {
    let found = FoundSet {
        set,
        is_complete: true,
        device_type: DEVICE_TYPE_DISK,
    };
    let mut row = history_row(&header_columns(), &found);
    row.push(("type", StoredValue::from(type_letter(set.set_type))));
    row
}

/// The depth of SQLite's own check before the copy.
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

struct Encryption {
    key_algorithm: String,
    thumbprint: Option<[u8; 20]>,
    encryptor_type: &'static str,
}

fn encryption_of(set: &SetConfiguration) -> Option<Encryption> {
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
    Some(Encryption {
        key_algorithm: block.algorithm().name().to_owned(),
        thumbprint,
        encryptor_type,
    })
}

/// The name of the algorithm; `None` if the set is not compressed.
pub(super) fn algorithm_name(set: &SetConfiguration) -> Option<&'static str> {
    let algorithm = Algorithm::from_id(set.compression)?;
    (algorithm != Algorithm::None).then(|| algorithm.name())
}

/// The name of the level; `None` if the algorithm has none.
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

/// `type` of `backupset`.
fn type_letter(set_type: SetType) -> &'static str {
    match set_type {
        SetType::Full => "D",
        SetType::Differential => "I",
        SetType::Log => "L",
    }
}

fn product(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Sqlite => "SQLite",
        SourceKind::Engine => "Windlass",
        SourceKind::Postgres => "PostgreSQL",
        SourceKind::SqlServer | SourceKind::SqlServerFiles => "SQL Server",
    }
}

/// The documented bits, and those that SQL Server is observed to set.
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
        kept("LogicalName", "logical_name", NAME, |found| Value::text(&found.file.logical_name)),
        kept("PhysicalName", "physical_name", NVarChar(260), |found| Value::text(&found.file.physical_name)),
        kept("Type", "file_type", NChar(1), |found| Value::text(if found.file.is_log { "L" } else { "D" })),
        kept("FileGroupName", "filegroup_name", NAME, |found| if found.file.is_log { Value::Null } else { Value::text("PRIMARY") }),
        kept("Size", "file_size", BigInt, |found| Value::amount(found.file.size_bytes)),
        column("MaxSize", BigInt, |_| Value::amount(MAX_SIZE_UNLIMITED)),
        kept("FileID", "file_number", BigInt, |found| number(found.file.file_id)),
        kept("CreateLSN", "create_lsn", LSN, |found| Value::lsn(found.file.create_lsn)),
        kept("DropLSN", "drop_lsn", LSN, |_| Value::lsn(Lsn::ZERO)),
        kept("UniqueID", "file_guid", UniqueIdentifier, |found| Value::Guid(found.file.file_guid)),
        kept("ReadOnlyLSN", "read_only_lsn", LSN, |_| Value::lsn(Lsn::ZERO)),
        kept("ReadWriteLSN", "read_write_lsn", LSN, |_| Value::lsn(Lsn::ZERO)),
        kept("BackupSizeInBytes", "backup_size", BigInt, |found| Value::amount(found.file.backup_bytes)),
        kept("SourceBlockSize", "source_file_block_size", Int, |_| Value::Integer(4096)),
        column("FileGroupID", Int, |found| Value::Integer(i64::from(!found.file.is_log))),
        column("LogGroupGUID", UniqueIdentifier, |_| Value::Null),
        kept("DifferentialBaseLSN", "differential_base_lsn", LSN, |found| Value::lsn(found.file.differential_base_lsn)),
        kept("DifferentialBaseGUID", "differential_base_guid", UniqueIdentifier, |found| Value::Guid(found.file.differential_base_guid)),
        kept("IsReadOnly", "is_readonly", Bit, |found| Value::Bit(found.set.is_read_only)),
        kept("IsPresent", "is_present", Bit, |_| Value::Bit(true)),
        column("TDEThumbprint", VarBinary(20), |_| Value::Null),
        column("SnapshotURL", NVarChar(336), |_| Value::Null),
    ]
}

/// The rows of `backupfile` for the files of a set.
pub(super) fn file_rows(set: &SetConfiguration) -> Vec<NamedValues> {
    let row = |file: &DatabaseFile| {
        let mut row = history_row(&file_columns(), &FoundFile { set, file });
        let pages = Value::amount(pages_of(file.backup_bytes));
        row.extend([
            ("page_size", StoredValue::from(i64::from(file.page_bytes))),
            ("backed_up_page_count", stored(&pages)),
            ("state", StoredValue::from(0)),
            ("state_desc", StoredValue::from("ONLINE")),
        ]);
        row
    };
    set.files.iter().map(row).collect()
}

/// The largest file that SQL Server creates; it prints this size for files without a limit.
const MAX_SIZE_UNLIMITED: u64 = 35_184_372_080_640;

/// `RESTORE FILELISTONLY`: a row for each file of a set.
pub(super) fn file_list_only(set: &SetConfiguration) -> ResultSet {
    let files = set.files.iter().map(|file| FoundFile { set, file });
    result(&file_columns(), &files.collect::<Vec<_>>())
}

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
        column("MediaFamilyId", UniqueIdentifier, |found| Value::Guid(family_guid(found.header, found.header.family_number.into()))),
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

/// The 32-bit number of a family as the first group of a GUID, as SQL Server prints it. `header` is that of any
/// family of the media set: their numbers follow each other.
pub(super) fn family_guid(header: &MediaHeader, family_number: u32) -> Guid {
    let first = header
        .media_family_id
        .wrapping_sub(u32::from(header.family_number));
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&first.wrapping_add(family_number).to_le_bytes());
    Guid::from_stored(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_sql_servers_and_ours_stand_behind() {
        assert_eq!(header_columns().len(), 59 + 11);
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
