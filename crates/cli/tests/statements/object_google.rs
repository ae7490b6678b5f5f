//! Backups in a store of Google's kind: `gs://` as a medium. The store is our own: there is none of others that takes
//! what Google's takes.

use std::time::Duration;

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use base64ct::{Base64, Encoding as _};

use crate::objects::holds;
use crate::s3_server::{Action, BUCKET, Fault, Server};
use crate::stores::{self, LOGGED, PARTS, goes_there_and_comes_back};
use crate::support::{Place, Run, rows};

/// A folder with a database of several parts and the key of a service account.
fn place() -> (Place, Server) {
    let place = stores::place();
    let pair = KeyPair::generate(KeySize::Rsa2048).expect("a key");
    let der: Pkcs8V1Der<'_> = pair.as_der().expect("its bytes");
    let coded = Base64::encode_string(der.as_ref());
    let lines: Vec<String> = coded
        .as_bytes()
        .chunks(64)
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    let key = serde_json::json!({
        "type": "service_account",
        "client_email": "backup@project.iam.gserviceaccount.com",
        "private_key_id": "4711",
        "private_key":
            format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n")),
    });
    std::fs::write(place.path("key.json"), key.to_string()).expect("a file");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(place.path("key.json"), private).expect("its mode");
    (place, Server::start_google())
}

fn url(key: &str) -> String {
    format!("gs://{BUCKET}/{key}")
}

/// Runs a command with the key in the environment, or without.
fn run_with(place: &Place, server: &Server, has_key: bool, arguments: &[&str]) -> Run {
    let mut command = place.command(arguments);
    command
        .env(
            "STORAGE_EMULATOR_HOST",
            format!("127.0.0.1:{}", server.port()),
        )
        .env("HOME", place.path("home"))
        .env("NO_PROXY", "127.0.0.1");
    if has_key {
        command.env("GOOGLE_APPLICATION_CREDENTIALS", place.path("key.json"));
    }
    Run::of(&command.output().expect("the program runs"))
}

fn run(place: &Place, server: &Server, arguments: &[&str]) -> Run {
    run_with(place, server, true, arguments)
}

#[track_caller]
fn well(place: &Place, server: &Server, arguments: &[&str]) -> Run {
    let run = run(place, server, arguments);
    assert_eq!(run.code, Some(0), "{arguments:?}\n{}\n{}", run.out, run.err);
    run
}

#[test]
fn backups_of_every_kind_go_to_google_and_come_back() {
    let (place, server) = place();
    goes_there_and_comes_back(
        &place,
        &|arguments| run(&place, &server, arguments),
        &|key| url(&format!("prod/{key}")),
        r#"{"gs": {"storage_class": "NEARLINE"}}"#,
    );
    assert!(server.seen().contains("NEARLINE"));
    // Without a slash, it is a folder all the same.
    let all = url("prod");
    let restore = ["restore", &all, "--of", "app", "--to", "again.db"];
    well(
        &place,
        &server,
        &[&restore[..], &["--passphrase-file", "pass"]].concat(),
    );
    assert_eq!(rows(&place.path("again.db")), 14_001);
    assert_eq!(server.unfinished_uploads(), 0);
    let keys = server.keys();
    assert!(!keys.iter().any(|key| key.contains("claim")), "{keys:?}");
    // What stays is read back first, for which it must be readable.
    let plain = url("plain/");
    for _ in 0..2 {
        well(&place, &server, &["backup", "app.db", "--to", &plain]);
    }
    let expire = ["expire", &plain, "--last", "1", "--delete"];
    well(&place, &server, &expire);
    let left = server.keys().into_iter();
    assert_eq!(left.filter(|key| key.starts_with("plain/")).count(), 1);
    let wrong = [
        "--backup-options",
        r#"{"s3": {"storage_class": "NEARLINE"}}"#,
        "--format",
    ];
    let backup = ["backup", "app.db", "--to", &url("prod/1 a.bak")];
    let refused = run(&place, &server, &[&backup[..], &wrong].concat());
    assert!(
        refused.err.contains("'s3' says nothing of"),
        "{}",
        refused.err
    );
}

#[test]
fn a_credential_is_the_json_of_a_service_account_and_its_key_is_nowhere() {
    let (place, server) = place();
    let url = url("prod/x.bak");
    let backup = ["backup", "app.db", "--to", &url];
    let backup = [&backup[..], &LOGGED].concat();
    let without = run_with(&place, &server, false, &backup);
    assert!(
        without.err.contains("GOOGLE_APPLICATION_CREDENTIALS"),
        "{}",
        without.err
    );
    let name = format!("gs://{BUCKET}");
    let set = ["credential", "set", &name, "--key-file", "key.json"];
    let set = [&set[..], &LOGGED].concat();
    let made = run_with(&place, &server, false, &set);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let stored = run_with(&place, &server, false, &backup);
    assert_eq!(stored.code, Some(0), "{}", stored.err);
    let verify = [&["verify", &url][..], &LOGGED].concat();
    let verified = run_with(&place, &server, false, &verify);
    assert_eq!(verified.code, Some(0), "{}", verified.err);
    let key = std::fs::read_to_string(place.path("key.json")).expect("a file");
    let key: serde_json::Value = serde_json::from_str(&key).expect("JSON");
    let line = key["private_key"].as_str().expect("a key").lines().nth(3);
    let secret = line.expect("a line");
    assert!(!holds(&place.path("instance"), secret.as_bytes()));
    let log = std::fs::read_to_string(place.path("log")).expect("a log");
    assert!(!log.contains(secret) && !log.contains("Bearer"));
    for said in [made, stored, verified] {
        assert!(!(said.out + &said.err).contains(secret));
    }
}

#[test]
fn of_two_backups_to_one_name_the_second_is_refused_until_the_claim_is_old() {
    let (place, server) = place();
    let name = "prod/x.bak";
    let url = url(name);
    let backup = [&["backup", "app.db", "--to", &url][..], &PARTS].concat();
    // As a killed run leaves it.
    let claim = format!("{name}.windlass-claim");
    server.put(&claim, b"another");
    let refused = run(&place, &server, &backup);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(
        refused.err.contains("another backup to this name"),
        "{}",
        refused.err
    );
    assert!(server.content(name).is_none());
    assert_eq!(server.unfinished_uploads(), 0);
    server.age(&claim, Duration::from_secs(8 * 86_400));
    well(&place, &server, &backup);
    assert!(server.content(&claim).is_none());
    // The object appears while it is written.
    server.remove(name);
    let appears = Fault {
        method: "PUT",
        target: "partNumber=2",
        after: 0,
        times: 1,
        action: Action::Replace(b"a stranger's".to_vec()),
    };
    server.fail(appears);
    let refused = run(&place, &server, &backup);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert_eq!(server.content(name).as_deref(), Some(&b"a stranger's"[..]));
    assert_eq!(server.keys(), [name]);
}

#[test]
fn a_lost_answer_to_the_completion_or_the_claim_decides_nothing() {
    let (place, server) = place();
    for (index, (method, target)) in [
        ("POST", "uploadId="),
        ("PUT", "windlass-claim"),
        ("PUT", "partNumber=1"),
    ]
    .into_iter()
    .enumerate()
    {
        server.fail(Fault {
            method,
            target,
            after: 0,
            times: 1,
            action: Action::LoseAnswer,
        });
        let url = url(&format!("lost/{index}.bak"));
        let backup = [&["backup", "app.db", "--to", &url][..], &PARTS].concat();
        well(&place, &server, &backup);
        well(&place, &server, &["verify", &url]);
    }
    let keys = server.keys();
    assert!(!keys.iter().any(|key| key.contains("claim")), "{keys:?}");
}

#[test]
fn a_backup_with_format_replaces_the_generation_that_it_found_and_no_other() {
    let (place, server) = place();
    let (name, theirs) = ("prod/x.bak", &b"a stranger's"[..]);
    let url = url(name);
    // By one request, on the condition; and by an upload in parts, which is completed after a look.
    for (database, target) in [
        ("other.db", "/prod/x.bak?"),
        ("app.db", "/prod/x.bak?partNumber=2"),
    ] {
        let backup = ["backup", database, "--to", &url, "--format"];
        let backup = [&backup[..], &PARTS].concat();
        for was_there in [false, true] {
            match was_there {
                true => server.put(name, b"an earlier one"),
                false => server.remove(name),
            }
            server.fail(Fault {
                method: "PUT",
                target,
                after: 0,
                times: 1,
                action: Action::Replace(theirs.to_vec()),
            });
            let refused = run(&place, &server, &backup);
            assert_eq!(refused.code, Some(1), "{target}: {}", refused.out);
            assert!(refused.err.contains("in the meantime"), "{}", refused.err);
            assert_eq!(server.content(name).as_deref(), Some(theirs), "{target}");
        }
        well(&place, &server, &backup);
        well(&place, &server, &["verify", &url]);
    }
    assert_eq!(server.unfinished_uploads(), 0);
}
