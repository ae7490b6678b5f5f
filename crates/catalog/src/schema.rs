//! The tables of a catalog.
//!
//! Log sequence numbers are stored as integers where they fit and as text of 25 digits where they do
//! not; identities as upper-case text; dates as `YYYY-MM-DD hh:mm:ss`, local time.

/// The version of the layout, stored in SQLite's `user_version`; 0 is a new catalog.
pub(crate) const VERSION: u32 = 1;

/// Creates the tables and views of a new catalog.
pub(crate) const SCHEMA: &str = include_str!("schema.sql");
