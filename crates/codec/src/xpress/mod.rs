//! `MS_XPRESS`: the LZ77+Huffman format of [MS-XCA] 2.2, in independent blocks of 64 KiB.
//!
//! A chunk is a table of block lengths followed by the blocks; `docs/codecs.md` has the layout. Each
//! block is exactly what SQL Server stores in a record of a compressed backup, so that the decoder
//! serves both (`decode::expand_block`).
//!
//! Neighbours: `encode` finds matches (`match_finder`), makes a code (`huffman`) and writes it
//! (`bit_writer`); `decode` reads the code's table (`table`) and expands.
//!
//! Invariants: a block never refers to what lies before it, and no block takes more room than its
//! plain octets.

mod bit_writer;
mod chunk;
mod decode;
mod encode;
mod huffman;
mod match_finder;
mod table;

pub(crate) use chunk::{XpressDecoder, XpressEncoder};

/// Octets of a block, except the last of a chunk.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;

/// 256 literals, and 16 offset classes times 16 length classes.
const SYMBOLS: usize = 512;

/// The length table in front of a block: four bits for each symbol.
const TABLE_BYTES: usize = SYMBOLS / 2;

/// The longest code.
const CODE_BITS_MAX: u32 = 15;

/// The shortest match the format can express.
const MATCH_MIN: usize = 3;

/// Written after the last symbol; inside a block it is the match of length 3 at offset 1.
const END_OF_DATA: usize = 256;

/// From this length on (less [`MATCH_MIN`]) the length follows in octets of its own.
const LENGTH_CLASS_LONG: usize = 15;
