//! Reads a media family from an object, by ranges.
//!
//! Every request is made on the condition that the object is the one that was opened. Once reads follow each
//! other, the next pieces are requested ahead, so that a restore does not wait for one request at a time.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use object_store::{GetOptions, GetRange};
use tokio::task::JoinHandle;

use super::giving_up::waited;
use super::store::runtime;
use super::{Found, ObjectAddress, failure};
use crate::DeviceReader;
use crate::error::{Error, Operation};

/// Bytes of a piece that is read ahead.
pub const PIECE_BYTES: usize = 8 << 20;

/// Pieces that are read ahead if nothing is said.
const PIECES_AHEAD: usize = 4;

/// Bytes at the start that are read when it is opened: the description of the media and of the first set.
pub(super) const HEAD_BYTES: u64 = 128 << 10;

/// Bytes at the end that are read at once: what leads to the sets, and the last of them, is there.
const TAIL_BYTES: u64 = 256 << 10;

/// Bytes of an object that are kept while it is open: its first and its last ones.
pub const ENDS_BYTES: usize = (HEAD_BYTES + TAIL_BYTES) as usize;

/// Reads ahead after so many bytes in sequence: headers are read here and there.
const IN_SEQUENCE_BYTES: u64 = 1 << 20;

/// Reads one object.
#[derive(Debug)]
pub(crate) struct ObjectReader {
    address: ObjectAddress,
    name: String,
    found: Found,
    ahead: Mutex<Ahead>,
    /// Empty, or the first bytes.
    head: Bytes,
    tail: OnceLock<Bytes>,
    /// The tail, requested when the object was opened.
    coming: Mutex<Option<Piece>>,
}

/// What is being read ahead, in order and without gaps.
#[derive(Debug, Default)]
struct Ahead {
    pieces: VecDeque<Piece>,
    /// End of the last read.
    last_end: u64,
    /// Bytes read in sequence up to there.
    in_sequence: u64,
}

#[derive(Debug)]
struct Piece {
    range: Range<u64>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Coming(JoinHandle<object_store::Result<Bytes>>),
    Here(Bytes),
}

/// What is not needed any more is not read to its end.
impl Drop for Piece {
    fn drop(&mut self) {
        if let Content::Coming(request) = &self.content {
            request.abort();
        }
    }
}

impl Piece {
    /// The content, waited for if need be.
    fn content(&mut self) -> io::Result<Bytes> {
        let content = match &mut self.content {
            Content::Here(content) => return Ok(content.clone()),
            Content::Coming(request) => waited(request)?,
        };
        let content = content.map_err(io::Error::other)?;
        let content = content.map_err(|error| changed(failure::reported(&error)))?;
        whole(&content, &self.range)?;
        self.content = Content::Here(content.clone());
        Ok(content)
    }
}

impl ObjectReader {
    pub(crate) fn open(address: &ObjectAddress, name: &str) -> Result<Self, Error> {
        let fail = |error: io::Error| Error::new(Operation::Open, name, error);
        let opened = address.head(HEAD_BYTES).map_err(fail)?;
        let nothing = || io::Error::new(io::ErrorKind::NotFound, "there is no object at this URL");
        let (found, head) = opened.ok_or_else(nothing).map_err(fail)?;
        let reader = Self {
            address: address.clone(),
            name: name.to_owned(),
            found,
            ahead: Mutex::default(),
            head,
            tail: OnceLock::new(),
            coming: Mutex::default(),
        };
        if !reader.head.is_empty() && reader.found.bytes > HEAD_BYTES {
            let tail = reader.piece(reader.tail_range()).map_err(fail)?;
            reader.coming().replace(tail);
        }
        Ok(reader)
    }

    fn coming(&self) -> MutexGuard<'_, Option<Piece>> {
        self.coming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tail_range(&self) -> Range<u64> {
        self.found.bytes.saturating_sub(TAIL_BYTES)..self.found.bytes
    }

    /// Starts reading a range of the object that was opened.
    fn request(&self, range: Range<u64>) -> io::Result<JoinHandle<object_store::Result<Bytes>>> {
        let stores = self.address.stores()?;
        let (store, key) = (Arc::clone(&stores.patient), self.address.key()?);
        let options = GetOptions::new()
            .with_range(Some(GetRange::Bounded(range)))
            .with_if_match(self.found.tag.clone());
        Ok(runtime()?.spawn(async move { store.get_opts(&key, options).await?.bytes().await }))
    }

    fn piece(&self, range: Range<u64>) -> io::Result<Piece> {
        let content = Content::Coming(self.request(range.clone())?);
        Ok(Piece { range, content })
    }

    fn read(&self, ahead: &mut Ahead, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if ahead.last_end == offset {
            ahead.in_sequence += buffer.len() as u64;
        } else {
            // So long a read of the start begins a walk through all of it.
            ahead.in_sequence = match offset {
                0 => buffer.len() as u64,
                _ => 0,
            };
            ahead.pieces.clear();
        }
        ahead.last_end = offset + buffer.len() as u64;
        if ahead.in_sequence < IN_SEQUENCE_BYTES {
            let range = offset..offset + buffer.len() as u64;
            let content = match self.in_head(&range) {
                Some(content) => content,
                None => match self.in_tail(&range)? {
                    Some(content) => content,
                    None => self.piece(range)?.content()?,
                },
            };
            buffer.copy_from_slice(&content);
            return Ok(());
        }
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            while ahead
                .pieces
                .front()
                .is_some_and(|piece| piece.range.end <= at)
            {
                ahead.pieces.pop_front();
            }
            self.fill(ahead, at)?;
            let Some(piece) = ahead.pieces.front_mut() else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            let start = (at - piece.range.start) as usize;
            let content = piece.content()?;
            let count = (content.len() - start).min(buffer.len() - done);
            buffer[done..done + count].copy_from_slice(&content[start..start + count]);
            done += count;
        }
        Ok(())
    }

    /// A range of the head; `None` if it ends behind that.
    fn in_head(&self, range: &Range<u64>) -> Option<Bytes> {
        let is_within = range.end <= self.head.len() as u64;
        is_within.then(|| self.head.slice(range.start as usize..range.end as usize))
    }

    /// A range of the tail; `None` if it begins before that.
    fn in_tail(&self, range: &Range<u64>) -> io::Result<Option<Bytes>> {
        let whole = self.tail_range();
        let Some(from) = range.start.checked_sub(whole.start) else {
            return Ok(None);
        };
        let tail = match self.tail.get() {
            Some(tail) => tail,
            None => {
                let coming = self.coming().take();
                let mut piece = coming.map_or_else(|| self.piece(whole), Ok)?;
                let tail = piece.content()?;
                self.tail.get_or_init(|| tail)
            }
        };
        let to = from + (range.end - range.start);
        Ok(Some(tail.slice(from as usize..to as usize)))
    }

    /// Requests pieces from `at` on, so that enough are on their way.
    fn fill(&self, ahead: &mut Ahead, at: u64) -> io::Result<()> {
        let most = self.address.concurrency().unwrap_or(PIECES_AHEAD);
        let mut next = ahead.pieces.back().map_or(at, |piece| piece.range.end);
        while ahead.pieces.len() < most && next < self.found.bytes {
            let end = (next + PIECE_BYTES as u64).min(self.found.bytes);
            ahead.pieces.push_back(self.piece(next..end)?);
            next = end;
        }
        Ok(())
    }
}

/// An answer of another length cannot come from the object that was opened.
fn whole(content: &Bytes, range: &Range<u64>) -> io::Result<()> {
    let (expected, found) = (range.end - range.start, content.len() as u64);
    if expected == found {
        return Ok(());
    }
    let reason = format!(
        "the store answered with {found} of {expected} bytes from offset {} on",
        range.start
    );
    Err(io::Error::other(reason))
}

/// The error of a range whose condition failed, in words.
fn changed(error: io::Error) -> io::Error {
    let what = match error.kind() {
        io::ErrorKind::AlreadyExists => "another object has been put at this URL",
        io::ErrorKind::NotFound => "the object has been deleted",
        _ => return error,
    };
    let reason = format!("{what} while it was read; what was read until then does not count");
    io::Error::other(reason)
}

impl DeviceReader for ObjectReader {
    fn len(&self) -> u64 {
        self.found.bytes
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Error> {
        let rest = self.found.bytes.saturating_sub(offset);
        let count = buffer
            .len()
            .min(usize::try_from(rest).unwrap_or(usize::MAX));
        if count == 0 {
            return Ok(0);
        }
        // Not locked while waiting: a second thread reads without looking ahead.
        let lock = || self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ahead = std::mem::take(&mut *lock());
        let read = self.read(&mut ahead, &mut buffer[..count], offset);
        *lock() = ahead;
        read.map_err(|error| Error::new(Operation::Read, &self.name, error))?;
        Ok(count)
    }
}
