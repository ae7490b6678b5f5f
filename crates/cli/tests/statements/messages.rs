//! Each failure has SQL Server's number, after its cause and before 3013.

use crate::support::Place;

/// Runs a statement after a full backup of `app` to `d:\temp\full.bak`.
#[track_caller]
fn gives(statement: &str, expected: &[u64]) {
    let place = Place::new();
    let script =
        format!("BACKUP DATABASE app TO DISK = 'd:\\temp\\full.bak' WITH INIT\nGO\n{statement}");
    let numbers = place.numbers(&script);
    assert_eq!(
        numbers.get(..2),
        Some(&[4035, 3014][..]),
        "the backup before"
    );
    assert_eq!(numbers[2..], *expected, "{statement}");
}

#[test]
fn backups_that_cannot_be_say_why() {
    for (statement, expected) in [
        (
            "BACKUP DATABASE nosuch TO DISK = 'd:\\x.bak'",
            [911, 3013].as_slice(),
        ),
        (
            "BACKUP DATABASE tempdb TO DISK = 'd:\\x.bak'",
            &[3147, 3013],
        ),
        (
            "BACKUP DATABASE master TO DISK = 'd:\\x.bak'",
            &[50005, 3013],
        ),
        ("BACKUP LOG app TO DISK = 'd:\\x.trn'", &[4208, 3013]),
        ("BACKUP LOG nosuch TO DISK = 'd:\\x.trn'", &[911, 3013]),
        (
            "BACKUP DATABASE app TO DISK = 'd:\\nosuch\\x.bak'",
            &[3201, 3013],
        ),
        ("BACKUP DATABASE app TO DISK = ''", &[3044, 3013]),
        ("BACKUP DATABASE app TO DISK = 'e:\\x.bak'", &[50020, 3013]),
        (
            "BACKUP DATABASE app TO DISK = '\\\\server\\share\\x.bak'",
            &[50020, 3013],
        ),
        ("BACKUP DATABASE app TO device", &[3206, 3013]),
        (
            "BACKUP DATABASE app TO TAPE = '\\\\.\\tape0'",
            &[50005, 3013],
        ),
        ("BACKUP DATABASE app TO URL = 'https://x/y'", &[50150, 3013]),
        (
            "BACKUP DATABASE app TO DISK = 'd:\\a', TAPE = 'b'",
            &[3011, 3013],
        ),
        (
            "BACKUP DATABASE app TO DISK = 'd:\\x.bak', DISK = 'd:\\X.bak', DISK = 'd:\\x.bak'",
            &[3227, 3013],
        ),
        (
            "BACKUP DATABASE app TO DISK = 'd:\\x.bak' MIRROR TO DISK = 'd:\\y.bak', DISK = 'd:\\z.bak' WITH FORMAT",
            &[3010, 3013],
        ),
        (
            "BACKUP DATABASE app TO DISK = 'd:\\app.db' WITH FORMAT",
            &[1834, 3013],
        ),
        (
            "BACKUP DATABASE app TO DISK = 'd:\\app.db-wal' WITH FORMAT",
            &[1834, 3013],
        ),
        (
            "BACKUP DATABASE app TO DISK = 'd:\\other.db' WITH FORMAT",
            &[1834, 3013],
        ),
        (
            "BACKUP DATABASE app TO DISK = 'd:\\script.sql' WITH INIT",
            &[3241, 3013],
        ),
        (
            "BACKUP DATABASE other TO DISK = 'd:\\x.bak' WITH DIFFERENTIAL",
            &[3035, 3013],
        ),
        (
            "BACKUP DATABASE app FILE = 'app' TO DISK = 'd:\\x.bak'",
            &[50005, 3013],
        ),
    ] {
        gives(statement, expected);
    }
}

#[test]
fn restores_that_cannot_be_say_why() {
    for (statement, expected) in [
        (
            "RESTORE DATABASE x FROM DISK = 'd:\\nosuch.bak'",
            [3201, 3013].as_slice(),
        ),
        (
            "RESTORE DATABASE x FROM DISK = 'd:\\script.sql'",
            &[3241, 3013],
        ),
        (
            "RESTORE DATABASE x FROM DISK = 'd:\\temp\\full.bak'",
            &[1834, 3156, 3119, 3013],
        ),
        (
            "RESTORE DATABASE x FROM DISK = 'd:\\temp\\full.bak' WITH MOVE 'y' TO 'd:\\y.db'",
            &[3234, 3013],
        ),
        (
            "RESTORE DATABASE x FROM DISK = 'd:\\temp\\full.bak' WITH MOVE 'app' TO 'd:\\y.db', MOVE 'APP' TO 'd:\\z.db'",
            &[4353, 3013],
        ),
        (
            "RESTORE DATABASE x FROM DISK = 'd:\\temp\\full.bak' WITH MOVE 'app' TO 'd:\\script.sql'",
            &[3142, 3156, 3119, 3013],
        ),
        (
            "RESTORE DATABASE x FROM DISK = 'd:\\temp\\full.bak' WITH MOVE 'app' TO 'd:\\other.db', REPLACE",
            &[1834, 3156, 3119, 3013],
        ),
        (
            "RESTORE DATABASE other FROM DISK = 'd:\\temp\\full.bak' WITH MOVE 'app' TO 'd:\\other.db'",
            &[3154, 3013],
        ),
        (
            "RESTORE DATABASE x FROM DISK = 'd:\\temp\\full.bak' WITH FILE = 2",
            &[3287, 3013],
        ),
        (
            "RESTORE DATABASE x FROM DISK = 'd:\\temp\\full.bak' WITH CHECKSUM, MOVE 'app' TO 'd:\\y.db'",
            &[3187, 3013],
        ),
        (
            "RESTORE DATABASE x FROM DISK = 'd:\\temp\\full.bak' WITH MEDIANAME = 'y'",
            &[4037, 3013],
        ),
        (
            "RESTORE DATABASE x FROM DISK = 'd:\\temp\\full.bak', DISK = 'd:\\temp\\full.bak'",
            &[3227, 3013],
        ),
        ("RESTORE DATABASE x WITH RECOVERY", &[3118, 3013]),
        ("RESTORE DATABASE app WITH RECOVERY", &[3153, 3013]),
        (
            "RESTORE DATABASE master FROM DISK = 'd:\\temp\\full.bak'",
            &[50005, 3013],
        ),
        (
            "RESTORE DATABASE tempdb FROM DISK = 'd:\\temp\\full.bak'",
            &[3147, 3013],
        ),
        (
            "RESTORE LOG app FROM DISK = 'd:\\temp\\full.bak'",
            &[3135, 3013],
        ),
        (
            "RESTORE DATABASE app FROM DISK = 'd:\\temp\\full.bak' WITH STOPAT = '2026-01-01'",
            &[3145, 3013],
        ),
        (
            "RESTORE DATABASE app PAGE = '1:5' FROM DISK = 'd:\\temp\\full.bak'",
            &[50005, 3013],
        ),
        (
            "RESTORE DATABASE app FROM DATABASE_SNAPSHOT = 's'",
            &[50005, 3013],
        ),
        (
            "RESTORE HEADERONLY FROM DISK = 'd:\\temp\\full.bak' WITH FILE = 9",
            &[3287, 3013],
        ),
        (
            "RESTORE FILELISTONLY FROM DISK = 'd:\\nosuch'",
            &[3201, 3013],
        ),
        (
            "RESTORE REWINDONLY FROM DISK = 'd:\\temp\\full.bak'",
            &[3216],
        ),
        (
            "RESTORE VERIFYONLY FROM DISK = 'd:\\temp\\full.bak'",
            &[3262],
        ),
    ] {
        gives(statement, expected);
    }
}

#[test]
fn a_session_that_uses_the_database_cannot_restore_it() {
    gives(
        "USE app\nRESTORE DATABASE app FROM DISK = 'd:\\temp\\full.bak'",
        &[3102, 3013],
    );
}

#[test]
fn no_backup_and_no_restore_within_a_transaction() {
    gives(
        "USE app\nBEGIN TRAN\nUPDATE t SET body = '' WHERE id = 1\nBACKUP DATABASE other TO DISK = 'NUL'\n\
         RESTORE DATABASE x FROM DISK = 'd:\\temp\\full.bak'\nROLLBACK",
        &[3021, 3013, 3021, 3013],
    );
}

#[test]
fn what_is_not_built_is_refused_and_not_ignored() {
    for statement in [
        "CREATE DATABASE x",
        "ALTER DATABASE app SET RECOVERY BULK_LOGGED",
        "ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = ON (ACCELERATOR = QAT)",
        "BACKUP GROUP app, other TO DISK = 'd:\\x' WITH METADATA_ONLY",
        "SET PARSEONLY ON",
    ] {
        gives(statement, &[50005]);
    }
    gives("USE app CHECKPOINT", &[50005]);
    gives("USE app BEGIN TRAN m WITH MARK", &[50230]);
    gives("ALTER DATABASE app SET RECOVERY FULL", &[50253]);
    gives("EXEC sp_nosuch", &[2812]);
}

#[test]
fn an_unknown_option_stops_the_batch_before_it_begins() {
    gives(
        "BACKUP DATABASE app TO DISK = 'NUL'\nBACKUP DATABASE app TO DISK = 'NUL' WITH FASTER",
        &[155],
    );
}

#[test]
fn messages_name_the_line_of_the_script() {
    let place = Place::new();
    let run = place.sql("PRINT 'a'\nGO\n\nBACKUP DATABASE nosuch\n  TO DISK = 'NUL'\n");
    assert!(
        run.err.contains("Msg 911, Level 16, State 11, Line 4\n"),
        "{}",
        run.err
    );
    assert!(run.err.contains(
        "Msg 3013, Level 16, State 1, Line 4\nBACKUP DATABASE is terminating abnormally."
    ));
}

#[test]
fn progress_comes_in_sql_servers_words_and_order() {
    let place = Place::new();
    let run = place.sql("BACKUP DATABASE app TO DISK = 'NUL' WITH STATS = 50");
    let lines = run.err.lines();
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("NUL: ")).collect();
    assert_eq!(lines[lines.len() - 3], "100 percent processed.");
    assert!(
        lines[lines.len() - 2].starts_with("Processed "),
        "{lines:?}"
    );
    assert!(lines[lines.len() - 2].ends_with(" pages for database 'app', file 'app' on file 1."));
    assert!(lines[lines.len() - 1].starts_with("BACKUP DATABASE successfully processed "));
    let quiet = place.sql("BACKUP DATABASE app TO DISK = 'NUL'");
    assert!(!quiet.err.contains("percent"), "no STATS, no progress");
}

#[test]
fn an_expired_set_may_be_overwritten_and_an_unexpired_one_may_not() {
    let place = Place::new();
    let numbers = place.numbers(
        "BACKUP DATABASE app TO DISK = 'd:\\e.bak' WITH RETAINDAYS = 5, EXPIREDATE = '2001-01-01'\n\
         BACKUP DATABASE app TO DISK = 'd:\\e.bak' WITH INIT\n\
         BACKUP DATABASE app TO DISK = 'd:\\e.bak' WITH INIT, SKIP, EXPIREDATE = '2001-01-01'\n\
         BACKUP DATABASE app TO DISK = 'd:\\e.bak' WITH INIT",
    );
    assert_eq!(
        numbers,
        [4035, 3014, 4030, 3204, 3013, 4035, 3014, 4035, 3014],
        "RETAINDAYS wins over EXPIREDATE"
    );
}
