//! The options of BACKUP.

use windlass_base::Moment;
use windlass_base::message::table;
use windlass_codec::{Algorithm, Compression, Level};
use windlass_crypt::Cipher;
use windlass_pipeline::{Goal, OnDamage, Overwrite, Probe, Tuning};
use windlass_source::Depth;
use windlass_tsql::ast::{
    BackupOption, Compression as WrittenCompression, CompressionAlgorithm, CompressionLevel,
    Encryption as WrittenEncryption, EncryptionAlgorithm, Encryptor, Goal as WrittenGoal,
    Integrity as WrittenIntegrity, ThreadCount,
};
use windlass_tsql::option::{BACKUP, OptionWord, StatementKind};
use windlass_tsql::span::Spanned;

use super::{
    block_size, buffer_count, check, file, invalid, limited_text, number, refused, stats, text,
    transfer_size,
};
use crate::instance::BackupDefaults;
use crate::{Environment, Failure};

const NAME_CHARACTERS_MAX: usize = 128;
const DESCRIPTION_CHARACTERS_MAX: usize = 255;
const RETAIN_DAYS_MAX: i64 = 99_999;
const THREADS_MAX: i64 = 1024;

/// The highest limit on a rate: a terabyte per second.
const RATE_MAX: i64 = 1 << 20;

/// What the options of a BACKUP DATABASE say. Absent numbers are for the plan to choose.
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
#[derive(Debug, Clone)]
pub(crate) struct BackupChoices {
    pub(crate) differential: bool,
    pub(crate) copy_only: bool,
    pub(crate) compression: Compression,
    /// The algorithm, and the name of the certificate.
    pub(crate) encryption: Option<(Cipher, String)>,
    /// The file of the key that signs the set.
    pub(crate) sign_with: Option<String>,
    pub(crate) overwrite: Overwrite,
    pub(crate) skip_checks: bool,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) media_name: Option<String>,
    pub(crate) media_description: Option<String>,
    pub(crate) expires: Option<Moment>,
    pub(crate) block_bytes: Option<u32>,
    pub(crate) tuning: Tuning,
    pub(crate) checksum: bool,
    pub(crate) on_damage: OnDamage,
    pub(crate) stats: Option<u32>,
    /// Accepts content without a SQLite header.
    pub(crate) is_as_is: bool,
    /// SQLite's own check before the copy.
    pub(crate) integrity: Option<Depth>,
    /// `NOWRITE` or `NOCOMPRESSWRITE`: measure and make no backup.
    pub(crate) probe: Option<Probe>,
}

impl Default for BackupChoices {
    fn default() -> Self {
        Self {
            differential: false,
            copy_only: false,
            compression: Compression::NONE,
            encryption: None,
            sign_with: None,
            overwrite: Overwrite::Append,
            skip_checks: false,
            name: None,
            description: None,
            media_name: None,
            media_description: None,
            expires: None,
            block_bytes: None,
            tuning: Tuning::default(),
            checksum: false,
            on_damage: OnDamage::Stop,
            stats: None,
            is_as_is: false,
            integrity: None,
            probe: None,
        }
    }
}

/// Reads the options of a BACKUP DATABASE.
///
/// # Errors
/// 3031, 3032, 3217, 3250, 3253, and the refusal of what is not built.
pub(crate) fn choose(
    options: &[Spanned<BackupOption>],
    defaults: BackupDefaults,
    environment: &mut dyn Environment,
) -> Result<BackupChoices, Failure> {
    let words: Vec<OptionWord> = options.iter().map(|option| option.word()).collect();
    check(&words, BACKUP, StatementKind::BackupDatabase)?;
    let mut choices = BackupChoices {
        checksum: defaults.checksum,
        ..BackupChoices::default()
    };
    if defaults.compresses {
        choices.compression = defaults.compression;
    }
    let mut expire_date = None;
    let mut retain_days = None;
    for option in options {
        match &option.node {
            BackupOption::ExpireDate(value) => {
                let text = text(value, environment)?.unwrap_or_default();
                let date: Result<Moment, _> = text.parse();
                expire_date = Some(date.map_err(|_| invalid(OptionWord::ExpireDate))?);
            }
            BackupOption::RetainDays(value) => {
                let range = 0..=RETAIN_DAYS_MAX;
                retain_days = Some(number(OptionWord::RetainDays, value, range, environment)?);
            }
            BackupOption::Compression(None) => choices.compression = defaults.compression,
            option => apply(option, &mut choices, environment)?,
        }
    }
    if expire_date.is_none() && retain_days.is_none() && defaults.retain_days > 0 {
        retain_days = Some(defaults.retain_days);
    }
    choose_level(options, &mut choices)?;
    // RETAINDAYS wins over EXPIREDATE, as on SQL Server.
    choices.expires = match retain_days {
        Some(0) => None,
        Some(days) => Some(Moment::now().0.plus_days(days)),
        None => expire_date,
    };
    if choices.differential
        && let Some(probe) = choices.probe
    {
        let option = match probe {
            Probe::Read => "NOCOMPRESSWRITE",
            Probe::Transform => "NOWRITE",
        };
        return Err(table::option_conflict(option, "DIFFERENTIAL").into());
    }
    // With DIFFERENTIAL, COPY_ONLY has no effect on SQL Server.
    choices.copy_only &= !choices.differential;
    Ok(choices)
}

fn apply(
    option: &BackupOption,
    choices: &mut BackupChoices,
    environment: &mut dyn Environment,
) -> Result<(), Failure> {
    use BackupOption as O;
    match option {
        O::Differential => choices.differential = true,
        O::CopyOnly => choices.copy_only = true,
        O::Compression(Some(written)) => {
            choices.compression = compression(*written)?;
            choices.tuning.adapts_level |= written.level == Some(CompressionLevel::Auto);
        }
        O::NoCompression => choices.compression = Compression::NONE,
        O::Init | O::Skip | O::Format => apply_overwrite(option, choices),
        O::Checksum | O::NoChecksum => choices.checksum = *option == O::Checksum,
        O::ContinueAfterError => choices.on_damage = OnDamage::Continue,
        O::Stats(value) => choices.stats = Some(stats(value.as_ref(), environment)?),
        O::ThreadCount(_)
        | O::BlockSize(_)
        | O::BufferCount(_)
        | O::MaxTransferSize(_)
        | O::LevelAuto
        | O::Goal(_)
        | O::MaxRate(_)
        | O::MaxWriteRate(_) => apply_tuning(option, choices, environment)?,
        O::AsIs => choices.is_as_is = true,
        O::Integrity(WrittenIntegrity::Quick) => choices.integrity = Some(Depth::Quick),
        O::Integrity(WrittenIntegrity::Full) => choices.integrity = Some(Depth::Full),
        O::NoWrite | O::NoCompressWrite => choices.probe = probe(option),
        O::Name(_)
        | O::Description(_)
        | O::MediaName(_)
        | O::MediaDescription(_)
        | O::SignWith(_) => apply_text(option, choices, environment)?,
        // The defaults; FORMAT implies INIT; tapes and restarts do not exist on disk.
        O::NoInit
        | O::NoSkip
        | O::NoFormat
        | O::StopOnError
        | O::NoEncryption
        | O::Restart
        | O::Rewind
        | O::NoRewind
        | O::Unload
        | O::NoUnload
        | O::Compression(None)
        | O::ExpireDate(_)
        | O::RetainDays(_) => {}
        O::Encryption(written) => choices.encryption = Some(encryption(written)?),
        O::Credential(_)
        | O::FileSnapshot
        | O::MetadataOnly
        | O::Snapshot
        | O::Password(_)
        | O::MediaPassword(_)
        | O::BackupOptions(_)
        | O::NoRecovery
        | O::Standby(_)
        | O::NoTruncate => {
            return Err(refused(option.word()));
        }
    }
    Ok(())
}

/// What happens to the sets on the media.
fn apply_overwrite(option: &BackupOption, choices: &mut BackupChoices) {
    match option {
        // FORMAT implies INIT and SKIP.
        BackupOption::Format => {
            choices.overwrite = Overwrite::Format;
            choices.skip_checks = true;
        }
        BackupOption::Init if choices.overwrite == Overwrite::Append => {
            choices.overwrite = Overwrite::Initialize;
        }
        BackupOption::Skip => choices.skip_checks = true,
        _ => {}
    }
}

/// The numbers of the run, and what is left open of them.
fn apply_tuning(
    option: &BackupOption,
    choices: &mut BackupChoices,
    environment: &mut dyn Environment,
) -> Result<(), Failure> {
    use BackupOption as O;
    match option {
        O::LevelAuto => choices.tuning.adapts_level = true,
        O::Goal(written) => choices.tuning.goal = goal(*written),
        O::MaxRate(value) | O::MaxWriteRate(value) => {
            let megabytes = number(option.word(), value, 1..=RATE_MAX, environment)?;
            let rate = Some(u64::from(megabytes) << 20);
            match option {
                O::MaxRate(_) => choices.tuning.max_rate = rate,
                _ => choices.tuning.max_write_rate = rate,
            }
        }
        O::ThreadCount(ThreadCount::Count(value)) => {
            let range = 1..=THREADS_MAX;
            choices.tuning.threads =
                Some(number(OptionWord::ThreadCount, value, range, environment)?);
        }
        O::BlockSize(value) => choices.block_bytes = Some(block_size(value, environment)?),
        O::BufferCount(value) => {
            choices.tuning.buffer_count = Some(buffer_count(value, environment)?);
        }
        O::MaxTransferSize(value) => {
            choices.tuning.transfer_bytes = Some(transfer_size(value, environment)?);
        }
        _ => {}
    }
    Ok(())
}

/// `LEVEL = AUTO` is for ZSTD, and takes it where no algorithm is named; a goal that is about levels
/// needs levels to choose from.
fn choose_level(
    options: &[Spanned<BackupOption>],
    choices: &mut BackupChoices,
) -> Result<(), Failure> {
    let named = options.iter().find_map(|option| match &option.node {
        BackupOption::Compression(Some(written)) => Some(*written),
        _ => None,
    });
    if !choices.tuning.adapts_level {
        return match choices.tuning.goal {
            Goal::Small => Err(table::goal_small_needs_auto().into()),
            Goal::Fast | Goal::Gentle => Ok(()),
        };
    }
    match named {
        Some(written)
            if written
                .level
                .is_some_and(|level| level != CompressionLevel::Auto) =>
        {
            Err(table::option_conflict("LEVEL", "COMPRESSION (LEVEL)").into())
        }
        Some(written) if written.algorithm != CompressionAlgorithm::Zstd => {
            let algorithm = choices.compression.algorithm;
            let clash = table::option_conflict("LEVEL = AUTO", format!("ALGORITHM = {algorithm}"));
            Err(clash.into())
        }
        _ => {
            choices.compression = Compression::ZSTD_LOW;
            Ok(())
        }
    }
}

fn goal(written: WrittenGoal) -> Goal {
    match written {
        WrittenGoal::Fast => Goal::Fast,
        WrittenGoal::Small => Goal::Small,
        WrittenGoal::Gentle => Goal::Gentle,
    }
}

fn probe(option: &BackupOption) -> Option<Probe> {
    match option {
        BackupOption::NoWrite => Some(Probe::Transform),
        BackupOption::NoCompressWrite => Some(Probe::Read),
        _ => None,
    }
}

fn apply_text(
    option: &BackupOption,
    choices: &mut BackupChoices,
    environment: &mut dyn Environment,
) -> Result<(), Failure> {
    let word = option.word();
    let Some(value) = option.value() else {
        return Ok(());
    };
    let (limit, into) = match word {
        OptionWord::SignWith => {
            choices.sign_with = Some(file(word, value, environment)?);
            return Ok(());
        }
        OptionWord::Name => (NAME_CHARACTERS_MAX, &mut choices.name),
        OptionWord::MediaName => (NAME_CHARACTERS_MAX, &mut choices.media_name),
        OptionWord::Description => (DESCRIPTION_CHARACTERS_MAX, &mut choices.description),
        _ => (DESCRIPTION_CHARACTERS_MAX, &mut choices.media_description),
    };
    *into = limited_text(word, value, limit, environment)?;
    Ok(())
}

/// Which algorithm, and the name of the certificate.
fn encryption(written: &WrittenEncryption) -> Result<(Cipher, String), Failure> {
    let algorithm = match written.algorithm {
        EncryptionAlgorithm::Aes128 => Cipher::Aes128,
        EncryptionAlgorithm::Aes192 => Cipher::Aes192,
        EncryptionAlgorithm::Aes256 => Cipher::Aes256,
        EncryptionAlgorithm::TripleDes3Key => {
            return Err(table::triple_des_not_supported().into());
        }
    };
    match &written.encryptor {
        Encryptor::ServerCertificate(name) => Ok((algorithm, name.node.text.clone())),
        Encryptor::ServerAsymmetricKey(_) => Err(table::asymmetric_key_not_supported().into()),
    }
}

fn compression(written: WrittenCompression) -> Result<Compression, Failure> {
    let algorithm = match written.algorithm {
        CompressionAlgorithm::MsXpress => Algorithm::MsXpress,
        CompressionAlgorithm::Zstd => Algorithm::Zstd,
        CompressionAlgorithm::QatDeflate => Algorithm::QatDeflate,
    };
    let level = match written.level {
        // Which it begins with; `choose_level` says where AUTO may stand.
        None | Some(CompressionLevel::Auto) => None,
        Some(CompressionLevel::Low) => Some(Level::Low),
        Some(CompressionLevel::Medium) => Some(Level::Medium),
        Some(CompressionLevel::High) => Some(Level::High),
    };
    Compression::new(algorithm, level)
        .map_err(|_| table::option_conflict("LEVEL", format!("ALGORITHM = {algorithm}")).into())
}
