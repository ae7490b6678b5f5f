//! Why a text is not a statement, with SQL Server's number and wording where it has one.
//!
//! Neighbours: the lexer and the parser make these; the `instance` crate turns them into messages.
//!
//! Invariant: the position is that of the offending token, in the text that was handed in; `text` is
//! what SQL Server says, `hint` what it does not say but the reader needs.

use thiserror::Error;

use crate::span::Span;

/// A syntax error. The whole batch is refused: nothing of it has run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text}{}", self.hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default())]
#[non_exhaustive]
pub struct ParseError {
    /// SQL Server's message number: 102, 105, 113, 155, 156 and a few more.
    pub number: u32,
    /// Always 15: the user can correct it.
    pub severity: u8,
    /// SQL Server's message state.
    pub state: u8,
    /// Line of the offending token, counted from 1.
    pub line: u32,
    /// Column of the offending token in characters, counted from 1.
    pub column: u32,
    /// Byte offset of the offending token.
    pub offset: usize,
    /// The message in SQL Server's wording.
    pub text: String,
    /// What to do about it, as whole sentences.
    pub hint: Option<String>,
}

impl ParseError {
    /// An error at `span` with message `number`, state 1.
    pub fn new(number: u32, span: Span, text: String) -> Self {
        Self {
            number,
            severity: 15,
            state: 1,
            line: span.line,
            column: span.column,
            offset: span.start,
            text,
            hint: None,
        }
    }

    /// The same error with advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error for a text that began `lines` lines further down in its file.
    #[must_use]
    pub fn moved_down(mut self, lines: u32) -> Self {
        self.line = self.line.saturating_add(lines);
        self
    }
}
