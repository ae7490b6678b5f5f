//! The `pipeline` crate.
