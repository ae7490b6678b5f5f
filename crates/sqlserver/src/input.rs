//! Reads a backup forward, wherever it is.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use windlass_bak::{Container, Input, RECOGNISE_BYTES, SeekInput};
use windlass_device::{DeviceAddress, DeviceReader};

/// The path that means standard input.
const STANDARD_INPUT: &str = "-";

/// Bytes of an object that a request gives at least: a backup is read in pieces of some bytes.
const WINDOW_BYTES: usize = 256 << 10;

/// So few bytes of an object are read rather than skipped: another request takes longer.
const NEAR_BYTES: u64 = 1 << 20;

/// A backup in a file, a pipe, standard input, or an object of a store.
#[derive(Debug)]
pub struct BackupInput {
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// A file that can seek.
    Regular(File),
    Pipe(File),
    Standard(io::Stdin),
    Object(Object),
}

/// An object, and a part of it that was read with one request.
#[derive(Debug)]
struct Object {
    reader: Box<dyn DeviceReader>,
    at: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl Object {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let failed = |error: windlass_device::Error| error.source;
        let inside = |window: &[u8], from: u64, at: u64| {
            let skipped = usize::try_from(at.checked_sub(from)?).ok()?;
            (skipped < window.len()).then_some(skipped)
        };
        if inside(&self.window, self.window_at, self.at).is_none() {
            if buffer.len() >= WINDOW_BYTES {
                let read = self.reader.read_at(buffer, self.at).map_err(failed)?;
                self.at += read as u64;
                return Ok(read);
            }
            self.window.resize(WINDOW_BYTES, 0);
            let read = self.reader.read_at(&mut self.window, self.at);
            // Nothing of it counts after an error.
            self.window.truncate(*read.as_ref().unwrap_or(&0));
            self.window_at = self.at;
            read.map_err(failed)?;
        }
        let skipped = inside(&self.window, self.window_at, self.at);
        let held = skipped.and_then(|skipped| self.window.get(skipped..));
        let held = held.unwrap_or_default();
        let count = held.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), held.get(..count)) {
            to.copy_from_slice(from);
        }
        self.at += count as u64;
        Ok(count)
    }

    /// Whether it is skipped; what is near is read.
    fn skip(&mut self, bytes: u64) -> bool {
        let to = self.at.checked_add(bytes);
        let to = to.filter(|to| bytes >= NEAR_BYTES && *to <= self.reader.len());
        self.at = to.unwrap_or(self.at);
        to.is_some()
    }
}

impl BackupInput {
    /// Opens a file, or an object in the state in which it is: of one that is replaced meanwhile, nothing more is read.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(device: &DeviceAddress) -> io::Result<Self> {
        if let Some(path) = device.file() {
            return Self::open_file(path);
        }
        let reader = device.open_reader().map_err(|error| error.source)?;
        Ok(Self {
            source: Source::Object(Object {
                reader,
                at: 0,
                window: Vec::new(),
                window_at: 0,
            }),
        })
    }

    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open_file(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == STANDARD_INPUT {
            return Ok(Self {
                source: Source::Standard(io::stdin()),
            });
        }
        let file = File::open(path)?;
        let is_regular = file.metadata()?.is_file();
        Ok(Self {
            source: if is_regular {
                Source::Regular(file)
            } else {
                Source::Pipe(file)
            },
        })
    }
}

impl Input for BackupInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.source {
            Source::Regular(file) | Source::Pipe(file) => file.read(buffer),
            Source::Standard(input) => input.read(buffer),
            Source::Object(object) => object.read(buffer),
        }
    }

    fn skip(&mut self, bytes: u64) -> io::Result<bool> {
        let file = match &mut self.source {
            Source::Regular(file) => file,
            Source::Object(object) => return Ok(object.skip(bytes)),
            Source::Pipe(_) | Source::Standard(_) => return Ok(false),
        };
        let Ok(offset) = i64::try_from(bytes) else {
            return Ok(false);
        };
        // There is nothing to skip past the end; the next read notices that.
        let length = file.metadata()?.len();
        if file.stream_position()?.saturating_add(bytes) > length {
            return Ok(false);
        }
        file.seek(SeekFrom::Current(offset))?;
        Ok(true)
    }
}

impl SeekInput for BackupInput {
    fn seek(&mut self, offset: u64) -> io::Result<()> {
        match &mut self.source {
            Source::Regular(file) => file.seek(SeekFrom::Start(offset)).map(drop),
            Source::Object(object) => {
                object.at = offset;
                Ok(())
            }
            Source::Pipe(_) | Source::Standard(_) => Err(io::Error::new(
                io::ErrorKind::NotSeekable,
                "a pipe cannot be read out of order",
            )),
        }
    }
}

/// Whether a device has a SQL Server backup, judging by its first bytes; not, if they cannot be read.
pub fn is_sql_server(device: &DeviceAddress) -> bool {
    Container::recognise(&device.begin(RECOGNISE_BYTES)).is_ok()
}

/// What a device is called where files have their path.
pub(crate) fn path_of(device: &DeviceAddress) -> PathBuf {
    device
        .file()
        .map_or_else(|| PathBuf::from(&device.name), Path::to_owned)
}
