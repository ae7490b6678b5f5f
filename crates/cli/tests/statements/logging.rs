//! The log: what is in it, and what never is.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value as Json;

use crate::support::Place;

const SECRET: &str = "hunter2-and-more";

fn lines(place: &Place, name: &str) -> Vec<Json> {
    let text = std::fs::read_to_string(place.path(name)).expect("a log");
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

fn find<'a>(lines: &'a [Json], message: &str, statement: &str) -> &'a Json {
    let found = lines
        .iter()
        .find(|line| line["message"] == message && line["statement"] == statement);
    found.unwrap_or_else(|| panic!("{message} of {statement}: {lines:#?}"))
}

#[test]
fn each_statement_is_logged_with_what_it_did() {
    let place = Place::new();
    let log = ["--log-file", "w.log", "--log-format", "json"];
    let with = |arguments: &[&str]| place.run(&[arguments, &log].concat());
    assert_eq!(with(&["backup", "app.db", "--to", "a.bak"]).code, Some(0));
    assert_eq!(
        with(&["backup", "app.db", "--to", "nosuch/a.bak"]).code,
        Some(1)
    );
    assert_eq!(with(&["restore", "a.bak", "--to", "copy.db"]).code, Some(0));
    let lines = lines(&place, "w.log");
    let started = find(&lines, "statement started", "BACKUP DATABASE");
    assert_eq!(started["database"], "app");
    let finished = find(&lines, "statement finished", "BACKUP DATABASE");
    assert!(
        finished["bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes > 400_000),
        "{finished}"
    );
    assert!(finished["stored_bytes"].as_u64().is_some(), "{finished}");
    assert!(finished["seconds"].as_f64().is_some(), "{finished}");
    assert_eq!(finished["position"], 1);
    assert_eq!(finished["level"], "INFO");
    assert_eq!(finished["devices"], place.text("a.bak"));
    let failed = find(&lines, "statement failed", "BACKUP DATABASE");
    assert_eq!(
        (&failed["number"], &failed["severity"]),
        (&3201.into(), &16.into())
    );
    assert_eq!(failed["level"], "ERROR");
    let messages: Vec<&Json> = lines
        .iter()
        .filter(|line| line["message"] == "message")
        .collect();
    assert_eq!(messages.len(), 2, "3201 and 3013: {messages:#?}");
    assert!(
        messages[0]["text"]
            .as_str()
            .is_some_and(|text| text.contains("a.bak"))
    );
    find(&lines, "statement finished", "RESTORE DATABASE");
    let mode = std::fs::metadata(place.path("w.log"))
        .expect("it")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_log_is_as_the_settings_say() {
    let place = Place::new();
    std::fs::write(
        place.path("w.toml"),
        "log_file = \"from.log\"\nlog_format = \"text\"\nlog_level = \"error\"\n",
    )
    .expect("a file");
    let config = place.text("w.toml");
    place.succeed(&["backup", "app.db", "--to", "a.bak", "--config", &config]);
    let log = || std::fs::read_to_string(place.path("from.log")).expect("a log");
    assert_eq!(log(), "", "nothing failed");
    place.run(&["verify", "nosuch.bak", "--config", &config]);
    assert!(
        log().contains("ERROR") && log().contains("number=3201"),
        "{}",
        log()
    );
    assert!(!log().contains("started"), "{}", log());
    place.succeed(&[
        "header",
        "a.bak",
        "--config",
        &config,
        "--log-level",
        "debug",
    ]);
    assert!(log().contains("DEBUG program started"), "{}", log());
    let shown = place.succeed(&[
        "config",
        "--effective",
        "--config",
        &config,
        "--json",
        "--log-format",
        "json",
    ]);
    let rows = shown.results()[0].clone();
    let of = |name: &str| {
        let row = rows
            .as_array()
            .expect("rows")
            .iter()
            .find(|row| row["setting"] == name);
        let row = row.expect(name);
        (
            row["value"].as_str().expect("a value").to_owned(),
            row["origin"].as_str().expect("it").to_owned(),
        )
    };
    assert_eq!(of("log_file"), (place.text("from.log"), config.clone()));
    assert_eq!(of("log_level").0, "error");
    assert_eq!(
        of("log_format"),
        ("json".to_owned(), "command line".to_owned())
    );
    // Without a file, to standard error.
    let run = place.succeed(&["backup", "app.db", "--to", "b.bak", "--log-format", "json"]);
    assert!(
        run.err.contains("\"message\":\"statement finished\""),
        "{}",
        run.err
    );
    let run = place.run(&["header", "a.bak", "--log-file", "nosuch/w.log"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("nosuch/w.log"), "{}", run.err);
    let plain = place.succeed(&["backup", "app.db", "--to", "c.bak"]);
    assert!(
        !plain.err.contains("statement"),
        "no log was asked for: {}",
        plain.err
    );
}

#[test]
fn no_secret_is_ever_written_anywhere() {
    let place = Place::new();
    let instance = place.text("instance");
    let config = place.text("w.toml");
    std::fs::write(
        place.path("w.toml"),
        format!("instance = \"{instance}\"\nlog_file = \"w.log\"\nlog_format = \"json\"\nlog_level = \"debug\"\nmetrics = \"m.prom\"\n"),
    )
    .expect("a file");
    let base = ["--attach", "app=app.db", "--config", &config];
    let mut reported = String::new();
    let mut run = |arguments: &[&str], code: i32| {
        let run = place.run(&[arguments, &base].concat());
        assert_eq!(
            run.code,
            Some(code),
            "{arguments:?}\n{}\n{}",
            run.out,
            run.err
        );
        reported += &run.out;
        reported += &run.err;
    };
    std::fs::create_dir(place.path("c")).expect("a folder");
    let good = format!(
        "BACKUP DATABASE app TO DISK = 'a.bak' WITH PASSWORD = '{SECRET}', VERIFY, COPYTO = 'c', LOGTO = 'r.log'"
    );
    for (command, code) in [
        (good, 0),
        (
            format!(
                "RESTORE DATABASE x FROM DISK = 'a.bak' WITH PASSWORD = '{SECRET}x', MOVE 'app' TO 'x.db', LOGTO = 'r.log'"
            ),
            1,
        ),
        (
            format!("BACKUP DATABASE app TO DISK = 'a.bak' WITH PASSWORD '{SECRET}'"),
            1,
        ),
        (
            format!("BACKUP DATABASE app TO DISK = 'a.bak' WITH PASSWORD = '{SECRET}"),
            1,
        ),
        (
            format!("BACKUP DATABASE app TO DISK = 'a.bak' WITH PASSWORD = '{SECRET}', NOSUCH"),
            1,
        ),
        (
            format!(
                "BACKUP DATABASE app TO DISK = 'a.bak' WITH PASSWORD = '{SECRET}', PASSWORD = '{SECRET}'"
            ),
            1,
        ),
    ] {
        run(&["sqlbackup", "--sql", &command], code);
    }
    for (batch, code) in [
        (
            format!(
                "EXECUTE master..sqlbackup '-SQL \"BACKUP DATABASE app TO DISK = [b.bak] WITH PASSWORD = [{SECRET}]\"'"
            ),
            0,
        ),
        (
            format!("CREATE MASTER KEY ENCRYPTION BY PASSWORD = '{SECRET}'"),
            0,
        ),
        (
            format!(
                "CREATE LOGIN ada WITH PASSWORD = '{SECRET}'; ALTER LOGIN ada WITH PASSWORD = '{SECRET}2'
                 OLD_PASSWORD = '{SECRET}'; EXEC ('ALTER LOGIN ada WITH PASSWORD = ''{SECRET}3''')
                 SELECT * FROM sys.sql_logins SELECT * FROM sys.server_principals"
            ),
            0,
        ),
        (
            format!("ALTER LOGIN ada WITH PASSWORD = 'other-words' OLD_PASSWORD = '{SECRET}x'"),
            1,
        ),
        (format!("CREATE LOGIN eve WITH PASSWORD '{SECRET}'"), 1),
        (format!("CREATE LOGIN eve WITH PASSWORD = '{SECRET}"), 1),
        (
            format!("CREATE PROCEDURE p AS CREATE LOGIN eve WITH PASSWORD = '{SECRET}'"),
            1,
        ),
        ("CREATE CERTIFICATE c WITH SUBJECT = 's'".to_owned(), 0),
        (
            format!(
                "BACKUP CERTIFICATE c TO FILE = 'c.cer' WITH PRIVATE KEY (FILE = 'c.pvk', ENCRYPTION BY PASSWORD = '{SECRET}')"
            ),
            0,
        ),
        (
            format!(
                "CREATE CERTIFICATE d FROM FILE = 'c.cer' WITH PRIVATE KEY (FILE = 'c.pvk', DECRYPTION BY PASSWORD = '{SECRET}x')"
            ),
            1,
        ),
    ] {
        run(&["sql", "-Q", &batch], code);
    }
    // What the user wrote and the lexer did not understand comes back to the user alone.
    place.run(
        &[
            &[
                "sql",
                "-Q",
                &format!("EXEC sqlbackup 'x' PASSWORD = '{SECRET}'"),
            ][..],
            &base,
        ]
        .concat(),
    );
    assert!(!reported.contains(SECRET), "{reported}");
    let log = std::fs::read_to_string(place.path("w.log")).expect("a log");
    for found in [
        "\"EXECUTE\"",
        "sqlbackup",
        "batch refused",
        "sqlbackup failed",
        "sqlbackup finished",
        "\"copied\"",
    ] {
        assert!(log.contains(found), "{found}: {log}");
    }
    for name in [
        "w.log",
        "r.log",
        "m.prom",
        "a.bak",
        "b.bak",
        "c/a.bak",
        "instance/windlass.catalog",
    ] {
        let bytes =
            std::fs::read(place.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let holds = bytes
            .windows(SECRET.len())
            .any(|window| window == SECRET.as_bytes());
        assert!(!holds, "{name}");
    }
}
