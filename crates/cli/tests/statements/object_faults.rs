//! Backups in object storage while the store, the network or the program fails.

use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::objects::{backup, command, place, run, well};
use crate::s3_server::{Action, Fault, Server};
use crate::support::{Place, Run};

fn fault(method: &'static str, target: &'static str, times: usize, action: Action) -> Fault {
    Fault {
        method,
        target,
        after: 0,
        times,
        action,
    }
}

/// A store with two backups.
fn two_backups() -> (Place, Server) {
    let (place, server) = place();
    for name in ["f/1.bak", "f/2.bak"] {
        let made = backup(&place, &server, &[&server.url(name)], &[]);
        assert_eq!(made.code, Some(0), "{}", made.err);
    }
    (place, server)
}

/// Deletes the first of them.
fn expire(place: &Place, server: &Server) -> Run {
    run(
        place,
        server,
        &["expire", &server.url("f/"), "--last", "1", "--delete"],
    )
}

#[track_caller]
fn restores(place: &Place, server: &Server, url: &str) {
    well(place, server, &["restore", url, "--to", "r.db"]);
    let read = |name: &str| std::fs::read(place.path(name)).expect(name);
    assert!(read("app.db") == read("r.db"), "not byte for byte");
    std::fs::remove_file(place.path("r.db")).expect("a file");
}

#[test]
fn a_store_that_is_busy_or_loses_connections_is_asked_again() {
    let (place, server) = place();
    for (number, faulty) in [
        fault("PUT", "partNumber=", 3, Action::Refuse(503, "SlowDown")),
        fault("PUT", "partNumber=2", 2, Action::CutRequest),
        fault("PUT", "partNumber=1", 1, Action::LoseAnswer),
        fault("POST", "uploads=", 2, Action::Refuse(500, "InternalError")),
        fault("POST", "uploadId=", 2, Action::Refuse(503, "SlowDown")),
        fault("HEAD", "", 2, Action::Refuse(503, "SlowDown")),
    ]
    .into_iter()
    .enumerate()
    {
        server.fail(faulty);
        let url = server.url(&format!("{number}.bak"));
        let made = backup(&place, &server, &[&url], &[]);
        assert_eq!(made.code, Some(0), "{number}: {}", made.err);
        server.fail(fault("GET", "", 2, Action::CutAnswer));
        server.fail(fault("GET", "", 2, Action::Refuse(503, "SlowDown")));
        restores(&place, &server, &url);
    }
    assert_eq!(server.unfinished_uploads(), 0);
}

#[test]
fn a_redirection_is_not_followed() {
    let (place, server) = place();
    let url = server.url("a.bak");
    assert_eq!(backup(&place, &server, &[&url], &[]).code, Some(0));
    let other = Server::start();
    other.put("a.bak", &server.content("a.bak").expect("an object"));
    for method in ["HEAD", "GET"] {
        let to = format!("http://127.0.0.1:{}/bucket/a.bak", other.port());
        server.fail(fault(method, "", 9, Action::Redirect(to)));
        let run = match method {
            "HEAD" => backup(&place, &server, &[&url], &["--format"]),
            _ => run(&place, &server, &["verify", &url]),
        };
        assert_eq!(run.code, Some(1), "{method}: {} {}", run.out, run.err);
        assert!(run.err.contains("307"), "{}", run.err);
        assert_eq!(other.requests(), [""; 0], "{method}");
        server.forgive();
    }
}

#[test]
fn nothing_that_is_not_encrypted_goes_to_a_proxy() {
    let (place, server) = place();
    let proxy = crate::s3_server::Server::start();
    let mut command = place.command(&["backup", "other.db", "--to", &server.url("a.bak")]);
    server.key_for(&mut command);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        command.env(name, format!("http://127.0.0.1:{}", proxy.port()));
    }
    command.env_remove("NO_PROXY").env_remove("no_proxy");
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(proxy.requests(), [""; 0]);
    assert_eq!(server.keys(), ["a.bak"]);
}

#[test]
fn a_completion_whose_answer_is_lost_is_recognized_by_what_is_there() {
    let (place, server) = place();
    // Repeated, the completion of an upload is answered with 412 or, with FORMAT, 404.
    for (key, how) in [("a.bak", &[][..]), ("b.bak", &["--format"])] {
        server.fail(fault("POST", "uploadId=", 1, Action::LoseAnswer));
        let url = server.url(key);
        let made = backup(&place, &server, &[&url], how);
        assert_eq!(made.code, Some(0), "{key}: {}", made.err);
        restores(&place, &server, &url);
    }
    // And a backup of one request.
    server.fail(fault("PUT", "/c.bak?", 1, Action::LoseAnswer));
    well(
        &place,
        &server,
        &["backup", "other.db", "--to", &server.url("c.bak")],
    );
}

#[test]
fn an_object_that_another_backup_put_there_meanwhile_is_not_overwritten() {
    let (place, server) = place();
    for (key, method, target) in [
        ("a.bak", "POST", "a.bak?uploadId="),
        ("small.bak", "PUT", "/small.bak?"),
    ] {
        let theirs = b"another backup".to_vec();
        server.fail(fault(method, target, 1, Action::Replace(theirs.clone())));
        let url = server.url(key);
        let made = match key {
            "a.bak" => backup(&place, &server, &[&url], &[]),
            _ => run(&place, &server, &["backup", "other.db", "--to", &url]),
        };
        assert_eq!(made.code, Some(1), "{}", made.out);
        assert!(made.err.contains("in the meantime"), "{}", made.err);
        assert_eq!(server.content(key), Some(theirs));
    }
    assert_eq!(server.unfinished_uploads(), 0);
}

#[test]
fn a_stripe_that_cannot_be_completed_takes_the_others_back() {
    let (place, server) = place();
    let urls = ["1.bak", "2.bak"].map(|key| server.url(key));
    server.fail(fault(
        "POST",
        "/2.bak?uploadId=",
        1,
        Action::Replace(b"theirs".to_vec()),
    ));
    let made = backup(&place, &server, &[&urls[0], &urls[1]], &[]);
    assert_eq!(made.code, Some(1), "{}", made.out);
    assert_eq!(server.keys(), ["2.bak"]);
    // Where that overwrote an earlier backup, the message says what is left.
    let made = backup(&place, &server, &[&urls[0], &urls[1]], &["--format"]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    server.fail(fault(
        "POST",
        "/2.bak?uploadId=",
        1,
        Action::Refuse(403, "AccessDenied"),
    ));
    let made = backup(&place, &server, &[&urls[0], &urls[1]], &["--format"]);
    assert_eq!(made.code, Some(1), "{}", made.out);
    assert!(
        made.err.contains("nor this one is complete"),
        "{}",
        made.err
    );
    assert!(
        made.err.contains(&format!("the new one: '{}'", urls[0])),
        "{}",
        made.err
    );
    assert_eq!(
        run(&place, &server, &["verify", &urls[0], &urls[1]]).code,
        Some(1)
    );
}

#[test]
fn an_object_that_changes_during_a_restore_is_an_error_with_that_name() {
    let (place, server) = place();
    let url = &server.url("a.bak");
    assert_eq!(backup(&place, &server, &[url], &[]).code, Some(0));
    let content = server.content("a.bak").expect("an object");
    server.requests();
    restores(&place, &server, url);
    let requests = server.requests();
    let reads = requests.iter().filter(|request| request.starts_with("GET"));
    let mut replacing = fault("GET", "", 1, Action::Replace(content));
    // The last part of the data.
    replacing.after = reads.count() - 1;
    server.fail(replacing);
    let restored = run(&place, &server, &["restore", url, "--to", "r.db"]);
    assert_eq!(restored.code, Some(1), "{}", restored.out);
    let says = "another object has been put at this URL while it was read";
    assert!(restored.err.contains(says), "{}", restored.err);
    assert!(!place.path("r.db").exists());
}

#[test]
fn an_object_that_the_store_does_not_give_away_is_not_passed_over_for_an_older_one() {
    let (place, server) = two_backups();
    let folder = server.url("f/");
    let newest = server.url("f/2.bak");
    for after in 0..3 {
        for refused in [&folder, &newest] {
            server.fail(Fault {
                after,
                ..fault("GET", "f/2.bak", 99, Action::Refuse(403, "AccessDenied"))
            });
            let run = run(&place, &server, &["restore", refused, "--to", "r.db"]);
            server.forgive();
            assert_eq!(run.code, Some(1), "{after}: {}{}", run.out, run.err);
            assert!(run.err.contains("AccessDenied"), "{after}: {}", run.err);
            let is_named = run.err.contains("Msg 50315");
            assert!(is_named || after > 1 || refused == &newest, "{}", run.err);
            assert!(!place.path("r.db").exists());
        }
    }
    restores(&place, &server, &folder);
}

#[test]
fn an_answer_that_is_no_list_of_objects_is_an_error() {
    let (place, server) = place();
    let made = backup(&place, &server, &[&server.url("f/1.bak")], &[]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let folder = server.url("f/");
    for arguments in [
        &["restore", &folder, "--to", "r.db"][..],
        &["expire", &folder, "--last", "1", "--delete"],
        &["fleet", &folder],
        &["check", "--media", &folder],
        &["ship", &folder, "--to", "s.db", "--once"],
    ] {
        let answered = Action::Refuse(200, "InternalError");
        server.fail(fault("GET", "list-type=2", 99, answered));
        let run = run(&place, &server, arguments);
        server.forgive();
        assert_ne!(run.code, Some(0), "{arguments:?}: {}", run.out);
        let said = format!("{}{}", run.out, run.err);
        assert!(said.contains("InternalError"), "{arguments:?}: {said}");
    }
    assert!(server.content("f/1.bak").is_some());
}

#[test]
fn a_list_that_repeats_its_pages_is_an_error() {
    let (place, server) = two_backups();
    // On two pages.
    for number in 0..30 {
        server.put(&format!("f/z{number}"), b"");
    }
    server.list_in_circles();
    let folder = server.url("f/");
    for arguments in [
        &["restore", &folder, "--to", "r.db"][..],
        &["expire", &folder, "--last", "1", "--delete"],
        &["check", "--media", &folder],
    ] {
        let run = run(&place, &server, arguments);
        assert_ne!(run.code, Some(0), "{arguments:?}: {}", run.out);
        let said = format!("{}{}", run.out, run.err);
        assert!(said.contains("it repeats pages"), "{arguments:?}: {said}");
    }
    assert!(server.content("f/1.bak").is_some());
}

#[test]
fn an_object_that_the_store_confirms_and_does_not_have_is_no_backup() {
    let (place, server) = place();
    // What fits one part is one request.
    for (part_bytes, method, target) in [
        ("5242880", "POST", "uploadId="),
        ("20971520", "PUT", "a.bak"),
    ] {
        server.fail(fault(method, target, 1, Action::Forget));
        let made = run(
            &place,
            &server,
            &[
                "backup",
                "app.db",
                "--compress",
                "none",
                "--max-transfer-size",
                part_bytes,
                "--to",
                &server.url("a.bak"),
            ],
        );
        assert_eq!(made.code, Some(1), "{method}: {}", made.out);
        assert!(made.err.contains("has none of this name"), "{}", made.err);
        assert!(!made.err.contains("another object"), "{}", made.err);
        assert!(server.keys().is_empty(), "{method}");
    }
}

#[test]
fn an_object_of_which_the_store_loses_a_part_is_taken_back_and_no_other_one_is_blamed() {
    let (place, server) = place();
    let url = server.url("a.bak");
    assert_eq!(backup(&place, &server, &[&url], &[]).code, Some(0));
    let requests = server.requests();
    let parts = requests.iter().filter(|one| one.contains("partNumber="));
    let last: &'static str = format!("partNumber={}&", parts.count()).leak();
    for (key, how) in [
        ("b.bak", &[][..]),
        ("c.bak", &["--format"]),
        ("a.bak", &["--format"]),
    ] {
        server.fail(fault("PUT", last, 1, Action::Forget));
        let made = backup(&place, &server, &[&server.url(key)], how);
        assert_eq!(made.code, Some(1), "{key}: {}", made.out);
        for says in [
            "bytes of the object that it was sent",
            "it has been deleted again",
        ] {
            assert!(made.err.contains(says), "{key}: {}", made.err);
        }
        assert!(!made.err.contains("FORMAT"), "{key}: {}", made.err);
        assert!(!made.err.contains("another object"), "{key}: {}", made.err);
        assert!(server.content(key).is_none(), "{key}");
    }
    assert_eq!(server.unfinished_uploads(), 0);
}

#[test]
fn a_store_that_knows_no_conditions_says_so_at_once_and_takes_backups_with_format() {
    let (place, server) = place();
    let url = server.url("a.bak");
    let unknown = Action::Refuse(501, "NotImplemented");
    server.fail(fault("POST", "uploadId=", 1, unknown.clone()));
    let refused = backup(&place, &server, &[&url], &[]);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    for says in ["501 Not Implemented", "with FORMAT only"] {
        assert!(refused.err.contains(says), "{}", refused.err);
    }
    assert!(!refused.err.contains("retries"), "{}", refused.err);
    // Over nothing, and over that.
    for _ in 0..2 {
        server.fail(fault("POST", "uploadId=", 1, unknown.clone()));
        let made = backup(&place, &server, &[&url], &["--format"]);
        assert_eq!(made.code, Some(0), "{}", made.err);
        restores(&place, &server, &url);
    }
    assert_eq!(server.unfinished_uploads(), 0);
}

#[test]
fn a_certificate_that_is_not_accepted_is_said_at_once_and_with_what_to_do() {
    let key = rcgen::KeyPair::generate().expect("a key");
    let made = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("names");
    let certificate = made.self_signed(&key).expect("a certificate");
    let private = rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let chain = vec![certificate.der().clone()];
    let config = rustls::ServerConfig::builder().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(chain, private).expect("it fits"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.expect("a connection");
            counted.fetch_add(1, Ordering::Relaxed);
            let tls = rustls::ServerConnection::new(Arc::clone(&config));
            // It is refused.
            let _refused = tls.expect("a connection").complete_io(&mut connection);
        }
    });
    let (place, server) = place();
    let url = format!("s3://127.0.0.1:{port}/bucket/a.bak");
    let mut command = command(&place, &server, &["verify", &url]);
    let output = command.env_remove("AWS_ENDPOINT_URL").output();
    let output = output.expect("it runs");
    let said = String::from_utf8(output.stderr).expect("a text");
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in [
        "a certificate that is not accepted",
        "SSL_CERT_FILE",
        "UnknownIssuer",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!said.contains("retries"), "{said}");
    assert!(connections.load(Ordering::Relaxed) <= 2, "{said}");
}

#[test]
fn what_a_store_has_confirmed_is_not_lost_because_it_cannot_be_read_back_at_once() {
    let (place, server) = place();
    // More often than a question before a run is repeated.
    let busy = Action::Refuse(503, "SlowDown");
    server.fail(fault("GET", "busy.bak", 7, busy));
    let made = backup(&place, &server, &[&server.url("busy.bak")], &[]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    restores(&place, &server, &server.url("busy.bak"));
    let url = &server.url("hidden.bak");
    let denied = Action::Refuse(403, "AccessDenied");
    server.fail(fault("GET", "hidden.bak", usize::MAX, denied));
    let made = backup(&place, &server, &[url], &[]);
    assert_eq!(made.code, Some(1), "{}", made.out);
    for says in [
        "50361",
        "could not be read back",
        "AccessDenied",
        url.as_str(),
    ] {
        assert!(made.err.contains(says), "{says}: {}", made.err);
    }
    assert!(!made.err.contains("run it again"), "{}", made.err);
    server.forgive();
    restores(&place, &server, url);
    // One that is not there is lost.
    let url = &server.url("lost.bak");
    let missing = Action::Refuse(404, "NoSuchKey");
    server.fail(fault("GET", "lost.bak", usize::MAX, missing));
    let made = backup(&place, &server, &[url], &[]);
    assert_eq!(made.code, Some(1), "{}", made.out);
    assert!(made.err.contains("50070"), "{}", made.err);
}

#[test]
fn an_object_that_was_put_there_meanwhile_is_not_deleted_for_the_one_before() {
    let (place, server) = two_backups();
    let newer = server.content("f/2.bak").expect("an object");
    server.fail(fault("DELETE", "f/1.bak", 1, Action::Replace(newer)));
    let run = expire(&place, &server);
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    let said = format!("{}{}", run.out, run.err);
    assert!(said.contains("another object has been put there"), "{said}");
    assert!(server.content("f/1.bak").is_some());
}

#[test]
fn where_a_store_knows_no_condition_on_deletions_what_is_there_is_compared_before_each() {
    // The look before which another object is put there; before the first one, where the store ignores the condition.
    for replaced_at in [None, Some(0), Some(1)] {
        let (place, server) = two_backups();
        let unknown = Action::Refuse(501, "NotImplemented");
        match replaced_at {
            Some(0) => server.ignore_conditions(),
            _ => server.fail(fault("DELETE", "f/1.bak", 1, unknown)),
        }
        if let Some(after) = replaced_at {
            let busy = Action::Refuse(503, "SlowDown");
            server.fail(fault("DELETE", "f/1.bak", after, busy));
            let newer = server.content("f/2.bak").expect("an object");
            server.fail(Fault {
                after,
                ..fault("HEAD", "f/1.bak", 1, Action::Replace(newer))
            });
        }
        let run = expire(&place, &server);
        let is_replaced = replaced_at.is_some();
        let code = Some(i32::from(is_replaced));
        assert_eq!(run.code, code, "{}{}", run.out, run.err);
        assert_eq!(server.content("f/1.bak").is_some(), is_replaced);
        assert!(server.content("f/2.bak").is_some());
    }
}

#[test]
fn an_object_that_goes_between_its_listing_and_the_look_at_it_hides_nothing() {
    let (place, server) = two_backups();
    for method in ["GET", "HEAD"] {
        let gone = Action::Refuse(404, "NoSuchKey");
        server.fail(fault(method, "f/1.bak", 1, gone));
    }
    restores(&place, &server, &server.url("f/"));
    // What the store still has is not passed over.
    let gone = Action::Refuse(404, "NoSuchKey");
    server.fail(fault("GET", "f/1.bak", usize::MAX, gone));
    let folder = server.url("f/");
    let refused = run(&place, &server, &["restore", &folder, "--to", "r.db"]);
    assert!(refused.err.contains("50315"), "{}", refused.err);
}

#[test]
fn what_a_store_lists_without_quotation_marks_is_restored_and_deleted() {
    let (place, server) = two_backups();
    server.list_bare_tags();
    let run = expire(&place, &server);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    assert!(server.content("f/1.bak").is_none());
    restores(&place, &server, &server.url("f/"));
}

#[test]
fn a_deletion_whose_answer_was_lost_is_no_failure() {
    let (place, server) = two_backups();
    server.fail(fault("DELETE", "f/1.bak", 1, Action::LoseAnswer));
    // As where there are versions.
    server.fail(fault(
        "DELETE",
        "f/1.bak",
        1,
        Action::Refuse(412, "PreconditionFailed"),
    ));
    let run = expire(&place, &server);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    assert!(server.content("f/1.bak").is_none());
}

#[test]
fn what_the_store_refuses_is_said_in_its_words_and_with_what_to_do() {
    let (place, server) = place();
    let url = &server.url("a.bak");
    for (faulty, says) in [
        (
            fault("HEAD", "", 1, Action::Refuse(403, "AccessDenied")),
            "403 Forbidden; check the key (",
        ),
        (
            fault(
                "POST",
                "uploads=",
                1,
                Action::Refuse(403, "RequestTimeTooSkewed"),
            ),
            "RequestTimeTooSkewed: In words: RequestTimeTooSkewed (request R4711); set the clock",
        ),
        (
            fault(
                "PUT",
                "partNumber=3",
                1,
                Action::Refuse(403, "ExpiredToken"),
            ),
            "renew AWS_SESSION_TOKEN",
        ),
        (
            fault(
                "POST",
                "uploads=",
                1,
                Action::Refuse(400, "AuthorizationHeaderMalformed"),
            ),
            "name the region in AWS_REGION",
        ),
        (
            fault(
                "POST",
                "uploads=",
                9,
                Action::Refuse(301, "PermanentRedirect"),
            ),
            "the bucket is in another region: name the host of that region",
        ),
        (
            fault(
                "POST",
                "uploadId=",
                9,
                Action::Refuse(409, "ConditionalRequestConflict"),
            ),
            "409 Conflict, ConditionalRequestConflict: In words: ConditionalRequestConflict (request R4711); no object has that name",
        ),
        (
            fault(
                "POST",
                "uploadId=",
                9,
                Action::Refuse(412, "PreconditionFailed"),
            ),
            "412 Precondition Failed, PreconditionFailed: In words: PreconditionFailed (request R4711); no object has that name",
        ),
        (
            fault(
                "PUT",
                "partNumber=1",
                1,
                Action::Refuse(404, "NoSuchUpload"),
            ),
            "404 Not Found, NoSuchUpload",
        ),
    ] {
        server.fail(faulty);
        let made = backup(&place, &server, &[url], &[]);
        assert_eq!(made.code, Some(1), "{says}: {}", made.out);
        assert!(made.err.contains(says), "{says}: {}", made.err);
        assert!(made.err.contains(url), "{}", made.err);
        assert!(
            server.keys().is_empty() && server.unfinished_uploads() == 0,
            "{says}"
        );
        server.forgive();
    }
    let bucket = url.replace("/backups/", "/nothing/");
    let made = backup(&place, &server, &[&bucket], &[]);
    assert!(made.err.contains("NoSuchBucket"), "{}", made.err);
    let strange = run(&place, &server, &["verify", &bucket]);
    assert!(strange.err.contains("NoSuchBucket"), "{}", strange.err);
    assert!(!strange.err.contains("no object"), "{}", strange.err);
    let absent = run(&place, &server, &["verify", url]);
    assert!(
        absent.err.contains("There is no object at this URL"),
        "{}",
        absent.err
    );
    assert!(!absent.err.contains("The folder"), "{}", absent.err);
    let mut without_key = place.command(&["verify", url]);
    let without_key = without_key.env_remove("AWS_ACCESS_KEY_ID").output();
    let without_key = String::from_utf8(without_key.expect("it runs").stderr).expect("a text");
    assert!(
        without_key.contains("set AWS_ACCESS_KEY_ID"),
        "{without_key}"
    );
}

/// A store that stalls is given 80 seconds, and asked again.
#[test]
fn one_signal_ends_a_command_that_waits_for_a_store_to_read() {
    let (place, server) = two_backups();
    let (url, folder) = (server.url("f/1.bak"), server.url("f/"));
    let commands: [&[&str]; 4] = [
        &["verify", &url],
        &["header", &url],
        &["restore", &url, "--to", "x.db"],
        &["restore", &folder, "--to", "x.db"],
    ];
    for words in commands {
        for method in ["GET", "HEAD"] {
            server.fail(fault(method, "", 99, Action::Hang));
        }
        let mut child = command(&place, &server, words);
        child.stdout(Stdio::null()).stderr(Stdio::piped());
        let child = child.spawn().expect("it starts");
        std::thread::sleep(Duration::from_secs(1));
        let (begun, id) = (Instant::now(), child.id().to_string());
        let sent = std::process::Command::new("kill")
            .args(["-TERM", &id])
            .status();
        assert!(sent.expect("kill").success());
        let ended = child.wait_with_output().expect("it ends");
        assert!(begun.elapsed() < Duration::from_secs(20), "{words:?}");
        assert_eq!(ended.status.code(), Some(1), "{words:?}");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(said.contains("was asked to end"), "{words:?}: {said}");
        server.forgive();
    }
    assert!(!place.path("x.db").exists());
}

#[test]
fn a_backup_that_is_killed_leaves_nothing_that_could_be_taken_for_one() {
    let (place, server) = place();
    let url = &server.url("a.bak");
    for (method, target) in [("PUT", "partNumber=2"), ("POST", "uploadId=")] {
        server.fail(fault(method, target, 1, Action::Hang));
        let mut command = place.command(&["backup", "app.db", "--compress", "none", "--to", url]);
        let command = command.args(["--max-transfer-size", "5242880"]);
        let mut child = server
            .key_for(command)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let begun = Instant::now();
        let mut seen = Vec::new();
        let hangs = |request: &String| request.starts_with(method) && request.contains(target);
        while !seen.iter().any(hangs) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{seen:?}");
            std::thread::sleep(Duration::from_millis(20));
            seen.extend(server.requests());
        }
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert!(server.keys().is_empty());
        assert_eq!(run(&place, &server, &["header", url]).code, Some(1));
    }
    assert_eq!(server.unfinished_uploads(), 2);
    let folder = &server.url("");
    let doctor = |how: &[&str]| {
        run(
            &place,
            &server,
            &[&["doctor", "--uploads", folder][..], how].concat(),
        )
    };
    let listed = doctor(&[]);
    assert_eq!(
        (listed.code, listed.out.matches(url.as_str()).count()),
        (Some(0), 2),
        "{}",
        listed.out
    );
    // They may be those of a backup that still runs.
    doctor(&["--clean", "--older-than", "100000d"]);
    assert_eq!(server.unfinished_uploads(), 2);
    let other = server.url("elsewhere/");
    let below = run(
        &place,
        &server,
        &[
            "doctor",
            "--uploads",
            &other,
            "--clean",
            "--older-than",
            "1",
        ],
    );
    assert!(below.out.contains("none is unfinished"), "{}", below.out);
    let cleaned = doctor(&["--clean", "--older-than", "1"]);
    assert_eq!(
        cleaned.out.matches("; aborted").count(),
        2,
        "{}",
        cleaned.out
    );
    assert_eq!(server.unfinished_uploads(), 0);
    server.fail(fault(
        "GET",
        "uploads=",
        1,
        Action::Refuse(403, "AccessDenied"),
    ));
    let refused = doctor(&[]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.out.contains("403 Forbidden, AccessDenied"),
        "{}",
        refused.out
    );
    assert_eq!(backup(&place, &server, &[url], &[]).code, Some(0));
    restores(&place, &server, url);
}
