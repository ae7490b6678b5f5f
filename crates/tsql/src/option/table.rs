//! The option table. One row per option and verb.

use windlass_base::range::{self, NumberRange};

use super::ArgumentKind as A;
use super::OptionWord as W;
use super::{ArgumentKind, DefinedBy, OptionRow, StatementKind, Support};

macro_rules! option_words {
    ($($word:ident $spelling:literal,)*) => {
        /// The first words of options.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum OptionWord {
            $(#[doc = concat!("`", $spelling, "`")] $word,)*
        }

        impl OptionWord {
            /// All words, in the order of the documentation: BACKUP first.
            pub const ALL: &[Self] = &[$(Self::$word),*];

            pub fn spelling(self) -> &'static str {
                match self {
                    $(Self::$word => $spelling,)*
                }
            }
        }
    };
}

#[rustfmt::skip]
option_words! {
    Differential "DIFFERENTIAL",
    CopyOnly "COPY_ONLY",
    Compression "COMPRESSION",
    NoCompression "NO_COMPRESSION",
    Encryption "ENCRYPTION",
    NoEncryption "NO_ENCRYPTION",
    Credential "CREDENTIAL",
    FileSnapshot "FILE_SNAPSHOT",
    MetadataOnly "METADATA_ONLY",
    Snapshot "SNAPSHOT",
    Name "NAME",
    Description "DESCRIPTION",
    ExpireDate "EXPIREDATE",
    RetainDays "RETAINDAYS",
    Init "INIT",
    NoInit "NOINIT",
    Skip "SKIP",
    NoSkip "NOSKIP",
    Format "FORMAT",
    NoFormat "NOFORMAT",
    MediaName "MEDIANAME",
    MediaDescription "MEDIADESCRIPTION",
    Password "PASSWORD",
    MediaPassword "MEDIAPASSWORD",
    BlockSize "BLOCKSIZE",
    BufferCount "BUFFERCOUNT",
    MaxTransferSize "MAXTRANSFERSIZE",
    Checksum "CHECKSUM",
    NoChecksum "NO_CHECKSUM",
    StopOnError "STOP_ON_ERROR",
    ContinueAfterError "CONTINUE_AFTER_ERROR",
    Restart "RESTART",
    Stats "STATS",
    Rewind "REWIND",
    NoRewind "NOREWIND",
    Unload "UNLOAD",
    NoUnload "NOUNLOAD",
    BackupOptions "BACKUP_OPTIONS",
    NoRecovery "NORECOVERY",
    Standby "STANDBY",
    NoTruncate "NO_TRUNCATE",
    NoWrite "NOWRITE",
    NoCompressWrite "NOCOMPRESSWRITE",
    ThreadCount "THREADCOUNT",
    Level "LEVEL",
    Goal "GOAL",
    Integrity "INTEGRITY",
    MaxRate "MAXRATE",
    MaxWriteRate "MAXWRITERATE",
    EvenStripes "EVEN_STRIPES",
    SignWith "SIGN_WITH",
    Partial "PARTIAL",
    Recovery "RECOVERY",
    Move "MOVE",
    Replace "REPLACE",
    RestrictedUser "RESTRICTED_USER",
    File "FILE",
    KeepReplication "KEEP_REPLICATION",
    KeepCdc "KEEP_CDC",
    KeepTemporalRetention "KEEP_TEMPORAL_RETENTION",
    Filestream "FILESTREAM",
    EnableBroker "ENABLE_BROKER",
    ErrorBrokerConversations "ERROR_BROKER_CONVERSATIONS",
    NewBroker "NEW_BROKER",
    DbName "DBNAME",
    RestoreOptions "RESTORE_OPTIONS",
    StopAt "STOPAT",
    StopAtMark "STOPATMARK",
    StopBeforeMark "STOPBEFOREMARK",
    Verbose "VERBOSE",
    LoadHistory "LOADHISTORY",
    WithoutKey "WITHOUTKEY",
    CommitDifferentialBase "COMMIT_DIFFERENTIAL_BASE",
    SnapshotImport "SNAPSHOT_IMPORT",
    SnapshotRestorePhase "SNAPSHOTRESTOREPHASE",
    EnhancedIntegrity "ENHANCEDINTEGRITY",
    AsIs "AS_IS",
    BaseRequired "BASE_REQUIRED",
    AllowUnencrypted "ALLOW_UNENCRYPTED",
    SignedBy "SIGNED_BY",
}

impl OptionWord {
    /// The word spelled `text`, in any case.
    pub fn find(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|word| word.spelling().eq_ignore_ascii_case(text))
    }
}

/// The options of `BACKUP`.
#[rustfmt::skip]
pub const BACKUP: &[OptionRow] = &[
    row(W::Differential, A::None, BACKUP_DATABASE, &[W::NoRecovery, W::Standby, W::NoTruncate], "Stores only the extents changed since the last full backup that is not COPY_ONLY."),
    row(W::CopyOnly, A::None, BACKUP_ONE, &[], "Does not affect the backup sequence: no differential base, no log truncation."),
    row(W::Compression, A::Compression, BACKUP_ANY, &[W::NoCompression], "Compresses the backup, with the server's default algorithm unless one is named."),
    row(W::NoCompression, A::None, BACKUP_ANY, &[W::Compression, W::Level], "Stores the backup uncompressed."),
    row(W::Encryption, A::Encryption, BACKUP_ANY, &[W::NoEncryption], "Encrypts the backup with a key that the named certificate or asymmetric key protects."),
    row(W::NoEncryption, A::None, BACKUP_ANY, &[W::Encryption], "Stores the backup unencrypted."),
    row(W::Credential, A::Credential, BACKUP_ANY, &[], "Names the credential for URL devices; without a name, one must match each URL."),
    row(W::FileSnapshot, A::None, BACKUP_ANY, &[], "Takes snapshots of database files that are Azure blobs.").never(NO_SNAPSHOTS),
    row(W::MetadataOnly, A::None, BACKUP_ANY, &[], "Writes only the metadata of a snapshot that was taken while the databases were suspended.").never(NO_SNAPSHOTS),
    row(W::Snapshot, A::None, BACKUP_ANY, &[], "The older spelling of METADATA_ONLY.").never(NO_SNAPSHOTS),
    row(W::Name, A::Value, BACKUP_ANY, &[], "Names the backup set, at most 128 characters."),
    row(W::Description, A::Value, BACKUP_ANY, &[], "Describes the backup set, at most 255 characters."),
    row(W::ExpireDate, A::Value, BACKUP_ANY, &[], "Sets when the backup set may be overwritten."),
    row(W::RetainDays, A::Value, BACKUP_ANY, &[], "Sets after how many days the backup set may be overwritten; overrides EXPIREDATE.").within(range::RETAIN_DAYS),
    row(W::Init, A::None, BACKUP_ANY, &[W::NoInit], "Overwrites the backup sets on the media and keeps the media header."),
    row(W::NoInit, A::None, BACKUP_ANY, &[W::Init, W::Format], "Appends to the media; the default."),
    row(W::Skip, A::None, BACKUP_ANY, &[W::NoSkip], "Does not check the expiry and names of the backup sets on the media."),
    row(W::NoSkip, A::None, BACKUP_ANY, &[W::Skip], "Checks the expiry of the backup sets before overwriting them; the default."),
    row(W::Format, A::None, BACKUP_ANY, &[W::NoFormat, W::NoInit], "Writes a new media header; everything on the media is lost."),
    row(W::NoFormat, A::None, BACKUP_ANY, &[W::Format], "Keeps the media header; the default."),
    row(W::MediaName, A::Value, BACKUP_ANY, &[], "Names the media set, at most 128 characters; must match unless FORMAT."),
    row(W::MediaDescription, A::Value, BACKUP_ANY, &[], "Describes the media set, at most 255 characters."),
    row(W::Password, A::Value, BACKUP_ANY, &[], "Discontinued: a password for the backup set.").never(NO_PASSWORDS),
    row(W::MediaPassword, A::Value, BACKUP_ANY, &[], "Discontinued: a password for the media set.").never(NO_PASSWORDS),
    row(W::BlockSize, A::Value, BACKUP_ANY, &[], "Sets the physical block size in bytes, a power of two from 512 to 65536.").within(range::BLOCK_BYTES),
    row(W::BufferCount, A::Value, BACKUP_ANY, &[], "Sets the number of I/O buffers.").within(range::BUFFER_COUNT),
    row(W::MaxTransferSize, A::Value, BACKUP_ANY, &[], "Sets the largest transfer in bytes, a multiple of 64 KB up to 4 MB.").within(range::TRANSFER_BYTES),
    row(W::Checksum, A::None, BACKUP_ANY, &[W::NoChecksum], "Verifies page checksums where there are any, and adds a checksum over the backup."),
    row(W::NoChecksum, A::None, BACKUP_ANY, &[W::Checksum], "Neither verifies nor adds checksums."),
    row(W::StopOnError, A::None, BACKUP_ANY, &[W::ContinueAfterError], "Fails if a page has a wrong checksum; the default."),
    row(W::ContinueAfterError, A::None, BACKUP_ANY, &[W::StopOnError], "Continues despite pages with wrong checksums, and marks the set as damaged."),
    row(W::Restart, A::None, BACKUP_ANY, &[], "Continues an interrupted backup to tape.").no_effect(),
    row(W::Stats, A::OptionalValue, BACKUP_ANY, &[], "Reports progress every so many percent, 10 when no number is given.").within(range::STATS),
    row(W::Rewind, A::None, BACKUP_ANY, &[W::NoRewind], "Rewinds the tape.").no_effect(),
    row(W::NoRewind, A::None, BACKUP_ANY, &[W::Rewind, W::Unload], "Keeps the tape open.").no_effect(),
    row(W::Unload, A::None, BACKUP_ANY, &[W::NoUnload, W::NoRewind], "Unloads the tape.").no_effect(),
    row(W::NoUnload, A::None, BACKUP_ANY, &[W::Unload], "Leaves the tape loaded.").no_effect(),
    row(W::BackupOptions, A::Value, BACKUP_ANY, &[], "Passes options as JSON to an S3-compatible store."),
    row(W::NoRecovery, A::None, BACKUP_LOG, &[W::Standby, W::Differential], "Backs up the tail of the log and leaves the database restoring."),
    row(W::Standby, A::Value, BACKUP_LOG, &[W::NoRecovery, W::Differential], "Backs up the tail of the log and leaves the database read-only, with a standby file."),
    row(W::NoTruncate, A::None, BACKUP_LOG, &[W::Differential], "Backs up the log of a damaged database and does not truncate it."),
    ours(W::NoWrite, A::None, BACKUP_ANY, &[W::NoCompressWrite], "Reads and compresses but writes nothing: shows the rate that compression can reach."),
    ours(W::NoCompressWrite, A::None, BACKUP_ANY, &[W::NoWrite], "Reads, but neither compresses nor writes: shows the rate that the disks can reach."),
    ours(W::ThreadCount, A::ThreadCount, BACKUP_ANY, &[], "Sets the number of compression threads; AUTO, the default, uses as many as have work.").within(range::THREADS),
    ours(W::Level, A::Auto, BACKUP_ANY, &[W::NoCompression], "Picks the ZSTD level while the backup runs, as cores and devices allow."),
    ours(W::Goal, A::Goal, BACKUP_ANY, &[], "Sets what the backup adapts to: FAST, the default, SMALL, or GENTLE to the database's users."),
    ours(W::BaseRequired, A::None, BACKUP_DATABASE, &[], "Refuses a differential that could not be restored, because its base is gone, damaged or dated in the future, or that is less protected than its base, instead of a warning."),
    ours(W::AsIs, A::None, BACKUP_ANY, &[W::Integrity], "Backs up a file without a SQLite header, such as an encrypted database, unchanged; the set records this."),
    ours(W::Integrity, A::Integrity, BACKUP_ANY, &[W::AsIs], "Runs SQLite's own check on the data being backed up, QUICK or FULL, and fails if it finds damage."),
    ours(W::MaxRate, A::Value, BACKUP_ANY, &[], "Limits the reads of the database, in MB (2^20) per second.").within(range::READ_RATE),
    ours(W::MaxWriteRate, A::Value, BACKUP_ANY, &[], "Limits the writes to each device, in MB (2^20) per second.").within(range::WRITE_RATE),
    ours(W::EvenStripes, A::None, BACKUP_ANY, &[], "Gives every device the same number of bytes, instead of the next chunk to the one that is free first; always so if one disk serves all."),
    ours(W::SignWith, A::Value, BACKUP_ANY, &[], "Signs the backup set with the Ed25519 key in the named file."),
];

/// The options of `RESTORE`.
#[rustfmt::skip]
pub const RESTORE: &[OptionRow] = &[
    row(W::Partial, A::None, RESTORE_DATABASE, &[], "Begins a piecemeal restore: the primary filegroup and those that are named.").never(ONE_FILEGROUP),
    row(W::Recovery, A::None, RESTORE_ONE, &[W::NoRecovery, W::Standby], "Brings the database online; the default."),
    row(W::NoRecovery, A::None, RESTORE_ONE, &[W::Recovery, W::Standby, W::KeepReplication, W::KeepCdc], "Leaves the database restoring, so that further backups can be applied."),
    row(W::Standby, A::Value, RESTORE_ONE, &[W::Recovery, W::NoRecovery], "Leaves the database read-only between restores, with a standby file."),
    row(W::Move, A::Move, RESTORE_AND_VERIFY, &[], "Restores a file to another path."),
    row(W::Replace, A::None, RESTORE_ONE, &[], "Overwrites an existing database or file although it does not belong to the backup."),
    row(W::Restart, A::None, RESTORE_ONE, &[], "Continues a restore that was interrupted."),
    row(W::RestrictedUser, A::None, RESTORE_ONE, &[], "Lets only owners and administrators into the restored database.").never(NO_USERS),
    row(W::Credential, A::Credential, RESTORE_MEDIA, &[], "Names the credential for URL devices; without a name, one must match each URL."),
    row(W::File, A::Number, RESTORE_SETS, &[], "Picks the backup set on the media by its position, 1 unless given.").within(range::POSITION),
    row(W::Password, A::Value, RESTORE_SETS, &[], "The password of the backup set.").never(NO_PASSWORDS),
    row(W::MediaPassword, A::Value, RESTORE_MEDIA, &[], "The password of the media set.").never(NO_PASSWORDS),
    row(W::MediaName, A::Value, RESTORE_MEDIA, &[], "The name that the media set must have."),
    row(W::BlockSize, A::Value, RESTORE_ONE, &[], "Sets the physical block size in bytes.").within(range::BLOCK_BYTES),
    row(W::BufferCount, A::Value, RESTORE_ONE, &[], "Sets the number of I/O buffers.").within(range::BUFFER_COUNT),
    row(W::MaxTransferSize, A::Value, RESTORE_ONE, &[], "Sets the largest transfer in bytes.").within(range::TRANSFER_BYTES),
    row(W::Checksum, A::None, RESTORE_MEDIA, &[W::NoChecksum], "Verifies checksums and fails if the backup has none."),
    row(W::NoChecksum, A::None, RESTORE_MEDIA, &[W::Checksum], "Windlass verifies checksums nevertheless.").no_effect(),
    row(W::StopOnError, A::None, RESTORE_MEDIA, &[W::ContinueAfterError], "Stops at the first error; the default, except for VERIFYONLY."),
    row(W::ContinueAfterError, A::None, RESTORE_MEDIA, &[W::StopOnError], "Continues after errors as far as possible."),
    row(W::Stats, A::OptionalValue, RESTORE_AND_VERIFY, &[], "Reports progress every so many percent, 10 when no number is given.").within(range::STATS),
    row(W::Rewind, A::None, RESTORE_ANY, &[W::NoRewind], "Rewinds the tape.").no_effect(),
    row(W::NoRewind, A::None, RESTORE_ANY, &[W::Rewind, W::Unload], "Keeps the tape open.").no_effect(),
    row(W::Unload, A::None, RESTORE_ANY, &[W::NoUnload, W::NoRewind], "Unloads the tape.").no_effect(),
    row(W::NoUnload, A::None, RESTORE_ANY, &[W::Unload], "Leaves the tape loaded.").no_effect(),
    row(W::KeepReplication, A::None, RESTORE_ONE, &[W::NoRecovery], "Keeps replication settings when a published database is restored elsewhere.").never(NO_EQUIVALENT),
    row(W::KeepCdc, A::None, RESTORE_ONE, &[W::NoRecovery], "Keeps change data capture when the database is restored elsewhere.").never(NO_EQUIVALENT),
    row(W::KeepTemporalRetention, A::None, RESTORE_ONE, &[], "Keeps the retention policy of temporal tables.").never(NO_EQUIVALENT),
    row(W::Filestream, A::Filestream, RESTORE_DATABASE, &[], "Names the directory for FILESTREAM data.").never(NO_EQUIVALENT),
    row(W::EnableBroker, A::None, RESTORE_DATABASE, &[W::ErrorBrokerConversations, W::NewBroker], "Turns Service Broker on after the restore.").never(NO_EQUIVALENT),
    row(W::ErrorBrokerConversations, A::None, RESTORE_DATABASE, &[W::EnableBroker, W::NewBroker], "Ends all Service Broker conversations with an error.").never(NO_EQUIVALENT),
    row(W::NewBroker, A::None, RESTORE_DATABASE, &[W::EnableBroker, W::ErrorBrokerConversations], "Gives the database a new Service Broker identifier.").never(NO_EQUIVALENT),
    row(W::MetadataOnly, A::None, RESTORE_AND_VERIFY, &[], "Restores from the metadata of a snapshot whose files are already in place.").never(NO_SNAPSHOTS),
    row(W::Snapshot, A::None, RESTORE_AND_VERIFY, &[], "The older spelling of METADATA_ONLY.").never(NO_SNAPSHOTS),
    row(W::DbName, A::DatabaseName, RESTORE_AND_VERIFY, &[], "Picks one database of a snapshot backup of several.").never(NO_SNAPSHOTS),
    row(W::RestoreOptions, A::Value, RESTORE_MEDIA, &[], "Passes options as JSON to an S3-compatible store."),
    row(W::StopAt, A::Value, RESTORE_ONE, &[W::StopAtMark, W::StopBeforeMark], "Restores to a point in time, or to an LSN."),
    row(W::StopAtMark, A::StopMark, RESTORE_ONE, &[W::StopAt, W::StopBeforeMark], "Restores to a marked transaction or an LSN; the transaction is included."),
    row(W::StopBeforeMark, A::StopMark, RESTORE_ONE, &[W::StopAt, W::StopAtMark], "Restores to a marked transaction or an LSN; the transaction is left out."),
    row(W::Verbose, A::None, RESTORE_ANY, &[], "Undocumented.").no_effect(),
    row(W::LoadHistory, A::None, VERIFY, &[W::WithoutKey], "Writes the verified backup into the history tables."),
    row(W::WithoutKey, A::None, VERIFY, &[W::LoadHistory], "Checks an encrypted set by its checksums, without a key."),
    row(W::CommitDifferentialBase, A::None, RESTORE_ONE, &[], "Undocumented: commits a snapshot restore as a differential base.").never(NO_SNAPSHOTS),
    row(W::SnapshotImport, A::None, RESTORE_ONE, &[], "Undocumented: imports a snapshot.").never(NO_SNAPSHOTS),
    row(W::SnapshotRestorePhase, A::Value, RESTORE_ONE, &[], "Undocumented: the phase of a snapshot restore.").never(NO_SNAPSHOTS),
    row(W::EnhancedIntegrity, A::Value, RESTORE_ANY, &[], "Undocumented: the integrity check of the set.").never(NO_EQUIVALENT),
    ours(W::AsIs, A::None, RESTORE_DATABASE, &[], "Restores the content of the set even if it is not a database."),
    ours(W::AllowUnencrypted, A::None, RESTORE_ONE, &[], "Applies a backup that is less protected than the encrypted one before it."),
    ours(W::SignedBy, A::Value, RESTORE_AND_VERIFY, &[], "Refuses a backup set that was not signed with the key whose public half is in the named file; may be repeated."),
];

const fn row(
    word: OptionWord,
    argument: ArgumentKind,
    applies_to: &'static [StatementKind],
    conflicts: &'static [OptionWord],
    doc: &'static str,
) -> OptionRow {
    OptionRow {
        word,
        argument,
        applies_to,
        conflicts,
        defined_by: DefinedBy::SqlServer,
        support: Support::Acts,
        range: None,
        doc,
    }
}

impl OptionRow {
    const fn within(self, range: NumberRange) -> Self {
        Self {
            range: Some(range),
            ..self
        }
    }

    const fn no_effect(self) -> Self {
        Self {
            support: Support::NoEffect,
            ..self
        }
    }

    const fn never(self, because: &'static str) -> Self {
        Self {
            support: Support::Never(because),
            ..self
        }
    }
}

const ONE_FILEGROUP: &str = "A SQLite database has one file and one filegroup.";
const NO_PASSWORDS: &str =
    "SQL Server has removed backup passwords, and Windlass media never have one.";
const NO_SNAPSHOTS: &str = "Storage snapshots are not supported.";
const NO_USERS: &str = "A SQLite database has no users.";
const NO_EQUIVALENT: &str = "This option has no equivalent here.";

const fn ours(
    word: OptionWord,
    argument: ArgumentKind,
    applies_to: &'static [StatementKind],
    conflicts: &'static [OptionWord],
    doc: &'static str,
) -> OptionRow {
    OptionRow {
        defined_by: DefinedBy::Windlass,
        ..row(word, argument, applies_to, conflicts, doc)
    }
}

use StatementKind::{
    BackupDatabase, BackupGroup, BackupLog, BackupServer, FileListOnly, HeaderOnly, LabelOnly,
    RestoreDatabase, RestoreLog, RewindOnly, VerifyOnly,
};

const BACKUP_ANY: &[StatementKind] = &[BackupDatabase, BackupLog, BackupGroup, BackupServer];
const BACKUP_ONE: &[StatementKind] = &[BackupDatabase, BackupLog];
const BACKUP_DATABASE: &[StatementKind] = &[BackupDatabase];
const BACKUP_LOG: &[StatementKind] = &[BackupLog];
const RESTORE_ANY: &[StatementKind] = &[
    RestoreDatabase,
    RestoreLog,
    HeaderOnly,
    FileListOnly,
    LabelOnly,
    VerifyOnly,
    RewindOnly,
];
/// Statements that read the media header.
const RESTORE_MEDIA: &[StatementKind] = &[
    RestoreDatabase,
    RestoreLog,
    HeaderOnly,
    FileListOnly,
    LabelOnly,
    VerifyOnly,
];
/// Statements that select a backup set.
const RESTORE_SETS: &[StatementKind] = &[
    RestoreDatabase,
    RestoreLog,
    HeaderOnly,
    FileListOnly,
    VerifyOnly,
];
const RESTORE_AND_VERIFY: &[StatementKind] = &[RestoreDatabase, RestoreLog, VerifyOnly];
const RESTORE_ONE: &[StatementKind] = &[RestoreDatabase, RestoreLog];
const RESTORE_DATABASE: &[StatementKind] = &[RestoreDatabase];
const VERIFY: &[StatementKind] = &[VerifyOnly];
