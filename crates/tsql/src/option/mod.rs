//! The options after `WITH` of BACKUP and RESTORE: their arguments, and where they apply.
//!
//! One table, [`table`], is the source: it drives the parser, says what is refused and why, and
//! `docs/tsql-options.md` is printed from it. Adding an option is one word and one row; only
//! an argument of a new shape needs a variant of [`BackupOption`] or [`RestoreOption`].
//!
//! [`BackupOption`]: crate::ast::BackupOption
//! [`RestoreOption`]: crate::ast::RestoreOption

pub mod table;

use windlass_base::range::NumberRange;

pub use table::{BACKUP, OptionWord, RESTORE};

/// A row of the option table.
#[derive(Debug, Clone, Copy)]
pub struct OptionRow {
    /// The first word of the option.
    pub word: OptionWord,
    /// What follows the word.
    pub argument: ArgumentKind,
    /// The statements that have the option; the parser accepts it in every statement of the same
    /// verb, as SQL Server's does, and the others are refused later (message 3032).
    pub applies_to: &'static [StatementKind],
    /// The options that conflict with it (message 3031).
    pub conflicts: &'static [OptionWord],
    pub defined_by: DefinedBy,
    pub support: Support,
    /// The numbers it takes, if it takes a number; checked by the operation (message 3250).
    pub range: Option<NumberRange>,
    /// Its purpose, in one sentence.
    pub doc: &'static str,
}

impl OptionRow {
    /// The option with its argument, in the notation of SQL Server's documentation.
    pub fn synopsis(&self) -> String {
        format!("{}{}", self.word.spelling(), self.argument.synopsis())
    }

    /// Whether `statement` has the option.
    pub fn applies(&self, statement: StatementKind) -> bool {
        self.applies_to.contains(&statement)
    }
}

/// The row of a BACKUP option.
pub fn backup_row(word: OptionWord) -> Option<&'static OptionRow> {
    BACKUP.iter().find(|row| row.word == word)
}

/// The row of a RESTORE option.
pub fn restore_row(word: OptionWord) -> Option<&'static OptionRow> {
    RESTORE.iter().find(|row| row.word == word)
}

/// What follows the word of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    /// Nothing.
    None,
    /// `= value`: a string, an integer or a variable; checked later.
    Value,
    /// `[= value]`
    OptionalValue,
    /// `= number`: an integer or a variable.
    Number,
    /// `[(ALGORITHM = x [, LEVEL = y])]`
    Compression,
    /// `(ALGORITHM = x, SERVER CERTIFICATE | SERVER ASYMMETRIC KEY = y)`
    Encryption,
    /// `[= 'credential']`; a name is allowed instead of the string.
    Credential,
    /// `= n | AUTO`
    ThreadCount,
    /// `= AUTO`
    Auto,
    /// `= FAST | SMALL | GENTLE`
    Goal,
    /// `= QUICK | FULL`
    Integrity,
    /// `'logical' TO 'path'`
    Move,
    /// `(DIRECTORY_NAME = x)`
    Filestream,
    /// `= 'mark' [AFTER 'datetime']`
    StopMark,
    /// `= name`; a string or a variable may have the name.
    DatabaseName,
}

impl ArgumentKind {
    fn synopsis(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Value => " = value",
            Self::OptionalValue => " [= value]",
            Self::Number => " = number",
            Self::Compression => {
                " [(ALGORITHM = MS_XPRESS|ZSTD|QAT_DEFLATE [, LEVEL = LOW|MEDIUM|HIGH|AUTO])]"
            }
            Self::Encryption => {
                " (ALGORITHM = AES_128|AES_192|AES_256|TRIPLE_DES_3KEY, \
                 SERVER CERTIFICATE|SERVER ASYMMETRIC KEY = name)"
            }
            Self::Credential => " [= 'credential']",
            Self::ThreadCount => " = number|AUTO",
            Self::Auto => " = AUTO",
            Self::Goal => " = FAST|SMALL|GENTLE",
            Self::Integrity => " = QUICK|FULL",
            Self::Move => " 'logical file' TO 'path'",
            Self::Filestream => " (DIRECTORY_NAME = value)",
            Self::StopMark => " = 'mark'|'lsn:number' [AFTER 'datetime']",
            Self::DatabaseName => " = database",
        }
    }
}

/// The statements that take options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    /// `BACKUP DATABASE`
    BackupDatabase,
    /// `BACKUP LOG`
    BackupLog,
    /// `BACKUP GROUP`
    BackupGroup,
    /// `BACKUP SERVER`
    BackupServer,
    /// `RESTORE DATABASE`
    RestoreDatabase,
    /// `RESTORE LOG`
    RestoreLog,
    /// `RESTORE HEADERONLY`
    HeaderOnly,
    /// `RESTORE FILELISTONLY`
    FileListOnly,
    /// `RESTORE LABELONLY`
    LabelOnly,
    /// `RESTORE VERIFYONLY`
    VerifyOnly,
    /// `RESTORE REWINDONLY`
    RewindOnly,
}

/// How Windlass handles an option. The parser accepts all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    Acts,
    /// It is accepted, and there is nothing for it to do.
    NoEffect,
    /// It has no equivalent here; says why.
    Never(&'static str),
}

/// Who defined an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinedBy {
    SqlServer,
    Windlass,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_a_row_and_no_table_names_a_word_twice() {
        for table in [BACKUP, RESTORE] {
            for (index, row) in table.iter().enumerate() {
                assert!(
                    table
                        .iter()
                        .skip(index + 1)
                        .all(|other| other.word != row.word)
                );
                assert!(
                    !row.applies_to.is_empty() && row.doc.ends_with('.'),
                    "{row:?}"
                );
            }
        }
        for word in OptionWord::ALL {
            assert!(
                backup_row(*word).is_some() || restore_row(*word).is_some(),
                "{word:?}"
            );
            assert_eq!(
                OptionWord::find(&word.spelling().to_lowercase()),
                Some(*word)
            );
        }
    }

    #[test]
    fn conflicts_are_mutual() {
        for table in [BACKUP, RESTORE] {
            for row in table {
                for conflict in row.conflicts {
                    let other = table.iter().find(|other| other.word == *conflict);
                    let mutual = other.is_some_and(|other| other.conflicts.contains(&row.word));
                    assert!(mutual, "{:?} and {conflict:?}", row.word);
                }
            }
        }
    }

    #[test]
    fn synopses_read_like_the_documentation() {
        let row = backup_row(OptionWord::Stats).unwrap();
        assert_eq!(row.synopsis(), "STATS [= value]");
    }
}
