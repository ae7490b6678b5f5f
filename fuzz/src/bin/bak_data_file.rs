//! Any bytes as pages of an offline data file of SQL Server.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_bak::fuzzing::fuzz_data_file(bytes));
