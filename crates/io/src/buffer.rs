//! Memory that direct I/O accepts. The one place with allocation by alignment.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::DIRECT_ALIGNMENT;

/// Buffers of at least this many octets, the usual huge page, are aligned to it and ask for huge
/// pages: compressors read a frame at random, and direct I/O pins fewer pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A fixed-size, zero-initialised buffer aligned to [`DIRECT_ALIGNMENT`].
pub struct AlignedBuffer {
    start: NonNull<u8>,
    layout: Layout,
}

impl AlignedBuffer {
    /// Allocates `bytes`, rounded up to a multiple of [`DIRECT_ALIGNMENT`] (at least one).
    ///
    /// # Panics
    /// If `bytes` is within one alignment of the address space's size, which no plan allows.
    pub fn new(bytes: usize) -> Self {
        let rounded = bytes.max(1).next_multiple_of(DIRECT_ALIGNMENT);
        let alignment = if rounded >= HUGE_PAGE_BYTES {
            HUGE_PAGE_BYTES
        } else {
            DIRECT_ALIGNMENT
        };
        let layout = Layout::from_size_align(rounded, alignment)
            .expect("a buffer is smaller than the address space");
        #[expect(unsafe_code, reason = "std has no safe allocation by alignment")]
        // SAFETY: the layout has a non-zero size, by `max(1)` above.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        if alignment == HUGE_PAGE_BYTES {
            let advice = rustix::mm::Advice::LinuxHugepage;
            #[expect(unsafe_code, reason = "advice on the allocation above")]
            // SAFETY: the range is the allocation; this advice changes no content. A kernel without
            // huge pages refuses it, and the memory is as good as before.
            let _advised = unsafe { rustix::mm::madvise(start.as_ptr().cast(), rounded, advice) };
        }
        #[expect(unsafe_code, reason = "makes the allocation above octets")]
        // SAFETY: `start` points to `rounded` octets of this allocation. They are written only after the
        // advice, because the first touch of a page decides its size.
        unsafe {
            start.as_ptr().write_bytes(0, rounded);
        }
        Self { start, layout }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        #[expect(unsafe_code, reason = "view of the allocation above")]
        // SAFETY: `start` points to `layout.size()` initialised octets that this value owns.
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size())
        }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        #[expect(unsafe_code, reason = "view of the allocation above")]
        // SAFETY: as in `deref`, and `&mut self` makes the view the only one.
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size())
        }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "frees the allocation above")]
        // SAFETY: allocated in `new` with this very layout and not freed before.
        unsafe {
            dealloc(self.start.as_ptr(), self.layout);
        }
    }
}

#[expect(unsafe_code, reason = "the buffer owns plain octets")]
// SAFETY: the buffer owns its memory alone, like a `Box<[u8]>`.
unsafe impl Send for AlignedBuffer {}

#[expect(unsafe_code, reason = "the buffer owns plain octets")]
// SAFETY: shared access only reads; there is no interior mutability.
unsafe impl Sync for AlignedBuffer {}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuffer({} octets)", self.layout.size())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_rounded_up() {
        let mut buffer = AlignedBuffer::new(5000);
        assert_eq!(buffer.len(), 8192);
        assert_eq!(buffer.as_ptr() as usize % DIRECT_ALIGNMENT, 0);
        assert!(buffer.iter().all(|&octet| octet == 0));
        buffer[8191] = 7;
        assert_eq!(buffer[8191], 7);
    }
}
