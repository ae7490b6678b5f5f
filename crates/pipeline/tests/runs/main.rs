//! Whole runs through the library.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod adaptive;
mod appending;
mod bad_pages;
mod claims;
mod coverage;
mod crafted;
mod described;
mod engine;
mod failing_reads;
#[cfg(debug_assertions)]
mod faults;
mod measuring;
mod narrowed;
mod regular;
mod reversible;
mod round_trip;
mod selected;
mod support;
mod troubled;
