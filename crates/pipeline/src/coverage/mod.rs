//! Accounts for the bytes of a database's files: each exactly once.
//!
//! A backup claims what was written to the media and what was skipped on purpose, and compares both
//! with what was scheduled before the set gets its end. A restore or verification claims the
//! content of every chunk, and compares it with what the set should contain.
//!
//! Data files are counted in extents, because their ranges begin at an extent and end at one or at
//! the end of the file; the log is counted in bytes. Memory: one word of 64 bits and its index for
//! each 4 MB of a file with any claims (8 MB for a database of 1 TB), and two words for each
//! separate range of the log.

mod extents;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use windlass_base::EXTENT_BYTES;
use windlass_media::{ChunkKind, Run};

use self::extents::Extents;
use crate::error::Error;

/// Maximum number of ranges that a report names; the rest are only counted.
const NAMED_MAX: usize = 1000;

/// A file whose bytes are claimed.
#[derive(Debug, Clone)]
pub(crate) struct CoveredFile {
    pub(crate) file_id: u16,
    pub(crate) is_log: bool,
    pub(crate) name: String,
    pub(crate) size_bytes: u64,
}

/// A range of a database file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRange {
    pub file_id: u16,
    /// Its logical name.
    pub file: String,
    pub offset: u64,
    pub bytes: u64,
}

impl fmt::Display for FileRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file_id,
            file,
            offset,
            bytes,
        } = self;
        let end = offset.saturating_add(*bytes).saturating_sub(1);
        write!(
            f,
            "file '{file}' ({file_id}), bytes {offset} to {end} (8 KB pages {} to {})",
            offset / windlass_base::PAGE_BYTES as u64,
            end / windlass_base::PAGE_BYTES as u64
        )
    }
}

/// Ranges that should exist and do not, or the other way round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileRanges {
    /// The first ones, ordered by file and offset.
    pub named: Vec<FileRange>,
    pub count: u64,
    pub bytes: u64,
}

impl FileRanges {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn add(&mut self, range: FileRange) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(range.bytes);
        if self.named.len() < NAMED_MAX {
            self.named.push(range);
        }
    }

    /// Adds bytes of unknown location.
    pub(crate) fn add_unplaced(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl fmt::Display for FileRanges {
    /// The first range, and how much more there is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.named.first() else {
            return write!(
                f,
                "{} bytes at places that the set does not name",
                self.bytes
            );
        };
        write!(f, "{first}")?;
        if self.count > 1 {
            let (more, bytes) = (self.count - 1, self.bytes - first.bytes);
            write!(f, " ({more} more ranges with {bytes} bytes follow)")?;
        }
        Ok(())
    }
}

/// Why bytes cannot be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The range does not begin and end at allowed offsets, or is outside the files of its kind.
    Misplaced,
    /// Some of its bytes were claimed before.
    Twice,
}

#[derive(Debug)]
struct FileCoverage {
    file: CoveredFile,
    /// On the media.
    held: Extents,
    /// Skipped on purpose.
    left_out: Extents,
    /// Ranges of the log: start and end.
    log: BTreeMap<u64, u64>,
    held_bytes: u64,
    written_bytes: u64,
}

/// The state of the source of a backup.
#[derive(Debug, Default)]
enum SourceEnd {
    #[default]
    NotYet,
    WithoutLog,
    WithLog {
        file_id: u16,
        bytes: u64,
    },
}

/// The claims on each file of a database; initially none.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    files: Mutex<Vec<FileCoverage>>,
    source_end: Mutex<SourceEnd>,
}

impl Coverage {
    pub(crate) fn new(files: impl Iterator<Item = CoveredFile>) -> Self {
        let files = files.map(|file| FileCoverage {
            file,
            held: Extents::default(),
            left_out: Extents::default(),
            log: BTreeMap::new(),
            held_bytes: 0,
            written_bytes: 0,
        });
        Self {
            files: Mutex::new(files.collect()),
            source_end: Mutex::default(),
        }
    }

    fn files(&self) -> MutexGuard<'_, Vec<FileCoverage>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims the ranges of a chunk that is on the media: all of them, or none on error. Does not
    /// check that they are within the file.
    pub(crate) fn hold(&self, kind: ChunkKind, file_id: u16, runs: &[Run]) -> Result<(), Refusal> {
        let mut files = self.files();
        let file = found(&mut files, file_id).ok_or(Refusal::Misplaced)?;
        if file.file.is_log != (kind == ChunkKind::Log) {
            return Err(Refusal::Misplaced);
        }
        let claimed = match kind {
            ChunkKind::Log => file.hold_log(runs),
            ChunkKind::Data => file.hold_data(runs),
        };
        claimed.inspect(|()| file.held_bytes += bytes_of(runs))
    }

    /// Claims the ranges of a chunk that is on the media but unusable.
    pub(crate) fn lose(&self, kind: ChunkKind, file_id: u16, runs: &[Run]) -> Result<(), Refusal> {
        self.hold(kind, file_id, runs)?;
        if let Some(file) = found(&mut self.files(), file_id) {
            file.held_bytes -= bytes_of(runs);
        }
        Ok(())
    }

    /// Records that the source delivered everything, and the length of its log.
    pub(crate) fn end_source(&self, log: Option<(u16, u64)>) {
        *self.source_end() = match log {
            Some((file_id, bytes)) => SourceEnd::WithLog { file_id, bytes },
            None => SourceEnd::WithoutLog,
        };
    }

    /// Whether the source delivered everything.
    pub(crate) fn is_source_ended(&self) -> bool {
        !matches!(*self.source_end(), SourceEnd::NotYet)
    }

    /// Bytes of log that the source delivered for a file.
    pub(crate) fn log_bytes(&self, file_id: u16) -> u64 {
        match *self.source_end() {
            SourceEnd::WithLog {
                file_id: log,
                bytes,
            } if log == file_id => bytes,
            _ => 0,
        }
    }

    fn source_end(&self) -> MutexGuard<'_, SourceEnd> {
        self.source_end
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims a range of a data file that is skipped on purpose.
    pub(crate) fn leave_out(&self, file_id: u16, range: Range<u64>) -> Result<(), Refusal> {
        let mut files = self.files();
        let file = found(&mut files, file_id).ok_or(Refusal::Misplaced)?;
        let extents = file.extents(&range)?;
        if file.held.touches(&extents) || file.left_out.touches(&extents) {
            return Err(Refusal::Twice);
        }
        file.left_out.insert(extents);
        Ok(())
    }

    /// The error for a range that is claimed twice, or cannot be claimed.
    pub(crate) fn not_stored(&self, file_id: u16, range: Range<u64>, refusal: Refusal) -> Error {
        let mut ranges = FileRanges::default();
        let run = Run {
            offset: range.start,
            bytes: u32::try_from(range.end - range.start).unwrap_or(u32::MAX),
        };
        self.name(file_id, &[run], &mut ranges);
        match refusal {
            Refusal::Misplaced => Error::NotStored(ranges),
            Refusal::Twice => Error::StoredTwice(ranges),
        }
    }

    /// Counts bytes that the target wrote.
    pub(crate) fn write(&self, file_id: u16, bytes: u64) {
        if let Some(file) = found(&mut self.files(), file_id) {
            file.written_bytes += bytes;
        }
    }

    /// Bytes of a file that are on the media.
    pub(crate) fn held_bytes(&self, file_id: u16) -> u64 {
        found(&mut self.files(), file_id).map_or(0, |file| file.held_bytes)
    }

    /// The ranges of a data file that are on the media, in extents.
    pub(crate) fn held_extents(&self, file_id: u16) -> Vec<Range<u64>> {
        found(&mut self.files(), file_id)
            .map(|file| file.held.runs().collect())
            .unwrap_or_default()
    }

    /// The first file for which the target wrote more or fewer bytes than the media hold: name,
    /// written, held.
    pub(crate) fn unwritten(&self) -> Option<(String, u64, u64)> {
        let files = self.files();
        let differs = |file: &&FileCoverage| file.written_bytes != file.held_bytes;
        let file = files.iter().find(differs)?;
        Some((file.file.name.clone(), file.written_bytes, file.held_bytes))
    }

    /// Adds the parts of `wanted` that were not claimed. `wanted` are ascending byte ranges of a
    /// file.
    pub(crate) fn missing(
        &self,
        file_id: u16,
        wanted: impl Iterator<Item = Range<u64>>,
        into: &mut FileRanges,
    ) {
        let mut files = self.files();
        let Some(file) = found(&mut files, file_id) else {
            return;
        };
        let wanted = wanted.map(|range| file.units(&range));
        gaps(wanted, file.claimed(), |gap| into.add(file.range(&gap)));
    }

    /// Adds the claims that are not in `wanted`.
    pub(crate) fn unexpected(
        &self,
        file_id: u16,
        wanted: impl Iterator<Item = Range<u64>>,
        into: &mut FileRanges,
    ) {
        let mut files = self.files();
        let Some(file) = found(&mut files, file_id) else {
            return;
        };
        let wanted = wanted.map(|range| file.units(&range));
        gaps(file.claimed(), wanted, |gap| into.add(file.range(&gap)));
    }

    /// The ranges of a chunk, for a report.
    pub(crate) fn name(&self, file_id: u16, runs: &[Run], into: &mut FileRanges) {
        let mut files = self.files();
        let file = found(&mut files, file_id);
        let name = file.map_or_else(String::new, |file| file.file.name.clone());
        for run in runs {
            into.add(FileRange {
                file_id,
                file: name.clone(),
                offset: run.offset,
                bytes: run.bytes.into(),
            });
        }
    }
}

fn found(files: &mut [FileCoverage], file_id: u16) -> Option<&mut FileCoverage> {
    files.iter_mut().find(|file| file.file.file_id == file_id)
}

fn bytes_of(runs: &[Run]) -> u64 {
    runs.iter().map(|run| u64::from(run.bytes)).sum()
}

fn range_of(run: &Run) -> Range<u64> {
    run.offset..run.offset.saturating_add(run.bytes.into())
}

impl FileCoverage {
    /// Bytes per unit in which the file is counted.
    fn unit(&self) -> u64 {
        match self.file.is_log {
            true => 1,
            false => EXTENT_BYTES as u64,
        }
    }

    fn units(&self, range: &Range<u64>) -> Range<u64> {
        range.start / self.unit()..range.end.div_ceil(self.unit())
    }

    /// The extents of a byte range, which must begin at an extent and end at one or at the end of
    /// the file.
    fn extents(&self, range: &Range<u64>) -> Result<Range<u64>, Refusal> {
        let extent = EXTENT_BYTES as u64;
        let ends = range.end.is_multiple_of(extent) || range.end == self.file.size_bytes;
        match range.start.is_multiple_of(extent) && ends && range.start < range.end {
            true => Ok(self.units(range)),
            false => Err(Refusal::Misplaced),
        }
    }

    fn hold_data(&mut self, runs: &[Run]) -> Result<(), Refusal> {
        for (index, run) in runs.iter().enumerate() {
            let extents = self.extents(&range_of(run));
            let taken = extents.and_then(|extents| {
                if self.held.touches(&extents) || self.left_out.touches(&extents) {
                    return Err(Refusal::Twice);
                }
                self.held.insert(extents);
                Ok(())
            });
            if let Err(refusal) = taken {
                for run in &runs[..index] {
                    let extents = self.extents(&range_of(run))?;
                    self.held.remove(extents);
                }
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// A chunk of the log is one range.
    fn hold_log(&mut self, runs: &[Run]) -> Result<(), Refusal> {
        let [run] = runs else {
            return Err(Refusal::Misplaced);
        };
        let Range { mut start, mut end } = range_of(run);
        if end > self.file.size_bytes || start == end {
            return Err(Refusal::Misplaced);
        }
        let before = self.log.range(..=start).next_back();
        let before = before.map(|(&start, &end)| (start, end));
        let behind = self.log.range(start..).next();
        let behind = behind.map(|(&start, &end)| (start, end));
        if before.is_some_and(|(_, before)| before > start)
            || behind.is_some_and(|(behind, _)| behind < end)
        {
            return Err(Refusal::Twice);
        }
        if let Some((first, _)) = before.filter(|&(_, before)| before == start) {
            self.log.remove(&first);
            start = first;
        }
        if let Some((first, last)) = behind.filter(|&(behind, _)| behind == end) {
            self.log.remove(&first);
            end = last;
        }
        self.log.insert(start, end);
        Ok(())
    }

    /// All claims, in order.
    fn claimed(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let (mut held, mut left_out) =
            (self.held.runs().peekable(), self.left_out.runs().peekable());
        let data = std::iter::from_fn(move || match (held.peek(), left_out.peek()) {
            (Some(first), Some(second)) if second.start < first.start => left_out.next(),
            (None, Some(_)) => left_out.next(),
            _ => held.next(),
        });
        data.chain(self.log.iter().map(|(&start, &end)| start..end))
    }

    fn range(&self, units: &Range<u64>) -> FileRange {
        let (offset, end) = (
            units.start.saturating_mul(self.unit()),
            units.end.saturating_mul(self.unit()),
        );
        // The last extent may be truncated by the end of the file.
        let end = match self.file.size_bytes {
            size if size > offset => end.min(size),
            _ => end,
        };
        FileRange {
            file_id: self.file.file_id,
            file: self.file.name.clone(),
            offset,
            bytes: end - offset,
        }
    }
}

/// The parts of `wanted` that are not in `found`. Both are ascending and without overlaps.
fn gaps(
    wanted: impl Iterator<Item = Range<u64>>,
    found: impl Iterator<Item = Range<u64>>,
    mut on_gap: impl FnMut(Range<u64>),
) {
    let mut found = found.peekable();
    for wanted in wanted {
        let mut at = wanted.start;
        while at < wanted.end {
            match found.peek() {
                Some(next) if next.end <= at => drop(found.next()),
                Some(next) if next.start <= at => at = next.end,
                Some(next) if next.start < wanted.end => {
                    on_gap(at..next.start);
                    at = next.end;
                }
                _ => {
                    on_gap(at..wanted.end);
                    at = wanted.end;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
