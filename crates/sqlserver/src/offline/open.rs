//! A file of an offline database: that it is the right one, and which parts of it a backup needs.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use windlass_bak::PageId;
use windlass_bak::data_file::{self, BOOT_PAGE, Boot};
use windlass_bak::page::{EXTENT_BYTES, EXTENT_PAGES, PAGE_BYTES};
use windlass_io::{Access, DirectFile, FileState};

use super::OfflineFile;
use crate::Error;

#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) id: u16,
    pub(super) is_log: bool,
    pub(super) logical_name: String,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) file: Arc<DirectFile>,
    state: FileState,
}

impl OpenFile {
    pub(super) fn open(file: &OfflineFile) -> Result<Self, Error> {
        let failed = |error| Error::file(&file.path, error);
        let opened = DirectFile::open(&file.path, Access::Read).map_err(failed)?;
        let metadata = opened.as_file().metadata().map_err(failed)?;
        Ok(Self {
            id: file.id,
            is_log: file.is_log,
            logical_name: file.logical_name.clone(),
            path: file.path.clone(),
            bytes: metadata.len(),
            file: Arc::new(opened),
            state: FileState::of(&metadata),
        })
    }

    /// Whether the name still leads to the file, and the file is as it was.
    pub(super) fn is_unchanged(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|found| FileState::of(&found) == self.state)
    }

    /// Whether the file says that a page is allocated.
    pub(super) fn is_allocated(&self, id: PageId) -> bool {
        let mut pfs = [0; PAGE_BYTES];
        self.read_page(data_file::pfs_page_of(id.page), &mut pfs)
            .is_ok()
            && data_file::is_allocated(&pfs, id)
    }

    fn read_page(&self, page: u32, into: &mut [u8; PAGE_BYTES]) -> io::Result<()> {
        let offset = u64::from(page) * PAGE_BYTES as u64;
        self.file.read_exact_at(into, offset)
    }

    fn refuse(&self, reason: impl Into<String>) -> Error {
        Error::Sequence {
            path: self.path.clone(),
            reason: reason.into(),
        }
    }
}

/// Checks that the files are those of one database; returns what its boot page says.
pub(super) fn check(files: &[OpenFile]) -> Result<Boot, Error> {
    let mut page = [0; PAGE_BYTES];
    for file in files.iter().filter(|file| !file.is_log) {
        let read = file.read_page(0, &mut page);
        read.map_err(|error| Error::file(&file.path, error))?;
        if data_file::file_of_first_page(&page) != Some(file.id) {
            return Err(file.refuse(format!("it is not data file {} of the database", file.id)));
        }
        if !file.bytes.is_multiple_of(PAGE_BYTES as u64) {
            let bytes = file.bytes;
            return Err(file.refuse(format!("its length of {bytes} bytes is not one of pages")));
        }
    }
    let logs: Vec<&OpenFile> = files.iter().filter(|file| file.is_log).collect();
    if let [_, second, ..] = logs.as_slice() {
        return Err(second.refuse("it is a second log file: only databases with one are backed up"));
    }
    let Some(first) = files.iter().find(|file| !file.is_log && file.id == 1) else {
        return Err(Error::Sequence {
            path: PathBuf::new(),
            reason: "the database has no first data file".to_owned(),
        });
    };
    let read = first.read_page(BOOT_PAGE, &mut page);
    read.map_err(|error| Error::file(&first.path, error))?;
    Boot::read(&page).ok_or_else(|| {
        first.refuse("page 1:9 is not the boot page: restore the database again, WITH REPLACE")
    })
}

/// What a backup reads of a data file, in whole extents: what is stored in it, and what is allocated according to its PFS pages,
/// so that an allocated page without content is found.
pub(super) fn data_ranges(file: &OpenFile) -> Result<Vec<Range<u64>>, Error> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut at = 0;
    while at < file.bytes {
        let stored = next_stored(file, at).map_err(|error| Error::file(&file.path, error))?;
        let hole_ends = stored.start.min(file.bytes);
        add_allocated(file, at..hole_ends, &mut ranges);
        add(&mut ranges, whole_extents(&stored, file.bytes));
        at = stored.end.max(hole_ends);
    }
    Ok(ranges)
}

fn whole_extents(range: &Range<u64>, end: u64) -> Range<u64> {
    let extent = EXTENT_BYTES as u64;
    range.start / extent * extent..range.end.next_multiple_of(extent).min(end)
}

/// Adds a range that does not begin before the last one.
fn add(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        _ if range.is_empty() => {}
        Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
        _ => ranges.push(range),
    }
}

/// What is stored from an offset on; at the end of the file an empty range there.
fn next_stored(file: &OpenFile, from: u64) -> io::Result<Range<u64>> {
    let descriptor = file.file.as_file();
    let begin = match seek(descriptor, SeekFrom::Data(from)) {
        Ok(begin) => begin,
        Err(Errno::NXIO) => return Ok(file.bytes..file.bytes),
        // A file system that knows no holes.
        Err(Errno::INVAL) => return Ok(from..file.bytes),
        Err(error) => return Err(error.into()),
    };
    let end = seek(descriptor, SeekFrom::Hole(begin))?;
    Ok(begin..end.min(file.bytes))
}

/// Adds the extents of a hole that have allocated pages.
fn add_allocated(file: &OpenFile, hole: Range<u64>, ranges: &mut Vec<Range<u64>>) {
    let mut pfs = [0; PAGE_BYTES];
    let mut known = None;
    let extents = hole.start / EXTENT_BYTES as u64..hole.end.div_ceil(EXTENT_BYTES as u64);
    for extent in extents {
        let Ok(first) = u32::try_from(extent * u64::from(EXTENT_PAGES)) else {
            return;
        };
        let is_allocated = (first..first.saturating_add(EXTENT_PAGES)).any(|page| {
            let pfs_page = data_file::pfs_page_of(page);
            if known != Some(pfs_page) {
                known = Some(pfs_page);
                // Without its PFS page everything counts as allocated.
                if file.read_page(pfs_page, &mut pfs).is_err() {
                    pfs.fill(0);
                }
            }
            let id = PageId {
                file: file.id,
                page,
            };
            data_file::is_allocated(&pfs, id)
        });
        if is_allocated {
            let begin = extent * EXTENT_BYTES as u64;
            add(ranges, whole_extents(&(begin..begin + 1), file.bytes));
        }
    }
}
