//! A transactional page store for one process: buffer pool, write-ahead log, snapshots, checkpoints.
#![forbid(unsafe_code)]

mod database;
mod error;
mod instance;
mod options;
pub mod storage;

pub use database::{Counters, Database, ReadSnapshot, WriteTransaction};
pub use error::{EngineError, Result};
pub use instance::Instance;
pub use options::{
    CreateDatabase, EXTENT_PAGES, FileSpec, Growth, InstanceOptions, OpenDatabase, PAGE_SIZE,
};
