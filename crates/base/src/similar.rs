//! The known word that a mistyped one is near to, for "Did you mean".

/// The known word that `written` was probably meant to be: the nearest, if it is near enough; none if it is one of them.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = written.chars().count();
    if !(MIN_LETTERS..=MAX_LETTERS).contains(&length) {
        return None;
    }
    let written = written.to_lowercase();
    let near = known.into_iter().filter_map(|word| {
        let other = word.chars().count();
        if other.abs_diff(length) > MAX_MISTAKES {
            return None;
        }
        let mistakes = strsim::osa_distance(&written, &word.to_lowercase());
        (mistakes <= (length / LETTERS_PER_MISTAKE).clamp(1, MAX_MISTAKES))
            .then_some((mistakes, word))
    });
    let (mistakes, word) = near.min_by_key(|(mistakes, _)| *mistakes)?;
    (mistakes > 0).then_some(word)
}

/// How many letters must be changed, left out, inserted or exchanged with the next one to make one word the other.
pub fn slips(one: &str, other: &str) -> usize {
    strsim::osa_distance(one, other)
}

/// The same as a sentence.
pub fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(written, known).map(|word| format!("Did you mean {word}?"))
}

/// Of shorter words, too many are near to each other.
const MIN_LETTERS: usize = 3;

/// Comparing takes the square of the letters; nobody types a longer name.
const MAX_LETTERS: usize = 100;

const LETTERS_PER_MISTAKE: usize = 4;
const MAX_MISTAKES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_a_slip_is_found_and_another_word_is_not() {
        let known = ["COMPRESSION", "COPY_ONLY", "INIT", "NOINIT", "STATS"];
        for (written, meant) in [
            ("COMPRESION", Some("COMPRESSION")),
            ("compresion", Some("COMPRESSION")),
            ("copyonly", Some("COPY_ONLY")),
            ("STAST", Some("STATS")),
            ("INT", Some("INIT")),
            ("NOINITT", Some("NOINIT")),
            ("INIT", None),
            ("MIRROR", None),
            ("S", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), meant, "{written}");
        }
        assert_eq!(nearest(&"a".repeat(1 << 20), known), None);
        assert_eq!(
            did_you_mean("STATZ", known).as_deref(),
            Some("Did you mean STATS?")
        );
    }
}
