//! Storage and other services of the operating system: aligned memory, direct files, directories.
//!
//! Everything specific to an operating system belongs in this crate. Callers see plain blocking calls
//! that are safe from many threads; each item documents what they must know.
//!
//! - [`AlignedBuffer`], [`BufferPool`]: memory for direct I/O, allocated once.
//! - [`DirectFile`]: positioned reads and writes that bypass the page cache, with an automatic
//!   fallback.
//! - [`FileIdentity`]: which file it is, whatever its names.
//! - [`FileState`]: whether a file is still the same, with the same content.
//! - [`queue`]: many transfers in flight from one thread, by `io_uring` or by threads.
//! - [`mod@process`]: whether a process is still itself, or a child of its `fork`.
//! - [`limits`]: the limits that the system sets for the process.
//! - [`processor`], [`priority`]: CPU time and priority of threads.
//! - [`Reserved`]: arrays in reserved address space, for pools of which only a part is used.
//! - [`directory`]: durable renames and free space.
//! - [`own`]: files of Windlass next to files of others, protected against planted links; who may work in a
//!   folder of Windlass.
//! - [`other_name`]: hard links, and files that are mount points.
//! - [`obeyed`]: texts that nobody else can have written.
//! - [`output`]: files written for the user under a name they chose.
//! - [`secret`]: small files with keys.
//! - [`succession`]: finished files take the place of earlier ones, and of no others.
//! - [`notify`]: status notifications to a service manager.
//! - Locks of byte ranges that belong to an open file: [`DirectFile::lock_range`].

mod buffer;
pub mod directory;
mod file;
mod file_identity;
mod file_state;
pub mod limits;
pub mod lock;
pub mod notify;
pub mod obeyed;
pub mod other_name;
pub mod output;
pub mod own;
mod pool;
pub mod priority;
pub mod process;
pub mod processor;
pub mod queue;
mod reserved;
pub mod secret;
pub mod succession;

pub use buffer::AlignedBuffer;
pub use file::{Access, DirectFile, open_readable, read_text, read_whole};
pub use file_identity::FileIdentity;
pub use file_state::FileState;
pub use pool::{BufferPool, PooledBuffer};
pub use reserved::{Reserved, ZeroValid};

/// Alignment of memory, offsets and lengths for direct I/O.
///
/// 4096 is the largest logical block size of disks in use, so a transfer aligned to it is accepted
/// by every Linux file system that knows direct I/O.
pub const DIRECT_ALIGNMENT: usize = 4096;
