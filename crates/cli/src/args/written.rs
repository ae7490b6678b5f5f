//! The media that a command writes.

use std::path::PathBuf;

use clap::Args;
use windlass_base::{Moment, range};

use super::number::{block_bytes, number};

/// How media are written, by backup and repack.
#[derive(Debug, Args)]
#[command(next_help_heading = "Media")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch")]
pub(crate) struct WrittenArguments {
    /// Second, third or fourth copy, made with --format and then appended to; give each mirror as many files as there are --to
    #[arg(long, value_name = "FILE")]
    pub(crate) mirror: Vec<String>,
    /// Overwrite the backup sets on the media, unless one has a date of --expire or --retain-days that is still to come
    #[arg(long)]
    pub(crate) init: bool,
    /// Start new media; everything in the files is lost
    #[arg(long)]
    pub(crate) format: bool,
    /// Overwrite sets that have not expired, and do not compare media names
    #[arg(long, visible_alias = "overwrite-expired")]
    pub(crate) skip: bool,
    /// Name of the media set: written on new media, compared on existing media
    #[arg(long)]
    pub(crate) media_name: Option<String>,
    /// Description of the media set
    #[arg(long)]
    pub(crate) media_description: Option<String>,
    /// Block size of the media: a power of two from 512 to 64K
    #[arg(long, value_name = "BYTES", value_parser = block_bytes::<i64>)]
    pub(crate) block_size: Option<i64>,
    /// Date before which the set may not be overwritten
    #[arg(long, value_name = "DATE")]
    pub(crate) expire: Option<Moment>,
    /// Number of days for which the set may not be overwritten
    #[arg(long, value_name = "DAYS", value_parser = number::<u32>(range::RETAIN_DAYS))]
    pub(crate) retain_days: Option<u32>,
    /// Encrypt (AES-256) for the owner of this certificate's private key, PEM or DER; can be
    /// repeated
    #[arg(long, visible_alias = "encrypt", value_name = "CERTIFICATE")]
    pub(crate) encrypt_to: Vec<PathBuf>,
    /// Encrypt with the passphrase in the first line of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
    /// Sign the backup set with this Ed25519 key, PKCS#8 in PEM or DER; windlass signing-key creates one
    #[arg(long, value_name = "FILE")]
    pub(crate) sign_with: Option<PathBuf>,
    /// Write at most this many MB per second to each file
    #[arg(long, value_name = "MB", value_parser = number::<u32>(range::WRITE_RATE))]
    pub(crate) max_write_rate: Option<u32>,
    /// Options for the object store of URLs, as in T-SQL, such as {"s3": {"checksum": "sha256"}}
    #[arg(long, value_name = "JSON")]
    pub(crate) backup_options: Option<String>,
    /// Spread the data evenly over the files, also if one of them is slower (always so on one disk)
    #[arg(long)]
    pub(crate) even_stripes: bool,
}
