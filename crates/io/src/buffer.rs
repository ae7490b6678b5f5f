//! Memory suitable for direct I/O. The only place with aligned allocation.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::DIRECT_ALIGNMENT;

/// Memory of at least this size, the usual huge page, is aligned to it and requests huge pages:
/// compressors access a frame randomly, and direct I/O pins fewer pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A fixed-size, zero-initialised buffer aligned to [`DIRECT_ALIGNMENT`].
pub struct AlignedBuffer {
    start: NonNull<u8>,
    bytes: usize,
    /// Keeps the memory allocated; buffers that were allocated together share it.
    _memory: Arc<Allocation>,
}

/// Memory that is freed with the last buffer in it.
struct Allocation {
    start: NonNull<u8>,
    origin: Origin,
}

/// Where memory comes from.
enum Origin {
    Heap(Layout),
    /// A mapping of its own, in which the memory begins at a huge page.
    Mapping {
        start: NonNull<u8>,
        bytes: usize,
    },
}

impl Allocation {
    fn zeroed(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, DIRECT_ALIGNMENT)
            .expect("a buffer is smaller than the address space");
        let mapped = (bytes >= HUGE_PAGE_BYTES).then(|| Self::mapped(bytes));
        if let Some(memory) = mapped.flatten() {
            return memory;
        }
        #[expect(unsafe_code, reason = "std has no safe allocation by alignment")]
        // SAFETY: the layout has a non-zero size: callers round up from one.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        let origin = Origin::Heap(layout);
        Self { start, origin }
    }

    /// Memory in huge pages, if the system has them. The kernel zeroes each page when it is touched first, so a
    /// run does not pay for buffers that it never uses: those of sixteen large transfers to eight files take
    /// longer to zero than a small database takes to read. `None` without address space.
    fn mapped(bytes: usize) -> Option<Self> {
        let whole = bytes.checked_add(HUGE_PAGE_BYTES)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        #[expect(unsafe_code, reason = "std cannot map memory")]
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing else.
        let mapping =
            unsafe { mmap_anonymous(std::ptr::null_mut(), whole, protection, MapFlags::PRIVATE) };
        let mapping = NonNull::new(mapping.ok()?.cast::<u8>())?;
        let skipped = mapping.as_ptr().align_offset(HUGE_PAGE_BYTES);
        #[expect(unsafe_code, reason = "a place in the mapping above")]
        // SAFETY: the next huge page begins less than one huge page after the start, and `bytes` follow it.
        let start = unsafe { mapping.add(skipped) };
        #[expect(unsafe_code, reason = "advice on the mapping above")]
        // SAFETY: the range is in the mapping; this advice changes no content. A kernel without huge pages
        // refuses it, which does no harm.
        let _advised = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        let origin = Origin::Mapping {
            start: mapping,
            bytes: whole,
        };
        Some(Self { start, origin })
    }
}

impl AlignedBuffer {
    /// Allocates `bytes`, rounded up to a multiple of [`DIRECT_ALIGNMENT`] (at least one).
    ///
    /// # Panics
    /// If `bytes` is within one alignment of the address space's size, which no plan allows.
    pub fn new(bytes: usize) -> Self {
        let bytes = rounded(bytes);
        let memory = Arc::new(Allocation::zeroed(bytes));
        Self {
            start: memory.start,
            bytes,
            _memory: memory,
        }
    }

    /// Allocates `count` buffers of `bytes` each, rounded up likewise, in one piece, so that
    /// buffers smaller than a huge page are in huge pages too. The memory is freed with the last of
    /// them.
    ///
    /// # Panics
    /// As [`AlignedBuffer::new`], for all of them together.
    pub fn several(count: usize, bytes: usize) -> Vec<Self> {
        if count == 0 {
            return Vec::new();
        }
        let bytes = rounded(bytes);
        let all = bytes.checked_mul(count);
        let all = all.expect("buffers are smaller than the address space");
        let memory = Arc::new(Allocation::zeroed(all));
        let buffer = |index: usize| {
            #[expect(unsafe_code, reason = "a place in the allocation above")]
            // SAFETY: `index` is below `count`, so this address and the `bytes` after it are within the
            // allocation.
            let start = unsafe { memory.start.add(index * bytes) };
            Self {
                start,
                bytes,
                _memory: Arc::clone(&memory),
            }
        };
        (0..count).map(buffer).collect()
    }
}

fn rounded(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(DIRECT_ALIGNMENT)
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        #[expect(unsafe_code, reason = "view of the allocation above")]
        // SAFETY: `start` points to `bytes` initialised bytes that this value owns.
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr(), self.bytes)
        }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        #[expect(unsafe_code, reason = "view of the allocation above")]
        // SAFETY: as in `deref`, and `&mut self` makes the view the only one.
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes)
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        match self.origin {
            Origin::Heap(layout) => {
                #[expect(unsafe_code, reason = "frees the allocation")]
                // SAFETY: allocated in `zeroed` with this very layout and not freed before.
                unsafe {
                    dealloc(self.start.as_ptr(), layout);
                }
            }
            Origin::Mapping { start, bytes } => {
                #[expect(unsafe_code, reason = "removes the mapping")]
                // SAFETY: this very mapping, and nothing refers to it: every buffer in it keeps `self`.
                let _unmapped = unsafe { munmap(start.as_ptr().cast(), bytes) };
            }
        }
    }
}

#[expect(unsafe_code, reason = "the address of memory that any thread may free")]
// SAFETY: the allocation is only kept and freed through this; the bytes belong to the buffers.
unsafe impl Send for Allocation {}

#[expect(unsafe_code, reason = "nothing is reached through a shared reference")]
// SAFETY: as above.
unsafe impl Sync for Allocation {}

#[expect(unsafe_code, reason = "the buffer owns plain bytes")]
// SAFETY: the buffer owns its bytes alone, like a `Box<[u8]>`: no two buffers overlap.
unsafe impl Send for AlignedBuffer {}

#[expect(unsafe_code, reason = "the buffer owns plain bytes")]
// SAFETY: shared access only reads; there is no interior mutability.
unsafe impl Sync for AlignedBuffer {}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuffer({} bytes)", self.bytes)
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
        assert!(buffer.iter().all(|&byte| byte == 0));
        buffer[8191] = 7;
        assert_eq!(buffer[8191], 7);
    }

    #[test]
    fn large_buffers_begin_at_a_huge_page_and_are_zero() {
        let mut buffers = AlignedBuffer::several(3, HUGE_PAGE_BYTES);
        assert_eq!(buffers[0].as_ptr() as usize % HUGE_PAGE_BYTES, 0);
        let mut last = buffers.pop().unwrap();
        assert!(last.iter().all(|&byte| byte == 0));
        last.fill(7);
        drop(buffers);
        assert!(last.iter().all(|&byte| byte == 7));
    }

    #[test]
    fn buffers_made_together_are_apart_and_outlive_each_other() {
        assert!(AlignedBuffer::several(0, 5).is_empty());
        let mut buffers = AlignedBuffer::several(3, 5000);
        for (buffer, byte) in buffers.iter_mut().zip(1..) {
            assert_eq!(buffer.len(), 8192);
            assert_eq!(buffer.as_ptr() as usize % DIRECT_ALIGNMENT, 0);
            assert!(buffer.iter().all(|&byte| byte == 0));
            buffer.fill(byte);
        }
        let last = buffers.pop().unwrap();
        assert!(buffers[1].iter().all(|&byte| byte == 2));
        drop(buffers);
        assert!(last.iter().all(|&byte| byte == 3));
    }
}
