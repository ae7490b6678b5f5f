//! The default collation, `SQL_Latin1_General_CP1_CI_AS`: case does not count, accents do, and blanks at
//! the end do not.

use std::cmp::Ordering;

/// Compares two texts as the default collation does.
pub(crate) fn compare(left: &str, right: &str) -> Ordering {
    let (left, right) = (left.trim_end_matches(' '), right.trim_end_matches(' '));
    let bases = left.chars().map(base).cmp(right.chars().map(base));
    bases.then_with(|| left.chars().map(fold).cmp(right.chars().map(fold)))
}

/// Compares two texts by their bytes, except for blanks at the end.
pub(crate) fn compare_exactly(left: &str, right: &str) -> Ordering {
    left.trim_end_matches(' ').cmp(right.trim_end_matches(' '))
}

/// A character without its case.
pub(crate) fn fold(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    let mut lower = character.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(only), None) => only,
        _ => character,
    }
}

/// The class and the letter that a character is sorted by: punctuation, then digits, then letters
/// without their accents.
fn base(character: char) -> (u8, char) {
    let folded = fold(character);
    if folded.is_alphabetic() {
        return (2, without_accent(folded));
    }
    (u8::from(folded.is_numeric()), folded)
}

fn without_accent(letter: char) -> char {
    match letter {
        'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'è'..='ë' | 'ē' | 'ę' | 'ě' => 'e',
        'ì'..='ï' | 'ī' => 'i',
        'ñ' | 'ń' => 'n',
        'ò'..='ö' | 'ø' | 'ō' => 'o',
        'ß' | 'ś' | 'š' => 's',
        'ù'..='ü' | 'ū' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        other => other,
    }
}

/// Where `wanted` begins in `text`, in characters, from `start` on.
pub(crate) fn find(text: &[char], wanted: &[char], start: usize, exact: bool) -> Option<usize> {
    let is_same = |one: &char, two: &char| match exact {
        true => one == two,
        false => fold(*one) == fold(*two),
    };
    if wanted.is_empty() || text.len() < wanted.len() {
        return None;
    }
    (start..=text.len() - wanted.len()).find(|at| {
        text.iter()
            .skip(*at)
            .zip(wanted)
            .all(|(one, two)| is_same(one, two))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_blanks_at_the_end_do_not_count_and_accents_do() {
        for (left, right, order) in [
            ("SALES", "sales  ", Ordering::Equal),
            ("Ä", "ä", Ordering::Equal),
            ("a", "ä", Ordering::Less),
            ("ä", "b", Ordering::Less),
            ("Z", "a", Ordering::Greater),
            ("_", "1", Ordering::Less),
            ("9", "a", Ordering::Less),
            (" a", "a", Ordering::Less),
        ] {
            assert_eq!(compare(left, right), order, "{left} {right}");
        }
        assert_eq!(compare_exactly("A", "a"), Ordering::Less);
    }
}
