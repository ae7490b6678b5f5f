//! The `media` crate.
