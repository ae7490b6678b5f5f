//! Estimates the width of texts without a font: an upper bound over the common sans-serif fonts, so
//! that what does not overlap here does not overlap on the page.

/// Width of a text at a font size, both in the chart's units.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// Width of a character in units of the font size.
fn advance(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.36,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' | '"' => 0.44,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 1.02,
        '\u{202f}' => 0.25,
        'A'..='Z' | '_' | '&' | '+' | '=' | '<' | '>' | '~' | '±' | '×' => 0.82,
        '\0'..='\u{17f}' => 0.66,
        _ => 1.1,
    }
}

/// Breaks a text into at most `lines_max` lines of at most `width_max`; longer text ends with an
/// ellipsis. Lines break after spaces and punctuation, or anywhere if necessary.
pub(super) fn wrap(text: &str, size: f64, width_max: f64, lines_max: usize) -> Vec<String> {
    let text = text.replace(['\n', '\r', '\t'], " ");
    let mut lines: Vec<String> = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() && lines.len() < lines_max {
        let is_last = lines.len() + 1 == lines_max;
        if width(rest, size) <= width_max {
            lines.push(rest.to_owned());
            break;
        }
        if is_last {
            lines.push(cut(rest, size, width_max));
            break;
        }
        let (line, after) = rest.split_at(break_at(rest, size, width_max));
        lines.push(line.trim_end().to_owned());
        rest = after.trim_start();
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// The end of the first line of a text that is too long, in bytes; at least one character.
fn break_at(text: &str, size: f64, width_max: f64) -> usize {
    let fits = fitting(text, size, width_max);
    let good = text[..fits]
        .char_indices()
        .filter(|(_, character)| matches!(character, ' ' | '-' | '_' | '.' | '/' | ','))
        .map(|(at, character)| at + character.len_utf8())
        .next_back();
    match good {
        // Ignore a break that wastes more than half of the line.
        Some(at) if at * 2 >= fits => at,
        _ => fits,
    }
}

/// How many bytes of a text fit a width; at least one character.
fn fitting(text: &str, size: f64, width_max: f64) -> usize {
    let mut used = 0.0;
    for (at, character) in text.char_indices() {
        used += advance(character) * size;
        if used > width_max && at > 0 {
            return at;
        }
    }
    text.len()
}

fn cut(text: &str, size: f64, width_max: f64) -> String {
    let fits = fitting(text, size, width_max - width("…", size));
    format!("{}…", text[..fits].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_good_places_and_never_exceed_the_width() {
        let text = "StackOverflow_with_a_very_long_name and words Ünïcödé 漢字漢字漢字漢字";
        for width_max in [30.0, 80.0, 150.0, 400.0] {
            for lines_max in 1..5 {
                let lines = wrap(text, 13.0, width_max, lines_max);
                assert!(lines.len() <= lines_max && !lines.is_empty());
                for line in &lines {
                    assert!(width(line, 13.0) <= width_max, "{line} in {width_max}");
                }
            }
        }
        assert_eq!(wrap("zstd:low NUL", 10.0, 60.0, 2), ["zstd:low", "NUL"]);
        assert_eq!(wrap("", 10.0, 60.0, 2), [""]);
        assert_eq!(wrap("a\nb", 10.0, 60.0, 1), ["a b"]);
    }
}
