//! The I/O dispenser: runs page writes, with a limited number in flight; the caller merges
//! neighbouring pages.
//!
//! Invariants:
//! - At most `limit` requests are in flight over all databases; `submit` waits for a free slot.
//! - A request is listed from before its write starts until its completion has run, so the list
//!   shows all pending writes of a database without a look at the pool.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use windlass_base::panic::contained;
use windlass_io::AlignedBuffer;

use crate::options::InstanceOptions;
use crate::pool::DatabaseNumber;
use crate::storage::StorageFile;

/// A write of neighbouring pages of one file.
pub(crate) struct Request {
    pub(crate) database: DatabaseNumber,
    pub(crate) file: Arc<dyn StorageFile>,
    /// Byte offset in the file.
    pub(crate) offset: u64,
    /// The pages, in the first `length` bytes.
    pub(crate) buffer: AlignedBuffer,
    /// Bytes to write.
    pub(crate) length: usize,
    /// Runs when the write has ended.
    pub(crate) done: Box<dyn FnOnce(io::Result<()>) + Send>,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({} bytes at {})", self.length, self.offset)
    }
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<(u64, Request)>,
    buffers: Vec<AlignedBuffer>,
    in_flight: BTreeSet<(DatabaseNumber, u64)>,
    next: u64,
    stopping: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    ended: Condvar,
    limit: usize,
}

/// Runs writes on its own threads, or in the caller's thread if it has none.
#[derive(Debug)]
pub(crate) struct Dispenser {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    inline: bool,
}

/// Maximum bytes of a request: neighbouring pages are merged up to this size.
pub(crate) const MERGED_BYTES: usize = 256 * 1024;

/// Name of the dispenser's threads in errors.
pub(crate) const PAGE_WRITER: &str = "page writer";

/// Maximum number of writing threads; further requests wait in the queue.
const THREADS_MAX: usize = 8;

impl Dispenser {
    /// Threads write if `options` ask for background work; otherwise `submit` does.
    pub(crate) fn new(options: &InstanceOptions) -> io::Result<Self> {
        let limit = options.requests_in_flight;
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            ended: Condvar::new(),
            limit: limit.max(1),
        });
        let mut threads = Vec::new();
        if options.background {
            for number in 0..limit.clamp(1, THREADS_MAX) {
                let shared = Arc::clone(&shared);
                let builder = std::thread::Builder::new().name(format!("page-writer-{number}"));
                threads.push(builder.spawn(move || shared.serve())?);
            }
        }
        Ok(Self {
            shared,
            inline: threads.is_empty(),
            threads: Mutex::new(threads),
        })
    }

    /// Returns a buffer for a request; buffers are reused.
    pub(crate) fn buffer(&self) -> AlignedBuffer {
        let kept = self.shared.state.lock().buffers.pop();
        kept.unwrap_or_else(|| AlignedBuffer::new(MERGED_BYTES))
    }

    /// Submits a write; waits while too many are in flight.
    pub(crate) fn submit(&self, request: Request) {
        let mut state = self.shared.state.lock();
        while state.in_flight.len() >= self.shared.limit {
            self.shared.ended.wait(&mut state);
        }
        let number = state.next;
        state.next += 1;
        state.in_flight.insert((request.database, number));
        if self.inline {
            drop(state);
            self.shared.run(number, request);
        } else {
            state.queue.push_back((number, request));
            self.shared.work.notify_one();
        }
    }

    /// Waits for the writes of a database that are pending now; returns their number.
    pub(crate) fn drain(&self, database: DatabaseNumber) -> u64 {
        let mut state = self.shared.state.lock();
        let last = state.next;
        let range = (database, 0)..(database, last);
        let visited = state.in_flight.range(range.clone()).count() as u64;
        while state.in_flight.range(range.clone()).next().is_some() {
            self.shared.ended.wait(&mut state);
        }
        visited
    }
}

impl Shared {
    fn serve(&self) {
        loop {
            let (number, request) = {
                let mut state = self.state.lock();
                loop {
                    if let Some(next) = state.queue.pop_front() {
                        break next;
                    }
                    if state.stopping {
                        return;
                    }
                    self.work.wait(&mut state);
                }
            };
            self.run(number, request);
        }
    }

    fn run(&self, number: u64, request: Request) {
        let written = contained(PAGE_WRITER, || {
            let bytes = &request.buffer[..request.length];
            request.file.write_at(bytes, request.offset)
        });
        let outcome = written.unwrap_or_else(|panicked| Err(panicked.into()));
        // The completion catches its own panics and reports them to the thread that waits for the
        // write.
        (request.done)(outcome);
        let mut state = self.state.lock();
        state.in_flight.remove(&(request.database, number));
        if state.buffers.len() < self.limit {
            state.buffers.push(request.buffer);
        }
        drop(state);
        self.ended.notify_all();
    }
}

impl Drop for Dispenser {
    fn drop(&mut self) {
        self.shared.state.lock().stopping = true;
        self.shared.work.notify_all();
        for thread in self.threads.lock().drain(..) {
            // The last owner may be a completion that runs on one of these threads.
            if thread.thread().id() == std::thread::current().id() {
                continue;
            }
            // A panic there was already reported with its write.
            let _ended = thread.join();
        }
    }
}
