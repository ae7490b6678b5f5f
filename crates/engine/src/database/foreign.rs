//! Handles a data file that another SQLite wrote to while the database was closed.
//!
//! Invariants:
//! - Files that a crashed SQLite left next to the file (a hot journal, a write-ahead log) are part
//!   of its content: while one exists, the file is rejected.
//! - Afterwards every page has a valid checksum, if the database reserves space for one. Only the
//!   last bytes of a page change, so a torn write does not damage it. A crash during the change is
//!   detected: the file still differs from the fingerprint in its log.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use windlass_io::AlignedBuffer;

use crate::error::{EngineError, Result};
use crate::files::DataFiles;
use crate::storage::{FileSystem, OpenMode};
use windlass_base::page::{PAGE_BYTES, checksum};

/// Bytes read at a time.
const STEP_BYTES: usize = 1 << 20;

/// The first bytes of a hot rollback journal.
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Offset in page 1 of the write and read versions; 2 means a write-ahead log, which the engine
/// does not use.
const VERSIONS: std::ops::Range<usize> = 18..20;

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Rejects a file next to which SQLite left changes that are not in it.
pub(crate) fn refuse_leftovers(files: &dyn FileSystem, path: &Path) -> Result<()> {
    for suffix in ["-journal", "-wal"] {
        let other = beside(path, suffix);
        if !files.exists(&other) {
            continue;
        }
        let fail = |error| EngineError::io("read", &other, error);
        let file = match files.open(&other, OpenMode::Existing) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            opened => opened.map_err(fail)?,
        };
        let mut head = [0; JOURNAL_MAGIC.len()];
        let length = file.read_at(&mut head, 0).map_err(fail)?;
        if length == 0 || (suffix == "-journal" && head != JOURNAL_MAGIC) {
            continue;
        }
        return Err(EngineError::Corrupt {
            path: path.to_owned(),
            what: format!(
                "another SQLite connection left changes in '{}'; open and close the file once with \
                 SQLite before using it here",
                other.display()
            ),
        });
    }
    Ok(())
}

/// Changes the pages of the only data file to what the engine expects.
pub(super) fn take_over(data: &DataFiles, page_count: u32) -> Result<()> {
    let mut is_reserved = false;
    let mut changed = false;
    let mut buffer = AlignedBuffer::new(STEP_BYTES);
    for mut range in data.ranges(page_count, None, STEP_BYTES) {
        // Extents are whole; the database may end inside one.
        let end = u64::from(page_count) * PAGE_BYTES as u64;
        range.bytes = range.bytes.min((end - range.offset) as usize);
        let bytes = &mut buffer[..range.bytes];
        data.read_range(&range, bytes)?;
        let mut rewrite = false;
        if range.offset == 0 {
            is_reserved = checksum::is_reserved(bytes);
            rewrite = bytes[VERSIONS] == [2, 2];
            if rewrite {
                bytes[VERSIONS].fill(1);
            }
        }
        if is_reserved {
            for page in bytes.chunks_exact_mut(PAGE_BYTES) {
                if checksum::mismatch(page).is_some() {
                    checksum::stamp(page);
                    rewrite = true;
                }
            }
        }
        if rewrite {
            data.write_range(&range, bytes)?;
            changed = true;
        }
    }
    if changed {
        data.sync()?;
    }
    Ok(())
}
