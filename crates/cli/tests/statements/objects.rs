//! Backups in object storage: `s3://` as a medium, in a store without faults.

use std::path::Path;
use std::process::Command;

use crate::s3_server::{Action, Fault, SECRET, Server, TOKEN};
use crate::stores;
use crate::support::{Place, Run, make_database, rows};

/// A folder with a database of several parts, and a store.
pub(crate) fn place() -> (Place, Server) {
    (stores::place(), Server::start())
}

pub(crate) fn command(place: &Place, server: &Server, arguments: &[&str]) -> Command {
    let mut command = place.command(arguments);
    server.key_for(&mut command);
    command
}

pub(crate) fn run(place: &Place, server: &Server, arguments: &[&str]) -> Run {
    let mut command = command(place, server, arguments);
    Run::of(&command.output().expect("the program runs"))
}

#[track_caller]
pub(crate) fn well(place: &Place, server: &Server, arguments: &[&str]) -> Run {
    let run = run(place, server, arguments);
    assert_eq!(run.code, Some(0), "{arguments:?}\n{}\n{}", run.out, run.err);
    run
}

/// Backs up uncompressed, in parts of the shortest length.
pub(crate) fn backup(place: &Place, server: &Server, urls: &[&str], how: &[&str]) -> Run {
    let mut arguments = vec!["backup", "app.db", "--compress", "none"];
    arguments.extend(["--max-transfer-size", "5242880"]);
    for url in urls {
        arguments.extend(["--to", url]);
    }
    arguments.extend(how);
    run(place, server, &arguments)
}

#[track_caller]
fn same(place: &Place, restored: &str) {
    let read = |name: &str| std::fs::read(place.path(name)).expect(name);
    assert!(read("app.db") == read(restored), "not byte for byte");
}

#[test]
fn a_backup_of_several_parts_is_verified_listed_and_restored_byte_for_byte() {
    let (place, server) = place();
    let url = &server.url("prod/app 1.bak");
    let made = backup(&place, &server, &[url], &[]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let requests = server.requests();
    let count = |start: &str, part: &str| {
        let requests = requests.iter();
        requests
            .filter(|request| request.starts_with(start) && request.contains(part))
            .count()
    };
    assert!(count("PUT", "partNumber=") >= 3, "{requests:?}");
    assert_eq!(count("POST", "uploadId="), 1, "{requests:?}");
    well(&place, &server, &["verify", url]);
    server.requests();
    let header = well(&place, &server, &["header", url, "--json"]);
    let asked = server.requests();
    assert!(asked.len() <= 4, "{asked:?}");
    assert!(header.out.contains("\"DeviceType\":9"), "{}", header.out);
    well(&place, &server, &["files", url]);
    well(&place, &server, &["label", url]);
    well(&place, &server, &["restore", url, "--to", "r.db"]);
    same(&place, "r.db");
    assert_eq!(server.unfinished_uploads(), 0);
}

#[test]
fn a_backup_that_fits_one_part_is_one_request() {
    let (place, server) = place();
    let url = &server.url("small.bak");
    well(&place, &server, &["backup", "other.db", "--to", url]);
    let requests = server.requests();
    let mut writes = requests
        .iter()
        .filter(|request| !request.starts_with("HEAD"));
    let first = writes.next().expect("a request");
    assert!(first.starts_with("PUT /backups/small.bak?"), "{requests:?}");
    assert!(
        writes.all(|request| request.starts_with("GET")),
        "{requests:?}"
    );
    well(&place, &server, &["restore", url, "--to", "r.db"]);
    assert_eq!(rows(&place.path("r.db")), 10);
}

#[test]
fn stripes_mirrors_encryption_and_differentials_work_on_objects() {
    let (place, server) = place();
    let urls: Vec<String> = (1..=4).map(|n| server.url(&format!("{n}.bak"))).collect();
    std::fs::write(place.path("pass"), "correct horse battery staple").expect("a file");
    let secret = ["--passphrase-file", "pass"];
    let mirrored = ["--mirror", &urls[2], "--mirror", &urls[3], "--format"];
    let made = backup(
        &place,
        &server,
        &[&urls[0], &urls[1]],
        &[&mirrored[..], &secret].concat(),
    );
    assert_eq!(made.code, Some(0), "{}", made.err);
    for copy in [[&urls[0], &urls[1]], [&urls[3], &urls[2]]] {
        well(
            &place,
            &server,
            &[&["verify", copy[0], copy[1]][..], &secret].concat(),
        );
    }
    let restored = ["restore", &urls[2], &urls[1], "--to", "r.db"];
    well(&place, &server, &[&restored[..], &secret].concat());
    same(&place, "r.db");
    // A stripe alone is not enough.
    assert_eq!(run(&place, &server, &["verify", &urls[0]]).code, Some(1));

    let full = server.url("full.bak");
    let instance = ["--instance", "instance"];
    well(
        &place,
        &server,
        &[&["backup", "app.db", "--to", &full][..], &instance].concat(),
    );
    let database = rusqlite::Connection::open(place.path("app.db")).expect("a database");
    database
        .execute_batch("INSERT INTO t (body) VALUES ('later')")
        .expect("a row");
    drop(database);
    let differential = server.url("diff.bak");
    let how = ["backup", "app.db", "--differential", "--to", &differential];
    well(&place, &server, &[&how[..], &instance].concat());
    let lengths = ["full.bak", "diff.bak"].map(|key| server.content(key).expect("an object").len());
    assert!(lengths[1] < lengths[0] / 4, "{lengths:?}");
    well(
        &place,
        &server,
        &["restore", &full, &differential, "--to", "r2.db"],
    );
    assert_eq!(rows(&place.path("r2.db")), 14_001);
}

#[test]
fn statements_name_objects_as_on_sql_server() {
    let (place, server) = place();
    let [one, two] = ["1.bak", "2.bak"].map(|key| server.url(key));
    let script = format!(
        "BACKUP DATABASE app TO URL = '{one}', URL = N'{two}' WITH FORMAT, COMPRESSION, STATS = 10, MAXTRANSFERSIZE = 20971520, BLOCKSIZE = 65536
         GO
         RESTORE VERIFYONLY FROM URL = '{one}', URL = '{two}'
         RESTORE HEADERONLY FROM URL = '{one}'
         RESTORE DATABASE copy FROM URL = '{one}', URL = '{two}' WITH MOVE 'app' TO 'd:\\copy.db'
         SELECT physical_device_name, device_type FROM msdb.dbo.backupmediafamily"
    );
    let run = sql(&place, &server, &script);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    same(&place, "copy.db");
    assert!(run.out.contains(&two), "{}", run.out);
    for refused in [
        format!("BACKUP DATABASE app TO URL = '{one}' WITH MAXTRANSFERSIZE = 1048576"),
        format!("BACKUP DATABASE app TO URL = '{one}', URL = '{one}' WITH FORMAT"),
        format!("BACKUP DATABASE app TO URL = '{one}', DISK = 'd:\\x.bak' WITH FORMAT"),
        format!("BACKUP DATABASE app TO URL = '{one}' MIRROR TO DISK = 'd:\\x.bak' WITH FORMAT"),
        format!("BACKUP DATABASE app TO URL = '{one}' WITH FORMAT, CREDENTIAL = 'x'"),
        format!("BACKUP DATABASE app TO URL = '{one}' WITH FORMAT, BACKUP_OPTIONS = '{{}}'"),
        "BACKUP DATABASE app TO DISK = 'd:\\x.bak' WITH CREDENTIAL = 'x'".to_owned(),
        r#"BACKUP DATABASE app TO DISK = 'd:\x.bak' WITH BACKUP_OPTIONS = '{"s3":{"region":"r"}}'"#
            .to_owned(),
        format!(
            r#"RESTORE HEADERONLY FROM URL = '{one}' WITH RESTORE_OPTIONS = '{{"s3":{{"tags":{{}}}}}}'"#
        ),
        format!("BACKUP DATABASE app TO DISK = '{one}' WITH FORMAT"),
        format!("EXEC sp_addumpdevice 'disk', 'far', '{one}'"),
        "BACKUP DATABASE app TO URL = 'https://a.blob.core.windows.net/c/x.bak'".to_owned(),
    ] {
        let run = sql(&place, &server, &refused);
        assert_eq!(run.code, Some(1), "{refused}: {}", run.err);
    }
    assert_eq!(server.keys(), ["1.bak", "2.bak"]);
    assert!(!place.path("x.bak").exists());
}

fn sql(place: &Place, server: &Server, script: &str) -> Run {
    std::fs::write(place.path("script.sql"), script).expect("the script");
    let drive = format!("d={}", place.text("").trim_end_matches('/'));
    let arguments = [
        "sql",
        "-i",
        "script.sql",
        "--drive",
        &drive,
        "--attach",
        "app=app.db",
    ];
    run(place, server, &arguments)
}

#[test]
fn an_object_is_neither_appended_to_nor_overwritten_without_format() {
    let (place, server) = place();
    let url = &server.url("a.bak");
    assert_eq!(backup(&place, &server, &[url], &[]).code, Some(0));
    let before = server.content("a.bak");
    for how in [&[][..], &["--init"], &["--init", "--skip"]] {
        let again = backup(&place, &server, &[url], how);
        assert_eq!(again.code, Some(1), "{how:?}");
        assert!(
            again.err.contains("cannot be appended to; use FORMAT"),
            "{}",
            again.err
        );
        assert!(server.content("a.bak") == before);
    }
    assert_eq!(backup(&place, &server, &[url], &["--format"]).code, Some(0));
    assert!(server.content("a.bak") != before);
    // Not even FORMAT overwrites a database with its backup.
    let database = std::fs::read(place.path("other.db")).expect("a file");
    server.put("data.db", &database);
    let onto = backup(&place, &server, &[&server.url("data.db")], &["--format"]);
    assert_eq!(onto.code, Some(1), "{}", onto.err);
    assert!(server.content("data.db") == Some(database));
}

#[test]
fn as_many_parts_are_on_their_way_as_is_said() {
    let (place, server) = place();
    std::fs::remove_file(place.path("app.db")).expect("a file");
    make_database(&place.path("app.db"), 42_000);
    server.slow(std::time::Duration::from_millis(200));
    // Without a word, four are read ahead.
    for said in [1, 6] {
        let url = &server.url(&format!("{said}.bak"));
        let options = format!(r#"{{"s3": {{"concurrency": {said}}}}}"#);
        server.served_at_once();
        let made = backup(&place, &server, &[url], &["--backup-options", &options]);
        assert_eq!(made.code, Some(0), "{}", made.err);
        assert_eq!(server.served_at_once(), said, "written");
        let verify = ["verify", url, "--restore-options", &options];
        well(&place, &server, &verify);
        assert_eq!(server.served_at_once(), said, "read");
    }
    let wrong = backup(
        &place,
        &server,
        &[&server.url("x.bak")],
        &["--backup-options", r#"{"s3": {"concurrency": 100}}"#],
    );
    assert!(wrong.err.contains("1 to 64"), "{}", wrong.err);
    let plan = r#"{"s3": {"concurrency": 9}}"#;
    let plan = ["--backup-options", plan, "--plan", "--dry-run"];
    let planned = backup(&place, &server, &[&server.url("x.bak")], &plan);
    let said = planned.out + &planned.err;
    assert!(said.contains("concurrency as given"), "{said}");
    // The end of a sequence reads no medium.
    let end = ["restore", "--database", "app", "--restore-options", "{}"];
    assert_eq!(run(&place, &server, &end).code, Some(2));
}

#[test]
fn recipients_are_added_to_objects_and_lost_answers_and_rivals_are_told_apart() {
    let (place, server) = place();
    for name in ["one", "two", "three", "four"] {
        std::fs::write(place.path(name), format!("the passphrase {name}")).expect("a file");
    }
    let urls = ["1.bak", "2.bak"].map(|key| server.url(key));
    let both = [urls[0].as_str(), &urls[1]];
    let with = |passphrase| ["--passphrase-file", passphrase];
    let made = backup(&place, &server, &both, &with("one"));
    assert_eq!(made.code, Some(0), "{}", made.err);
    let rekey = |known: &'static str, new: &'static str| {
        let how = ["--new-passphrase-file", new];
        let arguments = [&["rekey"][..], &both, &with(known), &how].concat();
        run(&place, &server, &arguments)
    };
    let verify = |passphrase: &'static str| {
        let arguments = [&["verify"][..], &both, &with(passphrase)].concat();
        run(&place, &server, &arguments)
    };
    assert_eq!(verify("two").code, Some(1));
    // The answer to the request is lost, and asked again the store refuses it.
    let lost = Fault {
        method: "PUT",
        target: "/1.bak.keys",
        after: 0,
        times: 1,
        action: Action::LoseAnswer,
    };
    server.fail(lost.clone());
    let added = rekey("one", "two");
    assert_eq!(added.code, Some(0), "{}", added.err);
    assert_eq!(
        server.keys(),
        ["1.bak", "1.bak.keys", "2.bak", "2.bak.keys"]
    );
    for passphrase in ["one", "two"] {
        assert_eq!(verify(passphrase).code, Some(0), "{passphrase}");
    }
    // A stripe alone says who can read it. That is one request more, for its keys.
    server.requests();
    let header = well(&place, &server, &["header", &urls[1], "--json"]);
    assert!(header.out.contains("PASSPHRASE"), "{}", header.out);
    assert!(server.requests().len() <= 4);
    // Somebody else adds a recipient at the same time: nothing is written.
    let theirs = server.content("2.bak.keys").expect("keys");
    let rival = Fault {
        action: Action::Replace(b"theirs".to_vec()),
        ..lost
    };
    server.fail(rival);
    let refused = rekey("one", "three");
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(
        refused
            .err
            .contains("somebody else has changed the recipients")
            && refused.err.contains("1.bak.keys"),
        "{}",
        refused.err
    );
    assert_eq!(server.content("2.bak.keys").as_ref(), Some(&theirs));
    // One key object is enough; one that cannot be used is named.
    assert_eq!(verify("two").code, Some(0));
    let named = verify("three");
    assert!(
        named.err.contains("1.bak.keys cannot be used"),
        "{}",
        named.err
    );
    server.put("1.bak.keys", &theirs);
    assert_eq!(rekey("two", "three").code, Some(0));
    let restored = ["restore", both[1], both[0], "--to", "r.db"];
    well(&place, &server, &[&restored[..], &with("three")].concat());
    same(&place, "r.db");
    // A change that was killed between two stripes leaves an older key object: it keeps nobody out, and goes on.
    let newer = server.content("2.bak.keys").expect("keys");
    server.put("1.bak.keys", &theirs);
    assert_eq!(verify("three").code, Some(0));
    let added = rekey("one", "four");
    assert_eq!(added.code, Some(0), "{}", added.err);
    for passphrase in ["two", "three", "four"] {
        assert_eq!(verify(passphrase).code, Some(0), "{passphrase}");
    }
    // Of two that each let in somebody else, neither replaces the other.
    server.put("1.bak.keys", &theirs);
    server.put("2.bak.keys", &theirs);
    assert_eq!(rekey("one", "four").code, Some(0));
    server.put("1.bak.keys", &newer);
    assert_eq!(verify("three").code, Some(0));
    let refused = rekey("one", "two");
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(refused.err.contains("differs from"), "{}", refused.err);
    // A backup of that name is no key object.
    let medium = server.content("2.bak").expect("a medium");
    server.put("1.bak.keys", &medium[..100_000]);
    let arguments = [&["rekey", "--replace"][..], &both, &with("one")].concat();
    let how = ["--new-passphrase-file", "two"];
    let refused = run(&place, &server, &[&arguments[..], &how].concat());
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(refused.err.contains("is kept"), "{}", refused.err);
}

#[test]
fn urls_are_refused_where_only_files_are_understood() {
    let (place, server) = place();
    let url = &server.url("a.bak");
    for arguments in [
        &["tune", url][..],
        &["restore", "x.bak", "--to", url],
        &["backup", "app.db", "--to", "ftp://container/x.bak"],
        &["backup", "app.db", "--to", "http://bucket/x.bak"],
        &["backup", url, "--to", "x.bak"],
        &["verify", "https://account.example/c/x.bak"],
    ] {
        let refused = run(&place, &server, arguments);
        assert!(
            matches!(refused.code, Some(1 | 2)),
            "{arguments:?}: {}",
            refused.out
        );
        let says = refused.err.contains("is a URL") || refused.err.contains("s3://");
        assert!(says, "{arguments:?}: {}", refused.err);
    }
    assert!(server.keys().is_empty() && server.requests().is_empty());
    assert!(!place.path("x.bak").exists());
}

#[test]
fn keys_are_never_shown_sent_or_stored() {
    let (place, server) = place();
    let url = &server.url("a.bak");
    let instance = ["--instance", "instance"];
    let log = ["--log-file", "log", "--log-level", "debug"];
    let mut said = String::new();
    for (arguments, code) in [
        (
            &["backup", "app.db", "--to", url, "--plan", "--tsql"][..],
            0,
        ),
        (&["backup", "app.db", "--to", url], 1),
        (&["verify", url], 0),
        (&["restore", url, "--to", "r.db"], 0),
        (&["backup", "app.db", "--to", &server.url("../a.bak")], 1),
    ] {
        let run = run(&place, &server, &[arguments, &instance, &log].concat());
        assert_eq!(run.code, Some(code), "{arguments:?}: {}", run.err);
        said += &(run.out + &run.err);
    }
    // A key in a URL is not quoted either.
    let inside = url.replace("s3://", &format!("s3://id:{SECRET}@"));
    let inside = run(&place, &server, &["backup", "app.db", "--to", &inside]);
    assert!(
        inside.err.contains("does not belong into a URL"),
        "{}",
        inside.err
    );
    said += &inside.err;
    let secret = &SECRET[..13];
    // The token of a temporary key is sent, but not the key.
    assert!(server.seen().contains(TOKEN) && !server.seen().contains(secret));
    for hidden in [secret, TOKEN] {
        assert!(!said.contains(hidden), "{said}");
        assert!(!holds(&place.path("instance"), hidden.as_bytes()));
        assert!(!holds(&place.path("log"), hidden.as_bytes()));
    }
}

/// Whether a file, or a file in a folder, holds these bytes.
pub(crate) fn holds(path: &Path, wanted: &[u8]) -> bool {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().any(|entry| holds(&entry.path(), wanted)),
        Err(_) => {
            let bytes = std::fs::read(path).expect("a file");
            bytes.windows(wanted.len()).any(|window| window == wanted)
        }
    }
}

#[test]
fn a_full_backup_and_its_differential_may_be_in_a_store_and_on_disk() {
    let (place, server) = place();
    let url = &server.url("prod/one.bak");
    let disk = &place.text("one.bak");
    for (number, (full, differential)) in [(url, disk), (disk, url)].into_iter().enumerate() {
        let (full, differential) = (
            format!("{full}.f{number}"),
            format!("{differential}.d{number}"),
        );
        // The history knows the base, wherever it is.
        let instance = ["--instance", "instance"];
        let plain = ["backup", "app.db", "--to"];
        well(&place, &server, &[&plain[..], &[&full], &instance].concat());
        let connection = rusqlite::Connection::open(place.path("app.db")).expect("it");
        connection
            .execute_batch("DELETE FROM t WHERE id = 7")
            .expect("a change");
        drop(connection);
        let upon = ["--differential", "--instance", "instance"];
        well(
            &place,
            &server,
            &[&plain[..], &[&differential], &upon].concat(),
        );
        let target = format!("back{number}.db");
        well(
            &place,
            &server,
            &["restore", &full, &differential, "--to", &target],
        );
        same(&place, &target);
        // In the other order, and one after the other.
        let target = format!("turned{number}.db");
        well(
            &place,
            &server,
            &["restore", &differential, &full, "--to", &target],
        );
        same(&place, &target);
        let target = format!("steps{number}.db");
        well(
            &place,
            &server,
            &["restore", &full, "--to", &target, "--no-recovery"],
        );
        well(
            &place,
            &server,
            &["restore", &differential, "--to", &target],
        );
        same(&place, &target);
        let from = |name: &str| match name.starts_with("s3://") {
            true => format!("URL = '{name}'"),
            false => format!("DISK = '{name}'"),
        };
        let target = place.text(&format!("sql{number}.db"));
        let script = format!(
            "RESTORE DATABASE x{number} FROM {} WITH NORECOVERY, MOVE 'app' TO '{target}'
             RESTORE DATABASE x{number} FROM {}",
            from(&full),
            from(&differential)
        );
        well(&place, &server, &["sql", "-Q", &script]);
        same(&place, &target);
        // Stripes of one backup are all of one kind.
        let script = format!(
            "RESTORE DATABASE y FROM {}, {}",
            from(&full),
            from(&differential)
        );
        let mixed = run(&place, &server, &["--json", "sql", "-Q", &script]);
        assert_eq!(mixed.code, Some(1), "{}", mixed.err);
    }
}

#[test]
fn stripes_are_asked_for_at_once() {
    let (place, server) = place();
    let urls: Vec<String> = (1..=4)
        .map(|stripe| server.url(&format!("{stripe}.bak")))
        .collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    server.slow(std::time::Duration::from_millis(200));
    let made = backup(&place, &server, &urls, &[]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    server.requests();
    server.served_at_once();
    well(&place, &server, &[&["header"][..], &urls].concat());
    assert_eq!(server.served_at_once(), 4);
    let asked = server.requests();
    assert!(asked.len() <= 8, "{asked:?}");
}

#[test]
fn a_store_is_tried_before_a_backup_relies_on_it() {
    let (place, server) = place();
    let doctor = ["doctor", "--store", &server.url("prod/")];
    let good = run(&place, &server, &doctor);
    assert_eq!(good.code, Some(0), "{}", good.out);
    assert!(
        good.out.contains("keeps what is not to be overwritten"),
        "{}",
        good.out
    );
    assert!(server.keys().is_empty() && server.unfinished_uploads() == 0);
    server.delete_whatever();
    let hasty = run(&place, &server, &doctor);
    assert_eq!(hasty.code, Some(0), "{}", hasty.out);
    let warned = "ignores the condition to delete only the object that is meant";
    assert!(hasty.out.contains(warned), "{}", hasty.out);
    assert!(server.keys().is_empty(), "{:?}", server.keys());
    server.ignore_conditions();
    let careless = run(&place, &server, &doctor);
    assert_eq!(careless.code, Some(1), "{}", careless.out);
    assert!(
        careless.out.contains("ignores the condition"),
        "{}",
        careless.out
    );
    assert!(server.keys().is_empty(), "{:?}", server.keys());
    let nothing = run(
        &place,
        &server,
        &["doctor", "--store", "s3://127.0.0.1:1/backups/"],
    );
    assert_eq!(nothing.code, Some(1), "{}", nothing.out);
}
