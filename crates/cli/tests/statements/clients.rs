//! Real drivers against `windlass serve`. `cargo xtask test` installs them; without one, its test fails under `CI`
//! and is skipped elsewhere.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::articles::{QAT, ZSTD, between};
use crate::serving::Served;
use crate::support::{Place, article, make_database};

const PASSWORD: &str = "Un1t-of-test";

/// What every client prints.
const EXPECTED: &str = "\
one 1
unicode ä€😀 7
rows 100000 5000050000
wide 300 11175
sets 1 two
output 42
error 208
transaction 1
sets of backups True
wrong 18456
";

/// What those print that can cancel.
const CANCELLED: &str = "cancelled ECANCEL\nafter 42\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients")
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/clients")
        .join(name)
}

/// Whether a driver's test can run.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn is_installed(name: &str) -> bool {
    let is_there = folder().join(format!("{name}.installed")).exists();
    assert!(
        is_there || std::env::var_os("CI").is_none(),
        "the {name} drivers are not installed: run `cargo xtask test`"
    );
    if !is_there {
        println!("skipped: the {name} drivers are not installed (cargo xtask test installs them)");
    }
    is_there
}

fn start(place: &Place) -> Served {
    let instance = place.text("instance");
    if let Some(text) = article(QAT) {
        let configure = between(&text, "EXEC sp_configure", "Finally restart");
        place.succeed(&["sql", "--instance", &instance, "-Q", configure]);
    }
    let server = Served::start(place, &["--plain"]);
    let app = place.text("app.db");
    let script = format!(
        "CREATE LOGIN tester WITH PASSWORD = '{PASSWORD}'; ALTER SERVER ROLE sysadmin ADD MEMBER tester;
         CREATE DATABASE app ON (FILENAME = '{app}') FOR ATTACH"
    );
    place.succeed(&["sql", "--instance", &instance, "-Q", &script]);
    let folder = place.text("temp");
    place.succeed(&[
        "sql",
        "--instance",
        &instance,
        "-Q",
        &format!("EXEC sp_windlass_remote_folder '{folder}'"),
    ]);
    server
}

/// What a client prints after the articles' scripts: each backup, as `windlass sql` shows it.
const HISTORY: &str =
    "SELECT s.database_name, s.compression_algorithm, COUNT(f.family_sequence_number) AS stripes
    FROM msdb.dbo.backupset AS s
    JOIN msdb.dbo.backupmediafamily AS f ON f.media_set_id = s.media_set_id
    WHERE s.database_name <> 'app'
    GROUP BY s.backup_set_id, s.database_name, s.compression_algorithm ORDER BY s.backup_set_id";

/// Gives the client the backups of the articles to run: five ways of one to disk and to NUL with their headers, and
/// striped ones. `false` without the articles.
fn write_scripts(place: &Place) -> bool {
    let (Some(zstd), Some(qat)) = (article(ZSTD), article(QAT)) else {
        return false;
    };
    let instance = place.text("instance");
    let mut prepare = format!(
        "EXEC sp_windlass_drive 'd', '{0}'; EXEC sp_windlass_drive 'c', '{0}';",
        place.text("")
    );
    for name in ["StackOverflow50", "SBODemoUS"] {
        make_database(&place.path(name), 300);
        let path = place.text(name);
        writeln!(
            prepare,
            "CREATE DATABASE {name} ON (FILENAME = '{path}') FOR ATTACH;"
        )
        .expect("text");
    }
    place.succeed(&["sql", "--instance", &instance, "-Q", &prepare]);
    std::fs::create_dir(place.path("Luca")).expect("a folder");
    let until = "RESTORE DATABASE StackOverflow50_zstdlow";
    let write = |name: &str, text: &str| {
        std::fs::write(place.path(&format!("temp/{name}.sql")), text).expect("a script");
    };
    write("article-1", between(&zstd, "--Backups to disk", until));
    let striped = between(&qat, "BACKUP DATABASE [SBODemoUS]", "The results are:");
    write("article-2", striped);
    write("history", HISTORY);
    true
}

/// Compares what the client printed with what the command line says of the same instance, and takes the scripts away.
fn compare_history(place: &Place, printed: &str, mode: &str) {
    let instance = place.text("instance");
    let arguments = ["sql", "--instance", &instance, "-h", "-1", "-W", "-s", "|"];
    let own = place.succeed(&[&arguments[..], &["-Q", HISTORY]].concat());
    let rows: Vec<&str> = own.out.lines().filter(|line| line.contains('|')).collect();
    assert_eq!(rows.len(), 12, "{}", own.out);
    assert_eq!(rows[11], "SBODemoUS|QAT_DEFLATE|4");
    assert_eq!(printed.lines().collect::<Vec<_>>(), rows, "{mode}");
    for name in ["article-1", "article-2", "history"] {
        std::fs::remove_file(place.path(&format!("temp/{name}.sql"))).expect("a script");
    }
}

/// Runs a client in each mode and compares its lines; in the first, it also runs the articles' scripts.
fn compare(program: &mut dyn FnMut() -> Command, modes: &[&str], expected: &str) {
    let place = Place::new();
    let server = start(&place);
    let authority = place.path("instance/server-ca.pem");
    let mut has_scripts = write_scripts(&place);
    for mode in modes {
        let output = program()
            .args([&server.port.to_string(), PASSWORD, *mode])
            .arg(&authority)
            .arg(place.path("temp"))
            .stdin(Stdio::null())
            .output()
            .expect("the client starts");
        let out = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        let Some(history) = out.strip_prefix(expected) else {
            panic!("{mode}: {out}{error}");
        };
        match std::mem::take(&mut has_scripts) {
            true => compare_history(&place, history, mode),
            false => assert_eq!(history, "", "{mode}"),
        }
    }
}

#[test]
fn freetds() {
    let place = Place::new();
    let server = start(&place);
    let run = |password: &str| {
        let mut child = Command::new("tsql")
            .args([
                "-H",
                "127.0.0.1",
                "-p",
                &server.port.to_string(),
                "-U",
                "tester",
                "-P",
                password,
            ])
            .env("TDSVER", "7.4")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tsql starts (package freetds-bin)");
        let mut stdin = child.stdin.take().expect("its input");
        std::io::Write::write_all(
            &mut stdin,
            b"select 40 + 2 as n, N'gr\xC3\xBCn' as t\ngo\nexit\n",
        )
        .expect("it listens");
        drop(stdin);
        child.wait_with_output().expect("it ends")
    };
    let out = String::from_utf8_lossy(&run(PASSWORD).stdout).into_owned();
    assert!(out.contains("42\tgrün"), "{out}");
    let refused = run("wrong");
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("18456"), "{error}");
}

#[test]
fn pymssql() {
    if is_installed("python") {
        let mut program = || {
            let mut command = Command::new(folder().join("python/bin/python"));
            command.arg(source("dblib.py"));
            command
        };
        compare(&mut program, &["plain", "tls"], EXPECTED);
    }
}

#[test]
fn microsoft_odbc() {
    if is_installed("python") {
        let mut program = || {
            let mut command = Command::new(folder().join("python/bin/python"));
            command.arg(source("odbc.py"));
            command
        };
        compare(&mut program, &["plain", "tls"], EXPECTED);
    }
}

#[test]
fn tedious() {
    if is_installed("node") {
        let mut program = || {
            let mut command = Command::new("node");
            command
                .arg("--no-deprecation")
                .arg(source("tedious.js"))
                .env("NODE_PATH", folder().join("node/node_modules"));
            command
        };
        let expected = format!("{EXPECTED}{CANCELLED}");
        compare(&mut program, &["plain", "tls", "strict"], &expected);
    }
}

#[test]
fn mssql_jdbc() {
    if is_installed("java") {
        let jars = std::fs::read_to_string(folder().join("java.installed")).expect("its version");
        let mut program = || {
            let mut command = Command::new("java");
            command
                .arg("-Dstdout.encoding=UTF-8")
                .arg("-Dfile.encoding=UTF-8")
                .arg("-cp")
                .arg(folder().join(&jars))
                .arg(source("Client.java"));
            command
        };
        let expected = format!("{EXPECTED}{CANCELLED}");
        compare(&mut program, &["plain", "tls", "strict"], &expected);
    }
}

#[test]
fn tiberius() {
    if is_installed("rust") {
        let mut program = || Command::new(folder().join("rust/debug/client"));
        compare(&mut program, &["plain", "tls", "strict"], EXPECTED);
    }
}

#[test]
fn go_mssqldb() {
    if is_installed("go") {
        let mut program = || Command::new(folder().join("go-client"));
        let expected = format!("{EXPECTED}{CANCELLED}");
        compare(&mut program, &["plain", "tls", "strict"], &expected);
    }
}
