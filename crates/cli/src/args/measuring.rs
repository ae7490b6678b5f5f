//! The command line of `bench` and `tune`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use windlass_base::size::parse_bytes;
use windlass_codec::{Algorithm, Compression};
use windlass_tune::CachePolicy;
use windlass_tune::advice::Goal;
use windlass_tune::experiment::POOL_PAGES;

use super::number::{block_bytes, file_transfer_bytes};

const BENCH_NOTES: &str = "\
Each experiment repeats the measurements of an article on your database. The database is only read,
and all files written are removed. docs/tuning.md explains every column.";

/// `windlass bench`
#[derive(Debug, Args)]
#[command(after_help = BENCH_NOTES)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    pub(crate) experiment: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Algorithms and levels, to a file and to NUL: time, throughput, CPU, size
    Compression {
        #[command(flatten)]
        run: BenchRun,
        #[command(flatten)]
        compressions: CompressionList,
    },
    /// One and several files, BLOCKSIZE, MAXTRANSFERSIZE
    Devices {
        #[command(flatten)]
        run: BenchRun,
        /// Numbers of files
        #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1,2,4,8",
              value_parser = clap::value_parser!(u16).range(1..=64))]
        files: Vec<u16>,
        /// BLOCKSIZE: powers of two from 512 to 64K
        #[arg(long, value_name = "BYTES,BYTES", value_delimiter = ',', default_value = "4K,64K",
              value_parser = block_bytes::<u32>)]
        block_size: Vec<u32>,
        /// MAXTRANSFERSIZE: multiples of 64K up to 4M
        #[arg(long, value_name = "BYTES,BYTES", value_delimiter = ',', default_value = "256K,1M,4M",
              value_parser = file_transfer_bytes)]
        max_transfer_size: Vec<u32>,
        /// Compression of the backups
        #[arg(long, value_name = "ALGORITHM", default_value = "none")]
        compress: Compression,
    },
    /// Reading only; reading and compressing; whole backups: for each number of threads
    Stages {
        #[command(flatten)]
        run: BenchRun,
        #[command(flatten)]
        compressions: CompressionList,
        /// Compression threads [default: from 1 to one more than there are cores]
        #[arg(long, value_name = "N,N", value_delimiter = ',',
              value_parser = clap::value_parser!(u32).range(1..=256))]
        threads: Vec<u32>,
    },
    /// Backups of the page engine on a large buffer pool, with both kinds of checkpoints
    Checkpoint {
        /// Folder for the databases and backups
        #[arg(long, value_name = "DIR", default_value = ".")]
        to: PathBuf,
        /// A pool of 256 GB, one size and two rounds: less than a minute, and 1.4 GB of memory
        #[arg(long, conflicts_with_all = ["pool_pages", "size", "rounds"])]
        short: bool,
        /// Buffers of 8 KB in the large pool; only their descriptors use memory, 32 bytes each
        #[arg(long, value_name = "N", default_value_t = POOL_PAGES,
              value_parser = clap::value_parser!(u64).range(1_000_000..=1 << 32))]
        pool_pages: u64,
        /// Sizes of the databases
        #[arg(long, value_name = "BYTES,BYTES", value_delimiter = ',', default_value = "10M,100M",
              value_parser = parse_database_size)]
        size: Vec<u64>,
        /// Runs of each variant; medians are shown
        #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
        rounds: u32,
        #[command(flatten)]
        files: ResultFiles,
    },
    /// Backup, verification and restore of every algorithm and level
    Restore {
        #[command(flatten)]
        run: BenchRun,
        #[command(flatten)]
        compressions: CompressionList,
    },
}

/// Arguments of every experiment.
#[derive(Debug, Args)]
pub(crate) struct BenchRun {
    /// SQLite file, or the name of a database registered with the instance
    pub(crate) database: String,
    /// Runs of each variant; medians are shown
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    #[command(flatten)]
    pub(crate) content: ContentArgument,
    #[command(flatten)]
    pub(crate) cache: CacheArgument,
    /// Folder for the backups; repeat to spread files over several [default: the database's folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) files: ResultFiles,
}

#[derive(Debug, Args)]
pub(crate) struct CompressionList {
    #[arg(
        help = "Only these: none, ms_xpress, zstd[:low|:medium|:high], qat_deflate",
        id = "compress",
        long = "compress",
        value_name = "ALGORITHM",
        value_delimiter = ','
    )]
    pub(crate) only: Vec<Compression>,
}

impl CompressionList {
    /// The requested compressions, else all, else all that compress.
    pub(crate) fn list(&self, with_none: bool) -> Vec<Compression> {
        let all = Compression::ALL.into_iter();
        if self.only.is_empty() {
            all.filter(|compression| with_none || compression.algorithm != Algorithm::None)
                .collect()
        } else {
            all.filter(|compression| self.only.contains(compression))
                .collect()
        }
    }
}

/// Which files are measured.
#[derive(Debug, Args)]
pub(crate) struct ContentArgument {
    /// Measure a file without a SQLite header (such as an encrypted database) too
    #[arg(long)]
    pub(crate) as_is: bool,
}

/// Treatment of the page cache.
#[derive(Debug, Args)]
pub(crate) struct CacheArgument {
    /// Whether to drop the files that a run will read from the page cache
    #[arg(long, value_enum, default_value = "drop")]
    pub(crate) cache: CacheChoice,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CacheChoice {
    /// Before each run
    Drop,
    /// Never
    Keep,
}

impl From<CacheChoice> for CachePolicy {
    fn from(choice: CacheChoice) -> Self {
        match choice {
            CacheChoice::Drop => Self::Drop,
            CacheChoice::Keep => Self::Keep,
        }
    }
}

/// Where results go besides the terminal.
#[derive(Debug, Args)]
pub(crate) struct ResultFiles {
    /// Write tables and charts as one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write the tables and every single run as JSON, in the format of --json
    #[arg(long, value_name = "FILE")]
    pub(crate) json_to: Option<PathBuf>,
}

const TUNE_NOTES: &str = "\
Takes three steps on samples of the database: measures how fast it can be read, then which compression
and how many threads keep up with that, then which files and transfer sizes do. The database is only
read, and all files written are removed.";

/// `windlass tune`
#[derive(Debug, Args)]
#[command(after_help = TUNE_NOTES)]
pub(crate) struct TuneArguments {
    /// SQLite file, or the name of a database registered with the instance
    pub(crate) database: String,
    /// Folder or file for backups; repeat for several drives [default: the database's folder]
    #[arg(long, value_name = "DIR_OR_FILE")]
    pub(crate) to: Vec<PathBuf>,
    /// Time limit for the measurements
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds)]
    pub(crate) time: Duration,
    /// fast: the shortest backup; small: the smallest; balanced: the lowest product of time and
    /// size
    #[arg(long, default_value = "balanced")]
    pub(crate) goal: Goal,
    #[command(flatten)]
    pub(crate) content: ContentArgument,
    #[command(flatten)]
    pub(crate) cache: CacheArgument,
    #[command(flatten)]
    pub(crate) files: ResultFiles,
}

fn parse_database_size(text: &str) -> Result<u64, String> {
    parse_bytes(text)
        .filter(|bytes| (1 << 20..=1 << 36).contains(bytes))
        .ok_or_else(|| format!("'{text}' is not a size from 1M to 64G"))
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.trim_end_matches('s').parse().ok();
    seconds
        .filter(|seconds| (0.1..=86_400.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("'{text}' is not a number of seconds from 0.1 to 86400"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_out_of_range_are_refused() {
        assert_eq!(block_bytes("4K"), Ok(4096_u32));
        assert!(block_bytes::<u32>("3000").is_err() && block_bytes::<u32>("128K").is_err());
        assert_eq!(file_transfer_bytes("4M"), Ok(4 << 20));
        assert!(file_transfer_bytes("65537").is_err() && file_transfer_bytes("8M").is_err());
        assert_eq!(parse_seconds("0.5s"), Ok(Duration::from_millis(500)));
        assert!(parse_seconds("-1").is_err() && parse_seconds("NaN").is_err());
    }

    #[test]
    fn a_list_keeps_the_order_of_the_documentation() {
        let only = vec![Compression::ZSTD_LOW, Compression::NONE];
        let list = CompressionList { only }.list(false);
        assert_eq!(list, [Compression::NONE, Compression::ZSTD_LOW]);
        let all = CompressionList { only: Vec::new() };
        assert_eq!((all.list(true).len(), all.list(false).len()), (6, 5));
    }
}
