//! Tuning values: frame size, library level, window, and the memory they use.
//!
//! `docs/codecs.md` has the reasons for each.

use std::ffi::c_int;

use zstd_safe::zstd_sys::{ZSTD_cParameter, ZSTD_strategy};

use crate::memory::Buffer;
use crate::{Algorithm, Compression, Effort, Level};

/// The shortest frame of a backup.
pub const FRAME_BYTES_MIN: usize = 64 << 10;

/// The longest frame of a backup, and the longest chunk an encoder accepts.
pub const FRAME_BYTES_MAX: usize = 8 << 20;

/// The meaning of one level of ZSTD.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ZstdChoice {
    /// libzstd's level, which determines everything not in `tuned`.
    level: i32,
    /// Parameters that suit database pages better than those of the level.
    tuned: &'static [(ZSTD_cParameter, c_int)],
    /// Upper bound on the memory of a compression context, as reported by `ZSTD_sizeof_CCtx`.
    context_bytes: usize,
}

/// `ZSTD_c_blockSplitterLevel`, which the bindings expose only under its experimental number.
const ZSTD_C_BLOCK_SPLITTER_LEVEL: ZSTD_cParameter = ZSTD_cParameter::ZSTD_c_experimentalParam20;

/// Blocks of 128 KB are not examined for places to split them: pages are alike, and the search
/// takes time.
const BLOCKS_UNSPLIT: c_int = 1;

/// Matches of fewer than six bytes are not searched for: two characters of UTF-16 are four bytes,
/// and occur everywhere without saving much. The time is spent on more candidates instead.
const SIX_BYTES: (ZSTD_cParameter, c_int) = (ZSTD_cParameter::ZSTD_c_minMatch, 6);

/// The window covers a whole frame of LOW.
const WINDOW_OF_4_MIB: (ZSTD_cParameter, c_int) = (ZSTD_cParameter::ZSTD_c_windowLog, 22);

/// The window covers a whole frame.
const WINDOW_OF_8_MIB: (ZSTD_cParameter, c_int) = (
    ZSTD_cParameter::ZSTD_c_windowLog,
    FRAME_BYTES_MAX.ilog2() as c_int,
);

/// For LOW: one table, by six bytes, as large as fits into the core's own cache with what is read and written.
const TUNED_LOW: &[(ZSTD_cParameter, c_int)] = &[
    WINDOW_OF_4_MIB,
    SIX_BYTES,
    (ZSTD_cParameter::ZSTD_c_hashLog, 17),
];

const TUNED_MEDIUM: &[(ZSTD_cParameter, c_int)] = &[
    WINDOW_OF_8_MIB,
    SIX_BYTES,
    (
        ZSTD_cParameter::ZSTD_c_strategy,
        ZSTD_strategy::ZSTD_greedy as c_int,
    ),
    (ZSTD_cParameter::ZSTD_c_hashLog, 21),
    (ZSTD_cParameter::ZSTD_c_searchLog, 5),
];

const TUNED_HIGH: &[(ZSTD_cParameter, c_int)] = &[
    WINDOW_OF_8_MIB,
    SIX_BYTES,
    (
        ZSTD_cParameter::ZSTD_c_strategy,
        ZSTD_strategy::ZSTD_lazy as c_int,
    ),
    (ZSTD_cParameter::ZSTD_c_hashLog, 22),
    (ZSTD_cParameter::ZSTD_c_searchLog, 6),
];

// Narrowed text has one byte for a character and no zeros, so smaller tables, which stay in the core's own cache,
// find as much.

const NARROWED_LEAST: &[(ZSTD_cParameter, c_int)] = &[WINDOW_OF_4_MIB];

const NARROWED_LOW: &[(ZSTD_cParameter, c_int)] =
    &[WINDOW_OF_4_MIB, (ZSTD_cParameter::ZSTD_c_hashLog, 15)];

const NARROWED_MEDIUM: &[(ZSTD_cParameter, c_int)] = &[
    WINDOW_OF_8_MIB,
    (ZSTD_cParameter::ZSTD_c_hashLog, 17),
    (ZSTD_cParameter::ZSTD_c_chainLog, 14),
];

const NARROWED_HIGH: &[(ZSTD_cParameter, c_int)] = &[
    WINDOW_OF_8_MIB,
    SIX_BYTES,
    (ZSTD_cParameter::ZSTD_c_searchLog, 5),
];

impl ZstdChoice {
    /// For chunks whose text was narrowed, or for others.
    pub(crate) fn of(effort: Effort, is_narrowed: bool) -> Self {
        let choice = |level, tuned, context_mib: usize| Self {
            level,
            tuned,
            context_bytes: context_mib << 20,
        };
        match (effort, is_narrowed) {
            (Effort::Least, false) => choice(1, &[], 1),
            (Effort::Least, true) => choice(1, NARROWED_LEAST, 1),
            (Effort::Low, false) => choice(1, TUNED_LOW, 1),
            (Effort::Medium, false) => choice(7, TUNED_MEDIUM, 16),
            (Effort::High, false) => choice(9, TUNED_HIGH, 28),
            (Effort::Low, true) => choice(1, NARROWED_LOW, 1),
            (Effort::Medium, true) => choice(3, NARROWED_MEDIUM, 2),
            (Effort::High, true) => choice(9, NARROWED_HIGH, 20),
        }
    }

    /// Upper bound on the memory of a context that compresses filtered chunks and others.
    fn context_bytes_max(effort: Effort) -> usize {
        let bytes = [false, true].map(|is_narrowed| Self::of(effort, is_narrowed).context_bytes);
        bytes.into_iter().max().unwrap_or(0)
    }

    pub(crate) fn parameters(self) -> impl Iterator<Item = (ZSTD_cParameter, c_int)> {
        let always = [
            (ZSTD_cParameter::ZSTD_c_compressionLevel, self.level),
            (ZSTD_C_BLOCK_SPLITTER_LEVEL, BLOCKS_UNSPLIT),
        ];
        always.into_iter().chain(self.tuned.iter().copied())
    }
}

/// libdeflate's level for `QAT_DEFLATE`.
pub(crate) const DEFLATE_LEVEL: i32 = 1;

impl Compression {
    /// The preferred chunk length: a multiple of 64 KiB between 64 KiB and 8 MiB.
    pub fn frame_bytes(&self) -> usize {
        match self.algorithm {
            Algorithm::Zstd if self.level >= Some(Level::Medium) => FRAME_BYTES_MAX,
            Algorithm::Zstd => 4 << 20,
            Algorithm::None | Algorithm::MsXpress | Algorithm::QatDeflate => 1 << 20,
        }
    }

    /// Upper bound on the memory of one encoder for chunks up to `frame_bytes`.
    pub fn encoder_bytes(&self, frame_bytes: usize) -> usize {
        match self.algorithm {
            Algorithm::None => 0,
            Algorithm::MsXpress => LIBRARY_BYTES,
            Algorithm::QatDeflate => LIBRARY_BYTES + FILTERS * filter_bytes(frame_bytes),
            Algorithm::Zstd => {
                let effort = self.level.unwrap_or(Level::Low).into();
                ZstdChoice::context_bytes_max(effort) + FILTERS * filter_bytes(frame_bytes)
            }
        }
    }

    /// Upper bound on the memory of an encoder whose [`Effort`] changes.
    pub fn adaptive_encoder_bytes(frame_bytes: usize) -> usize {
        let bytes = Effort::ALL.map(ZstdChoice::context_bytes_max);
        bytes.into_iter().max().unwrap_or(0) + FILTERS * filter_bytes(frame_bytes)
    }

    /// Upper bound on the memory of one decoder for chunks up to `frame_bytes`.
    pub fn decoder_bytes(&self, frame_bytes: usize) -> usize {
        match self.algorithm {
            Algorithm::None => 0,
            Algorithm::MsXpress => DECODER_BYTES,
            Algorithm::QatDeflate | Algorithm::Zstd => DECODER_BYTES + filter_bytes(frame_bytes),
        }
    }
}

/// Upper bound on the memory of an encoder of `MS_XPRESS` or `QAT_DEFLATE`.
const LIBRARY_BYTES: usize = 1 << 20;

/// Upper bound on the memory of a decoder.
const DECODER_BYTES: usize = 256 << 10;

/// The filters of an encoder that one chunk may go through. A decoder restores pages in place.
const FILTERS: usize = 2;

/// Memory of a filter, for what it makes of one chunk.
const fn filter_bytes(frame_bytes: usize) -> usize {
    frame_bytes + Buffer::EXTRA_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zstd::ZstdEncoder;

    #[test]
    fn contexts_take_no_more_memory_than_the_plan_is_told() {
        let mut state = 1_u32;
        let frame: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 28) as u8
        })
        .take(FRAME_BYTES_MAX)
        .collect();
        let mut output = vec![0; FRAME_BYTES_MAX];
        for (effort, is_narrowed) in Effort::ALL
            .into_iter()
            .flat_map(|effort| [false, true].map(|is_narrowed| (effort, is_narrowed)))
        {
            let choice = ZstdChoice::of(effort, is_narrowed);
            let mut encoder = ZstdEncoder::new(choice).unwrap();
            encoder.encode(&frame, &mut output).unwrap();
            let taken = encoder.memory_bytes();
            assert!(
                taken <= choice.context_bytes && taken * 2 > choice.context_bytes,
                "{effort} {is_narrowed}: {taken} of {}",
                choice.context_bytes
            );
        }
        let mut changing = ZstdEncoder::new(ZstdChoice::of(Effort::Low, false)).unwrap();
        for effort in [Effort::High, Effort::Least, Effort::Medium, Effort::High] {
            for is_narrowed in [false, true] {
                changing
                    .change(ZstdChoice::of(effort, is_narrowed))
                    .unwrap();
                changing.encode(&frame, &mut output).unwrap();
                let taken = changing.memory_bytes();
                assert!(
                    taken <= Compression::adaptive_encoder_bytes(0),
                    "{effort} {is_narrowed}: {taken}"
                );
            }
        }
    }
}
