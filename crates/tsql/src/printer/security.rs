//! Keys and certificates. Passwords are printed, because the text must be runnable.

use std::fmt::{self, Display, Formatter};

use super::value::Quoted;
use crate::ast::{
    BackupCertificate, CertificateContent, CertificateOrigin, CreateCertificate, Secret,
};

pub(super) fn quoted(text: &str) -> Quoted<'_> {
    Quoted {
        text,
        national: !text.is_ascii(),
    }
}

impl Display for Secret {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "BY PASSWORD = {}", quoted(self.text()))
    }
}

impl Display for CreateCertificate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "CREATE CERTIFICATE {} ", self.name.node)?;
        match &self.origin {
            CertificateOrigin::New {
                subject,
                start_date,
                expiry_date,
            } => {
                write!(f, "WITH SUBJECT = {}", quoted(subject))?;
                for (name, date) in [("START_DATE", start_date), ("EXPIRY_DATE", expiry_date)] {
                    if let Some(date) = date {
                        write!(f, ", {name} = {}", quoted(&date.node))?;
                    }
                }
                Ok(())
            }
            CertificateOrigin::File { file, private_key } => {
                write!(f, "FROM FILE = {}", quoted(file))?;
                let Some(key) = private_key else {
                    return Ok(());
                };
                write!(f, " WITH PRIVATE KEY (FILE = {}", quoted(&key.file))?;
                if let Some(password) = &key.password {
                    write!(f, ", DECRYPTION {password}")?;
                }
                f.write_str(")")
            }
            CertificateOrigin::Pfx { file, password } => write!(
                f,
                "FROM FILE = {} WITH FORMAT = 'PFX', PRIVATE KEY (DECRYPTION {password})",
                quoted(file)
            ),
        }
    }
}

impl Display for BackupCertificate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, file) = (&self.name.node, quoted(&self.file));
        write!(f, "BACKUP CERTIFICATE {name} TO FILE = {file}")?;
        match &self.content {
            CertificateContent::Public => Ok(()),
            CertificateContent::WithKey { file, password } => write!(
                f,
                " WITH PRIVATE KEY (FILE = {}, ENCRYPTION {password})",
                quoted(file)
            ),
            CertificateContent::Pfx { password } => write!(
                f,
                " WITH FORMAT = 'PFX', PRIVATE KEY (ENCRYPTION {password})"
            ),
        }
    }
}
