//! The records of the compressed container.
//!
//! `MSSQLBAK`, two version words, unused bytes, and from 1E0 on consecutive records. Only filemarks
//! are stored unchanged between them. Each data record expands to at most 64 KB, independently of
//! the others; together they are the plain stream.

use windlass_codec::Algorithm;

use super::parallel::{Record, Workers, algorithm_of, try_expand};
use super::{Input, read_full};
use crate::checksum::record_checksum;
use crate::error::{Damage, Error, Finding, Place, VersionWords};
use crate::fields::Fields;
use crate::mtf::Tag;

/// Bytes of the header of a data record.
pub const RECORD_HEADER_BYTES: usize = 0x1C;

/// Offset of the first record.
const FIRST_RECORD_AT: usize = 0x1E0;

/// Bytes of the header of a padding or index record.
const SHORT_HEADER_BYTES: usize = 0x18;

/// Unit of the expanded length.
const LENGTH_UNIT: usize = 512;

/// Maximum bytes that a record expands to.
const EXPANDED_BYTES_MAX: usize = 65536;

/// Maximum bytes of a filemark: the largest block size.
const FILEMARK_BYTES_MAX: usize = 65536;

/// Maximum bytes of an index record that are read: one entry for each 64 KB of descriptors.
const INDEX_BYTES_MAX: usize = 1 << 24;

/// The version words of all files with `MS_XPRESS` that were seen.
const WORDS_OF_XPRESS: VersionWords = VersionWords(2, 3);

/// Maximum number of records that are expanded at once: 4 MB, and as much for their payloads.
const BATCH_RECORDS_MAX: u64 = 64;

const KIND_DATA: u8 = 0x21;
const KIND_PADDING: u8 = 0x24;
const KIND_INDEX: u8 = 0x2C;

/// What comes next in the file.
enum Next {
    Data(Record),
    /// A filemark, at this offset of the file.
    Filemark(u64),
    End,
}

/// Reads one record after the other.
#[derive(Debug)]
pub(crate) struct Expander<I> {
    input: I,
    /// Bytes read to recognise the container, which belong to the first record.
    left: Vec<u8>,
    /// Offset of the next byte in the file.
    at: u64,
    /// The payloads of the records that are read but not yet expanded.
    payloads: Vec<u8>,
    workers: Workers,
    records: u64,
    /// What ended the last batch early.
    failure: Option<Error>,
    /// The words at the start of the file, if it was read from there.
    words: Option<VersionWords>,
    /// What the first record is compressed with.
    algorithm: Algorithm,
}

impl<I: Input> Expander<I> {
    /// Reads the start of the container; `begin` is already read.
    pub(crate) fn open(mut input: I, begin: Vec<u8>) -> Result<Self, Error> {
        let mut head = begin;
        let known = head.len();
        head.resize(known.max(FIRST_RECORD_AT), 0);
        let read = read_full(&mut input, head.get_mut(known..).unwrap_or_default())?;
        if known + read < FIRST_RECORD_AT {
            return Err(Error::Truncated {
                offset: (known + read) as u64,
                what: "the head of the compressed container",
            });
        }
        let left = head.split_off(FIRST_RECORD_AT);
        let words = VersionWords(Fields(&head).u32(8), Fields(&head).u32(12));
        let mut expander = Self {
            left,
            at: FIRST_RECORD_AT as u64,
            words: Some(words),
            ..Self::anywhere(input)
        };
        expander.recognise(words)?;
        Ok(expander)
    }

    /// Finds out how the records are compressed, from the first one. Behind version words that were never seen,
    /// it must prove itself: expand to a media header, with its checksum and length right.
    fn recognise(&mut self, words: VersionWords) -> Result<(), Error> {
        let known = self.left.len();
        self.left.resize(known.max(RECORD_HEADER_BYTES), 0);
        self.read_ahead(known)?;
        let header = Fields(&self.left);
        let (kind, units, payload) = (header.u8(0), header.u8(1), usize::from(header.u16(2)));
        let checksum = header.u32(0x18);
        if kind == KIND_DATA {
            let known = self.left.len();
            self.left
                .resize(known.max(RECORD_HEADER_BYTES + payload), 0);
            self.read_ahead(known)?;
        }
        let payload = self
            .left
            .get(RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + payload);
        let payload = payload.unwrap_or_default();
        if words == WORDS_OF_XPRESS {
            self.algorithm = algorithm_of(payload).unwrap_or(Algorithm::MsXpress);
            return Ok(());
        }
        let record = self.left.iter().take(2 * RECORD_HEADER_BYTES).copied();
        let refused = |reason: String| Error::ContainerVersion {
            words,
            reason,
            record: record.collect(),
        };
        let mut expanded = vec![0; (usize::from(units) * LENGTH_UNIT).min(EXPANDED_BYTES_MAX)];
        if kind != KIND_DATA || expanded.is_empty() {
            return Err(refused("it is not a record of compressed data".to_owned()));
        }
        match try_expand(checksum, payload, &mut expanded) {
            Err(damage) => Err(refused(damage.to_string())),
            Ok(_) if !expanded.starts_with(&Tag::TAPE.0) => {
                Err(refused("it does not expand to a media header".to_owned()))
            }
            Ok(algorithm) => {
                self.algorithm = algorithm;
                Ok(())
            }
        }
    }

    /// Fills what was added to the bytes read ahead, and takes back what the file does not have.
    fn read_ahead(&mut self, known: usize) -> Result<(), Error> {
        let rest = self.left.get_mut(known..).unwrap_or_default();
        let read = read_full(&mut self.input, rest)?;
        self.left.truncate(known + read);
        Ok(())
    }

    /// Creates an expander for an input at any position: see [`Expander::begin_at`].
    pub(crate) fn anywhere(input: I) -> Self {
        Self {
            input,
            left: Vec::new(),
            at: 0,
            payloads: Vec::with_capacity(EXPANDED_BYTES_MAX),
            workers: Workers::default(),
            records: 0,
            failure: None,
            words: None,
            algorithm: Algorithm::MsXpress,
        }
    }

    /// The input, so that the caller can move it to the record at `offset`.
    pub(crate) fn begin_at(&mut self, offset: u64) -> &mut I {
        self.left.clear();
        self.failure = None;
        self.at = offset;
        &mut self.input
    }

    /// Number of data records so far.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// What the first record is compressed with.
    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The words at the start of the file, if it was read from there.
    pub(crate) fn words(&self) -> Option<VersionWords> {
        self.words
    }

    /// File offset of the next byte.
    pub(crate) fn file_offset(&self) -> u64 {
        self.at
    }

    /// Appends the content of the next record to `out` (zeros unless `is_wanted`), and returns the
    /// record's position in the file. `None` at the end.
    pub(crate) fn next(
        &mut self,
        is_wanted: bool,
        out: &mut Vec<u8>,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<u64>, Error> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let begins = out.len();
        self.payloads.clear();
        match self.read_next(out, findings)? {
            Next::End => Ok(None),
            Next::Filemark(file) => Ok(Some(file)),
            Next::Data(record) => {
                out.resize(begins + record.bytes, 0);
                if is_wanted {
                    let block = out.get_mut(begins..).unwrap_or_default();
                    let records = std::slice::from_ref(&record);
                    self.workers
                        .expand(records, &self.payloads, block, findings);
                }
                Ok(Some(record.file))
            }
        }
    }

    /// Appends the content of the next records, about `bytes` if there are as many, and returns the
    /// position of each in the file and its length. Empty at the end. The findings' places in the
    /// stream count from the first of them.
    pub(crate) fn next_records(
        &mut self,
        bytes: u64,
        out: &mut Vec<u8>,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<(u64, usize)>, Error> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let wanted = (bytes / EXPANDED_BYTES_MAX as u64).clamp(1, BATCH_RECORDS_MAX) as usize;
        let (mut batch, mut pieces, mut filemark) = (Vec::new(), Vec::new(), Vec::new());
        self.payloads.clear();
        while batch.len() < wanted {
            match self.read_next(&mut filemark, findings) {
                Ok(Next::Data(record)) => {
                    pieces.push((record.file, record.bytes));
                    batch.push(record);
                }
                // What is behind it does not belong to the same data.
                Ok(Next::Filemark(file)) => {
                    pieces.push((file, filemark.len()));
                    break;
                }
                Ok(Next::End) => break,
                Err(failure) if pieces.is_empty() => return Err(failure),
                Err(failure) => {
                    self.failure = Some(failure);
                    break;
                }
            }
        }
        let begins = out.len();
        let expanded = batch.iter().map(|record| record.bytes).sum::<usize>();
        out.resize(begins + expanded, 0);
        let blocks = out.get_mut(begins..).unwrap_or_default();
        self.workers
            .expand(&batch, &self.payloads, blocks, findings);
        out.extend_from_slice(&filemark);
        Ok(pieces)
    }

    /// Reads up to the next data record, whose payload it keeps, or filemark, which it appends to
    /// `out`.
    fn read_next(&mut self, out: &mut Vec<u8>, findings: &mut Vec<Finding>) -> Result<Next, Error> {
        loop {
            let file_offset = self.at;
            let mut header = [0; RECORD_HEADER_BYTES];
            let read = self.fill(header.get_mut(..SHORT_HEADER_BYTES).unwrap_or_default())?;
            if read == 0 {
                return Ok(Next::End);
            }
            if read < SHORT_HEADER_BYTES {
                return Err(self.truncated("the header of a record"));
            }
            if header.starts_with(b"SFMB") {
                self.filemark(&header, out)?;
                return Ok(Next::Filemark(file_offset));
            }
            let fields = Fields(&header);
            match fields.u8(0) {
                KIND_DATA => return self.data(&mut header).map(Next::Data),
                KIND_PADDING => self.pass(fields.u16(2).into())?,
                KIND_INDEX => self.index(file_offset, findings)?,
                _ => {
                    self.fill(header.get_mut(SHORT_HEADER_BYTES..).unwrap_or_default())?;
                    return Err(Error::RecordKind {
                        offset: file_offset,
                        header,
                        words: self.words,
                    });
                }
            }
        }
    }

    /// A filemark is stored unchanged; its header contains its length.
    fn filemark(&mut self, header: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let bytes = usize::from(Fields(header).u16(8));
        let bytes = if bytes == 0 {
            FILEMARK_BYTES_MAX
        } else {
            bytes
        };
        let from = out.len();
        out.extend_from_slice(header.get(..SHORT_HEADER_BYTES).unwrap_or_default());
        let end = from + bytes.max(SHORT_HEADER_BYTES);
        out.resize(end, 0);
        let rest = out.get_mut(from + SHORT_HEADER_BYTES..).unwrap_or_default();
        let missing = rest.len();
        if self.fill(rest)? < missing {
            return Err(self.truncated("a filemark"));
        }
        Ok(())
    }

    /// A data record: the rest of its header, and its payload.
    fn data(&mut self, header: &mut [u8; RECORD_HEADER_BYTES]) -> Result<Record, Error> {
        let file = self.at - SHORT_HEADER_BYTES as u64;
        let rest = header.get_mut(SHORT_HEADER_BYTES..).unwrap_or_default();
        if self.fill(rest)? < RECORD_HEADER_BYTES - SHORT_HEADER_BYTES {
            return Err(self.truncated("the header of a record"));
        }
        let fields = Fields(header);
        let bytes = usize::from(fields.u8(1)) * LENGTH_UNIT;
        if bytes == 0 || bytes > EXPANDED_BYTES_MAX {
            return Err(Error::RecordKind {
                offset: file,
                header: *header,
                words: self.words,
            });
        }
        let begins = self.payloads.len();
        let end = begins + usize::from(fields.u16(2));
        let mut payloads = std::mem::take(&mut self.payloads);
        payloads.resize(end, 0);
        let read = self.fill(payloads.get_mut(begins..).unwrap_or_default());
        self.payloads = payloads;
        if read? < end - begins {
            return Err(self.truncated("a compressed record"));
        }
        self.records += 1;
        Ok(Record {
            file,
            checksum: fields.u32(0x18),
            payload: begins..end,
            bytes,
        })
    }

    /// An index record: its entries serve random access; here only their checksum is verified.
    fn index(&mut self, file_offset: u64, findings: &mut Vec<Finding>) -> Result<(), Error> {
        let mut head = [0; 16];
        if self.fill(&mut head)? < head.len() {
            return Err(self.truncated("an index record"));
        }
        let fields = Fields(&head);
        let entries = u64::from(fields.u32(4)) * 16;
        let length = u64::from(fields.u32(8));
        if length < 32 || entries > length - 16 || entries > INDEX_BYTES_MAX as u64 {
            return Err(Error::TooLarge {
                offset: file_offset,
                what: "the index record",
                found: entries,
                maximum: length.min(INDEX_BYTES_MAX as u64),
            });
        }
        let mut listed = vec![0; entries as usize];
        if self.fill(&mut listed)? < listed.len() {
            return Err(self.truncated("an index record"));
        }
        let (found, expected) = (fields.u32(12), record_checksum(&listed));
        if found != expected {
            let place = Place {
                stream: 0,
                file: file_offset,
            };
            let damage = Damage::RecordChecksum { expected, found };
            findings.push(Finding { place, damage });
        }
        self.pass(length - 16 - entries)
    }

    fn pass(&mut self, mut bytes: u64) -> Result<(), Error> {
        let mut buffer = [0; 4096];
        while bytes > 0 {
            let count = buffer
                .len()
                .min(usize::try_from(bytes).unwrap_or(usize::MAX));
            if self.fill(buffer.get_mut(..count).unwrap_or_default())? < count {
                return Err(self.truncated("padding"));
            }
            bytes -= count as u64;
        }
        Ok(())
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let known = self.left.len().min(buffer.len());
        for (slot, byte) in buffer.iter_mut().zip(self.left.drain(..known)) {
            *slot = byte;
        }
        let rest = buffer.get_mut(known..).unwrap_or_default();
        let read = read_full(&mut self.input, rest)?;
        self.at += (known + read) as u64;
        Ok(known + read)
    }

    fn truncated(&self, what: &'static str) -> Error {
        Error::Truncated {
            offset: self.at,
            what,
        }
    }
}
