//! Options for creating instances and databases.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use windlass_base::{Guid, PAGE_BYTES};

#[derive(Debug, Clone)]
pub struct InstanceOptions {
    /// Buffers of 8 KB in the pool. Address space is reserved; memory is used as pages are read.
    pub pool_pages: u64,
    /// Partitions of each dirty page list; one per core is a good value.
    pub schedulers: usize,
    /// Maximum page writes in flight, over all databases.
    pub requests_in_flight: usize,
    /// Whether the instance runs its recovery writer and page writes on its own threads. If not,
    /// everything runs in the owner's calls (deterministic, for simulation).
    pub background: bool,
    /// Maximum bytes of old page versions kept for open snapshots, per database.
    pub version_bytes_max: u64,
    /// Initial value for
    /// [`Instance::set_recovery_interval`](crate::Instance::set_recovery_interval).
    pub recovery_interval: Duration,
}

impl Default for InstanceOptions {
    fn default() -> Self {
        Self {
            pool_pages: 32 * 1024,
            schedulers: std::thread::available_parallelism().map_or(1, usize::from),
            requests_in_flight: 32,
            background: true,
            version_bytes_max: 1 << 30,
            recovery_interval: Duration::from_secs(60),
        }
    }
}

/// How long a database's log is kept, which determines which backups are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecoveryModel {
    /// The log is truncated by each checkpoint: full and differential backups only.
    #[default]
    Simple,
    /// The log is kept until it is backed up.
    Full,
}

impl fmt::Display for RecoveryModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Simple => "SIMPLE",
            Self::Full => "FULL",
        })
    }
}

/// By how much a file grows when it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// Not at all.
    Fixed,
    Bytes(u64),
    /// By this share of its size.
    Percent(u32),
}

/// One file of a database, as `CREATE DATABASE` describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpec {
    pub logical_name: String,
    pub path: PathBuf,
    /// Bytes at creation.
    pub size: u64,
    pub growth: Growth,
    /// Maximum size in bytes.
    pub max_size: Option<u64>,
}

impl FileSpec {
    /// A data file of 8 MB that grows by 64 MB.
    pub fn data(logical_name: &str, path: impl Into<PathBuf>) -> Self {
        Self {
            logical_name: logical_name.to_owned(),
            path: path.into(),
            size: 8 << 20,
            growth: Growth::Bytes(64 << 20),
            max_size: None,
        }
    }

    /// A log file of 8 MB that grows by 64 MB.
    pub fn log(logical_name: &str, path: impl Into<PathBuf>) -> Self {
        Self::data(logical_name, path)
    }
}

#[derive(Debug, Clone)]
pub struct CreateDatabase {
    /// Its name, unique within the instance.
    pub name: String,
    /// One or more data files; none may exist yet.
    pub data_files: Vec<FileSpec>,
    /// The log file; must not exist yet.
    pub log: FileSpec,
    /// Bytes in a page: 8192.
    pub page_size: usize,
    /// Indirect checkpoints with this target, or automatic ones (`None`).
    pub target_recovery_time: Option<Duration>,
    /// Its identity; random if not given.
    pub guid: Option<Guid>,
}

impl CreateDatabase {
    /// A database with one data file and default settings.
    pub fn new(name: &str, data: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            data_files: vec![FileSpec::data(name, data)],
            log: FileSpec::log(&format!("{name}_log"), log),
            page_size: PAGE_BYTES,
            target_recovery_time: Some(Duration::from_secs(60)),
            guid: None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct OpenDatabase {
    /// Its name in the instance.
    pub name: String,
    /// Its log file, which contains the list of data files.
    pub log_path: PathBuf,
    /// Paths of the data files, in file order, if they were moved; otherwise empty.
    pub data_paths: Vec<PathBuf>,
    /// The identity that the database must have, if known.
    pub guid: Option<Guid>,
    /// Whether nothing is ever committed.
    pub is_read_only: bool,
}

impl OpenDatabase {
    /// A database whose files are at the paths in its log.
    pub fn new(name: &str, log_path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            log_path: log_path.into(),
            data_paths: Vec::new(),
            guid: None,
            is_read_only: false,
        }
    }
}
