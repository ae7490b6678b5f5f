//! Whole runs through the library.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod adaptive;
mod appending;
mod claims;
mod coverage;
mod crafted;
mod engine;
mod failing_reads;
#[cfg(debug_assertions)]
mod faults;
mod round_trip;
mod support;
