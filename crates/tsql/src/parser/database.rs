//! `CREATE`, `ALTER` and `DROP DATABASE`, `ALTER SERVER CONFIGURATION`.

use super::cursor::Parser;
use super::passthrough;
use crate::ast::{
    Accelerator, AcceleratorMode, AlterDatabase, AlterDatabaseAction, AlterServerConfiguration,
    AlteredDatabase, CreateDatabase, DatabaseOption, DatabaseOrigin, DropDatabase, FileDefinition,
    FileGrowth, FileSize, FileSizeLimit, Filegroup, RecoveryModel, SizeUnit, Statement, Switch,
    TimeUnit,
};
use crate::error::ParseError;
use crate::lexer::unquoted;
use crate::span::Spanned;

const SIZE_UNITS: &[(&str, SizeUnit)] = &[
    ("KB", SizeUnit::Kilobyte),
    ("MB", SizeUnit::Megabyte),
    ("GB", SizeUnit::Gigabyte),
    ("TB", SizeUnit::Terabyte),
];

impl Parser<'_> {
    pub(super) fn create_database(&mut self) -> Result<Statement, ParseError> {
        self.expect_words(&["CREATE", "DATABASE"])?;
        let mut statement = CreateDatabase {
            name: self.spanned(Self::identifier)?,
            primary_files: Vec::new(),
            filegroups: Vec::new(),
            log_files: Vec::new(),
            origin: DatabaseOrigin::New,
        };
        if self.accept_word("ON") {
            self.data_files(&mut statement)?;
            if self.accept_word("LOG") {
                self.expect_word("ON")?;
                statement.log_files = self.file_definitions()?;
            }
        }
        if self.accept_word("FOR") {
            statement.origin = if self.accept_word("ATTACH_REBUILD_LOG") {
                DatabaseOrigin::AttachRebuildLog
            } else {
                self.expect_word("ATTACH")?;
                if self.is_word("WITH") && self.is_word_at(1, "AS_IS") {
                    self.expect_words(&["WITH", "AS_IS"])?;
                    DatabaseOrigin::AttachAsIs
                } else {
                    DatabaseOrigin::Attach
                }
            };
        } else if self.accept_word("AS") {
            self.expect_words(&["SNAPSHOT", "OF"])?;
            statement.origin = DatabaseOrigin::SnapshotOf(self.spanned(Self::identifier)?);
        }
        Ok(Statement::CreateDatabase(Box::new(statement)))
    }

    /// `[PRIMARY] file, ... [, FILEGROUP name file, ...]...`
    fn data_files(&mut self, statement: &mut CreateDatabase) -> Result<(), ParseError> {
        self.accept_word("PRIMARY");
        statement
            .primary_files
            .push(self.spanned(Self::file_definition)?);
        while self.accept_symbol(",") {
            if self.accept_word("FILEGROUP") {
                let name = self.spanned(Self::identifier)?;
                let files = vec![self.spanned(Self::file_definition)?];
                statement.filegroups.push(Filegroup { name, files });
                continue;
            }
            let file = self.spanned(Self::file_definition)?;
            match statement.filegroups.last_mut() {
                Some(filegroup) => filegroup.files.push(file),
                None => statement.primary_files.push(file),
            }
        }
        Ok(())
    }

    fn file_definitions(&mut self) -> Result<Vec<Spanned<FileDefinition>>, ParseError> {
        self.comma_list(|parser| parser.spanned(Self::file_definition))
    }

    fn file_definition(&mut self) -> Result<FileDefinition, ParseError> {
        let mut file = FileDefinition::default();
        self.expect_symbol("(")?;
        loop {
            self.file_property(&mut file)?;
            if !self.accept_symbol(",") {
                break;
            }
        }
        self.expect_symbol(")")?;
        Ok(file)
    }

    fn file_property(&mut self, file: &mut FileDefinition) -> Result<(), ParseError> {
        let property = self.here();
        let unexpected = self.unexpected();
        let word = self.word().unwrap_or("").to_ascii_uppercase();
        self.bump();
        if !self.accept_symbol("=") {
            return Err(unexpected);
        }
        let repeated = match word.as_str() {
            "NAME" => file
                .name
                .replace(self.spanned(Self::identifier_or_text)?)
                .is_some(),
            "FILENAME" => file.filename.replace(self.spanned(Self::text)?).is_some(),
            "SIZE" => file.size.replace(self.file_size()?).is_some(),
            "MAXSIZE" => file.max_size.replace(self.file_size_limit()?).is_some(),
            "FILEGROWTH" => file.growth.replace(self.file_growth()?).is_some(),
            _ => return Err(unexpected),
        };
        if repeated {
            return Err(ParseError::near(property, &word).with_hint("It is specified twice."));
        }
        Ok(())
    }

    pub(super) fn text(&mut self) -> Result<String, ParseError> {
        let Some(token) = self.token().filter(|_| self.is_at_text()) else {
            return Err(self.unexpected());
        };
        self.bump();
        Ok(unquoted(token, self.text))
    }

    fn file_size(&mut self) -> Result<FileSize, ParseError> {
        let count = self.integer("")?;
        let unit = if SIZE_UNITS.iter().any(|(word, _)| self.is_word(word)) {
            Some(self.one_of(SIZE_UNITS)?)
        } else {
            None
        };
        Ok(FileSize { count, unit })
    }

    fn file_size_limit(&mut self) -> Result<FileSizeLimit, ParseError> {
        if self.accept_word("UNLIMITED") {
            return Ok(FileSizeLimit::Unlimited);
        }
        self.file_size().map(FileSizeLimit::Size)
    }

    fn file_growth(&mut self) -> Result<FileGrowth, ParseError> {
        let size = self.file_size()?;
        if size.unit.is_none() && self.accept_symbol("%") {
            return Ok(FileGrowth::Percent(size.count));
        }
        Ok(FileGrowth::Size(size))
    }

    pub(super) fn drop_database(&mut self) -> Result<Statement, ParseError> {
        self.expect_words(&["DROP", "DATABASE"])?;
        let if_exists = self.accept_word("IF");
        if if_exists {
            self.expect_word("EXISTS")?;
        }
        let names = self.comma_list(|parser| parser.spanned(Self::identifier))?;
        Ok(Statement::DropDatabase(DropDatabase { if_exists, names }))
    }

    pub(super) fn alter_database(&mut self) -> Result<Statement, ParseError> {
        self.expect_words(&["ALTER", "DATABASE"])?;
        let database = if self.accept_word("CURRENT") {
            AlteredDatabase::Current
        } else {
            AlteredDatabase::Named(self.spanned(Self::identifier)?)
        };
        let start = self.place();
        let action = match self.known_alteration() {
            Some(action) if self.is_at_statement_end() => action,
            _ => {
                self.return_to(start);
                AlterDatabaseAction::Other {
                    text: self.words_to_end()?.to_owned(),
                }
            }
        };
        Ok(Statement::AlterDatabase(AlterDatabase { database, action }))
    }

    /// An action with its own type, if there is one here.
    fn known_alteration(&mut self) -> Option<AlterDatabaseAction> {
        if self.accept_word("SET") {
            let options = self
                .comma_list(|parser| parser.spanned(Self::database_option))
                .ok()?;
            return Some(AlterDatabaseAction::Set(options));
        }
        self.expect_word("ADD").ok()?;
        if self.accept_word("LOG") {
            self.expect_word("FILE").ok()?;
            let files = self.file_definitions().ok()?;
            return Some(AlterDatabaseAction::AddLogFiles { files });
        }
        self.expect_word("FILE").ok()?;
        let files = self.file_definitions().ok()?;
        let filegroup = if self.accept_word("TO") {
            self.expect_word("FILEGROUP").ok()?;
            Some(self.spanned(Self::identifier).ok()?)
        } else {
            None
        };
        Some(AlterDatabaseAction::AddFiles { files, filegroup })
    }

    fn database_option(&mut self) -> Result<DatabaseOption, ParseError> {
        if self.accept_word("RECOVERY") {
            let model = self.one_of(&[
                ("FULL", RecoveryModel::Full),
                ("BULK_LOGGED", RecoveryModel::BulkLogged),
                ("SIMPLE", RecoveryModel::Simple),
            ])?;
            return Ok(DatabaseOption::Recovery(model));
        }
        self.expect_word("TARGET_RECOVERY_TIME")?;
        self.expect_symbol("=")?;
        let count = self.integer("")?;
        let unit = self.one_of(&[
            ("SECONDS", TimeUnit::Seconds),
            ("MINUTES", TimeUnit::Minutes),
        ])?;
        Ok(DatabaseOption::TargetRecoveryTime { count, unit })
    }

    /// Whether a statement may end here: at the end, at `;`, or before a word that starts another one.
    fn is_at_statement_end(&self) -> bool {
        let begins_another = |word: &str| {
            !word.eq_ignore_ascii_case("WITH")
                && (passthrough::is_owned(word) || passthrough::is_starter(word))
        };
        self.is_at_end() || self.is_symbol(";") || self.word().is_some_and(begins_another)
    }

    pub(super) fn alter_server_configuration(&mut self) -> Result<Statement, ParseError> {
        self.expect_words(&["ALTER", "SERVER"])?;
        if !self.is_word("CONFIGURATION") {
            let hint = "Of ALTER SERVER there are ROLE, and CONFIGURATION SET HARDWARE_OFFLOAD.";
            return Err(self.not_supported("ALTER SERVER AUDIT and the like", hint));
        }
        self.expect_words(&["CONFIGURATION", "SET"])?;
        if !self.accept_word("HARDWARE_OFFLOAD") {
            let what = format!("ALTER SERVER CONFIGURATION SET {}", self.text_at(0));
            return Err(self.not_supported(&what, "Only HARDWARE_OFFLOAD can be set."));
        }
        self.accept_symbol("=");
        let hardware_offload = self.switch()?;
        let accelerator = if hardware_offload == Switch::On || self.is_symbol("(") {
            Some(self.accelerator()?)
        } else {
            None
        };
        let statement = AlterServerConfiguration {
            hardware_offload,
            accelerator,
        };
        Ok(Statement::AlterServerConfiguration(statement))
    }

    fn accelerator(&mut self) -> Result<Accelerator, ParseError> {
        self.expect_symbol("(")?;
        self.expect_word("ACCELERATOR")?;
        self.expect_symbol("=")?;
        self.expect_word("QAT")?;
        let mut mode = AcceleratorMode::Automatic;
        if self.accept_symbol(",") {
            self.expect_word("MODE")?;
            self.expect_symbol("=")?;
            self.expect_word("SOFTWARE")?;
            mode = AcceleratorMode::Software;
        }
        self.expect_symbol(")")?;
        Ok(Accelerator { mode })
    }
}
