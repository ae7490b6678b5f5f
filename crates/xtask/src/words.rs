//! Checks of the vocabulary: the glossary is consistent and in use, and banned words do not appear.

use std::collections::BTreeSet;
use std::path::Path;

const GLOSSARY: &str = "docs/glossary.md";

/// Words with a plainer or more usual equivalent, each with its replacement. Matched in lower case as
/// whole words, so that names such as ASN.1's `OCTET STRING` are not affected.
const BANNED: &[(&str, &str)] = &[
    ("octet", "byte"),
    ("octets", "bytes"),
    ("anew", "again, or a verb with re-"),
    ("gives way", "yields"),
    ("nobody's", "system, or unowned"),
    ("thereof", "of it"),
    ("whatsoever", "any"),
];

/// The only file that may contain the banned words, since it lists them.
const LIST: &str = "crates/xtask/src/words.rs";

/// A text file of the repository.
pub(crate) struct Document {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Checks the glossary, and all texts for banned words.
pub(crate) fn check(documents: &[Document], complaints: &mut Vec<String>) {
    for document in documents.iter().filter(|document| document.path != LIST) {
        check_banned(document, complaints);
    }
    let glossary = documents.iter().find(|document| document.path == GLOSSARY);
    match glossary {
        Some(glossary) => check_glossary(glossary, documents, complaints),
        None => complaints.push(format!("{GLOSSARY} is missing")),
    }
}

/// Reads the Markdown files of the repository's root and of `docs`.
pub(crate) fn markdown(root: &Path) -> Result<Vec<Document>, String> {
    let mut folders = vec![root.to_owned(), root.join("docs")];
    let mut documents = Vec::new();
    while let Some(folder) = folders.pop() {
        let fail = |error| format!("{}: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(fail)?.flatten() {
            let path = entry.path();
            if path.is_dir() && folder != root {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let shown = path.strip_prefix(root).unwrap_or(&path);
                documents.push(Document {
                    path: shown.display().to_string(),
                    text: std::fs::read_to_string(&path).map_err(fail)?,
                });
            }
        }
    }
    Ok(documents)
}

fn check_banned(document: &Document, complaints: &mut Vec<String>) {
    for (number, line) in document.text.lines().enumerate() {
        for (banned, instead) in BANNED {
            if contains_words(line, banned) {
                complaints.push(format!(
                    "{}:{}: '{banned}': write {instead}",
                    document.path,
                    number + 1
                ));
            }
        }
    }
}

/// Whether `words` appear in `line` and are not part of longer words.
fn contains_words(line: &str, words: &str) -> bool {
    line.match_indices(words).any(|(at, _)| {
        let is_letter = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        let (before, rest) = (&line[..at], &line[at + words.len()..]);
        !is_letter(before.chars().next_back()) && !is_letter(rest.chars().next())
    })
}

fn check_glossary(glossary: &Document, documents: &[Document], complaints: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    let others: Vec<String> = documents
        .iter()
        .filter(|document| document.path != GLOSSARY)
        .map(|document| document.text.to_lowercase())
        .collect();
    for term in glossary.text.lines().filter_map(term) {
        if !seen.insert(term.clone()) {
            complaints.push(format!("{GLOSSARY}: '{term}' is defined twice"));
        }
        let names: Vec<&str> = term.split(", ").collect();
        let is_used = |name: &&str| others.iter().any(|text| text.contains(*name));
        if !names.iter().any(is_used) {
            complaints.push(format!("{GLOSSARY}: '{term}' is not used anywhere"));
        }
    }
    if seen.is_empty() {
        complaints.push(format!("{GLOSSARY} has no terms"));
    }
}

/// The term that a line of the glossary defines, in lower case.
fn term(line: &str) -> Option<String> {
    let cell = line.strip_prefix("| ")?.split(" |").next()?;
    let term = cell.trim_end_matches("(ours)").trim().to_lowercase();
    (!term.is_empty() && term != "term").then_some(term)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(glossary: &str, code: &str) -> Vec<String> {
        let document = |path: &str, text: &str| Document {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let documents = [
            document(GLOSSARY, glossary),
            document("crates/x/src/lib.rs", code),
        ];
        let mut complaints = Vec::new();
        check(&documents, &mut complaints);
        complaints
    }

    const GOOD: &str =
        "| term | meaning |\n|---|---|\n| chunk (ours) | a range |\n| LSN | a number |\n";

    #[test]
    fn a_glossary_whose_terms_are_unique_and_used_is_accepted() {
        assert_eq!(complaints(GOOD, "/// A Chunk at an lsn."), [""; 0]);
    }

    #[test]
    fn a_term_that_is_defined_twice_or_never_used_is_reported() {
        let twice = format!("{GOOD}| chunk (ours) | another |\n");
        assert!(complaints(&twice, "chunk lsn")[0].contains("'chunk' is defined twice"));
        assert!(complaints(GOOD, "a chunk")[0].contains("'lsn' is not used"));
        assert!(complaints("# Glossary\n", "")[0].contains("no terms"));
    }

    #[test]
    fn banned_words_are_reported_with_their_line_and_only_as_whole_words() {
        let found = complaints(GOOD, "chunk, lsn\n// begins anew");
        assert!(
            found[0].starts_with("crates/x/src/lib.rs:2: 'anew'"),
            "{found:?}"
        );
        assert_eq!(
            complaints(GOOD, "chunk, lsn, OCTET STRING, anewer"),
            [""; 0]
        );
    }
}
