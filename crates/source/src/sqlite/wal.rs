//! Pages that are newer in the write-ahead log than in the database file.
//!
//! Source: the `SQLite` file format, section 4 "The Write-Ahead Log".

pub(super) mod sum;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use windlass_base::PageNumber;

use super::descriptors::FileId;
use super::ffi::WalIndexHeader;
use super::file_error;
use super::header::be32;
use crate::Error;
use crate::error::WalDamage;
use sum::RunningSum;

pub(super) const HEADER_BYTES: usize = 32;
pub(super) const FRAME_HEADER_BYTES: usize = 24;
const FORMAT_VERSION: u32 = 3_007_000;

/// Where `SQLite` locks its files; the page there is never used.
const LOCK_BYTES_AT: u64 = 1 << 30;

/// The newest frame of each page up to a mark in the log.
#[derive(Debug)]
pub(super) struct Overlay {
    file: File,
    path: PathBuf,
    header: [u8; HEADER_BYTES],
    page_bytes: u32,
    page_count: u32,
    /// Ascending by page, each page once.
    newest: Vec<NewestFrame>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NewestFrame {
    page: PageNumber,
    /// From 1, as `SQLite` counts.
    frame: u32,
}

impl Overlay {
    /// Collects the frames up to the mark of a pinned snapshot.
    ///
    /// Frame headers must have the salts of the snapshot, and the last one the checksum that the
    /// wal-index has for it: this proves that it is the log of the snapshot. Page content is not
    /// checksummed here, just as `SQLite` does not when it reads a frame.
    pub(super) fn pinned(path: &Path, mark: &WalIndexHeader) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| file_error("open", path, error))?;
        let mut overlay = Self {
            header: read_header(&file, path)?,
            file,
            path: path.to_owned(),
            page_bytes: mark.page_bytes(),
            page_count: mark.page_count,
            newest: Vec::new(),
        };
        let salt = mark.salt.concat();
        if overlay.header[16..24] != salt || be32(&overlay.header, 8) != overlay.page_bytes {
            return Err(overlay.damaged(0, WalDamage::Salt));
        }
        let mut frame_header = [0; FRAME_HEADER_BYTES];
        for frame in 1..=mark.frame_max {
            overlay.read_log(
                &mut frame_header,
                overlay.frame_offset(frame),
                mark.frame_max,
            )?;
            if frame_header[8..16] != salt {
                return Err(overlay.damaged(frame, WalDamage::Salt));
            }
            overlay.add(&frame_header, frame);
        }
        let commit = [
            be32(&frame_header, 4),
            be32(&frame_header, 16),
            be32(&frame_header, 20),
        ];
        if commit
            != [
                mark.page_count,
                mark.frame_checksum[0],
                mark.frame_checksum[1],
            ]
        {
            return Err(overlay.damaged(mark.frame_max, WalDamage::Checksum));
        }
        overlay.keep_newest();
        Ok(overlay)
    }

    /// Collects the committed frames of a log that no process has open, as `SQLite`'s recovery would:
    /// up to the last commit before the first frame with a wrong checksum. `None` if it has no
    /// commit.
    pub(super) fn leftover(path: &Path) -> Result<Option<Self>, Error> {
        let file = File::open(path).map_err(|error| file_error("open", path, error))?;
        let length = file
            .metadata()
            .map_err(|error| file_error("examine", path, error))?
            .len();
        if length <= (HEADER_BYTES + FRAME_HEADER_BYTES) as u64 {
            return Ok(None);
        }
        let header = read_header(&file, path)?;
        let Some(mut sum) = RunningSum::of_header(&header) else {
            return Ok(None);
        };
        let page_bytes = be32(&header, 8);
        if be32(&header, 4) != FORMAT_VERSION {
            let path = path.to_owned();
            return Err(Error::WalDamaged {
                path,
                frame: 0,
                damage: WalDamage::Header,
            });
        }
        let mut overlay = Self {
            file,
            path: path.to_owned(),
            header,
            page_bytes,
            page_count: 0,
            newest: Vec::new(),
        };
        let mut committed = 0;
        let mut bytes = vec![0; FRAME_HEADER_BYTES + page_bytes as usize];
        let frame_count = (length - HEADER_BYTES as u64) / bytes.len() as u64;
        for frame in 1..=u32::try_from(frame_count).unwrap_or(u32::MAX - 1) {
            overlay.read_log(&mut bytes, overlay.frame_offset(frame), frame)?;
            if bytes[8..16] != header[16..24] || be32(&bytes, 0) == 0 || !sum.matches(&bytes) {
                break;
            }
            overlay.add(&bytes, frame);
            if be32(&bytes, 4) != 0 {
                overlay.page_count = be32(&bytes, 4);
                committed = overlay.newest.len();
            }
        }
        overlay.newest.truncate(committed);
        overlay.keep_newest();
        Ok((committed > 0).then_some(overlay))
    }

    /// Length of the database as of the mark.
    pub(super) fn database_bytes(&self) -> u64 {
        u64::from(self.page_count) * u64::from(self.page_bytes)
    }

    pub(super) fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// The log.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The pages that the log has, ascending.
    pub(super) fn pages(&self) -> impl Iterator<Item = PageNumber> {
        self.newest.iter().map(|newest| newest.page)
    }

    /// That the database file does not have `page` as it was copied from here.
    pub(super) fn overwritten(&self, page: PageNumber) -> Error {
        Error::OverwrittenUnderLog {
            log: self.path.clone(),
            page: page.index().saturating_add(1),
        }
    }

    /// Pages of the database as of the mark.
    pub(super) fn page_count(&self) -> u32 {
        self.page_count
    }

    /// Counts the pages that are neither in the log nor in a file of `file_bytes` bytes, except the page of the
    /// lock bytes, which has no content.
    pub(super) fn missing_behind(&self, file_bytes: u64) -> u64 {
        let page_bytes = u64::from(self.page_bytes);
        let (in_file, end) = (file_bytes / page_bytes, u64::from(self.page_count));
        if in_file >= end {
            return 0;
        }
        let from = (self.newest).partition_point(|newest| u64::from(newest.page.index()) < in_file);
        let in_log = (self.newest.len() - from) as u64;
        let is_locks_page = (in_file..end).contains(&(LOCK_BYTES_AT / page_bytes));
        (end - in_file).saturating_sub(in_log + u64::from(is_locks_page))
    }

    /// Whether a page of the database, by its number from 1, is neither in the log nor in a file of `file_bytes`
    /// bytes.
    pub(super) fn is_missing(&self, page: u32, file_bytes: u64) -> bool {
        let page_bytes = u64::from(self.page_bytes);
        let is_behind = page <= self.page_count && u64::from(page) * page_bytes > file_bytes;
        is_behind
            && PageNumber::from_sqlite(page).is_some_and(|page| {
                let found = self
                    .newest
                    .binary_search_by_key(&page, |newest| newest.page);
                found.is_err()
            })
    }

    /// Whether every page of a range of the database is in the log.
    pub(super) fn covers(&self, offset: u64, bytes: usize) -> bool {
        let page_bytes = u64::from(self.page_bytes);
        let pages = (offset + bytes as u64).div_ceil(page_bytes) - offset / page_bytes;
        self.frames_within(offset, bytes).len() as u64 == pages
    }

    /// Overlays the pages of the log on `buffer`, which has the database file from `offset` on.
    pub(super) fn apply(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let page_bytes = u64::from(self.page_bytes);
        let end = offset + buffer.len() as u64;
        for newest in self.frames_within(offset, buffer.len()) {
            let page_start = newest.page.byte_offset(self.page_bytes as usize);
            let (from, to) = (page_start.max(offset), (page_start + page_bytes).min(end));
            let in_log = self.frame_offset(newest.frame) + FRAME_HEADER_BYTES as u64;
            let part = &mut buffer[(from - offset) as usize..(to - offset) as usize];
            self.read_log(part, in_log + (from - page_start), newest.frame)?;
        }
        Ok(())
    }

    /// Confirms that the log was neither replaced nor restarted since it was opened: a writer that
    /// restarts it rewrites the header, with other salts, before any frame.
    pub(super) fn confirm(&self) -> Result<(), Error> {
        let is_named = || -> std::io::Result<bool> {
            let (opened, named) = (self.file.metadata()?, std::fs::metadata(&self.path)?);
            Ok(FileId::of(&opened) == FileId::of(&named))
        };
        if read_header(&self.file, &self.path)? == self.header && is_named().unwrap_or(false) {
            Ok(())
        } else {
            Err(Error::ChangedWhileReading {
                path: self.path.clone(),
            })
        }
    }

    fn add(&mut self, frame_header: &[u8], frame: u32) {
        // No page has the number 0.
        let page = PageNumber::from_sqlite(be32(frame_header, 0));
        self.newest
            .extend(page.map(|page| NewestFrame { page, frame }));
    }

    /// Keeps the last frame of each page, and none of pages that a later commit truncated.
    fn keep_newest(&mut self) {
        let page_count = self.page_count;
        self.newest
            .retain(|newest| newest.page.is_within(page_count));
        self.newest
            .sort_unstable_by_key(|newest| (newest.page, std::cmp::Reverse(newest.frame)));
        self.newest.dedup_by_key(|newest| newest.page);
        self.newest.shrink_to_fit();
    }

    fn frames_within(&self, offset: u64, bytes: usize) -> &[NewestFrame] {
        let page_bytes = u64::from(self.page_bytes);
        let first = offset / page_bytes;
        let end = (offset + bytes as u64).div_ceil(page_bytes);
        let before = |index: u64| {
            self.newest
                .partition_point(|newest| u64::from(newest.page.index()) < index)
        };
        self.newest
            .get(before(first)..before(end))
            .unwrap_or_default()
    }

    fn frame_offset(&self, frame: u32) -> u64 {
        let frame_bytes = FRAME_HEADER_BYTES as u64 + u64::from(self.page_bytes);
        HEADER_BYTES as u64 + u64::from(frame - 1) * frame_bytes
    }

    fn read_log(&self, bytes: &mut [u8], offset: u64, expected: u32) -> Result<(), Error> {
        match self.file.read_exact_at(bytes, offset) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.damaged(expected, WalDamage::TooShort { expected }))
            }
            Err(error) => Err(file_error("read", &self.path, error)),
        }
    }

    fn damaged(&self, frame: u32, damage: WalDamage) -> Error {
        Error::WalDamaged {
            path: self.path.clone(),
            frame,
            damage,
        }
    }
}

fn read_header(file: &File, path: &Path) -> Result<[u8; HEADER_BYTES], Error> {
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0)
        .map_err(|error| file_error("read", path, error))?;
    Ok(header)
}

#[cfg(test)]
mod tests;
