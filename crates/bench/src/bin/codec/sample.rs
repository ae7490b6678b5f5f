//! Pieces of a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use windlass_io::AlignedBuffer;

/// Long enough for the longest frame.
pub(crate) const PIECE_BYTES: usize = 8 << 20;

/// Up to `bytes` bytes of the file in pieces spread evenly over it; the whole file, padded with
/// zeros to 4 KB, if it is shorter. In the same kind of memory as a backup's frames.
pub(crate) fn read(path: &Path, bytes: usize) -> io::Result<AlignedBuffer> {
    let file = File::open(path)?;
    let file_bytes = file.metadata()?.len();
    if file_bytes <= bytes as u64 {
        let mut sample = AlignedBuffer::new(file_bytes as usize);
        file.read_exact_at(&mut sample[..file_bytes as usize], 0)?;
        return Ok(sample);
    }
    let pieces = (bytes / PIECE_BYTES).max(1);
    // Pieces start at a multiple of 64 KiB, where a page of any size starts.
    let distance = (file_bytes - PIECE_BYTES as u64) / pieces as u64 / 65_536 * 65_536;
    let mut sample = AlignedBuffer::new(pieces * PIECE_BYTES);
    for (index, piece) in (0..).zip(sample.chunks_mut(PIECE_BYTES)) {
        file.read_exact_at(piece, index * distance)?;
    }
    Ok(sample)
}
