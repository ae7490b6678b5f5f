//! The `tsql` crate.
