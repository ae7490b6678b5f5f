//! The result of a dry run.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use windlass_base::EXTENT_BYTES;
use windlass_base::size::Bytes;
use windlass_codec::{Algorithm, BTreePages, Compression, Encoder, Stored};
use windlass_io::lock::{self, Held};
use windlass_pipeline::Plan;

/// Number of samples of a database that an estimate compresses.
const SAMPLES: u64 = 16;

/// Bytes per sample: the size of the smallest frame.
const SAMPLE_BYTES: usize = 1 << 20;

/// The report of what a statement would do.
#[derive(Debug, Clone)]
pub struct Rehearsal {
    pub operation: String,
    pub database: String,
    /// Every setting of the run, with its reason.
    pub plan: Option<Plan>,
    /// The files that would be created or changed, and how.
    pub files: Vec<(PathBuf, String)>,
    /// The files that somebody has locked now, so that the run would wait or be refused, and who.
    pub locked: Vec<(PathBuf, Held)>,
    /// Bytes that would be read.
    pub read_bytes: u64,
    /// Bytes that would be written.
    pub write_bytes: Option<Estimate<u64>>,
    /// How long it would take.
    pub time: Option<Estimate<Duration>>,
}

/// An estimated number and its basis.
#[derive(Debug, Clone)]
pub struct Estimate<T> {
    pub value: T,
    /// The basis of the estimate.
    pub because: String,
}

impl Rehearsal {
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(plan) = &self.plan {
            lines.extend(plan.to_string().trim_end().lines().map(str::to_owned));
        }
        lines.push(format!("{} of '{}' would", self.operation, self.database));
        lines.push(format!("  read {}", Bytes(self.read_bytes)));
        if let Some(write) = &self.write_bytes {
            lines.push(format!(
                "  write about {} (estimate: {})",
                Bytes(write.value),
                write.because
            ));
        }
        if let Some(time) = &self.time {
            let seconds = time.value.as_secs_f64();
            lines.push(format!(
                "  take about {seconds:.1} s (estimate: {})",
                time.because
            ));
        }
        for (path, how) in &self.files {
            lines.push(format!("  {how} '{}'", path.display()));
        }
        for (path, held) in &self.locked {
            let who = match held.process_id {
                Some(id) => format!("process {id}"),
                None => "another program".to_owned(),
            };
            lines.push(format!(
                "  wait for {who}, which has '{}' locked now, or be refused",
                path.display()
            ));
        }
        let locks =
            "  wait, or be refused, if a program has its files open then: a dry run takes no locks";
        lines.push(locks.to_owned());
        lines.push("Dry run: nothing was changed.".to_owned());
        lines
    }
}

/// The bytes of a database that its users lock: SQLite's PENDING, those of its readers, and RESERVED, which a
/// writer locks that others may still read beside.
const PENDING: Range<u64> = 0x4000_0000..0x4000_0001;
const SHARED: Range<u64> = 0x4000_0002..0x4000_0200;
const RESERVED: Range<u64> = 0x4000_0001..0x4000_0002;

/// Which of these files somebody has locked, so that they cannot be read, or not be replaced. What cannot be
/// opened is not known to be locked.
pub(crate) fn locked<'a>(
    files: impl Iterator<Item = &'a Path>,
    is_writing: bool,
) -> Vec<(PathBuf, Held)> {
    let ranges = [PENDING, SHARED, RESERVED];
    let ranges = &ranges[..if is_writing { 3 } else { 2 }];
    let holder = |path: &Path| {
        let mut options = File::options();
        let file = options.read(true).write(is_writing).open(path).ok()?;
        let held = |range: &Range<u64>| lock::held(&file, range.clone(), is_writing).ok()?;
        ranges.iter().find_map(held)
    };
    files
        .filter_map(|path| Some((path.to_owned(), holder(path)?)))
        .collect()
}

/// Result of compressing samples of a database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sampled {
    /// Stored bytes per byte read.
    pub(crate) share: f64,
    /// Bytes per second that one thread reads and compresses.
    pub(crate) bytes_per_second: f64,
    pub(crate) samples: u64,
}

/// Reads pieces spread evenly over some files and compresses them. `None` if nothing can be read.
pub(crate) fn sample(files: &[(PathBuf, u64)], compression: Compression) -> Option<Sampled> {
    let total: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    let mut encoder = match compression.algorithm {
        Algorithm::None => None,
        _ => Some(Encoder::new(compression, SAMPLE_BYTES).ok()?),
    };
    let samples = total.div_ceil(SAMPLE_BYTES as u64).clamp(1, SAMPLES);
    let mut input = vec![0; SAMPLE_BYTES];
    let mut output = vec![0; SAMPLE_BYTES];
    let (mut read, mut stored) = (0, 0);
    let begun = Instant::now();
    for number in 0..samples {
        let (path, offset) = place(files, total / samples * number)?;
        if let Some(encoder) = &mut encoder {
            let mut header = [0; BTreePages::FILE_HEADER_BYTES];
            let read = read_piece(path, 0, &mut header)?;
            encoder.set_pages(BTreePages::of_file(&header[..read]));
        }
        // Pages of any length begin where extents do.
        let extent = offset / EXTENT_BYTES as u64 * EXTENT_BYTES as u64;
        let count = read_piece(path, extent, &mut input)?;
        read += count;
        stored += match &mut encoder {
            None => count,
            Some(encoder) => match encoder.encode(&input[..count], &mut output).ok()? {
                Stored::Compressed { bytes, .. } => bytes,
                Stored::Plain => count,
            },
        };
    }
    let seconds = begun.elapsed().as_secs_f64().max(1e-6);
    (read > 0).then_some(Sampled {
        share: stored as f64 / read as f64,
        bytes_per_second: read as f64 / seconds,
        samples,
    })
}

/// Finds the file, and the offset in it, for an offset into all files together.
fn place(files: &[(PathBuf, u64)], mut offset: u64) -> Option<(&Path, u64)> {
    for (path, bytes) in files {
        if offset < *bytes {
            return Some((path, offset));
        }
        offset -= bytes;
    }
    None
}

/// Reads a piece. Closing the file would drop this process's SQLite locks, but a dry run holds none.
fn read_piece(path: &Path, offset: u64, buffer: &mut [u8]) -> Option<usize> {
    let file = File::open(path).ok()?;
    let mut filled = 0;
    while filled < buffer.len() {
        match file
            .read_at(&mut buffer[filled..], offset + filled as u64)
            .ok()?
        {
            0 => break,
            count => filled += count,
        }
    }
    Some(filled)
}
