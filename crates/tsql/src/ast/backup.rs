//! `BACKUP`.

use super::{Device, FileSpec, Identifier, Name, Value};
use crate::span::Spanned;

/// `BACKUP target TO devices [MIRROR TO devices]... [WITH options]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupStatement {
    /// What is backed up.
    pub target: BackupTarget,
    /// The devices of the first (or only) mirror, in source order; never empty.
    pub devices: Vec<Spanned<Device>>,
    /// The devices of each `MIRROR TO`, at most three lists, none empty.
    pub mirrors: Vec<Vec<Spanned<Device>>>,
    /// The options in source order; repetitions and conflicts are kept.
    pub options: Vec<Spanned<BackupOption>>,
}

/// What a BACKUP statement names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupTarget {
    /// `DATABASE name [files]`
    Database {
        /// The database.
        name: Spanned<Name>,
        /// The files and filegroups; empty for the whole database. Never [`FileSpec::Page`].
        files: Vec<Spanned<FileSpec>>,
    },
    /// `LOG name`
    Log {
        /// The database.
        name: Spanned<Name>,
    },
    /// `GROUP name, ...`: several databases suspended for a snapshot backup.
    Group {
        /// The databases; never empty.
        names: Vec<Spanned<Name>>,
    },
    /// `SERVER`: all databases suspended for a snapshot backup.
    Server,
}

/// One option after `WITH`. The option table says what each is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupOption {
    /// `DIFFERENTIAL`
    Differential,
    /// `COPY_ONLY`
    CopyOnly,
    /// `COMPRESSION [(ALGORITHM = x [, LEVEL = y])]`
    Compression(Option<Compression>),
    /// `NO_COMPRESSION`
    NoCompression,
    /// `ENCRYPTION (ALGORITHM = x, SERVER CERTIFICATE | SERVER ASYMMETRIC KEY = y)`
    Encryption(Encryption),
    /// `NO_ENCRYPTION`
    NoEncryption,
    /// `CREDENTIAL [= x]`
    Credential(Option<Credential>),
    /// `FILE_SNAPSHOT`
    FileSnapshot,
    /// `METADATA_ONLY`
    MetadataOnly,
    /// `SNAPSHOT`, the older spelling of `METADATA_ONLY`
    Snapshot,
    /// `NAME = x`
    Name(Value),
    /// `DESCRIPTION = x`
    Description(Value),
    /// `EXPIREDATE = x`
    ExpireDate(Value),
    /// `RETAINDAYS = x`
    RetainDays(Value),
    /// `INIT`
    Init,
    /// `NOINIT`
    NoInit,
    /// `SKIP`
    Skip,
    /// `NOSKIP`
    NoSkip,
    /// `FORMAT`
    Format,
    /// `NOFORMAT`
    NoFormat,
    /// `MEDIANAME = x`
    MediaName(Value),
    /// `MEDIADESCRIPTION = x`
    MediaDescription(Value),
    /// `PASSWORD = x`
    Password(Value),
    /// `MEDIAPASSWORD = x`
    MediaPassword(Value),
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
    /// `RESTART`
    Restart,
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
    /// `BACKUP_OPTIONS = 'json'`
    BackupOptions(Value),
    /// `NORECOVERY` (log)
    NoRecovery,
    /// `STANDBY = x` (log)
    Standby(Value),
    /// `NO_TRUNCATE` (log)
    NoTruncate,
    /// `NOWRITE`: ours. Read and transform, write nothing.
    NoWrite,
    /// `NOCOMPRESSWRITE`: ours. Read only, neither compress nor write.
    NoCompressWrite,
    /// `THREADCOUNT = x | AUTO`: ours.
    ThreadCount(ThreadCount),
    /// `LEVEL = AUTO`: ours. The level of ZSTD is picked chunk by chunk while the backup runs.
    LevelAuto,
    /// `GOAL = x`: ours. What the backup adapts itself to.
    Goal(Goal),
    /// `AS_IS`: ours. Content without a header of `SQLite`'s is taken as it is.
    AsIs,
    /// `INTEGRITY = x`: ours. `SQLite`'s own check before the copy.
    Integrity(Integrity),
    /// `MAXRATE = x`: ours. MB of the database that may be read in a second.
    MaxRate(Value),
    /// `MAXWRITERATE = x`: ours. MB that may be written to each device in a second.
    MaxWriteRate(Value),
}

/// How far the check of `INTEGRITY = ...` goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integrity {
    /// `QUICK`
    Quick,
    /// `FULL`
    Full,
}

/// The goals of `GOAL = ...`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// `FAST`
    Fast,
    /// `SMALL`
    Small,
    /// `GENTLE`
    Gentle,
}

/// What stands in parentheses after `COMPRESSION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// `ALGORITHM = x`
    pub algorithm: CompressionAlgorithm,
    /// `LEVEL = x`
    pub level: Option<CompressionLevel>,
}

/// The algorithms of `COMPRESSION (ALGORITHM = ...)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionAlgorithm {
    /// `MS_XPRESS`
    MsXpress,
    /// `ZSTD`
    Zstd,
    /// `QAT_DEFLATE`
    QatDeflate,
}

/// The levels of `COMPRESSION (..., LEVEL = ...)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionLevel {
    /// `LOW`
    Low,
    /// `MEDIUM`
    Medium,
    /// `HIGH`
    High,
    /// `AUTO`: ours.
    Auto,
}

/// What stands in parentheses after `ENCRYPTION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encryption {
    /// `ALGORITHM = x`
    pub algorithm: EncryptionAlgorithm,
    /// Who holds the key.
    pub encryptor: Encryptor,
}

/// The algorithms of `ENCRYPTION (ALGORITHM = ...)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncryptionAlgorithm {
    /// `AES_128`
    Aes128,
    /// `AES_192`
    Aes192,
    /// `AES_256`
    Aes256,
    /// `TRIPLE_DES_3KEY`
    TripleDes3Key,
}

/// Who holds the key of an encrypted backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encryptor {
    /// `SERVER CERTIFICATE = x`
    ServerCertificate(Spanned<Identifier>),
    /// `SERVER ASYMMETRIC KEY = x`
    ServerAsymmetricKey(Spanned<Identifier>),
}

/// The value of `CREDENTIAL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// `CREDENTIAL = 'x'` or a variable
    Value(Value),
    /// `CREDENTIAL = x`
    Identifier(Identifier),
}

/// The value of `THREADCOUNT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadCount {
    /// `AUTO`
    Auto,
    /// A number of threads.
    Count(Value),
}
