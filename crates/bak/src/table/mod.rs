//! The tables of a database, from its pages.
//!
//! - [`Pages`]: where pages come from, a backup or data files.
//! - [`Database`]: the tables there are, with their columns and keys.
//! - [`Database::read`]: the rows of a table.
//!
//! `docs/sql-server-bak.md` says what is read and what is not.

mod catalog;
mod date;
mod layout;
mod lob;
mod pages;
mod record;
mod rows;
mod scan;
mod system;
mod text;
mod value;

pub use catalog::{Column, Database, Refusal, Table};
pub use pages::Pages;
pub use rows::{TakeRow, Tally};
pub use scan::Problems;
pub use value::{SqlType, Value};
