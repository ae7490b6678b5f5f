//! SQLite on the page engine: a VFS, so that every program that uses SQLite can use it.
//!
//! A SQLite page is an engine page. SQLite keeps its rollback journal in memory, for ROLLBACK only;
//! its writes go into a private transaction of the engine, which is committed when SQLite requests
//! the sync of a commit. Readers see the snapshot of their first read; they neither block the
//! writer nor are blocked by it.
//!
//! - [`register`]: adds the VFS to a SQLite library; [`linked::register`]: to the one in this program.
//! - [`import_export`]: plain SQLite files to and from the engine.
//! - [`lend`]: makes tables of one SQLite connection readable in another, whatever their encodings.
//! - [`Databases`]: maps names to databases; [`NamedDatabases`] and [`PathDatabases`].
//!
//! `unsafe` is used only for SQLite's C interface; `connection` implements the transactions without
//! it. `docs/engine/sqlite.md` documents the behaviour for users.

mod abi;
mod connection;
mod context;
mod error;
mod file;
#[cfg(feature = "linked")]
pub mod import_export;
mod journal;
#[cfg(feature = "linked")]
pub mod lend;
mod library;
#[cfg(feature = "linked")]
pub mod linked;
mod names;
mod paths;
mod pragma;
mod raw;
mod snapshots;
mod vfs;

pub use context::{Databases, IfMissing, Parameters, last_error};
pub use error::{Result, VfsError};
pub use library::Library;
pub use names::NamedDatabases;
pub use paths::{Held, PathDatabases, Watch, log_path};
pub use vfs::register;
