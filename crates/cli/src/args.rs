//! The command line: what it says, not what it means.

mod adapting;
mod demo;
mod import_export;
mod inspect;
mod locking;
mod measuring;
mod sqlserver;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use windlass_base::size::parse_bytes;
use windlass_instance::RestorePolicy;
use windlass_io::queue::IoMethodChoice;

use crate::logging::{Format, Level};

pub(crate) use adapting::{Compress, Goal, Integrity, Threads};
pub(crate) use demo::{DemoArguments, DemoWriterArguments};
pub(crate) use import_export::{ExportArguments, ImportArguments};
pub(crate) use inspect::{FilesArguments, HeaderArguments, LabelArguments};
pub(crate) use locking::LockingArguments;
pub(crate) use measuring::{BenchArguments, BenchCommand, BenchRun, ResultFiles, TuneArguments};
pub(crate) use sqlserver::{ExtractArguments, ExtractFormat, InspectArguments};

const EXAMPLES: &str = "\
Examples:
  windlass backup app.db --to app.bak
  windlass backup app.db --to 1.bak --to 2.bak --compress zstd:high --checksum
  windlass backup app.db --to app.bak --differential
  windlass header app.bak
  windlass verify app.bak
  windlass restore app.bak --to copy.db
  windlass tune app.db --to /srv/backup --report tune.html
  windlass bench compression app.db
  windlass sql -i nightly.sql --instance /srv/windlass --drive d=/srv/d
  windlass demo

Results go to standard output, messages to standard error. The exit code is 0 on success, 1 when
something failed, 2 for a command line that makes no sense.";

/// SQL Server's BACKUP and RESTORE for SQLite databases: online, striped, compressed, checksummed.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// What every command knows.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Directory of the instance: registered databases, history, differential bases. Made when it
    /// does not exist. Without one, nothing is remembered
    #[arg(long, global = true, env = "WINDLASS_INSTANCE", value_name = "DIR")]
    pub(crate) instance: Option<PathBuf>,
    /// Folder that stands for a drive letter: --drive d=/srv/d
    #[arg(long, global = true, value_name = "LETTER=DIR", value_parser = parse_drive)]
    pub(crate) drive: Vec<(char, PathBuf)>,
    /// Configuration file, instead of those of the user and the system
    #[arg(long, global = true, env = "WINDLASS_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Machine-readable output: a result set is an array of objects keyed by column names, messages
    /// are objects, one to a line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// File that a log is appended to: the beginning, end and errors of each statement
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
    /// How the log is written. Without a log file, to standard error
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<Format>,
    /// What is written to the log. Without a log file, to standard error
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) log_level: Option<Level>,
    /// What the configuration files hold restores to.
    #[arg(skip)]
    pub(crate) restores: RestorePolicy,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Back a database up while it is in use
    Backup(Box<BackupArguments>),
    /// Restore a database from its backup
    Restore(Box<RestoreArguments>),
    /// Read backup sets entirely and check every byte
    Verify(VerifyArguments),
    /// Show the backup sets on media (RESTORE HEADERONLY)
    Header(HeaderArguments),
    /// Show the database files in a backup set (RESTORE FILELISTONLY)
    Files(FilesArguments),
    /// Show what a media family says of itself (RESTORE LABELONLY)
    Label(LabelArguments),
    /// Show what lies where in a backup of SQL Server: its blocks, streams and pages
    Inspect(InspectArguments),
    /// Get the tables out of backups of SQL Server: as SQLite, as CSV, or as data files
    Extract(ExtractArguments),
    /// Give encrypted backup sets other recipients, without touching the media
    Rekey(RekeyArguments),
    /// Make a database of the page engine from a SQLite file
    Import(ImportArguments),
    /// Write a database of the page engine to a SQLite file
    Export(ExportArguments),
    /// Run T-SQL: a script, a batch, or a prompt
    Sql(SqlArguments),
    /// Measure a database's backups, find what limits them, recommend settings, predict the result
    Tune(Box<TuneArguments>),
    /// Repeat the measurements of the articles on a database
    Bench(Box<BenchArguments>),
    /// Back up, verify and restore a database that is being written to, and prove the result
    Demo(DemoArguments),
    #[command(flatten)]
    Operate(crate::operate::Command),
    /// The writer of the demonstration
    #[command(hide = true)]
    DemoWriter(DemoWriterArguments),
}

const BACKUP_NOTES: &str = "\
The database is a SQLite file, or the name of a database that is registered with the instance. It may
be in use: in WAL mode nobody is blocked; with a rollback journal writers wait for a plain copy of it, or
for the backup where there is no room for a copy (the plan tells, and the result how long they waited).

A differential counts from the last full backup that is not --copy-only: the one that the instance
remembers, else the newest one on the media that the differential goes to, else the one on --base.";

/// `windlass backup`
#[expect(clippy::struct_excessive_bools, reason = "each is a switch")]
#[derive(Debug, Args)]
#[command(after_help = BACKUP_NOTES)]
pub(crate) struct BackupArguments {
    /// SQLite file, or a name known to the instance
    pub(crate) database: String,
    /// Backup file; several make a striped backup. NUL discards
    #[arg(long, required_unless_present_any = ["no_write", "no_compress_write"], value_name = "FILE")]
    pub(crate) to: Vec<String>,
    /// Second, third or fourth copy: as many as there are --to, for each mirror
    #[arg(long, value_name = "FILE")]
    pub(crate) mirror: Vec<String>,
    #[arg(
        long,
        value_name = "ALGORITHM",
        help = "none, ms_xpress, zstd[:low|:medium|:high], qat_deflate, or auto: the level of ZSTD is picked while the backup runs [default: zstd:low; auto with --goal]"
    )]
    pub(crate) compress: Option<Compress>,
    /// What the backup adapts itself to: fast, small, or gentle to the database's users
    #[arg(long, value_enum)]
    pub(crate) goal: Option<Goal>,
    /// Read no more than so many MB of the database in a second
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_rate: Option<u32>,
    /// Write no more than so many MB in a second to each file
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_write_rate: Option<u32>,
    /// Only what changed since the last full backup
    #[arg(long)]
    pub(crate) differential: bool,
    /// Media of the full backup that the differential counts from
    #[arg(long, value_name = "FILE", requires = "differential")]
    pub(crate) base: Vec<PathBuf>,
    /// Make a differential although the media of its full backup are gone
    #[arg(long, requires = "differential")]
    pub(crate) base_missing_ok: bool,
    /// Do not become the base of differentials
    #[arg(long)]
    pub(crate) copy_only: bool,
    /// Verify the database's own page checksums, where it has any
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Take a file without SQLite's header, an encrypted database, as it is
    #[arg(long, conflicts_with = "integrity")]
    pub(crate) as_is: bool,
    /// Run SQLite's own check on what is backed up, and fail on what it finds
    #[arg(long, value_name = "DEPTH")]
    pub(crate) integrity: Option<Integrity>,
    /// Go on in spite of pages that do not match their checksums
    #[arg(long)]
    pub(crate) continue_after_error: bool,
    /// Overwrite the backup sets on the media, unless they have not expired
    #[arg(long)]
    pub(crate) init: bool,
    /// Begin new media; whatever the files held is lost
    #[arg(long)]
    pub(crate) format: bool,
    /// Overwrite sets that have not expired, and do not compare names
    #[arg(long, visible_alias = "overwrite-expired")]
    pub(crate) skip: bool,
    /// Name of the backup set
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Description of the backup set
    #[arg(long)]
    pub(crate) description: Option<String>,
    /// Name of the media set: written on new media, compared on existing media
    #[arg(long)]
    pub(crate) media_name: Option<String>,
    /// Description of the media set
    #[arg(long)]
    pub(crate) media_description: Option<String>,
    /// Date until which the set may not be overwritten
    #[arg(long, value_name = "DATE")]
    pub(crate) expire: Option<String>,
    /// Days for which the set may not be overwritten
    #[arg(long, value_name = "DAYS")]
    pub(crate) retain_days: Option<u32>,
    /// Encrypt (AES-256) for whoever has the private key of this certificate, PEM or DER; several may
    /// be given
    #[arg(long, value_name = "CERTIFICATE")]
    pub(crate) encrypt_to: Vec<PathBuf>,
    /// Encrypt for whoever knows the passphrase in this file's first line
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
    /// Read and compress, write nothing, tell the rate: no backup is made
    #[arg(long, conflicts_with_all = ["no_compress_write", "differential", "mirror"])]
    pub(crate) no_write: bool,
    /// Only read, tell the rate: no backup is made
    #[arg(long, conflicts_with_all = ["differential", "mirror"])]
    pub(crate) no_compress_write: bool,
    #[command(flatten)]
    pub(crate) locking: LockingArguments,
    #[command(flatten)]
    pub(crate) tuning: TuningArguments,
    /// Unit of the media's layout: a power of two from 512 to 64K
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) block_size: Option<i64>,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

/// The numbers that the plan chooses unless they are given.
#[derive(Debug, Args)]
pub(crate) struct TuningArguments {
    /// Transfers in flight
    #[arg(long, value_name = "N")]
    pub(crate) buffer_count: Option<u32>,
    /// Bytes in a transfer: a multiple of 64K up to 4M
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) max_transfer_size: Option<i64>,
    /// Threads that compress and check; auto takes as many as have work, up to the processors
    #[arg(long, value_name = "N|auto")]
    pub(crate) threads: Option<Threads>,
    /// What carries reads and writes; auto takes the kernel's ring where there is one
    #[arg(long, value_name = "auto|io_uring|threads", default_value = "auto")]
    pub(crate) io: IoMethodChoice,
}

/// Keys for sets that are encrypted. With any of them, a set that is not encrypted is refused.
#[derive(Debug, Args)]
pub(crate) struct KeyArguments {
    /// Private key (PKCS#8, PEM or DER) of a certificate that the set is encrypted for
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Vec<PathBuf>,
    /// Password of encrypted --key files, in this file's first line
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) key_password_file: Option<PathBuf>,
    /// Passphrase that the set is encrypted for, in this file's first line
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
}

/// How a run reports.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Report progress every N percent, in SQL Server's words
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10")]
    pub(crate) stats: Option<u32>,
    /// Say what would be done, and do nothing: the T-SQL, the plan with its reasons, the files, and
    /// estimates of size and time
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the plan of the run too: every number, and why. The run goes on; see --dry-run
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print the T-SQL that says the same on standard output, and what else there is to say beside it.
    /// The run goes on; see --dry-run
    #[arg(long)]
    pub(crate) tsql: bool,
}

const RESTORE_NOTES: &str = "\
Without --set the newest state is restored that the media can give: the newest full backup, and the newest
differential upon it. What is used and what is left out is said, with the reason. The files may be those of
several media sets. With --no-recovery it is the newest full backup alone; the next restore into the same
target then takes the newest differential upon it.";

/// `windlass restore`
#[expect(clippy::struct_excessive_bools, reason = "each is a switch")]
#[derive(Debug, Args)]
#[command(after_help = RESTORE_NOTES)]
pub(crate) struct RestoreArguments {
    /// Backup files, all stripes in any order; none to end a sequence of --no-recovery restores
    pub(crate) media: Vec<String>,
    /// Where the database goes
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
    /// Restore a logical file to a path: --move app=/srv/app.db
    #[arg(long = "move", value_name = "LOGICAL=FILE", value_parser = parse_move)]
    pub(crate) moves: Vec<(String, String)>,
    /// Register the database with the instance under this name
    #[arg(long, value_name = "NAME")]
    pub(crate) database: Option<String>,
    /// Position of the one backup set to restore [default: those that give the newest state]
    #[arg(long, visible_alias = "file", value_name = "N")]
    pub(crate) set: Option<u16>,
    /// Whose backups are meant, where the media hold those of several databases
    #[arg(long, value_name = "NAME", conflicts_with = "set")]
    pub(crate) of: Option<String>,
    /// Overwrite what is there
    #[arg(long)]
    pub(crate) replace: bool,
    /// Leave the database restoring, for a differential to follow
    #[arg(long)]
    pub(crate) no_recovery: bool,
    /// Refuse a set that was made without --checksum
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Restore as much as can be read
    #[arg(long)]
    pub(crate) continue_after_error: bool,
    /// Restore what the backup holds although it is no database
    #[arg(long)]
    pub(crate) as_is: bool,
    /// Apply a backup that is less protected than the encrypted one it follows
    #[arg(long)]
    pub(crate) allow_unencrypted: bool,
    /// Name that the media set must have
    #[arg(long)]
    pub(crate) media_name: Option<String>,
    /// Make the restored file read-only
    #[arg(long, conflicts_with = "no_recovery")]
    pub(crate) read_only: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArguments,
    #[command(flatten)]
    pub(crate) tuning: TuningArguments,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

/// `windlass verify`
#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// Backup files, all stripes in any order
    #[arg(required = true)]
    pub(crate) media: Vec<String>,
    /// Position of the one backup set to verify; all of them when absent
    #[arg(long, visible_alias = "file", value_name = "N")]
    pub(crate) set: Option<u16>,
    /// Stop at the first damage instead of counting it all
    #[arg(long)]
    pub(crate) stop_on_error: bool,
    /// Refuse a set that was made without --checksum
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Check encrypted sets by their checksums alone, where there is no key: nothing is decrypted, and
    /// nothing authenticated
    #[arg(long, conflicts_with_all = ["key", "passphrase_file"])]
    pub(crate) without_key: bool,
    /// Threads that check
    #[arg(long, value_name = "N|auto")]
    pub(crate) threads: Option<Threads>,
    /// What carries the reads; auto takes the kernel's ring where there is one
    #[arg(long, value_name = "auto|io_uring|threads", default_value = "auto")]
    pub(crate) io: IoMethodChoice,
    #[command(flatten)]
    pub(crate) keys: KeyArguments,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

const REKEY_NOTES: &str = "\
The keys of the sets are wrapped for the new recipients and written to a file beside each backup file,
with .keys behind its name; keep them together. The media stay as they are, also their own keys: whoever
could read a backup before still can. Only a new backup shuts somebody out.";

/// `windlass rekey`
#[derive(Debug, Args)]
#[command(after_help = REKEY_NOTES)]
pub(crate) struct RekeyArguments {
    /// Backup files, all stripes in any order
    #[arg(required = true)]
    pub(crate) media: Vec<PathBuf>,
    /// Position of the one backup set; all encrypted ones when absent
    #[arg(long, visible_alias = "file", value_name = "N")]
    pub(crate) set: Option<u16>,
    #[command(flatten)]
    pub(crate) keys: KeyArguments,
    /// Certificate of a new recipient, PEM or DER; several may be given
    #[arg(long, value_name = "CERTIFICATE")]
    pub(crate) encrypt_to: Vec<PathBuf>,
    /// Passphrase of a new recipient, in this file's first line
    #[arg(long, value_name = "FILE")]
    pub(crate) new_passphrase_file: Option<PathBuf>,
    /// Drop the recipients that earlier runs added; those on the media stay
    #[arg(long)]
    pub(crate) replace: bool,
}

const SQL_NOTES: &str = "\
Batches end with GO on a line by itself. At the prompt, :quit leaves and :reset forgets what was
typed. BACKUP, RESTORE and the statements around them are T-SQL; any other SQL runs on the current
database through SQLite, with sys and msdb attached. A failed statement does not stop the script, as
with sqlcmd, unless -b is given.";

/// `windlass sql`
#[derive(Debug, Args)]
#[command(after_help = SQL_NOTES)]
pub(crate) struct SqlArguments {
    /// Script to run; - reads standard input
    #[arg(
        short = 'i',
        long = "input",
        value_name = "FILE",
        conflicts_with = "query"
    )]
    pub(crate) input: Vec<PathBuf>,
    /// Batch to run
    #[arg(short = 'Q', long = "query", value_name = "BATCH")]
    pub(crate) query: Vec<String>,
    /// Database to begin in
    #[arg(short = 'd', long, value_name = "NAME")]
    pub(crate) database: Option<String>,
    /// SQLite file to know under a name for this run: --attach app=/srv/app.db
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_move)]
    pub(crate) attach: Vec<(String, String)>,
    /// Stop at the first error
    #[arg(short = 'b', long)]
    pub(crate) stop_on_error: bool,
    /// A line for each column instead of a table
    #[arg(long)]
    pub(crate) vertical: bool,
}

fn parse_drive(text: &str) -> Result<(char, PathBuf), String> {
    let wrong = || format!("'{text}' is not LETTER=DIR, such as d=/srv/d");
    let (letter, folder) = text.split_once('=').ok_or_else(wrong)?;
    let mut characters = letter.trim_end_matches(':').chars();
    match (characters.next(), characters.next()) {
        (Some(letter), None) if letter.is_ascii_alphabetic() && !folder.is_empty() => {
            let folder = PathBuf::from(folder);
            match folder.is_dir() {
                true => Ok((letter.to_ascii_uppercase(), folder)),
                false => Err(format!("'{}' is not a folder", folder.display())),
            }
        }
        _ => Err(wrong()),
    }
}

pub(crate) fn parse_move(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.to_owned(), path.to_owned()))
        }
        _ => Err(format!("'{text}' is not NAME=FILE")),
    }
}

fn parse_size(text: &str) -> Result<i64, String> {
    parse_bytes(text)
        .and_then(|bytes| i64::try_from(bytes).ok())
        .ok_or_else(|| format!("'{text}' is not a size, such as 65536, 64K or 4M"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn drives_and_sizes_are_read() {
        assert_eq!(parse_drive("d=/").unwrap(), ('D', PathBuf::from("/")));
        assert_eq!(parse_drive("D:=/").unwrap().0, 'D');
        assert!(
            parse_drive("d=/nosuch")
                .unwrap_err()
                .contains("not a folder")
        );
        assert!(parse_drive("dd=/").is_err());
        assert!(parse_drive("d=").is_err());
        assert_eq!(parse_size("64K"), Ok(65536));
        assert!(parse_size("lots").is_err());
    }
}
