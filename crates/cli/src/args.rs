//! The command line: its syntax, not its meaning.

mod adapting;
mod demo;
mod follow;
mod help;
mod import_export;
mod inspect;
mod install;
mod keys;
mod layout;
mod locking;
mod log;
mod many;
mod measuring;
pub(crate) mod number;
mod point;
mod repack;
mod serve;
mod sql;
mod sqlserver;
mod time;
mod tuning;
mod usage;
mod written;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use windlass_base::range;
use windlass_base::size::parse_bytes;
use windlass_base::word::{Depth, Goal};
use windlass_instance::RestorePolicy;
use windlass_instance::operation::{CompressionChoice, Part};
use windlass_io::queue::IoMethodChoice;

use crate::logging::{Format, Level};

pub(crate) use adapting::Threads;
use adapting::word;
pub(crate) use demo::{DemoArguments, DemoWriterArguments};
pub(crate) use follow::FollowArguments;
pub(crate) use help::{EXAMPLES, GROUPS, command, reflowed, without_examples};
pub(crate) use import_export::{ExportArguments, ImportArguments};
pub(crate) use inspect::{FilesArguments, HeaderArguments, LabelArguments};
pub(crate) use install::InstallArguments;
pub(crate) use keys::{KeyArguments, RekeyArguments, SigningKeyArguments};
pub(crate) use layout::{LayoutArguments, Output};
pub(crate) use locking::LockingArguments;
pub(crate) use log::LogArguments;
pub(crate) use many::ManyArguments;
pub(crate) use measuring::{BenchArguments, BenchCommand, BenchRun, ResultFiles, TuneArguments};
use number::number;
pub(crate) use point::{Point, parse_point};
pub(crate) use repack::{RepackArguments, UnpackArguments};
pub(crate) use serve::{Patience, ServeArguments};
pub(crate) use sql::SqlArguments;
pub(crate) use sqlserver::{ExtractArguments, ExtractFormat, InspectArguments};
pub(crate) use time::number_and_unit;
pub(crate) use tuning::TuningArguments;
pub(crate) use usage::usage;
pub(crate) use written::WrittenArguments;

const FIRST_EXAMPLES: &str = "\
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
something failed, 2 for an invalid command line.";

/// SQL Server's BACKUP and RESTORE for SQLite databases: online, striped, compressed, checksummed.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, after_help = FIRST_EXAMPLES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Common {
    /// Instance directory: registered databases, backup history, differential bases. Made by the
    /// first command that writes to it. Without one, nothing is recorded
    #[arg(long, global = true, env = "WINDLASS_INSTANCE", value_name = "DIR")]
    pub(crate) instance: Option<PathBuf>,
    /// Maps a drive letter to a folder: --drive d=/srv/d
    #[arg(long, global = true, value_name = "LETTER=DIR", value_parser = parse_drive)]
    pub(crate) drive: Vec<(char, PathBuf)>,
    /// Configuration file to use instead of the user's and the system's
    #[arg(long, global = true, env = "WINDLASS_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Machine-readable output: a result set is an array of objects keyed by column name; messages
    /// are objects, one per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// File to append a log to: start, end and errors of each statement
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
    /// Log format. Without --log-file, the log goes to standard error
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<Format>,
    /// Log level. Without --log-file, the log goes to standard error
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) log_level: Option<Level>,
    /// The folders that the configuration files confine restores to.
    #[arg(skip)]
    pub(crate) restores: RestorePolicy,
    /// The name that the settings give this machine.
    #[arg(skip)]
    pub(crate) machine_name: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Back up a database while it is in use
    Backup(Box<BackupArguments>),
    /// Restore a database from its backup
    Restore(Box<RestoreArguments>),
    /// Spool every commit of a SQLite database in WAL mode, for restores to any moment
    Follow(FollowArguments),
    /// Read whole backup sets and check every byte
    Verify(VerifyArguments),
    /// Show the backup sets on media (RESTORE HEADERONLY)
    Header(HeaderArguments),
    /// Show the database files in a backup set (RESTORE FILELISTONLY)
    Files(FilesArguments),
    /// Show the label of a media family (RESTORE LABELONLY)
    Label(LabelArguments),
    /// Show the layout of a SQL Server backup: blocks, streams and pages
    Inspect(InspectArguments),
    /// Extract tables from SQL Server backups: as SQLite, CSV, or data files
    Extract(ExtractArguments),
    /// Copy a SQL Server backup to Windlass media: verified, compressed, encrypted, striped
    Repack(Box<RepackArguments>),
    /// Write the SQL Server backup again that was repacked
    Unpack(UnpackArguments),
    /// Change the recipients of encrypted backup sets without touching the media
    Rekey(RekeyArguments),
    /// Create a key that signs backups: the private key in FILE, the public key in FILE.pub
    SigningKey(SigningKeyArguments),
    /// Import a SQLite file into the page engine
    Import(ImportArguments),
    /// Export a page engine database to a SQLite file
    Export(ExportArguments),
    /// Run T-SQL: a script, a batch, or an interactive prompt
    Sql(SqlArguments),
    /// Serve an instance: clients connect with SQL Server's drivers
    Serve(ServeArguments),
    /// Write a systemd unit that serves an instance
    Install(InstallArguments),
    /// Measure backups of a database: find the bottleneck, recommend settings, predict the result
    Tune(Box<TuneArguments>),
    /// Repeat the benchmarks of published articles on a database
    Bench(Box<BenchArguments>),
    /// Back up, verify and restore a database under write load, and prove the result
    Demo(DemoArguments),
    #[command(flatten)]
    Operate(crate::operate::Command),
    /// The writer of the demo.
    #[command(hide = true)]
    DemoWriter(DemoWriterArguments),
}

const BACKUP_NOTES: &str = "\
The database is a SQLite file, or the name of a database registered with the instance. It may be in
use: in WAL mode nobody is blocked; with a rollback journal, writers wait for a temporary copy, or for
the whole backup if there is no room for a copy (--plan shows which; the result shows how long they
waited).

The base of a differential is the last full backup made without --copy-only: the one on --base,
else the newest in the history of the instance, else the newest on the target media.";

/// `windlass backup`
#[expect(clippy::struct_excessive_bools, reason = "each is a switch")]
#[derive(Debug, Args)]
#[command(after_help = BACKUP_NOTES)]
pub(crate) struct BackupArguments {
    /// SQLite file, or the name of a database registered with the instance; with --all, a folder
    #[arg(required_unless_present = "all")]
    pub(crate) database: Option<String>,
    #[command(flatten)]
    pub(crate) many: ManyArguments,
    /// Backup file, or the URL of an object (s3://host:port/bucket/key); repeat for a striped backup. NUL discards the data
    #[arg(long, required_unless_present_any = ["no_write", "no_compress_write"], value_name = "FILE")]
    pub(crate) to: Vec<String>,
    #[command(flatten)]
    pub(crate) media: WrittenArguments,
    #[arg(
        long,
        value_name = "ALGORITHM",
        help = "none, ms_xpress, zstd[:low|:medium|:high], qat_deflate, or auto, which picks the ZSTD level while the backup runs [default: zstd:low; auto with --goal]"
    )]
    pub(crate) compress: Option<CompressionChoice>,
    /// What the backup adapts to: fast, small, or gentle to the database's users
    #[arg(long, value_parser = word::<Goal>())]
    pub(crate) goal: Option<Goal>,
    /// Read at most this many MB of the database per second
    #[arg(long, value_name = "MB", value_parser = number::<u32>(range::READ_RATE))]
    pub(crate) max_rate: Option<u32>,
    /// Back up only what changed since the last full backup
    #[arg(long)]
    pub(crate) differential: bool,
    #[command(flatten)]
    pub(crate) of_log: LogArguments,
    /// Media of the full backup that is the differential base: files or URLs of objects
    #[arg(long, value_name = "FILE", requires = "differential")]
    pub(crate) base: Vec<String>,
    /// Make the differential even if the media of its full backup are missing
    #[arg(long, requires = "differential")]
    pub(crate) base_missing_ok: bool,
    /// Do not become a differential base
    #[arg(long)]
    pub(crate) copy_only: bool,
    /// Verify the database's own page checksums, if it has any
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Back up a file without a SQLite header (such as an encrypted database) unchanged
    #[arg(long, conflicts_with = "integrity")]
    pub(crate) as_is: bool,
    /// Run SQLite's own check on the data being backed up; fail if it finds damage
    #[arg(long, value_name = "DEPTH", value_parser = word::<Depth>())]
    pub(crate) integrity: Option<Depth>,
    /// Continue despite pages with wrong checksums
    #[arg(long)]
    pub(crate) continue_after_error: bool,
    /// Name of the backup set
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Description of the backup set
    #[arg(long)]
    pub(crate) description: Option<String>,
    /// Read and compress but write nothing, and report the rate; no backup is made
    #[arg(long, conflicts_with_all = ["no_compress_write", "differential", "mirror", "to"])]
    pub(crate) no_write: bool,
    /// Only read, and report the rate; no backup is made
    #[arg(long, conflicts_with_all = ["differential", "mirror", "to", "compress"])]
    pub(crate) no_compress_write: bool,
    #[command(flatten)]
    pub(crate) locking: LockingArguments,
    #[command(flatten)]
    pub(crate) tuning: TuningArguments,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

/// Reporting of a run.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "What is printed")]
pub(crate) struct RunArguments {
    /// Report progress every N percent, with SQL Server's messages
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10", value_parser = number::<u32>(range::STATS))]
    pub(crate) stats: Option<u32>,
    /// Print what would be done, and do nothing: the T-SQL, the plan with its reasons, the files,
    /// and estimates of size and time
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also print the plan: every value, and the reason for it. The command still runs; see
    /// --dry-run
    #[arg(long)]
    pub(crate) plan: bool,
    /// Also print the equivalent T-SQL to standard output, and its notes to standard error. The
    /// command still runs; see --dry-run
    #[arg(long)]
    pub(crate) tsql: bool,
}

const RESTORE_NOTES: &str = "\
Without --set, the newest state on the media is restored: the newest full backup, then the newest
differential based on it, then the log backups that follow. With --at, a state before the moment, then the log
backups up to the first that reaches it. The command reports which sets it uses, which it skips, and why. The files may
belong to several media sets; of a folder, all media in it are meant. With --no-recovery, only the newest full backup is
restored; the next restore to the same target then applies what leads from there to the newest state: differential and log backups.

Without media, --of NAME (alone, with --latest or with --at) restores from those that the history of the instance names.";

/// `windlass restore`
#[expect(clippy::struct_excessive_bools, reason = "each is a switch")]
#[derive(Debug, Clone, Args)]
#[command(after_help = RESTORE_NOTES)]
pub(crate) struct RestoreArguments {
    /// Backup files, folders of them or URLs of objects, all stripes in any order; omit to finish a sequence of --no-recovery
    /// restores
    pub(crate) media: Vec<String>,
    /// Target file
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
    /// Restore a logical file to a path: --move app=/srv/app.db; repeat it for each file. Without it, --to names the first file, and
    /// the others are placed beside it
    #[arg(long = "move", value_name = "LOGICAL=FILE", value_parser = parse_move, conflicts_with = "to")]
    pub(crate) moves: Vec<(String, String)>,
    /// Register the database with the instance under this name
    #[arg(long, value_name = "NAME")]
    pub(crate) database: Option<String>,
    /// Position of the backup set to restore [default: the sets that give the newest state]
    #[arg(long, visible_alias = "file", value_name = "N", value_parser = number::<u16>(range::POSITION))]
    pub(crate) set: Option<u16>,
    /// Database whose backups to use, if the media hold backups of several; without media, those of it that the history names
    #[arg(long, value_name = "NAME", conflicts_with = "set")]
    pub(crate) of: Option<String>,
    /// Overwrite the existing file
    #[arg(long)]
    pub(crate) replace: bool,
    /// Leave the database in the restoring state, for a differential or log backups to follow
    #[arg(long)]
    pub(crate) no_recovery: bool,
    /// Refuse a set made without --checksum
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Restore as much as can be read
    #[arg(long)]
    pub(crate) continue_after_error: bool,
    /// Restore the content even if it is not a database
    #[arg(long)]
    pub(crate) as_is: bool,
    /// Apply a backup that is less protected than the encrypted one before it
    #[arg(long)]
    pub(crate) allow_unencrypted: bool,
    /// Options for the object store of URLs, as in T-SQL, such as {"s3": {"concurrency": 16}}
    #[arg(long, value_name = "JSON", requires = "media")]
    pub(crate) restore_options: Option<String>,
    /// Refuse backup sets that were not signed with the key whose public half is in this file; can be
    /// repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) signed_by: Vec<PathBuf>,
    /// Expected name of the media set
    #[arg(long)]
    pub(crate) media_name: Option<String>,
    /// Make the restored file read-only
    #[arg(long, conflicts_with = "no_recovery", requires = "to")]
    pub(crate) read_only: bool,
    /// Apply what windlass follow has spooled since the backup
    #[arg(long, value_name = "DIR", conflicts_with_all = ["no_recovery", "dry_run", "tsql"])]
    pub(crate) follow: Option<PathBuf>,
    /// Restore the newest state that the media lead to, as without it
    #[arg(long, conflicts_with_all = ["set", "at", "at_commit", "no_recovery"])]
    pub(crate) latest: bool,
    /// Restore the state at a moment: '2026-11-24 10:15:00.5', local time unless it has an offset, or lsn:N, after the
    /// commit with this record. From log backups, or with --follow the last captured moment that is not later
    #[arg(long, value_name = "TIME|lsn:N", conflicts_with_all = ["set", "no_recovery"], value_parser = parse_point)]
    pub(crate) at: Option<Point>,
    /// Stop at a captured commit, by its number in the spool
    #[arg(long, value_name = "N", requires = "follow", conflicts_with = "at")]
    pub(crate) at_commit: Option<u64>,
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
    /// Backup files or URLs of objects, all stripes in any order
    #[arg(required = true)]
    pub(crate) media: Vec<String>,
    /// Position of the backup set to verify [default: all]
    #[arg(long, visible_alias = "file", value_name = "N", value_parser = number::<u16>(range::POSITION))]
    pub(crate) set: Option<u16>,
    /// Stop at the first damage instead of counting all of it
    #[arg(long)]
    pub(crate) stop_on_error: bool,
    /// Read only a part of the data, such as 2/7, the second of seven: what is not read is not called valid
    #[arg(long, value_name = "K/N", value_parser = parse_part, conflicts_with_all = ["stop_on_error", "without_key", "threads", "io", "plan", "tsql", "dry_run"])]
    pub(crate) subset: Option<Part>,
    /// Refuse a set made without --checksum
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Without a key, check encrypted sets by their checksums only: nothing is decrypted or
    /// authenticated
    #[arg(long, conflicts_with_all = ["key", "passphrase_file"])]
    pub(crate) without_key: bool,
    /// Refuse backup sets that were not signed with the key whose public half is in this file; can be
    /// repeated. Of encrypted sets whose keys are not here, together with --without-key
    #[arg(long, value_name = "FILE")]
    pub(crate) signed_by: Vec<PathBuf>,
    /// Options for the object store of URLs, as in T-SQL, such as {"s3": {"concurrency": 16}}
    #[arg(long, value_name = "JSON")]
    pub(crate) restore_options: Option<String>,
    /// Number of threads that check
    #[arg(long, value_name = "N|auto")]
    pub(crate) threads: Option<Threads>,
    /// I/O method for reading; auto uses the ring where available
    #[arg(long, value_name = "auto|io_uring|threads", default_value = "auto")]
    pub(crate) io: IoMethodChoice,
    #[command(flatten)]
    pub(crate) keys: KeyArguments,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

fn parse_part(text: &str) -> Result<Part, String> {
    let part = text.split_once('/').and_then(|(number, of)| {
        let (number, of) = (number.parse().ok()?, of.parse().ok()?);
        Some(Part { number, of })
    });
    part.filter(|part| {
        (1..=Part::OF_MAX).contains(&part.of) && (1..=part.of).contains(&part.number)
    })
    .ok_or_else(|| "a part such as 2/7".to_owned())
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

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' is not NAME=VALUE")),
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

/// A size whose number without a unit counts MB: nobody wants a database of some bytes.
fn parse_size_in_mb(text: &str) -> Result<i64, String> {
    let is_bare = !text.is_empty() && text.chars().all(|digit| digit.is_ascii_digit());
    let size = match is_bare {
        true => parse_size(&format!("{text}M")),
        false => parse_size(text),
    };
    size.map_err(|_| format!("'{text}' is not a size, such as 20 (MB), 512K or 1G"))
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
        assert_eq!(parse_size_in_mb("20"), Ok(20 << 20));
        assert_eq!(parse_size_in_mb("20M"), Ok(20 << 20));
        assert_eq!(parse_size_in_mb("64K"), Ok(64 << 10));
        assert!(parse_size_in_mb("lots").unwrap_err().contains("lots"));
        assert!(parse_size_in_mb("").is_err());
    }
}
