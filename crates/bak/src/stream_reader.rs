//! Reads the plain stream of a file at any offset.

use crate::container::{Container, Expander, SeekInput, read_full};
use crate::error::{Error, Finding};
use crate::outline::Outline;

/// Reads the plain stream of a file at any offset. Reads in order are as fast as a walk.
#[derive(Debug)]
pub struct StreamReader<I>(Source<I>);

#[derive(Debug)]
enum Source<I> {
    Tape(I),
    Compressed(Box<Compressed<I>>),
}

#[derive(Debug)]
struct Compressed<I> {
    expander: Expander<I>,
    /// Stream offset and file offset of each record, ascending.
    records: Vec<(u64, u64)>,
    /// The record in `held`.
    index: Option<usize>,
    held: Vec<u8>,
}

impl<I: SeekInput> StreamReader<I> {
    /// A reader for the file of an outline.
    pub fn new(input: I, outline: &Outline) -> Self {
        Self(match outline.container {
            Container::Tape => Source::Tape(input),
            Container::Compressed => Source::Compressed(Box::new(Compressed {
                expander: Expander::anywhere(input),
                records: outline.records.clone(),
                index: None,
                held: Vec::new(),
            })),
        })
    }

    /// Whether the file is not compressed.
    pub fn is_plain(&self) -> bool {
        matches!(self.0, Source::Tape(_))
    }

    /// Fills `buffer` with the bytes of the stream from `offset` on. Damaged records are zeros and
    /// findings.
    ///
    /// # Errors
    /// The file cannot be read, or has changed since its outline was read.
    pub fn read_at(
        &mut self,
        offset: u64,
        buffer: &mut [u8],
        findings: &mut Vec<Finding>,
    ) -> Result<(), Error> {
        match &mut self.0 {
            Source::Tape(input) => {
                input.seek(offset)?;
                match read_full(input, buffer)? == buffer.len() {
                    true => Ok(()),
                    false => Err(truncated(offset)),
                }
            }
            Source::Compressed(compressed) => compressed.read_at(offset, buffer, findings),
        }
    }
}

impl<I: SeekInput> Compressed<I> {
    fn read_at(
        &mut self,
        mut offset: u64,
        mut buffer: &mut [u8],
        findings: &mut Vec<Finding>,
    ) -> Result<(), Error> {
        while !buffer.is_empty() {
            let index = self
                .records
                .partition_point(|(begins, _)| *begins <= offset);
            let index = index.checked_sub(1).ok_or_else(|| truncated(offset))?;
            let begins = self.expand(index, findings)?;
            let inside = usize::try_from(offset - begins).unwrap_or(usize::MAX);
            let held = self.held.get(inside..).unwrap_or_default();
            let count = held.len().min(buffer.len());
            if count == 0 {
                return Err(truncated(offset));
            }
            let (now, later) = buffer.split_at_mut(count);
            now.copy_from_slice(held.get(..count).unwrap_or_default());
            buffer = later;
            offset += count as u64;
        }
        Ok(())
    }

    /// Expands a record unless it is held already; returns its stream offset.
    fn expand(&mut self, index: usize, findings: &mut Vec<Finding>) -> Result<u64, Error> {
        let &(begins, file) = self.records.get(index).ok_or_else(|| truncated(0))?;
        if self.index == Some(index) {
            return Ok(begins);
        }
        let follows = index
            .checked_sub(1)
            .is_some_and(|last| self.index == Some(last));
        self.index = None;
        self.held.clear();
        if !follows {
            self.expander.begin_at(file).seek(file)?;
        }
        if self.expander.next(true, &mut self.held, findings)? != Some(file) {
            return Err(truncated(file));
        }
        self.index = Some(index);
        Ok(begins)
    }
}

fn truncated(offset: u64) -> Error {
    Error::Truncated {
        offset,
        what: "what was there when it was read first",
    }
}
