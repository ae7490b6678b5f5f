//! Entry points for fuzzing; they panic only if a round trip fails.

use crate::{Algorithm, BTreePages, Compression, Decoder, Encoder, Filter, Stored, btree, narrow};

/// The longest chunk in fuzzing.
const CHUNK_BYTES_MAX: usize = 256 << 10;

/// Expands arbitrary bytes: the first selects algorithm and filter, the next three the chunk's length.
pub fn fuzz_decode(data: &[u8]) {
    let Some((&[choice, low, middle, high], payload)) = data.split_first_chunk::<4>() else {
        return;
    };
    let choice = usize::from(choice);
    let algorithm = Algorithm::ALL[choice % Algorithm::ALL.len()];
    let filter = choice / Algorithm::ALL.len();
    let filter = Filter {
        pages: layout(filter >> 1).filter(|_| filter & 2 != 0),
        is_narrowed: filter & 1 != 0,
    };
    let length = u32::from_le_bytes([low, middle, high, 0]) as usize % (CHUNK_BYTES_MAX + 1);
    let mut chunk = vec![0; length];
    // Errors are the usual result; returning at all is what counts.
    drop(Decoder::new().decode(algorithm, filter, payload, &mut chunk));
}

/// A layout of pages, from what is left of a number behind its lowest bit.
fn layout(choice: usize) -> Option<BTreePages> {
    let reserved = [0, 8, 31][choice / 2 % 3];
    BTreePages::new(BTreePages::PAGE_BYTES_MIN << (choice / 6 % 8), reserved)
}

/// Compresses and expands arbitrary bytes: the first selects compression and pages.
///
/// # Panics
/// If the result differs from the input.
pub fn fuzz_round_trip(data: &[u8]) {
    let Some((&choice, chunk)) = data.split_first() else {
        return;
    };
    let choice = usize::from(choice);
    let compression = Compression::ALL[choice % Compression::ALL.len()];
    let chunk = &chunk[..chunk.len().min(CHUNK_BYTES_MAX)];
    let mut encoder = Encoder::new(compression, chunk.len()).expect("a valid compression");
    encoder.set_pages(layout(choice / Compression::ALL.len()));
    let mut payload = vec![0; chunk.len()];
    let stored = encoder.encode(chunk, &mut payload).expect("enough room");
    if let Stored::Compressed { bytes, filter } = stored {
        assert!(bytes < chunk.len(), "a payload is shorter than its chunk");
        let mut expanded = vec![0; chunk.len()];
        Decoder::new()
            .decode(
                compression.algorithm,
                filter,
                &payload[..bytes],
                &mut expanded,
            )
            .expect("our own payload expands");
        assert!(expanded == chunk, "{compression} changed the chunk");
    }
}

/// Widens arbitrary bytes: the first three are the chunk's length.
///
/// # Panics
/// If the implementations differ, or write beyond the chunk.
pub fn fuzz_widen(data: &[u8]) {
    let Some((&[low, middle, high], form)) = data.split_first_chunk::<3>() else {
        return;
    };
    let length = u32::from_le_bytes([low, middle, high, 0]) as usize % (CHUNK_BYTES_MAX + 1);
    narrow::check_widening(form, length);
}

/// Brings arbitrary bytes into regular form and back, and restores them as if they were one: the first
/// selects the layout of the pages.
///
/// # Panics
/// If a chunk does not come back.
pub fn fuzz_pages(data: &[u8]) {
    let Some((&choice, chunk)) = data.split_first() else {
        return;
    };
    let Some(pages) = layout(choice.into()) else {
        return;
    };
    let mut form = chunk.to_vec();
    // Errors are the usual result; returning at all is what counts.
    let _refused = btree::restore(&mut form, pages);
    if btree::promises(chunk, pages) {
        btree::regularize(chunk, &mut form, pages);
        assert_eq!(btree::restore(&mut form, pages), Ok(()), "our own form");
        assert!(form == chunk, "the chunk changed");
    }
}
