//! The options of a backup, and their defaults from the instance's settings.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use windlass_base::message::table;
use windlass_base::{Moment, range};
use windlass_codec::Compression;
use windlass_crypt::{Cipher, Recipient};
use windlass_device::DeviceAddress;
use windlass_io::queue::IoMethodChoice;
use windlass_pipeline::{Goal, Limits, OnDamage, Overwrite, Probe, Tuning};
use windlass_source::Depth;

use super::base::MissingBase;
use super::writers::CopyChoice;
use crate::Failure;
use crate::instance::BackupDefaults;
use crate::operation::{DeviceName, StoreOptions, number};

const NAME_CHARACTERS_MAX: usize = 128;
const DESCRIPTION_CHARACTERS_MAX: usize = 255;

/// The options of a backup of one database. What is absent comes from the instance's settings, or from
/// the plan. Numbers are as given; the backup checks them.
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
#[derive(Debug, Clone)]
pub struct BackupOptions {
    /// One device per stripe.
    pub devices: Vec<DeviceName>,
    /// Files that the command has written other backups to, and does not write to again.
    pub written_before: Vec<PathBuf>,
    /// Mirrors, each with as many devices.
    pub mirrors: Vec<Vec<DeviceName>>,
    /// How the stores of URLs are reached.
    pub store: StoreOptions,
    /// What happens to existing sets on the media.
    pub overwrite: Overwrite,
    /// Whether sets of other databases are not overwritten.
    pub keeps_others: bool,
    /// Whether expiry dates and media names are ignored when sets are overwritten.
    pub skips_checks: bool,
    /// Written to new media, compared on existing media.
    pub media_name: Option<String>,
    /// Written to new media.
    pub media_description: Option<String>,
    /// Unit of the media's layout.
    pub block_bytes: Option<i64>,
    /// Only what changed since the base.
    pub is_differential: bool,
    /// Only the log since the last log backup.
    pub log: Option<LogChoice>,
    /// The spool that has the log of a SQLite file; that of the instance by default.
    pub spool: Option<PathBuf>,
    /// The media that contain the base of a differential; from the history when empty.
    pub base: Vec<DeviceAddress>,
    /// What to do if the media of the base are missing.
    pub missing_base: MissingBase,
    /// Refuses a differential that is less protected than its base, whatever `missing_base` says.
    pub is_as_protected: bool,
    /// Whether the backup leaves the differential base as it is.
    pub is_copy_only: bool,
    pub name: Option<String>,
    pub description: Option<String>,
    /// The set must not be overwritten before.
    pub expires: Option<Moment>,
    /// The same in days; takes precedence over `expires`, as on SQL Server.
    pub retain_days: Option<i64>,
    pub compression: Option<CompressionChoice>,
    /// Name of the instance's certificate for which the backup is encrypted.
    pub certificate: Option<String>,
    /// Further recipients.
    pub recipients: Vec<Recipient>,
    /// The cipher of an encrypted backup; AES-256 by default.
    pub cipher: Option<Cipher>,
    /// File of the key that signs the set.
    pub sign_with: Option<String>,
    /// Verifies the database's own page checksums, and records that in the set.
    pub checksum: Option<bool>,
    /// What to do about pages that fail the check.
    pub on_damage: OnDamage,
    /// Accepts content without SQLite's header.
    pub is_as_is: bool,
    /// SQLite's own check before the copy.
    pub integrity: Option<Depth>,
    /// Measures and makes no backup.
    pub probe: Option<Probe>,
    pub goal: Goal,
    /// Number of transfers in flight.
    pub buffer_count: Option<i64>,
    /// Bytes per transfer.
    pub transfer_bytes: Option<i64>,
    /// Compression threads; by default as many as have work.
    pub threads: Option<i64>,
    /// MB per second read from the database.
    pub max_rate: Option<i64>,
    /// MB per second written to each device.
    pub max_write_rate: Option<i64>,
    /// Whether all stripes get the same number of bytes.
    pub is_even: bool,
    pub io_method: IoMethodChoice,
    /// How long to wait for other programs' locks; the session's setting by default.
    pub lock_timeout: Option<Duration>,
    /// The user guarantees that no program writes to the database.
    pub is_frozen: bool,
    /// Where a temporary copy goes that lets writers continue.
    pub temporary_copy: CopyChoice,
    /// Percent between two progress messages.
    pub stats: Option<i64>,
}

/// What becomes of the log, and of the database, after a log backup.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LogChoice {
    /// The log is truncated.
    #[default]
    Truncate,
    /// `NO_TRUNCATE`: the log stays as it is. The data files may be lost.
    NoTruncate,
    /// `NORECOVERY`: the log is its tail. The database is left restoring, and nothing more is committed in it.
    NoRecovery,
    /// `STANDBY`: the same, but the database can be read, with this standby file.
    Standby(String),
}

/// How a backup is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionChoice {
    /// With the instance's default algorithm.
    Default,
    Fixed(Compression),
    /// With ZSTD at a level that is chosen while the backup runs.
    Auto,
}

impl FromStr for CompressionChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "auto" | "zstd:auto" => Ok(Self::Auto),
            _ => match text.parse::<Compression>() {
                Ok(fixed) => Ok(Self::Fixed(fixed)),
                Err(error) => Err(format!("{error}, or AUTO")),
            },
        }
    }
}

impl Default for BackupOptions {
    fn default() -> Self {
        Self {
            devices: Vec::new(),
            written_before: Vec::new(),
            mirrors: Vec::new(),
            store: StoreOptions::default(),
            overwrite: Overwrite::Append,
            skips_checks: false,
            media_name: None,
            media_description: None,
            block_bytes: None,
            is_differential: false,
            log: None,
            spool: None,
            base: Vec::new(),
            missing_base: MissingBase::default(),
            is_as_protected: false,
            is_copy_only: false,
            name: None,
            description: None,
            expires: None,
            retain_days: None,
            compression: None,
            certificate: None,
            recipients: Vec::new(),
            cipher: None,
            sign_with: None,
            checksum: None,
            on_damage: OnDamage::Stop,
            is_as_is: false,
            integrity: None,
            probe: None,
            goal: Goal::default(),
            buffer_count: None,
            transfer_bytes: None,
            threads: None,
            max_rate: None,
            max_write_rate: None,
            is_even: false,
            keeps_others: false,
            io_method: IoMethodChoice::default(),
            lock_timeout: None,
            is_frozen: false,
            temporary_copy: CopyChoice::default(),
            stats: None,
        }
    }
}

impl BackupOptions {
    /// The operation's name in messages.
    pub(crate) fn operation(&self) -> &'static str {
        match (&self.log, self.is_differential) {
            (Some(_), _) => "BACKUP LOG",
            (None, true) => "BACKUP DATABASE WITH DIFFERENTIAL",
            (None, false) => "BACKUP DATABASE",
        }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.certificate.is_some() || !self.recipients.is_empty()
    }

    pub(super) fn cipher(&self) -> Cipher {
        self.cipher.unwrap_or(Cipher::Aes256)
    }
}

/// Checked options, with defaults filled in.
#[derive(Debug, Clone)]
pub(super) struct Settled {
    pub(super) compression: Compression,
    pub(super) checksum: bool,
    pub(super) is_copy_only: bool,
    pub(super) expires: Option<Moment>,
    pub(super) block_bytes: Option<u32>,
    pub(super) tuning: Tuning,
    pub(super) stats: Option<u32>,
}

/// Checks the options, and takes defaults from the instance's settings.
/// # Errors
/// 3031, 3217, 3250, 3253, and a goal together with settings that leave nothing to choose.
pub(super) fn settle(
    options: &BackupOptions,
    defaults: BackupDefaults,
    writes_objects: bool,
) -> Result<Settled, Failure> {
    check_texts(options)?;
    check_log(options)?;
    if options.is_differential
        && let Some(probe) = options.probe
    {
        let option = match probe {
            Probe::Read => "NOCOMPRESSWRITE",
            Probe::Transform => "NOWRITE",
        };
        return Err(table::option_conflict(option, "DIFFERENTIAL").into());
    }
    let (compression, adapts_level) = match options.compression {
        Some(CompressionChoice::Auto) => (Compression::ZSTD_LOW, true),
        Some(CompressionChoice::Fixed(compression)) => (compression, false),
        Some(CompressionChoice::Default) => (defaults.compression, false),
        None if defaults.compresses => (defaults.compression, false),
        None => (Compression::NONE, false),
    };
    if options.goal == Goal::Small && !adapts_level {
        return Err(table::goal_small_needs_auto().into());
    }
    let megabytes = |number: u32| u64::from(number) << 20;
    Ok(Settled {
        compression,
        checksum: options.checksum.unwrap_or(defaults.checksum),
        // With DIFFERENTIAL, COPY_ONLY has no effect on SQL Server.
        is_copy_only: options.is_copy_only && !options.is_differential,
        expires: expires(options, defaults)?,
        block_bytes: number::block_bytes(options.block_bytes)?,
        tuning: Tuning {
            buffer_count: number::within(range::BUFFER_COUNT, options.buffer_count)?,
            transfer_bytes: match writes_objects {
                true => number::within(range::PART_BYTES, options.transfer_bytes)?,
                false => number::transfer_bytes(options.transfer_bytes)?,
            },
            threads: number::within(range::THREADS, options.threads)?,
            io_method: options.io_method,
            goal: options.goal,
            adapts_level,
            limits: Limits {
                read: number::within(range::READ_RATE, options.max_rate)?.map(megabytes),
                write: number::within(range::WRITE_RATE, options.max_write_rate)?.map(megabytes),
            },
            is_even: options.is_even,
        },
        stats: number::within(range::STATS, options.stats)?,
    })
}

/// A log backup has no data that could be checked, or counted from a base.
fn check_log(options: &BackupOptions) -> Result<(), Failure> {
    if options.log.is_none() {
        return Ok(());
    }
    let misplaced = [
        (options.is_differential, "DIFFERENTIAL"),
        (options.integrity.is_some(), "INTEGRITY"),
        (options.is_as_is, "AS_IS"),
        (options.probe == Some(Probe::Read), "NOCOMPRESSWRITE"),
        (options.probe == Some(Probe::Transform), "NOWRITE"),
    ];
    match misplaced.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => Err(table::option_not_supported(option).into()),
        None => Ok(()),
    }
}

fn expires(options: &BackupOptions, defaults: BackupDefaults) -> Result<Option<Moment>, Failure> {
    let given = number::within(range::RETAIN_DAYS, options.retain_days)?;
    let default =
        (options.expires.is_none() && defaults.retain_days > 0).then_some(defaults.retain_days);
    Ok(match given.or(default) {
        Some(0) => None,
        Some(days) => Some(Moment::now().0.plus_days(days)),
        None => options.expires,
    })
}

fn check_texts(options: &BackupOptions) -> Result<(), Failure> {
    let limited = [
        ("NAME", &options.name, NAME_CHARACTERS_MAX),
        (
            "DESCRIPTION",
            &options.description,
            DESCRIPTION_CHARACTERS_MAX,
        ),
        ("MEDIANAME", &options.media_name, NAME_CHARACTERS_MAX),
        (
            "MEDIADESCRIPTION",
            &options.media_description,
            DESCRIPTION_CHARACTERS_MAX,
        ),
    ];
    let is_too_long = |text: &Option<String>, most| {
        text.as_ref()
            .is_some_and(|text| text.chars().count() > most)
    };
    match limited
        .into_iter()
        .find(|(_, text, most)| is_too_long(text, *most))
    {
        Some((option, _, most)) => {
            let advice = format!("It takes up to {most} characters.");
            Err(table::invalid_parameter(option)
                .with_advice(Some(advice))
                .into())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_is_a_word_beside_the_algorithms() {
        assert_eq!("AUTO".parse(), Ok(CompressionChoice::Auto));
        assert_eq!(
            "zstd:high".parse(),
            Ok(CompressionChoice::Fixed(Compression::ZSTD_HIGH))
        );
        assert!("ms_xpress:auto".parse::<CompressionChoice>().is_err());
    }

    #[test]
    fn settings_decide_what_options_leave_open_and_nothing_else() {
        let defaults = BackupDefaults {
            compresses: true,
            compression: Compression::MS_XPRESS,
            checksum: true,
            retain_days: 7,
        };
        let open = settle(&BackupOptions::default(), defaults, false).expect("options");
        assert_eq!(open.compression, Compression::MS_XPRESS);
        assert!(open.checksum && open.expires.is_some());
        let said = BackupOptions {
            compression: Some(CompressionChoice::Fixed(Compression::NONE)),
            checksum: Some(false),
            retain_days: Some(0),
            ..BackupOptions::default()
        };
        let said = settle(&said, defaults, false).expect("options");
        assert_eq!(said.compression, Compression::NONE);
        assert!(!said.checksum && said.expires.is_none());
    }
}
