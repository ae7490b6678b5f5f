//! What of a spool a log backup holds: segments before a cut, up to the first gap or behind one.
//!
//! The log of the set is these segments one behind the other, each without what a crash has left behind its end. So it
//! is a spool by itself, whose records a restore walks as those of any other ([`Records::joined`]).

use std::path::{Path, PathBuf};

use windlass_base::Lsn;
use windlass_io::{directory, own};

use super::super::file_error;
use super::order::lsn_of;
use super::reader::{Found, Records, segments};
use super::record::{Gap, Kind, State};
use crate::Error;

/// A part of a spool without a gap.
#[derive(Debug, Clone, Default)]
pub struct Slice {
    segments: Vec<Part>,
    pub(in crate::sqlite) begin: State,
    pub(in crate::sqlite) end: State,
    pub(in crate::sqlite) page_bytes: u32,
    pub(in crate::sqlite) page_count: u32,
    /// Path of the database.
    pub(in crate::sqlite) database: String,
    /// The gap that it begins behind, and the segments that have it.
    pub(in crate::sqlite) gap: Option<Gap>,
    gap_segments: Vec<PathBuf>,
    pub commits: u64,
    /// When its last commit was read; in microseconds since 1970.
    last_commit_us: u64,
    /// Bytes of its log.
    pub bytes: u64,
    /// The gap that ends it: two times, and a reason.
    pub ended_by: Option<(u64, u64, String)>,
}

/// A segment, and how much of it is whole.
#[derive(Debug, Clone)]
struct Part {
    number: u32,
    path: PathBuf,
    end: u64,
}

impl Slice {
    /// The LSN of the state with which it begins: a backup of this state or a later one can be rolled forward with it.
    pub fn first_lsn(&self) -> Lsn {
        lsn_of(self.begin.time_us)
    }

    /// The LSN of its last state.
    pub fn last_lsn(&self) -> Lsn {
        lsn_of(self.end.time_us)
    }

    /// Whether it has commits behind `lsn`, or may lack some.
    pub fn is_ahead_of(&self, lsn: Lsn) -> bool {
        let gaps = self.gap.as_ref().map(|gap| gap.to_us);
        let gaps = gaps
            .into_iter()
            .chain(self.ended_by.as_ref().map(|gap| gap.1));
        let commits = (self.commits > 0).then_some(self.last_commit_us);
        gaps.chain(commits).any(|time_us| lsn_of(time_us) > lsn)
    }

    /// When it ends, in microseconds since 1970.
    pub fn ended_us(&self) -> u64 {
        self.end.time_us
    }

    /// The gap that it begins behind: two times, and a reason.
    pub fn gap(&self) -> Option<(u64, u64, &str)> {
        let gap = self.gap.as_ref()?;
        Some((gap.from_us, gap.to_us, &gap.reason))
    }

    /// Removes its segments, and the gap before it: they are in a log backup.
    pub(in crate::sqlite) fn remove(&self) -> Result<(), Error> {
        let Some(first) = self.segments.first() else {
            return Ok(());
        };
        let paths = self.gap_segments.iter();
        // The oldest first: what is left after a crash is the end of it.
        for path in paths.chain(self.segments.iter().map(|part| &part.path)) {
            own::remove(path).map_err(|error| file_error("remove", path, error))?;
        }
        let folder = directory::parent(&first.path);
        directory::sync(&folder).map_err(|error| file_error("sync", &folder, error))
    }

    /// Walks its records.
    pub(super) fn records(&self) -> Records {
        let segments = self.segments.iter();
        let segments = segments.map(|part| (part.number, part.path.clone()));
        Records::of(segments.collect())
    }

    /// Reads its log.
    pub(in crate::sqlite) fn reader(&self) -> SliceReader {
        SliceReader {
            records: self.records(),
            ends: self.segments.iter().map(|part| part.end).collect(),
            record: Vec::new(),
            given: 0,
        }
    }
}

/// The slices of the spool in `folder` before the segment `before`, in order.
///
/// # Errors
/// [`SpoolError`](super::SpoolError), those of the operating system.
pub(in crate::sqlite) fn slices(folder: &Path, before: u32) -> Result<Vec<Slice>, Error> {
    let mut walk = Walk {
        segments: segments(folder)?,
        ..Walk::default()
    };
    let mut records = Records::of(walk.segments.clone());
    while let Some(found) = records.next()? {
        // The first record behind the cut has shown that nothing is missing before it.
        if walk.number(&found) >= before {
            break;
        }
        walk.take(&mut records, &found)?;
    }
    walk.settle();
    walk.close(None);
    Ok(walk.done)
}

#[derive(Debug, Default)]
struct Walk {
    segments: Vec<(u32, PathBuf)>,
    done: Vec<Slice>,
    open: Option<Slice>,
    /// A gap behind the last slice, and the segments that have it.
    gap: Option<Gap>,
    gap_segments: Vec<PathBuf>,
    /// The segment that is walked, until it has something else than its first record.
    begun: Option<Part>,
}

impl Walk {
    fn number(&self, found: &Found) -> u32 {
        let (index, _) = found.end();
        self.segments.get(index).map_or(0, |(number, _)| *number)
    }

    fn take(&mut self, records: &mut Records, found: &Found) -> Result<(), Error> {
        let (index, end) = found.end();
        match found.head.kind {
            Kind::Segment => self.begin(records, index, end),
            Kind::Start => {
                let state = records.state(found)?;
                if let Some(slice) = self.extended(end, state) {
                    slice.begin = state;
                }
            }
            Kind::Pages | Kind::Parts => {}
            Kind::Clock => {
                let state = self.open.as_ref().map(|slice| slice.end);
                self.extended(end, state.unwrap_or_default());
            }
            Kind::Moment => {
                let moment = records.moment(found)?;
                let state = State {
                    position: moment.to,
                    time_us: moment.time_us,
                    commit_number: moment.commit_number,
                    inode: self.open.as_ref().map_or(0, |slice| slice.end.inode),
                };
                if let Some(slice) = self.extended(end, state) {
                    slice.commits += moment.commits();
                    slice.last_commit_us = moment.time_us;
                    (slice.page_bytes, slice.page_count) = (moment.page_bytes, moment.page_count);
                }
            }
            Kind::Seen => {
                let state = records.state(found)?;
                self.extended(end, state);
            }
            Kind::Gap => {
                let gap = records.gap(found)?;
                let Some(part) = self.begun.take() else {
                    return Err(records.damaged_at(found, "a gap is not alone in its segment"));
                };
                self.close(Some(&gap));
                // Two in a row are one.
                let from_us = self
                    .gap
                    .take()
                    .map_or(gap.from_us, |earlier| earlier.from_us);
                self.gap = Some(Gap { from_us, ..gap });
                self.gap_segments.push(part.path);
            }
        }
        Ok(())
    }

    fn begin(&mut self, records: &Records, index: usize, end: u64) {
        self.settle();
        let (number, path) = self.segments.get(index).cloned().unwrap_or_default();
        self.begun = Some(Part { number, path, end });
        let Some(segment) = records.segment().filter(|_| self.open.is_none()) else {
            return;
        };
        self.open = Some(Slice {
            begin: segment.state,
            end: segment.state,
            database: segment.database.clone(),
            gap: self.gap.take(),
            gap_segments: std::mem::take(&mut self.gap_segments),
            ..Slice::default()
        });
    }

    /// The segment that was begun belongs to the open slice.
    fn settle(&mut self) {
        if let (Some(slice), Some(part)) = (&mut self.open, self.begun.take()) {
            slice.bytes += part.end;
            slice.segments.push(part);
        }
    }

    /// The open slice, with one record more, which ends at `end` of the segment.
    fn extended(&mut self, end: u64, state: State) -> Option<&mut Slice> {
        self.settle();
        let slice = self.open.as_mut()?;
        let part = slice.segments.last_mut()?;
        slice.bytes += end.saturating_sub(part.end);
        part.end = end;
        slice.end = state;
        Some(slice)
    }

    fn close(&mut self, gap: Option<&Gap>) {
        let Some(mut slice) = self.open.take() else {
            return;
        };
        slice.ended_by = gap.map(|gap| (gap.from_us, gap.to_us, gap.reason.clone()));
        // Without a state nothing was captured yet.
        if !slice.segments.is_empty() && slice.begin.inode != 0 {
            self.done.push(slice);
        } else {
            self.gap = slice.gap;
            self.gap_segments = slice.gap_segments;
        }
    }
}

/// Reads the log of a slice, record by record, each verified.
#[derive(Debug)]
pub(in crate::sqlite) struct SliceReader {
    records: Records,
    /// Of each segment.
    ends: Vec<u64>,
    record: Vec<u8>,
    given: usize,
}

impl SliceReader {
    /// Fills `buffer` with the next bytes; fewer only at the end.
    pub(in crate::sqlite) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            if self.given == self.record.len() && !self.next()? {
                break;
            }
            let rest = &self.record[self.given..];
            let count = rest.len().min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&rest[..count]);
            filled += count;
            self.given += count;
        }
        Ok(filled)
    }

    fn next(&mut self) -> Result<bool, Error> {
        while let Some(found) = self.records.next()? {
            let (index, end) = found.end();
            // Pages whose moment was never finished.
            if self.ends.get(index).is_none_or(|whole| end > *whole) {
                continue;
            }
            let (head, _) = found.head.to_stored();
            self.record.clear();
            self.record.extend_from_slice(&head);
            self.record.extend_from_slice(self.records.stored(&found)?);
            self.given = 0;
            return Ok(true);
        }
        Ok(false)
    }
}
