//! The tables of a database, from its pages.
//!
//! - [`Pages`]: the source of pages, a backup or data files.
//! - [`Database`]: the tables, with their columns and keys.
//! - [`Database::read`]: the rows of a table.
//! - [`Database::owners`]: the object that a page belongs to.
//! - [`Database::unsettled`]: the objects whose pages do not have what the log says.
//!
//! `docs/sql-server-bak.md` describes what is and is not read.

mod catalog;
mod compressed;
mod date;
mod foreign_keys;
mod layout;
mod lob;
mod owners;
mod pages;
mod record;
mod rows;
mod scan;
mod system;
mod system_rows;
mod text;
mod unsettled;
mod value;
mod xml;

pub(crate) use compressed::fuzz_page;
pub(crate) use value::datetime_text;
pub(crate) use xml::decode as decode_xml;

pub use catalog::{Column, Database, Refusal, Table};
pub use foreign_keys::ForeignKey;
pub use owners::{Owner, OwnerPart, Owners};
pub use pages::Pages;
pub use rows::{TakeRow, Tally};
pub use scan::Problems;
pub use unsettled::{Unsettled, UnsettledObject};
pub use value::{SqlType, Value};
