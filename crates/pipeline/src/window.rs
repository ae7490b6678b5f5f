//! Reads a media family through one large window, moving forward.
//!
//! Chunk headers are small and payloads large; reading each by itself would cost two calls and two
//! seeks a chunk. The window is filled with one aligned direct read and serves both.

use std::cell::RefCell;

use windlass_device::DeviceReader;
use windlass_io::{AlignedBuffer, DIRECT_ALIGNMENT};
use windlass_media::{ReadAt, ReadError};

/// A view of a device that is cheap to read from front to back. One thread's own.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    device: &'a dyn DeviceReader,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    buffer: AlignedBuffer,
    /// Family offset of the buffer's first octet; a multiple of the alignment.
    offset: u64,
    /// Octets of the buffer that are filled.
    filled: usize,
    calls: u64,
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
                calls: 0,
            }),
        }
    }

    /// Reads made so far.
    pub(crate) fn calls(&self) -> u64 {
        self.state.borrow().calls
    }
}

impl State {
    /// Copies what the window holds from `offset` on and returns how much that was.
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

    fn refill(&mut self, device: &dyn DeviceReader, offset: u64) -> Result<(), std::io::Error> {
        self.offset = offset / DIRECT_ALIGNMENT as u64 * DIRECT_ALIGNMENT as u64;
        self.filled = 0;
        self.filled = device
            .read_at(&mut self.buffer, self.offset)
            .map_err(|error| error.source)?;
        self.calls += 1;
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
        let window = Window::new(&*device, 8192);
        for (offset, bytes) in [(0, 10), (4000, 20_000), (100, 50), (39_990, 10)] {
            let mut out = vec![0; bytes];
            window.read_at(offset, &mut out).unwrap();
            assert!(out == content[offset as usize..offset as usize + bytes]);
        }
        assert!(
            window.read_at(39_995, &mut [0; 10]).is_err(),
            "beyond the end"
        );
        assert!(window.calls() < 12, "windows, not single reads");
    }
}
