//! Keys that no credential and no variable holds: those of a profile, and those that a machine or container is given.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::objects::{holds, place};
use crate::s3_server::{KEY_ID, SECRET, Server, TOKEN};
use crate::stores::LOGGED;
use crate::support::{Place, Run};

/// Answers as the services of clouds that give keys to machines; counts the keys that it gives.
fn keys() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    let given = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&given);
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let mut lines = BufReader::new(&connection).lines().map_while(Result::ok);
            let first = lines.next().unwrap_or_default();
            let headers: Vec<String> = lines
                .take_while(|line| !line.is_empty())
                .map(|line| line.to_ascii_lowercase())
                .collect();
            let has = |header: &str| headers.iter().any(|line| line.starts_with(header));
            let key = format!(
                r#"{{"AccessKeyId": "{KEY_ID}", "SecretAccessKey": "{SECRET}", "Token": "{TOKEN}", "Code": "Success",
                   "Expiration": "2099-01-01T00:00:00Z", "LastUpdated": "2026-01-01T00:00:00Z", "Type": "AWS-HMAC"}}"#
            );
            let path = first.split(' ').nth(1).unwrap_or_default();
            let (status, body) = match path {
                "/latest/api/token" => ("200 OK", "a-token".to_owned()),
                _ if path.ends_with("security-credentials/") && has("x-aws-ec2-metadata-token") => {
                    ("200 OK", "backup".to_owned())
                }
                _ if path.ends_with("/backup")
                    || path == "/container" && has("authorization: own") =>
                {
                    counted.fetch_add(1, Ordering::SeqCst);
                    ("200 OK", key)
                }
                _ => ("404 Not Found", String::new()),
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _sent = (&connection).write_all(answer.as_bytes());
        }
    });
    (port, given)
}

fn run(place: &Place, server: &Server, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let mut command = place.command(arguments);
    server.endpoint_for(&mut command);
    command.env("HOME", place.path("home"));
    for (name, value) in variables {
        command.env(name, value);
    }
    Run::of(&command.output().expect("the program runs"))
}

#[test]
fn the_keys_of_a_profile_are_read() {
    let (place, server) = place();
    let keys = format!("[night]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\n");
    std::fs::create_dir_all(place.path("home/.aws")).expect("a folder");
    std::fs::write(place.path("home/.aws/credentials"), keys).expect("a file");
    let url = server.url("x.bak");
    let backup = ["backup", "app.db", "--to", &url];
    let without = run(&place, &server, &[], &backup);
    assert!(
        without.err.contains("no key for this URL"),
        "{}",
        without.err
    );
    let made = run(&place, &server, &[("AWS_PROFILE", "night")], &backup);
    assert_eq!(made.code, Some(0), "{}", made.err);
}

#[test]
fn a_machine_and_a_container_are_given_keys_that_nobody_stores() {
    let (place, server) = place();
    let (port, given) = keys();
    let url = server.url("x.bak");
    let name = url.trim_end_matches("/x.bak");
    let set = ["credential", "set", name, "--managed-identity"];
    let set = run(&place, &server, &[], &[&set[..], &LOGGED].concat());
    assert_eq!(set.code, Some(0), "{}", set.err);
    let metadata = format!("http://127.0.0.1:{port}");
    let machine = [("AWS_METADATA_ENDPOINT", metadata.as_str())];
    let backup = ["backup", "app.db", "--to", &url];
    let made = run(&place, &server, &machine, &[&backup[..], &LOGGED].concat());
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert!(given.load(Ordering::SeqCst) > 0);
    let both = [
        "credential",
        "set",
        name,
        "--managed-identity",
        "--key-file",
        "x",
    ];
    let both = run(&place, &server, &[], &[&both[..], &LOGGED].concat());
    assert_eq!(both.code, Some(2), "{}", both.err);
    // Without an instance, a container names its service itself.
    std::fs::write(place.path("token"), "own").expect("a file");
    let (service, token) = (format!("{metadata}/container"), place.text("token"));
    let container = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", service.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.as_str()),
    ];
    let verified = run(&place, &server, &container, &["verify", &url]);
    assert_eq!(verified.code, Some(0), "{}", verified.err);
    let log = std::fs::read_to_string(place.path("log")).expect("a log");
    for secret in [SECRET, TOKEN] {
        assert!(!log.contains(secret), "it is in the log");
        assert!(
            !holds(&place.path("instance"), secret.as_bytes()),
            "it is kept"
        );
    }
    for said in [set, made, verified] {
        assert!(!(said.out + &said.err).contains(SECRET));
    }
}
