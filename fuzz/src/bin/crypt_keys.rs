//! Feeds arbitrary bytes as each file of keys that is taken.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_crypt::fuzz_keys(data));
