//! Large zeroed arrays that use memory only where they are touched.
//!
//! Address space comes from an anonymous mapping without reservation: a buffer pool of two
//! terabytes can be created on a laptop, and grows as it is used.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Types for which all bytes zero is a valid value, and which need no drop.
#[expect(unsafe_code, reason = "a promise about the representation of a type")]
///
/// # Safety
/// An implementor must be valid when every byte is zero, must not need drop, and must not require an
/// alignment greater than a memory page.
pub unsafe trait ZeroValid {}

#[expect(unsafe_code, reason = "integers")]
// SAFETY: an integer; zero is a value.
unsafe impl ZeroValid for u8 {}
#[expect(unsafe_code, reason = "integers")]
// SAFETY: an integer; zero is a value.
unsafe impl ZeroValid for AtomicU32 {}
#[expect(unsafe_code, reason = "integers")]
// SAFETY: an integer; zero is a value.
unsafe impl ZeroValid for AtomicU64 {}
#[expect(unsafe_code, reason = "arrays of such")]
// SAFETY: every element is valid when zero.
unsafe impl<T: ZeroValid, const N: usize> ZeroValid for [T; N] {}

/// A zeroed array in reserved address space.
pub struct Reserved<T: ZeroValid> {
    start: NonNull<T>,
    length: usize,
}

impl<T: ZeroValid> Reserved<T> {
    /// Reserves `length` elements; at least one.
    ///
    /// # Errors
    /// `OutOfMemory` if the address space does not suffice.
    pub fn new(length: usize) -> io::Result<Self> {
        let length = length.max(1);
        let bytes = length
            .checked_mul(size_of::<T>())
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        #[expect(unsafe_code, reason = "std cannot reserve address space")]
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing else.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }
}

impl<T: ZeroValid> Deref for Reserved<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        #[expect(unsafe_code, reason = "view of the mapping above")]
        // SAFETY: the mapping holds `length` elements, zero or written, aligned to memory pages.
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr(), self.length)
        }
    }
}

impl<T: ZeroValid> DerefMut for Reserved<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        #[expect(unsafe_code, reason = "view of the mapping above")]
        // SAFETY: as in `deref`, and `&mut self` makes the view the only one.
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length)
        }
    }
}

impl<T: ZeroValid> Drop for Reserved<T> {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "ends the mapping above")]
        // SAFETY: mapped in `new` with this length, not unmapped before, no view outlives `self`.
        let _refused = unsafe { munmap(self.start.as_ptr().cast(), self.length * size_of::<T>()) };
    }
}

#[expect(unsafe_code, reason = "owns its elements")]
// SAFETY: the mapping has a single owner, like a `Box<[T]>`.
unsafe impl<T: ZeroValid + Send> Send for Reserved<T> {}

#[expect(unsafe_code, reason = "owns its elements")]
// SAFETY: shared access provides `&[T]` only.
unsafe impl<T: ZeroValid + Sync> Sync for Reserved<T> {}

impl<T: ZeroValid> fmt::Debug for Reserved<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reserved({} elements)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_terabyte_can_be_reserved_and_used_in_part() {
        let mut large = Reserved::<u8>::new(1 << 40).unwrap();
        large[(1 << 40) - 1] = 7;
        assert_eq!((large[0], large[(1 << 40) - 1]), (0, 7));
        let words = Reserved::<[AtomicU64; 4]>::new(3).unwrap();
        words[2][3].store(9, Ordering::Relaxed);
        assert_eq!(words[2][3].load(Ordering::Relaxed), 9);
    }
}
