//! The grammar of BACKUP and RESTORE: what SQL Server's parser accepts and refuses.

use windlass_tsql::ast::{
    Algorithm, BackupOption, BackupTarget, Compression, CompressionLevel, Credential, Device,
    DeviceKind, Encryption, EncryptionAlgorithm, Encryptor, FileSpec, Goal, Identifier, Level,
    Name, RestoreAction, RestoreOption, RestoreSource, ThreadCount, Value, Variable,
};
use windlass_tsql::option::{self, ArgumentKind, OptionRow, OptionWord};

use crate::{backup, only, refused, restore};

fn backup_options(options: &str) -> Vec<BackupOption> {
    let statement = backup(&format!("BACKUP DATABASE x TO DISK = 'a' WITH {options}"));
    statement
        .options
        .into_iter()
        .map(|option| option.node)
        .collect()
}

fn restore_options(options: &str) -> Vec<RestoreOption> {
    let statement = restore(&format!(
        "RESTORE DATABASE x FROM DISK = 'a' WITH {options}"
    ));
    statement
        .options
        .into_iter()
        .map(|option| option.node)
        .collect()
}

fn text(text: &str) -> Value {
    Value::Text {
        text: text.to_owned(),
        national: false,
    }
}

fn variable(name: &str) -> Value {
    Value::Variable(Variable::new(name))
}

#[test]
fn a_striped_backup_keeps_devices_and_options_in_source_order() {
    let statement = backup(
        "BACKUP DATABASE [my db] TO DISK = N'C:\\a.bak', TAPE = '\\\\.\\tape0', dump1, @device\n\
         WITH NOFORMAT, NOINIT, NAME = N'n', SKIP, STATS = 10, NOINIT",
    );
    let devices: Vec<_> = statement
        .devices
        .iter()
        .map(|device| device.node.clone())
        .collect();
    assert_eq!(
        devices,
        [
            Device::Physical {
                kind: DeviceKind::Disk,
                path: Value::national("C:\\a.bak")
            },
            Device::Physical {
                kind: DeviceKind::Tape,
                path: text("\\\\.\\tape0")
            },
            Device::Logical(Name::Identifier(Identifier::new("dump1"))),
            Device::Logical(Name::Variable(Variable::new("@device"))),
        ]
    );
    let options: Vec<_> = statement
        .options
        .iter()
        .map(|option| option.node.clone())
        .collect();
    assert_eq!(
        options,
        [
            BackupOption::Flag(OptionWord::NoFormat),
            BackupOption::Flag(OptionWord::NoInit),
            BackupOption::Valued(OptionWord::Name, Value::national("n")),
            BackupOption::Flag(OptionWord::Skip),
            BackupOption::Stats(Some(Value::Number(10))),
            BackupOption::Flag(OptionWord::NoInit),
        ]
    );
    assert_eq!(statement.options[1].span.line, 2);
    assert_eq!(statement.options[1].span.column, 16);
}

#[test]
fn every_target_of_backup() {
    let targets = [
        "DATABASE x",
        "DATABASE @db",
        "DATABASE x FILE = 'f', FILEGROUP = ('g', @h), FILE = @f",
        "DATABASE x READ_WRITE_FILEGROUPS, FILEGROUP = 'g'",
        "LOG x",
        "LOG @db",
        "GROUP a, b, @c",
        "SERVER",
    ];
    for target in targets {
        let printed = only(&format!("BACKUP {target} TO DISK = 'a'")).to_string();
        assert_eq!(printed, format!("BACKUP {target} TO DISK = 'a'"));
    }
    let BackupTarget::Database { files, .. } =
        backup("BACKUP DATABASE x FILE = ('a', 'b'), READ_WRITE_FILEGROUPS TO d").target
    else {
        panic!()
    };
    assert!(matches!(&files[0].node, FileSpec::File(names) if names.len() == 2));
    assert_eq!(files[1].node, FileSpec::ReadWriteFilegroups);
}

#[test]
fn up_to_three_mirrors() {
    let mirrors = |count: usize| {
        format!(
            "BACKUP DATABASE x TO DISK = 'a'{} WITH FORMAT",
            " MIRROR TO DISK = 'b', DISK = 'c'".repeat(count)
        )
    };
    assert_eq!(backup(&mirrors(3)).mirrors.len(), 3);
    assert_eq!(refused(&mirrors(4)).number, 102);
}

#[test]
fn compression_with_and_without_algorithm_and_level() {
    let zstd = Compression {
        algorithm: Algorithm::Zstd,
        level: Some(CompressionLevel::Fixed(Level::High)),
    };
    let qat = Compression {
        algorithm: Algorithm::QatDeflate,
        level: None,
    };
    assert_eq!(
        backup_options(
            "compression, Compression(ALGORITHM=ZSTD, LEVEL=HIGH), COMPRESSION (ALGORITHM = QAT_DEFLATE)"
        ),
        [
            BackupOption::Compression(None),
            BackupOption::Compression(Some(zstd)),
            BackupOption::Compression(Some(qat)),
        ]
    );
}

#[test]
fn encryption_and_credentials() {
    assert_eq!(
        backup_options(
            "ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = [my cert]), \
             ENCRYPTION (ALGORITHM = TRIPLE_DES_3KEY, SERVER ASYMMETRIC KEY = k), \
             CREDENTIAL, CREDENTIAL = 'c', CREDENTIAL = c, NO_ENCRYPTION"
        ),
        [
            BackupOption::Encryption(Encryption {
                algorithm: EncryptionAlgorithm::Aes256,
                encryptor: Encryptor::ServerCertificate(windlass_tsql::Spanned::unplaced(
                    Identifier::new("my cert")
                )),
            }),
            BackupOption::Encryption(Encryption {
                algorithm: EncryptionAlgorithm::TripleDes3Key,
                encryptor: Encryptor::ServerAsymmetricKey(windlass_tsql::Spanned::unplaced(
                    Identifier::new("k")
                )),
            }),
            BackupOption::Credential(None),
            BackupOption::Credential(Some(Credential::Value(text("c")))),
            BackupOption::Credential(Some(Credential::Identifier(Identifier::new("c")))),
            BackupOption::Flag(OptionWord::NoEncryption),
        ]
    );
}

#[test]
fn values_that_fail_later_are_in_the_tree() {
    assert_eq!(
        backup_options(
            "DESCRIPTION = 5, RETAINDAYS = 'x', BLOCKSIZE = @b, STATS, BUFFERCOUNT = -1"
        ),
        [
            BackupOption::Valued(OptionWord::Description, Value::Number(5)),
            BackupOption::Valued(OptionWord::RetainDays, text("x")),
            BackupOption::Valued(OptionWord::BlockSize, variable("@b")),
            BackupOption::Stats(None),
            BackupOption::Valued(OptionWord::BufferCount, Value::Number(-1)),
        ]
    );
    restore("RESTORE HEADERONLY FROM DISK = 'a' WITH RECOVERY, MOVE 'x' TO 'y'");
    backup("BACKUP DATABASE x TO DISK = 'a' WITH NORECOVERY, NO_TRUNCATE");
}

#[test]
fn own_extensions_are_options_of_backup() {
    assert_eq!(
        backup_options(
            "NOWRITE, NOCOMPRESSWRITE, THREADCOUNT = 4, THREADCOUNT = auto, LEVEL = AUTO, \
             GOAL = gentle, MAXRATE = 50, MAXWRITERATE = @r"
        ),
        [
            BackupOption::Flag(OptionWord::NoWrite),
            BackupOption::Flag(OptionWord::NoCompressWrite),
            BackupOption::ThreadCount(ThreadCount::Count(Value::Number(4))),
            BackupOption::ThreadCount(ThreadCount::Auto),
            BackupOption::LevelAuto,
            BackupOption::Goal(Goal::Gentle),
            BackupOption::Valued(OptionWord::MaxRate, Value::Number(50)),
            BackupOption::Valued(
                OptionWord::MaxWriteRate,
                Value::Variable(Variable::new("@r"))
            ),
        ]
    );
    let auto = "COMPRESSION (ALGORITHM = ZSTD, LEVEL = AUTO)";
    assert_eq!(backup_options(auto)[0].to_string(), auto);
    assert_eq!(
        refused("RESTORE DATABASE x FROM d WITH NOWRITE").number,
        155
    );
}

#[test]
fn every_action_of_restore() {
    for statement in [
        "RESTORE DATABASE x FROM DISK = 'a', b, @c WITH FILE = 2, NORECOVERY",
        "RESTORE DATABASE x FILE = 'f', FILEGROUP = 'g' FROM DISK = 'a' WITH PARTIAL, NORECOVERY",
        "RESTORE DATABASE x READ_WRITE_FILEGROUPS FROM d",
        "RESTORE DATABASE x PAGE = '1:57, 1:202' FROM d WITH NORECOVERY",
        "RESTORE LOG @x PAGE = @pages FROM d",
        "RESTORE DATABASE x WITH RECOVERY",
        "RESTORE DATABASE x WITH STANDBY = 'undo.bak'",
        "RESTORE DATABASE x FROM DATABASE_SNAPSHOT = s",
        "RESTORE HEADERONLY FROM DISK = 'a' WITH FILE = @n",
        "RESTORE FILELISTONLY FROM URL = 'https://a/b' WITH CREDENTIAL = 'c'",
        "RESTORE LABELONLY FROM VIRTUAL_DEVICE = 'v'",
        "RESTORE VERIFYONLY FROM d WITH LOADHISTORY, STATS",
        "RESTORE REWINDONLY FROM TAPE = 't' WITH UNLOAD",
    ] {
        assert_eq!(only(statement).to_string(), statement);
    }
    let recovery_only = restore("RESTORE DATABASE x WITH NORECOVERY");
    assert_eq!(recovery_only.source, RestoreSource::None);
    let revert = restore("RESTORE DATABASE x FROM DATABASE_SNAPSHOT = 'my snapshot'");
    assert!(matches!(revert.source, RestoreSource::DatabaseSnapshot(_)));
    let RestoreAction::Log { files, .. } = restore("RESTORE LOG x PAGE = '1:2' FROM d").action
    else {
        panic!()
    };
    assert!(matches!(files[0].node, FileSpec::Page(_)));
}

#[test]
fn points_in_time() {
    let options = restore_options(
        "STOPAT = '2026-01-01T12:00', STOPATMARK = 'lsn:33000000028800001', \
         STOPBEFOREMARK = N'mark' AFTER @when",
    );
    assert_eq!(
        options[0],
        RestoreOption::Valued(OptionWord::StopAt, text("2026-01-01T12:00"))
    );
    assert!(matches!(&options[1], RestoreOption::StopAtMark(mark) if mark.after.is_none()));
    assert!(matches!(&options[2], RestoreOption::StopBeforeMark(mark)
        if mark.mark.node == Value::national("mark") && mark.after.is_some()));
}

#[test]
fn dbname_follows_snapshot_with_or_without_a_comma() {
    let expected = [
        RestoreOption::Flag(OptionWord::Snapshot),
        RestoreOption::DbName(Name::Identifier(Identifier::new("db"))),
    ];
    assert_eq!(restore_options("SNAPSHOT, DBNAME = db"), expected);
    assert_eq!(restore_options("SNAPSHOT DBNAME = 'db'"), expected);
}

#[test]
fn what_sql_servers_parser_refuses_is_refused() {
    let backup =
        |rest: &str| refused(&format!("BACKUP DATABASE x TO DISK = 'a' WITH {rest}")).number;
    let restore =
        |rest: &str| refused(&format!("RESTORE DATABASE x FROM DISK = 'a' WITH {rest}")).number;
    assert_eq!(backup("COMPRESSION (LEVEL = HIGH)"), 102);
    assert_eq!(backup("COMPRESSION (ALGORITHM = LZ4)"), 102);
    assert_eq!(backup("COMPRESSION (ALGORITHM = ZSTD, LEVEL = 3)"), 102);
    assert_eq!(backup("COMPRESSION ()"), 102);
    assert_eq!(backup("ENCRYPTION"), 102);
    assert_eq!(
        backup("ENCRYPTION ALGORITHM = AES_128, SERVER CERTIFICATE = c"),
        102
    );
    assert_eq!(
        backup("ENCRYPTION (SERVER CERTIFICATE = c, ALGORITHM = AES_128)"),
        102
    );
    assert_eq!(backup("NAME = bareword"), 102);
    assert_eq!(backup("REPLACE"), 155);
    assert_eq!(backup("CREDENTIAL ="), 102);
    assert_eq!(backup("INIT,"), 102);
    assert_eq!(backup("INIT = 1"), 102);
    assert_eq!(backup("NAME"), 102);
    assert_eq!(backup("FILE = 1"), 156);
    assert_eq!(backup("BLOCKSIZE = 512.0"), 102);
    assert_eq!(backup("BLOCKSIZE = 99999999999999999999"), 102);
    assert_eq!(restore("MOVE a TO b"), 102);
    assert_eq!(restore("FILE = 'x'"), 102);
    assert_eq!(restore("DIFFERENTIAL"), 155);
    for option in ["TRUNCATE_ONLY", "NO_LOG"] {
        let error = refused(&format!("BACKUP LOG x TO DISK = 'a' WITH {option}"));
        assert_eq!(
            error.text,
            format!("'{option}' is not a recognized BACKUP option.")
        );
    }
    for statement in [
        "BACKUP DATABASE x",
        "BACKUP DATABASE TO DISK = 'a'",
        "BACKUP DATABASE x TO",
        "BACKUP DATABASE x TO DISK",
        "BACKUP DATABASE x TO DISK = a",
        "BACKUP DATABASE x TO DISK = 5",
        "BACKUP DATABASE x TO FLOPPY = 'a'",
        "BACKUP DATABASE x PAGE = '1:1' TO d",
        "BACKUP LOG x FILE = 'f' TO d",
        "BACKUP DATABASE x TO d WITH",
        "BACKUP TABLE x TO d",
        "RESTORE HEADERONLY",
        "RESTORE DATABASE x FILE = f FROM d",
        "RESTORE DATABASE x FROM DATABASE_SNAPSHOT = 's' WITH RECOVERY",
        "RESTORE LOG x FROM DATABASE_SNAPSHOT = 's'",
        "RESTORE SOMETHINGONLY FROM d",
    ] {
        let error = refused(statement);
        assert!(matches!(error.number, 102 | 156), "{statement}: {error:?}");
    }
}

/// A valid argument for the row's kind, in printed form.
fn sample_argument(row: &OptionRow) -> &'static [&'static str] {
    match row.argument {
        ArgumentKind::None => &[""],
        ArgumentKind::Value => &[" = 'x'", " = N'y'", " = 5", " = @v"],
        ArgumentKind::OptionalValue => &["", " = 5", " = @v"],
        ArgumentKind::Number => &[" = 1", " = @v"],
        ArgumentKind::Compression => &["", " (ALGORITHM = ZSTD, LEVEL = LOW)"],
        ArgumentKind::Encryption => &[" (ALGORITHM = AES_192, SERVER CERTIFICATE = c)"],
        ArgumentKind::Credential => &["", " = 'c'", " = c"],
        ArgumentKind::ThreadCount => &[" = 3", " = AUTO"],
        ArgumentKind::Auto => &[" = AUTO"],
        ArgumentKind::Goal => &[" = FAST", " = SMALL", " = GENTLE"],
        ArgumentKind::Integrity => &[" = QUICK", " = FULL"],
        ArgumentKind::Move => &[" 'a' TO 'b'", " @a TO @b"],
        ArgumentKind::Filestream => &[" (DIRECTORY_NAME = 'd')"],
        ArgumentKind::StopMark => &[" = 'm'", " = 'm' AFTER 'd'"],
        ArgumentKind::DatabaseName => &[" = d", " = @d"],
    }
}

#[test]
fn every_row_of_the_option_table_parses_in_its_statement() {
    for (table, statement) in [
        (option::BACKUP, "BACKUP DATABASE x TO DISK = 'a' WITH "),
        (option::RESTORE, "RESTORE DATABASE x FROM DISK = 'a' WITH "),
    ] {
        for row in table {
            for argument in sample_argument(row) {
                let text = format!("{statement}{}{argument}", row.word.spelling());
                assert_eq!(only(&text).to_string(), text);
                only(&text.to_lowercase());
            }
        }
    }
}
