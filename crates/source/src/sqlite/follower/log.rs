//! Reads frames of a write-ahead log, in order, each checked against the chain of checksums.
//!
//! Nothing here takes a lock: a frame that was overwritten meanwhile does not continue the chain. There are no
//! locks on a -wal file, so that its descriptor may be closed at any time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use windlass_media::WalPosition;

use super::super::header::be32;
use super::super::wal::sum::RunningSum;
use super::super::wal::{FRAME_HEADER_BYTES, HEADER_BYTES};
use super::super::{file_error, wal_path};
use crate::Error;

/// Frames of the log that are compared with the database file.
const FRAMES_COMPARED: usize = 16;

/// Bytes that are read at a time, if a frame is not longer.
const READ_BYTES: usize = 256 << 10;

/// One frame, whose checksum is right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    /// From 1.
    pub(super) number: u32,
    /// The page, from 1.
    pub(super) page: u32,
    /// Pages of the database, if the frame ends a transaction; else 0.
    pub(super) commit_pages: u32,
    pub(super) checksum: [u32; 2],
    pub(super) content: &'a [u8],
}

/// Where the chain of frames ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain {
    /// The last frame of the chain.
    pub(super) frame: u32,
    /// The sum up to there.
    pub(super) checksum: [u32; 2],
}

/// An open log.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
}

/// What the frames of one generation have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) salt: [u8; 8],
    pub(super) page_bytes: u32,
    pub(super) is_big_endian: bool,
}

impl Shape {
    fn frame_bytes(&self) -> u64 {
        FRAME_HEADER_BYTES as u64 + u64::from(self.page_bytes)
    }

    pub(super) fn offset(&self, frame: u32) -> u64 {
        HEADER_BYTES as u64 + u64::from(frame.saturating_sub(1)) * self.frame_bytes()
    }
}

impl Log {
    /// Opens the log of a database.
    pub(super) fn open(database: &Path) -> Result<Self, Error> {
        let path = wal_path(database);
        let file = File::open(&path).map_err(|error| file_error("open", &path, error))?;
        let buffer = Vec::new();
        Ok(Self { file, path, buffer })
    }

    /// Another descriptor of it.
    pub(super) fn share(&self) -> Option<File> {
        self.file.try_clone().ok()
    }

    /// Where the chain of a generation begins: the sum of the log's header. `None` if that is the header of another
    /// generation, or none.
    pub(super) fn begin(&self, shape: &Shape) -> Result<Option<Chain>, Error> {
        let mut header = [0; HEADER_BYTES];
        if self.fill(&mut header, 0)? < HEADER_BYTES || header[16..24] != shape.salt {
            return Ok(None);
        }
        let is_shape = be32(&header, 8) == shape.page_bytes
            && (be32(&header, 0) & 1 != 0) == shape.is_big_endian;
        let sum = RunningSum::of_header(&header).filter(|_| is_shape);
        Ok(sum.map(|sum| Chain {
            frame: 0,
            checksum: sum.sum(),
        }))
    }

    /// Where the chain continues behind a position; `None` if the log does not have it.
    pub(super) fn resume(
        &self,
        position: &WalPosition,
        shape: &Shape,
    ) -> Result<Option<Chain>, Error> {
        if position.frame == 0 {
            return self.begin(shape);
        }
        let mut header = [0; FRAME_HEADER_BYTES];
        let bytes = self.fill(&mut header, shape.offset(position.frame))?;
        let checksum = [be32(&header, 16), be32(&header, 20)];
        let is_there = bytes == header.len()
            && header[8..16] == position.salt
            && checksum == position.checksum;
        Ok(is_there.then_some(Chain {
            frame: position.frame,
            checksum,
        }))
    }

    /// Gives `each` the frames behind `from` up to `last`, as long as they continue the chain. Returns where the
    /// chain ends: before `last` if a frame is missing or is not of this chain, or if `each` wants no more.
    pub(super) fn frames(
        &mut self,
        shape: &Shape,
        from: Chain,
        last: u32,
        each: &mut dyn FnMut(Frame<'_>) -> Result<bool, Error>,
    ) -> Result<Chain, Error> {
        let frame_bytes = shape.frame_bytes() as usize;
        let at_once = (READ_BYTES / frame_bytes).max(1);
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(at_once * frame_bytes, 0);
        let mut chain = from;
        let mut sum = RunningSum::resume(shape.is_big_endian, from.checksum);
        let result = 'all: loop {
            if chain.frame >= last {
                break Ok(());
            }
            let count = at_once.min((last - chain.frame) as usize);
            let wanted = &mut buffer[..count * frame_bytes];
            let bytes = match self.fill(wanted, shape.offset(chain.frame + 1)) {
                Ok(bytes) => bytes,
                Err(error) => break Err(error),
            };
            let mut is_empty = true;
            for bytes in buffer[..bytes].chunks_exact(frame_bytes) {
                is_empty = false;
                let page = be32(bytes, 0);
                if bytes[8..16] != shape.salt || page == 0 || !sum.matches(bytes) {
                    break 'all Ok(());
                }
                chain = Chain {
                    frame: chain.frame + 1,
                    checksum: sum.sum(),
                };
                let frame = Frame {
                    number: chain.frame,
                    page,
                    commit_pages: be32(bytes, 4),
                    checksum: chain.checksum,
                    content: &bytes[FRAME_HEADER_BYTES..],
                };
                match each(frame) {
                    Ok(true) => {}
                    Ok(false) => break 'all Ok(()),
                    Err(error) => break 'all Err(error),
                }
            }
            if is_empty {
                break Ok(());
            }
        };
        self.buffer = buffer;
        result.map(|()| chain)
    }

    /// Whether a database file has the content of the last of the `frames`, as far as these are still there.
    pub(super) fn is_in(
        &self,
        file: &windlass_io::DirectFile,
        shape: &Shape,
        frames: std::ops::RangeInclusive<u32>,
        page_count: u32,
    ) -> Result<bool, Error> {
        let frame_bytes = shape.frame_bytes() as usize;
        let (mut frame, mut page) = (vec![0; frame_bytes], vec![0; shape.page_bytes as usize]);
        let mut seen = Vec::new();
        for number in frames.rev().take(FRAMES_COMPARED) {
            if self.fill(&mut frame, shape.offset(number))? < frame_bytes
                || frame[8..16] != shape.salt
            {
                break;
            }
            let index = be32(&frame, 0);
            // Only the last frame of a page is copied, and none behind the end of the database.
            if index == 0 || index > page_count || seen.contains(&index) {
                continue;
            }
            seen.push(index);
            let offset = u64::from(index - 1) * u64::from(shape.page_bytes);
            let read = file.read_at(&mut page, offset);
            let count = read.map_err(|error| file_error("read", &self.path, error))?;
            if count < page.len() || page != frame[FRAME_HEADER_BYTES..] {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the file shows that nothing was ever written behind `frame` in its generation: it ends right there, or has
    /// another frame there. A file that was cut off does not end with a frame.
    pub(super) fn shows_end(&self, shape: &Shape, frame: u32) -> Result<bool, Error> {
        let metadata = self.file.metadata();
        let length = metadata
            .map_err(|error| file_error("examine", &self.path, error))?
            .len();
        let end = shape.offset(frame.saturating_add(1));
        Ok(length == end || length >= end + shape.frame_bytes())
    }

    /// Reads up to the end of the file.
    fn fill(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Error> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(file_error("read", &self.path, error)),
            }
        }
        Ok(done)
    }
}
