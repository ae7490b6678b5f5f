//! The `base` crate.
