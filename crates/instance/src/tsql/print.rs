//! Prints operations as T-SQL: the statement that is equivalent to some options, where the language
//! allows.
//!
//! The syntax tree serves only to be printed.

use windlass_base::{Lsn, exact_local_of_unix_ms};
use windlass_codec::{Algorithm, Compression};
use windlass_crypt::Cipher;
use windlass_pipeline::{Goal, OnDamage, Overwrite, Probe};
use windlass_source::Recovery;
use windlass_tsql::ast::{
    self, BackupOption, BackupStatement, BackupTarget, CompressionLevel, Device, DeviceKind,
    Encryption, EncryptionAlgorithm, Encryptor, Identifier, Name, RestoreAction, RestoreOption,
    RestoreSource, RestoreStatement, StopMark, ThreadCount, Value,
};
use windlass_tsql::option::OptionWord;
use windlass_tsql::span::Spanned;

use crate::operation::{
    BackupOptions, CompressionChoice, CredentialChoice, DeviceName, LogChoice, MediaOptions,
    MissingBase, RestoreKind, RestoreOptions, StopAt, StoreOptions, VerifyOptions, WantedMark,
};

/// Prints a backup as a BACKUP statement.
pub fn backup(database: &str, options: &BackupOptions) -> String {
    let statement = BackupStatement {
        target: match options.log {
            Some(_) => BackupTarget::Log {
                name: identifier(database),
            },
            None => BackupTarget::Database {
                name: identifier(database),
                files: Vec::new(),
            },
        },
        devices: devices(&options.devices),
        mirrors: options
            .mirrors
            .iter()
            .map(|mirror| devices(mirror))
            .collect(),
        options: backup_options(options),
    };
    statement.to_string()
}

/// Prints a restore as a RESTORE statement.
pub fn restore(database: &str, options: &RestoreOptions) -> String {
    let (name, files) = (identifier(database), Vec::new());
    let action = match options.wants {
        Some(RestoreKind::Log) => RestoreAction::Log { name, files },
        Some(RestoreKind::Database) | None => RestoreAction::Database { name, files },
    };
    statement_of(action, &options.media, restore_options(options))
}

/// Prints a verification as a RESTORE VERIFYONLY statement.
pub fn verify(options: &VerifyOptions) -> String {
    use {OptionWord as W, RestoreOption as O};
    let media = &options.media;
    let moves = moves(&options.moves);
    let rest = [
        number(media.position).map(|value| O::Valued(W::File, value)),
        text(media.media_name.as_ref()).map(|value| O::Valued(W::MediaName, value)),
        credential(&media.store, O::Credential),
        text(media.store.json.as_ref()).map(|value| O::Valued(W::RestoreOptions, value)),
        media.needs_checksums.then_some(O::Flag(W::Checksum)),
        (options.on_damage == OnDamage::Stop).then_some(O::Flag(W::StopOnError)),
        options.is_without_key.then_some(O::Flag(W::WithoutKey)),
        options.loads_history.then_some(O::Flag(W::LoadHistory)),
        number(options.stats).map(|every| O::Stats(Some(every))),
    ];
    let written = moves.chain(rest.into_iter().flatten());
    let written = written.chain(signers(&options.signed_by)).collect();
    statement_of(RestoreAction::VerifyOnly, media, written)
}

fn statement_of(
    action: RestoreAction,
    media: &MediaOptions,
    options: Vec<RestoreOption>,
) -> String {
    let statement = RestoreStatement {
        action,
        source: match media.devices.as_slice() {
            [] => RestoreSource::None,
            named => RestoreSource::Devices(devices(named)),
        },
        options: options.into_iter().map(Spanned::unplaced).collect(),
    };
    statement.to_string()
}

fn stop(stop: &StopAt) -> Option<RestoreOption> {
    use {OptionWord as W, RestoreOption as O};
    let text = |text| Spanned::unplaced(Value::national(text));
    let lsn = |lsn: &Lsn| StopMark {
        mark: text(format!("lsn:{lsn}")),
        after: None,
    };
    let named = |mark: &WantedMark| StopMark {
        mark: text(mark.name.clone()),
        after: (mark.after_ms > 0).then(|| text(exact_local_of_unix_ms(mark.after_ms))),
    };
    match stop {
        StopAt::End => None,
        StopAt::Time(unix_ms) => {
            let at = Value::national(exact_local_of_unix_ms(*unix_ms));
            Some(O::Valued(W::StopAt, at))
        }
        StopAt::Lsn(at) => Some(O::StopAtMark(lsn(at))),
        StopAt::BeforeLsn(at) => Some(O::StopBeforeMark(lsn(at))),
        StopAt::Mark(mark) => Some(O::StopAtMark(named(mark))),
        StopAt::BeforeMark(mark) => Some(O::StopBeforeMark(named(mark))),
    }
}

fn backup_options(options: &BackupOptions) -> Vec<Spanned<BackupOption>> {
    use {BackupOption as O, OptionWord as W};
    let written = [
        options.compression.map(compression),
        encryption(options).map(O::Encryption),
        options.probe.map(|probe| match probe {
            Probe::Transform => O::Flag(W::NoWrite),
            Probe::Read => O::Flag(W::NoCompressWrite),
        }),
        options.is_differential.then_some(O::Flag(W::Differential)),
        options.is_copy_only.then_some(O::Flag(W::CopyOnly)),
        (options.is_differential && options.missing_base == MissingBase::Refuses)
            .then_some(O::Flag(W::BaseRequired)),
        (options.log.as_ref()).and_then(|choice| match choice {
            LogChoice::Truncate => None,
            LogChoice::NoTruncate => Some(O::Flag(W::NoTruncate)),
            LogChoice::NoRecovery => Some(O::Flag(W::NoRecovery)),
            LogChoice::Standby(file) => Some(O::Valued(W::Standby, Value::national(file.clone()))),
        }),
        options.checksum.map(|is_on| match is_on {
            true => O::Flag(W::Checksum),
            false => O::Flag(W::NoChecksum),
        }),
        options.is_as_is.then_some(O::Flag(W::AsIs)),
        options.integrity.map(O::Integrity),
        (options.on_damage == OnDamage::Continue).then_some(O::Flag(W::ContinueAfterError)),
        match options.overwrite {
            Overwrite::Append => None,
            Overwrite::Initialize => Some(O::Flag(W::Init)),
            Overwrite::Format => Some(O::Flag(W::Format)),
        },
        options.skips_checks.then_some(O::Flag(W::Skip)),
        text(options.name.as_ref()).map(|value| O::Valued(W::Name, value)),
        text(options.description.as_ref()).map(|value| O::Valued(W::Description, value)),
        text(options.media_name.as_ref()).map(|value| O::Valued(W::MediaName, value)),
        text(options.media_description.as_ref()).map(|value| O::Valued(W::MediaDescription, value)),
        options
            .expires
            .map(|date| O::Valued(W::ExpireDate, Value::national(date.to_string()))),
        number(options.retain_days).map(|value| O::Valued(W::RetainDays, value)),
        text(options.sign_with.as_ref()).map(|value| O::Valued(W::SignWith, value)),
        credential(&options.store, O::Credential),
        text(options.store.json.as_ref()).map(|value| O::Valued(W::BackupOptions, value)),
        number(options.block_bytes).map(|value| O::Valued(W::BlockSize, value)),
        number(options.buffer_count).map(|value| O::Valued(W::BufferCount, value)),
        number(options.transfer_bytes).map(|value| O::Valued(W::MaxTransferSize, value)),
        number(options.threads).map(|count| O::ThreadCount(ThreadCount::Count(count))),
        // The first goal is the default.
        (options.goal != Goal::default()).then_some(O::Goal(options.goal)),
        options.is_even.then_some(O::Flag(W::EvenStripes)),
        number(options.max_rate).map(|value| O::Valued(W::MaxRate, value)),
        number(options.max_write_rate).map(|value| O::Valued(W::MaxWriteRate, value)),
        number(options.stats).map(|every| O::Stats(Some(every))),
    ];
    let written = written.into_iter().flatten();
    written.map(Spanned::unplaced).collect()
}

fn restore_options(options: &RestoreOptions) -> Vec<RestoreOption> {
    use {OptionWord as W, RestoreOption as O};
    let media = &options.media;
    let recovers = options.recovery == Recovery::Recovery;
    let rest = [
        number(media.position).map(|value| O::Valued(W::File, value)),
        options.replaces.then_some(O::Flag(W::Replace)),
        options
            .standby
            .as_ref()
            .map(|file| O::Valued(W::Standby, Value::national(file.clone()))),
        stop(&options.stop),
        options.restarts.then_some(O::Flag(W::Restart)),
        options.is_as_is.then_some(O::Flag(W::AsIs)),
        options
            .allows_unencrypted
            .then_some(O::Flag(W::AllowUnencrypted)),
        (!recovers && options.standby.is_none()).then_some(O::Flag(W::NoRecovery)),
        // RECOVERY is the default; printed only for a restore without devices.
        (recovers && media.devices.is_empty()).then_some(O::Flag(W::Recovery)),
        media.needs_checksums.then_some(O::Flag(W::Checksum)),
        (options.on_damage == OnDamage::Continue).then_some(O::Flag(W::ContinueAfterError)),
        text(media.media_name.as_ref()).map(|value| O::Valued(W::MediaName, value)),
        credential(&media.store, O::Credential),
        text(media.store.json.as_ref()).map(|value| O::Valued(W::RestoreOptions, value)),
        number(media.block_bytes).map(|value| O::Valued(W::BlockSize, value)),
        number(options.buffer_count).map(|value| O::Valued(W::BufferCount, value)),
        number(options.transfer_bytes).map(|value| O::Valued(W::MaxTransferSize, value)),
        number(options.stats).map(|every| O::Stats(Some(every))),
    ];
    moves(&options.moves)
        .chain(rest.into_iter().flatten())
        .chain(signers(&options.signed_by))
        .collect()
}

fn identifier(name: &str) -> Spanned<Name> {
    Spanned::unplaced(Name::Identifier(Identifier::new(name)))
}

fn devices(names: &[DeviceName]) -> Vec<Spanned<Device>> {
    let physical = |kind, path: &str| Device::Physical {
        kind,
        path: Value::national(path),
    };
    let device = |name: &DeviceName| match name {
        DeviceName::Disk(path) => physical(DeviceKind::Disk, path),
        DeviceName::Logical(name) => Device::Logical(Name::Identifier(Identifier::new(name))),
        DeviceName::Tape => physical(DeviceKind::Tape, ""),
        DeviceName::Url(_) => physical(DeviceKind::Url, &name.to_string()),
        DeviceName::VirtualDevice => physical(DeviceKind::VirtualDevice, ""),
    };
    names.iter().map(device).map(Spanned::unplaced).collect()
}

fn moves(moves: &[(String, String)]) -> impl Iterator<Item = RestoreOption> {
    moves.iter().map(|(logical, path)| RestoreOption::Move {
        logical: Spanned::unplaced(Value::national(logical)),
        path: Spanned::unplaced(Value::national(path)),
    })
}

fn signers(files: &[String]) -> impl Iterator<Item = RestoreOption> {
    let signer = |file| RestoreOption::Valued(OptionWord::SignedBy, Value::national(file));
    files.iter().map(signer)
}

fn number(number: Option<i64>) -> Option<Value> {
    number.map(Value::Number)
}

/// `CREDENTIAL [= name]`
fn credential<O>(store: &StoreOptions, option: impl Fn(Option<ast::Credential>) -> O) -> Option<O> {
    match &store.credential {
        CredentialChoice::Any => None,
        CredentialChoice::Matching => Some(option(None)),
        CredentialChoice::Named(name) => {
            let named = ast::Credential::Value(Value::national(name));
            Some(option(Some(named)))
        }
    }
}

fn text(text: Option<&String>) -> Option<Value> {
    text.map(Value::national)
}

fn compression(choice: CompressionChoice) -> BackupOption {
    let (algorithm, level) = match choice {
        CompressionChoice::Default => return BackupOption::Compression(None),
        CompressionChoice::Fixed(Compression::NONE) => {
            return BackupOption::Flag(OptionWord::NoCompression);
        }
        CompressionChoice::Fixed(fixed) => {
            (fixed.algorithm, fixed.level.map(CompressionLevel::Fixed))
        }
        CompressionChoice::Auto => (Algorithm::Zstd, Some(CompressionLevel::Auto)),
    };
    BackupOption::Compression(Some(ast::Compression { algorithm, level }))
}

/// Of the recipients, T-SQL can name only the certificate.
fn encryption(options: &BackupOptions) -> Option<Encryption> {
    let certificate = options.certificate.as_ref()?;
    Some(Encryption {
        algorithm: match options.cipher {
            Some(Cipher::Aes128) => EncryptionAlgorithm::Aes128,
            Some(Cipher::Aes192) => EncryptionAlgorithm::Aes192,
            Some(Cipher::Aes256) | None => EncryptionAlgorithm::Aes256,
        },
        encryptor: Encryptor::ServerCertificate(Spanned::unplaced(Identifier::new(certificate))),
    })
}

#[cfg(test)]
mod tests {
    use windlass_source::Depth;
    use windlass_tsql::ast::Statement;
    use windlass_tsql::option::{BACKUP, DefinedBy, Support};
    use windlass_tsql::parse_batch;

    use super::*;
    use crate::tsql::option::{read_backup, read_restore, read_verify};
    use crate::{Instance, Session};

    fn read(text: &str) -> (Statement, Session) {
        let mut batch = parse_batch(text).unwrap();
        let session = Session::new(Instance::open(None).unwrap());
        (batch.remove(0).node, session)
    }

    fn media() -> MediaOptions {
        MediaOptions {
            devices: vec![
                DeviceName::Disk("/b/it's 1.bak".to_owned()),
                DeviceName::Logical("nightly]".to_owned()),
            ],
            position: Some(3),
            media_name: Some("m".to_owned()),
            block_bytes: None,
            needs_checksums: true,
            store: StoreOptions {
                credential: CredentialChoice::Named("it's".to_owned()),
                json: Some(r#"{"s3":{"region":"r"}}"#.to_owned()),
            },
        }
    }

    /// Two backups that together use every option that T-SQL has.
    fn backups() -> [BackupOptions; 2] {
        let text = |text: &str| Some(text.to_owned());
        let full = BackupOptions {
            devices: media().devices,
            mirrors: vec![media().devices],
            overwrite: Overwrite::Format,
            skips_checks: true,
            media_name: text("m"),
            media_description: text("it's"),
            block_bytes: Some(4096),
            is_copy_only: true,
            name: text("n"),
            description: text("d"),
            expires: Some("2027-01-02 03:04:05".parse().unwrap()),
            retain_days: Some(7),
            compression: Some(CompressionChoice::Auto),
            certificate: text("c]"),
            cipher: Some(Cipher::Aes192),
            sign_with: text("/k/it's.pem"),
            checksum: Some(true),
            on_damage: OnDamage::Continue,
            integrity: Some(Depth::Full),
            probe: Some(Probe::Transform),
            goal: Goal::Gentle,
            buffer_count: Some(9),
            transfer_bytes: Some(65_536),
            threads: Some(3),
            is_even: true,
            max_rate: Some(50),
            max_write_rate: Some(60),
            stats: Some(20),
            store: media().store,
            ..BackupOptions::default()
        };
        let differential = BackupOptions {
            devices: vec![DeviceName::Disk("x".to_owned())],
            overwrite: Overwrite::Initialize,
            is_differential: true,
            missing_base: MissingBase::Refuses,
            compression: Some(CompressionChoice::Fixed(Compression::ZSTD_HIGH)),
            checksum: Some(false),
            is_as_is: true,
            probe: Some(Probe::Read),
            ..BackupOptions::default()
        };
        [full, differential]
    }

    #[test]
    fn a_backup_that_is_printed_is_read_back_as_the_same_options() {
        for options in backups() {
            let text = backup("my db]", &options);
            let (Statement::Backup(statement), mut session) = read(&text) else {
                panic!("{text}");
            };
            let found = read_backup(&statement, &mut session).unwrap();
            assert_eq!(format!("{found:?}"), format!("{options:?}"), "{text}");
        }
        for choice in [
            LogChoice::Truncate,
            LogChoice::NoTruncate,
            LogChoice::NoRecovery,
            LogChoice::Standby("d:\\it's".to_owned()),
        ] {
            let options = BackupOptions {
                log: Some(choice.clone()),
                devices: backups()[1].devices.clone(),
                ..BackupOptions::default()
            };
            let (Statement::Backup(statement), mut session) = read(&backup("x", &options)) else {
                panic!("{choice:?}");
            };
            let found = read_backup(&statement, &mut session).unwrap();
            assert_eq!(found.log, options.log);
        }
        for fixed in Compression::ALL {
            let options = BackupOptions {
                compression: Some(CompressionChoice::Fixed(fixed)),
                ..backups()[1].clone()
            };
            let (Statement::Backup(statement), mut session) = read(&backup("x", &options)) else {
                panic!("{fixed}");
            };
            let found = read_backup(&statement, &mut session).unwrap();
            assert_eq!(found.compression, options.compression);
        }
    }

    /// An option that the command line has and the printer does not know would be lost in `--tsql`.
    #[test]
    fn every_option_of_windlass_is_printed() {
        let [full, differential] = backups();
        let fixed = BackupOptions {
            compression: Some(CompressionChoice::Auto),
            ..BackupOptions::default()
        };
        let printed = [full, differential, fixed].map(|options| backup("x", &options));
        for row in BACKUP {
            let is_ours = row.defined_by == DefinedBy::Windlass && row.support == Support::Acts;
            let word = row.word.spelling();
            let is_printed = printed.iter().any(|text| text.contains(word));
            assert!(!is_ours || is_printed, "{word} is not in {printed:?}");
        }
    }

    #[test]
    fn a_restore_and_a_verification_that_are_printed_are_read_back_as_the_same_options() {
        let moves = vec![("app".to_owned(), "/d/it's.db".to_owned())];
        let options = RestoreOptions {
            media: MediaOptions {
                block_bytes: Some(512),
                ..media()
            },
            wants: Some(RestoreKind::Database),
            recovery: Recovery::NoRecovery,
            moves: moves.clone(),
            replaces: true,
            restarts: true,
            is_as_is: true,
            allows_unencrypted: true,
            signed_by: vec!["a.pub".to_owned(), "b.pub".to_owned()],
            on_damage: OnDamage::Continue,
            buffer_count: Some(9),
            transfer_bytes: Some(65_536),
            stats: Some(5),
            ..RestoreOptions::default()
        };
        let log = |stop| RestoreOptions {
            wants: Some(RestoreKind::Log),
            stop,
            ..RestoreOptions::default()
        };
        let lsn = "33:288:1".parse().unwrap();
        let mark = |after_ms| WantedMark {
            name: "it's".to_owned(),
            after_ms,
        };
        let plain = RestoreOptions {
            wants: Some(RestoreKind::Database),
            ..RestoreOptions::default()
        };
        let logs = [
            log(StopAt::Time(1_795_515_300_120)),
            log(StopAt::Lsn(lsn)),
            log(StopAt::BeforeLsn(lsn)),
            log(StopAt::Mark(mark(0))),
            RestoreOptions {
                recovery: Recovery::NoRecovery,
                standby: Some("D:\\it's".to_owned()),
                ..log(StopAt::End)
            },
            log(StopAt::BeforeMark(mark(1_795_515_300_120))),
        ];
        for options in [options, plain].into_iter().chain(logs) {
            let text = restore("my db]", &options);
            let (Statement::Restore(statement), mut session) = read(&text) else {
                panic!("{text}");
            };
            let kind = options.wants.unwrap();
            let (found, _) = read_restore(&statement, kind, &mut session).unwrap();
            assert_eq!(format!("{found:?}"), format!("{options:?}"), "{text}");
        }
        let options = VerifyOptions {
            media: media(),
            moves,
            on_damage: OnDamage::Stop,
            is_without_key: true,
            signed_by: vec!["a.pub".to_owned()],
            stats: Some(5),
            ..VerifyOptions::default()
        };
        let text = verify(&options);
        let (Statement::Restore(statement), mut session) = read(&text) else {
            panic!("{text}");
        };
        let found = read_verify(&statement, &mut session).unwrap();
        assert_eq!(format!("{found:?}"), format!("{options:?}"), "{text}");
    }
}
