//! Feeds arbitrary bytes as the spool of a follower.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_source::sqlite::fuzz_spool(data));
