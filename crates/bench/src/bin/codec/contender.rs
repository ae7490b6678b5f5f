//! What is measured, and how.

use anyhow::ensure;
use rustix::time::{ClockId, clock_gettime};
use windlass_codec::{Algorithm, Compression, Decoder, DeflateProvider, Encoder, Stored};

/// A codec under measurement.
pub(crate) trait Contender {
    fn name(&self) -> String;

    fn frame_bytes(&self) -> usize;

    /// Compresses a frame; `None` if it would not shrink.
    fn encode(&mut self, frame: &[u8], output: &mut [u8]) -> Result<Option<usize>, anyhow::Error>;

    /// Expands what [`Contender::encode`] wrote into exactly `frame.len()` octets.
    fn decode(&mut self, payload: &[u8], frame: &mut [u8]) -> Result<(), anyhow::Error>;
}

/// Rates of one run over the sample.
pub(crate) struct Pass {
    pub(crate) encode_rate: f64,
    pub(crate) decode_rate: f64,
    pub(crate) ratio: f64,
}

/// Compresses and expands the whole sample once.
pub(crate) fn run(contender: &mut dyn Contender, sample: &[u8]) -> Result<Pass, anyhow::Error> {
    let frame_bytes = contender.frame_bytes();
    let mut stored = vec![0; sample.len()];
    let mut lengths = Vec::with_capacity(sample.len() / frame_bytes + 1);
    let mut rest = stored.as_mut_slice();
    let start = processor_seconds();
    for frame in sample.chunks(frame_bytes) {
        let length = contender.encode(frame, &mut rest[..frame.len()])?;
        if length.is_none() {
            rest[..frame.len()].copy_from_slice(frame);
        }
        rest = &mut rest[length.unwrap_or(frame.len())..];
        lengths.push(length);
    }
    let encoded = processor_seconds();
    let stored_bytes = sample.len() - rest.len();
    let mut payloads = stored.as_slice();
    let mut expanded = vec![0; frame_bytes];
    let mut decode_seconds = 0.0;
    for (frame, length) in sample.chunks(frame_bytes).zip(lengths) {
        let (payload, behind) = payloads.split_at(length.unwrap_or(frame.len()));
        let expanded = &mut expanded[..frame.len()];
        let start = processor_seconds();
        match length {
            Some(_) => contender.decode(payload, expanded)?,
            None => expanded.copy_from_slice(payload),
        }
        decode_seconds += processor_seconds() - start;
        ensure!(expanded == frame, "{} lost data", contender.name());
        payloads = behind;
    }
    let megabytes = sample.len() as f64 / f64::from(1 << 20);
    Ok(Pass {
        encode_rate: megabytes / (encoded - start),
        decode_rate: megabytes / decode_seconds,
        ratio: sample.len() as f64 / stored_bytes as f64,
    })
}

/// Processor time of this thread.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// A codec of the product.
pub(crate) struct Ours {
    name: String,
    compression: Compression,
    frame_bytes: usize,
    encoder: Encoder,
    decoder: Decoder,
}

impl Ours {
    pub(crate) fn new(compression: Compression, frame_bytes: usize) -> Result<Self, anyhow::Error> {
        Self::named(compression.to_string(), compression, frame_bytes, None)
    }

    /// `QAT_DEFLATE` by what `provider` hands out.
    pub(crate) fn provided(
        name: String,
        frame_bytes: usize,
        provider: &dyn DeflateProvider,
    ) -> Result<Self, anyhow::Error> {
        Self::named(name, Compression::QAT_DEFLATE, frame_bytes, Some(provider))
    }

    fn named(
        name: String,
        compression: Compression,
        frame_bytes: usize,
        provider: Option<&dyn DeflateProvider>,
    ) -> Result<Self, anyhow::Error> {
        Ok(Self {
            name,
            compression,
            frame_bytes,
            encoder: Encoder::with_provider(compression, frame_bytes, provider)?,
            decoder: Decoder::new(),
        })
    }

    fn algorithm(&self) -> Algorithm {
        self.compression.algorithm
    }
}

impl Contender for Ours {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    fn encode(&mut self, frame: &[u8], output: &mut [u8]) -> Result<Option<usize>, anyhow::Error> {
        Ok(match self.encoder.encode(frame, output)? {
            Stored::Compressed(length) => Some(length),
            Stored::Plain => None,
        })
    }

    fn decode(&mut self, payload: &[u8], frame: &mut [u8]) -> Result<(), anyhow::Error> {
        let algorithm = self.algorithm();
        Ok(self.decoder.decode(algorithm, payload, frame)?)
    }
}
