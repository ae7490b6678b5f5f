//! Whether the file and the log of a database together have all of its pages.
//!
//! The last commit in a log says how many pages the database has. A page behind the end of the file is in the log,
//! or it was never written, because nobody reads it: a leaf of the freelist, or the page of the lock bytes. If more
//! are missing, the file was truncated.
//!
//! Source: the `SQLite` file format, sections 1.4 "The Lock-Byte Page" and 1.5 "The Freelist".

use super::header::{HEADER_BYTES, be32};
use super::snapshot::FILE_ID;
use super::wal::Overlay;
use crate::{Error, Snapshot};

/// Where in the first page the number of the first trunk page of the freelist is.
const FIRST_TRUNK: usize = 32;

/// Bytes of a trunk page before the numbers of its leaves: the next trunk, and how many leaves there are.
const TRUNK_BYTES: usize = 8;

/// Whether pages are missing from a file of `file_bytes` bytes and the log.
pub(super) fn is_cut(
    snapshot: &dyn Snapshot,
    overlay: &Overlay,
    file_bytes: u64,
) -> Result<bool, Error> {
    let missing = overlay.missing_behind(file_bytes);
    Ok(missing > 0 && free_behind(snapshot, overlay, file_bytes, missing)? < missing)
}

/// Counts the leaves of the freelist that are neither in the file nor in the log, up to `enough`.
fn free_behind(
    snapshot: &dyn Snapshot,
    overlay: &Overlay,
    file_bytes: u64,
    enough: u64,
) -> Result<u64, Error> {
    let page_bytes = overlay.page_bytes() as usize;
    let mut page = vec![0; page_bytes];
    let mut header = [0; HEADER_BYTES];
    snapshot.read(FILE_ID, 0, &mut header)?;
    let mut trunk = be32(&header, FIRST_TRUNK);
    let mut found = 0;
    // A damaged list may have a loop, but no list has more trunks than there are pages.
    for _ in 0..overlay.page_count() {
        if trunk == 0 || trunk > overlay.page_count() || found >= enough {
            break;
        }
        let offset = u64::from(trunk - 1) * page_bytes as u64;
        snapshot.read(FILE_ID, offset, &mut page)?;
        let leaves = be32(&page, 4).min((page_bytes / 4 - 2) as u32) as usize;
        let leaves = page[TRUNK_BYTES..].chunks_exact(4).take(leaves);
        let missing = leaves.filter(|leaf| overlay.is_missing(be32(leaf, 0), file_bytes));
        found += missing.count() as u64;
        trunk = be32(&page, 0);
    }
    Ok(found)
}
