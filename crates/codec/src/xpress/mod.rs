//! `MS_XPRESS`: an implementation of the LZ77+Huffman format of [MS-XCA] section 2.1 and 2.2.
//!
//! One block is up to 64 KiB and independent: 256 bytes of code lengths, then the bit stream. One
//! record of a compressed SQL Server backup has this form, so the same decoder reads those. The chunks
//! of Windlass are sequences of such blocks, see `frame`.

#[expect(
    clippy::inline_always,
    reason = "measured: calls in the loop cost a tenth"
)]
mod bit_reader;
mod bit_writer;
#[expect(
    clippy::inline_always,
    reason = "measured: calls in the loop cost a tenth"
)]
mod decode;
mod decode_table;
mod encode;
pub(crate) mod frame;
mod huffman;
mod match_finder;
mod parse;

pub use decode::{BlockDecoder, Damage};
pub use encode::BlockEncoder;

/// Maximum expanded length of a block.
pub const BLOCK_BYTES_MAX: usize = 1 << 16;

/// Literals 0 to 255, then matches: 16 length codes for each of 16 offset bit counts.
const SYMBOLS: usize = 512;

/// Bytes of the code lengths at the start of a block.
const LENGTH_TABLE_BYTES: usize = SYMBOLS / 2;

/// The longest code.
const CODE_BITS_MAX: usize = 15;

/// The shortest match.
const MATCH_BYTES_MIN: usize = 3;

/// The length code that announces extra bytes with the rest of the length.
const LENGTH_CODE_EXTRA: u32 = 15;

/// The end of the data: a match of the shortest length and offset that is never executed.
const END_SYMBOL: usize = 256;
