//! Many processes write into one bucket at once: none harms another, with nothing between them but the store.

use std::process::Child;

use crate::objects::{backup, place, run, well};
use crate::s3_server::{Action, Fault, Server};
use crate::support::{Place, Run, rows};

/// Processes at a time: more do not run at once on two cores either.
const AT_ONCE: usize = 25;

/// The runs of these commands, many at a time.
fn all(place: &Place, server: &Server, commands: &[Vec<String>]) -> Vec<Run> {
    let begun = |arguments: &Vec<String>| -> Child {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = place.command(&arguments);
        command.stdout(std::process::Stdio::piped());
        command.stderr(std::process::Stdio::piped());
        server.key_for(&mut command).spawn().expect("the program")
    };
    let mut runs = Vec::new();
    for some in commands.chunks(AT_ONCE) {
        let children: Vec<Child> = some.iter().map(begun).collect();
        for child in children {
            runs.push(Run::of(&child.wait_with_output().expect("its end")));
        }
    }
    runs
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn hundreds_of_writers_in_one_folder_make_a_backup_each() {
    const SERVERS: usize = 10;
    const ROUNDS: usize = 20;
    let (place, server) = place();
    let folder = server.url("fleet/");
    for number in 0..SERVERS {
        let instance = format!("i{number}");
        let first = ["sql", "--instance", &instance, "-Q", "SELECT 1"];
        well(&place, &server, &first);
    }
    let commands: Vec<Vec<String>> = (0..SERVERS * ROUNDS)
        .map(|number| {
            let instance = format!("i{}", number % SERVERS);
            words(&[
                "backup",
                "other.db",
                "--to",
                &folder,
                "--instance",
                &instance,
            ])
        })
        .collect();
    for made in all(&place, &server, &commands) {
        assert_eq!(made.code, Some(0), "{}\n{}", made.out, made.err);
    }
    assert_eq!(server.keys().len(), SERVERS * ROUNDS);
    assert_eq!(server.unfinished_uploads(), 0);
    let shown = well(&place, &server, &["--json", "fleet", &folder]);
    let found: serde_json::Value = serde_json::from_str(&shown.out).expect("JSON");
    let backups = found["databases"].as_array().expect("databases").iter();
    let backups: f64 = backups.filter_map(|row| row["backups"].as_f64()).sum();
    assert_eq!(backups as usize, SERVERS * ROUNDS, "{}", shown.out);
    let newest = ["restore", &folder, "--of", "other", "--to", "r.db"];
    well(&place, &server, &newest);
    assert_eq!(rows(&place.path("r.db")), 10);
}

#[test]
fn of_writers_to_one_name_one_wins_and_the_others_are_told() {
    let (place, server) = place();
    let url = server.url("one.bak");
    // Some by one request, and some by an upload in parts.
    let commands: Vec<Vec<String>> = (0..AT_ONCE)
        .map(|number| {
            let database = ["other.db", "app.db"][usize::from(number % 5 == 0)];
            let how = ["--compress", "none", "--max-transfer-size", "5242880"];
            words(&[&["backup", database, "--to", &url][..], &how].concat())
        })
        .collect();
    let runs = all(&place, &server, &commands);
    let won: Vec<&Run> = runs.iter().filter(|run| run.code == Some(0)).collect();
    assert_eq!(
        won.len(),
        1,
        "{:?}",
        won.iter().map(|run| &run.err).collect::<Vec<_>>()
    );
    for lost in runs.iter().filter(|run| run.code != Some(0)) {
        assert_eq!(lost.code, Some(1), "{}", lost.err);
        assert!(lost.err.contains("FORMAT"), "{}", lost.err);
    }
    well(&place, &server, &["verify", &url]);
    assert_eq!(server.unfinished_uploads(), 0);
    // The winner is whole: what it said it wrote is there.
    let again = run(&place, &server, &["restore", &url, "--to", "r.db"]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert!([10, 14_000].contains(&rows(&place.path("r.db"))));
}

/// Lets another object come when a request is made, before that is done.
fn comes(server: &Server, method: &'static str, target: &'static str, object: &[u8]) {
    server.fail(Fault {
        method,
        target,
        after: 0,
        times: 1,
        action: Action::Replace(object.to_vec()),
    });
}

#[track_caller]
fn refused(made: &Run) {
    assert_eq!(made.code, Some(1), "{}", made.out);
    assert!(made.err.contains("in the meantime"), "{}", made.err);
    assert!(!made.err.contains("use FORMAT"), "{}", made.err);
}

#[test]
fn a_backup_with_format_replaces_what_it_found_and_nothing_that_came_meanwhile() {
    let (place, server) = place();
    // The backup of another program: plain, and whole.
    let theirs = server.url("theirs.bak");
    well(&place, &server, &["backup", "other.db", "--to", &theirs]);
    let theirs = server.content("theirs.bak").expect("an object");
    // What is deleted after it was found is missed by nobody.
    server.put("app.bak", b"an earlier one");
    server.fail(Fault {
        method: "HEAD",
        target: "/app.bak?",
        after: 2,
        times: 1,
        action: Action::Forget,
    });
    let made = backup(&place, &server, &[&server.url("app.bak")], &["--format"]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    for (method, target, knows_conditions) in [
        ("POST", "/app.bak?uploadId=", true),
        ("PUT", "/app.bak?partNumber=2", true),
        ("PUT", "/other.bak?", true),
        // Nothing but the look before the completion tells.
        ("PUT", "/app.bak?partNumber=2", false),
    ] {
        if !knows_conditions {
            server.ignore_conditions();
        }
        let key = ["app.bak", "other.bak"][usize::from(target.contains("other"))];
        let url = server.url(key);
        for was_there in [false, true] {
            match was_there {
                true => server.put(key, b"an earlier one"),
                false => server.remove(key),
            }
            comes(&server, method, target, &theirs);
            refused(&match key {
                "app.bak" => backup(&place, &server, &[&url], &["--format"]),
                _ => run(
                    &place,
                    &server,
                    &["backup", "other.db", "--to", &url, "--format"],
                ),
            });
            let kept = server.content(key) == Some(theirs.clone());
            assert!(kept, "{target} {was_there}");
            well(&place, &server, &["verify", &url]);
        }
    }
    assert_eq!(server.unfinished_uploads(), 0);
}

#[test]
fn of_stripes_none_is_replaced_if_another_backup_has_taken_one_meanwhile() {
    let (place, server) = place();
    let urls = ["1.bak", "2.bak"].map(|key| server.url(key));
    let earlier = backup(&place, &server, &[&urls[0], &urls[1]], &[]);
    assert_eq!(earlier.code, Some(0), "{}", earlier.err);
    let earlier = server.content("1.bak").expect("an object");
    comes(&server, "PUT", "/2.bak?partNumber=1", b"theirs");
    refused(&backup(
        &place,
        &server,
        &[&urls[0], &urls[1]],
        &["--format"],
    ));
    assert!(server.content("1.bak") == Some(earlier), "it was replaced");
    assert_eq!(server.content("2.bak").as_deref(), Some(&b"theirs"[..]));
    assert_eq!(server.unfinished_uploads(), 0);
}

#[test]
fn a_copy_replaces_the_object_that_it_was_compared_with_and_no_other() {
    let (place, server) = place();
    let command = format!(
        "BACKUP DATABASE [app] TO DISK = '{}' WITH COPYTO = '{}', COMPRESSION = 0",
        place.text("temp/a.bak"),
        server.url("copies/")
    );
    let how = ["sqlbackup", "-S", &command, "--attach", "app=app.db"];
    let how = [&how[..], &["--instance", "instance"]].concat();
    well(&place, &server, &how);
    let key = "copies/a.bak";
    assert!(server.content(key).is_some());
    for method in ["POST", "PUT"] {
        let target = ["copies/a.bak?uploadId=", "copies/a.bak?partNumber=1"];
        let target = target[usize::from(method == "PUT")];
        let before = server.content(key).expect("an object");
        comes(&server, method, target, b"of another program");
        let made = run(&place, &server, &how);
        let said = format!("{}{}", made.out, made.err);
        assert!(said.contains("in the meantime"), "{method}: {said}");
        let kept = server.content(key);
        assert_eq!(kept.as_deref(), Some(&b"of another program"[..]));
        server.put(key, &before);
    }
    assert_eq!(server.unfinished_uploads(), 0);
}
