//! Safe text: escapes characters that a terminal would obey or a reader could not see.
//!
//! Names come from media and databases of others. Printed unchanged, they could change colours, rename
//! the window, reverse the direction of text, or forge a line of output. Text for people goes through
//! [`visible`] or [`visible_lines`]; JSON goes through [`json_escaped`].

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character acts on a terminal or is hidden from a reader: control characters (C0, DEL,
/// C1), those that change the direction of text, and Unicode line separators.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{200E}' | '\u{200F}' | '\u{061C}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
        )
}

/// A text on one line: hidden characters, including tabs and line ends, as `\u{..}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    spelled(text, is_hidden, braced)
}

/// A text of several lines: like [`visible`], but keeps line ends and tabs.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    let is_hidden = |character| !matches!(character, '\n' | '\t') && is_hidden(character);
    spelled(text, is_hidden, braced)
}

/// JSON text with the hidden characters in its strings as `\u00XX`. Does not change existing
/// escapes or white space between tokens.
pub fn json_escaped(json: &str) -> Cow<'_, str> {
    let is_hidden = |character| !matches!(character, '\n' | '\r' | '\t') && is_hidden(character);
    spelled(json, is_hidden, |character, out| {
        // All of them are in the first plane.
        let _ = write!(out, "\\u{:04x}", u32::from(character));
    })
}

fn braced(character: char, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
}

fn spelled(
    text: &str,
    is_hidden: impl Fn(char) -> bool,
    spell: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    let Some(first) = text.find(&is_hidden) else {
        return Cow::Borrowed(text);
    };
    let (clean, rest) = text.split_at(first);
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(clean);
    for character in rest.chars() {
        if is_hidden(character) {
            spell(character, &mut out);
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_or_hides_is_spelled_out_and_the_rest_is_untouched() {
        assert!(matches!(visible("Größe 7 ≥ 3, 数据"), Cow::Borrowed(_)));
        assert_eq!(visible("\x1b]0;x\x07"), "\\u{1b}]0;x\\u{7}");
        assert_eq!(visible("a\r\n\tb\x7f"), "a\\u{d}\\u{a}\\u{9}b\\u{7f}");
        assert_eq!(visible("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(visible("x\u{202e}y\u{2069}"), "x\\u{202e}y\\u{2069}");
        assert_eq!(visible("\u{2028}\u{2029}"), "\\u{2028}\\u{2029}");
        assert_eq!(visible_lines("a\n\tb\rc"), "a\n\tb\\u{d}c");
    }

    #[test]
    fn json_stays_json() {
        assert_eq!(
            json_escaped("[\"\u{9b}\u{202e}\u{7f}\",\n1]"),
            "[\"\\u009b\\u202e\\u007f\",\n1]"
        );
    }
}
