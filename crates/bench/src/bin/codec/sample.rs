//! Pieces of a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Long enough for the longest frame.
const PIECE_BYTES: usize = 8 << 20;

/// Up to `bytes` octets of the file in pieces spread evenly over it; all of it if it is shorter.
pub(crate) fn read(path: &Path, bytes: usize) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let file_bytes = file.metadata()?.len();
    if file_bytes <= bytes as u64 {
        return std::fs::read(path);
    }
    let pieces = (bytes / PIECE_BYTES).max(1);
    // Pieces start at a multiple of 64 KiB, where a page of any size starts.
    let distance = (file_bytes - PIECE_BYTES as u64) / pieces as u64 / 65_536 * 65_536;
    let mut sample = vec![0; pieces * PIECE_BYTES];
    for (index, piece) in (0..).zip(sample.chunks_mut(PIECE_BYTES)) {
        file.read_exact_at(piece, index * distance)?;
    }
    Ok(sample)
}
