//! Names that match a pattern, as shells have them.

/// Whether a name matches a pattern with `*` and `?`.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut place) = (0, 0);
    // The position of the last star, and how far it matches so far.
    let mut star: Option<(usize, usize)> = None;
    while place < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(character) if *character == '?' || *character == name[place] => {
                at += 1;
                place += 1;
            }
            _ => match star {
                Some((position, taken)) => {
                    star = Some((position, taken + 1));
                    at = position + 1;
                    place = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|character| *character == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_letters_and_a_question_mark_for_one() {
        for (pattern, name, is_match) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcb", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("app", "app", true),
            ("app", "apps", false),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }
}
