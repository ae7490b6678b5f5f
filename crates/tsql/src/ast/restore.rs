//! `RESTORE`.

use super::{Credential, Device, FileSpec, Name, Value};
use crate::option::OptionWord;
use crate::span::Spanned;

/// `RESTORE action [FROM source] [WITH options]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreStatement {
    /// What is restored or read.
    pub action: RestoreAction,
    pub source: RestoreSource,
    /// The options in source order, including repetitions and conflicts.
    pub options: Vec<Spanned<RestoreOption>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreAction {
    /// `DATABASE name [files]`
    Database {
        /// The database.
        name: Spanned<Name>,
        /// The files, filegroups and pages; empty for the whole set.
        files: Vec<Spanned<FileSpec>>,
    },
    /// `LOG name [files]`
    Log {
        /// The database.
        name: Spanned<Name>,
        /// The files, filegroups and pages; empty for all.
        files: Vec<Spanned<FileSpec>>,
    },
    /// `HEADERONLY`
    HeaderOnly,
    /// `FILELISTONLY`
    FileListOnly,
    /// `LABELONLY`
    LabelOnly,
    /// `VERIFYONLY`
    VerifyOnly,
    /// `REWINDONLY`
    RewindOnly,
}

/// The source of a RESTORE statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreSource {
    /// No `FROM`: recovery only. Only with [`RestoreAction::Database`] and [`RestoreAction::Log`].
    None,
    /// `FROM device, ...`; never empty.
    Devices(Vec<Spanned<Device>>),
    /// `FROM DATABASE_SNAPSHOT = 'name'` (or a name, or a variable): revert. Only with [`RestoreAction::Database`].
    DatabaseSnapshot(Spanned<Name>),
}

/// One option after `WITH`. The option table describes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOption {
    /// A word alone.
    Flag(OptionWord),
    /// `word = x`; for `FILE` a number or a variable.
    Valued(OptionWord, Value),
    /// `MOVE 'logical' TO 'path'`: strings and variables only.
    Move {
        /// The logical file name in the set.
        logical: Spanned<Value>,
        /// The path to restore it to.
        path: Spanned<Value>,
    },
    /// `CREDENTIAL [= x]`
    Credential(Option<Credential>),
    /// `STATS [= x]`
    Stats(Option<Value>),
    /// `FILESTREAM (DIRECTORY_NAME = x)`
    Filestream {
        /// `DIRECTORY_NAME = x`
        directory_name: Value,
    },
    /// `DBNAME = x`
    DbName(Name),
    /// `STOPATMARK = x [AFTER y]`
    StopAtMark(StopMark),
    /// `STOPBEFOREMARK = x [AFTER y]`
    StopBeforeMark(StopMark),
}

impl RestoreOption {
    /// The first word of the option.
    pub fn word(&self) -> OptionWord {
        match self {
            Self::Flag(word) | Self::Valued(word, _) => *word,
            Self::Move { .. } => OptionWord::Move,
            Self::Credential(_) => OptionWord::Credential,
            Self::Stats(_) => OptionWord::Stats,
            Self::Filestream { .. } => OptionWord::Filestream,
            Self::DbName(_) => OptionWord::DbName,
            Self::StopAtMark(_) => OptionWord::StopAtMark,
            Self::StopBeforeMark(_) => OptionWord::StopBeforeMark,
        }
    }
}

/// A mark in the log, or `'lsn:<number>'`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopMark {
    /// The name of the mark: a string or a variable.
    pub mark: Spanned<Value>,
    /// `AFTER 'datetime'`: the first mark of that name after this time.
    pub after: Option<Spanned<Value>>,
}
