//! Generators for the complete syntax tree of BACKUP and RESTORE.

mod script;

pub(crate) use script::{create_database, execute, flow, variables};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use windlass_tsql::Spanned;
use windlass_tsql::ast::*;
use windlass_tsql::option::{ArgumentKind, BACKUP, OptionRow, OptionWord, RESTORE};

pub(super) fn spanned<T: std::fmt::Debug>(
    inner: impl Strategy<Value = T>,
) -> impl Strategy<Value = Spanned<T>> {
    inner.prop_map(Spanned::unplaced)
}

pub(super) fn identifier() -> impl Strategy<Value = Identifier> {
    let odd = "[a-z@#$_\\]\\[\"' .é漢-]{1,12}";
    let words = [
        "x", "file", "Database", "WITH", "TAPE", "select", "#t", "pragma", "AUTO",
    ];
    prop_oneof![
        "[A-Za-z_][A-Za-z0-9_]{0,10}",
        odd,
        select(words.to_vec()).prop_map(str::to_owned)
    ]
    .prop_map(Identifier::new)
}

pub(super) fn variable() -> impl Strategy<Value = Variable> {
    "@@?[A-Za-z_][A-Za-z0-9_#$]{0,8}".prop_map(Variable::new)
}

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![
        identifier().prop_map(Name::Identifier),
        variable().prop_map(Name::Variable)
    ]
}

fn text() -> impl Strategy<Value = Value> {
    (any::<String>(), any::<bool>()).prop_map(|(text, national)| Value::Text { text, national })
}

fn text_or_variable() -> impl Strategy<Value = Value> {
    prop_oneof![text(), variable().prop_map(Value::Variable)]
}

fn number_or_variable() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::Number),
        variable().prop_map(Value::Variable)
    ]
}

pub(super) fn value() -> impl Strategy<Value = Value> {
    prop_oneof![text_or_variable(), number_or_variable()]
}

fn device() -> impl Strategy<Value = Device> {
    let kinds = [
        DeviceKind::Disk,
        DeviceKind::Tape,
        DeviceKind::Url,
        DeviceKind::VirtualDevice,
    ];
    prop_oneof![
        name().prop_map(Device::Logical),
        (select(kinds.to_vec()), text_or_variable())
            .prop_map(|(kind, path)| Device::Physical { kind, path }),
    ]
}

fn devices() -> impl Strategy<Value = Vec<Spanned<Device>>> {
    vec(spanned(device()), 1..5)
}

fn names() -> impl Strategy<Value = Vec<Spanned<Value>>> {
    vec(spanned(text_or_variable()), 1..4)
}

fn file_spec() -> impl Strategy<Value = FileSpec> {
    prop_oneof![
        names().prop_map(FileSpec::File),
        names().prop_map(FileSpec::Filegroup),
        Just(FileSpec::ReadWriteFilegroups),
    ]
}

fn file_spec_or_page() -> impl Strategy<Value = FileSpec> {
    prop_oneof![
        file_spec(),
        spanned(text_or_variable()).prop_map(FileSpec::Page)
    ]
}

fn compression() -> impl Strategy<Value = Compression> {
    use Algorithm::{MsXpress, QatDeflate, Zstd};
    let levels = Level::ALL.iter().copied().map(CompressionLevel::Fixed);
    let levels: Vec<CompressionLevel> = levels.chain([CompressionLevel::Auto]).collect();
    (
        select(vec![MsXpress, Zstd, QatDeflate]),
        option::of(select(levels)),
    )
        .prop_map(|(algorithm, level)| Compression { algorithm, level })
}

fn encryption() -> impl Strategy<Value = Encryption> {
    use EncryptionAlgorithm::{Aes128, Aes192, Aes256, TripleDes3Key};
    let encryptor = prop_oneof![
        spanned(identifier()).prop_map(Encryptor::ServerCertificate),
        spanned(identifier()).prop_map(Encryptor::ServerAsymmetricKey),
    ];
    (
        select(vec![Aes128, Aes192, Aes256, TripleDes3Key]),
        encryptor,
    )
        .prop_map(|(algorithm, encryptor)| Encryption {
            algorithm,
            encryptor,
        })
}

fn credential() -> impl Strategy<Value = Option<Credential>> {
    option::of(prop_oneof![
        text_or_variable().prop_map(Credential::Value),
        identifier().prop_map(Credential::Identifier),
    ])
}

/// The words of a table whose argument is of this kind.
fn words(rows: &[OptionRow], argument: ArgumentKind) -> impl Strategy<Value = OptionWord> + use<> {
    let rows = rows.iter().filter(|row| row.argument == argument);
    select(rows.map(|row| row.word).collect::<Vec<_>>())
}

fn backup_option() -> impl Strategy<Value = BackupOption> {
    prop_oneof![
        4 => words(BACKUP, ArgumentKind::None).prop_map(BackupOption::Flag),
        4 => (words(BACKUP, ArgumentKind::Value), value())
            .prop_map(|(word, value)| BackupOption::Valued(word, value)),
        1 => Just(BackupOption::LevelAuto),
        1 => option::of(compression()).prop_map(BackupOption::Compression),
        1 => encryption().prop_map(BackupOption::Encryption),
        1 => credential().prop_map(BackupOption::Credential),
        1 => option::of(value()).prop_map(BackupOption::Stats),
        1 => select(Goal::ALL).prop_map(BackupOption::Goal),
        1 => Just(BackupOption::ThreadCount(ThreadCount::Auto)),
        1 => value().prop_map(|count| BackupOption::ThreadCount(ThreadCount::Count(count))),
    ]
}

fn backup_target() -> impl Strategy<Value = BackupTarget> {
    prop_oneof![
        (spanned(name()), vec(spanned(file_spec()), 0..3))
            .prop_map(|(name, files)| BackupTarget::Database { name, files }),
        spanned(name()).prop_map(|name| BackupTarget::Log { name }),
        vec(spanned(name()), 1..4).prop_map(|names| BackupTarget::Group { names }),
        Just(BackupTarget::Server),
    ]
}

pub(crate) fn backup() -> impl Strategy<Value = Statement> {
    (
        backup_target(),
        devices(),
        vec(devices(), 0..4),
        vec(spanned(backup_option()), 0..6),
    )
        .prop_map(|(target, devices, mirrors, options)| {
            let statement = BackupStatement {
                target,
                devices,
                mirrors,
                options,
            };
            Statement::Backup(Box::new(statement))
        })
}

fn stop_mark() -> impl Strategy<Value = StopMark> {
    (
        spanned(text_or_variable()),
        option::of(spanned(text_or_variable())),
    )
        .prop_map(|(mark, after)| StopMark { mark, after })
}

fn restore_option() -> impl Strategy<Value = RestoreOption> {
    prop_oneof![
        4 => words(RESTORE, ArgumentKind::None).prop_map(RestoreOption::Flag),
        4 => (words(RESTORE, ArgumentKind::Value), value())
            .prop_map(|(word, value)| RestoreOption::Valued(word, value)),
        1 => (spanned(text_or_variable()), spanned(text_or_variable()))
            .prop_map(|(logical, path)| RestoreOption::Move { logical, path }),
        1 => (words(RESTORE, ArgumentKind::Number), number_or_variable())
            .prop_map(|(word, value)| RestoreOption::Valued(word, value)),
        1 => credential().prop_map(RestoreOption::Credential),
        1 => option::of(value()).prop_map(RestoreOption::Stats),
        1 => text_or_variable()
            .prop_map(|directory_name| RestoreOption::Filestream { directory_name }),
        1 => name().prop_map(RestoreOption::DbName),
        1 => stop_mark().prop_map(RestoreOption::StopAtMark),
        1 => stop_mark().prop_map(RestoreOption::StopBeforeMark),
    ]
}

fn restore_of_data() -> impl Strategy<Value = (RestoreAction, RestoreSource)> {
    let files = vec(spanned(file_spec_or_page()), 0..3);
    let action = (spanned(name()), files, any::<bool>()).prop_map(|(name, files, log)| {
        if log {
            RestoreAction::Log { name, files }
        } else {
            RestoreAction::Database { name, files }
        }
    });
    let source = prop_oneof![
        Just(RestoreSource::None),
        devices().prop_map(RestoreSource::Devices)
    ];
    (action, source)
}

fn restore_of_header() -> impl Strategy<Value = (RestoreAction, RestoreSource)> {
    use RestoreAction::{FileListOnly, HeaderOnly, LabelOnly, RewindOnly, VerifyOnly};
    let actions = vec![HeaderOnly, FileListOnly, LabelOnly, VerifyOnly, RewindOnly];
    (select(actions), devices().prop_map(RestoreSource::Devices))
}

pub(crate) fn restore() -> impl Strategy<Value = Statement> {
    let read = (
        prop_oneof![restore_of_data(), restore_of_header()],
        vec(spanned(restore_option()), 0..6),
    )
        .prop_map(|((action, source), options)| RestoreStatement {
            action,
            source,
            options,
        });
    let revert = (spanned(name()), spanned(name())).prop_map(|(name, snapshot)| RestoreStatement {
        action: RestoreAction::Database {
            name,
            files: Vec::new(),
        },
        source: RestoreSource::DatabaseSnapshot(snapshot),
        options: Vec::new(),
    });
    prop_oneof![6 => read, 1 => revert]
        .prop_map(|statement| Statement::Restore(Box::new(statement)))
}
