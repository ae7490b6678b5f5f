//! The promises of the product, kept by the program as a user runs it.
//!
//! Each promise has a short form that every test run includes and, where it takes long, a full form
//! marked `#[ignore]` that `cargo xtask acceptance` runs. What is promised of media in files is promised of objects too:
//! [`support::Store`] says which of the two a test uses.
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
#[expect(
    dead_code,
    reason = "most of its faults are for the tests of statements"
)]
#[path = "../statements/s3_server.rs"]
mod s3_server;
mod server;
mod support;
mod writers;
