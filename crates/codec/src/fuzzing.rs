//! Entry points for fuzzing; they never panic, but for a broken round trip.

use crate::{Algorithm, Compression, Decoder, Encoder, Stored};

/// The longest chunk that fuzzing expands to or compresses.
const CHUNK_BYTES_MAX: usize = 256 << 10;

/// Expands arbitrary bytes: the first chooses the algorithm, the next three the chunk's length.
pub fn fuzz_decode(data: &[u8]) {
    let Some((&[choice, low, middle, high], payload)) = data.split_first_chunk::<4>() else {
        return;
    };
    let algorithm = Algorithm::ALL[usize::from(choice) % Algorithm::ALL.len()];
    let length = u32::from_le_bytes([low, middle, high, 0]) as usize % (CHUNK_BYTES_MAX + 1);
    let mut chunk = vec![0; length];
    // Damage is the usual result; what counts is that there is one.
    drop(Decoder::new().decode(algorithm, payload, &mut chunk));
}

/// Compresses and expands arbitrary bytes: the first chooses the compression.
///
/// # Panics
/// If the bytes do not come back.
pub fn fuzz_round_trip(data: &[u8]) {
    let Some((&choice, chunk)) = data.split_first() else {
        return;
    };
    let compression = Compression::ALL[usize::from(choice) % Compression::ALL.len()];
    let chunk = &chunk[..chunk.len().min(CHUNK_BYTES_MAX)];
    let mut encoder = Encoder::new(compression, chunk.len()).expect("a valid compression");
    let mut payload = vec![0; chunk.len()];
    let stored = encoder.encode(chunk, &mut payload).expect("enough room");
    if let Stored::Compressed(length) = stored {
        assert!(length < chunk.len(), "a payload is shorter than its chunk");
        let mut expanded = vec![0; chunk.len()];
        Decoder::new()
            .decode(compression.algorithm, &payload[..length], &mut expanded)
            .expect("our own payload expands");
        assert!(expanded == chunk, "{compression} changed the chunk");
    }
}
