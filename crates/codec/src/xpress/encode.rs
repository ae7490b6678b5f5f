//! Compresses one block.

use super::bit_writer::BitWriter;
use super::huffman::{Code, HuffmanBuilder, write_lengths};
use super::match_finder::{MatchFinder, Weights};
use super::parse::{Parse, Sequence};
use super::{BLOCK_BYTES_MAX, END_SYMBOL, LENGTH_CODE_EXTRA, LENGTH_TABLE_BYTES, SYMBOLS};

/// Compresses blocks one after another with the same tables.
#[derive(Debug)]
pub struct BlockEncoder {
    finder: MatchFinder,
    parse: Parse,
    huffman: HuffmanBuilder,
    codes: [Code; SYMBOLS],
    weights: Weights,
}

impl BlockEncoder {
    pub fn new() -> Self {
        Self {
            finder: MatchFinder::new(),
            parse: Parse::new(),
            huffman: HuffmanBuilder::new(),
            codes: [Code::default(); SYMBOLS],
            weights: WEIGHTS_AT_FIRST,
        }
    }

    /// Resets what was learned from earlier blocks, so that the next one always produces the same bytes.
    pub fn restart(&mut self) {
        self.weights = WEIGHTS_AT_FIRST;
    }

    /// The length of the compressed form of `block`, or `None` if it does not fit into `output`.
    ///
    /// # Panics
    /// If `block` is longer than [`BLOCK_BYTES_MAX`].
    pub fn encode_block(&mut self, block: &[u8], output: &mut [u8]) -> Option<usize> {
        assert!(block.len() <= BLOCK_BYTES_MAX, "one block");
        if block.is_empty() {
            return None;
        }
        self.parse.run(block, &mut self.finder, self.weights);
        self.huffman.build(&self.parse.frequencies, &mut self.codes);
        self.weights = self.learn_weights();
        let length = self.encoded_length();
        let output = output.get_mut(..length)?;
        let (table, stream) = output.split_first_chunk_mut::<LENGTH_TABLE_BYTES>()?;
        write_lengths(&self.codes, table);
        let written = self.write_stream(block, stream);
        assert_eq!(
            LENGTH_TABLE_BYTES + written,
            length,
            "the length was computed"
        );
        Some(length)
    }

    /// Literals are assumed to cost the same in the next block as in this one.
    fn learn_weights(&self) -> Weights {
        let literals = self.parse.frequencies.iter().zip(&self.codes).take(256);
        let (count, bits) = literals.fold((1, 5), |(count, bits), (frequency, code)| {
            (count + frequency, bits + frequency * code.length())
        });
        let literal = (4 * bits / count).clamp(16, 32).cast_signed();
        // Two bytes are never a match.
        let matched = (2 * literal + 4).max(36);
        Weights { literal, matched }
    }

    /// The exact length of the compressed form.
    fn encoded_length(&self) -> usize {
        let mut bits = 0;
        for (symbol, (&frequency, code)) in
            self.parse.frequencies.iter().zip(&self.codes).enumerate()
        {
            bits += frequency as usize * (code.length() as usize + offset_bits(symbol));
        }
        // The decoder reads one word beyond the last.
        let words = bits.div_ceil(16) + 1;
        LENGTH_TABLE_BYTES + 2 * words + self.parse.extra_bytes
    }

    fn write_stream(&self, block: &[u8], stream: &mut [u8]) -> usize {
        let mut writer = BitWriter::new(stream);
        let mut rest = block;
        for sequence in self.parse.sequences() {
            let (literals, behind) = rest.split_at(usize::from(sequence.literals));
            self.write_literals(&mut writer, literals);
            self.write_match(&mut writer, *sequence);
            rest = &behind[usize::from(sequence.length_less_min) + 3..];
        }
        self.write_literals(&mut writer, rest);
        let code = self.codes[END_SYMBOL];
        writer.put(code.bits(), code.length());
        writer.flush();
        writer.finish()
    }

    #[inline]
    fn write_literals(&self, writer: &mut BitWriter<'_>, literals: &[u8]) {
        let (threes, rest) = literals.as_chunks::<3>();
        for three in threes {
            for &literal in three {
                let code = self.codes[usize::from(literal)];
                writer.put(code.bits(), code.length());
            }
            writer.flush();
        }
        for &literal in rest {
            let code = self.codes[usize::from(literal)];
            writer.put(code.bits(), code.length());
        }
        writer.flush();
    }

    #[inline]
    fn write_match(&self, writer: &mut BitWriter<'_>, sequence: Sequence) {
        let code = self.codes[usize::from(sequence.symbol) % SYMBOLS];
        writer.put(code.bits(), code.length());
        if u32::from(sequence.symbol) & 15 == LENGTH_CODE_EXTRA {
            writer.flush();
            write_extra(writer, sequence.length_less_min);
        }
        let count = offset_bits(usize::from(sequence.symbol)) as u32;
        let offset = u64::from(sequence.offset) & ((1 << count) - 1);
        writer.put(offset, count);
        writer.flush();
    }
}

/// Weights of UTF-16 text.
const WEIGHTS_AT_FIRST: Weights = Weights {
    literal: 20,
    matched: 44,
};

impl Default for BlockEncoder {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes the rest of a length whose code announces it.
fn write_extra(writer: &mut BitWriter<'_>, length_less_min: u16) {
    match u8::try_from(length_less_min - LENGTH_CODE_EXTRA as u16) {
        Ok(byte) if byte != 255 => writer.put_bytes(&[byte]),
        _ => {
            let [low, high] = length_less_min.to_le_bytes();
            writer.put_bytes(&[255, low, high]);
        }
    }
}

/// The number of offset bits that follow a symbol.
fn offset_bits(symbol: usize) -> usize {
    symbol.saturating_sub(256) >> 4
}
