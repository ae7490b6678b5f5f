//! The records of the compressed container.
//!
//! `MSSQLBAK`, two version words, unused bytes, and from 1E0 on consecutive records. Only filemarks
//! are stored unchanged between them. Each data record expands to at most 64 KB, independently of
//! the others; together they are the plain stream.

use windlass_codec::xpress::BlockDecoder;
use windlass_codec::{Algorithm, Decoder, Filter};

use super::{Input, read_full};
use crate::checksum::record_checksum;
use crate::error::{Damage, Error, Finding, Place};
use crate::fields::Fields;

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

/// The first bytes of a Zstandard frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

const KIND_DATA: u8 = 0x21;
const KIND_PADDING: u8 = 0x24;
const KIND_INDEX: u8 = 0x2C;

/// Reads one record after the other.
#[derive(Debug)]
pub(crate) struct Expander<I> {
    input: I,
    /// Bytes read to recognise the container, which belong to the first record.
    left: Vec<u8>,
    /// Offset of the next byte in the file.
    at: u64,
    payload: Vec<u8>,
    xpress: Box<BlockDecoder>,
    others: Decoder,
    records: u64,
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
        let fields = Fields(&head);
        let (first, second) = (fields.u32(8), fields.u32(12));
        if (first, second) != (2, 3) {
            let record = left.iter().take(2 * RECORD_HEADER_BYTES).copied().collect();
            return Err(Error::ContainerVersion {
                first,
                second,
                record,
            });
        }
        Ok(Self {
            input,
            left,
            at: FIRST_RECORD_AT as u64,
            payload: Vec::with_capacity(EXPANDED_BYTES_MAX),
            xpress: Box::default(),
            others: Decoder::new(),
            records: 0,
        })
    }

    /// Creates an expander for an input at any position: see [`Expander::begin_at`].
    pub(crate) fn anywhere(input: I) -> Self {
        Self {
            input,
            left: Vec::new(),
            at: 0,
            payload: Vec::with_capacity(EXPANDED_BYTES_MAX),
            xpress: Box::default(),
            others: Decoder::new(),
            records: 0,
        }
    }

    /// The input, so that the caller can move it to the record at `offset`.
    pub(crate) fn begin_at(&mut self, offset: u64) -> &mut I {
        self.left.clear();
        self.at = offset;
        &mut self.input
    }

    /// Number of data records so far.
    pub(crate) fn records(&self) -> u64 {
        self.records
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
        loop {
            let file_offset = self.at;
            let mut header = [0; RECORD_HEADER_BYTES];
            let read = self.fill(header.get_mut(..SHORT_HEADER_BYTES).unwrap_or_default())?;
            if read == 0 {
                return Ok(None);
            }
            if read < SHORT_HEADER_BYTES {
                return Err(self.truncated("the header of a record"));
            }
            if header.starts_with(b"SFMB") {
                self.filemark(&header, out)?;
                return Ok(Some(file_offset));
            }
            let fields = Fields(&header);
            match fields.u8(0) {
                KIND_DATA => {
                    self.data(&mut header, is_wanted, out, findings)?;
                    return Ok(Some(file_offset));
                }
                KIND_PADDING => self.pass(fields.u16(2).into())?,
                KIND_INDEX => self.index(file_offset, findings)?,
                _ => {
                    self.fill(header.get_mut(SHORT_HEADER_BYTES..).unwrap_or_default())?;
                    return Err(Error::RecordKind {
                        offset: file_offset,
                        header,
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

    /// A data record: the rest of its header, its payload, and the expanded content.
    fn data(
        &mut self,
        header: &mut [u8; RECORD_HEADER_BYTES],
        is_wanted: bool,
        out: &mut Vec<u8>,
        findings: &mut Vec<Finding>,
    ) -> Result<(), Error> {
        let place = Place {
            stream: 0,
            file: self.at - SHORT_HEADER_BYTES as u64,
        };
        let rest = header.get_mut(SHORT_HEADER_BYTES..).unwrap_or_default();
        if self.fill(rest)? < RECORD_HEADER_BYTES - SHORT_HEADER_BYTES {
            return Err(self.truncated("the header of a record"));
        }
        let fields = Fields(header);
        let bytes = usize::from(fields.u8(1)) * LENGTH_UNIT;
        if bytes == 0 || bytes > EXPANDED_BYTES_MAX {
            return Err(Error::RecordKind {
                offset: place.file,
                header: *header,
            });
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(fields.u16(2).into(), 0);
        if self.fill(&mut payload)? < payload.len() {
            return Err(self.truncated("a compressed record"));
        }
        self.records += 1;
        let from = out.len();
        out.resize(from + bytes, 0);
        if !is_wanted {
            self.payload = payload;
            return Ok(());
        }
        let (found, expected) = (fields.u32(0x18), record_checksum(&payload));
        if found != expected {
            let damage = Damage::RecordChecksum { expected, found };
            findings.push(Finding { place, damage });
        }
        let block = out.get_mut(from..).unwrap_or_default();
        if let Err(reason) = self.expand(&payload, block) {
            block.fill(0);
            let damage = Damage::RecordContent { reason };
            findings.push(Finding { place, damage });
        }
        self.payload = payload;
        Ok(())
    }

    /// Expands a payload; its first bytes show the algorithm.
    fn expand(&mut self, payload: &[u8], block: &mut [u8]) -> Result<(), String> {
        if payload.starts_with(&ZSTD_MAGIC) {
            let decoded = self
                .others
                .decode(Algorithm::Zstd, Filter::None, payload, block);
            return decoded.map_err(|error| error.to_string());
        }
        self.xpress
            .decode_block(payload, block)
            .map_err(|damage| damage.to_string())
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
