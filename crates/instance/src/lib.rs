//! The `instance` crate.
