//! Backups in a store of Azure's kind, Azurite. `cargo xtask test` installs it; without it, the tests fail under
//! `CI`, and are skipped elsewhere.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::objects::holds;
use crate::stores::{LOGGED, PARTS, Program, goes_there_and_comes_back, installed, place};
use crate::support::{Place, Run};

const ACCOUNT: &str = "windlasstest";
/// `a key of the tests, which opens nothing` in base 64.
const KEY: &str = "YSBrZXkgb2YgdGhlIHRlc3RzLCB3aGljaCBvcGVucyBub3RoaW5n";
const CONTAINER: &str = "backups";

struct Azurite(Program);

/// What the script prints.
fn script(arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/azure.py");
    let output = Command::new("python3").arg(script).args(arguments).output();
    let output = output.expect("Python runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("a text");
    text.trim().to_owned()
}

impl Azurite {
    /// With a container.
    fn start(place: &Place) -> Option<Self> {
        let program = installed("azurite/node_modules/.bin/azurite-blob")?;
        let server = Self(Program::start(|port| {
            let mut command = Command::new(&program);
            command
                .args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()])
                .args(["--silent", "--skipApiVersionCheck", "--disableTelemetry"])
                .arg("--location")
                .arg(place.path("store"))
                .env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{KEY}"));
            command
        }));
        let endpoint = format!("http://127.0.0.1:{}/{ACCOUNT}", server.0.port);
        script(&["container", &endpoint, ACCOUNT, KEY, CONTAINER]);
        Some(server)
    }

    fn url(&self, key: &str) -> String {
        format!("az://127.0.0.1:{}/{ACCOUNT}/{CONTAINER}/{key}", self.0.port)
    }

    /// A command with the server as endpoint, and without a key.
    fn command(&self, place: &Place, arguments: &[&str]) -> Command {
        let mut command = place.command(arguments);
        let endpoint = format!("http://127.0.0.1:{}", self.0.port);
        command
            .env("AZURE_STORAGE_ENDPOINT", endpoint)
            .env("NO_PROXY", "127.0.0.1");
        command
    }

    fn run(&self, place: &Place, arguments: &[&str]) -> Run {
        let mut command = self.command(place, arguments);
        command
            .env("AZURE_STORAGE_ACCOUNT", ACCOUNT)
            .env("AZURE_STORAGE_KEY", KEY);
        Run::of(&command.output().expect("the program runs"))
    }

    #[track_caller]
    fn well(&self, place: &Place, arguments: &[&str]) -> Run {
        let run = self.run(place, arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}\n{}\n{}", run.out, run.err);
        run
    }
}

#[test]
fn backups_of_every_kind_go_to_azure_and_come_back() {
    let place = place();
    let Some(server) = Azurite::start(&place) else {
        return;
    };
    goes_there_and_comes_back(
        &place,
        &|arguments| server.run(&place, arguments),
        &|key| server.url(&format!("prod/{key}")),
        r#"{"azure": {"storage_class": "Cool", "tags": {"team": "dba"}}}"#,
    );
    let secret = ["--passphrase-file", "pass"];
    let urls = ["prod/1 a.bak", "prod/2.bak"].map(|key| server.url(key));
    let verify = ["verify", &urls[1], &urls[0]];
    let all = server.url("prod/");
    let expire = ["expire", &all, "--last", "1", "--delete", "--trust-headers"];
    server.well(&place, &expire);
    let gone = server.run(&place, &[&verify[..], &secret].concat());
    assert_eq!(gone.code, Some(1), "{}", gone.out);
    let uploads = server.run(&place, &["doctor", "--uploads", &all]);
    assert!(
        (uploads.out + &uploads.err).contains("after 7 days by itself"),
        "what killed backups leave"
    );
    let missing = format!("az://127.0.0.1:{}/{ACCOUNT}/nothing/x.bak", server.0.port);
    let missing = server.run(&place, &["backup", "app.db", "--to", &missing]);
    assert!(
        missing.err.contains("create the container"),
        "{}",
        missing.err
    );
}

#[test]
fn a_shared_access_signature_is_enough_and_is_nowhere() {
    let place = place();
    let Some(server) = Azurite::start(&place) else {
        return;
    };
    let signature = script(&["signature", ACCOUNT, KEY, "rwdlc"]);
    let expired = script(&["signature", ACCOUNT, KEY, "rwdlc", "-2"]);
    let run = |arguments: &[&str]| {
        let mut command = server.command(&place, &[arguments, &LOGGED].concat());
        Run::of(&command.output().expect("the program runs"))
    };
    let keep = |name: &str, key: &str| {
        std::fs::write(place.path("key"), key).expect("a file");
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(place.path("key"), private).expect("its mode");
        let run = run(&["credential", "set", name, "--key-file", "key"]);
        std::fs::remove_file(place.path("key")).expect("a file");
        run
    };
    let url = server.url("x.bak");
    let name = url.trim_end_matches("/x.bak");
    let backup = [&["backup", "app.db", "--to", &url][..], &PARTS].concat();
    let mut said = String::new();
    let mut told = |run: Run, code| {
        assert_eq!(run.code, Some(code), "{}\n{}", run.out, run.err);
        said = format!("{said}{}{}", run.out, run.err);
        run.err
    };
    let without = told(run(&backup), 1);
    assert!(without.contains("AZURE_STORAGE_KEY"), "{without}");
    told(keep(name, &expired), 0);
    let refused = told(run(&backup), 1);
    assert!(refused.contains("whether it has ended"), "{refused}");
    told(keep(name, &format!("?{signature}")), 0);
    told(run(&backup), 0);
    let taken = told(run(&backup), 1);
    assert!(taken.contains("use FORMAT"), "{taken}");
    told(run(&["verify", &url]), 0);
    told(run(&["restore", &url, "--to", "r.db"]), 0);
    told(run(&["expire", name, "--last", "1", "--delete"]), 0);
    // In a URL, others would read it.
    let open = format!("{url}?{signature}");
    let refused = told(run(&["backup", "app.db", "--to", &open]), 1);
    assert!(refused.contains("make a credential of it"), "{refused}");
    let script = format!(
        "CREATE CREDENTIAL named WITH IDENTITY = '{ACCOUNT}', SECRET = '{KEY}'
         BACKUP DATABASE app TO URL = '{}' WITH CREDENTIAL = named
         SELECT name, credential_identity FROM sys.credentials
         ALTER CREDENTIAL named WITH IDENTITY = 'otheraccount', SECRET = '{KEY}'",
        server.url("named.bak")
    );
    std::fs::write(place.path("script.sql"), script).expect("the script");
    told(
        run(&["sql", "-i", "script.sql", "--attach", "app=app.db"]),
        0,
    );
    std::fs::remove_file(place.path("script.sql")).expect("the script");
    let other = format!(
        "BACKUP DATABASE app TO URL = '{}' WITH CREDENTIAL = named",
        server.url("other.bak")
    );
    let refused = told(run(&["sql", "-Q", &other, "--attach", "app=app.db"]), 1);
    assert!(refused.contains("of account 'otheraccount'"), "{refused}");
    let (_, sig) = signature.split_once("sig=").expect("a signature");
    let log = std::fs::read_to_string(place.path("log")).expect("a log");
    for secret in [&sig[..20], KEY] {
        assert!(
            !said.contains(secret) && !log.contains(secret),
            "it is shown"
        );
        assert!(
            !holds(&place.path("instance"), secret.as_bytes()),
            "it is kept in clear"
        );
    }
}

#[test]
fn of_many_backups_to_one_name_one_gets_it_and_a_killed_one_leaves_no_set() {
    let place = place();
    let Some(server) = Azurite::start(&place) else {
        return;
    };
    let start = |key: &str| {
        let url = server.url(key);
        let arguments = [&["backup", "app.db", "--to", &url][..], &PARTS].concat();
        let mut command = server.command(&place, &arguments);
        command
            .env("AZURE_STORAGE_ACCOUNT", ACCOUNT)
            .env("AZURE_STORAGE_KEY", KEY)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().expect("it starts")
    };
    let all: Vec<Child> = (0..6).map(|_| start("one.bak")).collect();
    let ended = all.into_iter().map(|child| {
        let output = child.wait_with_output().expect("it ends");
        Run::of(&output)
    });
    let (won, lost): (Vec<Run>, Vec<Run>) = ended.partition(|run| run.code == Some(0));
    assert_eq!(won.len(), 1, "one has the name");
    for run in &lost {
        let told = ["use FORMAT", "another backup", "Make the backup again"];
        assert!(
            told.iter().any(|told| run.err.contains(told)),
            "{}",
            run.err
        );
    }
    server.well(&place, &["verify", &server.url("one.bak")]);
    // Another object gets the name while a slow backup is written: it stays.
    let slow = server.url("slow.bak");
    let arguments = ["backup", "app.db", "--to", &slow, "--max-write-rate", "8"];
    let mut command = server.command(&place, &[&arguments[..], &PARTS].concat());
    command
        .env("AZURE_STORAGE_ACCOUNT", ACCOUNT)
        .env("AZURE_STORAGE_KEY", KEY);
    let late = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let late = late.expect("it starts");
    std::thread::sleep(Duration::from_millis(500));
    server.well(&place, &["backup", "other.db", "--to", &slow]);
    let late = Run::of(&late.wait_with_output().expect("it ends"));
    assert_eq!(late.code, Some(1), "{}", late.out);
    let header = server.well(&place, &["header", &slow]);
    assert!(header.out.contains("other"), "{}", header.out);
    for delay in [20, 60, 100, 150, 200, 300] {
        let mut child = start("killed.bak");
        std::thread::sleep(Duration::from_millis(delay));
        let _killed = child.kill();
        let output = child.wait_with_output().expect("it ends");
        let header = server.run(&place, &["header", &server.url("killed.bak")]);
        if header.code == Some(0) {
            // It was complete before it was killed.
            server.well(&place, &["verify", &server.url("killed.bak")]);
            break;
        }
        assert_ne!(output.status.code(), Some(0));
    }
}
