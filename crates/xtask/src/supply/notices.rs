//! The notices of third parties: `THIRD-PARTY.md` lists what is linked, and the artefacts contain the texts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::Package;

const PAGE: &str = "THIRD-PARTY.md";

const HEAD: &str = "# What is linked into Windlass

`cargo xtask notices` prints this page from `Cargo.lock`; `cargo xtask supply` compares it, and checks the licences against
`deny.toml`. `cargo xtask dist` adds the full texts to every artefact (`THIRD-PARTY-LICENSES.txt`).

## C and assembler

| code | in the package | licence |
|---|---|---|
";

/// Code in other languages that packages bring along, and the file with its licence, if it needs one.
const NATIVE: [(&str, &str, &str, Option<&str>); 5] = [
    ("SQLite", "libsqlite3-sys", "public domain", None),
    (
        "Zstandard",
        "zstd-sys",
        "BSD-3-Clause",
        Some("zstd/LICENSE"),
    ),
    (
        "libdeflate",
        "libdeflate-sys",
        "MIT",
        Some("libdeflate/COPYING"),
    ),
    (
        "AWS-LC",
        "aws-lc-sys",
        "ISC, Apache-2.0, MIT, BSD-3-Clause",
        Some("aws-lc/LICENSE"),
    ),
    (
        SOURCES_ONLY,
        "isal-sys",
        "BSD-3-Clause",
        Some("isa-l/LICENSE"),
    ),
];

/// Built by `accelerator/build.rs` from a package that is itself not compiled.
const SOURCES_ONLY: &str = "ISA-L (where `nasm` is installed)";

/// The standard text for the few packages that bring none, all of which can be used under it.
const APACHE: &str = "LICENSE-APACHE";
const MIT: &str = "LICENSE-MIT";

/// Beginnings of the names of files with licences, in capital letters.
const FILES: [&str; 6] = [
    "LICEN",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
    "THIRD",
];

/// Writes the page; with `check`, fails if it is out of date, or if a text is missing.
pub(crate) fn write(check: bool) -> Result<(), String> {
    let packages = super::linked()?;
    texts_of(&packages)?;
    let mut page = HEAD.to_owned();
    let mut row = |line: std::fmt::Arguments<'_>| page.write_fmt(line);
    let print = |error: std::fmt::Error| error.to_string();
    for (code, package, licence, _) in NATIVE {
        row(format_args!("| {code} | {package} | {licence} |\n")).map_err(print)?;
    }
    row(format_args!(
        "\n## Rust\n\n| package | version | licence |\n|---|---|---|\n"
    ))
    .map_err(print)?;
    for package in &packages {
        let licence = package.license.as_deref().unwrap_or("?");
        let (name, version) = (&package.name, &package.version);
        row(format_args!("| {name} | {version} | {licence} |\n")).map_err(print)?;
    }
    crate::page::write(PAGE, &page, "notices", check)
}

/// Writes the full texts to a file.
pub(crate) fn write_texts(path: &Path) -> Result<(), String> {
    std::fs::write(path, texts()?).map_err(|error| format!("{}: {error}", path.display()))
}

/// The full texts of the licences of everything that is linked, each once.
pub(crate) fn texts() -> Result<String, String> {
    let mut text = String::from(
        "Windlass contains the following software of others. Each text is followed by what it applies to.\n",
    );
    let rule = "=".repeat(100);
    for (licence, users) in texts_of(&super::linked()?)? {
        let users = users.join(", ");
        write!(
            text,
            "\n{rule}\n{users}\n{rule}\n\n{}\n",
            licence.trim_end()
        )
        .map_err(|error| error.to_string())?;
    }
    Ok(text)
}

fn texts_of(packages: &[Package]) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages {
        let files = licence_files(package.folder())?;
        if files.is_empty() {
            let text = standard(package)?;
            texts.entry(text).or_default().push(package.spec());
        }
        add(&mut texts, files, &package.spec())?;
    }
    for (code, name, _, file) in NATIVE {
        let Some(file) = file else { continue };
        let folder = folder_of(packages, code, name)?;
        add(
            &mut texts,
            vec![folder.join(file)],
            &format!("{code}, in {name}"),
        )?;
    }
    Ok(texts)
}

fn add(
    texts: &mut BTreeMap<String, Vec<String>>,
    files: Vec<PathBuf>,
    user: &str,
) -> Result<(), String> {
    for file in files {
        let text = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
        texts.entry(text).or_default().push(user.to_owned());
    }
    Ok(())
}

/// Where Cargo has unpacked a package: that of ISA-L is not in the graph, but a neighbour of the others.
fn folder_of(packages: &[Package], code: &str, name: &str) -> Result<PathBuf, String> {
    if let Some(package) = packages.iter().find(|package| package.name == name) {
        return Ok(package.folder().to_owned());
    }
    let missing = || format!("{PAGE}: {name}, with {code}, is not among the packages");
    if code != SOURCES_ONLY {
        return Err(missing());
    }
    let registry = packages
        .first()
        .and_then(|package| package.folder().parent());
    let entries = std::fs::read_dir(registry.ok_or_else(missing)?).map_err(|_| missing())?;
    let head = format!("{name}-");
    let is_it = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|file| file.to_string_lossy().starts_with(&head))
    };
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(is_it)
        .ok_or_else(missing)
}

fn licence_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let is_licence = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_ascii_uppercase();
        path.is_file() && FILES.iter().any(|head| name.starts_with(head))
    };
    let mut files: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(is_licence)
        .collect();
    files.sort();
    Ok(files)
}

/// The text for a package that brings none. MIT's has the name of its owner in it.
fn standard(package: &Package) -> Result<String, String> {
    let licence = package.license.as_deref().unwrap_or_default();
    let read =
        |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    if licence.contains("Apache-2.0") {
        return read(APACHE);
    }
    if licence != "MIT" {
        return Err(format!(
            "{}: no text of its licence ({licence}) in {}",
            package.spec(),
            package.folder().display()
        ));
    }
    let owner = format!("Copyright (c) the authors of {}", package.name);
    let of_owner = |line: &str| match line.starts_with("Copyright") {
        true => owner.clone(),
        false => line.to_owned(),
    };
    let lines: Vec<_> = read(MIT)?.lines().map(of_owner).collect();
    Ok(lines.join("\n"))
}
