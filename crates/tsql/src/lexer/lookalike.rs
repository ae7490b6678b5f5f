//! Characters that web pages and word processors use instead of quotes and dashes.
//!
//! They have no meaning in T-SQL outside strings and comments, so a script with one was damaged in
//! transit, and with "incorrect syntax" the reader would search for an error in a quote that looks
//! right.

use windlass_base::message::table;

use crate::error::ParseError;
use crate::span::Span;

const APOSTROPHES: &str = "‘’‚‛′‹›´ʼ＇";
const QUOTATION_MARKS: &str = "“”„‟″«»＂";
const DASHES: &str = "‐‑‒–—―−";

/// Whether `character` resembles a quote or a dash.
pub(super) fn is_lookalike(character: char) -> bool {
    !character.is_ascii()
        && [APOSTROPHES, QUOTATION_MARKS, DASHES]
            .iter()
            .any(|set| set.contains(character))
}

/// The error for a token that is such a character.
pub(super) fn error(span: Span, found: &str) -> Option<ParseError> {
    let character = found
        .chars()
        .next()
        .filter(|character| is_lookalike(*character))?;
    let shown = format!("{character} (U+{:04X})", u32::from(character));
    if DASHES.contains(character) {
        let hint = format!(
            "The character {shown} is a typographic dash, as inserted by web pages and word \
             processors. Type - instead."
        );
        return Some(ParseError::near(span, found).with_hint(hint));
    }
    let instead = if APOSTROPHES.contains(character) {
        "' (apostrophe)"
    } else {
        "' (apostrophe) around a string or \" (quotation mark) around a name"
    };
    let Span { line, column, .. } = span;
    let message = table::typographic_quote(shown, line, column, instead);
    Some(ParseError::new(span, message))
}
