//! Fills the data files of a new database with the pages of another one.
//!
//! The pages go straight to their places, past the log: until the files have their names, nobody opens them.

use std::fmt::Debug;
use std::io;
use std::path::Path;

use windlass_base::PageNumber;
use windlass_base::page::{EXTENT_PAGES, PAGE_BYTES};
use windlass_io::AlignedBuffer;

use crate::error::{EngineError, Result};
use crate::files::{DataFiles, EXTENT_BYTES};

/// Bytes of a write to a data file.
const TRANSFER_BYTES: usize = 1 << 20;

/// The pages of a database that is to be made.
pub trait NewContent: Debug {
    /// Where they come from, for messages.
    fn path(&self) -> &Path;

    fn page_count(&self) -> u32;

    /// Fills `buffer` with whole pages, from `first` on.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read(&self, first: PageNumber, buffer: &mut [u8]) -> io::Result<()>;
}

/// Writes all pages to the files, whose space is reserved, and syncs them.
pub(super) fn fill(data: &DataFiles, content: &dyn NewContent) -> Result<()> {
    let page_count = content.page_count();
    let mut buffer = AlignedBuffer::new(TRANSFER_BYTES);
    for range in data.ranges(page_count, None, TRANSFER_BYTES) {
        let bytes = &mut buffer[..range.bytes];
        let offsets = (range.offset..).step_by(EXTENT_BYTES as usize);
        for (extent, offset) in bytes.chunks_exact_mut(EXTENT_BYTES as usize).zip(offsets) {
            let first = data.page_at(range.file, offset).ok_or_else(|| {
                EngineError::Invalid(format!("no page is at byte {offset} of a new data file"))
            })?;
            // The last extent may be used in part.
            let pages = page_count.saturating_sub(first.index()).min(EXTENT_PAGES);
            let (used, rest) = extent.split_at_mut(pages as usize * PAGE_BYTES);
            content
                .read(first, used)
                .map_err(|error| EngineError::io("read", content.path(), error))?;
            rest.fill(0);
        }
        data.write_range(&range, bytes)?;
    }
    let files = data.handles().into_iter().zip(data.specs());
    for (file, spec) in files {
        file.sync()
            .map_err(|error| EngineError::io("sync", &spec.path, error))?;
    }
    Ok(())
}
