//! A third-party decoder accepts the output of the XPRESS encoder.

use proptest::prelude::*;
use windlass_codec::xpress::{BLOCK_BYTES_MAX, BlockDecoder, BlockEncoder};

use crate::contents::{self, Kind};

/// Compresses one block and expands it with the crate `xpress-huffman`, and with Windlass's decoder.
fn expands_elsewhere(encoder: &mut BlockEncoder, block: &[u8]) {
    let mut payload = vec![0; 2 * block.len() + 300];
    let length = encoder
        .encode_block(block, &mut payload)
        .expect("enough room");
    payload.truncate(length);
    let mut ours = vec![0; block.len()];
    BlockDecoder::new()
        .decode_block(&payload, &mut ours)
        .unwrap();
    assert!(ours == block, "our decoder");
    // That decoder stops as soon as it has read the last word, although it still has bits of it.
    payload.extend([0, 0]);
    let theirs = xpress_huffman::decompress(&payload, block.len()).unwrap();
    assert!(theirs == block, "their decoder, {} bytes", block.len());
}

#[test]
fn every_content_expands_elsewhere() {
    let mut encoder = BlockEncoder::new();
    for kind in Kind::ALL {
        for length in [
            1, 2, 3, 4, 5, 8, 15, 16, 17, 255, 256, 300, 4096, 65_535, 65_536,
        ] {
            expands_elsewhere(&mut encoder, &kind.bytes(length, 5));
        }
    }
}

#[test]
fn real_pages_expand_elsewhere() {
    let mut encoder = BlockEncoder::new();
    for (_, bytes) in contents::files("data/sqlite") {
        for block in bytes.chunks(BLOCK_BYTES_MAX).step_by(7) {
            expands_elsewhere(&mut encoder, block);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_size_expands_elsewhere(kind in 0..Kind::ALL.len(), length in 1..=65_536_usize, seed: u64) {
        // Small sizes have the most edge cases.
        let length = if seed % 2 == 0 { length } else { 1 + length % 700 };
        expands_elsewhere(&mut BlockEncoder::new(), &Kind::ALL[kind].bytes(length, seed));
    }
}
