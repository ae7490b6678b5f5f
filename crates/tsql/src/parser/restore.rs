//! `RESTORE`.

use super::cursor::Parser;
use super::value::Pages;
use crate::ast::{RestoreAction, RestoreSource, RestoreStatement, Statement};
use crate::error::ParseError;

const ONLY: &[(&str, RestoreAction)] = &[
    ("HEADERONLY", RestoreAction::HeaderOnly),
    ("FILELISTONLY", RestoreAction::FileListOnly),
    ("LABELONLY", RestoreAction::LabelOnly),
    ("VERIFYONLY", RestoreAction::VerifyOnly),
    ("REWINDONLY", RestoreAction::RewindOnly),
];

impl Parser<'_> {
    pub(super) fn restore(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("RESTORE")?;
        let action = self.restore_action()?;
        let source = self.restore_source(&action)?;
        let options = match source {
            // A revert has no options: its WITH is a syntax error, not another statement.
            RestoreSource::DatabaseSnapshot(_) if self.is_word("WITH") => {
                return Err(self.unexpected());
            }
            RestoreSource::DatabaseSnapshot(_) => Vec::new(),
            RestoreSource::None | RestoreSource::Devices(_) => self.restore_options()?,
        };
        let statement = RestoreStatement {
            action,
            source,
            options,
        };
        Ok(Statement::Restore(Box::new(statement)))
    }

    fn restore_action(&mut self) -> Result<RestoreAction, ParseError> {
        if self.accept_word("DATABASE") {
            let name = self.spanned(Self::name)?;
            let files = self.file_specs(Pages::Allowed)?;
            return Ok(RestoreAction::Database { name, files });
        }
        if self.accept_word("LOG") {
            let name = self.spanned(Self::name)?;
            let files = self.file_specs(Pages::Allowed)?;
            return Ok(RestoreAction::Log { name, files });
        }
        if let Some((_, action)) = ONLY.iter().find(|(word, _)| self.is_word(word)) {
            self.bump();
            return Ok(action.clone());
        }
        for keys in ["MASTER", "SERVICE", "SYMMETRIC"] {
            if self.is_word(keys) {
                let what = format!("RESTORE {keys}");
                return Err(self.not_supported(
                    &what,
                    "CREATE CERTIFICATE ... FROM FILE restores certificates.",
                ));
            }
        }
        Err(self.unexpected())
    }

    fn restore_source(&mut self, action: &RestoreAction) -> Result<RestoreSource, ParseError> {
        if !self.is_word("FROM") {
            return match action {
                RestoreAction::Database { .. } | RestoreAction::Log { .. } => {
                    Ok(RestoreSource::None)
                }
                _ => Err(self.unexpected()),
            };
        }
        self.bump();
        if !(self.is_word("DATABASE_SNAPSHOT") && self.is_symbol_at(1, "=")) {
            return self.devices().map(RestoreSource::Devices);
        }
        if !matches!(action, RestoreAction::Database { files, .. } if files.is_empty()) {
            return Err(self.unexpected());
        }
        self.bump();
        self.expect_symbol("=")?;
        self.spanned(Self::name_or_text)
            .map(RestoreSource::DatabaseSnapshot)
    }
}
