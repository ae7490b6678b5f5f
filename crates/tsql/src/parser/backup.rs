//! `BACKUP`.

use super::cursor::Parser;
use super::value::Pages;
use crate::ast::{BackupStatement, BackupTarget, Statement};
use crate::error::ParseError;

/// Maximum number of `MIRROR TO` clauses in a statement.
const MIRRORS_MAX: usize = 3;

impl Parser<'_> {
    pub(super) fn backup(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("BACKUP")?;
        let target = self.backup_target()?;
        self.expect_word("TO")?;
        let devices = self.devices()?;
        let mut mirrors = Vec::new();
        while self.is_word("MIRROR") {
            if mirrors.len() == MIRRORS_MAX {
                return Err(self
                    .unexpected()
                    .with_hint("A backup has at most three mirrors."));
            }
            self.bump();
            self.expect_word("TO")?;
            mirrors.push(self.devices()?);
        }
        let options = self.backup_options()?;
        let statement = BackupStatement {
            target,
            devices,
            mirrors,
            options,
        };
        Ok(Statement::Backup(Box::new(statement)))
    }

    fn backup_target(&mut self) -> Result<BackupTarget, ParseError> {
        if self.accept_word("DATABASE") {
            let name = self.spanned(Self::name)?;
            let files = self.file_specs(Pages::Refused)?;
            return Ok(BackupTarget::Database { name, files });
        }
        if self.accept_word("LOG") {
            return Ok(BackupTarget::Log {
                name: self.spanned(Self::name)?,
            });
        }
        if self.accept_word("GROUP") {
            let names = self.comma_list(|parser| parser.spanned(Self::name))?;
            return Ok(BackupTarget::Group { names });
        }
        if self.accept_word("SERVER") {
            return Ok(BackupTarget::Server);
        }
        for keys in ["MASTER", "SERVICE", "SYMMETRIC"] {
            if self.is_word(keys) {
                let what = format!("BACKUP {keys}");
                return Err(self.not_supported(
                    &what,
                    "Only BACKUP CERTIFICATE is supported; the \
                    master key is in the instance's catalog, encrypted with its password.",
                ));
            }
        }
        Err(self.unexpected())
    }
}
