//! LIKE and PATINDEX: `%`, `_`, `[a-f]`, `[^a-f]`.

use super::collation::{compare, compare_exactly};

/// One element of a pattern.
enum Element {
    /// `%`
    Any,
    /// `_`
    One,
    Letter(char),
    /// `[...]`: ranges, and whether they are excluded.
    Class(Vec<(char, char)>, bool),
}

/// A pattern, taken apart once.
pub(super) struct Pattern {
    elements: Vec<Element>,
    exact: bool,
}

impl Pattern {
    pub(super) fn new(text: &str, escape: Option<char>, exact: bool) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let mut elements = Vec::new();
        let mut at = 0;
        while let Some(character) = characters.get(at).copied() {
            at += 1;
            if Some(character) == escape {
                elements.extend(characters.get(at).copied().map(Element::Letter));
                at += 1;
                continue;
            }
            elements.push(match character {
                '%' => Element::Any,
                '_' => Element::One,
                '[' => match class(&characters, at, escape) {
                    Some((element, end)) => {
                        at = end;
                        element
                    }
                    // A class without its end matches nothing.
                    None => Element::Class(Vec::new(), false),
                },
                other => Element::Letter(other),
            });
        }
        Self { elements, exact }
    }

    /// Whether the whole text matches. Time is bounded by the product of both lengths.
    pub(super) fn matches(&self, text: &[char]) -> bool {
        let (mut at, mut element) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        while at < text.len() {
            match self.elements.get(element) {
                Some(Element::Any) => {
                    retry = Some((at, element + 1));
                    element += 1;
                }
                Some(other) if self.takes(other, text[at]) => {
                    at += 1;
                    element += 1;
                }
                _ => {
                    let Some((from, after)) = retry else {
                        // Blanks at the end of the text do not count.
                        return element == self.elements.len()
                            && text[at..].iter().all(|rest| *rest == ' ');
                    };
                    if element == self.elements.len() && text[at..].iter().all(|rest| *rest == ' ')
                    {
                        return true;
                    }
                    retry = Some((from + 1, after));
                    at = from + 1;
                    element = after;
                }
            }
        }
        self.elements[element..]
            .iter()
            .all(|rest| matches!(rest, Element::Any))
    }

    fn takes(&self, element: &Element, character: char) -> bool {
        match element {
            Element::Any => false,
            Element::One => true,
            Element::Letter(letter) => self.order(*letter, character).is_eq(),
            Element::Class(ranges, excluded) => {
                let within = ranges.iter().any(|(low, high)| {
                    self.order(*low, character).is_le() && self.order(character, *high).is_le()
                });
                within != *excluded && (*excluded || !ranges.is_empty())
            }
        }
    }

    fn order(&self, left: char, right: char) -> std::cmp::Ordering {
        if left == right {
            return std::cmp::Ordering::Equal;
        }
        let (mut one, mut two) = ([0; 4], [0; 4]);
        let (left, right) = (left.encode_utf8(&mut one), right.encode_utf8(&mut two));
        // A blank is a character here, not the end of a text.
        match (self.exact, *left == *" " || *right == *" ") {
            (false, false) => compare(left, right),
            (true, false) => compare_exactly(left, right),
            (_, true) => (*left).cmp(right),
        }
    }
}

/// The class whose content begins at `at`, and where it ends.
fn class(characters: &[char], mut at: usize, escape: Option<char>) -> Option<(Element, usize)> {
    let excluded = characters.get(at) == Some(&'^');
    at += usize::from(excluded);
    let mut ranges = Vec::new();
    let begin = at;
    loop {
        let mut low = *characters.get(at)?;
        at += 1;
        if low == ']' && at > begin + 1 {
            return Some((Element::Class(ranges, excluded), at));
        }
        if Some(low) == escape {
            low = *characters.get(at)?;
            at += 1;
        }
        let is_range = characters.get(at) == Some(&'-')
            && characters.get(at + 1).is_some_and(|high| *high != ']');
        if is_range {
            ranges.push((low, *characters.get(at + 1)?));
            at += 2;
        } else {
            ranges.push((low, low));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_documented() {
        for (text, pattern, matches) in [
            ("Sales", "[A-S]%", true),
            ("sales", "[A-R]%", false),
            ("master", "[^mM]%", false),
            ("x", "[^mM]%", true),
            ("50%", "50[%]", true),
            ("abc", "a_c", true),
            ("abc", "%", true),
            ("", "%", true),
            ("abc  ", "abc", true),
            ("abc", "abc ", false),
            ("a-b", "a[-]b", true),
            ("a]b", "a[]]b", true),
            ("aaa", "%a%a%a%a%", false),
            ("ABC", "%b%", true),
        ] {
            let characters: Vec<char> = text.chars().collect();
            let found = Pattern::new(pattern, None, false).matches(&characters);
            assert_eq!(found, matches, "{text} LIKE {pattern}");
        }
        let escaped: Vec<char> = "10%".chars().collect();
        assert!(Pattern::new("10!%", Some('!'), false).matches(&escaped));
    }
}
