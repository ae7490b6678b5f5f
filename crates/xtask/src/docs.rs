//! The documents as a site: every link leads somewhere, and every page is in the list of pages.
//!
//! `mdbook build` makes the site from `docs/` where it is installed; nothing else needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::words::{self, Document};

/// What the site is made of.
const FOLDER: &str = "docs";

const PAGES: &str = "docs/SUMMARY.md";

/// Checks links and the list of pages; with `build`, makes the site.
pub(crate) fn check(build: bool) -> Result<(), String> {
    let documents = words::markdown(Path::new("."))?;
    let mut complaints = Vec::new();
    let anchors: BTreeMap<PathBuf, BTreeSet<String>> = documents
        .iter()
        .map(|document| (PathBuf::from(&document.path), anchors(&document.text)))
        .collect();
    for document in &documents {
        check_links(document, &anchors, &mut complaints);
    }
    check_pages(&documents, &mut complaints);
    if !complaints.is_empty() {
        return Err(format!("docs:\n  {}", complaints.join("\n  ")));
    }
    println!("== docs: ok");
    match build {
        true => crate::run::step("site", "mdbook", &["build"]),
        false => Ok(()),
    }
}

fn check_links(
    document: &Document,
    anchors: &BTreeMap<PathBuf, BTreeSet<String>>,
    complaints: &mut Vec<String>,
) {
    let here = Path::new(&document.path);
    for link in links(&document.text) {
        if link.contains("://") || link.starts_with("mailto:") {
            continue;
        }
        let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
        let target = match file {
            "" => here.to_owned(),
            _ => joined(here.parent().unwrap_or(Path::new("")), file),
        };
        let known = anchors.get(&target);
        if here.starts_with(FOLDER) && !target.starts_with(FOLDER) {
            let path = &document.path;
            complaints.push(format!(
                "{path}: {link} leaves {FOLDER}/, and leads nowhere in the site"
            ));
        }
        if known.is_none() && !target.exists() {
            complaints.push(format!("{}: {link} leads nowhere", document.path));
        }
        if !anchor.is_empty() && known.is_none_or(|known| !known.contains(anchor)) {
            complaints.push(format!("{}: {link}: no such heading", document.path));
        }
    }
}

/// Every page of `docs/` is in the list, which is the site's table of contents.
fn check_pages(documents: &[Document], complaints: &mut Vec<String>) {
    let list = documents.iter().find(|document| document.path == PAGES);
    let Some(list) = list else {
        complaints.push(format!("{PAGES} is missing"));
        return;
    };
    let listed: BTreeSet<_> = links(&list.text)
        .map(|link| format!("docs/{link}"))
        .collect();
    for document in documents {
        let path = &document.path;
        if path.starts_with("docs/") && path != PAGES && !listed.contains(path) {
            complaints.push(format!("{path} is not in {PAGES}"));
        }
    }
}

/// The targets of the links in a text, outside of code.
fn links(text: &str) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        // What is between two back-ticks is code.
        let words: String = line.split('`').step_by(2).collect::<Vec<_>>().join("x");
        for part in words.split("](").skip(1) {
            if let Some((target, _)) = part.split_once(')')
                && !target.is_empty()
            {
                found.push(target.to_owned());
            }
        }
    }
    found.into_iter()
}

/// The anchors of the headings, as GitHub and `mdbook` make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        }
        let heading = line.trim_start_matches('#');
        if in_block || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading
            .trim()
            .chars()
            .filter_map(|character| match character {
                ' ' => Some('-'),
                '-' | '_' => Some(character),
                _ => character
                    .is_alphanumeric()
                    .then(|| character.to_ascii_lowercase()),
            });
        found.insert(kept.collect());
    }
    found
}

/// A path without `..`.
fn joined(folder: &Path, link: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in folder.join(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(pages: &[(&str, &str)]) -> Vec<String> {
        let documents: Vec<_> = pages
            .iter()
            .map(|(path, text)| Document {
                path: (*path).to_owned(),
                text: (*text).to_owned(),
            })
            .collect();
        let anchors = documents
            .iter()
            .map(|document| (PathBuf::from(&document.path), anchors(&document.text)))
            .collect();
        let mut complaints = Vec::new();
        for document in &documents {
            check_links(document, &anchors, &mut complaints);
        }
        check_pages(&documents, &mut complaints);
        complaints
    }

    #[test]
    fn a_link_leads_to_a_page_and_to_a_heading_of_it() {
        let page = "# A page\n\n## What it shows, and `how`\n";
        let list = (PAGES, "[A](a.md)\n[B](sub/b.md)\n");
        let with = |link: &str| {
            let text = format!("See [it]({link}).");
            complaints(&[list, ("docs/a.md", page), ("docs/sub/b.md", &text)])
        };
        assert_eq!(with("../a.md#what-it-shows-and-how"), [""; 0]);
        assert!(with("../a.md#what-it-hides")[0].contains("no such heading"));
        assert!(with("a.md")[0].contains("leads nowhere"));
        assert_eq!(with("https://example.org/a.md"), [""; 0]);
    }

    #[test]
    fn code_has_no_links_and_no_headings() {
        let text = "`a[0](b)` and\n```\n# c\n[d](e)\n```\n[f](g)";
        assert_eq!(links(text).collect::<Vec<_>>(), ["g"]);
        assert!(anchors(text).is_empty());
    }

    #[test]
    fn a_page_that_is_not_in_the_list_is_reported() {
        let found = complaints(&[(PAGES, "[A](a.md)"), ("docs/a.md", ""), ("docs/b.md", "")]);
        assert_eq!(found, ["docs/b.md is not in docs/SUMMARY.md"]);
    }
}
