//! A store of others, versitygw, with versions, object lock and a policy, also behind a bad network, toxiproxy. `cargo xtask
//! test` installs both; without them, the tests fail under `CI`, and are skipped elsewhere.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stores::{PARTS, Program, goes_there_and_comes_back, installed, place};
use crate::support::{Place, Run};

const ROOT: [&str; 2] = ["root-key", "root-secret"];
const WRITER: [&str; 2] = ["writer-key", "writer-secret"];

/// What the writer may do.
const POLICY: &str = r#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": ["writer-key"]},
  "Action": ["s3:PutObject", "s3:PutObjectRetention", "s3:PutObjectLegalHold"], "Resource": "arn:aws:s3:::locked/*"}]}"#;

struct Gateway {
    /// Ends with this.
    _running: Program,
    program: PathBuf,
    /// At which it is reached.
    port: u16,
}

impl Gateway {
    /// With a bucket `plain` and one with object lock, `locked`.
    fn start(place: &Place) -> Option<Self> {
        let program = installed("versitygw")?;
        for folder in ["store/plain", "versions", "users"] {
            std::fs::create_dir_all(place.path(folder)).expect("a folder");
        }
        let running = Program::start(|port| {
            let mut command = Command::new(&program);
            command
                .args(["--port", &format!("127.0.0.1:{port}"), "--iam-dir"])
                .arg(place.path("users"))
                .args(["posix", "--versioning-dir"])
                .arg(place.path("versions"))
                .arg(place.path("store"))
                .env("ROOT_ACCESS_KEY", ROOT[0])
                .env("ROOT_SECRET_KEY", ROOT[1]);
            command
        });
        let gateway = Self {
            port: running.port,
            _running: running,
            program,
        };
        let lock = ["x-amz-bucket-object-lock-enabled:true"];
        gateway.ask(ROOT, ["PUT", "locked", ""], &lock);
        Some(gateway)
    }

    /// A request of its protocol: whether it succeeds, and the answer.
    fn asked(&self, key: [&str; 2], request: [&str; 3], headers: &[&str]) -> (bool, String) {
        let [method, what, body] = request;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/s3.py");
        let url = format!("http://127.0.0.1:{}/{what}", self.port);
        let output = Command::new("python3")
            .arg(script)
            .args([method, &url, key[0], key[1], body])
            .args(headers)
            .output()
            .expect("Python runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text)
    }

    #[track_caller]
    fn ask(&self, key: [&str; 2], request: [&str; 3], headers: &[&str]) -> String {
        let (is_done, text) = self.asked(key, request, headers);
        assert!(is_done, "{request:?}: {text}");
        text
    }

    /// Adds a user who may write into `locked`, and do nothing else.
    fn add_writer(&self) {
        let url = format!("http://127.0.0.1:{}", self.port);
        let added = Command::new(&self.program)
            .args(["admin", "--access", ROOT[0], "--secret", ROOT[1]])
            .args(["--endpoint-url", &url, "create-user", "--role", "user"])
            .args(["--access", WRITER[0], "--secret", WRITER[1]])
            .env("NO_PROXY", "127.0.0.1")
            .output()
            .expect("it runs");
        assert!(added.status.success(), "{added:?}");
        self.ask(ROOT, ["PUT", "locked?policy=", POLICY], &[]);
    }

    fn url(&self, key: &str) -> String {
        format!("s3://127.0.0.1:{}/{key}", self.port)
    }

    fn run(&self, place: &Place, key: [&str; 2], arguments: &[&str]) -> Run {
        let mut command = place.command(arguments);
        let command = command
            .env(
                "AWS_ENDPOINT_URL",
                format!("http://127.0.0.1:{}", self.port),
            )
            .env("AWS_ACCESS_KEY_ID", key[0])
            .env("AWS_SECRET_ACCESS_KEY", key[1])
            .env_remove("AWS_SESSION_TOKEN")
            .env("NO_PROXY", "127.0.0.1");
        Run::of(&command.output().expect("the program runs"))
    }

    #[track_caller]
    fn well(&self, place: &Place, arguments: &[&str]) -> Run {
        let run = self.run(place, ROOT, arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}\n{}\n{}", run.out, run.err);
        run
    }
}

#[test]
fn backups_of_every_kind_go_to_a_store_of_others_and_come_back() {
    let place = place();
    let Some(gateway) = Gateway::start(&place) else {
        return;
    };
    goes_there_and_comes_back(
        &place,
        &|arguments| gateway.run(&place, ROOT, arguments),
        &|key| gateway.url(&format!("plain/{key}")),
        r#"{"s3": {"checksum": "crc64nvme", "tags": {"team": "dba"}}}"#,
    );
    let all = gateway.url("plain/");
    let uploads = gateway.well(&place, &["doctor", "--uploads", &all]);
    assert!(
        uploads.out.contains("none is unfinished"),
        "{}",
        uploads.out
    );
    let missing = gateway.run(&place, ROOT, &["verify", &gateway.url("nothing/x.bak")]);
    assert_eq!(missing.code, Some(1), "{}", missing.out);
}

#[test]
fn a_host_that_may_only_write_leaves_locked_backups_that_only_time_removes() {
    let place = place();
    let Some(gateway) = Gateway::start(&place) else {
        return;
    };
    gateway.add_writer();
    let options =
        r#"{"s3": {"write_only": true, "object_lock": {"mode": "COMPLIANCE", "days": 2}}}"#;
    let secret = ["--passphrase-file", "pass"];
    for (key, how) in [("locked/parts.bak", &PARTS[..]), ("locked/small.bak", &[])] {
        let url = gateway.url(key);
        let backup = [
            "backup",
            "app.db",
            "--to",
            &url,
            "--backup-options",
            options,
        ];
        let backup = [&backup[..], &secret, how].concat();
        let made = gateway.run(&place, WRITER, &backup);
        assert_eq!(made.code, Some(0), "{}", made.err);
        assert!(made.err.contains("not read back"), "{}", made.err);
        let again = gateway.run(&place, WRITER, &backup);
        assert!(again.err.contains("of this name already"), "{}", again.err);
        for refused in [&["verify", &url][..], &["restore", &url, "--to", "r.db"]] {
            let refused = gateway.run(&place, WRITER, &[refused, &secret].concat());
            assert!(refused.err.contains("403 Forbidden"), "{}", refused.err);
        }
        let verify = ["verify", &url];
        gateway.well(&place, &[&verify[..], &secret].concat());
        let lock = gateway.ask(ROOT, ["GET", &format!("{key}?retention="), ""], &[]);
        assert!(lock.contains("COMPLIANCE"), "{lock}");
        // Another version on top of it takes nothing away.
        gateway.ask(WRITER, ["PUT", key, "rubbish"], &[]);
        let hidden = gateway.run(&place, ROOT, &[&verify[..], &secret].concat());
        assert_eq!(hidden.code, Some(1), "{}", hidden.out);
        let list = format!("locked?prefix={}&versions=", &key[7..]);
        let versions = gateway.ask(ROOT, ["GET", &list, ""], &[]);
        let newest = version(&versions, true);
        let oldest = version(&versions, false);
        let delete = |version: &str| {
            let what = format!("{key}?versionId={version}");
            gateway.asked(ROOT, ["DELETE", &what, ""], &[]).0
        };
        assert!(!delete(&oldest), "a locked version was deleted");
        assert!(delete(&newest));
        gateway.well(&place, &[&verify[..], &secret].concat());
    }
    let folder = gateway.url("locked/");
    let expire = [
        "expire",
        &folder,
        "--last",
        "1",
        "--delete",
        "--trust-headers",
    ];
    let kept = gateway.well(&place, &expire);
    assert!(kept.out.contains("is locked until"), "{}", kept.out);
    // What is not locked is hidden only: the bucket has versions.
    for name in ["1.bak", "2.bak"] {
        let url = gateway.url(&format!("locked/v/{name}"));
        gateway.well(&place, &["backup", "app.db", "--to", &url]);
    }
    let versioned = gateway.url("locked/v/");
    let expire = ["expire", &versioned, "--last", "1", "--delete"];
    let hidden = gateway.well(&place, &expire);
    let said = format!("{}{}", hidden.out, hidden.err);
    assert!(said.contains("hidden by a delete marker"), "{said}");
    assert!(said.contains("0.0 MB were freed"), "{said}");
    // This store takes a lock in a bucket that has none, and does not keep it: that is found out.
    let plain = gateway.url("plain/x.bak");
    let options = r#"{"s3": {"object_lock": {"legal_hold": true}}}"#;
    let backup = [
        "backup",
        "app.db",
        "--to",
        &plain,
        "--backup-options",
        options,
    ];
    let refused = gateway.run(&place, ROOT, &backup);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(
        refused.err.contains("has not locked the object"),
        "{}",
        refused.err
    );
}

/// The id of the version that is, or is not, the latest of a listing with two.
fn version(listing: &str, is_latest: bool) -> String {
    let latest = format!("<IsLatest>{is_latest}</IsLatest>");
    let mut entries = listing.split("<Version>").skip(1);
    let entry = entries.find(|entry| entry.contains(&latest));
    let entry = entry.expect(listing);
    let (_, rest) = entry.split_once("<VersionId>").expect("an id");
    rest.split('<').next().expect("its end").to_owned()
}

/// A network between a program and a store.
struct Network {
    running: Program,
    port: u16,
}

impl Network {
    fn to(gateway: &Gateway) -> Option<Self> {
        let program = installed("toxiproxy")?;
        let running = Program::start(|port| {
            let mut command = Command::new(&program);
            command.args([
                "-host",
                "127.0.0.1",
                "-port",
                &port.to_string(),
                "-seed",
                "1",
            ]);
            command
        });
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("its number").port();
        drop(free);
        let network = Self { running, port };
        network.tell(
            "/proxies",
            &format!(
                r#"{{"name": "store", "listen": "127.0.0.1:{port}", "upstream": "127.0.0.1:{}"}}"#,
                gateway.port
            ),
        );
        Some(network)
    }

    /// Lets it have a fault.
    fn fault(&self, kind: &str, toxicity: f64, attributes: &str) {
        let toxic = format!(
            r#"{{"name": "{kind}", "type": "{kind}", "stream": "downstream", "toxicity": {toxicity}, "attributes": {attributes}}}"#
        );
        self.tell("/proxies/store/toxics", &toxic);
    }

    #[track_caller]
    fn tell(&self, path: &str, body: &str) {
        let mut connection =
            TcpStream::connect(("127.0.0.1", self.running.port)).expect("a connection");
        let bytes = body.len();
        write!(
            connection,
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: {bytes}\r\n\r\n{body}"
        )
        .expect("sent");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    }
}

#[test]
fn a_bad_network_costs_time_and_nothing_else() {
    let place = place();
    let Some(mut gateway) = Gateway::start(&place) else {
        return;
    };
    let Some(network) = Network::to(&gateway) else {
        return;
    };
    gateway.port = network.port;
    network.fault("latency", 1.0, r#"{"latency": 50, "jitter": 20}"#);
    // Of the connections, so many end in the middle of what they carry.
    network.fault("reset_peer", 0.2, r#"{"timeout": 400}"#);
    network.fault("limit_data", 0.2, r#"{"bytes": 3000000}"#);
    goes_there_and_comes_back(
        &place,
        &|arguments| gateway.run(&place, ROOT, arguments),
        &|key| gateway.url(&format!("plain/{key}")),
        r#"{"s3": {"concurrency": 3}}"#,
    );
}
