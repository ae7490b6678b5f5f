//! Expands a sample of the chunks before they are written, and compares them with what was read.
//!
//! The checksums of a set say that a payload is what was written, not that it expands to what it was made of.
//! A compressor or filter at fault, or an accelerator's hardware, would show in the next verification at
//! the earliest. Whole kinds of chunks go wrong rather than single ones, so a few of each kind are enough:
//! the first ones that went through a filter, those that end a file, and then one of many.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use windlass_codec::{Algorithm, Decoder, Filter};

use crate::error::Error;
use crate::plan::Plan;

/// Chunks of each kind that are expanded before it becomes a sample.
const FIRST: u64 = 2;

/// One of so many is expanded afterwards.
const ONE_OF: u64 = 64;

/// The combinations of filters: of text, of pages.
const KINDS: usize = 4;

/// Shared by the threads, which rarely meet here: one buffer serves all of them.
#[derive(Debug)]
pub(super) struct Proof {
    algorithm: Algorithm,
    made: [AtomicU64; KINDS],
    expander: Mutex<Expander>,
}

#[derive(Debug)]
struct Expander {
    decoder: Decoder,
    expanded: Vec<u8>,
}

impl Proof {
    pub(super) fn of(plan: &Plan) -> Self {
        Self::new(plan.compression.algorithm, plan.frame_bytes.value)
    }

    /// For chunks of `algorithm` of up to `frame_bytes`.
    fn new(algorithm: Algorithm, frame_bytes: usize) -> Self {
        let frame_bytes = match algorithm {
            Algorithm::None => 0,
            _ => frame_bytes,
        };
        Self {
            algorithm,
            made: Default::default(),
            expander: Mutex::new(Expander {
                decoder: Decoder::new(),
                expanded: vec![0; frame_bytes],
            }),
        }
    }

    /// Compares what `payload` expands to with `raw`, if the chunk is one of the sample.
    ///
    /// # Errors
    /// [`Error::NotReversible`] if they differ.
    pub(super) fn examine(
        &self,
        filter: Filter,
        raw: &[u8],
        payload: &[u8],
        ends_file: bool,
    ) -> Result<(), Error> {
        let kind = usize::from(filter.is_narrowed) + 2 * usize::from(filter.pages.is_some());
        let before = self.made[kind].fetch_add(1, Ordering::Relaxed);
        if before >= FIRST && !before.is_multiple_of(ONE_OF) && !ends_file {
            return Ok(());
        }
        let mut expander = self.expander.lock().unwrap_or_else(PoisonError::into_inner);
        let Expander { decoder, expanded } = &mut *expander;
        let expanded = &mut expanded[..raw.len()];
        let reason = match decoder.decode(self.algorithm, filter, payload, expanded) {
            Ok(()) if expanded == raw => return Ok(()),
            Ok(()) => "it expands to other bytes".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(Error::NotReversible {
            algorithm: self.algorithm,
            filter,
            reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use windlass_codec::{Compression, Encoder, Stored};

    use super::*;

    /// Which of 130 chunks are refused if every one of them expands to other bytes.
    fn refused(kind: impl Fn(usize) -> Filter) -> Vec<usize> {
        let raw = [7; 1000];
        let mut payload = [0; 1000];
        let mut encoder = Encoder::new(Compression::ZSTD_LOW, raw.len()).unwrap();
        let Stored::Compressed { bytes, .. } = encoder.encode(&raw, &mut payload).unwrap() else {
            panic!("it shrinks");
        };
        let proof = Proof::new(Algorithm::Zstd, raw.len());
        let payload = &payload[..bytes];
        (proof.examine(Filter::NONE, &raw, payload, true)).unwrap();
        let proof = Proof::new(Algorithm::Zstd, raw.len());
        let examine = |chunk: &usize| proof.examine(kind(*chunk), &[8; 1000], payload, false);
        (0..130).filter(|chunk| examine(chunk).is_err()).collect()
    }

    #[test]
    fn the_first_chunks_of_each_filter_are_expanded_and_then_one_of_many() {
        assert_eq!(refused(|_| Filter::NONE), [0, 1, 64, 128]);
        let late = |chunk| match chunk < 100 {
            true => Filter::NONE,
            false => Filter::NARROW,
        };
        assert_eq!(refused(late), [0, 1, 64, 100, 101]);
    }
}
