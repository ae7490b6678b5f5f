//! Any bytes as a backup of SQL Server: listed, verified, looked into, and its tables read.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_bak::fuzzing::fuzz_file(bytes));
