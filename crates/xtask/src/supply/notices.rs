//! The notices of third parties: `THIRD-PARTY.md` lists what is linked, and the artefacts contain the texts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::Package;
use super::native::{LIBRARIES, standard_library_notices, zig};

const PAGE: &str = "THIRD-PARTY.md";

const HEAD: &str = "# What is linked into Windlass

`cargo xtask notices` prints this page from `Cargo.lock`; `cargo xtask supply` compares it, and checks the licences against
`deny.toml`. `cargo xtask dist` adds the full texts to every artefact (`THIRD-PARTY-LICENSES.txt`).

## C and assembler

| code | version | in | licence |
|---|---|---|---|
";

/// What the compilers add.
const COMPILERS: &str = "| Rust's standard library and what it contains | the compiler's | the Rust toolchain | MIT OR Apache-2.0, and others |
| LLVM's libunwind, Zig's compiler-rt (in what `cargo xtask dist` makes) | Zig's | ziglang | Apache-2.0 WITH LLVM-exception, MIT |
";

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
    let (packages, all) = (super::linked()?, super::all_packages()?);
    texts_of(&packages, &all)?;
    let mut page = HEAD.to_owned();
    let mut row = |line: std::fmt::Arguments<'_>| page.write_fmt(line);
    let print = |error: std::fmt::Error| error.to_string();
    for library in LIBRARIES {
        let version = library.version(library.package(&all)?)?;
        let condition = match library.is_optional() {
            true => " (where `nasm` is installed)",
            false => "",
        };
        let (name, package, licence) = (library.name, library.package, library.licence);
        row(format_args!(
            "| {name}{condition} | {version} | {package} | {licence} |\n"
        ))
        .map_err(print)?;
    }
    row(format_args!("{COMPILERS}")).map_err(print)?;
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
    std::fs::write(path, texts(false)?).map_err(|error| format!("{}: {error}", path.display()))
}

/// The full texts of the licences of everything that is linked, each once. A release needs those of what the compilers
/// add; else they are there if the toolchain has them.
pub(crate) fn texts(is_release: bool) -> Result<String, String> {
    let mut text = String::from(
        "Windlass contains the following software of others. Each text is followed by what it applies to.\n",
    );
    let rule = "=".repeat(100);
    let mut texts = texts_of(&super::linked()?, &super::all_packages()?)?;
    add_compilers(&mut texts, is_release)?;
    for (licence, users) in texts {
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

/// The licences of `packages` and of the libraries in C, whose packages are among `all`, with their users.
fn texts_of(
    packages: &[Package],
    all: &[Package],
) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages {
        let files = licence_files(package.folder())?;
        if files.is_empty() {
            let text = standard(package)?;
            texts.entry(text).or_default().push(package.spec());
        }
        add(&mut texts, files, &package.spec())?;
    }
    for library in LIBRARIES {
        let Some(file) = library.text else { continue };
        let user = format!("{}, in {}", library.name, library.package);
        let path = library.package(all)?.folder().join(file);
        add(&mut texts, vec![path], &user)?;
    }
    Ok(texts)
}

fn add_compilers(
    texts: &mut BTreeMap<String, Vec<String>>,
    is_release: bool,
) -> Result<(), String> {
    for file in standard_library_notices()? {
        if is_release || file.exists() {
            add(texts, vec![file], "Rust's standard library")?;
        }
    }
    if is_release {
        let folder = zig()?;
        add(texts, vec![folder.join("LICENSE")], "Zig's compiler-rt")?;
        let unwinder = folder.join("lib/libunwind/LICENSE.TXT");
        add(texts, vec![unwinder], "LLVM's libunwind")?;
    }
    Ok(())
}

fn add(
    texts: &mut BTreeMap<String, Vec<String>>,
    files: Vec<PathBuf>,
    user: &str,
) -> Result<(), String> {
    for file in files {
        let text = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
        if file
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            text = plain(&text);
        }
        texts.entry(text).or_default().push(user.to_owned());
    }
    Ok(())
}

/// The words of a page without its tags, paragraphs apart.
fn plain(page: &str) -> String {
    let mut words = String::with_capacity(page.len());
    let body = page.split_once("<body>").map_or(page, |(_, body)| body);
    for (place, part) in body.split('<').enumerate() {
        let after = part.split_once('>').map_or("", |(_, after)| after);
        words.push_str(if place == 0 { part } else { after });
    }
    for (name, character) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&amp;", "&"),
    ] {
        words = words.replace(name, character);
    }
    let mut lines: Vec<_> = words.lines().map(str::trim_end).collect();
    lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    lines.join("\n").trim().to_owned()
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

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_page_becomes_its_words() {
        let page = "<html><head><title>T</title></head><body>\n<h1>A &amp; B</h1>\n\n \n\n<p>&lt;c&gt;</p>\n</body></html>";
        assert_eq!(plain(page), "A & B\n\n<c>");
    }
}
