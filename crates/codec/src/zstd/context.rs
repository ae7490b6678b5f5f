//! A compression context of libzstd that uses [`crate::memory`].
//!
//! `zstd_safe` has no way to pass in an allocator, so the calls are made here.

use std::ffi::c_int;
use std::fmt;
use std::ptr::NonNull;

use zstd_safe::zstd_sys::{
    ZSTD_CCtx, ZSTD_CCtx_reset, ZSTD_CCtx_setParameter, ZSTD_ResetDirective, ZSTD_cParameter,
    ZSTD_compress2, ZSTD_createCCtx_advanced, ZSTD_freeCCtx, ZSTD_isError,
};

use crate::memory;

/// Owns the context; used by one thread at a time.
pub(super) struct Context(NonNull<ZSTD_CCtx>);

impl Context {
    /// `None` if memory is short.
    pub(super) fn new() -> Option<Self> {
        // SAFETY: both functions of the allocator are given, as libzstd requires.
        let context = unsafe { ZSTD_createCCtx_advanced(memory::functions()) };
        NonNull::new(context).map(Self)
    }

    /// Sets one parameter for all following frames.
    ///
    /// # Errors
    /// libzstd's code.
    pub(super) fn set(&mut self, parameter: ZSTD_cParameter, value: c_int) -> Result<(), usize> {
        // SAFETY: the context lives as long as `self`, which is borrowed alone.
        let code = unsafe { ZSTD_CCtx_setParameter(self.0.as_ptr(), parameter, value) };
        checked(code).map(drop)
    }

    /// Resets all parameters; memory is kept.
    ///
    /// # Errors
    /// libzstd's code.
    pub(super) fn reset(&mut self) -> Result<(), usize> {
        let everything = ZSTD_ResetDirective::ZSTD_reset_session_and_parameters;
        // SAFETY: as in `set`.
        let code = unsafe { ZSTD_CCtx_reset(self.0.as_ptr(), everything) };
        checked(code).map(drop)
    }

    /// Compresses `input` as one frame; returns its length.
    ///
    /// # Errors
    /// libzstd's code.
    pub(super) fn compress(&mut self, output: &mut [u8], input: &[u8]) -> Result<usize, usize> {
        let context = self.0.as_ptr();
        let (to, room) = (output.as_mut_ptr().cast(), output.len());
        let (from, length) = (input.as_ptr().cast(), input.len());
        // SAFETY: the context as in `set`; both ranges are slices that live through the call.
        let code = unsafe { ZSTD_compress2(context, to, room, from, length) };
        checked(code)
    }

    /// Memory that the context has allocated so far.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        // SAFETY: the context lives as long as `self`.
        unsafe { zstd_safe::zstd_sys::ZSTD_sizeof_CCtx(self.0.as_ptr()) }
    }
}

fn checked(code: usize) -> Result<usize, usize> {
    // SAFETY: only checks the number.
    match unsafe { ZSTD_isError(code) } {
        0 => Ok(code),
        _ => Err(code),
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is freed only here, by the functions that allocated it.
        let _always_zero = unsafe { ZSTD_freeCCtx(self.0.as_ptr()) };
    }
}

// SAFETY: a context is not tied to the thread that created it, and nothing else knows its address.
unsafe impl Send for Context {}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}
