//! The promises of the product, kept by the program as a user runs it.
//!
//! Each promise has a short form that every test run includes and, where it takes long, a full form
//! marked `#[ignore]` that `cargo xtask acceptance` runs.

mod crash;
mod damage;
mod databases;
mod disk;
mod memory;
mod support;
mod writers;
