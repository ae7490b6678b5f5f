//! Many transfers in flight from one thread.
//!
//! A [`Queue`] takes [`Transfer`]s, each owning its memory, and returns them when they are
//! complete, in any order. It uses `io_uring` where the kernel allows it; otherwise a few threads,
//! with the same result. Either way a completed transfer is whole: short reads and writes are
//! continued, and misaligned ones use the ordinary descriptor.
//!
//! Invariants:
//! 1. Memory that the kernel may access is owned by the queue: a transfer is returned only after
//!    its completion, and dropping a queue waits for everything in flight.
//! 2. At most `depth` transfers are in flight; [`Queue::submit`] fails instead of waiting.

mod ring;
mod threads;

use std::io;
use std::ops::Range;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use crate::{AlignedBuffer, BufferPool, DIRECT_ALIGNMENT, DirectFile, PooledBuffer};

/// Which way the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the file into memory.
    Read,
    /// From memory into the file.
    Write,
}

/// Memory of a transfer. It does not move when its owner moves.
#[derive(Debug)]
pub enum Memory {
    /// A separate buffer.
    Own(AlignedBuffer),
    Pooled(PooledBuffer),
    /// A pool buffer shared by several writes. Cannot be read into.
    Shared(Arc<PooledBuffer>),
}

impl Memory {
    /// All bytes of the buffer.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(buffer) => buffer,
            Self::Pooled(buffer) => buffer,
            Self::Shared(buffer) => buffer,
        }
    }

    /// All bytes of the buffer, unless it is shared.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match self {
            Self::Own(buffer) => Some(buffer),
            Self::Pooled(buffer) => Some(buffer),
            Self::Shared(_) => None,
        }
    }
}

/// A range of a file and the memory that it is read into or written from.
#[derive(Debug)]
pub struct Transfer {
    pub file: Arc<DirectFile>,
    pub direction: Direction,
    /// File offset of the first byte.
    pub offset: u64,
    pub memory: Memory,
    /// The bytes of the buffer to transfer.
    pub range: Range<usize>,
    /// A number chosen by the caller.
    pub tag: u64,
}

impl Transfer {
    /// Continues after the first `done` bytes, blocking, until all are transferred or the file
    /// ends.
    fn complete(&mut self, done: usize) -> io::Result<usize> {
        #[cfg(test)]
        assert_ne!(self.tag, tests::TAG_OF_PANIC, "the tests wish so");
        let offset = self.offset + done as u64;
        let range = self.range.start + done..self.range.end;
        let rest = match self.direction {
            Direction::Read => {
                let bytes = self.memory.bytes_mut().ok_or_else(not_writable)?;
                self.file.read_at(&mut bytes[range], offset)?
            }
            Direction::Write => {
                let bytes = &self.memory.bytes()[range];
                self.file.write_at(bytes, offset)?;
                bytes.len()
            }
        };
        Ok(done + rest)
    }
}

fn not_writable() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "a shared buffer cannot be read into",
    )
}

#[derive(Debug)]
pub struct Completion {
    /// The submitted transfer, with its memory.
    pub transfer: Transfer,
    /// Bytes transferred; fewer than requested only for a read at the end of the file.
    pub result: io::Result<usize>,
}

/// What executes transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoMethod {
    /// `io_uring`.
    Ring,
    /// Threads with blocking calls.
    Threads,
}

/// The requested I/O method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IoMethodChoice {
    /// `io_uring` if the kernel and the file support it, else threads.
    #[default]
    Auto,
    /// `io_uring`, even for buffered files.
    Ring,
    /// Threads, always.
    Threads,
}

impl FromStr for IoMethodChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "io_uring" => Ok(Self::Ring),
            "threads" => Ok(Self::Threads),
            _ => Err(format!("'{text}' is not auto, io_uring or threads")),
        }
    }
}

/// The I/O method for a file, and the reason for it in the plan's words.
///
/// Buffered files get threads: `io_uring` would pass each of their transfers to a kernel thread
/// anyway.
pub fn io_method_for(choice: IoMethodChoice, is_direct: bool) -> (IoMethod, String) {
    if choice == IoMethodChoice::Threads {
        return (IoMethod::Threads, "as given".to_owned());
    }
    if choice == IoMethodChoice::Ring && ring_refusal().is_none() {
        return (IoMethod::Ring, "as given".to_owned());
    }
    if !is_direct {
        let because = "no direct I/O there; the page cache is used and then released";
        return (IoMethod::Threads, because.to_owned());
    }
    match ring_refusal() {
        None => (
            IoMethod::Ring,
            "direct, many requests from one thread".to_owned(),
        ),
        Some(reason) => (
            IoMethod::Threads,
            format!("the kernel refuses io_uring: {reason}"),
        ),
    }
}

/// Why `io_uring` is not available; determined once per process.
pub fn ring_refusal() -> Option<&'static str> {
    static REFUSAL: OnceLock<Option<String>> = OnceLock::new();
    REFUSAL
        .get_or_init(|| ring::Ring::new(1, &[]).err().map(|error| error.to_string()))
        .as_deref()
}

/// Transfers in flight. Owned by one thread.
#[derive(Debug)]
pub struct Queue {
    depth: usize,
    in_flight: usize,
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    Ring(Box<ring::Ring>),
    Threads(threads::Threads),
}

impl Queue {
    /// A queue for at most `depth` transfers. Registers the buffers of `pools` with the kernel,
    /// which saves mapping them for each transfer; if registration fails, only that saving is lost.
    pub fn new(depth: usize, io_method: IoMethod, pools: &[&BufferPool]) -> Self {
        let depth = depth.max(1);
        let ring = match io_method {
            IoMethod::Ring => ring::Ring::new(depth, pools).ok(),
            IoMethod::Threads => None,
        };
        Self {
            depth,
            in_flight: 0,
            backend: match ring {
                Some(ring) => Backend::Ring(Box::new(ring)),
                None => Backend::Threads(threads::Threads::new(depth)),
            },
        }
    }

    /// The I/O method in use.
    pub fn io_method(&self) -> IoMethod {
        match self.backend {
            Backend::Ring(_) => IoMethod::Ring,
            Backend::Threads(_) => IoMethod::Threads,
        }
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub fn has_room(&self) -> bool {
        self.in_flight < self.depth
    }

    /// Starts a transfer.
    ///
    /// # Errors
    /// Returns the transfer if the queue is full, its range is not in its memory, it would read
    /// into shared memory, or the I/O method refuses it.
    pub fn submit(&mut self, transfer: Transfer) -> Result<(), Box<Transfer>> {
        let fits = transfer.range.start <= transfer.range.end
            && transfer.range.end <= transfer.memory.bytes().len();
        let is_readable =
            transfer.direction == Direction::Write || !matches!(transfer.memory, Memory::Shared(_));
        if !self.has_room() || !fits || !is_readable {
            return Err(Box::new(transfer));
        }
        match &mut self.backend {
            Backend::Ring(ring) => ring.submit(transfer)?,
            Backend::Threads(threads) => threads.submit(transfer)?,
        }
        self.in_flight += 1;
        Ok(())
    }

    /// Waits for a transfer to complete. `None` if none is in flight.
    ///
    /// # Errors
    /// If a transfer in flight is lost.
    pub fn wait(&mut self) -> io::Result<Option<Completion>> {
        if self.in_flight == 0 {
            return Ok(None);
        }
        self.in_flight -= 1;
        let completion = match &mut self.backend {
            Backend::Ring(ring) => ring.wait(),
            Backend::Threads(threads) => threads.wait(),
        };
        let lost = || io::Error::other("a transfer was lost on its way");
        completion.ok_or_else(lost).map(Some)
    }
}

/// How many bytes at the start of a transfer can bypass the page cache.
fn direct_bytes(transfer: &Transfer) -> usize {
    let bytes = &transfer.memory.bytes()[transfer.range.clone()];
    let aligned = (bytes.as_ptr() as usize).is_multiple_of(DIRECT_ALIGNMENT)
        && transfer.offset.is_multiple_of(DIRECT_ALIGNMENT as u64)
        && transfer.file.is_direct();
    if aligned {
        bytes.len() / DIRECT_ALIGNMENT * DIRECT_ALIGNMENT
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Access;

    const PIECE: usize = 16384;

    /// A transfer with this tag panics in its thread.
    pub(super) const TAG_OF_PANIC: u64 = u64::MAX;

    fn file(folder: &tempfile::TempDir) -> Arc<DirectFile> {
        Arc::new(DirectFile::open(&folder.path().join("f"), Access::CreateNew).unwrap())
    }

    fn transfer(
        file: &Arc<DirectFile>,
        direction: Direction,
        memory: Memory,
        tag: u64,
    ) -> Transfer {
        let range = 0..PIECE;
        let (file, offset) = (Arc::clone(file), tag * PIECE as u64);
        Transfer {
            file,
            direction,
            offset,
            memory,
            range,
            tag,
        }
    }

    fn both(test: impl Fn(IoMethod)) {
        test(IoMethod::Ring);
        test(IoMethod::Threads);
    }

    #[test]
    fn what_was_written_is_read_with_several_in_flight() {
        both(|io_method| {
            let folder = tempfile::tempdir().unwrap();
            let file = file(&folder);
            let pool = BufferPool::new(4, PIECE);
            let mut queue = Queue::new(4, io_method, &[&pool]);
            for tag in 0..4 {
                let mut buffer = pool.take().unwrap();
                buffer.fill(tag as u8 + 1);
                queue
                    .submit(transfer(
                        &file,
                        Direction::Write,
                        Memory::Pooled(buffer),
                        tag,
                    ))
                    .unwrap();
            }
            assert!(!queue.has_room());
            while let Some(done) = queue.wait().unwrap() {
                assert_eq!(done.result.unwrap(), PIECE);
            }
            for tag in 0..4 {
                let buffer = Memory::Own(AlignedBuffer::new(PIECE));
                queue
                    .submit(transfer(&file, Direction::Read, buffer, tag))
                    .unwrap();
            }
            let mut seen = 0;
            while let Some(done) = queue.wait().unwrap() {
                assert_eq!(done.result.unwrap(), PIECE);
                let expected = done.transfer.tag as u8 + 1;
                assert!(
                    done.transfer
                        .memory
                        .bytes()
                        .iter()
                        .all(|&byte| byte == expected)
                );
                seen += 1;
            }
            assert_eq!(seen, 4);
        });
    }

    #[test]
    fn a_read_at_the_end_is_short_and_misaligned_pieces_arrive() {
        both(|io_method| {
            let folder = tempfile::tempdir().unwrap();
            let file = file(&folder);
            file.write_at(&[7; PIECE + 10], 0).unwrap();
            let mut queue = Queue::new(2, io_method, &[]);
            for tag in [0, 1, 2] {
                let mut read = transfer(
                    &file,
                    Direction::Read,
                    Memory::Own(AlignedBuffer::new(PIECE)),
                    tag,
                );
                read.range = 3..PIECE;
                let (expected, end) = match tag {
                    0 => (PIECE - 3, 0),
                    1 => (10, PIECE),
                    _ => (0, 2 * PIECE),
                };
                read.offset = end as u64;
                queue.submit(read).unwrap();
                let done = queue.wait().unwrap().unwrap();
                assert_eq!(done.result.unwrap(), expected);
                assert!(
                    done.transfer.memory.bytes()[3..3 + expected]
                        .iter()
                        .all(|&o| o == 7)
                );
            }
        });
    }

    #[test]
    fn failures_are_reported_and_bad_requests_come_back() {
        both(|io_method| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("f");
            std::fs::write(&path, [0; PIECE]).unwrap();
            let read_only = Arc::new(DirectFile::open(&path, Access::Read).unwrap());
            let mut queue = Queue::new(1, io_method, &[]);
            let write = transfer(
                &read_only,
                Direction::Write,
                Memory::Own(AlignedBuffer::new(PIECE)),
                0,
            );
            queue.submit(write).unwrap();
            assert!(queue.wait().unwrap().unwrap().result.is_err());
            assert!(queue.wait().unwrap().is_none());
            let mut beyond = transfer(
                &read_only,
                Direction::Read,
                Memory::Own(AlignedBuffer::new(PIECE)),
                0,
            );
            beyond.range = 0..PIECE + 1;
            assert!(queue.submit(beyond).is_err());
        });
    }

    #[test]
    fn dropping_a_queue_waits_and_returns_the_buffers() {
        both(|io_method| {
            let folder = tempfile::tempdir().unwrap();
            let file = file(&folder);
            file.write_at(&[7; 4 * PIECE], 0).unwrap();
            let pool = BufferPool::new(2, PIECE);
            let mut queue = Queue::new(2, io_method, &[&pool]);
            for tag in 0..2 {
                let buffer = Memory::Pooled(pool.take().unwrap());
                queue
                    .submit(transfer(&file, Direction::Read, buffer, tag))
                    .unwrap();
            }
            drop(queue);
            assert!(pool.take().is_some() && pool.try_take().is_some());
        });
    }

    #[test]
    fn a_panic_in_a_thread_that_carries_is_the_failure_of_its_transfer_and_of_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(&folder);
        let pool = BufferPool::new(2, PIECE);
        let mut queue = Queue::new(2, IoMethod::Threads, &[&pool]);
        for round in 0..8 {
            for tag in [TAG_OF_PANIC, round] {
                let memory = Memory::Pooled(pool.take().unwrap());
                let mut write = transfer(&file, Direction::Write, memory, 0);
                write.tag = tag;
                queue.submit(write).unwrap();
            }
            while let Some(done) = queue.wait().unwrap() {
                match done.transfer.tag {
                    TAG_OF_PANIC => {
                        let reported = done.result.unwrap_err().to_string();
                        assert!(reported.contains("the tests wish so"), "{reported}");
                    }
                    _ => assert_eq!(done.result.unwrap(), PIECE),
                }
            }
        }
    }
}
