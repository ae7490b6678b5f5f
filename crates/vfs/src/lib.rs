//! SQLite on the page engine: a VFS, so that every program that speaks SQLite can live on it.
//!
//! A SQLite page is an engine page. SQLite keeps its rollback journal in memory, for ROLLBACK only; what
//! it writes goes into a private transaction of the engine, which is committed when SQLite asks for
//! the sync of a commit. Readers see the snapshot of their first read; they neither block the
//! writer nor are blocked by it.
//!
//! - [`register`]: adds the VFS to a SQLite library; [`linked::register`] to the one of this program.
//! - [`import_export`]: plain SQLite files into the engine and out of it.
//! - [`lend`]: tables of one SQLite connection in another, whatever their text encodings.
//! - [`Databases`]: which database a name means; [`NamedDatabases`] and [`PathDatabases`].
//!
//! `unsafe` is used for SQLite's C interface only; what transactions mean is decided in `connection`,
//! without any. `docs/engine/sqlite.md` tells users what holds.

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

pub use context::Databases;
pub use error::{Result, VfsError};
pub use library::Library;
pub use names::NamedDatabases;
pub use paths::{PathDatabases, log_path};
pub use vfs::register;
