//! Intel QAT through the vendor's `libqatzip`.
//!
//! The library is loaded at run time. Its own software fallback is disabled, because the bundled one is
//! faster and reports that it is used. The first chunk of every session is expanded again and compared
//! before the device compresses the next.
//!
//! Only the first fields of the library's structures are accessed: the defaults come from the library,
//! and spare bytes follow the fields, because later versions append more.

use std::ffi::{c_int, c_long, c_uint, c_ulong, c_void};
use std::fmt;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use libloading::Library;
use windlass_codec::{Algorithm, Decoder, Filter};

/// The file names of the library.
pub const QATZIP_LIBRARIES: [&str; 2] = ["libqatzip.so.3", "libqatzip.so"];

/// SQL Server's level for QAT.
const LEVEL: c_uint = 1;

const QZ_OK: c_int = 0;
const QZ_DUPLICATE: c_int = 1;
const QZ_BUF_ERROR: c_int = -3;
const QZ_NOSW_NO_HW: c_int = -101;
const QZ_NO_HW: c_int = 11;
const QZ_DIR_COMPRESS: c_int = 0;
const QZ_DEFLATE: u8 = 8;
const QZ_DEFLATE_RAW: c_int = 3;
const NO_SOFTWARE: u8 = 0;
const LAST: c_uint = 1;

/// Spare bytes after the known fields of a structure.
const SPARE_BYTES: usize = 256;

/// `QzSession_T`.
#[repr(C)]
struct Session {
    hw_session_stat: c_long,
    thd_sess_stat: c_int,
    internal: *mut c_void,
    total_in: c_ulong,
    total_out: c_ulong,
    spare: [u8; SPARE_BYTES],
}

/// `QzSessionParamsDeflate_T`.
#[repr(C)]
struct Parameters {
    direction: c_int,
    comp_lvl: c_uint,
    comp_algorithm: u8,
    max_forks: c_uint,
    sw_backup: u8,
    hw_buff_sz: c_uint,
    strm_buff_sz: c_uint,
    input_sz_thrshold: c_uint,
    req_cnt_thrshold: c_uint,
    wait_cnt_thrshold: c_uint,
    polling_mode: c_int,
    is_sensitive_mode: c_uint,
    huffman_hdr: c_int,
    data_fmt: c_int,
    spare: [u8; SPARE_BYTES],
}

/// `QzSoftwareVersionInfo_T`.
#[repr(C)]
#[derive(Clone, Copy)]
struct VersionInfo {
    component_type: c_int,
    component_name: [u8; 64],
    major: c_uint,
    minor: c_uint,
    patch: c_uint,
    build: c_uint,
    reserved: [u8; 52],
}

const COMPONENTS_MAX: usize = 16;
const COMPONENT_KERNEL_DRIVER: c_int = 1;
const COMPONENT_QATZIP: c_int = 3;

type Init = unsafe extern "C" fn(*mut Session, u8) -> c_int;
type Defaults = unsafe extern "C" fn(*mut Parameters) -> c_int;
type Setup = unsafe extern "C" fn(*mut Session, *mut Parameters) -> c_int;
type Compress = unsafe extern "C" fn(
    *mut Session,
    *const u8,
    *mut c_uint,
    *mut u8,
    *mut c_uint,
    c_uint,
) -> c_int;
type End = unsafe extern "C" fn(*mut Session) -> c_int;
type Versions = unsafe extern "C" fn(*mut VersionInfo, *mut c_uint) -> c_int;

/// The library's calls; it stays loaded as long as they may be used.
struct Calls {
    init: Init,
    defaults: Defaults,
    setup: Setup,
    compress: Compress,
    teardown: End,
    close: End,
    versions: Option<Versions>,
    _library: Library,
}

impl Calls {
    fn load(name: &Path) -> Result<Self, QatProblem> {
        // SAFETY: the vendor's initialisers set up the library's own state only.
        let library = unsafe { Library::new(name) }.map_err(|_| QatProblem::LibraryNotFound)?;
        Ok(Self {
            init: symbol(&library, b"qzInit")?,
            defaults: symbol(&library, b"qzGetDefaultsDeflate")?,
            setup: symbol(&library, b"qzSetupSessionDeflate")?,
            compress: symbol(&library, b"qzCompress")?,
            teardown: symbol(&library, b"qzTeardownSession")?,
            close: symbol(&library, b"qzClose")?,
            versions: symbol(&library, b"qzGetSoftwareComponentVersionList").ok(),
            _library: library,
        })
    }
}

/// A function of the library.
fn symbol<T: Copy>(library: &Library, name: &[u8]) -> Result<T, QatProblem> {
    // SAFETY: each caller names the signature that qatzip.h declares for this name.
    let symbol = unsafe { library.get::<T>(name) };
    symbol
        .map(|symbol| *symbol)
        .map_err(|_| QatProblem::Incompatible)
}

/// Why QAT hardware does not compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QatProblem {
    LibraryNotFound,
    /// The library lacks a function, or its output cannot be expanded.
    Incompatible,
    /// The library finds no device.
    NoDevice,
    /// The library does not start: no memory driver, no free instance, no pinned memory.
    StartFailed(i32),
    SessionFailed(i32),
    /// A device that worked has failed.
    DeviceFailed(i32),
}

impl fmt::Display for QatProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LibraryNotFound => write!(f, "{} is not installed", QATZIP_LIBRARIES[1]),
            Self::Incompatible => f.write_str("libqatzip does not behave as expected"),
            Self::NoDevice => f.write_str("libqatzip finds no QAT device"),
            Self::StartFailed(code) => write!(f, "libqatzip does not start (qzInit: {code})"),
            Self::SessionFailed(code) => write!(f, "libqatzip cannot set up a session ({code})"),
            Self::DeviceFailed(code) => write!(f, "the QAT device failed (qzCompress: {code})"),
        }
    }
}

/// Versions reported by the library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QatVersions {
    /// Of `libqatzip`.
    pub library: Option<String>,
    /// Of the kernel driver.
    pub driver: Option<String>,
}

/// `libqatzip` with a device that passed a test.
#[derive(Clone)]
pub(crate) struct Qat {
    calls: Arc<Calls>,
    versions: QatVersions,
}

impl Qat {
    /// Loads the library, `given` or under its usual names, and tests the device.
    pub(crate) fn load(given: Option<&Path>) -> Result<Self, QatProblem> {
        let calls = match given {
            Some(path) => Calls::load(path)?,
            None => Calls::load(Path::new(QATZIP_LIBRARIES[0]))
                .or_else(|_| Calls::load(Path::new(QATZIP_LIBRARIES[1])))?,
        };
        let versions = read_versions(&calls);
        let qat = Self {
            calls: Arc::new(calls),
            versions,
        };
        let pattern: Vec<u8> = (0..1_u32 << 16).map(|at| (at >> 6) as u8).collect();
        let mut output = vec![0; pattern.len()];
        match qat.open()?.deflate(&pattern, &mut output) {
            Ok(_) => Ok(qat),
            Err(problem) => Err(problem),
        }
    }

    pub(crate) fn versions(&self) -> &QatVersions {
        &self.versions
    }

    /// A session for one thread.
    pub(crate) fn open(&self) -> Result<QatSession, QatProblem> {
        let mut session = Box::new(Session::EMPTY);
        // SAFETY: the session is zeroed, as the library requires for a new one, and longer than its own.
        let status = unsafe { (self.calls.init)(&raw mut *session, NO_SOFTWARE) };
        match status {
            QZ_OK | QZ_DUPLICATE => {}
            QZ_NO_HW | QZ_NOSW_NO_HW => return Err(QatProblem::NoDevice),
            code => return Err(QatProblem::StartFailed(code)),
        }
        // From here on the session is closed when dropped.
        let mut opened = QatSession {
            calls: Arc::clone(&self.calls),
            session,
            is_trusted: false,
        };
        let mut parameters = Parameters::EMPTY;
        // SAFETY: the parameters are valid for writing, and longer than the library's own.
        let status = unsafe { (self.calls.defaults)(&raw mut parameters) };
        if status != QZ_OK {
            return Err(QatProblem::SessionFailed(status));
        }
        parameters.direction = QZ_DIR_COMPRESS;
        parameters.comp_lvl = LEVEL;
        parameters.comp_algorithm = QZ_DEFLATE;
        parameters.sw_backup = NO_SOFTWARE;
        parameters.data_fmt = QZ_DEFLATE_RAW;
        let session = &raw mut *opened.session;
        // SAFETY: session and parameters are valid, and initialised by the library.
        let status = unsafe { (self.calls.setup)(session, &raw mut parameters) };
        match status {
            QZ_OK | QZ_DUPLICATE => Ok(opened),
            QZ_NO_HW | QZ_NOSW_NO_HW => Err(QatProblem::NoDevice),
            code => Err(QatProblem::SessionFailed(code)),
        }
    }
}

impl fmt::Debug for Qat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Qat")
            .field("versions", &self.versions)
            .finish_non_exhaustive()
    }
}

fn read_versions(calls: &Calls) -> QatVersions {
    let Some(list) = calls.versions else {
        return QatVersions::default();
    };
    let mut components = [VersionInfo::EMPTY; COMPONENTS_MAX];
    let mut count = COMPONENTS_MAX as c_uint;
    // SAFETY: the list has room for `count` components.
    let status = unsafe { list(components.as_mut_ptr(), &raw mut count) };
    if status != QZ_OK {
        return QatVersions::default();
    }
    let count = (count as usize).min(COMPONENTS_MAX);
    let version_of = |component_type| {
        components[..count]
            .iter()
            .find(|component| component.component_type == component_type)
            .map(|found| format!("{}.{}.{}", found.major, found.minor, found.patch))
    };
    QatVersions {
        library: version_of(COMPONENT_QATZIP),
        driver: version_of(COMPONENT_KERNEL_DRIVER),
    }
}

impl Session {
    const EMPTY: Self = Self {
        hw_session_stat: 0,
        thd_sess_stat: 0,
        internal: ptr::null_mut(),
        total_in: 0,
        total_out: 0,
        spare: [0; SPARE_BYTES],
    };
}

impl Parameters {
    const EMPTY: Self = Self {
        direction: 0,
        comp_lvl: 0,
        comp_algorithm: 0,
        max_forks: 0,
        sw_backup: 0,
        hw_buff_sz: 0,
        strm_buff_sz: 0,
        input_sz_thrshold: 0,
        req_cnt_thrshold: 0,
        wait_cnt_thrshold: 0,
        polling_mode: 0,
        is_sensitive_mode: 0,
        huffman_hdr: 0,
        data_fmt: 0,
        spare: [0; SPARE_BYTES],
    };
}

impl VersionInfo {
    const EMPTY: Self = Self {
        component_type: 0,
        component_name: [0; 64],
        major: 0,
        minor: 0,
        patch: 0,
        build: 0,
        reserved: [0; 52],
    };
}

/// One thread's session with the device.
pub(crate) struct QatSession {
    calls: Arc<Calls>,
    session: Box<Session>,
    /// Whether a chunk of this session has been expanded and compared.
    is_trusted: bool,
}

// SAFETY: a session is used by one thread at a time, which is all that the library requires.
unsafe impl Send for QatSession {}

impl QatSession {
    /// The length of the stream, `None` if it does not fit, or the device's problem.
    pub(crate) fn deflate(
        &mut self,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<Option<usize>, QatProblem> {
        let length =
            |bytes: &[u8]| c_uint::try_from(bytes.len()).map_err(|_| QatProblem::Incompatible);
        let (mut consumed, mut produced) = (length(input)?, length(output)?);
        let session = &raw mut *self.session;
        // SAFETY: input and output are valid for the lengths given, and the session is set up.
        let status = unsafe {
            (self.calls.compress)(
                session,
                input.as_ptr(),
                &raw mut consumed,
                output.as_mut_ptr(),
                &raw mut produced,
                LAST,
            )
        };
        match status {
            QZ_OK if consumed as usize != input.len() => return Ok(None),
            QZ_OK => {}
            QZ_BUF_ERROR => return Ok(None),
            code => return Err(QatProblem::DeviceFailed(code)),
        }
        let stream = output
            .get(..produced as usize)
            .ok_or(QatProblem::Incompatible)?;
        if !self.is_trusted {
            self.is_trusted = expands_to(stream, input);
            if !self.is_trusted {
                return Err(QatProblem::Incompatible);
            }
        }
        Ok(Some(stream.len()))
    }
}

fn expands_to(stream: &[u8], expected: &[u8]) -> bool {
    let mut expanded = vec![0; expected.len()];
    Decoder::new()
        .decode(Algorithm::QatDeflate, Filter::NONE, stream, &mut expanded)
        .is_ok()
        && expanded == expected
}

impl Drop for QatSession {
    fn drop(&mut self) {
        let session = &raw mut *self.session;
        // SAFETY: the session was opened by the library and is ended once.
        unsafe { (self.calls.teardown)(session) };
        // SAFETY: as above; `qzClose` is the counterpart of `qzInit`.
        unsafe { (self.calls.close)(session) };
    }
}

impl fmt::Debug for QatSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QatSession").finish_non_exhaustive()
    }
}
