//! Folders of objects, and what the history knows of objects.

use std::path::Path;

use crate::objects::{place, run, well};
use crate::s3_server::{Action, Fault, Server};
use crate::support::{Place, Run, rows};

const INSTANCE: [&str; 2] = ["--instance", "instance"];

#[track_caller]
fn back_up(place: &Place, server: &Server, key: &str, how: &[&str]) {
    let url = server.url(key);
    well(
        place,
        server,
        &[&["backup", "app.db", "--to", &url][..], how].concat(),
    );
}

fn add_row(place: &Place) {
    let database = rusqlite::Connection::open(place.path("app.db")).expect("a database");
    let added = database.execute_batch("INSERT INTO t (body) VALUES ('later')");
    added.expect("a row");
}

#[track_caller]
fn refused(run: &Run, says: &str) {
    assert_ne!(run.code, Some(0), "{}", run.out);
    assert!(
        format!("{}{}", run.out, run.err).contains(says),
        "{}\n{}",
        run.out,
        run.err
    );
}

#[test]
fn a_folder_in_a_store_is_restored_checked_and_expired_as_one_on_disk() {
    let (place, server) = place();
    back_up(&place, &server, "prod/a/1.bak", &INSTANCE);
    add_row(&place);
    back_up(
        &place,
        &server,
        "prod/b/2.bak",
        &[&INSTANCE[..], &["--differential"]].concat(),
    );
    let other = server.url("prod/other/3.bak");
    well(&place, &server, &["backup", "other.db", "--to", &other]);
    // More than a page of a listing, and none of it is a medium.
    for number in 0..30 {
        server.put(&format!("prod/notes/{number}.txt"), b"a note");
    }
    server.put("product/x.bak", b"of somebody else");
    for (number, folder) in ["prod/", "prod", "", "prod/a/"].iter().enumerate() {
        let (url, to) = (server.url(folder), format!("r{number}.db"));
        let how: &[&str] = match number {
            0 => &["--latest", "--database", "app", "--instance", "bare"],
            _ => &["--of", "app"],
        };
        let restore = ["restore", &url, "--to", &to];
        well(&place, &server, &[&restore[..], how].concat());
        let expected = if number == 3 { 14_000 } else { 14_001 };
        assert_eq!(rows(&place.path(&to)), expected, "{folder}");
    }
    let nowhere = server.url("nowhere/");
    refused(
        &run(&place, &server, &["restore", &nowhere, "--to", "x.db"]),
        "50",
    );

    let folder = &server.url("prod/");
    let checked = well(
        &place,
        &server,
        &["check", "--media", folder, "--rpo", "24h"],
    );
    assert!(checked.out.contains("OK"), "{}", checked.out);
    std::fs::create_dir(place.path("scratch")).expect("a folder");
    let query = "SELECT count(*) FROM t";
    let drill = ["drill", "app", "--from", folder, "--scratch", "scratch"];
    let proven = well(&place, &server, &[&drill[..], &["--query", query]].concat());
    assert!(proven.out.contains("14001"), "{}{}", proven.out, proven.err);
    add_row(&place);
    back_up(&place, &server, "prod/c/4.bak", &INSTANCE);
    let expire = ["expire", folder, "--last", "1", "--database", "app"];
    let shown = well(&place, &server, &expire);
    assert!(
        shown.out.contains(&server.url("prod/a/1.bak")),
        "{}",
        shown.out
    );
    assert_eq!(server.keys().len(), 35);
    well(&place, &server, &[&expire[..], &["--delete"]].concat());
    let left = server.keys();
    let left = left.iter().filter(|key| !key.contains("notes/"));
    assert_eq!(
        left.collect::<Vec<_>>(),
        ["prod/c/4.bak", "prod/other/3.bak", "product/x.bak"]
    );
}

#[test]
fn the_empty_objects_that_consoles_make_of_folders_hide_no_backup() {
    let (place, server) = place();
    back_up(&place, &server, "o/sub/1.bak", &[]);
    for marker in ["o/", "o/sub/", "o/new/"] {
        server.put(marker, b"");
    }
    let folder = server.url("o/");
    let restore = ["restore", &folder, "--of", "app", "--to"];
    well(&place, &server, &[&restore[..], &["r.db"]].concat());
    assert_eq!(rows(&place.path("r.db")), 14_000);
    well(
        &place,
        &server,
        &["restore", &server.url("o/sub"), "--to", "r2.db"],
    );
    // Where a backup is expected, an empty object may have been one.
    server.put("o/2.bak", b"");
    let refusal = run(&place, &server, &[&restore[..], &["r3.db"]].concat());
    refused(&refusal, "50315");
}

#[test]
fn the_base_of_a_differential_is_looked_for_in_its_store() {
    let (place, server) = place();
    let differential = [&INSTANCE[..], &["--differential"]].concat();
    back_up(&place, &server, "full.bak", &INSTANCE);
    add_row(&place);
    back_up(&place, &server, "d1.bak", &differential);
    let checked = well(&place, &server, &[&["check"][..], &INSTANCE].concat());
    assert!(checked.out.contains("OK"), "{}", checked.out);
    let full = server.content("full.bak").expect("an object");
    for theirs in [
        None,
        Some(b"something else".to_vec()),
        Some(full[..full.len() / 2].to_vec()),
    ] {
        match &theirs {
            None => server.remove("full.bak"),
            Some(bytes) => server.put("full.bak", bytes),
        }
        let url = server.url("d2.bak");
        let again = ["backup", "app.db", "--to", &url];
        let again = run(&place, &server, &[&again[..], &differential].concat());
        refused(&again, &server.url("full.bak"));
        assert!(server.content("d2.bak").is_none());
        let checked = run(&place, &server, &[&["check"][..], &INSTANCE].concat());
        assert_eq!(checked.code, Some(2), "{}", checked.out);
    }
    // Of a store that does not answer, nobody knows.
    server.put("full.bak", &full);
    let mut command = place.command(&["check", "--instance", "instance"]);
    let command = server.endpoint_for(&mut command);
    let checked = Run::of(&command.output().expect("it runs"));
    refused(&checked, "cannot be examined: there is no key for this URL");
}

#[test]
fn a_base_stays_unless_its_differential_in_a_store_is_known_to_be_gone() {
    let (place, server) = place();
    let full = ["backup", "app.db", "--to", "temp/f1.bak"];
    well(&place, &server, &[&full[..], &INSTANCE].concat());
    add_row(&place);
    let differential = [&INSTANCE[..], &["--differential"]].concat();
    back_up(&place, &server, "else/d1.bak", &differential);
    add_row(&place);
    well(
        &place,
        &server,
        &["backup", "app.db", "--to", "temp/f2.bak"],
    );
    let expire = |further: &[&str]| {
        let expire = ["expire", "temp", "--last", "1"];
        well(&place, &server, &[&expire[..], &INSTANCE, further].concat())
    };
    let is_kept = |run: &Run, says: &str| {
        assert!(
            run.err.contains("nobody can tell that it is gone"),
            "{}",
            run.err
        );
        assert!(run.err.contains(says), "{says}: {}", run.err);
        assert!(place.path("temp/f1.bak").exists(), "{}", run.out);
    };
    for (action, says) in [
        (Action::Refuse(404, "NoSuchBucket"), "NoSuchBucket"),
        (
            Action::Page(404, "<html><body>Not here</body></html>"),
            "404 Not Found",
        ),
    ] {
        server.fail(Fault {
            method: "GET",
            target: "else/d1.bak",
            after: 0,
            times: usize::MAX,
            action,
        });
        is_kept(&expire(&["--delete"]), says);
        let checked = run(&place, &server, &[&["check"][..], &INSTANCE].concat());
        refused(&checked, "cannot be examined");
        assert!(!checked.out.contains("is gone"), "{}", checked.out);
        server.forgive();
    }
    // A store that was set up again has none of the objects, and says so.
    server.remove("else/d1.bak");
    is_kept(&expire(&["--delete"]), "as if it were another bucket");
    let other = server.url("other/o.bak");
    let other = ["backup", "other.db", "--to", &other];
    well(&place, &server, &[&other[..], &INSTANCE].concat());
    let shown = expire(&[]);
    let mut lines = shown.out.lines();
    let goes = lines.any(|line| line.contains("f1.bak") && line.contains(" goes "));
    assert!(goes, "{}", shown.out);
    server.remove("other/o.bak");
    expire(&["--delete", "--gone", &server.url("else/")]);
    assert!(!place.path("temp/f1.bak").exists());
}

#[test]
fn a_differential_is_as_protected_as_its_base_in_a_store() {
    let (place, server) = place();
    well(&place, &server, &["signing-key", "key"]);
    std::fs::write(place.path("pass"), "correct horse battery staple").expect("a file");
    let differential = [&INSTANCE[..], &["--differential"]].concat();
    for (key, how, says) in [
        ("signed", ["--sign-with", "key"], "is signed"),
        ("sealed", ["--passphrase-file", "pass"], "is encrypted"),
    ] {
        let full = format!("{key}.bak");
        back_up(&place, &server, &full, &[&INSTANCE[..], &how].concat());
        add_row(&place);
        let url = server.url(&format!("{key}-d.bak"));
        let upon = ["backup", "app.db", "--to", &url];
        let upon = [&upon[..], &differential].concat();
        refused(&run(&place, &server, &upon), says);
        well(&place, &server, &[&upon[..], &how].concat());
    }
}

#[test]
fn media_in_a_store_are_named_as_the_base() {
    let (place, server) = place();
    back_up(&place, &server, "full.bak", &[]);
    add_row(&place);
    let (full, upon) = (server.url("full.bak"), server.url("d.bak"));
    let how = [
        "backup",
        "app.db",
        "--to",
        &upon,
        "--differential",
        "--base",
    ];
    well(&place, &server, &[&how[..], &[&full]].concat());
    well(&place, &server, &["restore", &full, &upon, "--to", "r.db"]);
    assert_eq!(rows(&place.path("r.db")), 14_001);
    let wrong = run(
        &place,
        &server,
        &[&how[..], &["ftp://container/x.bak"]].concat(),
    );
    refused(&wrong, "s3://");
}

#[test]
fn many_servers_share_a_folder_and_each_database_is_found_and_restored_by_a_bare_machine() {
    let (place, server) = place();
    let folder = &server.url("fleet/");
    let stripes = ["--to", folder, "--to", folder];
    for name in ["db1", "db2"] {
        let instance = ["--instance", name];
        well(
            &place,
            &server,
            &[&["backup", "app.db"][..], &stripes, &instance].concat(),
        );
        add_row(&place);
        let upon = ["backup", "app.db", "--differential", "--to", folder];
        well(&place, &server, &[&upon[..], &instance].concat());
    }
    let keys = server.keys();
    assert_eq!(keys.len(), 6, "{keys:?}");
    let ends = |end: &str| keys.iter().filter(|key| key.ends_with(end)).count();
    assert_eq!(
        (
            ends("/1-of-2.bak"),
            ends("/2-of-2.bak"),
            ends("/1-of-1.bak")
        ),
        (2, 2, 2)
    );
    assert_eq!(
        keys.iter()
            .filter(|key| key.contains("/app/DIFF/20"))
            .count(),
        2
    );
    server.requests();
    let shown = well(&place, &server, &["--json", "fleet", folder]);
    let requests = server.requests();
    let is_listing = |request: &String| request.starts_with("GET /backups?");
    assert!(requests.iter().all(is_listing), "{requests:?}");
    let found: serde_json::Value = serde_json::from_str(&shown.out).expect("JSON");
    let row = &found["databases"][0];
    assert_eq!(
        (&row["database"], &row["backups"]),
        (&"app".into(), &4.into())
    );
    well(&place, &server, &["fleet", folder, "--to", "fleet.html"]);
    let page = std::fs::read_to_string(place.path("fleet.html")).expect("a page");
    assert!(page.contains("app") && page.contains("in time"));
    well(
        &place,
        &server,
        &["restore", folder, "--of", "app", "--to", "r.db"],
    );
    assert_eq!(rows(&place.path("r.db")), 14_002);
    let ship = [
        "ship",
        folder,
        "--of",
        "app",
        "--to",
        "shipped.db",
        "--once",
    ];
    // It looks at them, and finds no log backup.
    let shipped = run(&place, &server, &ship);
    assert!(shipped.err.contains("50297"), "{}", shipped.err);
    // A stripe whose others are elsewhere shows that there is a newer state.
    let half = server.url("fleet/half.bak");
    let whole = server.url("other-half.bak");
    let striped = ["backup", "app.db", "--to", &half, "--to", &whole];
    add_row(&place);
    well(&place, &server, &striped);
    let restore = ["restore", folder, "--of", "app", "--to", "r2.db"];
    let restored = run(&place, &server, &restore);
    assert!(restored.err.contains("Msg 50064"), "{}", restored.err);
    assert!(restored.err.contains("only 1 of the 2"), "{}", restored.err);
    assert!(!place.path("r2.db").exists());
    server.remove("fleet/half.bak");
    // A stripe that is missing makes its backup count for nothing, and a folder without a whole one is late.
    for key in keys.iter().filter(|key| key.ends_with("/2-of-2.bak")) {
        server.remove(key);
    }
    let late = run(&place, &server, &["fleet", folder]);
    assert_eq!(late.code, Some(1), "{}", late.out);
    assert!(late.out.contains("NO BACKUP"), "{}", late.out);
    let none = run(&place, &server, &["fleet", &server.url("nothing/")]);
    assert_eq!(none.code, Some(1), "{}", none.out);
}

#[test]
fn copies_go_to_a_store_and_replace_only_what_they_continue() {
    let (place, server) = place();
    let folder = server.url("copies/<DATABASE>");
    let copy = |further: &str| {
        let command = format!(
            "BACKUP DATABASE [app] TO DISK = '{}' WITH COPYTO = '{folder}', NAME = 'x'{further}",
            place.text("temp/a.bak")
        );
        let how = ["sqlbackup", "-S", &command, "--attach", "app=app.db"];
        run(&place, &server, &[&how[..], &INSTANCE].concat())
    };
    let key = "copies/app/a.bak";
    for sets in 1..=2 {
        let made = copy("");
        assert_eq!(made.code, Some(0), "{} {}", made.out, made.err);
        let file = std::fs::read(place.path("temp/a.bak")).expect("a file");
        assert!(
            server.content(key) == Some(file),
            "{sets}: {} {}",
            made.out,
            made.err
        );
    }
    well(
        &place,
        &server,
        &["restore", &server.url(key), "--to", "r.db"],
    );
    assert_eq!(rows(&place.path("r.db")), 14_000);
    server.put(key, b"of somebody else");
    let kept = copy("");
    assert!(
        kept.out.contains("an object of that name exists"),
        "{}",
        kept.out
    );
    assert_eq!(server.content(key), Some(b"of somebody else".to_vec()));
    copy(", FILEOPTIONS = 4");
    assert!(server.content(key).is_some_and(|bytes| bytes.len() > 1000));
}

#[test]
fn the_keys_of_later_recipients_go_where_a_medium_goes_and_with_it() {
    let (place, server) = place();
    for name in ["one", "two"] {
        std::fs::write(place.path(name), format!("the passphrase {name}")).expect("a file");
    }
    let with = ["--passphrase-file", "one"];
    let media = [1, 2].map(|n| {
        (
            place.text(&format!("temp/{n}.bak")),
            server.url(&format!("d/{n}.bak")),
        )
    });
    let rekey = |medium: &str| {
        let how = ["--new-passphrase-file", "two"];
        well(
            &place,
            &server,
            &[&["rekey", medium][..], &with, &how].concat(),
        );
    };
    for (file, url) in &media {
        for medium in [file, url] {
            let backup = ["backup", "app.db", "--to", medium];
            well(&place, &server, &[&backup[..], &with].concat());
        }
    }
    // Objects and files that only look like keys are no keys and no media.
    server.put("d/2.bak.keys", b"notes");
    std::fs::write(place.path("temp/2.bak.keys"), "notes").expect("a file");
    rekey(&media[0].0);
    rekey(&media[0].1);
    let newest = ["restore", "--latest", &server.url("d/"), "--of", "app"];
    let known = ["--to", "r.db", "--passphrase-file", "one"];
    well(&place, &server, &[&newest[..], &known].concat());
    for folder in [place.text("temp"), server.url("d/")] {
        let expire = [
            "expire",
            &folder,
            "--last",
            "1",
            "--database",
            "app",
            "--delete",
        ];
        well(&place, &server, &expire);
    }
    assert_eq!(server.keys(), ["d/2.bak", "d/2.bak.keys"]);
    assert_eq!(place.files("temp"), ["2.bak", "2.bak.keys"]);

    // A copy in a store takes its keys along.
    std::fs::remove_file(place.path("temp/2.bak.keys")).expect("removed");
    rekey(&media[1].0);
    let copy = format!(
        "BACKUP DATABASE [app] TO DISK = '{}' WITH COPYTO = '{}', PASSWORD = 'FILE:{}'",
        media[1].0,
        server.url("copies/"),
        place.text("one")
    );
    let how = ["sqlbackup", "-S", &copy, "--attach", "app=app.db"];
    well(&place, &server, &[&how[..], &INSTANCE].concat());
    let copied = server.url("copies/2.bak");
    let two = ["--set", "1", "--passphrase-file", "two"];
    well(&place, &server, &[&["verify", &copied][..], &two].concat());
    // Whom only the copy lets in stays.
    let replace = [
        "rekey",
        &media[1].0,
        "--replace",
        "--new-passphrase-file",
        "one",
    ];
    well(&place, &server, &[&replace[..], &with].concat());
    let again = run(&place, &server, &[&how[..], &INSTANCE].concat());
    refused(&again, "lets recipients in");
    well(&place, &server, &[&["verify", &copied][..], &two].concat());
}

#[test]
fn names_that_the_layout_makes_long_are_read_again() {
    let (place, server) = place();
    let name = "d".repeat(180);
    let file = format!("{name}.db");
    std::fs::copy(place.path("other.db"), place.path(&file)).expect("a copy");
    let folder = server.url("long/");
    well(&place, &server, &["backup", &file, "--to", &folder]);
    let keys = server.keys();
    let key = keys
        .iter()
        .find(|key| Path::new(key).extension().is_some_and(|end| end == "bak"))
        .expect("a backup");
    let url = server.url(key);
    assert!(url.len() > 259);
    well(&place, &server, &["verify", &url]);
    well(&place, &server, &["restore", &folder, "--to", "r.db"]);
    assert_eq!(rows(&place.path("r.db")), 10);
    let longer = server.url(&"x".repeat(1_300));
    refused(
        &run(&place, &server, &["backup", "other.db", "--to", &longer]),
        "3057",
    );
}
