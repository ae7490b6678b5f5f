//! Backups of SQL Server in object storage: read there as in a file, and copied from there and to there.

use std::path::Path;

use crate::objects::{run, well};
use crate::s3_server::Server;
use crate::sqlserver::sample;
use crate::support::Place;

const FULL: &str = "sql2016_BackupTestDb_full.bak";
const DIFFERENTIAL: &str = "sql2016_BackupTestDb_diff.bak";
const COMPRESSED: &str = "sql2014c_AWDataWarehouse_copyonly_3datafiles.bak";
const STRIPES: [&str; 2] = [
    "sql2008r2_lab_RestoreTimeStripe__Stripe1__RestoreTimeStripe.bak",
    "sql2008r2_lab_RestoreTimeStripe__Stripe2__RestoreTimeStripe1.bak",
];

/// A sample, and the URL at which the store has it.
fn stored(server: &Server, name: &str) -> Option<(String, String)> {
    let file = sample(name)?;
    let key = format!("prod/{name}");
    server.put(&key, &std::fs::read(&file).expect("a sample"));
    Some((file, server.url(&key)))
}

/// What a command says of the URL and of the file is the same.
#[track_caller]
fn same(place: &Place, server: &Server, (file, url): (&str, &str), arguments: &[&str]) {
    let with = |name: &str| {
        let named = arguments.iter().map(|argument| match *argument {
            "FILE" => name,
            argument => argument,
        });
        let named: Vec<&str> = named.collect();
        let done = run(place, server, &named);
        assert_eq!(done.code, Some(0), "{named:?}\n{}\n{}", done.out, done.err);
        let base = Path::new(file).file_name().expect("a name");
        let said = format!("{}\n{}", done.out, done.err);
        let said = said.replace(url, "NAME").replace(file, "NAME");
        said.replace(&*base.to_string_lossy(), "NAME")
    };
    assert_eq!(with(url), with(file), "{arguments:?}");
}

#[test]
fn a_backup_of_sql_server_is_read_at_a_url_as_in_a_file() {
    let (place, server) = (Place::new(), Server::start());
    for name in [FULL, COMPRESSED] {
        let Some((file, url)) = stored(&server, name) else {
            return;
        };
        let both = (file.as_str(), url.as_str());
        for command in ["files", "label", "verify"] {
            same(&place, &server, both, &[command, "FILE"]);
        }
        same(&place, &server, both, &["inspect", "--summary", "FILE"]);
        same(&place, &server, both, &["header", "FILE", "--json"]);
    }
}

#[test]
fn the_tables_of_a_backup_at_a_url_are_extracted_and_queried() {
    let (place, server) = (Place::new(), Server::start());
    let Some((file, url)) = stored(&server, COMPRESSED) else {
        return;
    };
    server.requests();
    well(&place, &server, &["extract", &url, "--to", "at-url.db"]);
    let requests = server.requests();
    assert!(requests.len() < 60, "{} requests", requests.len());
    well(&place, &server, &["extract", &file, "--to", "of-file.db"]);
    let dump = |name: &str| {
        let database = rusqlite::Connection::open(place.path(name)).expect("a database");
        let mut tables = database
            .prepare("SELECT sql FROM sqlite_schema ORDER BY 1")
            .expect("a query");
        let tables = tables.query_map([], |row| row.get::<_, Option<String>>(0));
        tables
            .expect("tables")
            .collect::<Result<Vec<_>, _>>()
            .expect("a schema")
    };
    assert_eq!(dump("at-url.db"), dump("of-file.db"));
    assert!(!dump("at-url.db").is_empty());
    let count = ["-Q", "SELECT count(*) FROM sqlite_schema"];
    let query = [&["sql", "--on", &url][..], &count].concat();
    well(&place, &server, &query);
    let files = ["--format", "files", "--to", "data"];
    well(&place, &server, &[&["extract", &url][..], &files].concat());
    assert!(place.path("data").read_dir().expect("a folder").count() >= 4);
}

#[test]
fn a_full_and_a_differential_at_urls_are_restored_to_the_files_of_sql_server() {
    let (place, server) = (Place::new(), Server::start());
    let (Some((full, full_url)), Some((differential, differential_url))) =
        (stored(&server, FULL), stored(&server, DIFFERENTIAL))
    else {
        return;
    };
    let batch = |folder: &str, kind: &str, full: &str, differential: &str| {
        let made = std::fs::create_dir(place.path(folder));
        made.expect("a folder");
        let at = place.path(folder).display().to_string();
        let listed = well(&place, &server, &["files", full, "--json"]);
        let names = listed.results()[0].as_array().expect("rows").clone();
        let moves: Vec<String> = names
            .iter()
            .map(|row| {
                let name = row["LogicalName"].as_str().expect("a name");
                format!("MOVE '{name}' TO '{at}/{name}'")
            })
            .collect();
        let moves = moves.join(", ");
        let text = format!(
            "RESTORE DATABASE {folder} FROM {kind} = '{full}' WITH NORECOVERY, {moves};
             RESTORE DATABASE {folder} FROM {kind} = '{differential}' WITH RECOVERY"
        );
        well(&place, &server, &["sql", "--instance", "i", "-Q", &text]);
        let mut files: Vec<(String, Vec<u8>)> = (place.path(folder).read_dir().expect("it"))
            .map(|entry| {
                let entry = entry.expect("an entry");
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, std::fs::read(entry.path()).expect("a file"))
            })
            .collect();
        files.sort();
        files
    };
    let at_urls = batch("of_urls", "URL", &full_url, &differential_url);
    let of_files = batch("of_files", "DISK", &full, &differential);
    assert!(at_urls == of_files && at_urls.len() >= 2);
}

#[test]
fn a_backup_is_repacked_from_urls_to_a_url_and_unpacked_from_there() {
    let (place, server) = (Place::new(), Server::start());
    let stripes: Option<Vec<(String, String)>> =
        STRIPES.iter().map(|name| stored(&server, name)).collect();
    let Some(stripes) = stripes else {
        return;
    };
    let copy = server.url("copies/1.wl");
    let repack = ["repack", &stripes[1].1, &stripes[0].1, "--to", &copy];
    well(&place, &server, &repack);
    well(&place, &server, &["verify", &copy]);
    let unpack = ["unpack", &copy, "--to", "1.bak", "--to", "2.bak"];
    well(&place, &server, &unpack);
    for (unpacked, (file, _)) in ["1.bak", "2.bak"].iter().zip(&stripes) {
        let unpacked = std::fs::read(place.path(unpacked)).expect("a file");
        assert!(unpacked == std::fs::read(file).expect("a sample"), "{file}");
    }
    let over = ["repack", &stripes[0].1, &stripes[1].1, "--to"];
    let over = [&over[..], &[&stripes[0].1, "--format"]].concat();
    let refused = run(&place, &server, &over);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(
        refused.err.contains("It is the backup that is copied"),
        "{}",
        refused.err
    );
}

#[test]
fn a_damaged_and_a_missing_backup_at_a_url_are_named() {
    let (place, server) = (Place::new(), Server::start());
    let Some((file, _)) = stored(&server, FULL) else {
        return;
    };
    let mut bytes = std::fs::read(&file).expect("a sample");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    server.put("damaged.bak", &bytes);
    let url = server.url("damaged.bak");
    let found = run(&place, &server, &["verify", &url]);
    assert_eq!(found.code, Some(1), "{}", found.out);
    assert!(found.err.contains(&url), "{}", found.err);
    for command in ["inspect", "verify", "header", "extract"] {
        let url = server.url("nothing.bak");
        let to: &[&str] = if command == "extract" {
            &["--to", "x.db"]
        } else {
            &[]
        };
        let missing = run(&place, &server, &[&[command, &url][..], to].concat());
        assert_eq!(missing.code, Some(1), "{}", missing.out);
        assert!(
            missing.err.contains("here is no object at this URL"),
            "{}",
            missing.err
        );
    }
}

#[test]
fn looking_whether_an_object_is_of_sql_server_takes_no_request_of_its_own() {
    let (place, server) = crate::objects::place();
    let url = &server.url("app.bak");
    well(&place, &server, &["backup", "app.db", "--to", url]);
    server.requests();
    well(&place, &server, &["header", url]);
    let asked = server.requests();
    let opened = asked.iter().filter(|request| request.starts_with("GET"));
    assert!(opened.count() <= 2, "the head and the tail: {asked:?}");
}
