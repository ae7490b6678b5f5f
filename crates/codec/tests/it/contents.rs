//! Test data of many kinds, generated from a seed.

use std::path::PathBuf;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The kind of data in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Zero,
    OneValue,
    Random,
    /// Few values without order: only entropy coding saves anything.
    FewValues,
    Text,
    TextUtf16,
    /// Pages of rows with numbers, text and free space.
    Pages,
    /// Frequencies that double from value to value: the deepest code tree.
    Skewed,
    /// Runs of all lengths, for the three forms of a match length.
    Runs,
}

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Zero,
        Self::OneValue,
        Self::Random,
        Self::FewValues,
        Self::Text,
        Self::TextUtf16,
        Self::Pages,
        Self::Skewed,
        Self::Runs,
    ];

    /// `length` bytes of this kind.
    pub(crate) fn bytes(self, length: usize, seed: u64) -> Vec<u8> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut bytes = Vec::with_capacity(length + 70_000);
        while bytes.len() < length {
            match self {
                Self::Zero => bytes.resize(length, 0),
                Self::OneValue => bytes.resize(length, 0xA5),
                Self::Random => bytes.push(random.random()),
                Self::FewValues => bytes.push(random.random_range(b'a'..=b'e')),
                Self::Text => bytes.extend(word(&mut random).bytes()),
                Self::TextUtf16 => {
                    bytes.extend(word(&mut random).bytes().flat_map(|byte| [byte, 0]));
                }
                Self::Pages => page(&mut random, &mut bytes),
                Self::Skewed => bytes.push(random.random::<u32>().trailing_zeros() as u8),
                Self::Runs => {
                    let run = 1_usize << random.random_range(0..16);
                    let value: u8 = random.random();
                    bytes.extend(std::iter::repeat_n(value, random.random_range(1..=run)));
                    bytes.push(random.random());
                }
            }
        }
        bytes.truncate(length);
        bytes
    }
}

fn word(random: &mut StdRng) -> &'static str {
    const WORDS: [&str; 16] = [
        "backup ",
        "of ",
        "the ",
        "database ",
        "is ",
        "not ",
        "a ",
        "restore ",
        "page",
        "s ",
        "which ",
        "SELECT ",
        "FROM ",
        ", ",
        ".\r\n",
        "extent ",
    ];
    WORDS[random.random_range(0..WORDS.len())]
}

fn page(random: &mut StdRng, bytes: &mut Vec<u8>) {
    let end = bytes.len() + 8192;
    bytes.extend([1, 1, 0, 4, 0, 0, 0, 1]);
    let rows = random.random_range(0..60);
    for row in 0..rows {
        bytes.extend(u32::to_be_bytes(random.random_range(0..100_000)));
        bytes.extend(u64::to_le_bytes(1_577_836_800 + row * 77));
        for _ in 0..random.random_range(1..8) {
            bytes.extend(word(random).bytes().flat_map(|byte| [byte, 0]));
        }
    }
    bytes.resize(end, 0);
}

/// Real files that are not part of the repository; `None`, with a message, if they are absent.
pub(crate) fn shared(folder: &str) -> Option<PathBuf> {
    let root = std::env::var_os("WINDLASS_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let path = root.join(folder);
    if path.is_dir() {
        return Some(path);
    }
    println!("SKIPPED: {} is absent", path.display());
    None
}

/// Complete files of a folder, ordered by name.
pub(crate) fn files(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let Some(folder) = shared(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}
