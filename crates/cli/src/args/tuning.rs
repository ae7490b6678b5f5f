//! Values of a run that the plan chooses unless they are given.

use clap::Args;
use windlass_base::range;
use windlass_io::queue::IoMethodChoice;

use super::Threads;
use super::number::{number, transfer_bytes};

/// Values that the plan chooses unless they are given.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Speed")]
pub(crate) struct TuningArguments {
    /// Number of transfers in flight
    #[arg(long, value_name = "N", value_parser = number::<u32>(range::BUFFER_COUNT))]
    pub(crate) buffer_count: Option<u32>,
    /// Bytes per transfer: a multiple of 64K up to 4M; for URLs of objects, bytes per part: 5M to 20M
    #[arg(long, value_name = "BYTES", value_parser = transfer_bytes)]
    pub(crate) max_transfer_size: Option<i64>,
    /// Threads that compress and check; auto uses as many as have work, at most one per core
    #[arg(long, value_name = "N|auto")]
    pub(crate) threads: Option<Threads>,
    /// I/O method; auto uses the ring where available
    #[arg(long, value_name = "auto|io_uring|threads", default_value = "auto")]
    pub(crate) io: IoMethodChoice,
}

impl TuningArguments {
    /// The number of threads, if one was given.
    pub(crate) fn threads(&self) -> Option<i64> {
        self.threads.and_then(Threads::count).map(i64::from)
    }
}
