//! Feeds arbitrary octets as a media family.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_media::fuzz_family(data));
