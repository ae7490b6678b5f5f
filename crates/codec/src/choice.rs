//! The chosen numbers: frame size, library level, window, and the memory they cost.
//!
//! `docs/codecs.md` holds the measurements behind each.

use std::ffi::c_int;

use zstd_safe::zstd_sys::{ZSTD_cParameter, ZSTD_strategy};

use crate::{Algorithm, Compression, Effort, Level};

/// The shortest frame a backup uses.
pub const FRAME_BYTES_MIN: usize = 64 << 10;

/// The longest frame a backup uses, and the longest chunk any encoder takes.
pub const FRAME_BYTES_MAX: usize = 8 << 20;

/// What one level of ZSTD means.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ZstdChoice {
    /// libzstd's level, from which all that is not in `tuned` follows.
    level: i32,
    tuned: Option<ZstdTuned>,
    /// Upper bound of a compression context's memory, as `ZSTD_sizeof_CCtx` tells it.
    context_bytes: usize,
}

/// Parameters of libzstd that are better for database pages than a level's own.
///
/// Matches of fewer than six octets are not searched for: two characters of UTF-16 are four, and
/// occur everywhere without saving much. The time goes into more candidates instead.
#[derive(Debug, Clone, Copy)]
struct ZstdTuned {
    strategy: ZSTD_strategy,
    hash_log: c_int,
    search_log: c_int,
}

/// `ZSTD_c_blockSplitterLevel`, which the bindings know by its experimental number alone.
const ZSTD_C_BLOCK_SPLITTER_LEVEL: ZSTD_cParameter = ZSTD_cParameter::ZSTD_c_experimentalParam20;

/// Blocks of 128 KB are not looked at for places to split them: pages are alike, and looking takes time.
const BLOCKS_UNSPLIT: c_int = 1;

const ZSTD_MATCH_BYTES_MIN: c_int = 6;

/// The window reaches over a whole frame.
const ZSTD_WINDOW_LOG: c_int = FRAME_BYTES_MAX.ilog2() as c_int;

impl ZstdChoice {
    pub(crate) fn of(effort: Effort) -> Self {
        let tuned = |strategy, hash_log, search_log| {
            Some(ZstdTuned {
                strategy,
                hash_log,
                search_log,
            })
        };
        match effort {
            Effort::Least => Self {
                level: 1,
                tuned: None,
                context_bytes: 1 << 20,
            },
            Effort::Low => Self {
                level: 3,
                tuned: None,
                context_bytes: 2 << 20,
            },
            Effort::Medium => Self {
                level: 7,
                tuned: tuned(ZSTD_strategy::ZSTD_greedy, 21, 5),
                context_bytes: 16 << 20,
            },
            Effort::High => Self {
                level: 9,
                tuned: tuned(ZSTD_strategy::ZSTD_lazy, 22, 6),
                context_bytes: 28 << 20,
            },
        }
    }

    pub(crate) fn parameters(self) -> impl Iterator<Item = (ZSTD_cParameter, c_int)> {
        use ZSTD_cParameter as Parameter;
        let tuned = self.tuned.map(|tuned| {
            [
                (Parameter::ZSTD_c_windowLog, ZSTD_WINDOW_LOG),
                (Parameter::ZSTD_c_minMatch, ZSTD_MATCH_BYTES_MIN),
                (Parameter::ZSTD_c_strategy, tuned.strategy as c_int),
                (Parameter::ZSTD_c_hashLog, tuned.hash_log),
                (Parameter::ZSTD_c_searchLog, tuned.search_log),
            ]
        });
        let always = [
            (Parameter::ZSTD_c_compressionLevel, self.level),
            (ZSTD_C_BLOCK_SPLITTER_LEVEL, BLOCKS_UNSPLIT),
        ];
        always.into_iter().chain(tuned.into_iter().flatten())
    }
}

/// libdeflate's level for `QAT_DEFLATE`.
pub(crate) const DEFLATE_LEVEL: i32 = 1;

impl Compression {
    /// The preferred length of a chunk: a multiple of 64 KiB between 64 KiB and 8 MiB.
    pub fn frame_bytes(&self) -> usize {
        match self.algorithm {
            Algorithm::Zstd if self.level >= Some(Level::Medium) => FRAME_BYTES_MAX,
            Algorithm::Zstd => 4 << 20,
            Algorithm::None | Algorithm::MsXpress | Algorithm::QatDeflate => 1 << 20,
        }
    }

    /// Upper bound of the memory that one encoder takes for chunks up to `frame_bytes`.
    pub fn encoder_bytes(&self, _frame_bytes: usize) -> usize {
        match self.algorithm {
            Algorithm::None => 0,
            Algorithm::MsXpress | Algorithm::QatDeflate => 1 << 20,
            Algorithm::Zstd => {
                ZstdChoice::of(self.level.unwrap_or(Level::Low).into()).context_bytes
            }
        }
    }

    /// Upper bound of the memory of an encoder whose [`Effort`] changes.
    pub fn adaptive_encoder_bytes() -> usize {
        let bytes = Effort::ALL.map(|effort| ZstdChoice::of(effort).context_bytes);
        bytes.into_iter().max().unwrap_or(0)
    }

    /// Upper bound of the memory that one decoder takes for chunks up to `frame_bytes`.
    pub fn decoder_bytes(&self, _frame_bytes: usize) -> usize {
        match self.algorithm {
            Algorithm::None => 0,
            Algorithm::MsXpress | Algorithm::QatDeflate | Algorithm::Zstd => 256 << 10,
        }
    }
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
        for effort in Effort::ALL {
            let choice = ZstdChoice::of(effort);
            let mut encoder = ZstdEncoder::new(choice).unwrap();
            encoder.encode(&frame, &mut output).unwrap();
            let taken = encoder.memory_bytes();
            assert!(
                taken <= choice.context_bytes,
                "{effort}: {taken} of {}",
                choice.context_bytes
            );
            assert!(
                taken * 2 > choice.context_bytes,
                "{effort}: {taken} of {}",
                choice.context_bytes
            );
        }
        let mut changing = ZstdEncoder::new(ZstdChoice::of(Effort::Low)).unwrap();
        for effort in [Effort::High, Effort::Least, Effort::Medium, Effort::High] {
            changing.change(ZstdChoice::of(effort)).unwrap();
            changing.encode(&frame, &mut output).unwrap();
            let taken = changing.memory_bytes();
            assert!(
                taken <= Compression::adaptive_encoder_bytes(),
                "{effort}: {taken}"
            );
        }
    }
}
