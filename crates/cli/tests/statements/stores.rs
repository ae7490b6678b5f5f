//! What tests of object stores share: programs of others that are stores, and the way of backups to a store and back.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::support::{Place, Run, make_database, rows};

/// In parts of the shortest length.
pub(crate) const PARTS: [&str; 4] = ["--compress", "none", "--max-transfer-size", "5242880"];

/// On an instance, with a log of everything.
pub(crate) const LOGGED: [&str; 6] = [
    "--instance",
    "instance",
    "--log-file",
    "log",
    "--log-level",
    "debug",
];

/// A folder with a database of several parts and a passphrase.
pub(crate) fn place() -> Place {
    let place = Place::new();
    std::fs::remove_file(place.path("app.db")).expect("a file");
    make_database(&place.path("app.db"), 14_000);
    std::fs::write(place.path("pass"), "correct horse battery staple").expect("a file");
    place
}

/// A program of others that the test run installs.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients");
    let program = folder.join(name);
    let is_there = program.exists();
    assert!(
        is_there || std::env::var_os("CI").is_none(),
        "{name} is not installed: run `cargo xtask test`"
    );
    if !is_there {
        println!("skipped: {name} is not installed (cargo xtask test installs it)");
    }
    is_there.then_some(program)
}

/// A server of others, which ends with this.
pub(crate) struct Program {
    child: Child,
    pub(crate) port: u16,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _ended = self.child.wait();
    }
}

impl Program {
    /// Starts what listens on a free port, and waits until it does.
    pub(crate) fn start(command: impl FnOnce(u16) -> Command) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("its number").port();
        drop(free);
        let mut command = command(port);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("it starts");
        let program = Self { child, port };
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "it does not listen"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        program
    }
}

/// Backs up to a store, whole and in part, striped, encrypted and to a folder, and restores it. `run` runs a command
/// with the key of the store, `url` is the URL of a key in a folder of its own, `options` are `BACKUP_OPTIONS`.
#[track_caller]
pub(crate) fn goes_there_and_comes_back(
    place: &Place,
    run: &dyn Fn(&[&str]) -> Run,
    url: &dyn Fn(&str) -> String,
    options: &str,
) {
    let well = |arguments: &[&[&str]]| {
        let arguments = arguments.concat();
        let run = run(&arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}\n{}\n{}", run.out, run.err);
        run
    };
    let instance = ["--instance", "instance"];
    let secret = ["--passphrase-file", "pass"];
    let urls = ["1 a.bak", "2.bak"].map(url);
    let full = ["backup", "app.db", "--to", &urls[0], "--to", &urls[1]];
    let said = ["--backup-options", options];
    let full = [&full[..], &PARTS, &secret, &said, &instance].concat();
    well(&[&full]);
    let again = run(&full);
    assert!(again.err.contains("use FORMAT"), "{}", again.err);
    well(&[&full, &["--format"]]);
    let database = rusqlite::Connection::open(place.path("app.db")).expect("a database");
    let added = database.execute_batch("INSERT INTO t (body) VALUES ('later')");
    added.expect("a row");
    drop(database);
    let folder = url("more/");
    let differential = ["backup", "app.db", "--differential", "--to", &folder];
    well(&[&differential, &secret, &instance]);
    well(&[&["verify", &urls[1], &urls[0]], &secret]);
    let all = url("");
    well(&[&["restore", &all, "--of", "app", "--to", "r.db"], &secret]);
    assert_eq!(rows(&place.path("r.db")), 14_001);
    let striped = ["backup", "app.db", "--to", &folder, "--to", &folder];
    well(&[&striped, &secret, &instance]);
    let fleet = well(&[&["--json", "fleet", &all]]);
    let found: Json = serde_json::from_str(&fleet.out).expect("JSON");
    assert_eq!(found["databases"][0]["database"], "app", "{}", fleet.out);
}
