//! What a backup is asked to be, and what that comes to with the settings of the instance.

use std::str::FromStr;
use std::time::Duration;

use windlass_base::Moment;
use windlass_base::message::table;
use windlass_codec::Compression;
use windlass_crypt::{Cipher, Recipient};
use windlass_device::DeviceAddress;
use windlass_io::queue::IoMethodChoice;
use windlass_pipeline::{Goal, OnDamage, Overwrite, Probe, Tuning};
use windlass_source::Depth;

use super::base::MissingBase;
use super::writers::CopyChoice;
use crate::Failure;
use crate::instance::BackupDefaults;
use crate::operation::{DeviceName, number};

const NAME_CHARACTERS_MAX: usize = 128;
const DESCRIPTION_CHARACTERS_MAX: usize = 255;

/// What a backup of one database is asked to be. What is absent is for the instance's settings, or for the
/// plan. Numbers are as they were given: the backup checks them.
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
#[derive(Debug, Clone)]
pub struct BackupOptions {
    /// A device for each stripe.
    pub devices: Vec<DeviceName>,
    /// Further copies, each of as many devices.
    pub mirrors: Vec<Vec<DeviceName>>,
    /// What happens to the sets on the media.
    pub overwrite: Overwrite,
    /// Neither expiry nor names are checked before sets are overwritten.
    pub skips_checks: bool,
    /// Written on new media, compared on existing media.
    pub media_name: Option<String>,
    /// Written on new media.
    pub media_description: Option<String>,
    /// Unit of the media's layout.
    pub block_bytes: Option<i64>,
    /// Only what changed since the last full backup.
    pub is_differential: bool,
    /// The media that hold the full backup a differential counts from, where the history is not to say it.
    pub base: Vec<DeviceAddress>,
    /// What becomes of a differential whose base's media are away.
    pub missing_base: MissingBase,
    /// Does not become a differential base.
    pub is_copy_only: bool,
    /// Name of the set.
    pub name: Option<String>,
    /// Description of the set.
    pub description: Option<String>,
    /// Until then the set may not be overwritten.
    pub expires: Option<Moment>,
    /// For so many days; wins over `expires`, as on SQL Server.
    pub retain_days: Option<i64>,
    /// How chunks are compressed.
    pub compression: Option<CompressionChoice>,
    /// The certificate of the instance whose holder can read the backup.
    pub certificate: Option<String>,
    /// Who can read it too.
    pub recipients: Vec<Recipient>,
    /// The cipher for those; AES-256 when absent.
    pub cipher: Option<Cipher>,
    /// The file of the key that signs the set.
    pub sign_with: Option<String>,
    /// Verify the database's own page checksums, and mark the set.
    pub checksum: Option<bool>,
    /// What to do about pages that do not verify.
    pub on_damage: OnDamage,
    /// Content without a header of SQLite's is wanted.
    pub is_as_is: bool,
    /// SQLite's own check before the copy.
    pub integrity: Option<Depth>,
    /// Measure, and make no backup.
    pub probe: Option<Probe>,
    /// What the backup adapts itself to.
    pub goal: Goal,
    /// Transfers in flight.
    pub buffer_count: Option<i64>,
    /// Bytes in a transfer.
    pub transfer_bytes: Option<i64>,
    /// Compression threads; as many as have work when absent.
    pub threads: Option<i64>,
    /// MB of the database in a second.
    pub max_rate: Option<i64>,
    /// MB to each device in a second.
    pub max_write_rate: Option<i64>,
    /// What carries reads and writes.
    pub io_method: IoMethodChoice,
    /// How long to wait for other programs' locks; as the session says when absent.
    pub lock_timeout: Option<Duration>,
    /// The user vouches that nobody writes to the database.
    pub is_frozen: bool,
    /// Where a copy lies that lets writers go on.
    pub temporary_copy: CopyChoice,
    /// Percent between two reports of progress.
    pub stats: Option<i64>,
}

/// How a backup is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionChoice {
    /// With the algorithm that the instance's settings name.
    Default,
    /// As given, or not at all.
    Fixed(Compression),
    /// With ZSTD, its level picked while the backup runs.
    Auto,
}

impl FromStr for CompressionChoice {
    type Err = windlass_codec::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "auto" | "zstd:auto" => Ok(Self::Auto),
            _ => text.parse().map(Self::Fixed),
        }
    }
}

impl Default for BackupOptions {
    fn default() -> Self {
        Self {
            devices: Vec::new(),
            mirrors: Vec::new(),
            overwrite: Overwrite::Append,
            skips_checks: false,
            media_name: None,
            media_description: None,
            block_bytes: None,
            is_differential: false,
            base: Vec::new(),
            missing_base: MissingBase::default(),
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
            io_method: IoMethodChoice::default(),
            lock_timeout: None,
            is_frozen: false,
            temporary_copy: CopyChoice::default(),
            stats: None,
        }
    }
}

impl BackupOptions {
    /// What messages call the backup.
    pub(crate) fn operation(&self) -> &'static str {
        match self.is_differential {
            true => "BACKUP DATABASE WITH DIFFERENTIAL",
            false => "BACKUP DATABASE",
        }
    }

    /// Whether anybody is named who alone can read the backup.
    pub(super) fn is_encrypted(&self) -> bool {
        self.certificate.is_some() || !self.recipients.is_empty()
    }

    /// The cipher of an encrypted backup.
    pub(super) fn cipher(&self) -> Cipher {
        self.cipher.unwrap_or(Cipher::Aes256)
    }
}

/// What options come to.
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

/// Checks options, and takes from the settings of the instance what they do not say.
///
/// # Errors
/// 3031, 3217, 3250, 3253, and the refusal of a goal that has nothing to choose from.
pub(super) fn settle(
    options: &BackupOptions,
    defaults: BackupDefaults,
) -> Result<Settled, Failure> {
    check_texts(options)?;
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
            buffer_count: number::BUFFER_COUNT.check(options.buffer_count)?,
            transfer_bytes: number::transfer_bytes(options.transfer_bytes)?,
            threads: number::THREADS.check(options.threads)?,
            io_method: options.io_method,
            goal: options.goal,
            adapts_level,
            max_rate: number::READ_RATE.check(options.max_rate)?.map(megabytes),
            max_write_rate: number::WRITE_RATE
                .check(options.max_write_rate)?
                .map(megabytes),
        },
        stats: number::STATS.check(options.stats)?,
    })
}

fn expires(options: &BackupOptions, defaults: BackupDefaults) -> Result<Option<Moment>, Failure> {
    let given = number::RETAIN_DAYS.check(options.retain_days)?;
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
        Some((option, ..)) => Err(table::invalid_parameter(option).into()),
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
        let open = settle(&BackupOptions::default(), defaults).expect("options");
        assert_eq!(open.compression, Compression::MS_XPRESS);
        assert!(open.checksum && open.expires.is_some());
        let said = BackupOptions {
            compression: Some(CompressionChoice::Fixed(Compression::NONE)),
            checksum: Some(false),
            retain_days: Some(0),
            ..BackupOptions::default()
        };
        let said = settle(&said, defaults).expect("options");
        assert_eq!(said.compression, Compression::NONE);
        assert!(!said.checksum && said.expires.is_none());
    }
}
