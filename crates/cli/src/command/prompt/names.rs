//! Tab at the prompt: names of databases, logical devices and of what statements begin with.

use rustyline::Context;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use windlass_instance::Session;

/// Words of BACKUP and RESTORE.
const WORDS: &[&str] = &[
    "BACKUP",
    "COMPRESSION",
    "DATABASE",
    "DIFFERENTIAL",
    "DISK",
    "EXECUTE",
    "FILELISTONLY",
    "FROM",
    "HEADERONLY",
    "LABELONLY",
    "LOG",
    "MOVE",
    "NORECOVERY",
    "RECOVERY",
    "REPLACE",
    "RESTORE",
    "SELECT",
    "STATS",
    "USE",
    "VERIFYONLY",
    "WITH",
];

/// The names that can be completed.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<String>);

impl Names {
    /// The databases and logical devices of the instance. What cannot be read is not completed.
    pub(super) fn of(session: &Session) -> Self {
        let catalog = session.instance().catalog();
        let databases = catalog.databases().unwrap_or_default();
        let mut names: Vec<String> = databases.into_iter().map(|record| record.name).collect();
        names.extend(catalog.backup_device_names().unwrap_or_default());
        Self(names)
    }

    /// Where the word before the cursor begins, and what it can become.
    fn completed(&self, line: &str, cursor: usize) -> (usize, Vec<String>) {
        let before = line.get(..cursor).unwrap_or(line);
        let is_part = |letter: char| letter.is_alphanumeric() || "_$#@-".contains(letter);
        let start = before.trim_end_matches(is_part).len();
        let written = before.get(start..).unwrap_or_default();
        if written.is_empty() {
            return (start, Vec::new());
        }
        let begins = |name: &str| {
            let head = name.get(..written.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(written))
        };
        let names = self.0.iter().map(String::as_str);
        let found = names
            .chain(WORDS.iter().copied())
            .filter(|name| begins(name));
        (start, found.map(str::to_owned).collect())
    }
}

impl Completer for Names {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = self.completed(line, cursor);
        let pair = |name: String| Pair {
            display: windlass_base::visible(&name).into_owned(),
            replacement: name,
        };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

impl Hinter for Names {
    type Hint = String;
}

impl Highlighter for Names {}

impl Validator for Names {}

impl rustyline::Helper for Names {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_before_the_cursor_becomes_a_database_a_device_or_a_word() {
        let names = Names(vec!["Sales".to_owned(), "nightly_device".to_owned()]);
        let completed = |line: &str| names.completed(line, line.len());
        assert_eq!(completed("USE sa"), (4, vec!["Sales".to_owned()]));
        assert_eq!(
            completed("BACKUP DATABASE [Sales] TO nightly_"),
            (27, vec!["nightly_device".to_owned()])
        );
        assert_eq!(completed("rest"), (0, vec!["RESTORE".to_owned()]));
        assert_eq!(completed("USE "), (4, vec![]));
        assert_eq!(
            names.completed("USE sa x", 6),
            (4, vec!["Sales".to_owned()])
        );
    }
}
