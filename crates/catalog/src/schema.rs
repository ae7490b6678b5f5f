//! The tables of a catalog.
//!
//! LSNs are stored as integers if they fit, otherwise as text of 25 digits; GUIDs as upper-case text;
//! dates as `YYYY-MM-DD hh:mm:ss`, local time.

/// The version of the layout, stored in SQLite's `user_version`; 0 is a new catalog.
pub(crate) const VERSION: u32 = 1;

/// Creates the tables and views of a new catalog.
pub(crate) const SCHEMA: &str = include_str!("schema.sql");
