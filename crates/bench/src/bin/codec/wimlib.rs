//! wimlib's XPRESS, the best public encoder of the format, loaded at run time.
//!
//! It is only used for comparison: without the library the program says so and continues.

#![expect(
    unsafe_code,
    reason = "calls into a C library that is loaded at run time"
)]

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use anyhow::{Context, ensure};
use libloading::Library;
use windlass_codec::Filter;
use windlass_codec::xpress::BlockDecoder;

use crate::contender::{Contender, Payload};

const BLOCK_BYTES: usize = 65_536;
const XPRESS: c_int = 1;

type Create = unsafe extern "C" fn(c_int, usize, c_uint, *mut *mut c_void) -> c_int;
type CreateDecompressor = unsafe extern "C" fn(c_int, usize, *mut *mut c_void) -> c_int;
type Compress =
    unsafe extern "C" fn(*const c_void, usize, *mut c_void, usize, *mut c_void) -> usize;
type Decompress =
    unsafe extern "C" fn(*const c_void, usize, *mut c_void, usize, *mut c_void) -> c_int;
type Free = unsafe extern "C" fn(*mut c_void);

/// A compressor and a decompressor of wimlib.
pub(crate) struct Wimlib {
    level: c_uint,
    compressor: *mut c_void,
    decompressor: *mut c_void,
    compress: Compress,
    decompress: Decompress,
    free_compressor: Free,
    free_decompressor: Free,
    _library: Library,
}

impl Wimlib {
    pub(crate) fn new(level: c_uint) -> Result<Self, anyhow::Error> {
        // SAFETY: wimlib's initialisers only set up its own tables.
        let library = unsafe { Library::new("libwim.so.15") }.context("libwim.so.15")?;
        let create: Create = symbol(&library, b"wimlib_create_compressor")?;
        let create_decompressor: CreateDecompressor =
            symbol(&library, b"wimlib_create_decompressor")?;
        let (mut compressor, mut decompressor) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the signature is that of wimlib.h, and the pointer is valid for the write.
        let status = unsafe { create(XPRESS, BLOCK_BYTES, level, &raw mut compressor) };
        ensure!(status == 0, "wimlib_create_compressor: {status}");
        // SAFETY: as above.
        let status = unsafe { create_decompressor(XPRESS, BLOCK_BYTES, &raw mut decompressor) };
        ensure!(status == 0, "wimlib_create_decompressor: {status}");
        Ok(Self {
            level,
            compressor,
            decompressor,
            compress: symbol(&library, b"wimlib_compress")?,
            decompress: symbol(&library, b"wimlib_decompress")?,
            free_compressor: symbol(&library, b"wimlib_free_compressor")?,
            free_decompressor: symbol(&library, b"wimlib_free_decompressor")?,
            _library: library,
        })
    }
}

/// A function of the library; it stays loaded as long as the value that holds both.
fn symbol<T: Copy>(library: &Library, name: &[u8]) -> Result<T, anyhow::Error> {
    // SAFETY: each caller names the signature that wimlib.h declares for this name.
    let symbol = unsafe { library.get::<T>(name) }?;
    Ok(*symbol)
}

impl Contender for Wimlib {
    fn name(&self) -> String {
        format!("wimlib XPRESS {}", self.level)
    }

    fn frame_bytes(&self) -> usize {
        BLOCK_BYTES
    }

    fn encode(
        &mut self,
        frame: &[u8],
        output: &mut [u8],
    ) -> Result<Option<Payload>, anyhow::Error> {
        // SAFETY: both slices are valid for their lengths, and the compressor is alive.
        let length = unsafe {
            (self.compress)(
                frame.as_ptr().cast(),
                frame.len(),
                output.as_mut_ptr().cast(),
                frame.len() - 1,
                self.compressor,
            )
        };
        Ok((length != 0).then_some(Payload {
            bytes: length,
            filter: Filter::NONE,
        }))
    }

    fn decode(
        &mut self,
        payload: &[u8],
        _filter: Filter,
        frame: &mut [u8],
    ) -> Result<(), anyhow::Error> {
        // SAFETY: both slices are valid for their lengths, and the decompressor is alive.
        let status = unsafe {
            (self.decompress)(
                payload.as_ptr().cast(),
                payload.len(),
                frame.as_mut_ptr().cast(),
                frame.len(),
                self.decompressor,
            )
        };
        ensure!(status == 0, "wimlib_decompress: {status}");
        Ok(())
    }
}

impl Drop for Wimlib {
    fn drop(&mut self) {
        // SAFETY: the compressor came from wimlib and is freed once.
        unsafe { (self.free_compressor)(self.compressor) };
        // SAFETY: the same for the decompressor.
        unsafe { (self.free_decompressor)(self.decompressor) };
    }
}

/// wimlib's compressor with our decoder, so that both decoders are measured on the same payloads.
pub(crate) struct WimlibToOurs {
    compressor: Wimlib,
    decoder: BlockDecoder,
}

impl WimlibToOurs {
    pub(crate) fn new(level: c_uint) -> Result<Self, anyhow::Error> {
        Ok(Self {
            compressor: Wimlib::new(level)?,
            decoder: BlockDecoder::new(),
        })
    }
}

impl Contender for WimlibToOurs {
    fn name(&self) -> String {
        format!("{}, our decoder", self.compressor.name())
    }

    fn frame_bytes(&self) -> usize {
        BLOCK_BYTES
    }

    fn encode(
        &mut self,
        frame: &[u8],
        output: &mut [u8],
    ) -> Result<Option<Payload>, anyhow::Error> {
        self.compressor.encode(frame, output)
    }

    fn decode(
        &mut self,
        payload: &[u8],
        _filter: Filter,
        frame: &mut [u8],
    ) -> Result<(), anyhow::Error> {
        Ok(self.decoder.decode_block(payload, frame)?)
    }
}
