//! The promises of the product, kept by the program as a user runs it.
//!
//! Each promise has a short form that every test run includes and, where it takes long, a full form
//! marked `#[ignore]` that `cargo xtask acceptance` runs.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test stops at the first surprise and says what it skips"
)]

mod crash;
mod damage;
mod databases;
mod disk;
mod engine;
mod memory;
mod server;
mod support;
mod writers;
