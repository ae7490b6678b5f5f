//! The data of one registration of the VFS: the library, its default VFS, the databases.

use std::cell::Cell;
use std::ffi::{CString, c_int};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use windlass_engine::Database;

use crate::abi::Vfs;
use crate::error::{Result, VfsError};
use crate::library::Library;
use crate::snapshots::Snapshots;

thread_local! {
    /// SQLite's own words for a file that cannot be opened are always the same.
    static LAST: Cell<Option<String>> = const { Cell::new(None) };
}

/// The last error of a database in this thread, once.
pub fn last_error() -> Option<String> {
    LAST.take()
}

/// What opening a database does if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMissing {
    Create,
    Fail,
}

/// What the URI of a database says besides its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    /// `pool`: bytes of the buffer pool of this process.
    pub pool: Option<String>,
    /// `name`: what the database is called in its backups.
    pub name: Option<String>,
    /// `data2`, `data3`, ...: its data files after the first.
    pub data: Vec<String>,
}

/// How SQLite's file names become engine databases.
pub trait Databases: Debug + Send + Sync {
    /// The unique name of the database that `name` means.
    fn full_name(&self, name: &str) -> Result<String>;

    /// Whether a database with this full name exists.
    fn exists(&self, full_name: &str) -> bool;

    /// Opens the database, for one connection.
    ///
    /// # Errors
    /// If there is none and it is not to be created, the engine cannot open it, or it is not what the parameters say.
    fn open(
        &self,
        full_name: &str,
        missing: IfMissing,
        parameters: &Parameters,
    ) -> Result<Arc<Database>>;

    /// Whether this process may use the databases that are open.
    ///
    /// # Errors
    /// [`crate::VfsError::Forked`]
    fn check_process(&self) -> Result<()> {
        Ok(())
    }

    /// The same for a read in a transaction, which is asked for each page.
    ///
    /// # Errors
    /// [`crate::VfsError::Forked`]
    fn check_process_of_read(&self) -> Result<()> {
        Ok(())
    }

    /// Releases a database returned by `open`, in the process that opened it.
    fn release(&self, database: Arc<Database>) -> Result<()>;
}

/// Lives as long as the process, like the VFS to which it belongs.
pub(crate) struct Context {
    pub(crate) name: CString,
    pub(crate) library: Library,
    /// Handles temporary files, randomness and time.
    pub(crate) default_vfs: *mut Vfs,
    pub(crate) databases: Box<dyn Databases>,
    /// What the connections of each open database share.
    pub(crate) snapshots: Mutex<Vec<Weak<Snapshots>>>,
}

impl Context {
    /// Logs an error, and keeps it for [`last_error`].
    pub(crate) fn failed(&self, code: c_int, error: &VfsError) {
        let text = error.to_string();
        self.library.log(code, &text);
        LAST.set(Some(text));
    }

    /// The snapshots of `database`, shared with its other connections.
    pub(crate) fn snapshots_of(&self, database: Arc<Database>) -> Arc<Snapshots> {
        let mut all = self
            .snapshots
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.retain(|snapshots| snapshots.strong_count() > 0);
        let known = all.iter().filter_map(Weak::upgrade);
        for snapshots in known {
            if Arc::ptr_eq(snapshots.database(), &database) {
                return snapshots;
            }
        }
        let snapshots = Arc::new(Snapshots::new(database));
        all.push(Arc::downgrade(&snapshots));
        snapshots
    }
}
