//! Log blocks: put together from pieces of the log, with the bytes that the parity of their sectors replaced.
//!
//! The first byte of each sector but the first is stored at the end of the block: that of sector `k` in the byte
//! `k + 1` from the end.

use windlass_base::Lsn;

use super::record::Record;
use crate::fields::Fields;
use crate::mtf::log::{BLOCK_HEADER_BYTES, LOG_SECTOR_BYTES, LogBlock, VirtualLog};

/// Bytes of the shortest header of a block, before its first record.
const HEADER_BYTES_MIN: usize = 0x1C;

/// Puts log blocks together.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// The virtual log file, and the offset of `held` in the log file.
    sequence: u32,
    at: u64,
    /// The start of a block whose rest is in the next piece: less than 64 KB.
    held: Vec<u8>,
    /// Whether the next block of this virtual log file cannot be found any more.
    is_lost: bool,
    gaps: u64,
}

/// A whole block in its logical form.
pub(super) struct Block<'a> {
    bytes: &'a [u8],
    lsn: Lsn,
}

impl Blocks {
    /// Adds a piece, and passes on the blocks that are whole.
    pub(super) fn add(
        &mut self,
        log: &VirtualLog,
        offset: u64,
        piece: &[u8],
        each: &mut dyn FnMut(&Block<'_>),
    ) {
        if log.sequence != self.sequence || offset == log.first_byte {
            self.gaps += u64::from(!self.held.is_empty());
            *self = Self {
                sequence: log.sequence,
                at: offset,
                gaps: self.gaps,
                is_lost: offset != log.first_byte,
                held: Vec::new(),
            };
            self.gaps += u64::from(self.is_lost);
        }
        if self.is_lost {
            return;
        }
        if self.at.saturating_add(self.held.len() as u64) != offset {
            self.lose();
            return;
        }
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(piece);
        let mut from = 0;
        while let Some(rest) = bytes.get_mut(from..).filter(|rest| !rest.is_empty()) {
            let length = match length(log, self.at + from as u64, rest) {
                Length::Known(length) => length,
                Length::Unknown => break,
                Length::Wrong => return self.lose(),
            };
            let Some(block) = rest.get_mut(..length) else {
                break;
            };
            restore(block);
            let lsn = LogBlock(Fields(block)).lsn();
            from += block.len();
            each(&Block { bytes: block, lsn });
        }
        bytes.drain(..from);
        self.at += from as u64;
        self.held = bytes;
    }

    fn lose(&mut self) {
        self.gaps += 1;
        self.is_lost = true;
        self.held = Vec::new();
    }

    /// Number of places since the last call where the chain of blocks broke off.
    pub(super) fn take_gaps(&mut self) -> u64 {
        std::mem::take(&mut self.gaps)
    }
}

/// The length of a block, according to its header.
enum Length {
    /// The header is not whole yet.
    Unknown,
    /// It is no header of the block that must be there.
    Wrong,
    Known(usize),
}

/// The length of the block that begins with `bytes`, at `at` of the log file.
fn length(log: &VirtualLog, at: u64, bytes: &[u8]) -> Length {
    if bytes.len() < BLOCK_HEADER_BYTES {
        return Length::Unknown;
    }
    let block = LogBlock(Fields(bytes));
    let (found, length) = (block.lsn(), block.bytes());
    let expected = at.saturating_sub(log.offset) / LOG_SECTOR_BYTES;
    let is_good = (found.vlf, u64::from(found.block)) == (log.sequence, expected)
        && length >= LOG_SECTOR_BYTES
        && length.is_multiple_of(LOG_SECTOR_BYTES);
    match is_good {
        true => Length::Known(length as usize),
        false => Length::Wrong,
    }
}

/// Puts back the first byte of each sector but the first.
fn restore(block: &mut [u8]) {
    let sector = LOG_SECTOR_BYTES as usize;
    for index in 1..block.len() / sector {
        let stored = block.len().checked_sub(1 + index);
        let byte = stored.and_then(|at| block.get(at).copied());
        if let (Some(byte), Some(slot)) = (byte, block.get_mut(index * sector)) {
            *slot = byte;
        }
    }
}

impl Block<'_> {
    /// Passes the records to `each`; `false` if the slots do not make sense.
    pub(super) fn records(&self, each: &mut dyn FnMut(Record<'_>)) -> bool {
        let fields = Fields(self.bytes);
        let (count, slots_end) = (usize::from(fields.u16(2)), usize::from(fields.u16(4)));
        let Some(slots_begin) = slots_end.checked_sub(2 * count) else {
            return false;
        };
        if slots_end > self.bytes.len() || slots_begin < HEADER_BYTES_MIN {
            return false;
        }
        // The slots are in reverse order.
        let offset = |index: usize| match index < count {
            true => usize::from(fields.u16(slots_end - 2 * (index + 1))),
            false => slots_begin,
        };
        let is_ordered = (0..count).all(|index| offset(index) < offset(index + 1));
        if !is_ordered || offset(0) < HEADER_BYTES_MIN {
            return false;
        }
        for index in 0..count {
            let bytes = self.bytes.get(offset(index)..offset(index + 1));
            let slot = (index + 1) as u16;
            let lsn = Lsn { slot, ..self.lsn };
            each(Record::new(lsn, bytes.unwrap_or_default()));
        }
        true
    }
}
