//! Server options: `sp_configure`, RECONFIGURE, sys.configurations, and that each option acts.

use serde_json::Value as Json;

use crate::support::{Place, Run};

fn sql(place: &Place, script: &str) -> Run {
    place.sql_with(&["--json"], script)
}

/// The headers of what a backup with these options left, after some options were set.
fn header(settings: &str, options: &str) -> Json {
    let place = Place::new();
    let run = sql(
        &place,
        &format!(
            "EXEC sp_configure 'show advanced options', 1\nRECONFIGURE\n{settings}\nRECONFIGURE\n\
             BACKUP DATABASE app TO DISK = 'd:\\o.bak' WITH {options}\n\
             RESTORE HEADERONLY FROM DISK = 'd:\\o.bak'"
        ),
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    run.results().pop().expect("a header")[0].clone()
}

#[test]
fn an_option_is_set_installed_and_shown() {
    let place = Place::new();
    let run = sql(
        &place,
        "EXEC sp_configure 'backup compression default', 1\n\
         EXEC sp_configure 'backup compression default'\n\
         RECONFIGURE\n\
         EXEC sp_configure 'backup compression default'\n\
         SELECT name, value, minimum, maximum, value_in_use, is_dynamic, is_advanced\n\
         FROM master.sys.configurations WHERE name = 'backup compression default'",
    );
    assert_eq!(run.numbers(), [15457]);
    assert_eq!(
        run.messages()[0]["text"],
        "Configuration option 'backup compression default' changed from 0 to 1. Run the RECONFIGURE statement to install."
    );
    let results = run.results();
    let pair = |row: &Json| (row["config_value"].clone(), row["run_value"].clone());
    assert_eq!(pair(&results[0][0]), (1.into(), 0.into()));
    assert_eq!(pair(&results[1][0]), (1.into(), 1.into()));
    assert_eq!(results[2][0]["value_in_use"], 1);
    assert_eq!(results[2][0]["maximum"], 1);
}

#[test]
fn advanced_options_are_hidden_until_they_are_shown() {
    let place = Place::new();
    let run = sql(
        &place,
        "EXEC sp_configure\n\
         EXEC sp_configure 'media retention', 3\n\
         EXEC sp_configure 'show advanced options', 1\n\
         RECONFIGURE\n\
         EXEC sp_configure\n\
         EXEC sp_configure 'media ret', 3",
    );
    assert_eq!(run.numbers(), [15123, 15457, 15457]);
    let names = |result: &Json| -> Vec<String> {
        let rows = result.as_array().expect("rows");
        rows.iter()
            .map(|row| row["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    let results = run.results();
    assert_eq!(
        names(&results[0]),
        [
            "backup checksum default",
            "backup compression algorithm",
            "backup compression default",
            "restores must be encrypted",
            "show advanced options"
        ]
    );
    assert_eq!(names(&results[1]).len(), 11);
}

#[test]
fn wrong_names_and_values_are_refused() {
    let place = Place::new();
    for (call, numbers) in [
        ("sp_configure 'no such option', 1", &[15123][..]),
        ("sp_configure 'backup', 1", &[15124]),
        ("sp_configure 'backup checksum default', 2", &[15129]),
        ("sp_configure 'backup compression algorithm', 4", &[15129]),
        ("sp_configure 'backup compression algorithm', -1", &[15129]),
    ] {
        let script = format!("EXEC {call}");
        assert_eq!(place.numbers(&script), numbers, "{call}");
    }
}

#[test]
fn a_long_recovery_interval_needs_override() {
    let place = Place::new();
    let script = "EXEC sp_configure 'show advanced options', 1\nRECONFIGURE\n\
        EXEC sp_configure 'recovery interval', 61\nRECONFIGURE\nRECONFIGURE WITH OVERRIDE\n\
        EXEC sp_configure 'recovery interval'";
    let run = sql(&place, script);
    assert_eq!(run.numbers(), [15457, 15457, 5807]);
    assert_eq!(run.results()[0][0]["run_value"], 61);
}

#[test]
fn compression_default_and_algorithm_decide_what_is_not_written() {
    let on = "EXEC sp_configure 'backup compression default', 1";
    let zstd = "EXEC sp_configure 'backup compression algorithm', 3";
    let qat = "EXEC sp_configure 'backup compression algorithm', 2";
    for (settings, options, algorithm) in [
        (String::new(), "INIT", Json::Null),
        (String::new(), "COMPRESSION", "MS_XPRESS".into()),
        (on.to_owned(), "INIT", "MS_XPRESS".into()),
        (on.to_owned(), "NO_COMPRESSION", Json::Null),
        (format!("{on}\n{zstd}"), "INIT", "ZSTD".into()),
        (zstd.to_owned(), "COMPRESSION", "ZSTD".into()),
        (zstd.to_owned(), "INIT", Json::Null),
        (qat.to_owned(), "COMPRESSION", "QAT_DEFLATE".into()),
        (
            format!("{on}\n{zstd}"),
            "COMPRESSION (ALGORITHM = MS_XPRESS)",
            "MS_XPRESS".into(),
        ),
    ] {
        let header = header(&settings, options);
        assert_eq!(
            header["CompressionAlgorithm"], algorithm,
            "{settings}: {options}"
        );
    }
}

#[test]
fn checksum_default_decides_what_is_not_written() {
    let on = "EXEC sp_configure 'backup checksum default', 1";
    assert_eq!(header("", "INIT")["HasBackupChecksums"], false);
    assert_eq!(header(on, "INIT")["HasBackupChecksums"], true);
    assert_eq!(header(on, "NO_CHECKSUM")["HasBackupChecksums"], false);
}

#[test]
fn media_retention_gives_backups_an_expiry_date() {
    let days = "EXEC sp_configure 'media retention', 7";
    assert_eq!(header("", "INIT")["ExpirationDate"], Json::Null);
    assert_ne!(header(days, "INIT")["ExpirationDate"], Json::Null);
    let written = header(days, "EXPIREDATE = '2031-02-03'");
    assert_eq!(written["ExpirationDate"], "2031-02-03T00:00:00.000");
    assert_eq!(
        header(days, "RETAINDAYS = 0")["ExpirationDate"],
        Json::Null,
        "what is written wins"
    );
    let place = Place::new();
    let run = sql(
        &place,
        "EXEC sp_configure 'show advanced options', 1\nRECONFIGURE\n\
         EXEC sp_configure 'media retention', 7\nRECONFIGURE\n\
         BACKUP DATABASE app TO DISK = 'd:\\o.bak'\n\
         BACKUP DATABASE app TO DISK = 'd:\\o.bak' WITH INIT",
    );
    assert!(run.numbers().ends_with(&[4030, 3204, 3013]), "{}", run.err);
}

#[test]
fn hardware_offload_waits_for_the_next_opening_of_the_instance() {
    let place = Place::new();
    let instance = place.text("instance");
    let ask = "SELECT name, value, value_in_use FROM sys.configurations \
        WHERE name LIKE 'hardware offload%' ORDER BY name";
    let first = place.sql_with(
        &["--json", "--instance", &instance],
        &format!(
            "ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = ON (ACCELERATOR = QAT)\nGO\n\
             EXEC sp_configure 'show advanced options', 1\nRECONFIGURE\n\
             EXEC sp_configure 'hardware offload enabled', 1\nRECONFIGURE\n\
             EXEC sp_configure 'hardware offload config', 1\n\
             ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = ON (ACCELERATOR = QAT, MODE = SOFTWARE)\n\
             {ask}"
        ),
    );
    assert_eq!(first.numbers(), [50005, 15457, 15457, 50005]);
    let values = |run: &Run| -> Vec<(i64, i64)> {
        let results = run.results();
        let rows = results[0].as_array().expect("rows");
        let number = |row: &Json, name: &str| row[name].as_i64().expect("a number");
        rows.iter()
            .map(|row| (number(row, "value"), number(row, "value_in_use")))
            .collect()
    };
    assert_eq!(values(&first), [(1, 0), (1, 0), (1, 0)]);
    let second = place.sql_with(&["--json", "--instance", &instance], ask);
    assert_eq!(values(&second), [(1, 1), (1, 1), (1, 1)]);
    let off = place.sql_with(
        &["--json", "--instance", &instance],
        "ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = OFF",
    );
    assert_eq!(off.code, Some(0), "{}", off.err);
    let third = place.sql_with(&["--json", "--instance", &instance], ask);
    assert_eq!(values(&third), [(0, 0), (1, 1), (0, 0)]);
}
