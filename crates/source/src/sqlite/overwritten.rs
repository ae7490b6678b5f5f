//! Whether a database file has the pages of its log, once all of them were copied into it.
//!
//! A program that does not use `SQLite`, such as `cp`, can write another database into the file while the log of the first one
//! is in use. `SQLite` then reads a mixture of both, and so would a backup. While the log's index says that every frame was
//! copied, the file must have the newest frame of each page.
//!
//! Nothing is compared while frames are left to copy: a checkpoint that ends at a reader's mark leaves out the pages
//! that have newer frames behind it.

use windlass_io::DirectFile;

use super::ffi::{WalIndex, WalIndexHeader};
use super::file_error;
use super::wal::Overlay;
use crate::Error;

/// Pages that are compared: the frames that `SQLite` collects before it copies them by itself.
const PAGES_COMPARED: usize = 1000;

/// Refuses a file that does not have what was copied into it. `look` reads the index of the log; a mark at `mark` keeps
/// the log from being begun again, and frames behind it from being copied.
pub(super) fn refuse(
    file: &DirectFile,
    overlay: &Overlay,
    mark: &WalIndexHeader,
    look: &dyn Fn() -> Option<WalIndex>,
) -> Result<(), Error> {
    let is_all_copied = || {
        look().is_some_and(|index| {
            let header = &index.header;
            header.salt == mark.salt
                && header.frame_max == mark.frame_max
                && index.backfilled == mark.frame_max
        })
    };
    if !is_all_copied() {
        return Ok(());
    }
    let page_bytes = overlay.page_bytes() as usize;
    let (mut in_file, mut in_log) = (vec![0; page_bytes], vec![0; page_bytes]);
    for page in overlay.pages().take(PAGES_COMPARED) {
        let offset = page.byte_offset(page_bytes);
        let read = file.read_at(&mut in_file, offset);
        let bytes = read.map_err(|error| file_error("read", overlay.path(), error))?;
        overlay.apply(offset, &mut in_log)?;
        // A file that ends before the page is told as one that was cut off.
        if bytes == page_bytes && in_file != in_log && is_all_copied() {
            return Err(overlay.overwritten(page));
        }
    }
    Ok(())
}
