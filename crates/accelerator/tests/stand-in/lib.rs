//! A stand-in for `libqatzip` with its binary interface: fixed Huffman codes and runs, so that
//! pages with repeated bytes shrink. `WINDLASS_STAND_IN` requests failures and is read at the start
//! of each session: `init=-101`, `setup=-2`, `fail_after=3`, `garbage_after=1`, `count=/path`
//! (appends a line for each chunk).

use std::io::Write;
use std::os::raw::{c_int, c_uint, c_ulong, c_void};

#[repr(C)]
pub struct Session {
    hw_session_stat: i64,
    thd_sess_stat: c_int,
    internal: *mut c_void,
    total_in: c_ulong,
    total_out: c_ulong,
}

#[repr(C)]
pub struct Parameters {
    direction: c_int,
    comp_lvl: c_uint,
    comp_algorithm: u8,
    max_forks: c_uint,
    sw_backup: u8,
    buffers_and_thresholds: [c_uint; 5],
    polling_mode: c_int,
    is_sensitive_mode: c_uint,
    huffman_hdr: c_int,
    data_fmt: c_int,
}

#[repr(C)]
pub struct VersionInfo {
    component_type: c_int,
    component_name: [u8; 64],
    version: [c_uint; 4],
    reserved: [u8; 52],
}

struct State {
    left: i64,
    garbage_after: i64,
    count: Option<String>,
    is_raw: bool,
}

fn asked(name: &str) -> Option<String> {
    let all = std::env::var("WINDLASS_STAND_IN").unwrap_or_default();
    let value = all
        .split(',')
        .find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('=').map(str::to_owned));
    value
}

fn number(name: &str) -> Option<i64> {
    asked(name)?.parse().ok()
}

#[unsafe(no_mangle)]
pub extern "C" fn qzInit(_session: *mut Session, sw_backup: u8) -> c_int {
    assert_eq!(sw_backup, 0);
    number("init").unwrap_or(0) as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn qzGetDefaultsDeflate(parameters: *mut Parameters) -> c_int {
    unsafe {
        (*parameters).comp_lvl = 1;
        (*parameters).data_fmt = 2;
        (*parameters).sw_backup = 1;
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn qzSetupSessionDeflate(
    session: *mut Session,
    parameters: *mut Parameters,
) -> c_int {
    if let Some(code) = number("setup") {
        return code as c_int;
    }
    let state = Box::new(State {
        left: number("fail_after").unwrap_or(i64::MAX),
        garbage_after: number("garbage_after").unwrap_or(i64::MAX),
        count: asked("count"),
        is_raw: unsafe { (*parameters).data_fmt == 3 && (*parameters).sw_backup == 0 },
    });
    unsafe { (*session).internal = Box::into_raw(state).cast() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn qzCompress(
    session: *mut Session,
    source: *const u8,
    source_bytes: *mut c_uint,
    target: *mut u8,
    target_bytes: *mut c_uint,
    last: c_uint,
) -> c_int {
    let state = unsafe { &mut *(*session).internal.cast::<State>() };
    assert!(state.is_raw && last == 1);
    state.left -= 1;
    state.garbage_after -= 1;
    if state.left < 0 {
        return -2;
    }
    let input = unsafe { std::slice::from_raw_parts(source, *source_bytes as usize) };
    let mut stream = deflate(input);
    if state.garbage_after < 0 {
        stream.iter_mut().for_each(|byte| *byte ^= 0x55);
    }
    if stream.len() > unsafe { *target_bytes } as usize {
        unsafe { *source_bytes = 0 };
        return -3;
    }
    if let Some(path) = &state.count {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        writeln!(file.unwrap(), "{}", input.len()).unwrap();
    }
    unsafe { std::ptr::copy_nonoverlapping(stream.as_ptr(), target, stream.len()) };
    unsafe { *target_bytes = stream.len() as c_uint };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn qzTeardownSession(session: *mut Session) -> c_int {
    let state = unsafe { (*session).internal.cast::<State>() };
    if !state.is_null() {
        drop(unsafe { Box::from_raw(state) });
        unsafe { (*session).internal = std::ptr::null_mut() };
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn qzClose(_session: *mut Session) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn qzGetSoftwareComponentVersionList(
    list: *mut VersionInfo,
    count: *mut c_uint,
) -> c_int {
    for (index, (kind, major)) in [(1, 4), (3, 1)].into_iter().enumerate() {
        let info = unsafe { &mut *list.add(index) };
        info.component_type = kind;
        info.version = [major, 3, 2, 0];
    }
    unsafe { *count = 2 };
    0
}

struct Bits {
    bytes: Vec<u8>,
    held: u32,
    count: u32,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for at in 0..count {
            self.held |= (value >> at & 1) << self.count;
            self.count += 1;
            if self.count == 8 {
                self.bytes.push(self.held as u8);
                (self.held, self.count) = (0, 0);
            }
        }
    }

    /// A Huffman code: most significant bit first.
    fn code(&mut self, code: u32, count: u32) {
        for at in (0..count).rev() {
            self.put(code >> at & 1, 1);
        }
    }

    fn symbol(&mut self, symbol: u32) {
        match symbol {
            0..=143 => self.code(0x30 + symbol, 8),
            144..=255 => self.code(0x190 + symbol - 144, 9),
            256..=279 => self.code(symbol - 256, 7),
            _ => self.code(0xC0 + symbol - 280, 8),
        }
    }
}

/// One block of fixed codes: literals, and repetitions of the previous byte, of length three to ten
/// or 258.
fn deflate(input: &[u8]) -> Vec<u8> {
    let mut bits = Bits {
        bytes: Vec::new(),
        held: 0,
        count: 0,
    };
    bits.put(0b011, 3);
    let mut at = 0;
    while at < input.len() {
        let run = match at {
            0 => 0,
            _ => input[at..].iter().take(258).take_while(|byte| **byte == input[at - 1]).count(),
        };
        let length = match run {
            258 => 258,
            3.. => run.min(10),
            _ => 0,
        };
        match length {
            0 => bits.symbol(u32::from(input[at])),
            258 => bits.symbol(285),
            _ => bits.symbol(254 + length as u32),
        }
        if length > 0 {
            bits.code(0, 5);
        }
        at += length.max(1);
    }
    bits.symbol(256);
    bits.put(0, 7);
    bits.bytes
}
