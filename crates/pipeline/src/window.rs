//! Reads a media family sequentially through one large window.
//!
//! Chunk headers are small and payloads large; reading each separately would cost two calls and two
//! seeks per chunk. The window is filled with one aligned direct read and serves both. Once two
//! windows follow each other without a gap, the next ones are read ahead.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_device::DeviceReader;
use windlass_io::queue::{Direction, IoMethod, Memory, Queue, Transfer};
use windlass_io::{AlignedBuffer, DIRECT_ALIGNMENT, DirectFile};
use windlass_media::{ReadAt, ReadError};

/// A view of a device that makes sequential reads cheap. Owned by one thread.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    device: &'a dyn DeviceReader,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    buffer: AlignedBuffer,
    /// Family offset of the buffer's first byte; a multiple of the alignment.
    offset: u64,
    /// Filled bytes of the buffer.
    filled: usize,
    ahead: Option<Ahead>,
    reads: Reads,
}

/// Statistics of a window.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reads {
    pub(crate) calls: u64,
    /// Reads in flight, integrated over the time spent waiting for them.
    pub(crate) in_flight: Duration,
}

/// Windows being read while another is in use.
#[derive(Debug)]
struct Ahead {
    queue: Queue,
    file: Arc<DirectFile>,
    len: u64,
    /// Free buffers.
    spare: Vec<AlignedBuffer>,
    /// Windows that arrived early: offset, memory, filled bytes.
    arrived: Vec<(u64, AlignedBuffer, io::Result<usize>)>,
    /// Offset of the next window to request.
    next: u64,
}

impl<'a> Window<'a> {
    /// A window of `bytes` over `device`.
    pub(crate) fn new(device: &'a dyn DeviceReader, bytes: usize) -> Self {
        let buffer = AlignedBuffer::new(bytes);
        Self {
            device,
            state: RefCell::new(State {
                buffer,
                offset: 0,
                filled: 0,
                ahead: None,
                reads: Reads::default(),
            }),
        }
    }

    /// As [`Self::new`], with up to `depth` windows in flight if the device is a file.
    pub(crate) fn reading_ahead(
        device: &'a dyn DeviceReader,
        bytes: usize,
        depth: usize,
        io_method: IoMethod,
    ) -> Self {
        let mut window = Self::new(device, bytes);
        if let Some(file) = device.file() {
            window.state.get_mut().ahead = Some(Ahead {
                queue: Queue::new(depth, io_method, &[]),
                file: Arc::clone(file),
                len: device.len(),
                spare: AlignedBuffer::several(depth, bytes),
                arrived: Vec::new(),
                next: 0,
            });
        }
        window
    }

    /// The statistics so far.
    pub(crate) fn reads(&self) -> Reads {
        self.state.borrow().reads
    }
}

impl Ahead {
    /// Exchanges `buffer` for the window at `offset`. `follows` says whether it is the next one in
    /// sequence.
    fn exchange(
        &mut self,
        buffer: &mut AlignedBuffer,
        offset: u64,
        follows: bool,
        reads: &mut Reads,
    ) -> io::Result<usize> {
        if !follows {
            self.discard()?;
            self.next = offset;
        }
        let wanted = if follows { usize::MAX } else { 1 };
        while self.queue.has_room() && self.queue.in_flight() < wanted && self.next < self.len {
            let Some(spare) = self.spare.pop() else {
                break;
            };
            self.submit(spare)?;
            reads.calls += 1;
        }
        loop {
            if let Some(index) = self.arrived.iter().position(|window| window.0 == offset) {
                let (_, memory, result) = self.arrived.swap_remove(index);
                self.spare.push(std::mem::replace(buffer, memory));
                return result;
            }
            let (begun, in_flight) = (Instant::now(), self.queue.in_flight() as u32);
            if !self.complete()? {
                // Beyond the end of the device.
                return Ok(0);
            }
            reads.in_flight += begun.elapsed() * in_flight;
        }
    }

    fn submit(&mut self, memory: AlignedBuffer) -> io::Result<()> {
        let bytes = memory.len();
        let transfer = Transfer {
            file: Arc::clone(&self.file),
            direction: Direction::Read,
            offset: self.next,
            memory: Memory::Own(memory),
            range: 0..bytes,
            tag: 0,
        };
        self.next += bytes as u64;
        let submitted = self.queue.submit(transfer);
        submitted.map_err(|_| io::Error::other("the read does not fit its window"))
    }

    /// Waits for one window; `false` if none is in flight.
    fn complete(&mut self) -> io::Result<bool> {
        let Some(done) = self.queue.wait()? else {
            return Ok(false);
        };
        if let Memory::Own(memory) = done.transfer.memory {
            self.arrived
                .push((done.transfer.offset, memory, done.result));
        }
        Ok(true)
    }

    /// Discards what was read ahead, because the reader moved elsewhere.
    fn discard(&mut self) -> io::Result<()> {
        while self.complete()? {}
        let memories = self.arrived.drain(..).map(|(_, memory, _)| memory);
        self.spare.extend(memories);
        Ok(())
    }
}

impl State {
    /// Copies the content of the window from `offset` on and returns its length.
    fn copy_to(&self, offset: u64, out: &mut [u8]) -> usize {
        let Some(skip) = offset
            .checked_sub(self.offset)
            .and_then(|skip| usize::try_from(skip).ok())
        else {
            return 0;
        };
        let held = self.buffer[..self.filled].get(skip..).unwrap_or_default();
        let count = held.len().min(out.len());
        out[..count].copy_from_slice(&held[..count]);
        count
    }

    fn refill(&mut self, device: &dyn DeviceReader, offset: u64) -> Result<(), io::Error> {
        let offset = offset / DIRECT_ALIGNMENT as u64 * DIRECT_ALIGNMENT as u64;
        let follows = self.filled > 0 && offset == self.offset + self.buffer.len() as u64;
        self.offset = offset;
        self.filled = 0;
        self.filled = match &mut self.ahead {
            Some(ahead) => ahead.exchange(&mut self.buffer, offset, follows, &mut self.reads)?,
            None => {
                self.reads.calls += 1;
                device
                    .read_at(&mut self.buffer, offset)
                    .map_err(|error| error.source)?
            }
        };
        Ok(())
    }
}

impl ReadAt for Window<'_> {
    fn len(&self) -> u64 {
        self.device.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError> {
        let mut state = self.state.borrow_mut();
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            done += state.copy_to(at, &mut out[done..]);
            if done == out.len() {
                break;
            }
            let at = offset + done as u64;
            let fail = |source| ReadError {
                offset: at,
                length: (out.len() - done) as u64,
                source,
            };
            state.refill(self.device, at).map_err(fail)?;
            if state.copy_to(at, &mut [0]) == 0 {
                return Err(fail(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use windlass_device::DeviceAddress;

    use super::*;

    #[test]
    fn reads_are_served_across_window_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let content: Vec<u8> = (0..40_000_u32).map(|value| (value % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let device = DeviceAddress::disk(&path).open_reader().unwrap();
        let ahead = |io_method| Window::reading_ahead(&*device, 8192, 2, io_method);
        for window in [
            Window::new(&*device, 8192),
            ahead(IoMethod::Ring),
            ahead(IoMethod::Threads),
        ] {
            serves_any_range(&window, &content);
        }
    }

    fn serves_any_range(window: &Window<'_>, content: &[u8]) {
        for (offset, bytes) in [
            (0, 10),
            (4000, 20_000),
            (100, 50),
            (39_990, 10),
            (0, 40_000),
        ] {
            let mut out = vec![0; bytes];
            window.read_at(offset, &mut out).unwrap();
            assert!(out == content[offset as usize..offset as usize + bytes]);
        }
        assert!(
            window.read_at(39_995, &mut [0; 10]).is_err(),
            "beyond the end"
        );
        assert!(window.reads().calls < 24, "windows, not single reads");
    }
}
