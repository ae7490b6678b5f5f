//! The statements around the backups.

use windlass_tsql::ast::{
    AlterDatabaseAction, AlteredDatabase, ArgumentDirection, ArgumentValue, DatabaseOption,
    DatabaseOrigin, Dbcc, Expr, FileGrowth, FileSizeLimit, RecoveryModel, SetOptionValue,
    Statement, Switch, TraceScope, Transaction, Value,
};

use crate::{only, parsed};

/// The expression of PRINT, in printed form.
fn printed_expression(text: &str) -> String {
    match only(&format!("PRINT {text}")) {
        Statement::Print(expression) => expression.node.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn statements_follow_each_other_with_and_without_semicolons() {
    let statements = parsed(
        "USE [my db] DECLARE @a int = 1, @b AS nvarchar(max), @c decimal(10, 2); ;\n\
         SET @b = N'x' PRINT @b BACKUP DATABASE x TO DISK = @b WITH INIT\nRESTORE HEADERONLY FROM d",
    );
    assert_eq!(statements.len(), 6);
    assert_eq!(statements[5].span.line, 3);
    assert!(matches!(&statements[1].node, Statement::Declare(variables) if variables.len() == 3));
}

#[test]
fn expressions_keep_their_precedence_and_lose_idle_parentheses() {
    for (text, printed) in [
        ("1 + 2 * 3", "1 + 2 * 3"),
        ("(1 + 2) * 3", "(1 + 2) * 3"),
        ("((1 - 2) - 3)", "1 - 2 - 3"),
        ("1 - (2 - 3)", "1 - (2 - 3)"),
        ("- -1", "- -1"),
        ("-(1 + 2) % 5", "-(1 + 2) % 5"),
        ("N'a' + 'it''s' + @x", "N'a' + 'it''s' + @x"),
        (
            "convert(varchar(20), getdate(), 112)",
            "CONVERT(varchar(20), getdate(), 112)",
        ),
        ("try_cast(@x as sysname)", "TRY_CAST(@x AS sysname)"),
        (
            "REPLACE(@@SERVERNAME, '\\', '_')",
            "REPLACE(@@SERVERNAME, '\\', '_')",
        ),
        ("left('abc', 2)", "left('abc', 2)"),
        ("current_timestamp", "current_timestamp"),
        ("dbo.f(NULL, 0xaBc, 1.5e3)", "dbo.f(NULL, 0x0ABC, 1.5e3)"),
        ("99999999999999999999", "99999999999999999999"),
        (
            "(SELECT count(*) FROM t -- all\n)",
            "(SELECT count(*) FROM t)",
        ),
    ] {
        assert_eq!(printed_expression(text), printed, "{text}");
    }
}

#[test]
fn set_of_variables_and_settings() {
    for statement in [
        "SET @x = 1",
        "SET @x += N'y'",
        "SET @x %= 2",
        "SET NOCOUNT ON",
        "SET ANSI_NULLS, QUOTED_IDENTIFIER OFF",
        "SET STATISTICS IO, TIME ON",
        "SET LOCK_TIMEOUT -1",
        "SET DATEFORMAT DMY",
        "SET LANGUAGE N'Deutsch'",
        "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
    ] {
        assert_eq!(only(statement).to_string(), statement);
    }
    let Statement::SetOption(setting) = only("set xact_abort on") else {
        panic!()
    };
    assert_eq!(setting.names[0].node, "XACT_ABORT");
    assert_eq!(setting.value, SetOptionValue::Switch(Switch::On));
}

#[test]
fn procedures_with_every_kind_of_argument() {
    let Statement::Execute(call) = only(
        "exec @rc = master..sp_x 'a', N'b', -5, 1.5, 0xff, @v, word, [two words], NULL, DEFAULT, \
         @named = 1, @out = @v OUTPUT",
    ) else {
        panic!()
    };
    assert_eq!(call.procedure.to_string(), "master..sp_x");
    assert!(call.procedure.schema().is_none());
    assert_eq!(call.procedure.database().unwrap().text, "master");
    assert_eq!(call.return_code.unwrap().name, "@rc");
    assert_eq!(call.arguments.len(), 12);
    assert_eq!(
        call.arguments[2].value,
        ArgumentValue::Value(Value::Number(-5))
    );
    assert_eq!(call.arguments[4].value, ArgumentValue::Binary(vec![255]));
    assert_eq!(call.arguments[10].name.as_ref().unwrap().name, "@named");
    assert_eq!(call.arguments[11].direction, ArgumentDirection::Output);
}

#[test]
fn a_batch_may_begin_with_the_bare_name_of_a_procedure() {
    let statements = parsed("sp_helpdb 'x'\nPRINT 1");
    assert!(matches!(&statements[0].node, Statement::Execute(call) if call.arguments.len() == 1));
    assert_eq!(statements.len(), 2);
    assert_eq!(crate::refused("PRINT 1 sp_helpdb").number, 102);
}

#[test]
fn databases_are_created_attached_and_dropped() {
    let text = "CREATE DATABASE x ON (NAME = x, FILENAME = N'/d/x.db', SIZE = 10MB, \
                MAXSIZE = UNLIMITED, FILEGROWTH = 10%), FILEGROUP g (NAME = [x 2], FILENAME = N'y') \
                LOG ON (NAME = l, MAXSIZE = 2GB, FILEGROWTH = 64) FOR ATTACH_REBUILD_LOG";
    assert_eq!(only(text).to_string(), text);
    let Statement::CreateDatabase(create) =
        only("create database x on primary ( name = 'x', filename = 'D:\\x.db' ) for attach")
    else {
        panic!()
    };
    assert_eq!(create.origin, DatabaseOrigin::Attach);
    assert_eq!(
        create.primary_files[0].filename.as_ref().unwrap().node,
        "D:\\x.db"
    );
    let Statement::CreateDatabase(sized) = only(text) else {
        panic!()
    };
    assert_eq!(
        sized.primary_files[0].max_size,
        Some(FileSizeLimit::Unlimited)
    );
    assert_eq!(sized.primary_files[0].growth, Some(FileGrowth::Percent(10)));
    for statement in [
        "CREATE DATABASE x",
        "CREATE DATABASE s ON (NAME = x, FILENAME = N's.ss') AS SNAPSHOT OF x",
        "DROP DATABASE x, y",
        "DROP DATABASE IF EXISTS x",
    ] {
        assert_eq!(only(statement).to_string(), statement);
    }
}

#[test]
fn alter_database_is_typed_where_simple_and_verbatim_elsewhere() {
    let alter = |text: &str| match only(text) {
        Statement::AlterDatabase(statement) => statement,
        other => panic!("{other:?}"),
    };
    let simple = alter("ALTER DATABASE x SET RECOVERY SIMPLE, TARGET_RECOVERY_TIME = 2 MINUTES");
    let AlterDatabaseAction::Set(options) = &simple.action else {
        panic!()
    };
    assert_eq!(
        options[0].node,
        DatabaseOption::Recovery(RecoveryModel::Simple)
    );
    assert_eq!(
        alter("ALTER DATABASE CURRENT SET RECOVERY FULL").database,
        AlteredDatabase::Current
    );
    let add = alter("ALTER DATABASE x ADD FILE (NAME = a, FILENAME = 'b') TO FILEGROUP g");
    assert!(matches!(
        add.action,
        AlterDatabaseAction::AddFiles {
            filegroup: Some(_),
            ..
        }
    ));
    let log = alter("ALTER DATABASE x ADD LOG FILE (NAME = a, FILENAME = 'b')");
    assert!(matches!(
        log.action,
        AlterDatabaseAction::AddLogFiles { .. }
    ));
    for other in [
        "SET SINGLE_USER WITH ROLLBACK IMMEDIATE",
        "SET SINGLE_USER WITH\nROLLBACK IMMEDIATE",
        "SET RECOVERY SIMPLE WITH NO_WAIT",
        "SET SUSPEND_FOR_SNAPSHOT_BACKUP = ON",
        "MODIFY FILE (NAME = a, SIZE = 5)",
    ] {
        let statement = alter(&format!("ALTER DATABASE x {other};"));
        assert_eq!(
            statement.action,
            AlterDatabaseAction::Other {
                text: other.to_owned()
            }
        );
    }
    assert_eq!(
        parsed("ALTER DATABASE x SET RECOVERY FULL SET NOCOUNT ON").len(),
        2
    );
    assert_eq!(
        parsed("ALTER DATABASE x SET READ_ONLY\nBACKUP DATABASE x TO d").len(),
        2
    );
}

#[test]
fn server_configuration() {
    for statement in [
        "ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = ON (ACCELERATOR = QAT)",
        "ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = ON (ACCELERATOR = QAT, MODE = SOFTWARE)",
        "ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = OFF",
        "RECONFIGURE",
        "RECONFIGURE WITH OVERRIDE",
        "CHECKPOINT",
        "CHECKPOINT 30",
        "WAITFOR DELAY '00:00:05'",
        "DBCC FREEPROCCACHE",
        "DBCC CHECKDB ('x') WITH NO_INFOMSGS",
    ] {
        assert_eq!(only(statement).to_string(), statement);
    }
    let Statement::Dbcc(Dbcc::Trace {
        switch,
        flags,
        scope,
        ..
    }) = only("dbcc traceoff(3213, 3605, -1) with no_infomsgs")
    else {
        panic!()
    };
    assert_eq!(
        (switch, flags, scope),
        (Switch::Off, vec![3213, 3605], TraceScope::Global)
    );
    assert_eq!(parsed("DBCC FREEPROCCACHE\nPRINT 1").len(), 2);
}

#[test]
fn keys_and_certificates() {
    for statement in [
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'p''w'",
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = N'p\u{e9}'",
        "DROP MASTER KEY",
        "CREATE CERTIFICATE [my cert] WITH SUBJECT = 's'",
        "CREATE CERTIFICATE c WITH SUBJECT = 's', START_DATE = '20260101', EXPIRY_DATE = '20270101'",
        "CREATE CERTIFICATE c FROM FILE = 'a'",
        "CREATE CERTIFICATE c FROM FILE = 'a' WITH PRIVATE KEY (FILE = 'b')",
        "CREATE CERTIFICATE c FROM FILE = 'a' WITH PRIVATE KEY (FILE = 'b', DECRYPTION BY PASSWORD = 'p')",
        "CREATE CERTIFICATE c FROM FILE = 'a' WITH FORMAT = 'PFX', PRIVATE KEY (DECRYPTION BY PASSWORD = 'p')",
        "BACKUP CERTIFICATE c TO FILE = 'a'",
        "BACKUP CERTIFICATE c TO FILE = 'a' WITH PRIVATE KEY (FILE = 'b', ENCRYPTION BY PASSWORD = 'p')",
        "BACKUP CERTIFICATE c TO FILE = 'a' WITH FORMAT = 'PFX', PRIVATE KEY (ENCRYPTION BY PASSWORD = 'p')",
        "DROP CERTIFICATE c",
        "CREATE CREDENTIAL [s3://h:9000/b/f] WITH IDENTITY = 'S3 Access Key', SECRET = 'p:q''r'",
        "ALTER CREDENTIAL c WITH IDENTITY = 'i', SECRET = N'p\u{e9}'",
        "CREATE CREDENTIAL c WITH IDENTITY = 'i'",
        "DROP CREDENTIAL [s3://h/b]",
    ] {
        let parsed = only(statement);
        assert_eq!(parsed.to_string(), statement);
        assert!(!format!("{parsed:?}").contains("\"p"), "{parsed:?}");
    }
    for refused in [
        "CREATE CREDENTIAL c",
        "CREATE CREDENTIAL c WITH SECRET = 'p'",
        "CREATE CREDENTIAL c WITH IDENTITY = 'i', SECRET 'p'",
        "CREATE CREDENTIAL c WITH IDENTITY = 'i' FOR CRYPTOGRAPHIC PROVIDER p",
        "ALTER CREDENTIAL c",
        "DROP CREDENTIAL",
        "CREATE MASTER KEY",
        "CREATE CERTIFICATE c",
        "CREATE CERTIFICATE c ENCRYPTION BY PASSWORD = 'p' WITH SUBJECT = 's'",
        "CREATE CERTIFICATE c WITH SUBJECT = 's', EXPIRY_DATE = 'a', EXPIRY_DATE = 'b'",
        "CREATE CERTIFICATE c FROM FILE = 'a' WITH PRIVATE KEY (DECRYPTION BY PASSWORD = 'p')",
        "CREATE CERTIFICATE c FROM FILE = 'a' WITH PRIVATE KEY (FILE = 'b', ENCRYPTION BY PASSWORD = 'p')",
        "CREATE CERTIFICATE c FROM FILE = 'a' WITH FORMAT = 'DER', PRIVATE KEY (FILE = 'b')",
        "BACKUP CERTIFICATE c TO FILE = 'a' WITH PRIVATE KEY (FILE = 'b')",
        "BACKUP CERTIFICATE c TO FILE = 'a' WITH PRIVATE KEY (FILE = 'b', FILE = 'c', ENCRYPTION BY PASSWORD = 'p')",
    ] {
        assert!(windlass_tsql::parse_batch(refused).is_err(), "{refused}");
    }
}

#[test]
fn transactions() {
    for statement in [
        "BEGIN TRANSACTION",
        "BEGIN TRANSACTION t WITH MARK N'd'",
        "COMMIT TRANSACTION @t",
        "ROLLBACK TRANSACTION",
        "BEGIN TRANSACTION [pragma]",
        "EXECUTE p [vacuum]",
    ] {
        assert_eq!(only(statement).to_string(), statement);
    }
    let statements = parsed("begin tran\ninsert into t values (1)\ncommit work\nrollback");
    assert_eq!(statements.len(), 4);
    assert_eq!(
        statements[2].node,
        Statement::Transaction(Transaction::Commit { name: None })
    );
    assert_eq!(parsed("BEGIN TRAN\nPRAGMA user_version").len(), 2);
    // As SSMS ends the scripts of jobs.
    let label = parsed("ROLLBACK TRANSACTION\nEndSave:");
    assert_eq!(label.len(), 2);
    assert!(matches!(label[1].node, Statement::Label(_)));
}

#[test]
fn equality_ignores_positions_and_sees_values() {
    assert_eq!(parsed("PRINT  1"), parsed("\n\nprint (1)"));
    assert_ne!(parsed("PRINT 1"), parsed("PRINT 2"));
    let Statement::Print(one) = only("PRINT 1") else {
        panic!()
    };
    assert_eq!(one.node, Expr::Integer(1));
}
