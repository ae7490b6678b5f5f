//! Machines that lack what others have: a home, certificates, the right to write, a name of the user.

use std::os::unix::process::CommandExt as _;

use rusqlite::Connection;

use crate::support::{Place, Run};

#[test]
fn settings_are_not_looked_for_below_the_current_folder() {
    let place = Place::new();
    let folder = place.path(".config/windlass");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(
        folder.join("config.toml"),
        "on_success = \"touch harmed\"\n",
    )
    .expect("settings");
    let own = place.text("");
    for (home, counts) in [("", false), (".", false), (own.as_str(), true)] {
        let mut command = place.command(&["config", "--effective"]);
        command.env("HOME", home).env_remove("XDG_CONFIG_HOME");
        let settings = Run::of(&command.output().expect("it runs"));
        assert_eq!(settings.out.contains("harmed"), counts, "{}", settings.out);
    }
}

#[test]
fn settings_that_ask_for_json_get_errors_of_the_command_line_as_objects() {
    let place = Place::new();
    std::fs::write(place.path("c.toml"), "json = true\n").expect("settings");
    for line in [
        "backup --config c.toml",
        "backup --config=c.toml --zzz",
        "backup E:x --to y --config c.toml",
    ] {
        let run = place.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(run.code, Some(2), "{line}: {}", run.err);
        let object: serde_json::Value = serde_json::from_str(&run.err).expect(line);
        assert!(object["number"].is_u64(), "{line}: {}", run.err);
    }
    let mut command = place.command(&["backup"]);
    command.env("WINDLASS_CONFIG", "c.toml");
    let run = Run::of(&command.output().expect("it runs"));
    serde_json::from_str::<serde_json::Value>(&run.err).expect("an object");
}

#[test]
fn a_machine_without_certificates_of_authorities_is_named_as_such() {
    let place = Place::new();
    std::fs::create_dir(place.path("none")).expect("a folder");
    let mut command = place.command(&["header", "s3://127.0.0.1:9/bucket/a.bak"]);
    command
        .env("SSL_CERT_FILE", "/dev/null")
        .env("SSL_CERT_DIR", place.path("none"))
        .env("AWS_ACCESS_KEY_ID", "id")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "eu-west-1");
    let run = Run::of(&command.output().expect("it runs"));
    assert_eq!(run.code, Some(1));
    assert!(
        run.err.contains("no certificates of authorities"),
        "{}",
        run.err
    );
    assert!(run.err.contains("SSL_CERT_FILE"), "{}", run.err);
}

/// A user who may read a database in WAL mode can back it up; SQLite needs to write beside it.
#[test]
fn doctor_finds_a_database_well_that_its_user_may_only_read() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    let path = place.path("app.db");
    let database = Connection::open(&path).expect("a database");
    let mode: String = database
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .expect("its mode");
    assert_eq!(mode, "wal");
    drop(database);
    std::fs::create_dir(place.path("own")).expect("a folder");
    std::os::unix::fs::chown(place.path("own"), Some(65534), Some(65534)).expect("its owner");
    for (name, mode) in [(".", 0o755), ("app.db", 0o644)] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(place.path(name), mode).expect("its mode");
    }
    let run = |arguments: &[&str]| {
        let mut command = place.command(&[arguments, &["--instance", "own/instance"]].concat());
        command.uid(65534).gid(65534).env("HOME", place.path("own"));
        let run = Run::of(&command.output().expect("it runs"));
        assert_eq!(run.code, Some(0), "{arguments:?}: {}{}", run.out, run.err);
        run
    };
    let attach = format!("EXEC sp_attach_db 'app', '{}'", path.display());
    run(&["sql", "-Q", &attach]);
    run(&["backup", "app", "--to", "own/app.bak"]);
    let doctor = run(&["doctor"]);
    assert!(doctor.out.contains("database app"), "{}", doctor.out);
    std::fs::write(&path, [b'x'; 8192]).expect("no database");
    let mut command = place.command(&["doctor", "--instance", "own/instance"]);
    command.uid(65534).gid(65534).env("HOME", place.path("own"));
    let ill = Run::of(&command.output().expect("it runs"));
    assert_eq!(ill.code, Some(1), "{}", ill.out);
}

#[test]
fn the_user_has_the_name_that_the_system_knows() {
    let place = Place::new();
    let mut command = place.command(&["sql", "-Q", "SELECT SUSER_SNAME() AS me", "--json"]);
    command.env_remove("USER").env_remove("LOGNAME");
    let run = Run::of(&command.output().expect("it runs"));
    assert!(run.out.contains("\"me\":\""), "{}", run.out);
    let is_root = rustix::process::geteuid().is_root();
    assert!(!is_root || run.out.contains("\"root\""), "{}", run.out);
}
