//! A script is a sequence of batches, each ended by a line with `GO`.
//!
//! `GO` is not T-SQL: the tools that send scripts to the server (`sqlcmd`, SSMS) split at it, so
//! the server never sees it. A batch is parsed as a whole, and a syntax error in it stops all of
//! it.
//!
//! Neighbours: readers of scripts split them with [`split`], parse each [`Batch::text`], and pass
//! errors through [`Batch::locate`] so that they name the line in the file.

use crate::error::ParseError;
use crate::lexer::{Lexer, Token, TokenKind};

/// The text between two `GO` lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The statements.
    pub text: &'a str,
    /// Byte offset of `text` in the script.
    pub offset: usize,
    /// The line of the script on which `text` starts, counted from 1.
    pub first_line: u32,
    /// How many times to run the batch: the number after `GO`, otherwise 1.
    pub count: u32,
}

impl Batch<'_> {
    /// Translates the position of `error` in this batch to its position in the script.
    #[must_use]
    pub fn locate(&self, error: ParseError) -> ParseError {
        let mut error = error.moved_down(self.first_line.saturating_sub(1));
        error.offset = error.offset.saturating_add(self.offset);
        error
    }

    /// The line in the script of a line of this batch, both from 1.
    pub fn line_in_script(&self, line: u32) -> u32 {
        line.saturating_add(self.first_line.saturating_sub(1))
    }
}

/// Splits a script at its `GO` lines. Omits empty batches.
///
/// A `GO` line has `GO` in any case, an optional count, and an optional comment after that; `GO`
/// inside a string, a quoted identifier or a block comment does not count.
pub fn split(script: &str) -> Vec<Batch<'_>> {
    let (mut batches, last) = split_closed(script);
    batches.push(last);
    batches.retain(|batch| !batch.text.trim().is_empty());
    batches
}

/// The batches that a `GO` line ends, also empty ones, and the rest of the script.
pub fn split_closed(script: &str) -> (Vec<Batch<'_>>, Batch<'_>) {
    let mut batches = Vec::new();
    let mut start = Start { offset: 0, line: 1 };
    let mut line_is_empty = true;
    let mut tokens = Lexer::new(script);
    while let Some(token) = tokens.next() {
        if line_is_empty && token.is_word(script, "GO") {
            let mut rest_of_line = tokens.clone();
            if let Some(count) = go_count(script, &mut rest_of_line) {
                batches.push(batch_of(script, start, token.span.start, count));
                let end = rest_of_line
                    .next()
                    .map_or(script.len(), |next| next.span.end);
                start = after_line(script, token, end);
            }
        }
        line_is_empty = is_line_empty_after(token, script, line_is_empty);
    }
    (batches, batch_of(script, start, script.len(), 1))
}

fn is_line_empty_after(token: Token, script: &str, was_empty: bool) -> bool {
    match token.kind {
        TokenKind::Space => was_empty || token.span.text(script).contains('\n'),
        _ => false,
    }
}

/// A part of a script for `sqlcmd`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// T-SQL and `GO` lines.
    Text { text: &'a str, first_line: u32 },
    /// A line that begins with `:` or `!!`, outside of strings and comments.
    Word { line: &'a str, number: u32 },
}

/// Separates the lines with `sqlcmd`'s own words from the text around them.
pub fn pieces(script: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = script;
    let mut line = 1;
    while let Some((offset, number)) = next_word(rest) {
        let (text, from_word) = rest.split_at(offset);
        if !text.is_empty() {
            let first_line = line;
            pieces.push(Piece::Text { text, first_line });
        }
        let end = from_word.find('\n').map_or(from_word.len(), |end| end + 1);
        let (word, after) = from_word.split_at(end);
        let number = number.saturating_add(line - 1);
        pieces.push(Piece::Word { line: word, number });
        line = number.saturating_add(1);
        rest = after;
    }
    if !rest.is_empty() {
        let first_line = line;
        pieces.push(Piece::Text {
            text: rest,
            first_line,
        });
    }
    pieces
}

/// The offset and line of the first of `sqlcmd`'s words.
fn next_word(text: &str) -> Option<(usize, u32)> {
    let mut line_is_empty = true;
    for token in Lexer::new(text) {
        let begins = text.get(token.span.start..).unwrap_or("");
        if line_is_empty && (begins.starts_with(':') || begins.starts_with("!!")) {
            return Some((token.span.start, token.span.line));
        }
        line_is_empty = is_line_empty_after(token, text, line_is_empty);
    }
    None
}

#[derive(Clone, Copy)]
struct Start {
    offset: usize,
    line: u32,
}

fn batch_of(script: &str, start: Start, end: usize, count: u32) -> Batch<'_> {
    Batch {
        text: script.get(start.offset..end).unwrap_or(""),
        offset: start.offset,
        first_line: start.line,
        count,
    }
}

/// The count of a `GO` whose line continues with `tokens`; `None` if the line has more than it may.
/// Leaves `tokens` before the white space that ends the line.
fn go_count(script: &str, tokens: &mut Lexer<'_>) -> Option<u32> {
    let mut count = None;
    let mut commented = false;
    loop {
        let mut ahead = tokens.clone();
        let Some(token) = ahead.next() else {
            return Some(count.unwrap_or(1));
        };
        let text = token.span.text(script);
        match token.kind {
            TokenKind::Space if text.contains('\n') => return Some(count.unwrap_or(1)),
            TokenKind::Space => {}
            TokenKind::LineComment => commented = true,
            TokenKind::BlockComment { .. } if !text.contains('\n') => commented = true,
            TokenKind::Integer if count.is_none() && !commented => {
                count = Some(text.parse::<u32>().ok()?);
            }
            _ => return None,
        }
        *tokens = ahead;
    }
}

/// The start of the line after that of `go`; `end` is the end of the white space that closes it.
fn after_line(script: &str, go: Token, end: usize) -> Start {
    let rest = script.get(go.span.end..end).unwrap_or("");
    match rest.find('\n') {
        Some(newline) => Start {
            offset: go.span.end + newline + 1,
            line: go.span.line.saturating_add(1),
        },
        None => Start {
            offset: end,
            line: go.span.line,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<(String, u32, u32)> {
        split(script)
            .into_iter()
            .map(|batch| (batch.text.trim().to_owned(), batch.first_line, batch.count))
            .collect()
    }

    #[test]
    fn go_splits_in_any_case_with_count_and_comment() {
        assert_eq!(
            texts("a\nGO\nb\n go 5 -- five times\nc\r\nGo\r\n\r\nd\nGO/* end */"),
            [
                ("a".to_owned(), 1, 1),
                ("b".to_owned(), 3, 5),
                ("c".to_owned(), 5, 1),
                ("d".to_owned(), 7, 1),
            ]
        );
    }

    #[test]
    fn go_in_strings_names_and_comments_does_not_split() {
        assert_eq!(
            texts("PRINT 'x\nGO\n'\n/*\nGO\n/*\nGO\n*/\nGO\n*/\n[a\nGO\n]\n\"\nGO\n\"").len(),
            1
        );
    }

    #[test]
    fn go_with_company_on_its_line_does_not_split() {
        for script in [
            "a\nGO b\nc",
            "a\nGO;\nc",
            "a GO\nc",
            "a\nGO 1 2\nc",
            "a\nGO 99999999999\nc",
        ] {
            assert_eq!(texts(script).len(), 1, "{script}");
        }
    }

    #[test]
    fn words_of_sqlcmd_stand_at_the_start_of_a_line_outside_of_strings() {
        let script = ":r a\nPRINT ':r b\n:r c'\n  :setvar x \"it's\"\nGO\n-- \n/*\n:quit\n*/ !!ls\n!!ls\nx:\n";
        let words: Vec<_> = pieces(script)
            .into_iter()
            .filter_map(|piece| match piece {
                Piece::Word { line, number } => Some((line.trim().to_owned(), number)),
                Piece::Text { .. } => None,
            })
            .collect();
        let expected = [(":r a", 1), (":setvar x \"it's\"", 4), ("!!ls", 10)];
        assert_eq!(
            words,
            expected.map(|(line, number)| (line.to_owned(), number))
        );
    }

    #[test]
    fn an_unclosed_string_takes_the_rest_of_the_script() {
        assert_eq!(texts("a\nGO\nPRINT 'x\nGO\nb").len(), 2);
    }

    #[test]
    fn errors_name_the_line_of_the_file() {
        let script = "PRINT 1\nGO\n\nPRINT 'x\n";
        let batch = split(script)[1];
        let error = batch.locate(crate::lexer::tokenize(batch.text).unwrap_err());
        assert_eq!((error.line, error.column), (4, 7));
        assert_eq!(script.get(error.offset..=error.offset), Some("'"));
    }

    #[test]
    fn empty_batches_are_left_out() {
        assert!(split("GO\n\nGO 3\n  \nGO").is_empty());
    }
}
