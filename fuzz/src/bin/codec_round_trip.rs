//! Feeds arbitrary bytes as data to compress.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_codec::fuzzing::fuzz_round_trip(data));
