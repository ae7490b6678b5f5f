//! The data of one registration of the VFS: the library, its default VFS, the databases.

use std::ffi::CString;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use windlass_engine::Database;

use crate::abi::Vfs;
use crate::error::Result;
use crate::library::Library;
use crate::snapshots::Snapshots;

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

    /// Releases a database returned by `open`.
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
