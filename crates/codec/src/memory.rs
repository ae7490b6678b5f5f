//! Memory of libzstd's compression contexts and of the filters, in huge pages if the system has them.
//!
//! The tables of a match finder are megabytes accessed randomly. With pages of 4 KB nearly every
//! look-up misses the TLB; with huge pages none does.
//!
//! Every block begins with a [`Header`] that records its layout, because libzstd does not pass it
//! when freeing. Only blocks of this module are freed here.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::fmt;
use std::ptr::{NonNull, null_mut};

use zstd_safe::zstd_sys::ZSTD_customMem;

/// Blocks of at least this size, the usual huge page, are aligned to it.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Precedes a block; a cache line, so that what follows stays aligned.
#[repr(align(64))]
struct Header(Layout);

const HEADER_BYTES: usize = size_of::<Header>();

/// The functions by which a context allocates and frees its memory.
pub(crate) fn functions() -> ZSTD_customMem {
    ZSTD_customMem {
        customAlloc: Some(allocate),
        customFree: Some(free),
        opaque: null_mut(),
    }
}

/// At least `bytes` bytes, or null: libzstd then reports that memory is short.
extern "C" fn allocate(_opaque: *mut c_void, bytes: usize) -> *mut c_void {
    let Some(layout) = layout_of(bytes) else {
        return null_mut();
    };
    // SAFETY: the layout's size is that of a header at least, hence not zero.
    let start = unsafe { alloc(layout) };
    if start.is_null() {
        return null_mut();
    }
    if layout.align() == HUGE_PAGE_BYTES {
        // SAFETY: the range is the block just allocated.
        unsafe { wish_huge_pages(start, layout.size()) };
    }
    let header = start.cast::<c_void>().cast::<Header>();
    // SAFETY: the block starts with enough space for a header and is aligned for it.
    unsafe { header.write(Header(layout)) };
    // SAFETY: the block is longer than a header.
    unsafe { start.add(HEADER_BYTES) }.cast()
}

/// Wishes for huge pages, where programs have to.
///
/// # Safety
/// The range is one block of allocated memory.
#[cfg(target_os = "linux")]
unsafe fn wish_huge_pages(start: *mut u8, bytes: usize) {
    let advice = rustix::mm::Advice::LinuxHugepage;
    // SAFETY: the caller has the block; this advice changes no content. A kernel without huge pages refuses it, which
    // does no harm.
    let _advised = unsafe { rustix::mm::madvise(start.cast(), bytes, advice) };
}

/// Nothing elsewhere.
///
/// # Safety
/// As on Linux.
#[cfg(not(target_os = "linux"))]
unsafe fn wish_huge_pages(_start: *mut u8, _bytes: usize) {}

/// Frees a block of [`allocate`]; null is ignored.
extern "C" fn free(_opaque: *mut c_void, address: *mut c_void) {
    let Some(address) = NonNull::new(address.cast::<u8>()) else {
        return;
    };
    // SAFETY: libzstd passes what `allocate` returned, which follows its header.
    let start = unsafe { address.as_ptr().sub(HEADER_BYTES) };
    // SAFETY: `allocate` wrote the header there.
    let Header(layout) = unsafe { start.cast::<c_void>().cast::<Header>().read() };
    // SAFETY: the block was allocated with this very layout, and libzstd frees it once.
    unsafe { dealloc(start, layout) }
}

/// Bytes in one block, which grows when more are asked for; empty until then.
#[derive(Default)]
pub(crate) struct Buffer(Option<(NonNull<u8>, usize)>);

impl Buffer {
    /// Bytes of a block beyond those asked for.
    pub(crate) const EXTRA_BYTES: usize = HEADER_BYTES;

    /// The first `bytes` bytes, of unknown content; `None` if memory is short.
    pub(crate) fn of(&mut self, bytes: usize) -> Option<&mut [u8]> {
        let start = match self.0 {
            Some((start, length)) if length >= bytes => start,
            _ => {
                drop(std::mem::take(self));
                let start = NonNull::new(allocate(null_mut(), bytes))?.cast::<u8>();
                // SAFETY: the block was just allocated and has that many bytes.
                unsafe { start.write_bytes(0, bytes) };
                self.0 = Some((start, bytes));
                start
            }
        };
        // SAFETY: the block has at least that many bytes, all written, and is borrowed with `self`.
        Some(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), bytes) })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some((start, _)) = self.0.take() {
            free(null_mut(), start.as_ptr().cast());
        }
    }
}

// SAFETY: the block belongs to this value alone.
unsafe impl Send for Buffer {}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.0.map_or(0, |(_, length)| length);
        f.debug_tuple("Buffer").field(&length).finish()
    }
}

fn layout_of(bytes: usize) -> Option<Layout> {
    let whole = bytes.checked_add(HEADER_BYTES)?;
    let alignment = if whole >= HUGE_PAGE_BYTES {
        HUGE_PAGE_BYTES
    } else {
        align_of::<Header>()
    };
    Layout::from_size_align(whole, alignment).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_every_size_are_aligned_writable_and_freed() {
        for bytes in [0, 1, 64, 4096, HUGE_PAGE_BYTES - 1, 5 * HUGE_PAGE_BYTES + 7] {
            let block = allocate(null_mut(), bytes);
            assert!(!block.is_null());
            assert_eq!(block as usize % HEADER_BYTES, 0);
            // SAFETY: the block has that many bytes.
            unsafe { block.cast::<u8>().write_bytes(0xA5, bytes) };
            free(null_mut(), block);
        }
    }

    #[test]
    fn a_buffer_grows_and_keeps_its_block_otherwise() {
        let mut buffer = Buffer::default();
        buffer.of(100).unwrap()[99] = 7;
        assert_eq!(buffer.of(50).unwrap().len(), 50);
        assert_eq!(buffer.of(100).unwrap()[99], 7, "the same block");
        let longer = buffer.of(HUGE_PAGE_BYTES).unwrap();
        assert!(longer.iter().all(|&byte| byte == 0));
        assert!(buffer.of(usize::MAX).is_none());
        assert_eq!(buffer.of(3).unwrap(), [0; 3], "after memory was short");
    }

    #[test]
    fn what_no_memory_can_hold_is_refused() {
        assert!(allocate(null_mut(), usize::MAX).is_null());
        assert!(allocate(null_mut(), isize::MAX as usize).is_null());
        free(null_mut(), null_mut());
    }
}
