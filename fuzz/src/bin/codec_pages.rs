//! Brings arbitrary bytes into the regular form of b-tree pages and back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_codec::fuzzing::fuzz_pages(data));
