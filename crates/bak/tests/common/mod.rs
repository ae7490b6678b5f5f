//! The real backups: read where they are, never copied.
#![allow(
    clippy::allow_attributes,
    clippy::print_stderr,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "each test program uses a part of it"
)]

use std::path::PathBuf;

/// The folder with the files and their manifest; prints a message if it is absent.
pub fn folder() -> Option<PathBuf> {
    let shared = std::env::var_os("WINDLASS_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let folder = shared.join("data/bak");
    if folder.join("MANIFEST.md").exists() {
        return Some(folder);
    }
    eprintln!(
        "NOT TESTED: there are no real backups in {}; set WINDLASS_SHARED",
        folder.display()
    );
    None
}

/// A file of the manifest.
#[derive(Debug, Clone)]
pub struct Sample {
    pub name: String,
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    /// The columns of its row.
    pub columns: Vec<String>,
}

impl Sample {
    pub fn special(&self) -> &str {
        &self.columns[7]
    }
}

/// All backups of the manifest, in its order; empty when the folder is absent.
pub fn samples() -> Vec<Sample> {
    let Some(folder) = folder() else {
        return Vec::new();
    };
    let manifest = std::fs::read_to_string(folder.join("MANIFEST.md")).unwrap();
    let rows = manifest.lines().filter(|line| line.starts_with("| sql"));
    let samples: Vec<Sample> = rows
        .map(|row| {
            let columns: Vec<String> = row
                .trim_matches('|')
                .split('|')
                .map(|column| column.trim().to_owned())
                .collect();
            let path = folder.join(&columns[0]);
            Sample {
                name: columns[0].clone(),
                bytes: std::fs::read(&path).unwrap(),
                path,
                columns,
            }
        })
        .collect();
    assert!(samples.len() >= 40, "the manifest lists {}", samples.len());
    samples
}

/// One backup by its name; `None` if the folder is absent.
pub fn sample(name: &str) -> Option<Vec<u8>> {
    Some(std::fs::read(folder()?.join(name)).unwrap())
}

/// Compares a text with the reviewed one; `WINDLASS_BLESS=1` overwrites it.
pub fn assert_golden(name: &str, found: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("WINDLASS_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = expected.lines().zip(found.lines()).find(|(a, b)| a != b);
    assert!(
        expected == found,
        "{name} differs, first in {differs:?}; WINDLASS_BLESS=1 writes it"
    );
}
