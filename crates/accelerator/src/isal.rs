//! Intel ISA-L as a compressor: built in (`build.rs`), or the system's `libisal.so.2`.
//!
//! Only declarations of its public header are used: the fields before the stream's internal state,
//! whose layout has not changed since 2018, and the two calls of stateless compression. The
//! internal state is allocated with spare bytes, and the library initialises it. A library whose output
//! for a test pattern does not expand again is not used.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::Arc;

use libloading::Library;
use windlass_codec::{Algorithm, Decoder, DeflateFailed, DeflateProvider, Filter, RawDeflate};

/// The name that fixes the binary interface.
pub const ISAL_LIBRARY: &str = "libisal.so.2";

/// The level of [`Isal::load`]: `docs/codecs.md` says why.
pub const ISAL_LEVEL: u32 = 1;

/// The highest level of ISA-L.
pub const ISAL_LEVEL_MAX: u32 = 3;

/// Bytes of internal state; version 2.30 uses 83 KB.
const STATE_BYTES: usize = 160 << 10;

/// The library's own suggestion for level 3, which is sufficient for every level. Longer buffers
/// change nothing.
const LEVEL_BUFFER_BYTES: usize = 388 << 10;

const COMP_OK: c_int = 0;
const STATELESS_OVERFLOW: c_int = -1;

/// `struct isal_zstream` of `igzip_lib.h`.
#[repr(C, align(64))]
struct Stream {
    next_in: *const u8,
    avail_in: u32,
    total_in: u32,
    next_out: *mut u8,
    avail_out: u32,
    total_out: u32,
    hufftables: *mut c_void,
    level: u32,
    level_buf_size: u32,
    level_buf: *mut u8,
    is_last: u16,
    flush: u16,
    gzip_flag: u16,
    hist_bits: u16,
    internal_state: [u8; STATE_BYTES],
}

type Initialize = unsafe extern "C" fn(*mut Stream);
type Deflate = unsafe extern "C" fn(*mut Stream) -> c_int;

/// The two calls, and the library, which must stay loaded if it is not built in.
struct Calls {
    initialize: Initialize,
    deflate: Deflate,
    _library: Option<Library>,
}

#[cfg(isal)]
unsafe extern "C" {
    fn isal_deflate_stateless_init(stream: *mut Stream);
    fn isal_deflate_stateless(stream: *mut Stream) -> c_int;
}

/// Which ISA-L compresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsalOrigin {
    BuiltIn,
    /// `libisal.so.2`.
    System,
}

impl IsalOrigin {
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "ISA-L, built in",
            Self::System => "ISA-L of the system",
        }
    }
}

/// ISA-L, loaded and tested.
#[derive(Clone)]
pub struct Isal {
    calls: Arc<Calls>,
    level: u32,
    origin: IsalOrigin,
}

impl Isal {
    /// The one in this program, else the system's.
    ///
    /// # Errors
    /// As [`Isal::load`].
    pub fn find() -> Result<Self, IsalUnavailable> {
        Self::built_in(ISAL_LEVEL).or_else(|_| Self::load())
    }

    /// The one in this program, at a level.
    ///
    /// # Errors
    /// [`IsalUnavailable`] if it was built without ISA-L, or it fails the test.
    #[cfg(isal)]
    pub fn built_in(level: u32) -> Result<Self, IsalUnavailable> {
        let calls = Calls {
            initialize: isal_deflate_stateless_init,
            deflate: isal_deflate_stateless,
            _library: None,
        };
        Self::tested(calls, level, IsalOrigin::BuiltIn)
    }

    /// The one in this program, at a level.
    ///
    /// # Errors
    /// [`IsalUnavailable::NotFound`]: this program was built without ISA-L.
    #[cfg(not(isal))]
    pub fn built_in(_level: u32) -> Result<Self, IsalUnavailable> {
        Err(IsalUnavailable::NotFound)
    }

    pub fn origin(&self) -> IsalOrigin {
        self.origin
    }

    fn tested(calls: Calls, level: u32, origin: IsalOrigin) -> Result<Self, IsalUnavailable> {
        let isal = Self {
            calls: Arc::new(calls),
            level: level.min(ISAL_LEVEL_MAX),
            origin,
        };
        match isal.passes_trial() {
            true => Ok(isal),
            false => Err(IsalUnavailable::Incompatible),
        }
    }

    /// Loads the system's library and tests it.
    ///
    /// # Errors
    /// [`IsalUnavailable`] if it does not exist, lacks a function, or fails the test.
    pub fn load() -> Result<Self, IsalUnavailable> {
        Self::load_level(ISAL_LEVEL)
    }

    /// As [`Isal::load`] at another level, 0 to [`ISAL_LEVEL_MAX`]: for measuring.
    ///
    /// # Errors
    /// As [`Isal::load`].
    pub fn load_level(level: u32) -> Result<Self, IsalUnavailable> {
        // SAFETY: the initialisers of ISA-L only choose code for the processor.
        let library =
            unsafe { Library::new(ISAL_LIBRARY) }.map_err(|_| IsalUnavailable::NotFound)?;
        // SAFETY: the signature is that of igzip_lib.h.
        let initialize = unsafe { library.get::<Initialize>(b"isal_deflate_stateless_init") }
            .map(|symbol| *symbol)
            .map_err(|_| IsalUnavailable::Incompatible)?;
        // SAFETY: as above.
        let deflate = unsafe { library.get::<Deflate>(b"isal_deflate_stateless") }
            .map(|symbol| *symbol)
            .map_err(|_| IsalUnavailable::Incompatible)?;
        let calls = Calls {
            initialize,
            deflate,
            _library: Some(library),
        };
        Self::tested(calls, level, IsalOrigin::System)
    }

    /// Whether the bundled library expands ISA-L's output for a test pattern.
    fn passes_trial(&self) -> bool {
        let pattern: Vec<u8> = (0..1_u32 << 16)
            .map(|at| (at.wrapping_mul(at >> 5) >> 7) as u8 & 0x3F)
            .collect();
        let mut stream = vec![0; pattern.len()];
        let Ok(Some(bytes)) = self.open().deflate(&pattern, &mut stream) else {
            return false;
        };
        let mut expanded = vec![0; pattern.len()];
        let decoded = Decoder::new().decode(
            Algorithm::QatDeflate,
            Filter::NONE,
            &stream[..bytes],
            &mut expanded,
        );
        decoded.is_ok() && expanded == pattern
    }

    fn open(&self) -> IsalStream {
        IsalStream {
            calls: Arc::clone(&self.calls),
            level: self.level,
            stream: Box::new(Stream::EMPTY),
            level_buffer: vec![0; LEVEL_BUFFER_BYTES / size_of::<u64>()].into_boxed_slice(),
        }
    }
}

impl fmt::Debug for Isal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Isal")
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

impl DeflateProvider for Isal {
    fn compressor(&self) -> Option<Box<dyn RawDeflate>> {
        Some(Box::new(self.open()))
    }
}

/// Why ISA-L is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsalUnavailable {
    /// There is no such library.
    NotFound,
    /// It lacks a function, or deviates from its header.
    Incompatible,
}

impl fmt::Display for IsalUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => write!(f, "{ISAL_LIBRARY} is not installed"),
            Self::Incompatible => write!(f, "{ISAL_LIBRARY} does not behave as expected"),
        }
    }
}

impl Stream {
    const EMPTY: Self = Self {
        next_in: ptr::null(),
        avail_in: 0,
        total_in: 0,
        next_out: ptr::null_mut(),
        avail_out: 0,
        total_out: 0,
        hufftables: ptr::null_mut(),
        level: 0,
        level_buf_size: 0,
        level_buf: ptr::null_mut(),
        is_last: 0,
        flush: 0,
        gzip_flag: 0,
        hist_bits: 0,
        internal_state: [0; STATE_BYTES],
    };
}

/// One thread's context.
struct IsalStream {
    calls: Arc<Calls>,
    level: u32,
    stream: Box<Stream>,
    level_buffer: Box<[u64]>,
}

// SAFETY: the pointers inside are set before each call and not used after it; ISA-L keeps no state
// outside the stream and its buffer.
unsafe impl Send for IsalStream {}

impl RawDeflate for IsalStream {
    fn deflate(&mut self, input: &[u8], output: &mut [u8]) -> Result<Option<usize>, DeflateFailed> {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(|_| DeflateFailed);
        let (avail_in, avail_out) = (length(input)?, length(output)?);
        let stream: &mut Stream = &mut self.stream;
        // SAFETY: the stream is valid for writing, and larger than the library's.
        unsafe { (self.calls.initialize)(stream) };
        stream.next_in = input.as_ptr();
        stream.avail_in = avail_in;
        stream.next_out = output.as_mut_ptr();
        stream.avail_out = avail_out;
        stream.level = self.level;
        stream.level_buf = self.level_buffer.as_mut_ptr().cast();
        stream.level_buf_size = LEVEL_BUFFER_BYTES as u32;
        stream.is_last = 1;
        // SAFETY: input, output and the level's buffer are valid for the lengths given, and the
        // stream has just been initialised by the library.
        let status = unsafe { (self.calls.deflate)(stream) };
        match status {
            COMP_OK if stream.avail_in == 0 && stream.total_out <= avail_out => {
                Ok(Some(stream.total_out as usize))
            }
            STATELESS_OVERFLOW => Ok(None),
            _ => Err(DeflateFailed),
        }
    }
}

impl fmt::Debug for IsalStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IsalStream")
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repetitive, random and empty content.
    fn contents() -> Vec<Vec<u8>> {
        let mut state = 1_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u8
        };
        let words: Vec<u8> = (0..300_000)
            .map(|at| b"a page of words "[at * at % 16])
            .collect();
        let noise: Vec<u8> = (0..70_000).map(|_| random()).collect();
        vec![words, noise, vec![7; 1 << 20], vec![0], Vec::new()]
    }

    #[test]
    fn what_every_isa_l_deflates_at_every_level_the_bundled_library_expands() {
        let levels = 0..=ISAL_LEVEL_MAX;
        let mut found = 0;
        for level in levels {
            let all = [Isal::built_in(level), Isal::load_level(level)];
            for isal in all.into_iter().flatten() {
                found += 1;
                let mut compressor = isal.open();
                for content in contents() {
                    let mut output = vec![0; content.len() + 1024];
                    let bytes = compressor.deflate(&content, &mut output).unwrap().unwrap();
                    let mut expanded = vec![0; content.len()];
                    let decoded = Decoder::new().decode(
                        Algorithm::QatDeflate,
                        Filter::NONE,
                        &output[..bytes],
                        &mut expanded,
                    );
                    let case = format!("{:?} {level} {}", isal.origin, content.len());
                    assert!(content.is_empty() || decoded.is_ok(), "{case}: {decoded:?}");
                    assert!(expanded == content, "{case}");
                }
                let (noise, mut short) = (&contents()[1], vec![0; 1000]);
                assert!(
                    compressor
                        .deflate(noise, &mut short)
                        .is_ok_and(|end| end.is_none())
                );
            }
        }
        assert!(cfg!(not(isal)) || found >= 4, "it is built in");
    }
}
