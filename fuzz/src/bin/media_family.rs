//! Feeds arbitrary bytes as a media family.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_media::fuzz_family(data));
