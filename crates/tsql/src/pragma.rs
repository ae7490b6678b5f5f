//! The one pragma that decides how a database is opened.

use crate::lexer::{Lexer, Token, unquoted};

/// The text encoding requested by a statement, if it is `PRAGMA encoding = ...` with one that
/// `SQLite` supports.
///
/// ```
/// let asked = windlass_tsql::pragma::encoding_asked("PRAGMA encoding = 'UTF-16le'");
/// assert_eq!(asked.as_deref(), Some("UTF-16le"));
/// ```
pub fn encoding_asked(sql: &str) -> Option<String> {
    const ENCODINGS: &[&str] = &[
        "UTF8", "UTF-8", "UTF16", "UTF-16", "UTF16le", "UTF-16le", "UTF16be", "UTF-16be",
    ];
    let tokens: Vec<Token> = Lexer::new(sql).filter(|token| !token.is_trivia()).collect();
    let texts: Vec<String> = tokens.iter().map(|token| unquoted(token, sql)).collect();
    let mut texts = texts.iter().map(String::as_str);
    if !texts.next()?.eq_ignore_ascii_case("PRAGMA") {
        return None;
    }
    let mut name = texts.next()?;
    if name.eq_ignore_ascii_case("main") {
        texts.next().filter(|dot| *dot == ".")?;
        name = texts.next()?;
    }
    if !name.eq_ignore_ascii_case("encoding") {
        return None;
    }
    texts.next().filter(|sign| matches!(*sign, "=" | "("))?;
    let encoding = texts.next()?;
    ENCODINGS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(encoding))
        .then(|| encoding.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_encoding_is_asked_for_by_its_pragma_alone() {
        for asking in [
            "PRAGMA encoding='UTF-16be'",
            "pragma main . encoding (\"utf-16be\") -- so",
            "PRAGMA [encoding] = 'UTF-16BE';",
        ] {
            let asked = encoding_asked(asking).unwrap_or_default();
            assert!(asked.eq_ignore_ascii_case("UTF-16be"), "{asking}");
        }
        for other in [
            "PRAGMA encoding",
            "PRAGMA encoding = 'latin1'",
            "PRAGMA temp.encoding = 'UTF-8'",
            "SELECT encoding = 'UTF-8'",
        ] {
            assert_eq!(encoding_asked(other), None, "{other}");
        }
    }
}
