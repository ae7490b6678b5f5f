//! The `catalog` crate.
