//! `windlass backup`

use windlass_codec::{Algorithm, Compression as Fixed, Level};
use windlass_device::DeviceAddress;
use windlass_instance::statement::backup::{BackupExtras, MissingBase};
use windlass_tsql::ast::{
    BackupOption, BackupStatement, BackupTarget, Compression, CompressionAlgorithm,
    CompressionLevel, Goal as WrittenGoal, Identifier, Integrity as WrittenIntegrity, Name,
    Statement, ThreadCount, Value,
};
use windlass_tsql::span::Spanned;

use super::{
    Outcome, absolute, database_name, disk, io_method_refused, keys, made, misused, refused,
    session_for,
};
use crate::args::{BackupArguments, Common, Compress, Goal, Integrity};
use crate::output::{Console, Layout};

/// Runs the command.
pub(crate) fn run(arguments: &BackupArguments, common: &Common) -> Outcome {
    if !arguments.mirror.is_empty() && !arguments.mirror.len().is_multiple_of(arguments.to.len()) {
        return misused("give each mirror as many --mirror as there are --to");
    }
    if let Some(outcome) = io_method_refused(arguments.tuning.io) {
        return outcome;
    }
    let mut console = Console::new(common.json, Layout::Table).with_plan(arguments.run.plan);
    let Some(mut session) = session_for(arguments.run.dry_run, common, &mut console) else {
        return Outcome::Failed;
    };
    let Some(name) = database_name(&mut session, &arguments.database, &mut console) else {
        return Outcome::Failed;
    };
    let statement = statement(arguments, common, &name);
    if arguments.run.tsql || arguments.run.dry_run {
        console.tsql(&Statement::Backup(Box::new(statement.clone())));
    }
    let recipients =
        match keys::recipients(&arguments.encrypt_to, arguments.passphrase_file.as_deref()) {
            Ok(recipients) => recipients,
            Err(message) => return refused(message, &mut console),
        };
    let extras = BackupExtras {
        base: arguments.base.iter().map(DeviceAddress::disk).collect(),
        recipients,
        io_method: arguments.tuning.io,
        algorithm: None,
        missing_base: match arguments.base_missing_ok {
            true => MissingBase::Warns,
            false => MissingBase::Refuses,
        },
        lock_timeout: arguments.locking.lock_timeout,
        frozen: arguments.locking.frozen,
        temporary_copy: arguments.locking.temporary_copy(),
    };
    session.backup(&statement, &extras, &mut console).into()
}

/// The statement equivalent to the command line.
pub(super) fn statement(
    arguments: &BackupArguments,
    common: &Common,
    name: &str,
) -> BackupStatement {
    let devices = |paths: &[String]| paths.iter().map(|path| disk(path, common)).collect();
    BackupStatement {
        target: BackupTarget::Database {
            name: made(Name::Identifier(Identifier::new(name))),
            files: Vec::new(),
        },
        devices: match arguments.to.as_slice() {
            // Only a measuring run may omit it: it names a device and touches none.
            [] => devices(&["NUL".to_owned()]),
            to => devices(to),
        },
        mirrors: arguments
            .mirror
            .chunks(arguments.to.len().max(1))
            .map(devices)
            .collect(),
        options: options(arguments)
            .into_iter()
            .map(made)
            .collect::<Vec<Spanned<_>>>(),
    }
}

fn options(arguments: &BackupArguments) -> Vec<BackupOption> {
    use BackupOption as O;
    let number = |number: Option<u32>| number.map(|number| Value::Number(i64::from(number)));
    let text = |text: &Option<String>| text.as_ref().map(Value::national);
    let flag = |is_set: bool, option: O| is_set.then_some(option);
    let tuning = &arguments.tuning;
    [
        Some(compression(arguments)),
        flag(arguments.no_write, O::NoWrite),
        flag(arguments.no_compress_write, O::NoCompressWrite),
        flag(arguments.differential, O::Differential),
        flag(arguments.copy_only, O::CopyOnly),
        flag(arguments.checksum, O::Checksum),
        flag(arguments.as_is, O::AsIs),
        arguments.integrity.map(|depth| {
            O::Integrity(match depth {
                Integrity::Quick => WrittenIntegrity::Quick,
                Integrity::Full => WrittenIntegrity::Full,
            })
        }),
        flag(arguments.continue_after_error, O::ContinueAfterError),
        flag(arguments.init, O::Init),
        flag(arguments.format, O::Format),
        flag(arguments.skip, O::Skip),
        text(&arguments.name).map(O::Name),
        text(&arguments.description).map(O::Description),
        text(&arguments.media_name).map(O::MediaName),
        text(&arguments.media_description).map(O::MediaDescription),
        text(&arguments.expire).map(O::ExpireDate),
        number(arguments.retain_days).map(O::RetainDays),
        arguments
            .sign_with
            .as_ref()
            .map(|path| O::SignWith(Value::national(absolute(path)))),
        arguments
            .block_size
            .map(|bytes| O::BlockSize(Value::Number(bytes))),
        number(tuning.buffer_count).map(O::BufferCount),
        tuning
            .max_transfer_size
            .map(|bytes| O::MaxTransferSize(Value::Number(bytes))),
        tuning.threads.map(|threads| {
            O::ThreadCount(match number(threads.count()) {
                Some(count) => ThreadCount::Count(count),
                None => ThreadCount::Auto,
            })
        }),
        arguments.goal.map(|goal| {
            O::Goal(match goal {
                Goal::Fast => WrittenGoal::Fast,
                Goal::Small => WrittenGoal::Small,
                Goal::Gentle => WrittenGoal::Gentle,
            })
        }),
        number(arguments.max_rate).map(O::MaxRate),
        number(arguments.max_write_rate).map(O::MaxWriteRate),
        number(arguments.run.stats).map(|every| O::Stats(Some(every))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn compression(arguments: &BackupArguments) -> BackupOption {
    let fixed = match (arguments.compress, arguments.goal) {
        (Some(Compress::Auto), _) | (None, Some(_)) => {
            return BackupOption::Compression(Some(Compression {
                algorithm: CompressionAlgorithm::Zstd,
                level: Some(CompressionLevel::Auto),
            }));
        }
        (Some(Compress::Fixed(fixed)), _) => fixed,
        (None, None) => Fixed::ZSTD_LOW,
    };
    let algorithm = match fixed.algorithm {
        Algorithm::None => return BackupOption::NoCompression,
        Algorithm::MsXpress => CompressionAlgorithm::MsXpress,
        Algorithm::Zstd => CompressionAlgorithm::Zstd,
        Algorithm::QatDeflate => CompressionAlgorithm::QatDeflate,
    };
    let level = fixed.level.map(|level| match level {
        Level::Low => CompressionLevel::Low,
        Level::Medium => CompressionLevel::Medium,
        Level::High => CompressionLevel::High,
    });
    BackupOption::Compression(Some(Compression { algorithm, level }))
}
