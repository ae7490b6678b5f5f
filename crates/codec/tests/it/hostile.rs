//! Damaged payloads: an error or the right length, never a panic, never more than the output.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use windlass_codec::fuzzing::fuzz_decode;
use windlass_codec::{Algorithm, Compression, Decoder, Encoder, Error, Filter, Stored};

use crate::contents::Kind;

/// A payload of `length` bytes of `kind`, and its filter.
fn payload(compression: Compression, kind: Kind, length: usize) -> (Vec<u8>, Filter) {
    let chunk = kind.bytes(length, 77);
    let mut output = vec![0; length];
    let mut encoder = Encoder::new(compression, length).unwrap();
    match encoder.encode(&chunk, &mut output).unwrap() {
        Stored::Compressed { bytes, filter } => {
            output.truncate(bytes);
            (output, filter)
        }
        Stored::Plain => panic!("{kind:?} shrinks"),
    }
}

fn mutate(random: &mut StdRng, payload: &mut Vec<u8>) {
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..payload.len());
        match random.random_range(0..6) {
            0 => payload[at] ^= 1 << random.random_range(0..8),
            1 => payload[at] = random.random(),
            2 => payload[at] = 0xFF,
            3 => payload.truncate(at.max(1)),
            4 => payload.insert(at, random.random()),
            _ => {
                payload.remove(at);
                payload.push(0);
            }
        }
    }
}

#[test]
fn damaged_payloads_neither_panic_nor_write_beyond_the_chunk() {
    const GUARD: usize = 64;
    let mut random = StdRng::seed_from_u64(1);
    let mut decoder = Decoder::new();
    for compression in &Compression::ALL[1..] {
        for kind in [
            Kind::Text,
            Kind::TextUtf16,
            Kind::Pages,
            Kind::Runs,
            Kind::Skewed,
        ] {
            for length in [1500, 9000, 66_000] {
                let (intact, filter) = payload(*compression, kind, length);
                let rounds = if length < 10_000 { 300 } else { 40 };
                for _ in 0..rounds {
                    let mut damaged = intact.clone();
                    mutate(&mut random, &mut damaged);
                    let mut chunk = vec![0x5A; length + GUARD];
                    let room = &mut chunk[..length];
                    drop(decoder.decode(compression.algorithm, filter, &damaged, room));
                    assert!(chunk[length..].iter().all(|&byte| byte == 0x5A));
                }
            }
        }
    }
}

#[test]
fn a_payload_of_another_length_is_refused() {
    let mut decoder = Decoder::new();
    for compression in &Compression::ALL[1..] {
        let algorithm = compression.algorithm;
        let kind = match Filter::NARROW.is_taken_by(algorithm) {
            true => Kind::TextUtf16,
            false => Kind::Text,
        };
        let (payload, filter) = payload(*compression, kind, 5000);
        assert_eq!(
            filter != Filter::NONE,
            Filter::NARROW.is_taken_by(algorithm)
        );
        for wrong in [0, 1, 4990, 5100, 70_000] {
            // An XPRESS stream does not encode its end, so a shorter prefix may expand.
            if algorithm == Algorithm::MsXpress && (1..5000).contains(&wrong) {
                continue;
            }
            let result = decoder.decode(algorithm, filter, &payload, &mut vec![0; wrong]);
            assert!(
                matches!(result, Err(Error::Corrupt { .. } | Error::Length { .. })),
                "{algorithm} {wrong}: {result:?}"
            );
        }
        let half = &payload[..payload.len() / 2];
        let truncated = decoder.decode(algorithm, filter, half, &mut [0; 5000]);
        assert!(truncated.is_err(), "{algorithm}");
        let empty = decoder.decode(algorithm, filter, &[], &mut [0; 5000]);
        assert!(empty.is_err(), "{algorithm}");
    }
}

#[test]
fn another_filter_than_the_one_used_is_refused() {
    let mut decoder = Decoder::new();
    for compression in [Compression::ZSTD_LOW, Compression::QAT_DEFLATE] {
        let algorithm = compression.algorithm;
        let mut chunk = vec![0; 70_000];
        for (kind, used, other) in [
            (Kind::TextUtf16, Filter::NARROW, Filter::NONE),
            (Kind::Text, Filter::NONE, Filter::NARROW),
        ] {
            let (payload, filter) = payload(compression, kind, chunk.len());
            assert_eq!(filter, used, "{compression}");
            let refused = decoder.decode(algorithm, other, &payload, &mut chunk);
            let is_refused = matches!(refused, Err(Error::Corrupt { .. } | Error::Length { .. }));
            assert!(is_refused, "{compression} {other}: {refused:?}");
        }
    }
    for algorithm in [Algorithm::None, Algorithm::MsXpress] {
        let refused = decoder.decode(algorithm, Filter::NARROW, &[0; 9], &mut [0; 9]);
        let filter = Filter::NARROW;
        assert_eq!(refused, Err(Error::FilterNotTaken { algorithm, filter }));
    }
}

#[test]
fn random_bytes_are_not_a_payload() {
    let mut random = StdRng::seed_from_u64(2);
    for round in 0..4000 {
        let length = random.random_range(0..700);
        let mut data: Vec<u8> = (0..length).map(|_| random.random()).collect();
        if let Some(choice) = data.first_mut() {
            *choice = round as u8;
        }
        fuzz_decode(&data);
    }
}
