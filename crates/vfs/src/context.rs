//! What one registration of the VFS knows: the library, its default VFS, the databases.

use std::ffi::CString;
use std::fmt::Debug;
use std::sync::Arc;

use windlass_engine::Database;

use crate::abi::Vfs;
use crate::error::Result;
use crate::library::Library;

/// How SQLite's file names become engine databases.
pub trait Databases: Debug + Send + Sync {
    /// The one name of the database that `name` means, wherever it is asked from.
    fn full_name(&self, name: &str) -> Result<String>;

    /// Whether there is a database of this full name.
    fn exists(&self, full_name: &str) -> bool;

    /// Opens the database, for one connection.
    ///
    /// # Errors
    /// When there is none and `create` is not set, or the engine cannot open it.
    fn open(&self, full_name: &str, create: bool) -> Result<Arc<Database>>;

    /// Takes back what a connection got from `open`.
    fn release(&self, database: Arc<Database>) -> Result<()>;
}

/// Lives as long as the process, as the VFS that it belongs to.
pub(crate) struct Context {
    pub(crate) name: CString,
    pub(crate) library: Library,
    /// Takes temporary files, randomness and time.
    pub(crate) default_vfs: *mut Vfs,
    pub(crate) databases: Box<dyn Databases>,
}
