//! The only door to the operating system's storage: aligned memory, direct files, directories.
//!
//! Everything that is special to an operating system stays in this crate. Callers above see plain
//! blocking calls that are safe from many threads; what they must know is written on each item.
//!
//! - [`AlignedBuffer`], [`BufferPool`]: memory that direct I/O accepts, allocated once.
//! - [`DirectFile`]: positioned reads and writes past the page cache, with a fallback by itself.
//! - [`queue`]: many transfers in flight from one thread, by `io_uring` or by threads.
//! - [`processor`], [`priority`]: what threads cost, and how they stand behind others.
//! - [`Reserved`]: arrays in reserved address space, for pools larger than what is used of them.
//! - [`directory`]: durable renames and free space.
//! - [`own`]: files of ours beside files of others, which nobody can replace by a link.
//! - [`output`]: files that are written for the user under a name they gave.
//! - [`secret`]: small files with keys.
//! - [`notify`]: telling a service manager how a service is.

mod buffer;
pub mod directory;
mod file;
mod lock;
pub mod notify;
pub mod output;
pub mod own;
mod pool;
pub mod priority;
pub mod processor;
pub mod queue;
mod reserved;
pub mod secret;

pub use buffer::AlignedBuffer;
pub use file::{Access, DirectFile, open_readable};
pub use pool::{BufferPool, PooledBuffer};
pub use reserved::{Reserved, ZeroValid};

/// Alignment of memory, offsets and lengths for direct I/O.
///
/// 4096 is the largest logical block size of disks in use, so a transfer aligned to it is accepted
/// by every Linux file system that knows direct I/O.
pub const DIRECT_ALIGNMENT: usize = 4096;
