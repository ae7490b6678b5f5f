//! Feeds arbitrary bytes as the narrowed form of a chunk.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_codec::fuzzing::fuzz_widen(data));
