//! The checksum of a write-ahead log, which runs from its header through all frames.
//!
//! A frame is valid only together with all frames before it: its own checksum is the sum up to its end.

use super::super::header::be32;
use super::{FRAME_HEADER_BYTES, HEADER_BYTES};

pub(super) const MAGIC: u32 = 0x377F_0682;

/// The checksum of the log, chained from frame to frame.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct RunningSum {
    big_endian: bool,
    sum: [u32; 2],
}

impl RunningSum {
    /// The sum up to a frame that has it.
    pub(in super::super) fn resume(big_endian: bool, sum: [u32; 2]) -> Self {
        Self { big_endian, sum }
    }

    /// The sum so far.
    pub(in super::super) fn sum(&self) -> [u32; 2] {
        self.sum
    }

    /// `None` if the header is not that of a log; `SQLite` treats such a log as empty.
    pub(in super::super) fn of_header(header: &[u8; HEADER_BYTES]) -> Option<Self> {
        let magic = be32(header, 0);
        let page_bytes = be32(header, 8);
        if magic & !1 != MAGIC
            || !page_bytes.is_power_of_two()
            || !(512..=65536).contains(&page_bytes)
        {
            return None;
        }
        let mut sum = Self {
            big_endian: magic & 1 != 0,
            sum: [0, 0],
        };
        sum.update(&header[..24]);
        (sum.sum == [be32(header, 24), be32(header, 28)]).then_some(sum)
    }

    /// Adds a frame, header and page, and compares with the checksum stored in it.
    pub(in super::super) fn matches(&mut self, frame: &[u8]) -> bool {
        self.update(&frame[..8]);
        self.update(&frame[FRAME_HEADER_BYTES..]);
        self.sum == [be32(frame, 16), be32(frame, 20)]
    }

    /// Adds bytes, whose count is a multiple of eight.
    pub(in super::super) fn update(&mut self, bytes: &[u8]) {
        self.sum = match self.big_endian {
            true => added(self.sum, bytes, u32::from_be_bytes),
            false => added(self.sum, bytes, u32::from_le_bytes),
        };
    }
}

fn added(
    [mut first, mut second]: [u32; 2],
    bytes: &[u8],
    word: impl Fn([u8; 4]) -> u32,
) -> [u32; 2] {
    let (pairs, _) = bytes.as_chunks::<8>();
    for &[a, b, c, d, e, f, g, h] in pairs {
        first = first.wrapping_add(word([a, b, c, d])).wrapping_add(second);
        second = second.wrapping_add(word([e, f, g, h])).wrapping_add(first);
    }
    [first, second]
}
