//! `BACKUP`.

use std::fmt::{self, Display, Formatter};

use super::value::Files;
use super::{List, With};
use crate::ast::{
    BackupOption, BackupStatement, BackupTarget, Compression, CompressionLevel, Credential,
    Encryption, EncryptionAlgorithm, Encryptor, ThreadCount,
};

impl Display for BackupStatement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "BACKUP {} TO {}", self.target, List(&self.devices))?;
        for mirror in &self.mirrors {
            write!(f, " MIRROR TO {}", List(mirror))?;
        }
        With(&self.options).fmt(f)
    }
}

impl Display for BackupTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database { name, files } => write!(f, "DATABASE {}{}", name.node, Files(files)),
            Self::Log { name } => write!(f, "LOG {}", name.node),
            Self::Group { names } => write!(f, "GROUP {}", List(names)),
            Self::Server => f.write_str("SERVER"),
        }
    }
}

impl Display for BackupOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.word().spelling())?;
        match self {
            Self::Compression(Some(compression)) => write!(f, " ({compression})"),
            Self::Encryption(encryption) => write!(f, " ({encryption})"),
            Self::Credential(Some(credential)) => write!(f, " = {credential}"),
            Self::Stats(Some(percent)) => write!(f, " = {percent}"),
            Self::ThreadCount(ThreadCount::Auto) | Self::LevelAuto => f.write_str(" = AUTO"),
            Self::Goal(goal) => write!(f, " = {goal}"),
            Self::Integrity(depth) => write!(f, " = {depth}"),
            Self::ThreadCount(ThreadCount::Count(count)) => write!(f, " = {count}"),
            Self::Valued(_, value) => write!(f, " = {value}"),
            _ => Ok(()),
        }
    }
}

impl Display for Compression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ALGORITHM = {}", self.algorithm)?;
        self.level
            .map_or(Ok(()), |level| write!(f, ", LEVEL = {level}"))
    }
}

impl Display for CompressionLevel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(level) => level.fmt(f),
            Self::Auto => f.write_str("AUTO"),
        }
    }
}

impl Display for Encryption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (holder, key) = match &self.encryptor {
            Encryptor::ServerCertificate(key) => ("CERTIFICATE", key),
            Encryptor::ServerAsymmetricKey(key) => ("ASYMMETRIC KEY", key),
        };
        write!(
            f,
            "ALGORITHM = {}, SERVER {holder} = {}",
            self.algorithm, key.node
        )
    }
}

impl Display for EncryptionAlgorithm {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aes128 => "AES_128",
            Self::Aes192 => "AES_192",
            Self::Aes256 => "AES_256",
            Self::TripleDes3Key => "TRIPLE_DES_3KEY",
        })
    }
}

impl Display for Credential {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Identifier(identifier) => identifier.fmt(f),
        }
    }
}
