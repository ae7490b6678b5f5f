//! Damaged payloads: an error or the right length, never a panic, never more than the output.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use windlass_codec::fuzzing::fuzz_decode;
use windlass_codec::{Algorithm, Compression, Decoder, Encoder, Error, Stored};

use crate::contents::Kind;

/// A payload of `length` bytes of `kind`.
fn payload(compression: Compression, kind: Kind, length: usize) -> Vec<u8> {
    let chunk = kind.bytes(length, 77);
    let mut output = vec![0; length];
    let mut encoder = Encoder::new(compression, length).unwrap();
    match encoder.encode(&chunk, &mut output).unwrap() {
        Stored::Compressed(stored) => output.truncate(stored),
        Stored::Plain => panic!("{kind:?} shrinks"),
    }
    output
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
        for kind in [Kind::Text, Kind::Pages, Kind::Runs, Kind::Skewed] {
            for length in [1500, 9000, 66_000] {
                let intact = payload(*compression, kind, length);
                let rounds = if length < 10_000 { 300 } else { 40 };
                for _ in 0..rounds {
                    let mut damaged = intact.clone();
                    mutate(&mut random, &mut damaged);
                    let mut chunk = vec![0x5A; length + GUARD];
                    drop(decoder.decode(compression.algorithm, &damaged, &mut chunk[..length]));
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
        let payload = payload(*compression, Kind::Text, 5000);
        let algorithm = compression.algorithm;
        for wrong in [0, 1, 4990, 5100, 70_000] {
            // An XPRESS stream does not encode its end, so a shorter prefix may expand.
            if algorithm == Algorithm::MsXpress && (1..5000).contains(&wrong) {
                continue;
            }
            let result = decoder.decode(algorithm, &payload, &mut vec![0; wrong]);
            assert!(
                matches!(result, Err(Error::Corrupt { .. } | Error::Length { .. })),
                "{algorithm} {wrong}: {result:?}"
            );
        }
        let truncated = decoder.decode(algorithm, &payload[..payload.len() / 2], &mut [0; 5000]);
        assert!(truncated.is_err(), "{algorithm}");
        let empty = decoder.decode(algorithm, &[], &mut [0; 5000]);
        assert!(empty.is_err(), "{algorithm}");
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
