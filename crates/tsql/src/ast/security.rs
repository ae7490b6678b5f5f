//! Keys and certificates: `CREATE MASTER KEY`, `CREATE`, `BACKUP` and `DROP CERTIFICATE`.

use std::fmt;

use zeroize::Zeroizing;

use super::Identifier;
use crate::span::Spanned;

/// A password or another secret in source form; wiped when dropped. `Debug` does not show it; only the printer does.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// `CREATE CERTIFICATE name ...`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateCertificate {
    /// The new certificate.
    pub name: Spanned<Identifier>,
    pub origin: CertificateOrigin,
}

/// The source of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateOrigin {
    /// `WITH SUBJECT = '...'`: a new key, self-signed.
    New {
        /// `SUBJECT`
        subject: String,
        /// `START_DATE`
        start_date: Option<Spanned<String>>,
        /// `EXPIRY_DATE`
        expiry_date: Option<Spanned<String>>,
    },
    /// `FROM FILE = '...' [WITH PRIVATE KEY (FILE = '...', DECRYPTION BY PASSWORD = '...')]`
    File {
        /// The certificate, PEM or DER.
        file: String,
        /// Its private key; without one, backups can be made but not read.
        private_key: Option<PrivateKeyFile>,
    },
    /// `FROM FILE = '...' WITH FORMAT = 'PFX', PRIVATE KEY (DECRYPTION BY PASSWORD = '...')`
    Pfx {
        /// The file with both.
        file: String,
        password: Secret,
    },
}

/// `PRIVATE KEY (FILE = '...', DECRYPTION | ENCRYPTION BY PASSWORD = '...')`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateKeyFile {
    /// The key, PKCS#8 in PEM or DER.
    pub file: String,
    /// The password that encrypts it.
    pub password: Option<Secret>,
}

/// `BACKUP CERTIFICATE name TO FILE = '...' ...`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupCertificate {
    pub name: Spanned<Identifier>,
    /// The target file.
    pub file: String,
    pub content: CertificateContent,
}

/// What `BACKUP CERTIFICATE` writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateContent {
    Public,
    /// The certificate, and the private key in another file.
    WithKey {
        /// The other file.
        file: String,
        /// The password that encrypts the key.
        password: Secret,
    },
    /// `FORMAT = 'PFX'`: both in one file.
    Pfx {
        /// The password that encrypts it.
        password: Secret,
    },
}
