//! The list of `RESTORE ... PAGE = '1:57, 2:31'`.

use windlass_base::message::table;
use windlass_base::{FileId, FilePage, Message};

/// Parses the list. Pages listed twice stay in it twice.
///
/// # Errors
/// 4350 with the number of pages before the problem, and the characters before it.
pub(super) fn parse(text: &str) -> Result<Vec<FilePage>, Message> {
    let mut input = Input { text, at: 0 };
    let mut pages = Vec::new();
    loop {
        match input.pair() {
            Some(page) => pages.push(page),
            None => return Err(malformed(&pages, &input)),
        }
        if input.is_at_end() {
            return Ok(pages);
        }
        if !input.accept(',') {
            return Err(malformed(&pages, &input));
        }
    }
}

fn malformed(pages: &[FilePage], input: &Input<'_>) -> Message {
    let before = input.text.get(..input.at).unwrap_or(input.text);
    table::page_list_malformed(pages.len(), before.chars().count())
}

struct Input<'a> {
    text: &'a str,
    /// Byte position of the next character.
    at: usize,
}

impl Input<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn is_at_end(&mut self) -> bool {
        self.skip_spaces();
        self.rest().is_empty()
    }

    fn accept(&mut self, sign: char) -> bool {
        self.skip_spaces();
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len_utf8();
        }
        found
    }

    fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.skip_spaces();
        let rest = self.rest();
        let end = rest
            .find(|sign: char| !sign.is_ascii_digit())
            .unwrap_or(rest.len());
        let number = rest.get(..end)?.parse().ok()?;
        self.at += end;
        Some(number)
    }

    fn pair(&mut self) -> Option<FilePage> {
        let file_id = FileId(self.number()?);
        if !self.accept(':') {
            return None;
        }
        let page = self.number()?;
        Some(FilePage { file_id, page })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_and_the_place_of_a_mistake_is_told() {
        let page = |file_id, page| FilePage {
            file_id: FileId(file_id),
            page,
        };
        assert_eq!(parse("1:57"), Ok(vec![page(1, 57)]));
        assert_eq!(
            parse(" 1:57 ,3 : 2,1:57\n"),
            Ok(vec![page(1, 57), page(3, 2), page(1, 57)])
        );
        for (text, count, offset) in [
            ("", 0, 0),
            ("1", 0, 1),
            ("1:", 0, 2),
            ("1:57,", 1, 5),
            ("1:57;2:3", 1, 4),
            ("1:57, x", 1, 6),
            ("1:-1", 0, 2),
            ("1:99999999999999999999", 0, 2),
            ("4294967296:1", 0, 0),
            ("é", 0, 0),
        ] {
            let expected = table::page_list_malformed(count, offset);
            assert_eq!(parse(text), Err(expected), "{text}");
        }
    }
}
