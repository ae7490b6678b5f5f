//! Feeds arbitrary bytes as T-SQL text.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_tsql::fuzz_parse(data));
