//! Options: conflicts, ranges, values, and that each one acts.

use serde_json::Value as Json;

use crate::support::Place;

fn backup(options: &str) -> String {
    format!("BACKUP DATABASE app TO DISK = 'd:\\o.bak' WITH {options}")
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    let place = Place::new();
    for options in [
        "INIT, NOINIT",
        "FORMAT, NOINIT",
        "FORMAT, NOFORMAT",
        "SKIP, NOSKIP",
        "CHECKSUM, NO_CHECKSUM",
        "COMPRESSION, NO_COMPRESSION",
        "STOP_ON_ERROR, CONTINUE_AFTER_ERROR",
        "REWIND, NOREWIND",
        "INIT, INIT",
        "NAME = 'a', NAME = 'b'",
        "NOWRITE, NOCOMPRESSWRITE",
        "COMPRESSION (ALGORITHM = MS_XPRESS, LEVEL = HIGH)",
    ] {
        assert_eq!(place.numbers(&backup(options)), [3031, 3013], "{options}");
    }
    assert!(!place.path("o.bak").exists(), "nothing was written");
}

#[test]
fn options_of_other_statements_are_refused() {
    let place = Place::new();
    for options in ["NORECOVERY", "STANDBY = 'x'", "NO_TRUNCATE"] {
        assert_eq!(place.numbers(&backup(options)), [3032, 3013], "{options}");
    }
    for statement in [
        "RESTORE LABELONLY FROM DISK = 'd:\\o.bak' WITH FILE = 1",
        "RESTORE HEADERONLY FROM DISK = 'd:\\o.bak' WITH REPLACE",
        "RESTORE VERIFYONLY FROM DISK = 'd:\\o.bak' WITH NORECOVERY",
        "RESTORE DATABASE x FROM DISK = 'd:\\o.bak' WITH LOADHISTORY",
    ] {
        assert_eq!(place.numbers(statement), [3032, 3013], "{statement}");
    }
}

#[test]
fn values_outside_their_range_are_refused() {
    let place = Place::new();
    for (options, number) in [
        ("BLOCKSIZE = 1000", 3253),
        ("BLOCKSIZE = 131072", 3250),
        ("BUFFERCOUNT = 0", 3250),
        ("MAXTRANSFERSIZE = 65535", 3250),
        ("MAXTRANSFERSIZE = 65537", 3217),
        ("MAXTRANSFERSIZE = 8388608", 3250),
        ("STATS = 101", 3250),
        ("RETAINDAYS = -1", 3250),
        ("RETAINDAYS = 'x'", 3217),
        ("EXPIREDATE = 'tomorrow'", 3217),
        ("THREADCOUNT = 0", 3250),
        ("MAXRATE = 0", 3250),
        ("MAXWRITERATE = 'x'", 3217),
    ] {
        assert_eq!(place.numbers(&backup(options)), [number, 3013], "{options}");
    }
    let name = "x".repeat(129);
    assert_eq!(
        place.numbers(&backup(&format!("NAME = '{name}'"))),
        [3217, 3013]
    );
}

#[test]
fn options_that_are_not_built_are_refused() {
    let place = Place::new();
    for (options, number) in [
        ("CREDENTIAL = 'c'", 50354),
        ("FILE_SNAPSHOT", 50005),
        ("PASSWORD = 'x'", 50005),
    ] {
        assert_eq!(place.numbers(&backup(options)), [number, 3013], "{options}");
    }
    for (options, number) in [
        ("PARTIAL", 50005),
        ("RESTRICTED_USER", 50005),
        ("KEEP_CDC", 50005),
        ("NEW_BROKER", 50005),
    ] {
        let statement = format!("RESTORE DATABASE x FROM DISK = 'd:\\o.bak' WITH {options}");
        assert_eq!(place.numbers(&statement), [number, 3013], "{options}");
    }
}

#[test]
fn levels_are_picked_where_there_are_levels() {
    let place = Place::new();
    for options in [
        "LEVEL = AUTO",
        "COMPRESSION, LEVEL = AUTO, GOAL = SMALL",
        "COMPRESSION (ALGORITHM = ZSTD, LEVEL = AUTO), GOAL = FAST, THREADCOUNT = AUTO",
        "LEVEL = AUTO, GOAL = GENTLE, MAXRATE = 1000, MAXWRITERATE = 1000",
    ] {
        let row = header(&place, &format!("FORMAT, {options}"));
        assert_eq!(row["CompressionAlgorithm"], "ZSTD", "{options}");
        assert_eq!(row["CompressionLevel"], "AUTO", "{options}");
    }
    for (options, number) in [
        ("COMPRESSION (ALGORITHM = MS_XPRESS, LEVEL = AUTO)", 3031),
        ("COMPRESSION (ALGORITHM = QAT_DEFLATE), LEVEL = AUTO", 3031),
        (
            "COMPRESSION (ALGORITHM = ZSTD, LEVEL = HIGH), LEVEL = AUTO",
            3031,
        ),
        ("NO_COMPRESSION, LEVEL = AUTO", 3031),
        ("GOAL = SMALL", 50005),
        ("COMPRESSION, GOAL = SMALL", 50005),
    ] {
        assert_eq!(place.numbers(&backup(options)), [number, 3013], "{options}");
    }
}

/// The header of the set that a backup with these options makes.
fn header(place: &Place, options: &str) -> Json {
    let script = format!(
        "{}\nRESTORE HEADERONLY FROM DISK = 'd:\\o.bak'",
        backup(options)
    );
    let run = place.sql_with(&["--json"], &script);
    assert_eq!(run.code, Some(0), "{options}\n{}", run.err);
    let sets = run.results().pop().expect("a result set");
    let last = sets.as_array().and_then(|sets| sets.last()).cloned();
    last.expect("a backup set")
}

#[test]
fn what_the_options_say_stands_in_the_header() {
    let place = Place::new();
    let row = header(
        &place,
        "FORMAT, NAME = N'n', DESCRIPTION = 'd', EXPIREDATE = '2031-05-06', COPY_ONLY, CHECKSUM",
    );
    assert_eq!(row["BackupName"], "n");
    assert_eq!(row["BackupDescription"], "d");
    assert_eq!(row["ExpirationDate"], "2031-05-06T00:00:00.000");
    assert_eq!(row["IsCopyOnly"], true);
    assert_eq!(row["HasBackupChecksums"], true);
    assert_eq!(row["Flags"], 1552, "as observed on SQL Server");
    assert_eq!(row["Compressed"], false);
    let row = header(
        &place,
        "COMPRESSION, NOFORMAT, NOINIT, NOSKIP, REWIND, NOUNLOAD, RESTART, BUFFERCOUNT = 3, MAXTRANSFERSIZE = 131072, THREADCOUNT = 2",
    );
    assert_eq!(row["Position"], 2, "NOINIT appends");
    assert_eq!(
        row["CompressionAlgorithm"], "MS_XPRESS",
        "SQL Server's default"
    );
    assert_eq!(row["IsCopyOnly"], false);
    let row = header(&place, "INIT, SKIP, COMPRESSION (ALGORITHM = QAT_DEFLATE)");
    assert_eq!(row["Position"], 1, "INIT overwrites");
    assert_eq!(row["CompressionAlgorithm"], "QAT_DEFLATE");
    assert!(row["CompressedBackupSize"].as_u64() < row["BackupSize"].as_u64());
}

#[test]
fn media_options_stand_in_the_label() {
    let place = Place::new();
    let script = format!(
        "{}\n{}\nRESTORE LABELONLY FROM DISK = 'd:\\o.bak'",
        backup("FORMAT, MEDIANAME = 'm', MEDIADESCRIPTION = N'about', BLOCKSIZE = 65536"),
        backup("NOINIT, MEDIANAME = 'other'"),
    );
    let run = place.sql_with(&["--json"], &script);
    assert_eq!(run.numbers(), [4035, 3014, 4037, 3013]);
    let label = &run.results()[0][0];
    assert_eq!(label["MediaName"], "m");
    assert_eq!(label["MediaDescription"], "about");
    assert_eq!(label["FamilyCount"], 1);
    assert_eq!(label.as_object().map(serde_json::Map::len), Some(13));
}

#[test]
fn variables_stand_wherever_the_grammar_allows_them() {
    let place = Place::new();
    let run = place.sql_with(
        &["--json"],
        "DECLARE @db sysname = 'app', @file nvarchar(260) = N'd:\\v_' + CONVERT(char(8), GETDATE(), 112) + '.bak',
                 @name nvarchar(128) = N'by variable', @days int = 3, @stats int = 100, @n int = 1
         BACKUP DATABASE @db TO DISK = @file WITH NAME = @name, RETAINDAYS = @days, STATS = @stats
         RESTORE HEADERONLY FROM DISK = @file WITH FILE = @n",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(run.results()[0][0]["BackupName"], "by variable");
    assert!(!run.results()[0][0]["ExpirationDate"].is_null());
}

#[test]
fn copy_only_is_no_base_and_has_no_effect_on_a_differential() {
    let place = Place::new();
    assert_eq!(
        place.numbers(&format!(
            "{}\n{}",
            backup("FORMAT, COPY_ONLY"),
            backup("DIFFERENTIAL")
        )),
        [4035, 3014, 3035, 3013]
    );
    assert_eq!(
        place.numbers(&format!(
            "{}\n{}",
            backup("FORMAT"),
            backup("DIFFERENTIAL, COPY_ONLY")
        )),
        [4035, 3014, 4035, 3014]
    );
}
