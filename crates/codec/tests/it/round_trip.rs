//! Decompression restores the input.

use proptest::prelude::*;
use windlass_codec::{
    Algorithm, Compression, Decoder, Effort, Encoder, Error, FRAME_BYTES_MAX, Filter, Stored,
};

use crate::contents::{self, Kind};

/// Compresses and expands `chunk` and returns the result of compression.
fn round_trip(encoder: &mut Encoder, decoder: &mut Decoder, chunk: &[u8]) -> Stored {
    let mut output = vec![0xEE; chunk.len()];
    let stored = encoder.encode(chunk, &mut output).unwrap();
    if let Stored::Compressed { bytes, filter } = stored {
        assert!(bytes < chunk.len(), "a payload is shorter than its chunk");
        let mut expanded = vec![0xDD; chunk.len()];
        let algorithm = encoder.compression().algorithm;
        decoder
            .decode(algorithm, filter, &output[..bytes], &mut expanded)
            .unwrap();
        assert!(
            expanded == chunk,
            "{algorithm} changed {} bytes",
            chunk.len()
        );
    }
    stored
}

#[test]
fn every_size_and_content_comes_back() {
    const EDGES: [usize; 12] = [
        0, 1, 2, 3, 7, 8, 9, 65_535, 65_536, 65_537, 131_072, 200_001,
    ];
    let mut decoder = Decoder::new();
    for compression in Compression::ALL {
        let mut encoder = Encoder::new(compression, FRAME_BYTES_MAX).unwrap();
        for kind in Kind::ALL {
            for length in (4..600).step_by(37).chain(EDGES) {
                let chunk = kind.bytes(length, length as u64);
                round_trip(&mut encoder, &mut decoder, &chunk);
            }
        }
    }
}

#[test]
fn the_longest_chunk_comes_back() {
    let mut decoder = Decoder::new();
    for compression in Compression::ALL {
        let mut encoder = Encoder::new(compression, FRAME_BYTES_MAX).unwrap();
        for kind in [Kind::Pages, Kind::Zero] {
            let chunk = kind.bytes(FRAME_BYTES_MAX, 4);
            let stored = round_trip(&mut encoder, &mut decoder, &chunk);
            let shrinks = compression != Compression::NONE;
            assert_eq!(stored != Stored::Plain, shrinks, "{compression} {kind:?}");
        }
    }
}

#[test]
fn random_bytes_and_short_chunks_are_stored_plain() {
    let mut decoder = Decoder::new();
    for compression in Compression::ALL {
        let mut encoder = Encoder::new(compression, FRAME_BYTES_MAX).unwrap();
        for length in [0, 1, 2, 64, 65_536, 1 << 20] {
            let chunk = Kind::Random.bytes(length, 9);
            let stored = round_trip(&mut encoder, &mut decoder, &chunk);
            assert_eq!(stored, Stored::Plain, "{compression} {length}");
        }
    }
}

#[test]
fn a_random_block_among_others_costs_only_itself() {
    let mut chunk = Kind::Text.bytes(65_536, 1);
    chunk.extend(Kind::Random.bytes(65_536, 2));
    chunk.extend(Kind::Text.bytes(65_536, 3));
    let mut encoder = Encoder::new(Compression::MS_XPRESS, chunk.len()).unwrap();
    let stored = round_trip(&mut encoder, &mut Decoder::new(), &chunk);
    let Stored::Compressed { bytes, .. } = stored else {
        panic!("two of three blocks shrink");
    };
    assert!(bytes < 65_536 + 2 * 30_000, "{bytes}");
}

#[test]
fn only_utf_16_text_is_narrowed_and_every_effort_takes_it() {
    let mut decoder = Decoder::new();
    for compression in &Compression::ALL[1..] {
        let mut encoder = Encoder::new(*compression, FRAME_BYTES_MAX).unwrap();
        let is_zstd = encoder.set_effort(Effort::Low).is_ok();
        for effort in Effort::ALL
            .into_iter()
            .filter(|_| is_zstd)
            .chain([Effort::Low])
        {
            drop(encoder.set_effort(effort));
            for kind in Kind::ALL {
                let chunk = kind.bytes(300_001, 6);
                let Stored::Compressed { filter, .. } =
                    round_trip(&mut encoder, &mut decoder, &chunk)
                else {
                    continue;
                };
                let is_text =
                    kind == Kind::TextUtf16 && Filter::NARROW.is_taken_by(compression.algorithm);
                if kind != Kind::Pages {
                    assert_eq!(filter == Filter::NARROW, is_text, "{compression} {kind:?}");
                }
            }
        }
    }
}

#[test]
fn real_databases_come_back() {
    let mut decoder = Decoder::new();
    for (path, bytes) in contents::files("data/sqlite") {
        for compression in &Compression::ALL[1..] {
            let frame_bytes = compression.frame_bytes();
            let mut encoder = Encoder::new(*compression, frame_bytes).unwrap();
            // The first frame of each file, and its last piece of odd length.
            let first = &bytes[..bytes.len().min(frame_bytes)];
            round_trip(&mut encoder, &mut decoder, first);
            let last = &bytes[bytes.len() - bytes.len().min(70_001)..];
            let stored = round_trip(&mut encoder, &mut decoder, last);
            println!("{} {compression} {stored:?}", path.display());
        }
    }
}

#[test]
fn a_chunk_longer_than_announced_is_refused() {
    let mut encoder = Encoder::new(Compression::MS_XPRESS, 100).unwrap();
    let long = encoder.encode(&[0; 101], &mut [0; 101]);
    assert_eq!(
        long,
        Err(Error::ChunkTooLong {
            found: 101,
            max: 100
        })
    );
    let narrow = encoder.encode(&[0; 100], &mut [0; 99]);
    assert_eq!(
        narrow,
        Err(Error::OutputTooShort {
            found: 99,
            needed: 100
        })
    );
    let frame = Encoder::new(Compression::NONE, FRAME_BYTES_MAX + 1);
    assert!(matches!(frame, Err(Error::FrameTooLong { .. })));
}

#[test]
fn a_chunk_stored_plain_has_the_length_of_its_payload() {
    let mut decoder = Decoder::new();
    let mut output = [0; 3];
    decoder
        .decode(Algorithm::None, Filter::NONE, b"abc", &mut output)
        .unwrap();
    assert_eq!(&output, b"abc");
    assert_eq!(
        decoder.decode(Algorithm::None, Filter::NONE, b"abcd", &mut output),
        Err(Error::Length {
            algorithm: Algorithm::None,
            expected: 3,
            found: 4
        })
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_come_back(data in prop::collection::vec(any::<u8>(), 0..3000), choice: u8) {
        let mut input = vec![choice];
        input.extend(&data);
        // Repeated, so that there are matches to find.
        input.extend(&data);
        windlass_codec::fuzzing::fuzz_round_trip(&input);
    }
}
