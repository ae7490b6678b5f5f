//! A fixed number of equal buffers, passed around by ownership.
//!
//! Invariant: at most `count` buffers exist, all allocated in [`BufferPool::new`]; a dropped buffer
//! returns to the pool. This bounds the memory of a pipeline.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::AlignedBuffer;

/// A set of buffers; clones share it.
#[derive(Clone)]
pub struct BufferPool {
    shared: Arc<Shared>,
}

struct Shared {
    /// Address and length of every buffer.
    regions: Vec<(usize, usize)>,
    free: Mutex<Free>,
    returned: Condvar,
}

struct Free {
    buffers: Vec<AlignedBuffer>,
    closed: bool,
}

impl BufferPool {
    /// Allocates `count` buffers of `bytes` each (rounded up to the alignment).
    pub fn new(count: usize, bytes: usize) -> Self {
        let buffers = AlignedBuffer::several(count, bytes);
        let regions = buffers
            .iter()
            .map(|buffer| (buffer.as_ptr().expose_provenance(), buffer.len()))
            .collect();
        let free = Mutex::new(Free {
            buffers,
            closed: false,
        });
        Self {
            shared: Arc::new(Shared {
                regions,
                free,
                returned: Condvar::new(),
            }),
        }
    }

    /// Takes a buffer, waiting until one is free. `None` once the pool is closed.
    pub fn take(&self) -> Option<PooledBuffer> {
        let mut free = self
            .shared
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        loop {
            if free.closed {
                return None;
            }
            if let Some(buffer) = free.buffers.pop() {
                return Some(self.pooled(buffer));
            }
            free = self
                .shared
                .returned
                .wait(free)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes a buffer if one is free now.
    pub fn try_take(&self) -> Option<PooledBuffer> {
        let mut free = self
            .shared
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if free.closed {
            return None;
        }
        free.buffers.pop().map(|buffer| self.pooled(buffer))
    }

    fn pooled(&self, buffer: AlignedBuffer) -> PooledBuffer {
        PooledBuffer {
            buffer: Some(buffer),
            home: Arc::clone(&self.shared),
        }
    }

    /// Address and length of every buffer, for registration with the kernel.
    pub(crate) fn regions(&self) -> &[(usize, usize)] {
        &self.shared.regions
    }

    /// Wakes all threads waiting in [`BufferPool::take`]; from then on no buffers are returned.
    pub fn close(&self) {
        self.shared
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .closed = true;
        self.shared.returned.notify_all();
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool").finish_non_exhaustive()
    }
}

/// A buffer of a pool; returns to it when dropped. Has the content of its last use.
pub struct PooledBuffer {
    buffer: Option<AlignedBuffer>,
    home: Arc<Shared>,
}

impl Deref for PooledBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.buffer.as_deref().unwrap_or_default()
    }
}

impl DerefMut for PooledBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.buffer.as_deref_mut().unwrap_or_default()
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.home
                .free
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .buffers
                .push(buffer);
            self.home.returned.notify_one();
        }
    }
}

impl fmt::Debug for PooledBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PooledBuffer({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_dropped_buffer_wakes_the_one_who_waits() {
        let pool = BufferPool::new(1, 4096);
        let first = pool.take().expect("open");
        let waiting = std::thread::spawn({
            let pool = pool.clone();
            move || pool.take().map(|buffer| buffer.len())
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!waiting.is_finished(), "the only buffer is in use");
        drop(first);
        assert_eq!(waiting.join().unwrap(), Some(4096));
    }

    #[test]
    fn closing_ends_the_wait() {
        let pool = BufferPool::new(0, 4096);
        let waiting = std::thread::spawn({
            let pool = pool.clone();
            move || pool.take().is_none()
        });
        pool.close();
        assert!(waiting.join().unwrap());
    }
}
