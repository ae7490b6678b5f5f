//! Text to tokens.
//!
//! Neighbours: [`crate::batch`] and the rewriter for `SQLite` use the raw tokens of [`Lexer`], including
//! white space and comments; the parser uses those of [`tokenize`], without them.
//!
//! Invariants:
//! * The raw tokens cover any text without gaps or overlaps: [`Lexer`] cannot fail.
//! * Characters unknown to T-SQL are tokens too ([`TokenKind::Other`]), so that pass-through SQL
//!   reaches `SQLite` unchanged.
//! * One pass, no recursion: nested comments are counted.

mod lookalike;
mod scan;

use crate::error::ParseError;
use crate::span::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// White space, line ends included.
    Space,
    /// `-- ...` without the line end.
    LineComment,
    /// `/* ... */`
    BlockComment {
        /// Whether it contains another comment (T-SQL nests them, `SQLite` does not).
        nested: bool,
    },
    /// A keyword or a regular identifier.
    Word,
    /// `[...]`
    BracketedIdentifier,
    /// `"..."`
    QuotedIdentifier,
    /// `@x`, `@@x`
    Variable,
    /// `'...'`, `N'...'`
    Text {
        /// Whether `N` precedes the quote.
        national: bool,
    },
    /// Digits.
    Integer,
    /// Digits with a point or an exponent.
    Decimal,
    /// `0x...`
    Hexadecimal,
    /// An operator or punctuation, as long as possible (`+=`, `<>`).
    Symbol,
    /// A character that starts no known token.
    Other,
    /// A string, identifier or comment without its end.
    Unterminated(Unterminated),
}

/// What lacks its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unterminated {
    /// `'...`, `N'...`
    Text,
    /// `[...` or `"...`
    Identifier,
    /// `/* ...`
    Comment,
}

/// A token and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

impl Token {
    /// Whether the parser skips it.
    pub fn is_trivia(&self) -> bool {
        matches!(
            self.kind,
            TokenKind::Space | TokenKind::LineComment | TokenKind::BlockComment { .. }
        )
    }

    /// Whether it is a regular word equal to `word` in any case.
    pub fn is_word(&self, text: &str, word: &str) -> bool {
        self.kind == TokenKind::Word && self.span.text(text).eq_ignore_ascii_case(word)
    }
}

/// Splits a text into raw tokens.
#[derive(Debug, Clone)]
pub struct Lexer<'a> {
    text: &'a str,
    offset: usize,
    line: u32,
    column: u32,
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of `text`.
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            offset: 0,
            line: 1,
            column: 1,
        }
    }

    fn advance(&mut self, length: usize) -> Span {
        let start = self.offset;
        let end = start.saturating_add(length).min(self.text.len());
        let span = Span {
            start,
            end,
            line: self.line,
            column: self.column,
        };
        for character in span.text(self.text).chars() {
            if character == '\n' {
                self.line = self.line.saturating_add(1);
                self.column = 1;
            } else {
                self.column = self.column.saturating_add(1);
            }
        }
        self.offset = end;
        span
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let rest = self.text.get(self.offset..)?;
        let (kind, length) = scan::token(rest)?;
        Some(Token {
            kind,
            span: self.advance(length),
        })
    }
}

/// The tokens of `text` without white space and comments, or an error at the first invalid token.
pub fn tokenize(text: &str) -> Result<Vec<Token>, ParseError> {
    let mut tokens = Vec::new();
    for token in Lexer::new(text) {
        match token.kind {
            TokenKind::Unterminated(what) => return Err(unterminated(text, token, what)),
            TokenKind::Other => {
                if let Some(error) = lookalike::error(token.span, token.span.text(text)) {
                    return Err(error);
                }
                tokens.push(token);
            }
            _ if token.is_trivia() => {}
            _ => tokens.push(token),
        }
    }
    Ok(tokens)
}

fn unterminated(text: &str, token: Token, what: Unterminated) -> ParseError {
    let found = token.span.text(text);
    match what {
        Unterminated::Comment => ParseError::missing_end_comment(token.span),
        Unterminated::Text | Unterminated::Identifier => {
            let content = found.trim_start_matches(['N', 'n']);
            let content = content.get(1..).unwrap_or("");
            ParseError::unclosed_quote(token.span, content)
        }
    }
}

/// The content of a string or identifier token, without quotes and with doubled ones unescaped.
pub fn unquoted(token: &Token, text: &str) -> String {
    let found = token.span.text(text);
    let (open, close) = match token.kind {
        TokenKind::Text { national: true } => (2, '\''),
        TokenKind::Text { national: false } => (1, '\''),
        TokenKind::BracketedIdentifier => (1, ']'),
        TokenKind::QuotedIdentifier => (1, '"'),
        _ => return found.to_owned(),
    };
    let inner = found.get(open..found.len().saturating_sub(1)).unwrap_or("");
    let mut result = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        result.push(character);
        if character == close {
            characters.next();
        }
    }
    result
}

/// Whether `text` is a regular identifier, which needs no brackets (apart from reserved words).
pub fn is_regular_identifier(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(scan::starts_word) && characters.all(scan::continues_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(TokenKind, &str)> {
        Lexer::new(text)
            .filter(|token| !token.is_trivia())
            .map(|token| (token.kind, token.span.text(text)))
            .collect()
    }

    #[test]
    fn quoted_forms_keep_their_doubled_quotes_together() {
        let text = r#"'it''s' N'x''' [a]]b] "c""d""#;
        let tokens = tokenize(text).unwrap();
        let contents: Vec<_> = tokens.iter().map(|token| unquoted(token, text)).collect();
        assert_eq!(contents, ["it's", "x'", "a]b", "c\"d"]);
    }

    #[test]
    fn numbers_of_every_kind() {
        use TokenKind::{Decimal, Hexadecimal, Integer};
        assert_eq!(
            kinds("12 1.5 .5 1. 1e5 2E-3 0x1F 0x"),
            [
                (Integer, "12"),
                (Decimal, "1.5"),
                (Decimal, ".5"),
                (Decimal, "1."),
                (Decimal, "1e5"),
                (Decimal, "2E-3"),
                (Hexadecimal, "0x1F"),
                (Hexadecimal, "0x"),
            ]
        );
    }

    #[test]
    fn an_exponent_letter_without_digits_begins_a_word() {
        assert_eq!(
            kinds("1e"),
            [(TokenKind::Integer, "1"), (TokenKind::Word, "e")]
        );
    }

    #[test]
    fn symbols_are_as_long_as_possible() {
        let symbols: Vec<_> = kinds("a+=b<>c||d.e->>f")
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        assert_eq!(
            symbols,
            ["a", "+=", "b", "<>", "c", "||", "d", ".", "e", "->>", "f"]
        );
    }

    #[test]
    fn block_comments_nest_and_line_comments_end_with_their_line() {
        assert_eq!(
            kinds("/* a /* b */ c */ x -- y\nz"),
            [(TokenKind::Word, "x"), (TokenKind::Word, "z")]
        );
    }

    #[test]
    fn positions_count_lines_and_characters() {
        let tokens = tokenize("é\n  'two\nlines' x").unwrap();
        let places: Vec<_> = tokens
            .iter()
            .map(|t| (t.span.line, t.span.column))
            .collect();
        assert_eq!(places, [(1, 1), (2, 3), (3, 8)]);
    }

    #[test]
    fn what_does_not_end_is_named() {
        let error = tokenize("PRINT N'abc").unwrap_err();
        assert_eq!((error.number, error.column), (105, 7));
        assert_eq!(
            error.text,
            "Unclosed quotation mark after the character string 'abc'."
        );
        assert_eq!(tokenize("[abc").unwrap_err().number, 105);
        assert_eq!(tokenize("\n /* /* */").unwrap_err().number, 113);
        assert_eq!(tokenize("\n /* /* */").unwrap_err().line, 2);
    }

    #[test]
    fn a_typographic_quote_is_an_error_only_outside_strings_and_comments() {
        let error = tokenize("BACKUP DATABASE x\nTO DISK = N’LOCATION’").unwrap_err();
        assert_eq!((error.number, error.line, error.column), (50002, 2, 12));
        assert!(
            error.text.contains("’ (U+2019) at line 2, column 12"),
            "{}",
            error.text
        );
        assert!(
            error.text.contains("Type ' (apostrophe) instead"),
            "{}",
            error.text
        );
        tokenize("PRINT '’' -- “\n/* „ */ PRINT [«]").unwrap();
        for quote in "‘’‚‛“”„‟′″«»‹›´ʼ＇＂".chars() {
            assert_eq!(
                tokenize(&format!("x = {quote}y")).unwrap_err().number,
                50002,
                "{quote}"
            );
            assert_eq!(
                tokenize(&format!("x = N{quote}y")).unwrap_err().number,
                50002,
                "{quote}"
            );
        }
    }

    #[test]
    fn a_long_dash_gets_a_hint() {
        let error = tokenize("– comment").unwrap_err();
        assert_eq!(error.number, 102);
        assert!(error.hint.unwrap().contains("Type - instead"));
    }

    #[test]
    fn no_break_spaces_and_byte_order_marks_are_white_space() {
        assert_eq!(kinds("\u{feff}a\u{a0}b\u{200b}c").len(), 3);
    }
}
