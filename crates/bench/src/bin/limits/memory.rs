//! The limit of the cores: codecs on chunks in memory, without a program around them.

use std::path::Path;
use std::time::Instant;

use windlass_accelerator::Isal;
use windlass_codec::{BTreePages, Compression, DeflateProvider, Encoder};
use windlass_io::{Access, AlignedBuffer, DirectFile};

/// One of this many chunks of the database is taken.
const STRIDE: u64 = 2;

/// Chunks spread over a database.
pub(crate) struct Chunks {
    bytes: AlignedBuffer,
    pages: Option<BTreePages>,
    /// Bytes of the database per byte here.
    pub(crate) scale: f64,
}

impl Chunks {
    pub(crate) fn read(database: &Path) -> std::io::Result<Self> {
        let chunk = Compression::ZSTD_MEDIUM.frame_bytes();
        let file = DirectFile::open(database, Access::Read)?;
        let length = file.len()?;
        let count = (length / chunk as u64).div_ceil(STRIDE).max(1);
        let mut bytes = AlignedBuffer::new(chunk * count as usize);
        for (index, piece) in bytes.chunks_mut(chunk).enumerate() {
            file.read_at(piece, index as u64 * STRIDE * chunk as u64)?;
        }
        let scale = length as f64 / bytes.len() as f64;
        let pages = BTreePages::of_file(&bytes);
        Ok(Self {
            bytes,
            pages,
            scale,
        })
    }

    /// Seconds until each of `threads` threads has compressed its part of the chunks.
    pub(crate) fn compress(&self, compression: Compression, threads: usize) -> Result<f64, String> {
        let frame = compression.frame_bytes();
        let isal = (compression == Compression::QAT_DEFLATE)
            .then(Isal::find)
            .and_then(Result::ok);
        let frames: Vec<&[u8]> = self.bytes.chunks(frame).collect();
        let begun = Instant::now();
        let work = |part: usize| -> Result<(), windlass_codec::Error> {
            let provider = isal.as_ref().map(|isal| isal as &dyn DeflateProvider);
            let mut encoder = Encoder::with_provider(compression, frame, provider)?;
            encoder.set_pages(self.pages);
            let mut output = vec![0; frame];
            for input in frames.iter().skip(part).step_by(threads) {
                encoder.encode(input, &mut output)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let started: Vec<_> = (0..threads)
                .map(|part| {
                    let work = &work;
                    scope.spawn(move || work(part))
                })
                .collect();
            for thread in started {
                let ended = thread.join().map_err(|_| "a thread panicked".to_owned())?;
                ended.map_err(|error| error.to_string())?;
            }
            Ok::<_, String>(())
        })?;
        Ok(begun.elapsed().as_secs_f64())
    }
}
