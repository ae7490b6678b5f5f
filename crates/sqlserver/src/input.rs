//! Reads a backup file forward.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use windlass_bak::{Container, Input, RECOGNISE_BYTES, SeekInput};

/// The path that means standard input.
const STANDARD_INPUT: &str = "-";

/// A backup file, a pipe, or standard input.
#[derive(Debug)]
pub struct FileInput {
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// A file that can seek.
    Regular(File),
    Pipe(File),
    Standard(io::Stdin),
}

impl FileInput {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
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

impl Input for FileInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.source {
            Source::Regular(file) | Source::Pipe(file) => file.read(buffer),
            Source::Standard(input) => input.read(buffer),
        }
    }

    fn skip(&mut self, bytes: u64) -> io::Result<bool> {
        let Source::Regular(file) = &mut self.source else {
            return Ok(false);
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

impl SeekInput for FileInput {
    fn seek(&mut self, offset: u64) -> io::Result<()> {
        match &mut self.source {
            Source::Regular(file) => file.seek(SeekFrom::Start(offset)).map(drop),
            _ => Err(io::Error::new(
                io::ErrorKind::NotSeekable,
                "a pipe cannot be read out of order",
            )),
        }
    }
}

/// Whether a file is a SQL Server backup, judging by its first bytes.
///
/// # Errors
/// The file cannot be read.
pub fn is_sql_server(path: &Path) -> io::Result<bool> {
    let mut begin = Vec::with_capacity(RECOGNISE_BYTES);
    windlass_io::open_readable(path)?
        .take(RECOGNISE_BYTES as u64)
        .read_to_end(&mut begin)?;
    Ok(Container::recognise(&begin).is_ok())
}
