//! The `device` crate.
