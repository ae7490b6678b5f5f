//! The plan of a run: every value decided, with its reason ([`lines`] shows them). Nothing below it makes
//! choices.
//!
//! Invariant: a run allocates at most [`Plan::memory_bytes`] for its buffers, transfer buffers and
//! encoders, whatever the size of the database.

mod lines;

use std::fmt;
use std::num::NonZeroUsize;

use windlass_codec::{Algorithm, Compression, FRAME_BYTES_MIN};
use windlass_device::{ENDS_BYTES, PARTS_MAX, PIECE_BYTES};
use windlass_io::queue::{IoMethod, IoMethodChoice, io_method_for};

use windlass_source::TemporaryCopy;

use crate::limits::Limits;
use crate::request::{Goal, Tuning};

/// A value and the reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    pub value: usize,
    pub because: &'static str,
}

/// The I/O method of one end of the pipeline, and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenIoMethod {
    pub method: IoMethod,
    pub because: String,
}

impl ChosenIoMethod {
    /// For files that support direct I/O, or do not.
    pub(crate) fn chosen(choice: IoMethodChoice, is_direct: bool) -> Self {
        let (method, because) = io_method_for(choice, is_direct);
        Self { method, because }
    }
}

impl fmt::Display for ChosenIoMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.method {
            IoMethod::Ring => "io_uring",
            IoMethod::Threads => "threads",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceSize {
    pub bytes: u64,
    /// Number of contiguous ranges; a chunk never spans two of them.
    pub ranges: u64,
}

/// Every value of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// For reading: how the set was compressed.
    pub compression: Compression,
    /// Media families (stripes).
    pub families: usize,
    /// Copies of each family beyond the first.
    pub mirrors: usize,
    /// Bytes of the database in one chunk.
    pub frame_bytes: Chosen,
    /// Bytes in one write to a device.
    pub transfer_bytes: Chosen,
    /// Bytes of a part that is sent to an object store, or read ahead from one; `None` for other devices.
    pub part_bytes: Option<Chosen>,
    /// Threads that checksum and compress, or their reverse.
    pub threads: Chosen,
    /// Reads of the source (backup) or of a media family (restore, verify) in flight.
    pub depth: Chosen,
    /// Writes in flight to a device (backup) or to the target (restore).
    pub write_depth: Chosen,
    pub reads_by: ChosenIoMethod,
    /// `None` if nothing is written to a file.
    pub writes_by: Option<ChosenIoMethod>,
    /// Buffers of one frame between source and transform.
    pub frame_buffers: Chosen,
    /// Buffers of one frame between transform and media; none without compression, because pages
    /// are written from the buffers into which they were read.
    pub output_buffers: Chosen,
    /// Upper bound of the memory of one encoder or decoder.
    pub codec_bytes: usize,
    /// Memory in which a backup expands a sample of its chunks.
    pub sample_bytes: usize,
    pub goal: Goal,
    /// Whether the level is picked for each chunk; `compression` has the initial level.
    pub adapts_level: bool,
    /// Whether idle threads are paused; `threads` is the maximum.
    pub adapts_threads: bool,
    pub limits: Limits,
    /// Why the families get the same number of bytes; `None` if the one that is free first takes the next chunk.
    pub even: Option<&'static str>,
    /// The temporary copy that spares writers the wait for the whole backup; `None` if writers
    /// never wait.
    pub temporary_copy: Option<TemporaryCopy>,
    /// CPU and I/O priority, if lowered.
    pub priority: Option<String>,
}

/// Reads in flight. Two keep a solid-state disk busy while a third is passed on; a fourth covers the
/// time that one thread needs to pass on and submit.
const DEPTH: usize = 4;

/// Writes in flight at a device.
const WRITE_DEPTH: usize = 4;

/// Writes in flight per device if there are many, which are all busy at the same time.
const WRITE_DEPTH_OF_MANY: usize = 2;

/// Memory of frames beyond one for each thread, read and family. The devices are busy with less, and memory that a
/// run touches for the first time costs more than another write in flight gains: docs/benchmarks.md.
const FRAMES_BYTES_MAX: usize = 64 << 20;

/// Default of MAXTRANSFERSIZE, as in SQL Server for disk.
const TRANSFER_BYTES: usize = 1 << 20;

/// The same for object storage.
const PART_BYTES: usize = 10 << 20;

/// Parts of an object that a plan counts on: some fewer than a store takes.
const PARTS_PLANNED: u32 = PARTS_MAX - 100;

/// Minimum frame size for small databases: shorter frames would compress worse and gain nothing.
const SHARE_BYTES_MIN: usize = 1 << 20;

/// Upper bound on the threads used for sizing frames.
const SHARES_MAX: usize = 8;

/// Memory for index segments and chunk headers of one family while they are collected.
const INDEX_BYTES: usize = 6 << 20;

impl Plan {
    /// Decides the values of a backup that reads `source`.
    pub fn for_backup(
        compression: Compression,
        families: usize,
        mirrors: usize,
        source: SourceSize,
        reads_by: ChosenIoMethod,
        tuning: Tuning,
    ) -> Self {
        let transfer_bytes = chosen_transfer(tuning);
        let threads = backup_threads(tuning);
        let frame_bytes = match compression.algorithm {
            Algorithm::None => Chosen {
                value: transfer_bytes.value,
                because: "one transfer: chunks are written as read",
            },
            _ => chosen_frame(compression, source.bytes, threads.value),
        };
        let chunks = source.bytes / frame_bytes.value as u64 + source.ranges;
        let depth = Chosen {
            value: DEPTH,
            because: "keeps the source busy while buffers are handed over",
        };
        let write_depth = chosen_write_depth(families * (mirrors + 1));
        // Uncompressed frames are held until they are written.
        let written_in_place = match compression.algorithm {
            Algorithm::None => families * write_depth.value,
            _ => 0,
        };
        let each_has_one = threads.value + depth.value + families;
        let frames_max = (FRAMES_BYTES_MAX / frame_bytes.value.max(1)).max(each_has_one);
        let wanted = (each_has_one + written_in_place).min(frames_max);
        let frame_buffers = chosen_buffers(tuning, frame_bytes.value, wanted, chunks);
        let output_buffers = match compression.algorithm {
            Algorithm::None => Chosen {
                value: 0,
                because: "uncompressed chunks are written from the buffers they were read into",
            },
            _ => bounded(
                Chosen {
                    value: threads.value + families + 1,
                    because: "one per thread, one per family being written, one spare",
                },
                chunks,
            ),
        };
        Self {
            compression,
            families,
            mirrors,
            frame_bytes,
            transfer_bytes,
            part_bytes: None,
            threads,
            depth,
            write_depth,
            reads_by,
            writes_by: None,
            frame_buffers,
            output_buffers,
            codec_bytes: encoder_bytes(compression, tuning, frame_bytes.value),
            sample_bytes: sample_bytes(compression, frame_bytes.value),
            goal: tuning.goal,
            adapts_level: tuning.adapts_level,
            adapts_threads: tuning.threads.is_none(),
            limits: tuning.limits,
            even: tuning.is_even.then_some("as given"),
            temporary_copy: None,
            priority: None,
        }
    }

    /// Decides the values of a restore or verification of a set of `chunks` chunks of up to
    /// `frame_bytes` each.
    pub fn for_reading(
        compression: Compression,
        families: usize,
        frame_bytes: usize,
        chunks: u64,
        reads_by: ChosenIoMethod,
        tuning: Tuning,
    ) -> Self {
        let threads = chosen_threads(tuning);
        let depth = Chosen {
            value: DEPTH,
            because: "reads ahead while buffers change hands",
        };
        let write_depth = Chosen {
            value: WRITE_DEPTH,
            because: "keeps the target busy while buffers are handed over",
        };
        let frame = Chosen {
            value: frame_bytes,
            because: "the frame the set was written with",
        };
        let wanted = threads.value + families + 1;
        let frame_buffers = chosen_buffers(tuning, frame_bytes, wanted, chunks);
        let output_buffers = Chosen {
            value: threads.value + write_depth.value,
            because: "one per thread and one per write in flight",
        };
        let output_buffers = bounded(output_buffers, chunks);
        Self {
            compression,
            families,
            mirrors: 0,
            frame_bytes: frame,
            transfer_bytes: chosen_transfer(tuning),
            part_bytes: None,
            threads,
            depth,
            write_depth,
            reads_by,
            writes_by: None,
            frame_buffers,
            output_buffers,
            codec_bytes: compression.decoder_bytes(frame_bytes),
            sample_bytes: 0,
            goal: Goal::Fast,
            adapts_level: false,
            adapts_threads: false,
            limits: Limits::default(),
            even: None,
            temporary_copy: None,
            priority: None,
        }
    }

    /// The same plan for a backup of up to `source_bytes` to objects, with so many parts of each on their way. There,
    /// MAXTRANSFERSIZE is the size of parts.
    #[must_use]
    pub fn to_objects(self, source_bytes: u64, tuning: Tuning, concurrency: Option<usize>) -> Self {
        let asked = match tuning.transfer_bytes {
            Some(bytes) => Chosen {
                value: bytes as usize,
                because: "MAXTRANSFERSIZE as given",
            },
            None => Chosen {
                value: PART_BYTES,
                because: "the default for object storage",
            },
        };
        // Stripes that are served by demand can differ in length by any amount.
        let shares = match self.even {
            Some(_) => self.families.max(1) as u64,
            None => 1,
        };
        let share = source_bytes / shares;
        let longest = share + share / 10 + (1 << 30);
        let needed = longest.div_ceil(u64::from(PARTS_PLANNED));
        let needed = needed.next_multiple_of(1 << 20) as usize;
        let part_bytes = match asked.value < needed {
            true => Chosen {
                value: needed,
                because: "a store takes 10,000 parts of an object, and all must fit",
            },
            false => asked,
        };
        Self {
            part_bytes: Some(part_bytes),
            write_depth: concurrency.map_or(self.write_depth, given_concurrency),
            ..self
        }
    }

    /// The same plan for reading from objects, so many pieces of each ahead.
    #[must_use]
    pub fn from_objects(self, concurrency: Option<usize>) -> Self {
        Self {
            depth: concurrency.map_or(self.depth, given_concurrency),
            part_bytes: Some(Chosen {
                value: PIECE_BYTES,
                because: "reads ahead while others arrive",
            }),
            reads_by: ChosenIoMethod {
                method: IoMethod::Threads,
                because: "requests to an object store".to_owned(),
            },
            ..self
        }
    }

    /// Algorithm and level, such as `ZSTD:AUTO`.
    pub fn method(&self) -> String {
        match self.adapts_level {
            true => format!("{}:AUTO", self.compression.algorithm),
            false => self.compression.to_string(),
        }
    }

    /// Upper bound on the memory of the run for moving data, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let frames =
            (self.frame_buffers.value + self.output_buffers.value) * self.frame_bytes.value;
        let in_flight = self.depth.value.max(self.write_depth.value) + 1;
        let transfer_bytes = self.part_bytes.unwrap_or(self.transfer_bytes).value;
        let transfers = self.families * (self.mirrors + 1) * in_flight * transfer_bytes;
        let codecs = self.threads.value * self.codec_bytes + self.sample_bytes;
        let kept = self.part_bytes.map_or(0, |_| ENDS_BYTES) + INDEX_BYTES;
        frames + transfers + codecs + self.families * kept
    }
}

/// Memory of one encoder.
fn encoder_bytes(compression: Compression, tuning: Tuning, frame_bytes: usize) -> usize {
    match tuning.adapts_level {
        true => Compression::adaptive_encoder_bytes(frame_bytes),
        false => compression.encoder_bytes(frame_bytes),
    }
}

/// Memory of a decoder and of one chunk that it expands.
fn sample_bytes(compression: Compression, frame_bytes: usize) -> usize {
    match compression.algorithm {
        Algorithm::None => 0,
        _ => compression.decoder_bytes(frame_bytes) + frame_bytes,
    }
}

fn given_concurrency(value: usize) -> Chosen {
    Chosen {
        value,
        because: "concurrency as given",
    }
}

fn chosen_write_depth(devices: usize) -> Chosen {
    if devices <= WRITE_DEPTH {
        Chosen {
            value: WRITE_DEPTH,
            because: "keeps each device busy while buffers are handed over",
        }
    } else {
        Chosen {
            value: WRITE_DEPTH_OF_MANY,
            because: "many devices are busy at once",
        }
    }
}

fn chosen_transfer(tuning: Tuning) -> Chosen {
    match tuning.transfer_bytes {
        Some(bytes) => Chosen {
            value: bytes as usize,
            because: "MAXTRANSFERSIZE as given",
        },
        None => Chosen {
            value: TRANSFER_BYTES,
            because: "the default for disk",
        },
    }
}

fn chosen_threads(tuning: Tuning) -> Chosen {
    match tuning.threads {
        Some(threads) => Chosen {
            value: threads.max(1) as usize,
            because: "THREADCOUNT as given",
        },
        None => {
            let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
            Chosen {
                value: cores,
                because: "one per processor",
            }
        }
    }
}

/// As [`chosen_threads`], but at most half the cores if the goal leaves cores to others.
fn backup_threads(tuning: Tuning) -> Chosen {
    let chosen = chosen_threads(tuning);
    match (tuning.threads, tuning.goal) {
        (None, Goal::Gentle) => Chosen {
            value: (chosen.value / 2).max(1),
            because: "at most half the cores, for GENTLE; fewer while they wait",
        },
        (None, Goal::Fast | Goal::Small) => Chosen {
            because: "at most one per core; fewer while they wait",
            ..chosen
        },
        (Some(_), _) => chosen,
    }
}

/// The level's own frame size; a shorter one if the database has too few frames for all threads.
fn chosen_frame(compression: Compression, source_bytes: u64, threads: usize) -> Chosen {
    let value = compression.frame_bytes();
    let share = source_bytes.div_ceil(threads.min(SHARES_MAX) as u64);
    let share = share.next_multiple_of(FRAME_BYTES_MIN as u64);
    let share = usize::try_from(share).map_or(value, |share| share.max(SHARE_BYTES_MIN));
    if share < value {
        return Chosen {
            value: share,
            because: "small database: one per thread",
        };
    }
    Chosen {
        value,
        because: "the frame with the best ratio at this level's speed",
    }
}

/// Limits the number of buffers to one per chunk, plus one for detecting the end.
fn bounded(wanted: Chosen, chunks: u64) -> Chosen {
    let bound =
        usize::try_from(chunks.max(1)).map_or(usize::MAX, |chunks| chunks.saturating_add(1));
    if wanted.value <= bound {
        return wanted;
    }
    Chosen {
        value: bound,
        because: "small database: one per chunk and one spare",
    }
}

fn chosen_buffers(tuning: Tuning, frame_bytes: usize, wanted: usize, chunks: u64) -> Chosen {
    match tuning.buffer_count {
        Some(count) => {
            let bytes = (count as usize).saturating_mul(chosen_transfer(tuning).value);
            Chosen {
                value: bytes.div_ceil(frame_bytes).clamp(2, 1 << 16),
                because: "BUFFERCOUNT transfers, in whole frames",
            }
        }
        None => {
            let wanted = Chosen {
                value: wanted,
                because: "one per thread, transfer and family that may hold one",
            };
            bounded(wanted, chunks)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads_by() -> ChosenIoMethod {
        ChosenIoMethod::chosen(IoMethodChoice::Threads, true)
    }

    fn whole(bytes: u64) -> SourceSize {
        SourceSize { bytes, ranges: 1 }
    }

    #[test]
    fn given_numbers_are_used_and_say_so() {
        let tuning = Tuning {
            buffer_count: Some(8),
            transfer_bytes: Some(256 << 10),
            threads: Some(3),
            ..Tuning::default()
        };
        let plan = Plan::for_backup(Compression::NONE, 2, 1, whole(1 << 30), reads_by(), tuning);
        assert_eq!(plan.frame_bytes.value, 256 << 10);
        assert_eq!(plan.frame_buffers.value, 8);
        assert_eq!(
            plan.threads,
            Chosen {
                value: 3,
                because: "THREADCOUNT as given"
            }
        );
        assert_eq!(plan.output_buffers.value, 0);
        assert!(plan.to_string().contains("BUFFERCOUNT transfers"));
    }

    #[test]
    fn memory_is_what_buffers_transfers_and_encoders_add_up_to() {
        let plan = Plan::for_backup(
            Compression::ZSTD_LOW,
            1,
            0,
            whole(1 << 30),
            reads_by(),
            Tuning {
                threads: Some(2),
                ..Tuning::default()
            },
        );
        let frames = plan.frame_buffers.value + plan.output_buffers.value;
        let expected = frames * plan.frame_bytes.value
            + (plan.write_depth.value + 1) * plan.transfer_bytes.value
            + 2 * plan.codec_bytes
            + plan.sample_bytes
            + INDEX_BYTES;
        assert_eq!(plan.memory_bytes(), expected);
    }

    #[test]
    fn large_transfers_to_many_files_take_no_more_memory_than_keeps_them_busy() {
        let buffers = |transfer_bytes, families| {
            let tuning = Tuning {
                threads: Some(2),
                transfer_bytes: Some(transfer_bytes),
                ..Tuning::default()
            };
            let size = whole(1 << 40);
            let plan = Plan::for_backup(Compression::NONE, families, 0, size, reads_by(), tuning);
            plan.frame_buffers.value
        };
        assert_eq!(buffers(1 << 20, 8), 2 + 4 + 8 + 16);
        assert_eq!(buffers(4 << 20, 8), 16, "64 MB");
        assert_eq!(buffers(4 << 20, 1), 2 + 4 + 1 + 4);
        assert_eq!(buffers(4 << 20, 64), 2 + 4 + 64, "one for each at least");
    }

    #[test]
    fn parts_of_objects_fit_the_number_that_a_store_takes_and_are_counted_in_the_memory() {
        let plan = |bytes, families, tuning: Tuning| {
            let size = whole(bytes);
            let plan = Plan::for_backup(Compression::NONE, families, 0, size, reads_by(), tuning);
            plan.to_objects(bytes, tuning, None)
        };
        let part = |plan: &Plan| plan.part_bytes.expect("parts").value;
        let given = Tuning {
            transfer_bytes: Some(20 << 20),
            ..Tuning::default()
        };
        let even = Tuning {
            is_even: true,
            ..Tuning::default()
        };
        assert_eq!(part(&plan(1 << 30, 1, Tuning::default())), 10 << 20);
        assert_eq!(part(&plan(1 << 30, 1, given)), 20 << 20);
        let few = plan(1 << 30, 1, given);
        let many = few.clone().to_objects(1 << 30, given, Some(16));
        let more = (16 - few.write_depth.value) * part(&few);
        assert_eq!(many.memory_bytes(), few.memory_bytes() + more);
        for (bytes, families, tuning) in [
            (1_u64 << 40, 1, Tuning::default()),
            (1 << 40, 1, given),
            (1 << 43, 8, even),
        ] {
            let plan = plan(bytes, families, tuning);
            let share = bytes / families as u64;
            assert!(part(&plan) as u64 * u64::from(PARTS_PLANNED) > share + share / 20);
            let in_flight = families * (plan.write_depth.value + 1) * part(&plan);
            assert!(plan.memory_bytes() > in_flight);
            assert!(plan.to_string().contains("all must fit"), "{plan}");
        }
    }

    #[test]
    fn a_small_database_gets_small_buffers() {
        let tuning = Tuning {
            threads: Some(2),
            ..Tuning::default()
        };
        let plan =
            |bytes| Plan::for_backup(Compression::ZSTD_HIGH, 1, 0, bytes, reads_by(), tuning);
        let figures = |source| {
            let plan = plan(source);
            (
                plan.frame_bytes.value,
                plan.frame_buffers.value,
                plan.output_buffers.value,
            )
        };
        assert_eq!(figures(whole(0)), (1 << 20, 2, 2));
        assert_eq!(figures(whole(2 << 20)), (1 << 20, 4, 4));
        assert_eq!(
            figures(whole((5 << 20) + 1)),
            ((5 << 19) + (64 << 10), 3, 3)
        );
        assert_eq!(figures(whole(1 << 40)), (8 << 20, 7, 4));
        let scattered = SourceSize {
            bytes: 100 * (64 << 10),
            ranges: 100,
        };
        assert_eq!(figures(scattered).1, 7);
        assert!(plan(whole(2 << 20)).to_string().contains("small database"));
    }
}
