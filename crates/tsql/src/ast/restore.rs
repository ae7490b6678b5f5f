//! `RESTORE`.

use super::{Credential, Device, FileSpec, Name, Value};
use crate::span::Spanned;

/// `RESTORE action [FROM source] [WITH options]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreStatement {
    /// What is restored or read.
    pub action: RestoreAction,
    pub source: RestoreSource,
    /// The options in source order, including repetitions and conflicts.
    pub options: Vec<Spanned<RestoreOption>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreAction {
    /// `DATABASE name [files]`
    Database {
        /// The database.
        name: Spanned<Name>,
        /// The files, filegroups and pages; empty for the whole set.
        files: Vec<Spanned<FileSpec>>,
    },
    /// `LOG name [files]`
    Log {
        /// The database.
        name: Spanned<Name>,
        /// The files, filegroups and pages; empty for all.
        files: Vec<Spanned<FileSpec>>,
    },
    /// `HEADERONLY`
    HeaderOnly,
    /// `FILELISTONLY`
    FileListOnly,
    /// `LABELONLY`
    LabelOnly,
    /// `VERIFYONLY`
    VerifyOnly,
    /// `REWINDONLY`
    RewindOnly,
}

/// The source of a RESTORE statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreSource {
    /// No `FROM`: recovery only. Only with [`RestoreAction::Database`] and [`RestoreAction::Log`].
    None,
    /// `FROM device, ...`; never empty.
    Devices(Vec<Spanned<Device>>),
    /// `FROM DATABASE_SNAPSHOT = 'name'` (or a name, or a variable): revert. Only with [`RestoreAction::Database`].
    DatabaseSnapshot(Spanned<Name>),
}

/// One option after `WITH`. The option table describes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOption {
    /// `PARTIAL`
    Partial,
    /// `RECOVERY`
    Recovery,
    /// `NORECOVERY`
    NoRecovery,
    /// `STANDBY = x`
    Standby(Value),
    /// `MOVE 'logical' TO 'path'`: strings and variables only.
    Move {
        /// The logical file name in the set.
        logical: Spanned<Value>,
        /// The path to restore it to.
        path: Spanned<Value>,
    },
    /// `REPLACE`
    Replace,
    /// `RESTART`
    Restart,
    /// `AS_IS`
    AsIs,
    /// `ALLOW_UNENCRYPTED`
    AllowUnencrypted,
    /// `SIGNED_BY = x`
    SignedBy(Value),
    /// `RESTRICTED_USER`
    RestrictedUser,
    /// `CREDENTIAL [= x]`
    Credential(Option<Credential>),
    /// `FILE = n`: a number or a variable.
    File(Value),
    /// `PASSWORD = x`
    Password(Value),
    /// `MEDIAPASSWORD = x`
    MediaPassword(Value),
    /// `MEDIANAME = x`
    MediaName(Value),
    /// `BLOCKSIZE = x`
    BlockSize(Value),
    /// `BUFFERCOUNT = x`
    BufferCount(Value),
    /// `MAXTRANSFERSIZE = x`
    MaxTransferSize(Value),
    /// `CHECKSUM`
    Checksum,
    /// `NO_CHECKSUM`
    NoChecksum,
    /// `STOP_ON_ERROR`
    StopOnError,
    /// `CONTINUE_AFTER_ERROR`
    ContinueAfterError,
    /// `STATS [= x]`
    Stats(Option<Value>),
    /// `REWIND`
    Rewind,
    /// `NOREWIND`
    NoRewind,
    /// `UNLOAD`
    Unload,
    /// `NOUNLOAD`
    NoUnload,
    /// `KEEP_REPLICATION`
    KeepReplication,
    /// `KEEP_CDC`
    KeepCdc,
    /// `KEEP_TEMPORAL_RETENTION`
    KeepTemporalRetention,
    /// `FILESTREAM (DIRECTORY_NAME = x)`
    Filestream {
        /// `DIRECTORY_NAME = x`
        directory_name: Value,
    },
    /// `ENABLE_BROKER`
    EnableBroker,
    /// `ERROR_BROKER_CONVERSATIONS`
    ErrorBrokerConversations,
    /// `NEW_BROKER`
    NewBroker,
    /// `METADATA_ONLY`
    MetadataOnly,
    /// `SNAPSHOT`, the older spelling of `METADATA_ONLY`
    Snapshot,
    /// `DBNAME = x`
    DbName(Name),
    /// `RESTORE_OPTIONS = 'json'`
    RestoreOptions(Value),
    /// `STOPAT = x`
    StopAt(Value),
    /// `STOPATMARK = x [AFTER y]`
    StopAtMark(StopMark),
    /// `STOPBEFOREMARK = x [AFTER y]`
    StopBeforeMark(StopMark),
    /// `VERBOSE`
    Verbose,
    /// `LOADHISTORY` (VERIFYONLY)
    LoadHistory,
    /// `WITHOUTKEY` (VERIFYONLY): a Windlass option. Checks an encrypted set by its checksums,
    /// without a key.
    WithoutKey,
    /// `COMMIT_DIFFERENTIAL_BASE`
    CommitDifferentialBase,
    /// `SNAPSHOT_IMPORT`
    SnapshotImport,
    /// `SNAPSHOTRESTOREPHASE = x`
    SnapshotRestorePhase(Value),
    /// `ENHANCEDINTEGRITY = x`
    EnhancedIntegrity(Value),
}

/// A mark in the log, or `'lsn:<number>'`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopMark {
    /// The name of the mark: a string or a variable.
    pub mark: Spanned<Value>,
    /// `AFTER 'datetime'`: the first mark of that name after this time.
    pub after: Option<Spanned<Value>>,
}
