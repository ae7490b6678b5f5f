//! Totals over the chunks of a set, added up by all transform threads of a run.

use std::sync::atomic::{AtomicU64, Ordering};

use windlass_codec::Filter;
use windlass_media::{ChunkHeader, chunk_mix};

#[derive(Debug, Default)]
pub(crate) struct Totals {
    chunks: AtomicU64,
    raw_bytes: AtomicU64,
    stored_bytes: AtomicU64,
    narrowed_bytes: AtomicU64,
    checksum: AtomicU64,
}

impl Totals {
    /// Adds a chunk.
    pub(crate) fn count(&self, header: &ChunkHeader) {
        let mix = chunk_mix(header.ordinal, header.raw_checksum);
        self.chunks.fetch_add(1, Ordering::Relaxed);
        self.raw_bytes
            .fetch_add(header.raw_bytes.into(), Ordering::Relaxed);
        self.stored_bytes
            .fetch_add(header.stored_bytes.into(), Ordering::Relaxed);
        if Filter::from_id(header.filter).is_some_and(|filter| filter.is_narrowed) {
            self.narrowed_bytes
                .fetch_add(header.raw_bytes.into(), Ordering::Relaxed);
        }
        self.checksum.fetch_add(mix, Ordering::Relaxed);
    }

    pub(crate) fn chunks(&self) -> u64 {
        self.chunks.load(Ordering::Relaxed)
    }

    /// Bytes of the database.
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.raw_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the payloads on media.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.stored_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the database in chunks whose text was narrowed.
    pub(crate) fn narrowed_bytes(&self) -> u64 {
        self.narrowed_bytes.load(Ordering::Relaxed)
    }

    /// Sum of [`chunk_mix`].
    pub(crate) fn checksum(&self) -> u64 {
        self.checksum.load(Ordering::Relaxed)
    }
}
