//! Any tokens as an `xml` value of SQL Server.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_bak::fuzzing::fuzz_xml(bytes));
