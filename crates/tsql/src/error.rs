//! Syntax errors, with SQL Server's number and wording if it has one.
//!
//! Neighbours: the lexer and the parser create them; the `instance` crate turns them into messages.
//!
//! Invariant: the position is that of the offending token in the given text; `text` is SQL Server's
//! wording, `hint` adds what the reader also needs.

use thiserror::Error;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_base::similar::did_you_mean;

use crate::keyword;
use crate::span::Span;

/// A syntax error. The whole batch is refused: none of it has run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text}{}", self.hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default())]
pub struct ParseError {
    /// SQL Server's message number: 102, 105, 113, 155, 156; Windlass numbers start at 50000.
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
    /// Advice, in whole sentences.
    pub hint: Option<String>,
}

impl ParseError {
    /// A message about the token at `span`.
    pub(crate) fn new(span: Span, message: Message) -> Self {
        Self {
            number: message.number,
            severity: 15,
            state: message.state,
            line: span.line,
            column: span.column,
            offset: span.start,
            text: message.text,
            hint: None,
        }
    }

    /// The same error with advice.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error for a text that starts `lines` lines further down in its file.
    #[must_use]
    pub fn moved_down(mut self, lines: u32) -> Self {
        self.line = self.line.saturating_add(lines);
        self
    }

    /// 102, or 156 when the text is a reserved word.
    pub(crate) fn near(span: Span, found: &str) -> Self {
        let shown = shortened(found);
        if keyword::is_reserved(found) {
            Self::new(span, table::syntax_near_keyword(shown))
        } else {
            let error = Self::new(span, table::syntax_near(shown));
            Self {
                hint: did_you_mean(found, WORDS.iter().copied()),
                ..error
            }
        }
    }

    /// 102 for a text that ends too early: SQL Server names the last token.
    pub(crate) fn ends_early(last: Span, found: &str) -> Self {
        Self::new(last, table::syntax_near(shortened(found)))
            .with_hint("The statement is not complete.")
    }

    /// 105: a string or quoted identifier without its end.
    pub(crate) fn unclosed_quote(span: Span, content: &str) -> Self {
        Self::new(span, table::unclosed_quote(shortened(content)))
    }

    /// 113: a block comment without its end.
    pub(crate) fn missing_end_comment(span: Span) -> Self {
        Self::new(span, table::missing_end_comment())
    }

    /// 155: a word after `WITH` that `statement` does not have.
    pub(crate) fn unknown_option<'a>(
        span: Span,
        option: &str,
        statement: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> Self {
        let error = Self::new(span, table::unknown_option(shortened(option), statement));
        Self {
            hint: did_you_mean(option, known),
            ..error
        }
    }

    /// The same error without the token that it names, if that may be a password or a key: a string in a batch with
    /// the word PASSWORD or SECRET, or anything right after that word.
    #[must_use]
    pub(crate) fn discreet(mut self, text: &str) -> Self {
        let before = text.get(..self.offset).unwrap_or(text).to_ascii_uppercase();
        let before = before.trim_end().trim_end_matches('=').trim_end();
        let token = text.get(self.offset..).unwrap_or("");
        let token = token.strip_prefix(['N', 'n']).unwrap_or(token);
        let is_string = token.starts_with(['\'', '"', '[']);
        let tells = |word| before.ends_with(word) || is_string && before.contains(word);
        if ["PASSWORD", "SECRET"].into_iter().any(tells) {
            let message = match self.number {
                105 => table::unclosed_quote(HIDDEN),
                102 | 103 | 156 => table::syntax_near(HIDDEN),
                _ => return self,
            };
            (self.number, self.text) = (message.number, message.text);
            self.hint = None;
        }
        self
    }

    /// T-SQL that SQL Server would run and Windlass does not.
    pub(crate) fn not_supported(span: Span, what: &str, hint: &str) -> Self {
        let mut message = table::statement_not_supported(shortened(what), "");
        message.text.truncate(message.text.trim_end().len());
        Self::new(span, message).with_hint(hint)
    }
}

/// Words that begin a statement, and may be mistyped: what begins with another word is taken for a call.
pub const STATEMENTS: &[&str] = &[
    "ALTER", "BACKUP", "CREATE", "DECLARE", "DELETE", "DROP", "EXECUTE", "INSERT", "PRINT",
    "RESTORE", "SELECT", "UPDATE",
];

/// The words of BACKUP and RESTORE that stand where only they can.
const WORDS: &[&str] = &[
    "ALGORITHM",
    "DATABASE",
    "DISK",
    "FILELISTONLY",
    "FROM",
    "HEADERONLY",
    "LABELONLY",
    "LEVEL",
    "MIRROR",
    "VERIFYONLY",
    "WITH",
];

/// What an error shows in place of a password.
const HIDDEN: &str = "***";

/// Maximum number of source characters in a message.
const SHOWN_CHARACTERS_MAX: usize = 128;

fn shortened(text: &str) -> String {
    text.chars().take(SHOWN_CHARACTERS_MAX).collect()
}
