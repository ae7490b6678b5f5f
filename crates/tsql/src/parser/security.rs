//! `CREATE` and `DROP MASTER KEY`, `CREATE`, `BACKUP` and `DROP CERTIFICATE`.

use super::cursor::Parser;
use crate::ast::{
    BackupCertificate, CertificateContent, CertificateOrigin, CreateCertificate, PrivateKeyFile,
    Secret, Statement,
};
use crate::error::ParseError;
use crate::span::Spanned;

/// The content of `PRIVATE KEY ( ... )`.
#[derive(Default)]
struct PrivateKeyClause {
    file: Option<String>,
    decryption: Option<Secret>,
    encryption: Option<Secret>,
}

/// The content of the `WITH` of a file.
#[derive(Default)]
struct FileClause {
    is_pfx: bool,
    private_key: Option<PrivateKeyClause>,
}

impl Parser<'_> {
    pub(super) fn create_master_key(&mut self) -> Result<Statement, ParseError> {
        self.expect_words(&["CREATE", "MASTER", "KEY"])?;
        if !self.is_word("ENCRYPTION") {
            let hint = "Write ENCRYPTION BY PASSWORD = '...': the password opens the key if the instance's service key is lost.";
            return Err(self.not_supported("CREATE MASTER KEY without a password", hint));
        }
        self.bump();
        let password = self.by_password()?;
        Ok(Statement::CreateMasterKey { password })
    }

    pub(super) fn drop_master_key(&mut self) -> Result<Statement, ParseError> {
        self.expect_words(&["DROP", "MASTER", "KEY"])?;
        Ok(Statement::DropMasterKey)
    }

    pub(super) fn drop_certificate(&mut self) -> Result<Statement, ParseError> {
        self.expect_words(&["DROP", "CERTIFICATE"])?;
        self.spanned(Self::identifier)
            .map(Statement::DropCertificate)
    }

    pub(super) fn create_certificate(&mut self) -> Result<Statement, ParseError> {
        self.expect_words(&["CREATE", "CERTIFICATE"])?;
        let name = self.spanned(Self::identifier)?;
        if self.is_word("AUTHORIZATION") {
            return Err(self.not_supported("AUTHORIZATION", "There are no database users."));
        }
        let origin = if self.accept_word("FROM") {
            self.certificate_file()?
        } else {
            if self.is_word("ENCRYPTION") {
                let hint = "Private keys are encrypted under the master key.";
                return Err(self.not_supported("ENCRYPTION BY PASSWORD here", hint));
            }
            self.new_certificate()?
        };
        let statement = CreateCertificate { name, origin };
        Ok(Statement::CreateCertificate(Box::new(statement)))
    }

    fn new_certificate(&mut self) -> Result<CertificateOrigin, ParseError> {
        self.expect_words(&["WITH", "SUBJECT"])?;
        self.expect_symbol("=")?;
        let subject = self.text()?;
        let (mut start_date, mut expiry_date) = (None, None);
        while self.accept_symbol(",") {
            let unexpected = self.unexpected();
            let slot: &mut Option<Spanned<String>> = if self.accept_word("START_DATE") {
                &mut start_date
            } else if self.accept_word("EXPIRY_DATE") {
                &mut expiry_date
            } else {
                return Err(unexpected);
            };
            if slot.is_some() {
                return Err(unexpected.with_hint("It is specified twice."));
            }
            self.expect_symbol("=")?;
            *slot = Some(self.spanned(Self::text)?);
        }
        Ok(CertificateOrigin::New {
            subject,
            start_date,
            expiry_date,
        })
    }

    fn certificate_file(&mut self) -> Result<CertificateOrigin, ParseError> {
        for other in ["EXECUTABLE", "ASSEMBLY", "BINARY"] {
            if self.is_word(other) {
                return Err(self.not_supported(&format!("FROM {other}"), "Write FROM FILE."));
            }
        }
        self.expect_word("FILE")?;
        self.expect_symbol("=")?;
        let file = self.text()?;
        let unexpected = self.unexpected();
        let clause = self.file_clause()?;
        match (clause.is_pfx, clause.private_key) {
            (
                true,
                Some(PrivateKeyClause {
                    file: None,
                    decryption: Some(password),
                    encryption: None,
                }),
            ) => Ok(CertificateOrigin::Pfx { file, password }),
            (false, None) => Ok(CertificateOrigin::File {
                file,
                private_key: None,
            }),
            (
                false,
                Some(PrivateKeyClause {
                    file: Some(key),
                    decryption: password,
                    encryption: None,
                }),
            ) => Ok(CertificateOrigin::File {
                file,
                private_key: Some(PrivateKeyFile {
                    file: key,
                    password,
                }),
            }),
            _ => Err(unexpected.with_hint(
                "A PRIVATE KEY takes FILE and DECRYPTION BY PASSWORD; with FORMAT = 'PFX', \
                 DECRYPTION BY PASSWORD alone. It is stored encrypted under the master key.",
            )),
        }
    }

    pub(super) fn backup_certificate(&mut self) -> Result<Statement, ParseError> {
        self.expect_words(&["BACKUP", "CERTIFICATE"])?;
        let name = self.spanned(Self::identifier)?;
        self.expect_words(&["TO", "FILE"])?;
        self.expect_symbol("=")?;
        let file = self.text()?;
        let unexpected = self.unexpected();
        let clause = self.file_clause()?;
        let content = match (clause.is_pfx, clause.private_key) {
            (false, None) => CertificateContent::Public,
            (
                true,
                Some(PrivateKeyClause {
                    file: None,
                    encryption: Some(password),
                    decryption: None,
                }),
            ) => CertificateContent::Pfx { password },
            (
                false,
                Some(PrivateKeyClause {
                    file: Some(file),
                    encryption: Some(password),
                    decryption: None,
                }),
            ) => CertificateContent::WithKey { file, password },
            _ => {
                return Err(unexpected.with_hint(
                    "A PRIVATE KEY takes FILE and ENCRYPTION BY PASSWORD; with FORMAT = 'PFX', ENCRYPTION BY PASSWORD alone.",
                ));
            }
        };
        let statement = BackupCertificate {
            name,
            file,
            content,
        };
        Ok(Statement::BackupCertificate(Box::new(statement)))
    }

    /// `[WITH [FORMAT = 'PFX',] PRIVATE KEY ( ... )]`
    fn file_clause(&mut self) -> Result<FileClause, ParseError> {
        let mut clause = FileClause::default();
        if !self.accept_word("WITH") {
            return Ok(clause);
        }
        if self.accept_word("FORMAT") {
            self.expect_symbol("=")?;
            let unexpected = self.unexpected();
            if !self.text()?.eq_ignore_ascii_case("PFX") {
                return Err(unexpected.with_hint("The only FORMAT is 'PFX'."));
            }
            clause.is_pfx = true;
            self.expect_symbol(",")?;
        }
        self.expect_words(&["PRIVATE", "KEY"])?;
        self.expect_symbol("(")?;
        let properties = self.comma_list(super::cursor::Parser::private_key_property)?;
        self.expect_symbol(")")?;
        let mut key = PrivateKeyClause::default();
        for property in properties {
            let unexpected = self.unexpected();
            let repeated = match property {
                KeyProperty::File(file) => key.file.replace(file).is_some(),
                KeyProperty::Decryption(secret) => key.decryption.replace(secret).is_some(),
                KeyProperty::Encryption(secret) => key.encryption.replace(secret).is_some(),
            };
            if repeated {
                return Err(unexpected.with_hint("An option of PRIVATE KEY is specified twice."));
            }
        }
        clause.private_key = Some(key);
        Ok(clause)
    }

    fn private_key_property(&mut self) -> Result<KeyProperty, ParseError> {
        if self.accept_word("FILE") {
            self.expect_symbol("=")?;
            return self.text().map(KeyProperty::File);
        }
        if self.accept_word("DECRYPTION") {
            return self.by_password().map(KeyProperty::Decryption);
        }
        self.expect_word("ENCRYPTION")?;
        self.by_password().map(KeyProperty::Encryption)
    }

    fn by_password(&mut self) -> Result<Secret, ParseError> {
        self.expect_words(&["BY", "PASSWORD"])?;
        self.expect_symbol("=")?;
        self.text().map(Secret::new)
    }
}

enum KeyProperty {
    File(String),
    Decryption(Secret),
    Encryption(Secret),
}
