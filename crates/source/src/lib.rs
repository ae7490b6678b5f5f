//! The `source` crate.
