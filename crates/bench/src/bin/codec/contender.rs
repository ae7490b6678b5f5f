//! The measured codecs, and the measurement.

use anyhow::ensure;
use rustix::time::{ClockId, clock_gettime};
use windlass_codec::{
    Algorithm, BTreePages, Compression, Decoder, DeflateProvider, Encoder, Filter, Stored,
};
use windlass_io::AlignedBuffer;

use crate::sample::Piece;

/// A codec under measurement.
pub(crate) trait Contender {
    fn name(&self) -> String;

    fn frame_bytes(&self) -> usize;

    /// The following frames have pages with this layout; others' codecs do not ask.
    fn set_pages(&mut self, _pages: Option<BTreePages>) {}

    /// Compresses a frame; `None` if it would not shrink.
    fn encode(&mut self, frame: &[u8], output: &mut [u8])
    -> Result<Option<Payload>, anyhow::Error>;

    /// Expands what [`Contender::encode`] wrote into exactly `frame.len()` bytes.
    fn decode(
        &mut self,
        payload: &[u8],
        filter: Filter,
        frame: &mut [u8],
    ) -> Result<(), anyhow::Error>;
}

/// What a frame became.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payload {
    pub(crate) bytes: usize,
    pub(crate) filter: Filter,
}

/// The results of one contender on the sample, or on a part of it.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Pass {
    bytes: u64,
    stored_bytes: u64,
    encode_seconds: f64,
    decode_seconds: f64,
}

impl Pass {
    /// MB (2^20 bytes) per second.
    pub(crate) fn encode_rate(&self) -> f64 {
        self.bytes as f64 / f64::from(1 << 20) / self.encode_seconds
    }

    /// MB (2^20 bytes) per second.
    pub(crate) fn decode_rate(&self) -> f64 {
        self.bytes as f64 / f64::from(1 << 20) / self.decode_seconds
    }

    pub(crate) fn ratio(&self) -> f64 {
        self.bytes as f64 / self.stored_bytes as f64
    }
}

/// Memory for one piece, as in a backup: aligned and already touched.
pub(crate) struct Room {
    stored: AlignedBuffer,
    expanded: AlignedBuffer,
}

impl Room {
    pub(crate) fn new(piece_bytes: usize) -> Self {
        Self {
            stored: AlignedBuffer::new(piece_bytes),
            expanded: AlignedBuffer::new(piece_bytes),
        }
    }
}

/// Compresses and expands one piece of the sample, and adds the cost to `pass`.
pub(crate) fn run(
    contender: &mut dyn Contender,
    piece: &Piece,
    room: &mut Room,
    pass: &mut Pass,
) -> Result<(), anyhow::Error> {
    let frame_bytes = contender.frame_bytes();
    contender.set_pages(piece.pages);
    let piece = &piece.bytes[..];
    let mut lengths = Vec::with_capacity(piece.len() / frame_bytes + 1);
    let mut rest = &mut room.stored[..piece.len()];
    let start = processor_seconds();
    for frame in piece.chunks(frame_bytes) {
        let length = contender.encode(frame, &mut rest[..frame.len()])?;
        if length.is_none() {
            rest[..frame.len()].copy_from_slice(frame);
        }
        rest = &mut rest[length.map_or(frame.len(), |payload| payload.bytes)..];
        lengths.push(length);
    }
    pass.encode_seconds += processor_seconds() - start;
    pass.bytes += piece.len() as u64;
    pass.stored_bytes += (piece.len() - rest.len()) as u64;
    let mut payloads = &room.stored[..];
    for (frame, length) in piece.chunks(frame_bytes).zip(lengths) {
        let (payload, behind) =
            payloads.split_at(length.map_or(frame.len(), |payload| payload.bytes));
        let expanded = &mut room.expanded[..frame.len()];
        let start = processor_seconds();
        match length {
            Some(made) => contender.decode(payload, made.filter, expanded)?,
            None => expanded.copy_from_slice(payload),
        }
        pass.decode_seconds += processor_seconds() - start;
        ensure!(expanded == frame, "{} lost data", contender.name());
        payloads = behind;
    }
    Ok(())
}

/// CPU time of this thread.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// What the name of a codec without filters ends with.
pub(crate) const UNFILTERED: &str = " unfiltered";

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

    /// The same codec without filters.
    pub(crate) fn unfiltered(mut self) -> Self {
        self.name.push_str(UNFILTERED);
        self.encoder.turn_filters_off();
        self
    }

    /// `QAT_DEFLATE` by the compressor of `provider`.
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

    fn set_pages(&mut self, pages: Option<BTreePages>) {
        self.encoder.set_pages(pages);
    }

    fn encode(
        &mut self,
        frame: &[u8],
        output: &mut [u8],
    ) -> Result<Option<Payload>, anyhow::Error> {
        Ok(match self.encoder.encode(frame, output)? {
            Stored::Compressed { bytes, filter } => Some(Payload { bytes, filter }),
            Stored::Plain => None,
        })
    }

    fn decode(
        &mut self,
        payload: &[u8],
        filter: Filter,
        frame: &mut [u8],
    ) -> Result<(), anyhow::Error> {
        let algorithm = self.algorithm();
        Ok(self.decoder.decode(algorithm, filter, payload, frame)?)
    }
}
