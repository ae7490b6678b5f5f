//! Transfers executed by `io_uring`.
//!
//! Invariants behind the `unsafe` of this file:
//! 1. The memory of a submitted transfer stays in `slots` until its completion was received; the
//!    buffer types keep their bytes on the heap, so moving the owner does not move them.
//! 2. Registered memory belongs to pools that the ring owns, so its addresses are not reused while
//!    the ring lives.
//! 3. `Drop` receives the completions of everything in flight before dropping the slots.

use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, squeue, types};

use super::{Completion, Direction, Transfer, direct_bytes};
use crate::BufferPool;

/// A ring and its transfers in flight.
pub(super) struct Ring {
    rings: IoUring,
    slots: Vec<Option<Transfer>>,
    /// Address, length and index of registered buffers, by address.
    regions: Vec<(usize, usize, u16)>,
    _pools: Vec<BufferPool>,
    in_flight: usize,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ring({} in flight)", self.in_flight)
    }
}

impl Ring {
    pub(super) fn new(depth: usize, pools: &[&BufferPool]) -> io::Result<Self> {
        let rings = IoUring::new(depth.next_power_of_two() as u32)?;
        let regions: Vec<(usize, usize)> = pools
            .iter()
            .flat_map(|pool| pool.regions().iter().copied())
            .collect();
        let mut ring = Self {
            rings,
            slots: (0..depth).map(|_| None).collect(),
            regions: Vec::new(),
            _pools: pools.iter().map(|pool| (*pool).clone()).collect(),
            in_flight: 0,
        };
        ring.register(&regions);
        Ok(ring)
    }

    /// Registers buffers; if refused (a limit on locked memory), transfers are mapped individually.
    fn register(&mut self, regions: &[(usize, usize)]) {
        if regions.is_empty() {
            return;
        }
        let vectors: Vec<libc::iovec> = regions
            .iter()
            .map(|&(address, bytes)| libc::iovec {
                iov_base: std::ptr::with_exposed_provenance_mut(address),
                iov_len: bytes,
            })
            .collect();
        #[expect(unsafe_code, reason = "the kernel is reported addresses")]
        // SAFETY: the ranges are buffers of pools that this ring owns (invariant 2).
        let registered = unsafe { self.rings.submitter().register_buffers(&vectors) };
        if registered.is_ok() {
            self.regions = (0..)
                .zip(regions)
                .map(|(index, &(start, bytes))| (start, bytes, index))
                .collect();
            self.regions.sort_unstable();
        }
    }

    /// The registered buffer that contains a memory range.
    fn region_of(&self, address: usize, bytes: usize) -> Option<u16> {
        let behind = self
            .regions
            .partition_point(|&(start, ..)| start <= address);
        let &(start, length, index) = self.regions.get(behind.checked_sub(1)?)?;
        (address + bytes <= start + length).then_some(index)
    }

    /// Submits a transfer to the kernel; returns it if the ring is full.
    pub(super) fn submit(&mut self, mut transfer: Transfer) -> Result<(), Box<Transfer>> {
        let Some(slot) = self.slots.iter().position(Option::is_none) else {
            return Err(Box::new(transfer));
        };
        let entry = self.entry(&mut transfer).user_data(slot as u64);
        self.slots[slot] = Some(transfer);
        #[expect(unsafe_code, reason = "the kernel is reported addresses")]
        // SAFETY: the memory of the entry stays in its slot until completion (invariant 1), and the
        // descriptor belongs to the file in the same slot.
        let pushed = unsafe { self.rings.submission().push(&entry) };
        if pushed.is_err() {
            let back = self.slots[slot].take();
            return back.map_or(Ok(()), |transfer| Err(Box::new(transfer)));
        }
        self.in_flight += 1;
        // A refused submission stays in the ring and is submitted with the next call, at the latest
        // in `wait`.
        drop(self.rings.submit());
        Ok(())
    }

    fn entry(&self, transfer: &mut Transfer) -> squeue::Entry {
        let direct = direct_bytes(transfer);
        let (descriptor, bytes) = match transfer.file.direct_descriptor() {
            Some(descriptor) if direct > 0 => (descriptor, direct),
            _ => (transfer.file.as_file().as_raw_fd(), transfer.range.len()),
        };
        let (file, length) = (types::Fd(descriptor), bytes as u32);
        let (range, offset) = (transfer.range.clone(), transfer.offset);
        // Memory written by the kernel is borrowed mutably. A read into shared memory was refused
        // before.
        let writable = match transfer.direction {
            Direction::Read => transfer.memory.bytes_mut(),
            Direction::Write => None,
        };
        if let Some(content) = writable {
            let address = content[range].as_mut_ptr();
            return match self.region_of(address as usize, bytes) {
                Some(index) => opcode::ReadFixed::new(file, address, length, index)
                    .offset(offset)
                    .build(),
                None => opcode::Read::new(file, address, length)
                    .offset(offset)
                    .build(),
            };
        }
        let address = transfer.memory.bytes()[range].as_ptr();
        match self.region_of(address as usize, bytes) {
            Some(index) => opcode::WriteFixed::new(file, address, length, index)
                .offset(offset)
                .build(),
            None => opcode::Write::new(file, address, length)
                .offset(offset)
                .build(),
        }
    }

    pub(super) fn wait(&mut self) -> Option<Completion> {
        let (slot, result) = self.next_completion()?;
        let mut transfer = self.slots.get_mut(slot)?.take()?;
        let asked = transfer.range.len();
        let result = match usize::try_from(result) {
            Ok(done) if done == asked => Ok(done),
            Ok(done) => transfer.complete(done),
            Err(_) if is_passing(-result) => transfer.complete(0),
            Err(_) => Err(io::Error::from_raw_os_error(-result)),
        };
        Some(Completion { transfer, result })
    }

    /// Slot and raw result of the next completion.
    fn next_completion(&mut self) -> Option<(usize, i32)> {
        while self.in_flight > 0 {
            if let Some(entry) = self.rings.completion().next() {
                self.in_flight -= 1;
                return Some((entry.user_data() as usize, entry.result()));
            }
            // Interrupted, or temporarily out of memory: keep waiting for what is in flight.
            if self.rings.submit_and_wait(1).is_err() {
                std::thread::yield_now();
            }
        }
        None
    }
}

/// Errors after which the plain blocking call is tried: interruptions, and transfers that a file
/// system refuses on a direct descriptor.
fn is_passing(code: i32) -> bool {
    [libc::EINTR, libc::EAGAIN, libc::EINVAL, libc::EOPNOTSUPP].contains(&code)
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.next_completion().is_some() {}
    }
}
