//! Rules that no lint checks: file and function sizes, module docs, dependency direction, vocabulary.

use std::path::{Path, PathBuf};

use crate::words::{self, Document};

/// A longer file does two jobs. Tables and tests are exempt.
const FILE_LINES_MAX: usize = 500;

/// A longer function does not fit a screen: seventy lines between its first and its last.
const FUNCTION_LINES_MAX: usize = 72;

/// Files whose long functions list the columns of a table, one per line.
const COLUMN_LISTS: [&str; 1] = ["crates/catalog/src/history.rs"];

/// The crates that a crate may use in `[dependencies]`: only crates below it.
const LAYERS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("io", &["base"]),
    ("tsql", &["base"]),
    ("tds", &["base"]),
    ("codec", &["base"]),
    ("media", &["base"]),
    ("bak", &["base", "codec"]),
    (
        "sqlserver",
        &["bak", "base", "device", "io", "media", "source"],
    ),
    ("crypt", &["base"]),
    ("accelerator", &["codec"]),
    ("device", &["base", "io"]),
    ("engine", &["base", "io"]),
    ("vfs", &["base", "engine", "io"]),
    ("extension", &["base", "engine", "instance", "local", "vfs"]),
    ("sim", &["base", "engine"]),
    ("source", &["base", "codec", "engine", "io", "media"]),
    (
        "pipeline",
        &["base", "codec", "crypt", "device", "io", "media", "source"],
    ),
    ("report", &[]),
    (
        "tune",
        &[
            "accelerator",
            "base",
            "codec",
            "device",
            "engine",
            "io",
            "pipeline",
            "report",
            "source",
        ],
    ),
    (
        "server",
        &[
            "base", "catalog", "instance", "io", "local", "report", "tds",
        ],
    ),
    ("local", &["base", "codec", "instance", "media", "pipeline"]),
    ("catalog", &["base", "io"]),
    (
        "instance",
        &[
            "accelerator",
            "bak",
            "base",
            "catalog",
            "codec",
            "crypt",
            "device",
            "engine",
            "io",
            "media",
            "pipeline",
            "report",
            "source",
            "sqlserver",
            "tsql",
            "vfs",
        ],
    ),
];

/// Checks all rules and lists every violation.
pub(crate) fn check() -> Result<(), String> {
    let mut complaints = Vec::new();
    let mut documents = words::markdown(Path::new("."))?;
    for file in rust_files(Path::new("crates"))? {
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        check_file(&file, &text, &mut complaints);
        let path = file.display().to_string();
        documents.push(Document { path, text });
    }
    words::check(&documents, &mut complaints);
    for (name, allowed) in LAYERS.iter().copied() {
        check_layer(name, allowed, &mut complaints)?;
    }
    if complaints.is_empty() {
        println!("== tidy: ok");
        return Ok(());
    }
    Err(format!("tidy:\n  {}", complaints.join("\n  ")))
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn check_file(path: &Path, text: &str, complaints: &mut Vec<String>) {
    let shown = path.display();
    if !text.starts_with("//!") && !shown.to_string().ends_with("tests.rs") {
        complaints.push(format!("{shown}: no module documentation"));
    }
    let is_test = path.components().any(|part| part.as_os_str() == "tests")
        || shown.to_string().ends_with("tests.rs");
    let is_table = shown.to_string().ends_with("table.rs");
    let code = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let lines = code.lines().count();
    if lines > FILE_LINES_MAX && !is_test && !is_table {
        complaints.push(format!(
            "{shown}: {lines} lines without tests, more than {FILE_LINES_MAX}"
        ));
    }
    if !is_test && !COLUMN_LISTS.contains(&shown.to_string().as_str()) {
        check_functions(path, code, complaints);
    }
    for (number, line) in text.lines().enumerate() {
        if line.contains("FIX\u{4d}E") || line.contains("TO\u{44}O") {
            complaints.push(format!(
                "{shown}:{}: unfinished business on main",
                number + 1
            ));
        }
    }
}

/// Finds functions by rustfmt's layout: a body ends at the first line with its indent and `}`.
fn check_functions(path: &Path, code: &str, complaints: &mut Vec<String>) {
    let lines: Vec<&str> = code.lines().collect();
    for (start, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let is_function = [
            "fn ",
            "pub fn ",
            "pub(crate) fn ",
            "pub(super) fn ",
            "unsafe fn ",
        ]
        .iter()
        .any(|head| trimmed.starts_with(head));
        if !is_function || trimmed.ends_with(';') || trimmed.ends_with('}') {
            continue;
        }
        let close = format!("{}}}", &line[..line.len() - trimmed.len()]);
        let length = lines[start..]
            .iter()
            .position(|candidate| **candidate == close);
        if let Some(length) = length
            && length > FUNCTION_LINES_MAX
        {
            complaints.push(format!(
                "{}:{}: a function of {length} lines",
                path.display(),
                start + 1
            ));
        }
    }
}

fn check_layer(name: &str, allowed: &[&str], complaints: &mut Vec<String>) -> Result<(), String> {
    let manifest = format!("crates/{name}/Cargo.toml");
    let text =
        std::fs::read_to_string(&manifest).map_err(|error| format!("{manifest}: {error}"))?;
    let section = text.split("[dependencies]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    for line in section
        .lines()
        .filter_map(|line| line.strip_prefix("windlass-"))
    {
        let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if !allowed.contains(&dependency) {
            complaints.push(format!("{manifest}: {name} may not depend on {dependency}"));
        }
    }
    Ok(())
}
