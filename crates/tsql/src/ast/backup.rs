//! `BACKUP`.

pub use windlass_base::word::{Algorithm, Depth, Goal, Level};

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
    /// The options in source order, including repetitions and conflicts.
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

/// One option after `WITH`. The option table describes them.
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
    /// `NOWRITE`: a Windlass option. Read and transform, write nothing.
    NoWrite,
    /// `NOCOMPRESSWRITE`: a Windlass option. Read only, neither compress nor write.
    NoCompressWrite,
    /// `THREADCOUNT = x | AUTO`: a Windlass option.
    ThreadCount(ThreadCount),
    /// `LEVEL = AUTO`: a Windlass option. The ZSTD level is picked chunk by chunk while the backup
    /// runs.
    LevelAuto,
    /// `GOAL = x`: a Windlass option. What the backup adapts to.
    Goal(Goal),
    /// `AS_IS`: a Windlass option. Accepts content without a `SQLite` header.
    AsIs,
    /// `INTEGRITY = x`, a Windlass option: `SQLite`'s own check before the copy.
    Integrity(Depth),
    /// `MAXRATE = x`, a Windlass option: maximum MB per second read from the database.
    MaxRate(Value),
    /// `SIGN_WITH = x`
    SignWith(Value),
    /// `MAXWRITERATE = x`: a Windlass option. MB that may be written to each device per second.
    MaxWriteRate(Value),
}

/// The content of the parentheses after `COMPRESSION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// `ALGORITHM = x`; `NONE` is not written.
    pub algorithm: Algorithm,
    /// `LEVEL = x`
    pub level: Option<CompressionLevel>,
}

/// The levels of `COMPRESSION (..., LEVEL = ...)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionLevel {
    /// As given.
    Fixed(Level),
    /// `AUTO`, a Windlass option.
    Auto,
}

/// The parentheses after `ENCRYPTION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encryption {
    /// `ALGORITHM = x`
    pub algorithm: EncryptionAlgorithm,
    /// The owner of the key.
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

/// The owner of the key of an encrypted backup.
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
    Count(Value),
}
