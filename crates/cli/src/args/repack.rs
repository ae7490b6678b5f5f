//! `windlass repack` and `windlass unpack`.

use std::path::PathBuf;

use clap::Args;
use windlass_base::range;
use windlass_instance::operation::CompressionChoice;
use windlass_io::queue::IoMethodChoice;

use super::number::number;
use super::{KeyArguments, Threads, TuningArguments, WrittenArguments};

const REPACK_NOTES: &str = "\
Each set of the SQL Server backup is verified as windlass verify does it, page by page, and becomes a set
on Windlass media; header, files and verify show it there. windlass unpack gives the file back, byte for
byte; of a compressed backup, the uncompressed one. The original is not changed, and nothing is entered
in the backup history.";

/// `windlass repack`
#[derive(Debug, Args)]
#[command(after_help = REPACK_NOTES)]
pub(crate) struct RepackArguments {
    /// SQL Server backup files: all media families (stripes) of one backup, in any order
    #[arg(required = true)]
    pub(crate) files: Vec<String>,
    /// Backup file to write; repeat for a striped one
    #[arg(long, required = true, value_name = "FILE")]
    pub(crate) to: Vec<String>,
    #[command(flatten)]
    pub(crate) media: WrittenArguments,
    #[arg(
        long,
        value_name = "ALGORITHM",
        help = "none, ms_xpress, zstd[:low|:medium|:high], qat_deflate, or auto, which picks the ZSTD level during the run [default: zstd:high]"
    )]
    pub(crate) compress: Option<CompressionChoice>,
    /// Copy a damaged backup too, marked as damaged
    #[arg(long)]
    pub(crate) continue_after_error: bool,
    /// Name of the backup sets [default: that of each original]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Description of the backup sets [default: that of each original]
    #[arg(long)]
    pub(crate) description: Option<String>,
    #[command(flatten)]
    pub(crate) tuning: TuningArguments,
    /// Report progress every N percent, with SQL Server's messages
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10", value_parser = number::<u32>(range::STATS))]
    pub(crate) stats: Option<u32>,
}

const UNPACK_NOTES: &str = "\
All sets that were copied from one SQL Server backup are written, in its own format: byte-identical to a
plain original. A compressed original comes back uncompressed.";

/// `windlass unpack`
#[derive(Debug, Args)]
#[command(after_help = UNPACK_NOTES)]
pub(crate) struct UnpackArguments {
    /// Windlass media that windlass repack wrote, all stripes in any order
    #[arg(required = true)]
    pub(crate) media: Vec<String>,
    /// SQL Server backup file to write; repeat for a striped one, in the order of its media families
    #[arg(long, required = true, value_name = "FILE")]
    pub(crate) to: Vec<PathBuf>,
    /// Position of a backup set that was copied from the wanted file [default: the media contain one file]
    #[arg(long, visible_alias = "file", value_name = "N", value_parser = number::<u16>(range::POSITION))]
    pub(crate) set: Option<u16>,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) replace: bool,
    /// Write as much as can be read
    #[arg(long)]
    pub(crate) continue_after_error: bool,
    /// Refuse backup sets that were not signed with the key whose public half is in this file; can be
    /// repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) signed_by: Vec<PathBuf>,
    /// Expected name of the media set
    #[arg(long)]
    pub(crate) media_name: Option<String>,
    #[command(flatten)]
    pub(crate) keys: KeyArguments,
    /// Number of threads that expand
    #[arg(long, value_name = "N|auto")]
    pub(crate) threads: Option<Threads>,
    /// I/O method for reading; auto uses the ring where available
    #[arg(long, value_name = "auto|io_uring|threads", default_value = "auto")]
    pub(crate) io: IoMethodChoice,
    /// Report progress every N percent, with SQL Server's messages
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10", value_parser = number::<u32>(range::STATS))]
    pub(crate) stats: Option<u32>,
}
