//! `BACKUP`.

pub use windlass_base::word::{Algorithm, Depth, Goal, Level};

use super::{Device, FileSpec, Identifier, Name, Value};
use crate::option::OptionWord;
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
    /// A word alone.
    Flag(OptionWord),
    /// `word = x`
    Valued(OptionWord, Value),
    /// `COMPRESSION [(ALGORITHM = x [, LEVEL = y])]`
    Compression(Option<Compression>),
    /// `ENCRYPTION (ALGORITHM = x, SERVER CERTIFICATE | SERVER ASYMMETRIC KEY = y)`
    Encryption(Encryption),
    /// `CREDENTIAL [= x]`
    Credential(Option<Credential>),
    /// `STATS [= x]`
    Stats(Option<Value>),
    /// `THREADCOUNT = x | AUTO`: a Windlass option.
    ThreadCount(ThreadCount),
    /// `LEVEL = AUTO`: a Windlass option. The ZSTD level is picked chunk by chunk while the backup
    /// runs.
    LevelAuto,
    /// `GOAL = x`: a Windlass option. What the backup adapts to.
    Goal(Goal),
    /// `INTEGRITY = x`, a Windlass option: `SQLite`'s own check before the copy.
    Integrity(Depth),
}

impl BackupOption {
    /// The first word of the option.
    pub fn word(&self) -> OptionWord {
        match self {
            Self::Flag(word) | Self::Valued(word, _) => *word,
            Self::Compression(_) => OptionWord::Compression,
            Self::Encryption(_) => OptionWord::Encryption,
            Self::Credential(_) => OptionWord::Credential,
            Self::Stats(_) => OptionWord::Stats,
            Self::ThreadCount(_) => OptionWord::ThreadCount,
            Self::LevelAuto => OptionWord::Level,
            Self::Goal(_) => OptionWord::Goal,
            Self::Integrity(_) => OptionWord::Integrity,
        }
    }
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
