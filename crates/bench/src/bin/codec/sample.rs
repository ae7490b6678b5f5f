//! Pieces of files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use windlass_codec::BTreePages;
use windlass_io::AlignedBuffer;

/// Long enough for the longest frame.
pub(crate) const PIECE_BYTES: usize = 8 << 20;

/// Where a SQLite file has the number of its text encoding, big-endian.
const ENCODING_AT: std::ops::Range<usize> = 56..60;

/// A part of a file.
pub(crate) struct Piece {
    /// At most [`PIECE_BYTES`].
    pub(crate) bytes: AlignedBuffer,
    /// The layout of its pages, in a SQLite file.
    pub(crate) pages: Option<BTreePages>,
}

/// What is measured, in the same kind of memory as a backup's frames.
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) pieces: Vec<Piece>,
    /// Whether it is a SQLite database with UTF-16 text.
    pub(crate) is_utf_16: bool,
}

impl Sample {
    /// Up to `bytes` bytes of a file in pieces spread evenly over it, or of all files of a folder, one
    /// after the other.
    pub(crate) fn read(path: &Path, bytes: usize) -> io::Result<Self> {
        let mut pieces = Vec::new();
        let mut left = bytes;
        for file in files(path)? {
            let read = read(&file, left.max(PIECE_BYTES))?;
            left = left.saturating_sub(read.iter().map(|piece| piece.bytes.len()).sum());
            pieces.extend(read);
        }
        let encoding = pieces
            .first()
            .and_then(|piece| piece.bytes.get(ENCODING_AT));
        let is_utf_16 = path.is_file() && matches!(encoding, Some([0, 0, 0, 2 | 3]));
        Ok(Self {
            name: path.display().to_string(),
            pieces,
            is_utf_16,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes.len()).sum()
    }
}

/// The files of a folder, by name; a file alone.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in path.read_dir()? {
        files.push(entry?.path());
    }
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files)
}

/// The whole file, padded with zeros to 4 KB, if it is not longer than `bytes`.
fn read(path: &Path, bytes: usize) -> io::Result<Vec<Piece>> {
    let file = File::open(path)?;
    let pages = pages_of(&file)?;
    let file_bytes = file.metadata()?.len();
    let is_whole = file_bytes <= bytes as u64;
    let count = match is_whole {
        true => file_bytes.div_ceil(PIECE_BYTES as u64),
        false => (bytes / PIECE_BYTES).max(1) as u64,
    };
    let distance = match is_whole {
        true => PIECE_BYTES as u64,
        // Pieces start at a multiple of 64 KiB, where a page of any size starts.
        false => (file_bytes - PIECE_BYTES as u64) / count / 65_536 * 65_536,
    };
    let piece = |index: u64| {
        let start = index * distance;
        let length = (file_bytes - start).min(PIECE_BYTES as u64) as usize;
        let mut bytes = AlignedBuffer::new(length.next_multiple_of(4096));
        file.read_exact_at(&mut bytes[..length], start)?;
        Ok(Piece { bytes, pages })
    };
    (0..count).map(piece).collect()
}

/// The layout of the pages of a SQLite file.
fn pages_of(file: &File) -> io::Result<Option<BTreePages>> {
    let mut start = [0; BTreePages::FILE_HEADER_BYTES];
    let read = file.read_at(&mut start, 0)?;
    Ok(BTreePages::of_file(&start[..read]))
}
