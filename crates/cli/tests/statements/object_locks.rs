//! Backups under object lock, and by a host that may only write.

use jiff::{SignedDuration, Timestamp};

use crate::objects::{place, run, well};
use crate::s3_server::{Action, Fault, Server};
use crate::support::{Place, Run};

const INSTANCE: [&str; 2] = ["--instance", "instance"];

/// Backs up by a statement, which has the option.
fn backup(place: &Place, server: &Server, key: &str, lock: &str, how: &str) -> Run {
    let url = server.url(key);
    let script = format!(
        "BACKUP DATABASE app TO URL = '{url}' WITH {how} NO_COMPRESSION, MAXTRANSFERSIZE = 5242880, \
         BACKUP_OPTIONS = '{{\"s3\": {{\"object_lock\": {lock}}}}}'"
    );
    let sql = ["sql", "-Q", &script, "--attach", "app=app.db"];
    run(place, server, &[&sql[..], &INSTANCE].concat())
}

#[track_caller]
fn made(run: &Run) {
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
}

/// For how many days an object is retained from now on, in its mode.
fn retained(server: &Server, key: &str) -> Option<(String, i64)> {
    let lock = server.lock(key);
    let until = lock.get("x-amz-object-lock-retain-until-date")?;
    let until: Timestamp = until.parse().expect("a time");
    let left = until.duration_since(Timestamp::now()) + SignedDuration::from_hours(1);
    Some((lock["x-amz-object-lock-mode"].clone(), left.as_hours() / 24))
}

#[test]
fn what_is_written_under_a_lock_has_it_whole_and_in_parts() {
    let (place, server) = place();
    let thirty = r#"{"mode": "GOVERNANCE", "days": 30}"#;
    made(&backup(&place, &server, "parts.bak", thirty, ""));
    let governed = Some(("GOVERNANCE".to_owned(), 30));
    assert_eq!(retained(&server, "parts.bak"), governed);
    let requests = server.requests();
    assert!(
        requests
            .iter()
            .any(|request| request.contains("partNumber=2"))
    );
    made(&backup(
        &place,
        &server,
        "small.bak",
        thirty,
        "DIFFERENTIAL,",
    ));
    assert_eq!(retained(&server, "small.bak"), governed);
    let held = r#"{"mode": "COMPLIANCE", "days": 1, "legal_hold": true}"#;
    made(&backup(&place, &server, "held.bak", held, ""));
    assert_eq!(
        retained(&server, "held.bak"),
        Some(("COMPLIANCE".to_owned(), 1))
    );
    assert_eq!(
        server.lock("held.bak")["x-amz-object-lock-legal-hold"],
        "ON"
    );
    well(&place, &server, &["verify", &server.url("held.bak")]);
}

#[test]
fn a_store_that_keeps_no_lock_is_found_out() {
    let (place, server) = place();
    server.forget_locks();
    for lock in [
        r#"{"mode": "GOVERNANCE", "days": 30}"#,
        r#"{"legal_hold": true}"#,
    ] {
        let run = backup(&place, &server, "a.bak", lock, "");
        assert_eq!(run.code, Some(1), "{}", run.out);
        assert!(run.err.contains("has not locked the object"), "{}", run.err);
        assert!(server.keys().is_empty(), "{:?}", server.keys());
    }
    // A key that may write only does not see it.
    server.fail(Fault {
        method: "GET",
        target: "retention",
        after: 0,
        times: 1,
        action: Action::Refuse(403, "AccessDenied"),
    });
    made(&backup(
        &place,
        &server,
        "a.bak",
        r#"{"mode": "GOVERNANCE", "days": 30}"#,
        "",
    ));
}

#[test]
fn what_is_locked_does_not_expire_and_bases_stay_as_long_as_what_needs_them() {
    let (place, server) = place();
    let days = |days: u32| format!(r#"{{"mode": "GOVERNANCE", "days": {days}}}"#);
    made(&backup(&place, &server, "f/old.bak", &days(5), ""));
    made(&backup(&place, &server, "f/full.bak", &days(7), ""));
    made(&backup(
        &place,
        &server,
        "f/diff.bak",
        &days(30),
        "DIFFERENTIAL,",
    ));
    let folder = server.url("f/");
    let expire = ["expire", &folder, "--last", "1"];
    let shown = well(&place, &server, &[&expire[..], &INSTANCE].concat());
    assert!(shown.out.contains("is locked until"), "{}", shown.out);
    assert_eq!(retained(&server, "f/full.bak").expect("a lock").1, 7);
    let expire = [&expire[..], &["--delete"], &INSTANCE].concat();
    let kept = well(&place, &server, &expire);
    assert!(kept.out.contains("is locked until"), "{}", kept.out);
    assert_eq!(server.keys().len(), 3);
    assert!(
        !server
            .requests()
            .iter()
            .any(|request| request.starts_with("DELETE"))
    );
    // The differential is of no use without its base.
    assert_eq!(retained(&server, "f/full.bak").expect("a lock").1, 30);
    assert!(
        kept.err.contains("newer backups that are locked need it"),
        "{}",
        kept.err
    );
    server.unlock("f/old.bak");
    well(&place, &server, &expire);
    assert_eq!(server.keys(), ["f/diff.bak", "f/full.bak"]);
}

#[test]
fn a_host_that_may_only_write_backs_up_and_overwrites_nothing() {
    let (place, server) = place();
    std::fs::write(place.path("pass"), "correct horse battery staple").expect("a file");
    let certificate = ["--passphrase-file", "pass"];
    for method in ["HEAD", "GET", "DELETE"] {
        server.fail(Fault {
            method,
            target: "",
            after: 0,
            times: usize::MAX,
            action: Action::Refuse(403, "AccessDenied"),
        });
    }
    let options = r#"{"s3": {"write_only": true, "object_lock": {"legal_hold": true}}}"#;
    let how = [
        "--compress",
        "none",
        "--max-transfer-size",
        "5242880",
        "--backup-options",
        options,
    ];
    for (database, key) in [("app.db", "parts.bak"), ("other.db", "small.bak")] {
        let url = server.url(key);
        let backup = [
            &["backup", database, "--to", &url][..],
            &how,
            &certificate,
            &INSTANCE,
        ]
        .concat();
        // Without the word for it, the first question is refused.
        let plain = run(&place, &server, &["backup", database, "--to", &url]);
        assert!(plain.err.contains("403 Forbidden"), "{}", plain.err);
        server.requests();
        let first = run(&place, &server, &backup);
        made(&first);
        assert!(first.err.contains("not read back"), "{}", first.err);
        let requests = server.requests();
        let is_write = |request: &String| request.starts_with("PUT") || request.starts_with("POST");
        assert!(requests.iter().all(is_write), "{requests:?}");
        let content = server.content(key);
        let again = run(&place, &server, &backup);
        assert_eq!(again.code, Some(1), "{}", again.out);
        assert!(
            again
                .err
                .contains("there is an object of this name already"),
            "{}",
            again.err
        );
        let forced = run(&place, &server, &[&backup[..], &["--format"]].concat());
        assert!(forced.err.contains("excludes FORMAT"), "{}", forced.err);
        assert!(server.content(key) == content);
    }
    server.forgive();
    for key in ["parts.bak", "small.bak"] {
        let url = server.url(key);
        well(
            &place,
            &server,
            &[&["verify", &url][..], &certificate].concat(),
        );
    }
}
