//! Scans one token at the start of a text: its kind and its length in bytes.

use super::{TokenKind, Unterminated, lookalike};

/// Operators of more than one character, longest first.
const LONG_SYMBOLS: &[&str] = &[
    "->>", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<>", "<=", ">=", "!=", "!<", "!>",
    "==", "||", "::", "->", "<<", ">>",
];

const SHORT_SYMBOLS: &str = "+-*/%&|^~=<>!.,;:()?";

/// The first token of `text`; `None` if it is empty.
pub(super) fn token(text: &str) -> Option<(TokenKind, usize)> {
    let first = text.chars().next()?;
    let (kind, length) = match first {
        _ if is_space(first) => (TokenKind::Space, length_while(text, is_space)),
        '-' if text.starts_with("--") => (TokenKind::LineComment, line_length(text)),
        '/' if text.starts_with("/*") => block_comment(text),
        '\'' => quoted(text, 0, '\'', TokenKind::Text { national: false }),
        'N' | 'n' if text.get(1..2) == Some("'") => {
            quoted(text, 1, '\'', TokenKind::Text { national: true })
        }
        '[' => quoted(text, 0, ']', TokenKind::BracketedIdentifier),
        '"' => quoted(text, 0, '"', TokenKind::QuotedIdentifier),
        '0'..='9' => number(text),
        '.' if text.get(1..).is_some_and(starts_with_digit) => number(text),
        '@' => (TokenKind::Variable, length_while(text, continues_word)),
        _ if starts_word(first) => (TokenKind::Word, length_while(text, continues_word)),
        _ => symbol(text, first),
    };
    // A token of length zero would make the lexer loop forever.
    Some((kind, length.max(first.len_utf8())))
}

/// White space, including the invisible characters of web pages.
pub(super) fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{feff}' | '\u{200b}'..='\u{200d}')
}

/// Whether a regular identifier may start with `character`.
pub(super) fn starts_word(character: char) -> bool {
    (character.is_alphabetic() || matches!(character, '_' | '#'))
        && !lookalike::is_lookalike(character)
}

/// Whether a regular identifier may continue with `character`.
pub(super) fn continues_word(character: char) -> bool {
    (character.is_alphanumeric() || matches!(character, '_' | '#' | '@' | '$'))
        && !lookalike::is_lookalike(character)
}

fn length_while(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|character| !belongs(character))
        .unwrap_or(text.len())
}

fn line_length(text: &str) -> usize {
    text.find(['\n', '\r']).unwrap_or(text.len())
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|character: char| character.is_ascii_digit())
}

fn digits(text: &str) -> usize {
    length_while(text, |character| character.is_ascii_digit())
}

/// From `opening` up to the first `close` that is not doubled.
fn quoted(text: &str, opening: usize, close: char, kind: TokenKind) -> (TokenKind, usize) {
    let mut at = opening + 1;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find(close)) {
        at += found + close.len_utf8();
        if !text.get(at..).is_some_and(|rest| rest.starts_with(close)) {
            return (kind, at);
        }
        at += close.len_utf8();
    }
    let what = if close == '\'' {
        Unterminated::Text
    } else {
        Unterminated::Identifier
    };
    (TokenKind::Unterminated(what), text.len())
}

fn block_comment(text: &str) -> (TokenKind, usize) {
    let mut depth = 0_usize;
    let mut deepest = 0_usize;
    let mut at = 0_usize;
    while let Some(rest) = text.get(at..) {
        if rest.starts_with("/*") {
            depth += 1;
            deepest = deepest.max(depth);
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return (
                    TokenKind::BlockComment {
                        nested: deepest > 1,
                    },
                    at,
                );
            }
        } else {
            let Some(character) = rest.chars().next() else {
                break;
            };
            at += character.len_utf8();
        }
    }
    (TokenKind::Unterminated(Unterminated::Comment), text.len())
}

fn number(text: &str) -> (TokenKind, usize) {
    if text.starts_with("0x") || text.starts_with("0X") {
        let hex = text.get(2..).unwrap_or("");
        let length = length_while(hex, |character| character.is_ascii_hexdigit());
        return (TokenKind::Hexadecimal, 2 + length);
    }
    let mut length = digits(text);
    let mut kind = TokenKind::Integer;
    if let Some(fraction) = text.get(length..).and_then(|rest| rest.strip_prefix('.')) {
        kind = TokenKind::Decimal;
        length += 1 + digits(fraction);
    }
    let exponent = exponent_length(text.get(length..).unwrap_or(""));
    if exponent > 0 {
        kind = TokenKind::Decimal;
    }
    (kind, length + exponent)
}

/// The length of `e5`, `E-5` and so on; 0 if the text does not start with an exponent.
fn exponent_length(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(['e', 'E']) else {
        return 0;
    };
    let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    match digits(unsigned) {
        0 => 0,
        count => text.len() - unsigned.len() + count,
    }
}

fn symbol(text: &str, first: char) -> (TokenKind, usize) {
    if let Some(long) = LONG_SYMBOLS
        .iter()
        .find(|symbol| text.starts_with(**symbol))
    {
        return (TokenKind::Symbol, long.len());
    }
    let kind = if SHORT_SYMBOLS.contains(first) {
        TokenKind::Symbol
    } else {
        TokenKind::Other
    };
    (kind, first.len_utf8())
}
