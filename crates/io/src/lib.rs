//! The `io` crate.
