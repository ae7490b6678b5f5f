//! The plain stream: read forward only, with the position of every byte.

use std::collections::VecDeque;

use windlass_codec::Algorithm;

use super::expand::Expander;
use super::{Container, Input, RECOGNISE_BYTES, read_full};
use crate::error::{Error, Finding, Place, VersionWords};

/// Bytes read at a time from an uncompressed file.
const READ_BYTES: usize = 1 << 18;

/// Maximum expanded bytes of a record: longer distances can be skipped without expanding.
const RECORD_BYTES_MAX: u64 = 1 << 16;

/// Maximum bytes that are read ahead.
const LOOK_AHEAD_BYTES: usize = 1 << 17;

#[derive(Debug)]
pub struct PlainStream<I> {
    source: Source<I>,
    buffer: Vec<u8>,
    /// Position of the next byte in the buffer.
    head: usize,
    /// Offset of the next byte in the stream.
    at: u64,
    /// Stream offset and file offset of the records in the buffer.
    pieces: VecDeque<(u64, u64)>,
    /// The same for all records, if they are wanted.
    records: Option<Vec<(u64, u64)>>,
    /// Findings that were not taken yet, by place.
    findings: Vec<Finding>,
    /// Up to here callers have seen the stream.
    seen: u64,
    /// Up to here callers will read it without skipping anything.
    expected: u64,
}

#[derive(Debug)]
enum Source<I> {
    Tape(I),
    Compressed(Box<Expander<I>>),
}

impl<I: Input> PlainStream<I> {
    /// Opens a backup and recognises its container.
    ///
    /// # Errors
    /// It is not a SQL Server backup, or cannot be read.
    pub fn open(mut input: I) -> Result<Self, Error> {
        let mut begin = vec![0; RECOGNISE_BYTES];
        let read = read_full(&mut input, &mut begin)?;
        begin.truncate(read);
        let (source, buffer) = match Container::recognise(&begin)? {
            Container::Tape => (Source::Tape(input), begin),
            Container::Compressed => {
                let expander = Expander::open(input, begin)?;
                (Source::Compressed(Box::new(expander)), Vec::new())
            }
        };
        Ok(Self {
            source,
            buffer,
            head: 0,
            at: 0,
            pieces: VecDeque::new(),
            records: None,
            findings: Vec::new(),
            seen: 0,
            expected: 0,
        })
    }

    pub fn container(&self) -> Container {
        match self.source {
            Source::Tape(_) => Container::Tape,
            Source::Compressed(_) => Container::Compressed,
        }
    }

    /// Data records read so far, if it is compressed.
    pub fn records(&self) -> u64 {
        match &self.source {
            Source::Tape(_) => 0,
            Source::Compressed(expander) => expander.records(),
        }
    }

    /// What it is compressed with.
    pub fn algorithm(&self) -> Option<Algorithm> {
        match &self.source {
            Source::Tape(_) => None,
            Source::Compressed(expander) => Some(expander.algorithm()),
        }
    }

    /// The version words of the compressed container.
    pub fn words(&self) -> Option<VersionWords> {
        match &self.source {
            Source::Tape(_) => None,
            Source::Compressed(expander) => expander.words(),
        }
    }

    /// Offset of the next byte in the plain stream.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// Bytes of the file read so far; at the end, its length.
    pub fn file_bytes(&self) -> u64 {
        match &self.source {
            Source::Tape(_) => self.at + (self.buffer.len() - self.head) as u64,
            Source::Compressed(expander) => expander.file_offset(),
        }
    }

    /// The position of a byte, which must not be after the next one or more than a record before
    /// it.
    pub fn place(&self, stream: u64) -> Place {
        let file = match self.source {
            Source::Tape(_) => stream,
            Source::Compressed(_) => {
                let piece = self.pieces.iter().rev().find(|(from, _)| *from <= stream);
                piece.or(self.pieces.front()).map_or(0, |(_, file)| *file)
            }
        };
        Place { stream, file }
    }

    /// The stream offset of the record that contains a byte.
    pub fn record_start(&self, stream: u64) -> u64 {
        let piece = self.pieces.iter().rev().find(|(from, _)| *from <= stream);
        piece.map_or(stream, |(from, _)| *from)
    }

    /// Returns the next bytes without consuming them: fewer at the end of the stream, at most 128
    /// KB.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn peek(&mut self, bytes: usize) -> Result<&[u8], Error> {
        let bytes = bytes.min(LOOK_AHEAD_BYTES);
        while self.buffer.len() - self.head < bytes {
            if !self.refill(true)? {
                break;
            }
        }
        let end = (self.head + bytes).min(self.buffer.len());
        self.seen = self.seen.max(self.at + (end - self.head) as u64);
        Ok(self.buffer.get(self.head..end).unwrap_or_default())
    }

    /// Announces that the next bytes will all be read: then records are expanded several at once.
    pub fn expect(&mut self, bytes: u64) {
        self.expected = self.at.saturating_add(bytes);
    }

    /// Consumes bytes returned by `peek`.
    pub fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.buffer.len() - self.head);
        self.head += bytes;
        self.at += bytes as u64;
    }

    /// Appends bytes to `out`; returns `false` if the stream ends first.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn read_into(&mut self, out: &mut Vec<u8>, mut bytes: usize) -> Result<bool, Error> {
        while bytes > 0 {
            let piece = self.peek(bytes)?;
            let taken = piece.len();
            if taken == 0 {
                return Ok(false);
            }
            out.extend_from_slice(piece);
            self.consume(taken);
            bytes -= taken;
        }
        Ok(true)
    }

    /// Skips bytes, if possible without reading or expanding them; returns `false` if the stream
    /// ends first.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn skip(&mut self, mut bytes: u64) -> Result<bool, Error> {
        loop {
            let held = (self.buffer.len() - self.head) as u64;
            let taken = held.min(bytes);
            self.consume(taken as usize);
            bytes -= taken;
            if bytes == 0 {
                return Ok(true);
            }
            if let Source::Tape(input) = &mut self.source
                && input.skip(bytes)?
            {
                self.at += bytes;
                return Ok(true);
            }
            let is_wanted = bytes < RECORD_BYTES_MAX;
            if !self.refill(is_wanted)? {
                return Ok(false);
            }
        }
    }

    /// Keeps the positions of all records from now on, 16 bytes each.
    pub(crate) fn keep_records(&mut self) {
        self.records = Some(Vec::new());
    }

    /// Takes the positions of the records: stream offset and file offset.
    pub(crate) fn take_records(&mut self) -> Vec<(u64, u64)> {
        self.records.take().unwrap_or_default()
    }

    /// Takes the findings about the container as far as the stream was seen.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        let seen = self.seen.max(self.at);
        let count = self
            .findings
            .partition_point(|finding| finding.place.stream <= seen);
        self.findings.drain(..count).collect()
    }

    /// Reads one more piece into the buffer; `false` at the end.
    fn refill(&mut self, is_wanted: bool) -> Result<bool, Error> {
        if self.head == self.buffer.len() {
            self.buffer.clear();
            self.head = 0;
        } else if self.head > LOOK_AHEAD_BYTES {
            self.buffer.drain(..self.head);
            self.head = 0;
        }
        let end = self.at + (self.buffer.len() - self.head) as u64;
        match &mut self.source {
            Source::Tape(input) => {
                let from = self.buffer.len();
                self.buffer.resize(from + READ_BYTES, 0);
                let room = self.buffer.get_mut(from..).unwrap_or_default();
                let read = input.read(room);
                let count = *read.as_ref().unwrap_or(&0);
                self.buffer.truncate(from + count);
                Ok(read? > 0)
            }
            Source::Compressed(expander) => {
                let known = self.findings.len();
                let (buffer, findings) = (&mut self.buffer, &mut self.findings);
                let begins = buffer.len();
                let ahead = self.expected.saturating_sub(end);
                let pieces = if is_wanted && ahead > RECORD_BYTES_MAX {
                    expander.next_records(ahead, buffer, findings)?
                } else {
                    let file = expander.next(is_wanted, buffer, findings)?;
                    let bytes = buffer.len() - begins;
                    file.map(|file| (file, bytes)).into_iter().collect()
                };
                for finding in self.findings.iter_mut().skip(known) {
                    finding.place.stream += end;
                }
                if pieces.is_empty() {
                    return Ok(false);
                }
                // Callers ask only for positions still in the buffer or just before it.
                let at = self.at;
                let is_past = |piece: &(u64, u64)| piece.0 + RECORD_BYTES_MAX < at;
                while self.pieces.get(1).is_some_and(is_past) {
                    self.pieces.pop_front();
                }
                let mut from = end;
                for (file, bytes) in pieces {
                    self.pieces.push_back((from, file));
                    if let Some(records) = &mut self.records {
                        records.push((from, file));
                    }
                    from += bytes as u64;
                }
                Ok(true)
            }
        }
    }
}
