//! `windlass repack` and `windlass unpack`.

use std::path::PathBuf;

use clap::Args;
use windlass_base::Moment;
use windlass_instance::operation::CompressionChoice;
use windlass_io::queue::IoMethodChoice;

use super::{KeyArguments, Threads, TuningArguments, parse_size};

const REPACK_NOTES: &str = "\
Each set of the SQL Server backup is verified as windlass verify does it, page by page, and becomes a set
on Windlass media; header, files and verify show it there. windlass unpack gives the file back, byte for
byte; of a compressed backup, the uncompressed one. The original is not changed, and nothing is entered
in the backup history.";

/// `windlass repack`
#[expect(clippy::struct_excessive_bools, reason = "each is a switch")]
#[derive(Debug, Args)]
#[command(after_help = REPACK_NOTES)]
pub(crate) struct RepackArguments {
    /// SQL Server backup files: all media families (stripes) of one backup, in any order
    #[arg(required = true)]
    pub(crate) files: Vec<String>,
    /// Backup file to write; repeat for a striped one
    #[arg(long, required = true, value_name = "FILE")]
    pub(crate) to: Vec<String>,
    /// Second, third or fourth copy; give each mirror as many files as there are --to
    #[arg(long, value_name = "FILE")]
    pub(crate) mirror: Vec<String>,
    #[arg(
        long,
        value_name = "ALGORITHM",
        help = "none, ms_xpress, zstd[:low|:medium|:high], qat_deflate, or auto, which picks the ZSTD level during the run [default: zstd:high]"
    )]
    pub(crate) compress: Option<CompressionChoice>,
    /// Encrypt (AES-256) for the owner of this certificate's private key, PEM or DER; can be
    /// repeated
    #[arg(long, visible_alias = "encrypt", value_name = "CERTIFICATE")]
    pub(crate) encrypt_to: Vec<PathBuf>,
    /// Encrypt with the passphrase in the first line of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
    /// Sign the backup sets with this Ed25519 key, PKCS#8 in PEM or DER
    #[arg(long, value_name = "FILE")]
    pub(crate) sign_with: Option<PathBuf>,
    /// Overwrite the backup sets on the media if they have expired
    #[arg(long)]
    pub(crate) init: bool,
    /// Start new media; everything in the files is lost
    #[arg(long)]
    pub(crate) format: bool,
    /// Overwrite sets that have not expired, and do not compare media names
    #[arg(long, visible_alias = "overwrite-expired")]
    pub(crate) skip: bool,
    /// Copy a damaged backup too, marked as damaged
    #[arg(long)]
    pub(crate) continue_after_error: bool,
    /// Name of the backup sets [default: that of each original]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Description of the backup sets [default: that of each original]
    #[arg(long)]
    pub(crate) description: Option<String>,
    /// Name of the media set: written on new media, compared on existing media
    #[arg(long)]
    pub(crate) media_name: Option<String>,
    /// Description of the media set
    #[arg(long)]
    pub(crate) media_description: Option<String>,
    /// Date before which the sets may not be overwritten
    #[arg(long, value_name = "DATE")]
    pub(crate) expire: Option<Moment>,
    /// Number of days for which the sets may not be overwritten
    #[arg(long, value_name = "DAYS")]
    pub(crate) retain_days: Option<u32>,
    /// Write at most this many MB per second to each file
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_write_rate: Option<u32>,
    /// Block size of the media: a power of two from 512 to 64K
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) block_size: Option<i64>,
    #[command(flatten)]
    pub(crate) tuning: TuningArguments,
    /// Report progress every N percent, with SQL Server's messages
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10")]
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
    #[arg(long, visible_alias = "file", value_name = "N")]
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
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10")]
    pub(crate) stats: Option<u32>,
}
