//! Runs arbitrary T-SQL that touches no files: parses, binds, executes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| windlass_instance::fuzz_flow(data));
