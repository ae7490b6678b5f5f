//! Credentials: the keys of object storage in the instance, in T-SQL and on the command line; and what else a statement
//! says about stores.

use std::os::unix::fs::PermissionsExt;

use crate::objects::{holds, place};
use crate::s3_server::{KEY_ID, SECRET, Server};
use crate::support::{Place, Run};

/// Runs a command without a key in the environment, on an instance with a log.
fn run(place: &Place, server: &Server, arguments: &[&str]) -> Run {
    let more = ["--instance", "instance", "--log-file", "log"];
    let arguments = [arguments, &more, &["--log-level", "debug"]].concat();
    let mut command = place.command(&arguments);
    Run::of(
        &server
            .endpoint_for(&mut command)
            .output()
            .expect("the program runs"),
    )
}

/// Runs statements from a file: what is an argument is seen by others.
fn sql(place: &Place, server: &Server, script: &str) -> Run {
    std::fs::write(place.path("script.sql"), script).expect("the script");
    let run = run(
        place,
        server,
        &[
            "sql",
            "-i",
            "script.sql",
            "--attach",
            "app=app.db",
            "--json",
        ],
    );
    std::fs::remove_file(place.path("script.sql")).expect("the script");
    run
}

#[track_caller]
fn well(place: &Place, server: &Server, script: &str) -> String {
    let run = sql(place, server, script);
    assert_eq!(run.code, Some(0), "{script}\n{}\n{}", run.out, run.err);
    run.out + &run.err
}

#[track_caller]
fn refused(place: &Place, server: &Server, number: u32, script: &str) -> String {
    let run = sql(place, server, script);
    let said = run.out + &run.err;
    assert_eq!(run.code, Some(1), "{script}\n{said}");
    assert!(said.contains(&number.to_string()), "{script}\n{said}");
    said
}

fn create(name: &str, secret: &str) -> String {
    format!("CREATE CREDENTIAL [{name}] WITH IDENTITY = 'S3 Access Key', SECRET = '{secret}'\n")
}

#[test]
fn the_credential_with_the_longest_name_signs_and_its_secret_is_nowhere() {
    let (place, server) = place();
    let (bucket, folder) = (server.url(""), server.url("prod"));
    let bucket = bucket.trim_end_matches('/');
    let key = format!("{KEY_ID}:{SECRET}");
    let [url, other] = [server.url("prod/a.bak"), server.url("a.bak")];
    let backup = |url: &str| format!("BACKUP DATABASE app TO URL = '{url}' WITH COMPRESSION");
    let mut said = refused(&place, &server, 3201, &backup(&url));
    assert!(said.contains("CREATE CREDENTIAL"), "{said}");
    said += &well(
        &place,
        &server,
        &(create(bucket, "stranger:hidden+other/9") + &create(&folder, &key)),
    );
    said += &well(&place, &server, &(backup(&url) + ", CREDENTIAL"));
    said += &refused(&place, &server, 3201, &backup(&other));
    said += &well(
        &place,
        &server,
        &format!(
            "RESTORE VERIFYONLY FROM URL = '{url}' WITH CREDENTIAL = '{folder}'
             RESTORE DATABASE copy FROM URL = '{url}' WITH MOVE 'app' TO '{}'
             SELECT name, credential_identity FROM sys.credentials WHERE name = '{folder}'",
            place.text("copy.db")
        ),
    );
    assert!(said.contains("S3 Access Key"), "{said}");
    // A key for one place is not used for another.
    let elsewhere = format!("{}, CREDENTIAL = [{folder}]", backup(&other));
    said += &refused(&place, &server, 50351, &elsewhere);
    said += &refused(
        &place,
        &server,
        3288,
        &format!("{}, CREDENTIAL = nobody", backup(&other)),
    );
    said += &refused(
        &place,
        &server,
        15530,
        &create(&folder.replacen("s3", "S3", 1), &key),
    );
    let alter =
        format!("ALTER CREDENTIAL [{bucket}] WITH IDENTITY = 'S3 Access Key', SECRET = '{key}'");
    said += &well(&place, &server, &(alter + "\n" + &backup(&other)));
    // The same from the command line; nothing is in an argument.
    let header = run(&place, &server, &["header", &url]);
    assert_eq!(header.code, Some(0), "{}", header.err);
    said += &(header.out + &header.err);
    said += &well(
        &place,
        &server,
        &format!("DROP CREDENTIAL [{bucket}] DROP CREDENTIAL [{folder}]"),
    );
    said += &refused(
        &place,
        &server,
        3289,
        &(backup(&url) + ", FORMAT, CREDENTIAL"),
    );
    said += &refused(
        &place,
        &server,
        15151,
        &format!("DROP CREDENTIAL [{folder}]"),
    );
    said += &refused(&place, &server, 3201, &backup(&url));
    assert!(!server.seen().contains(&SECRET[..13]));
    nowhere(&place, &said);
}

#[track_caller]
fn nowhere(place: &Place, said: &str) {
    for hidden in [&SECRET[..13], "hidden+other"] {
        assert!(!said.contains(hidden), "{said}");
        assert!(!holds(&place.path("instance"), hidden.as_bytes()));
        assert!(!holds(&place.path("log"), hidden.as_bytes()));
    }
}

#[test]
fn what_is_no_credential_is_refused_and_its_secret_is_not_repeated() {
    let (place, server) = place();
    let good = "WITH IDENTITY = 'S3 Access Key', SECRET = 'id:hidden'";
    for (number, statement) in [
        (
            50350,
            "CREATE CREDENTIAL c WITH IDENTITY = 'SHARED ACCESS SIGNATURE', SECRET = 'hidden'"
                .to_owned(),
        ),
        (
            50350,
            "CREATE CREDENTIAL c WITH IDENTITY = 'S3 Access Key'".to_owned(),
        ),
        (
            50350,
            "CREATE CREDENTIAL c WITH IDENTITY = 'S3 Access Key', SECRET = 'hidden'".to_owned(),
        ),
        (
            50350,
            format!("CREATE CREDENTIAL [s3://id:hidden@h:9000/bucket] {good}"),
        ),
        (
            50350,
            format!("CREATE CREDENTIAL [https://a.example/bucket] {good}"),
        ),
        (
            50150,
            "BACKUP DATABASE app TO URL = 's3://id:hidden@h:9000/bucket/x' WITH CREDENTIAL = c"
                .to_owned(),
        ),
        (
            102,
            "CREATE CREDENTIAL c WITH IDENTITY = 'S3 Access Key', SECRET 'id:hidden'".to_owned(),
        ),
        (
            50355,
            format!("CREATE PROCEDURE p AS CREATE CREDENTIAL c {good}"),
        ),
    ] {
        let said = refused(&place, &server, number, &statement);
        assert!(!said.contains("hidden"), "{said}");
    }
    assert!(!holds(&place.path("log"), b"hidden"));
}

#[test]
fn the_command_line_keeps_keys_from_files_that_only_their_owner_reads() {
    let (place, server) = place();
    let (url, key) = (server.url("a.bak"), place.path("key"));
    std::fs::write(&key, format!("{KEY_ID}:{SECRET}\n")).expect("a key");
    let set = ["credential", "set", &server.url(""), "--key-file", "key"];
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).expect("its mode");
    assert_eq!(run(&place, &server, &set).code, Some(1));
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).expect("its mode");
    // Twice: it replaces.
    for _ in 0..2 {
        let made = run(&place, &server, &set);
        assert_eq!(made.code, Some(0), "{}", made.err);
    }
    let list = run(&place, &server, &["credential", "list"]);
    assert!(list.out.contains(server.url("").as_str()), "{}", list.out);
    let made = run(&place, &server, &["backup", "app.db", "--to", &url]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let planned = run(
        &place,
        &server,
        &["backup", "app.db", "--to", &url, "--format", "--dry-run"],
    );
    assert_eq!(planned.code, Some(0), "{}", planned.err);
    let drop = run(&place, &server, &["credential", "drop", &server.url("")]);
    assert_eq!(drop.code, Some(0), "{}", drop.err);
    assert_eq!(run(&place, &server, &["verify", &url]).code, Some(1));
    assert!(!holds(&place.path("log"), SECRET.as_bytes()));
}

#[test]
fn options_for_the_store_are_sent_with_the_requests() {
    let (place, server) = place();
    let key = format!("{KEY_ID}:{SECRET}");
    well(&place, &server, &create("mine", &key));
    let options = r#"{"s3": {"region": "north-7", "storage_class": "STANDARD_IA", "tags": {"a b": "1"}, "checksum": "sha256"}}"#;
    // One in parts, and one of a single request.
    for (url, more) in [
        (
            server.url("a.bak"),
            ", NO_COMPRESSION, MAXTRANSFERSIZE = 5242880",
        ),
        (server.url("b.bak"), ", COMPRESSION"),
    ] {
        well(
            &place,
            &server,
            &format!(
                "BACKUP DATABASE app TO URL = '{url}' WITH CREDENTIAL = mine, BACKUP_OPTIONS = '{options}'{more}
                 RESTORE VERIFYONLY FROM URL = '{url}' WITH CREDENTIAL = 'mine', RESTORE_OPTIONS = '{{\"s3\":{{\"region\":\"north-7\"}}}}'"
            ),
        );
    }
    let seen = server.seen();
    assert!(
        seen.lines().all(|line| line.contains("/north-7/s3/")),
        "{seen}"
    );
    let has = |line: &&str, header: &str| line.contains(header);
    let begun: Vec<&str> = seen
        .lines()
        .filter(|line| line.contains("uploads=") || line.starts_with("PUT /backups/b.bak"))
        .collect();
    assert_eq!(begun.len(), 2, "{seen}");
    for line in &begun {
        assert!(
            has(line, r#""x-amz-storage-class": "STANDARD_IA""#),
            "{line}"
        );
        assert!(has(line, r#""x-amz-tagging": "a+b=1""#), "{line}");
    }
    let mut parts = seen.lines().filter(|line| line.contains("partNumber="));
    assert!(
        parts.all(|line| has(&line, "x-amz-checksum-sha256")),
        "{seen}"
    );
}

#[test]
fn a_logical_device_may_be_an_object() {
    let (place, server) = place();
    let key = format!("{KEY_ID}:{SECRET}");
    let script = format!(
        "EXEC sp_addumpdevice 'url', 'near', '{}'
         EXEC sp_addumpdevice 'url', 'far', '{}'
         BACKUP DATABASE app TO near MIRROR TO far WITH FORMAT, COMPRESSION, MAXTRANSFERSIZE = 20971520
         RESTORE VERIFYONLY FROM far
         RESTORE DATABASE copy FROM near WITH MOVE 'app' TO '{}'
         SELECT name, type_desc FROM sys.backup_devices",
        server.url("near.bak"),
        server.url("far/app.bak"),
        place.text("copy.db"),
    );
    let said = well(
        &place,
        &server,
        &(create(server.url("").as_str(), &key) + &script),
    );
    assert!(said.contains("URL"), "{said}");
    assert_eq!(server.keys(), ["far/app.bak", "near.bak"]);
    let read = |name: &str| std::fs::read(place.path(name)).expect(name);
    assert!(read("app.db") == read("copy.db"), "not byte for byte");
    for refused in [
        format!(
            "EXEC sp_addumpdevice 'disk', 'other', '{}'",
            server.url("x.bak")
        ),
        "EXEC sp_addumpdevice 'url', 'other', '/x.bak'".to_owned(),
        "BACKUP DATABASE app TO near, DISK = 'x.bak' WITH FORMAT".to_owned(),
    ] {
        assert_eq!(sql(&place, &server, &refused).code, Some(1), "{refused}");
    }
}

#[test]
fn no_key_in_a_url_is_listed_or_becomes_a_name() {
    let place = Place::new();
    let listed = crate::support::sql(
        &place,
        "EXEC sp_windlass_remote_folder 's3://user:hidden@host/bucket/'",
    );
    assert_eq!(listed.code, Some(1), "{}", listed.out);
    let signed = "s3://host/bucket/x.bak?X-Amz-Signature=hidden&X-Amz-Credential=mine";
    let made = place.run(&["backup", "app.db", "--to", signed]);
    assert_eq!(made.code, Some(1), "{}", made.out);
    for said in [listed, made] {
        assert!(
            !said.err.contains("hidden") && !said.out.contains("hidden"),
            "{}",
            said.err
        );
    }
}
