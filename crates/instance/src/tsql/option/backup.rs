//! The options of BACKUP.

use windlass_base::Moment;
use windlass_base::message::table;
use windlass_codec::{Algorithm, Compression};
use windlass_crypt::Cipher;
use windlass_pipeline::{OnDamage, Overwrite, Probe};
use windlass_tsql::ast::{
    BackupOption, BackupStatement, BackupTarget, Compression as WrittenCompression,
    CompressionLevel, Encryption as WrittenEncryption, EncryptionAlgorithm, Encryptor, ThreadCount,
};
use windlass_tsql::option::{BACKUP, OptionWord, StatementKind};
use windlass_tsql::span::Spanned;

use super::{check, credential, devices, file, filled_text, invalid, number, stats, text, unused};
use crate::operation::{BackupOptions, CompressionChoice, LogChoice, MissingBase};
use crate::{Environment, Failure};

/// Reads the devices and options of a BACKUP DATABASE or BACKUP LOG.
///
/// # Errors
/// 3031, 3032, 3217, and unsupported options.
pub(crate) fn read(
    statement: &BackupStatement,
    environment: &mut dyn Environment,
) -> Result<BackupOptions, Failure> {
    let written = &statement.options;
    let words: Vec<OptionWord> = written.iter().map(|option| option.word()).collect();
    let is_log = matches!(statement.target, BackupTarget::Log { .. });
    let kind = match is_log {
        true => StatementKind::BackupLog,
        false => StatementKind::BackupDatabase,
    };
    check(&words, BACKUP, kind)?;
    let mut options = BackupOptions {
        log: is_log.then(LogChoice::default),
        ..BackupOptions::default()
    };
    for option in written {
        apply(option, &mut options, environment)?;
    }
    if words.contains(&OptionWord::BaseRequired) && !options.is_differential {
        return Err(table::option_not_supported("BASE_REQUIRED without DIFFERENTIAL").into());
    }
    if words.contains(&OptionWord::Level) {
        choose_level(written, &mut options)?;
    }
    options.devices = devices(&statement.devices, environment)?;
    for mirror in &statement.mirrors {
        options.mirrors.push(devices(mirror, environment)?);
    }
    Ok(options)
}

fn apply(
    option: &BackupOption,
    options: &mut BackupOptions,
    environment: &mut dyn Environment,
) -> Result<(), Failure> {
    use {BackupOption as O, OptionWord as W};
    match option {
        O::Flag(W::Differential) => options.is_differential = true,
        O::Flag(W::CopyOnly) => options.is_copy_only = true,
        O::Flag(W::NoRecovery) => options.log = Some(LogChoice::NoRecovery),
        // NORECOVERY and STANDBY say more: the tail stays as well.
        O::Flag(W::NoTruncate) if options.log != Some(LogChoice::Truncate) => {}
        O::Flag(W::NoTruncate) => options.log = Some(LogChoice::NoTruncate),
        O::Compression(None) => options.compression = Some(CompressionChoice::Default),
        O::Compression(Some(written)) => options.compression = Some(compression(*written)?),
        O::Flag(W::NoCompression) => {
            options.compression = Some(CompressionChoice::Fixed(Compression::NONE));
        }
        O::Flag(W::Init) if options.overwrite == Overwrite::Append => {
            options.overwrite = Overwrite::Initialize;
        }
        O::Flag(W::Skip) => options.skips_checks = true,
        O::Flag(W::Format) => options.overwrite = Overwrite::Format,
        O::Flag(word @ (W::Checksum | W::NoChecksum)) => {
            options.checksum = Some(*word == W::Checksum);
        }
        O::Flag(W::ContinueAfterError) => options.on_damage = OnDamage::Continue,
        O::Flag(W::BaseRequired) => options.missing_base = MissingBase::Refuses,
        O::Flag(W::AsIs) => options.is_as_is = true,
        O::Flag(W::EvenStripes) => options.is_even = true,
        O::Integrity(depth) => options.integrity = Some(*depth),
        O::Flag(W::NoWrite) => options.probe = Some(Probe::Transform),
        O::Flag(W::NoCompressWrite) => options.probe = Some(Probe::Read),
        O::Goal(goal) => options.goal = *goal,
        O::Encryption(written) => {
            let (cipher, certificate) = encryption(written)?;
            options.cipher = Some(cipher);
            options.certificate = Some(certificate);
        }
        // Defaults; FORMAT implies INIT; `choose_level` handles LEVEL.
        O::Flag(
            W::Init | W::NoInit | W::NoSkip | W::NoFormat | W::StopOnError | W::NoEncryption,
        )
        | O::ThreadCount(ThreadCount::Auto)
        | O::LevelAuto => {}
        valued => apply_value(valued, options, environment)?,
    }
    Ok(())
}

/// Applies options with a value; refuses or ignores those that no operation uses.
fn apply_value(
    option: &BackupOption,
    options: &mut BackupOptions,
    environment: &mut dyn Environment,
) -> Result<(), Failure> {
    use {BackupOption as O, OptionWord as W};
    let word = option.word();
    match option {
        O::Valued(W::Name, value) => options.name = filled_text(value, environment)?,
        O::Valued(W::Description, value) => options.description = filled_text(value, environment)?,
        O::Valued(W::MediaName, value) => options.media_name = filled_text(value, environment)?,
        O::Valued(W::MediaDescription, value) => {
            options.media_description = filled_text(value, environment)?;
        }
        O::Valued(W::ExpireDate, value) => {
            let text = text(value, environment)?.unwrap_or_default();
            let date: Result<Moment, _> = text.parse();
            options.expires = Some(date.map_err(|_| invalid(word))?);
        }
        O::Valued(W::Standby, value) => {
            options.log = Some(LogChoice::Standby(file(word, value, environment)?));
        }
        O::Valued(W::SignWith, value) => options.sign_with = Some(file(word, value, environment)?),
        O::Stats(value) => options.stats = Some(stats(value.as_ref(), environment)?),
        O::Credential(written) => {
            options.store.credential = credential(written.as_ref(), environment)?;
        }
        O::Valued(W::BackupOptions, value) => {
            options.store.json = Some(file(word, value, environment)?);
        }
        _ => {
            let value = match option {
                O::Valued(_, value) | O::ThreadCount(ThreadCount::Count(value)) => Some(value),
                _ => None,
            };
            let into = match word {
                W::RetainDays => &mut options.retain_days,
                W::BlockSize => &mut options.block_bytes,
                W::BufferCount => &mut options.buffer_count,
                W::MaxTransferSize => &mut options.transfer_bytes,
                W::ThreadCount => &mut options.threads,
                W::MaxRate => &mut options.max_rate,
                W::MaxWriteRate => &mut options.max_write_rate,
                _ => return unused(word, BACKUP),
            };
            let value = value.ok_or_else(|| invalid(word))?;
            *into = Some(number(word, value, environment)?);
        }
    }
    Ok(())
}

/// Applies `LEVEL = AUTO`, which needs ZSTD and selects it if no algorithm is given.
fn choose_level(
    written: &[Spanned<BackupOption>],
    options: &mut BackupOptions,
) -> Result<(), Failure> {
    let named = written.iter().find_map(|option| match &option.node {
        BackupOption::Compression(Some(written)) => Some(*written),
        _ => None,
    });
    match named.map(|named| (named.algorithm, named.level)) {
        Some((_, Some(level))) if level != CompressionLevel::Auto => {
            Err(table::option_conflict("LEVEL", "COMPRESSION (LEVEL)").into())
        }
        Some((algorithm, _)) if algorithm != Algorithm::Zstd => Err(only_zstd(algorithm)),
        _ => {
            options.compression = Some(CompressionChoice::Auto);
            Ok(())
        }
    }
}

fn only_zstd(algorithm: Algorithm) -> Failure {
    table::option_conflict("LEVEL = AUTO", format!("ALGORITHM = {algorithm}")).into()
}

/// The algorithm and the name of the certificate.
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

fn compression(written: WrittenCompression) -> Result<CompressionChoice, Failure> {
    let algorithm = written.algorithm;
    let level = match written.level {
        Some(CompressionLevel::Auto) if algorithm == Algorithm::Zstd => {
            return Ok(CompressionChoice::Auto);
        }
        Some(CompressionLevel::Auto) => return Err(only_zstd(algorithm)),
        Some(CompressionLevel::Fixed(level)) => Some(level),
        None => None,
    };
    Compression::new(algorithm, level)
        .map(CompressionChoice::Fixed)
        .map_err(|_| table::option_conflict("LEVEL", format!("ALGORITHM = {algorithm}")).into())
}
