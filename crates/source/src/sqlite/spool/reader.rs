//! Walks the records of a spool, in order, through all segments.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use windlass_base::checksum;
use windlass_codec::{Algorithm, Decoder, Filter};
use windlass_io::own;

use super::super::file_error;
use super::record::{ClockChange, Gap, Head, Kind, Moment, Segment, State};
use super::{SEGMENT_SUFFIX, SpoolError, VERSION};
use crate::Error;

/// How much is searched for records behind damage, and how much of that at a time.
const REST_BYTES_MAX: u64 = 128 << 20;
const REST_BYTES_AT_ONCE: usize = 1 << 20;

/// The segments in a folder, ascending by number.
pub(super) fn segments(folder: &Path) -> Result<Vec<(u32, PathBuf)>, Error> {
    let fail = |error| file_error("read", folder, error);
    let mut segments = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_suffix(SEGMENT_SUFFIX));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            segments.push((number, path));
        }
    }
    segments.sort_unstable();
    Ok(segments)
}

/// The number of the last segment, which a follower writes.
pub(crate) fn last_segment(folder: &Path) -> Result<u32, Error> {
    let segments = segments(folder)?;
    let last = segments.last().map(|(number, _)| *number);
    let empty = || {
        SpoolError::Empty {
            folder: folder.to_owned(),
        }
        .told()
    };
    last.ok_or_else(empty)
}

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) head: Head,
    /// The segment, as an index of the walk.
    segment: usize,
    offset: u64,
}

impl Found {
    /// Its segment, as an index of the walk, and where it ends there.
    pub(super) fn end(&self) -> (usize, u64) {
        let bytes = (Head::BYTES + self.head.stored_bytes as usize) as u64;
        (self.segment, self.offset + bytes)
    }
}

/// A walk. It can begin at any segment, because each says what was before it.
#[derive(Debug)]
pub(crate) struct Records {
    segments: Vec<(u32, PathBuf)>,
    /// The segment that is walked, and its file.
    at: usize,
    file: Option<File>,
    offset: u64,
    /// Sequence number of the next record and checksum of the last one.
    chain: Option<(u64, u64)>,
    /// The same behind the last record that is not of pages: there the next segment continues.
    closed: Option<(u64, u64)>,
    /// Bytes behind the last record of the last segment.
    rest_bytes: u64,
    /// Whether one file has several segments, one behind the other, as a log backup.
    is_joined: bool,
    spool: Option<Segment>,
    decoder: Decoder,
    body: Vec<u8>,
    raw: Vec<u8>,
}

impl Records {
    /// Walks the spool in `folder` from its first segment on.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let segments = segments(folder)?;
        if segments.is_empty() {
            let folder = folder.to_owned();
            return Err(SpoolError::Empty { folder }.told());
        }
        Ok(Self::of(segments))
    }

    /// Walks the segments that one file has one behind the other.
    pub(crate) fn joined(path: PathBuf) -> Self {
        Self {
            is_joined: true,
            ..Self::of(vec![(1, path)])
        }
    }

    pub(super) fn of(segments: Vec<(u32, PathBuf)>) -> Self {
        Self {
            segments,
            at: 0,
            file: None,
            offset: 0,
            chain: None,
            closed: None,
            rest_bytes: 0,
            is_joined: false,
            spool: None,
            decoder: Decoder::new(),
            body: Vec::new(),
            raw: Vec::new(),
        }
    }

    /// The first record of the last segment that was walked.
    pub(crate) fn segment(&self) -> Option<&Segment> {
        self.spool.as_ref()
    }

    /// The sequence number of the next record, and the checksum of the last one.
    pub(super) fn chain(&self) -> Option<(u64, u64)> {
        self.chain
    }

    /// The same behind the last record that is not of pages: what the next segment continues.
    pub(super) fn closed(&self) -> Option<(u64, u64)> {
        self.closed
    }

    /// Bytes behind the last record of the last segment, known at the end of the walk: what is being written, what a
    /// crash has left, or damage.
    pub(crate) fn rest_bytes(&self) -> u64 {
        self.rest_bytes
    }

    /// The next record. Unless it has pages, its body is right. `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Found>, Error> {
        loop {
            let Some((_, path)) = self.segments.get(self.at) else {
                return Ok(None);
            };
            if self.file.is_none() {
                let opened = own::open(path);
                self.file = Some(opened.map_err(|error| file_error("open", path, error))?);
                self.offset = 0;
                self.chain = self.closed;
            }
            if let Some((found, own)) = self.whole()? {
                self.offset += (Head::BYTES + found.head.stored_bytes as usize) as u64;
                self.chain = Some((found.head.sequence.wrapping_add(1), own));
                if !found.head.kind.has_pages() {
                    self.closed = self.chain;
                }
                if found.head.kind == Kind::Segment {
                    self.begin(&found)?;
                }
                return Ok(Some(found));
            }
            // What follows was not finished, if the next segment continues from here.
            if self.at + 1 == self.segments.len() {
                self.check_rest()?;
            }
            self.at += 1;
            self.file = None;
        }
    }

    /// The record at the current place; `None` if it is not whole.
    fn whole(&mut self) -> Result<Option<(Found, u64)>, Error> {
        let Some((found, own)) = self.head(self.offset == 0)? else {
            return Ok(None);
        };
        let is_right = found.head.kind.has_pages()
            || match self.body(&found) {
                Ok(_) => true,
                Err(Error::Spool(_)) => false,
                Err(error) => return Err(error),
            };
        Ok(is_right.then_some((found, own)))
    }

    /// What is behind the last record must not be records: they would be lost by damage before them.
    fn check_rest(&mut self) -> Result<(), Error> {
        let length = self.length()?;
        self.rest_bytes = length.saturating_sub(self.offset);
        let end = self.offset + REST_BYTES_MAX.min(self.rest_bytes);
        // A head may begin anywhere behind the place where none was found.
        let mut at = self.offset + 1;
        let mut bytes = Vec::new();
        while at + (Head::BYTES as u64) <= end {
            bytes.resize((end - at).min(REST_BYTES_AT_ONCE as u64) as usize, 0);
            if !self.fill(&mut bytes, at)? {
                return Ok(());
            }
            let mut heads = bytes.windows(Head::BYTES);
            if heads.any(|bytes| bytes.first_chunk().and_then(Head::parse).is_some()) {
                return Err(self.damaged("a record is damaged, and others follow it"));
            }
            at += (bytes.len() - (Head::BYTES - 1)) as u64;
        }
        Ok(())
    }

    /// The head at the current place. `None` if there is none that continues the chain.
    fn head(&self, is_first: bool) -> Result<Option<(Found, u64)>, Error> {
        let mut bytes = [0; Head::BYTES];
        if !self.fill(&mut bytes, self.offset)? {
            return Ok(None);
        }
        let Some((head, own)) = Head::parse(&bytes) else {
            return Ok(None);
        };
        let is_begin = head.kind == Kind::Segment;
        if is_begin != is_first && !(is_begin && self.is_joined) {
            return Err(self.damaged("a record is not where it belongs"));
        }
        let follows = (self.chain).is_none_or(|chain| chain == (head.sequence, head.previous));
        if !follows {
            return Err(self.damaged(
                "a record does not follow the one before it: records or whole segments are missing or damaged",
            ));
        }
        let end = self.offset + (Head::BYTES + head.stored_bytes as usize) as u64;
        if self.length()? < end {
            return Ok(None);
        }
        let found = Found {
            head,
            segment: self.at,
            offset: self.offset,
        };
        Ok(Some((found, own)))
    }

    fn begin(&mut self, found: &Found) -> Result<(), Error> {
        let body = self.body(found)?.to_vec();
        let segment = match Segment::parse(&body) {
            Some(Ok(segment)) => segment,
            Some(Err(version)) => {
                return Err(SpoolError::Version {
                    path: self.path(found.segment),
                    found: version,
                    known: VERSION,
                }
                .told());
            }
            None => return Err(self.damaged("its first record cannot be read")),
        };
        let is_other = |known: &Segment| known.spool_guid != segment.spool_guid;
        if self.spool.as_ref().is_some_and(is_other) {
            return Err(self.damaged("it belongs to another spool"));
        }
        self.spool = Some(segment);
        Ok(())
    }

    /// Continues behind a record that was found before.
    pub(crate) fn go_back(&mut self, found: &Found) -> Result<(), Error> {
        self.at = found.segment;
        self.file = None;
        let path = self.path(found.segment);
        let opened = own::open(&path);
        self.file = Some(opened.map_err(|error| file_error("open", &path, error))?);
        self.offset = found.offset;
        self.chain = Some((found.head.sequence, found.head.previous));
        Ok(())
    }

    /// The body of a record of the current segment, as it is stored, verified.
    pub(crate) fn stored(&mut self, found: &Found) -> Result<&[u8], Error> {
        let mut body = std::mem::take(&mut self.body);
        body.resize(found.head.stored_bytes as usize, 0);
        let is_whole = self.fill(&mut body, found.offset + Head::BYTES as u64);
        self.body = body;
        match is_whole? && checksum(&self.body) == found.head.body_checksum {
            true => Ok(&self.body),
            false => Err(self.damaged_at(found, "the checksum of a record is wrong")),
        }
    }

    /// The body of a record of the current segment, verified and expanded.
    pub(crate) fn body(&mut self, found: &Found) -> Result<&[u8], Error> {
        let damaged = |records: &Self, defect| records.damaged_at(found, defect);
        self.stored(found)?;
        if found.head.algorithm == Algorithm::None.id() {
            return Ok(&self.body);
        }
        let filter = Filter::from_id(found.head.filter);
        let is_zstd = found.head.algorithm == Algorithm::Zstd.id();
        let Some(filter) = filter.filter(|_| is_zstd) else {
            return Err(damaged(self, "a record has an unknown compression"));
        };
        self.raw.resize(found.head.raw_bytes as usize, 0);
        let expanded = (self.decoder).decode(Algorithm::Zstd, filter, &self.body, &mut self.raw);
        match expanded {
            Ok(()) => Ok(&self.raw),
            Err(_) => Err(damaged(self, "a record cannot be expanded")),
        }
    }

    pub(crate) fn moment(&mut self, found: &Found) -> Result<Moment, Error> {
        let parsed = Moment::parse(self.body(found)?);
        parsed.ok_or_else(|| self.damaged_at(found, "a moment cannot be read"))
    }

    pub(crate) fn gap(&mut self, found: &Found) -> Result<Gap, Error> {
        let parsed = Gap::parse(self.body(found)?);
        parsed.ok_or_else(|| self.damaged_at(found, "a gap cannot be read"))
    }

    pub(crate) fn clock(&mut self, found: &Found) -> Result<ClockChange, Error> {
        let parsed = ClockChange::parse(self.body(found)?);
        parsed.ok_or_else(|| self.damaged_at(found, "a change of the clock cannot be read"))
    }

    pub(crate) fn state(&mut self, found: &Found) -> Result<State, Error> {
        let parsed = State::parse(self.body(found)?);
        parsed.ok_or_else(|| self.damaged_at(found, "a state cannot be read"))
    }

    pub(crate) fn damaged_at(&self, found: &Found, defect: &'static str) -> Error {
        SpoolError::Damaged {
            path: self.path(found.segment),
            offset: found.offset,
            defect,
        }
        .told()
    }

    fn damaged(&self, defect: &'static str) -> Error {
        SpoolError::Damaged {
            path: self.path(self.at),
            offset: self.offset,
            defect,
        }
        .told()
    }

    fn path(&self, segment: usize) -> PathBuf {
        let found = self.segments.get(segment);
        found.map(|(_, path)| path.clone()).unwrap_or_default()
    }

    fn length(&self) -> Result<u64, Error> {
        let length = self
            .file
            .as_ref()
            .map_or(Ok(0), |file| file.metadata().map(|metadata| metadata.len()));
        length.map_err(|error| file_error("examine", &self.path(self.at), error))
    }

    /// Fills `buffer`; whether there were that many bytes.
    fn fill(&self, buffer: &mut [u8], offset: u64) -> Result<bool, Error> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        match file.read_exact_at(buffer, offset) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(file_error("read", &self.path(self.at), error)),
        }
    }
}

/// The end of a spool: what the next segment continues.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) sequence: u64,
    pub(super) previous: u64,
    pub(super) state: State,
}

/// The last segment that can be read, and the end of its last moment, gap or start. `None` for a folder without
/// one.
pub(super) fn last(folder: &Path) -> Result<Option<(Segment, End)>, Error> {
    let all = segments(folder)?;
    for index in (0..all.len()).rev() {
        let mut records = Records::of(vec![all[index].clone()]);
        let mut end = None;
        while let Some(found) = records.next()? {
            let state = match (found.head.kind, records.segment(), end) {
                (Kind::Segment, Some(segment), _) => Some(segment.state),
                (Kind::Moment, _, Some(End { state, .. })) => {
                    let moment = records.moment(&found)?;
                    Some(State {
                        position: moment.to,
                        time_us: moment.time_us,
                        commit_number: moment.commit_number,
                        inode: state.inode,
                    })
                }
                (Kind::Gap, _, Some(End { state, .. })) => {
                    let gap = records.gap(&found)?;
                    Some(State {
                        position: gap.to,
                        time_us: gap.to_us,
                        inode: gap.inode,
                        ..state
                    })
                }
                (Kind::Clock, _, Some(End { state, .. })) => Some(state),
                (Kind::Start | Kind::Seen, ..) => Some(records.state(&found)?),
                // Pages count only with their moment.
                _ => None,
            };
            if let (Some(state), Some((sequence, previous))) = (state, records.chain) {
                end = Some(End {
                    sequence,
                    previous,
                    state,
                });
            }
        }
        if let (Some(segment), Some(end)) = (records.segment(), end) {
            return Ok(Some((segment.clone(), end)));
        }
    }
    Ok(None)
}
