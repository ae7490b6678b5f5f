//! The options after `WITH` in BACKUP and RESTORE, parsed according to the option table.

use windlass_base::word::{Algorithm, Level, Word as _};

use super::cursor::Parser;
use crate::ast::{
    BackupOption, Compression, CompressionLevel, Credential, Encryption, EncryptionAlgorithm,
    Encryptor, RestoreOption, StopMark, ThreadCount,
};
use crate::error::ParseError;
use crate::lexer::TokenKind;
use crate::option::{ArgumentKind, BACKUP, OptionRow, OptionWord, RESTORE};
use crate::span::Spanned;

const ENCRYPTION_ALGORITHMS: &[(&str, EncryptionAlgorithm)] = &[
    ("AES_128", EncryptionAlgorithm::Aes128),
    ("AES_192", EncryptionAlgorithm::Aes192),
    ("AES_256", EncryptionAlgorithm::Aes256),
    ("TRIPLE_DES_3KEY", EncryptionAlgorithm::TripleDes3Key),
];

impl Parser<'_> {
    /// `[WITH option {, option}]` of BACKUP.
    pub(super) fn backup_options(&mut self) -> Result<Vec<Spanned<BackupOption>>, ParseError> {
        if !self.accept_word("WITH") {
            return Ok(Vec::new());
        }
        self.comma_list(|parser| parser.spanned(Self::backup_option))
    }

    /// `[WITH option {, option}]` of RESTORE.
    pub(super) fn restore_options(&mut self) -> Result<Vec<Spanned<RestoreOption>>, ParseError> {
        let mut options = Vec::new();
        if !self.accept_word("WITH") {
            return Ok(options);
        }
        loop {
            let option = self.spanned(Self::restore_option)?;
            // SQL Server's syntax diagram has no comma between SNAPSHOT and its DBNAME.
            let snapshot = matches!(
                option.node,
                RestoreOption::Flag(OptionWord::Snapshot | OptionWord::MetadataOnly)
            );
            options.push(option);
            if !(self.accept_symbol(",") || snapshot && self.is_word("DBNAME")) {
                return Ok(options);
            }
        }
    }

    fn backup_option(&mut self) -> Result<BackupOption, ParseError> {
        let row = self.option_row("BACKUP", BACKUP)?;
        let option = match row.argument {
            ArgumentKind::None => Some(BackupOption::Flag(row.word)),
            ArgumentKind::Value => {
                self.expect_symbol("=")?;
                Some(BackupOption::Valued(row.word, self.value()?))
            }
            ArgumentKind::OptionalValue => Some(BackupOption::Stats(self.optional_value()?)),
            ArgumentKind::Compression => Some(BackupOption::Compression(self.compression()?)),
            ArgumentKind::Encryption => Some(BackupOption::Encryption(self.encryption()?)),
            ArgumentKind::Credential => Some(BackupOption::Credential(self.credential()?)),
            ArgumentKind::ThreadCount => Some(BackupOption::ThreadCount(self.thread_count()?)),
            ArgumentKind::Goal => {
                self.expect_symbol("=")?;
                Some(BackupOption::Goal(self.one_word()?))
            }
            ArgumentKind::Integrity => {
                self.expect_symbol("=")?;
                Some(BackupOption::Integrity(self.one_word()?))
            }
            ArgumentKind::Auto => {
                self.expect_symbol("=")?;
                self.expect_word("AUTO")?;
                Some(BackupOption::LevelAuto)
            }
            _ => None,
        };
        option.ok_or_else(|| self.unexpected())
    }

    fn restore_option(&mut self) -> Result<RestoreOption, ParseError> {
        let row = self.option_row("RESTORE", RESTORE)?;
        let option = match row.argument {
            ArgumentKind::None => Some(RestoreOption::Flag(row.word)),
            ArgumentKind::Value => {
                self.expect_symbol("=")?;
                Some(RestoreOption::Valued(row.word, self.value()?))
            }
            ArgumentKind::Number => {
                self.expect_symbol("=")?;
                Some(RestoreOption::Valued(row.word, self.number_or_variable()?))
            }
            ArgumentKind::OptionalValue => Some(RestoreOption::Stats(self.optional_value()?)),
            ArgumentKind::Credential => Some(RestoreOption::Credential(self.credential()?)),
            ArgumentKind::Move => Some(self.move_file()?),
            ArgumentKind::Filestream => Some(self.filestream()?),
            ArgumentKind::StopMark => Some(self.stop_mark(row.word)?),
            ArgumentKind::DatabaseName => {
                self.expect_symbol("=")?;
                Some(RestoreOption::DbName(self.name_or_text()?))
            }
            _ => None,
        };
        option.ok_or_else(|| self.unexpected())
    }

    /// The row of the next word, which is consumed.
    fn option_row(
        &mut self,
        statement: &str,
        rows: &'static [OptionRow],
    ) -> Result<&'static OptionRow, ParseError> {
        let Some(word) = self.word() else {
            return Err(self.unexpected());
        };
        let found = OptionWord::find(word);
        let row = found.and_then(|word| rows.iter().find(|row| row.word == word));
        let Some(row) = row else {
            // FILE is reserved, so where it is not an option it is a syntax error like any keyword.
            if !self.is_at_identifier() {
                return Err(self.unexpected());
            }
            let known = rows.iter().map(|row| row.word.spelling());
            return Err(ParseError::unknown_option(
                self.here(),
                word,
                statement,
                known,
            ));
        };
        self.bump();
        Ok(row)
    }

    fn optional_value(&mut self) -> Result<Option<crate::ast::Value>, ParseError> {
        if self.accept_symbol("=") {
            self.value().map(Some)
        } else {
            Ok(None)
        }
    }

    fn compression(&mut self) -> Result<Option<Compression>, ParseError> {
        if !self.accept_symbol("(") {
            return Ok(None);
        }
        if self.is_word("LEVEL") {
            let hint = "The algorithm comes first: COMPRESSION (ALGORITHM = ZSTD, LEVEL = HIGH).";
            return Err(self.unexpected().with_hint(hint));
        }
        self.expect_word("ALGORITHM")?;
        self.expect_symbol("=")?;
        let algorithm = self.algorithm()?;
        let level = if self.accept_symbol(",") {
            self.expect_word("LEVEL")?;
            self.expect_symbol("=")?;
            Some(self.level()?)
        } else {
            None
        };
        self.expect_symbol(")")?;
        Ok(Some(Compression { algorithm, level }))
    }

    fn algorithm(&mut self) -> Result<Algorithm, ParseError> {
        let words = Algorithm::WORDS.iter().map(|word| (word.spelling(), *word));
        let choices: Vec<_> = words.filter(|(_, word)| *word != Algorithm::None).collect();
        self.one_of(&choices)
    }

    fn level(&mut self) -> Result<CompressionLevel, ParseError> {
        let fixed = |word: &Level| (word.spelling(), CompressionLevel::Fixed(*word));
        let choices: Vec<_> = Level::WORDS.iter().map(fixed).collect();
        self.one_of(&[choices, vec![("AUTO", CompressionLevel::Auto)]].concat())
    }

    fn encryption(&mut self) -> Result<Encryption, ParseError> {
        self.expect_symbol("(")?;
        self.expect_word("ALGORITHM")?;
        self.expect_symbol("=")?;
        let algorithm = self.one_of(ENCRYPTION_ALGORITHMS)?;
        self.expect_symbol(",")?;
        self.expect_word("SERVER")?;
        let encryptor: fn(_) -> Encryptor = if self.accept_word("CERTIFICATE") {
            Encryptor::ServerCertificate
        } else {
            self.expect_words(&["ASYMMETRIC", "KEY"])?;
            Encryptor::ServerAsymmetricKey
        };
        self.expect_symbol("=")?;
        let key = self.spanned(Self::identifier)?;
        self.expect_symbol(")")?;
        Ok(Encryption {
            algorithm,
            encryptor: encryptor(key),
        })
    }

    fn credential(&mut self) -> Result<Option<Credential>, ParseError> {
        if !self.accept_symbol("=") {
            return Ok(None);
        }
        if self.is_at_identifier() {
            return self
                .identifier()
                .map(|name| Some(Credential::Identifier(name)));
        }
        self.text_or_variable()
            .map(|value| Some(Credential::Value(value)))
    }

    fn thread_count(&mut self) -> Result<ThreadCount, ParseError> {
        self.expect_symbol("=")?;
        if self.accept_word("AUTO") {
            return Ok(ThreadCount::Auto);
        }
        self.value().map(ThreadCount::Count)
    }

    fn move_file(&mut self) -> Result<RestoreOption, ParseError> {
        let logical = self.spanned(Self::text_or_variable)?;
        self.expect_word("TO")?;
        let path = self.spanned(Self::text_or_variable)?;
        Ok(RestoreOption::Move { logical, path })
    }

    fn filestream(&mut self) -> Result<RestoreOption, ParseError> {
        self.expect_symbol("(")?;
        self.expect_word("DIRECTORY_NAME")?;
        self.expect_symbol("=")?;
        let directory_name = self.text_or_variable()?;
        self.expect_symbol(")")?;
        Ok(RestoreOption::Filestream { directory_name })
    }

    fn stop_mark(&mut self, word: OptionWord) -> Result<RestoreOption, ParseError> {
        self.expect_symbol("=")?;
        let mark = self.spanned(Self::text_or_variable)?;
        let after = if self.accept_word("AFTER") {
            Some(self.spanned(Self::text_or_variable)?)
        } else {
            None
        };
        let mark = StopMark { mark, after };
        Ok(match word {
            OptionWord::StopBeforeMark => RestoreOption::StopBeforeMark(mark),
            _ => RestoreOption::StopAtMark(mark),
        })
    }

    /// Whether the next token is a string.
    pub(super) fn is_at_text(&self) -> bool {
        matches!(self.kind(), Some(TokenKind::Text { .. }))
    }
}
