//! `windlass import`: page checksums, and what a failure leaves.

use std::path::Path;

use rusqlite::Connection;

use crate::support::{Place, Run, flip_bit, make_database, sql};

const PAGE_SIZE: u64 = 8192;

const SUM: &str = "SELECT sum(length(body)) AS bytes FROM t";

fn import(place: &Place, file: &str, further: &[&str]) -> Run {
    let (instance, data) = (place.text("instance"), place.text("x.db"));
    let mut arguments = vec!["import", file, "--into", "x", "--data", &data];
    arguments.extend(["--instance", &instance, "--json"]);
    arguments.extend(further);
    place.run(&arguments)
}

/// Every row of the table that [`make_database`] makes.
fn content(path: &Path) -> Vec<(i64, String)> {
    let connection = Connection::open(path).expect("a database");
    let mut rows = connection
        .prepare("SELECT id, body FROM t ORDER BY id")
        .expect("the table");
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.expect("rows").map(|row| row.expect("a row")).collect()
}

/// Whether the notes of an import say that its pages have no checksums, and what would give them.
fn tells_of_no_checksums(run: &Run) -> bool {
    assert_eq!(run.code, Some(0), "{}", run.err);
    let messages = run.messages();
    assert!(messages.iter().all(|message| message["number"] == 50010));
    let texts = messages
        .iter()
        .filter_map(|message| message["text"].as_str());
    let reported: Vec<_> = texts.filter(|text| text.contains("checksums")).collect();
    assert!(
        reported
            .iter()
            .all(|text| text.contains("--page-checksums"))
    );
    let of_instance = |message: &&serde_json::Value| {
        let text = message["text"].as_str();
        text.is_some_and(|text| text.starts_with("There is no instance"))
    };
    let made = messages.iter().filter(of_instance).count();
    assert_eq!(messages.len(), 1 + made + reported.len());
    !reported.is_empty()
}

/// The number from 0 of a page in the middle that holds rows alone.
fn page_of_rows(path: &Path) -> u64 {
    let bytes = std::fs::read(path).expect("the file");
    let leaf_of_table = 13;
    let mut pages = bytes.chunks(PAGE_SIZE as usize).skip(10);
    10 + pages
        .position(|page| page[0] == leaf_of_table)
        .expect("a page of rows") as u64
}

/// In the text of a row: SQLite itself would not notice.
fn flip(path: &Path, page: u64) {
    flip_bit(path, page * PAGE_SIZE + PAGE_SIZE - 300);
}

#[test]
fn a_flipped_bit_of_a_database_imported_with_page_checksums_gives_824_and_its_place() {
    let place = Place::new();
    let source = std::fs::read(place.path("app.db")).expect("the source");
    let run = import(&place, "app.db", &["--page-checksums"]);
    assert!(!tells_of_no_checksums(&run));
    assert!(std::fs::read(place.path("app.db")).expect("the source") == source);
    let data = place.path("x.db");
    assert_eq!(std::fs::read(&data).expect("the data file")[20], 8);
    assert!(content(&data) == content(&place.path("app.db")));

    let page = page_of_rows(&data);
    flip(&data, page);
    let run = sql(&place, &format!("USE x\nGO\n{SUM}"));
    assert_eq!(run.numbers(), [824], "{}", run.err);
    let offset = page * PAGE_SIZE;
    let file = place.text("x.db");
    let named = format!("page (1:{page}) at offset 0x{offset:x} in file '{file}'");
    assert!(run.err.contains(&named), "{named}: {}", run.err);
    let backup = "BACKUP DATABASE x TO DISK = 'D:\\x.bak' WITH CHECKSUM";
    let run = sql(&place, backup);
    assert_eq!(run.numbers(), [50185, 824, 3013], "{}", run.err);
    assert!(run.err.contains(&named), "{named}: {}", run.err);
    let run = sql(
        &place,
        "SELECT file_id, page_id, event_type, error_count FROM msdb.dbo.suspect_pages",
    );
    assert_eq!(
        run.results(),
        [serde_json::json!([{"file_id": 1, "page_id": page, "event_type": 2, "error_count": 1}])]
    );
}

#[test]
fn a_damaged_page_of_a_sqlite_file_is_counted_as_in_the_page_engine_and_its_byte_is_given() {
    let place = Place::new();
    let (instance, own) = (place.text("instance"), place.path("own.db"));
    import(&place, "app.db", &["--page-checksums"]);
    place.succeed(&[
        "export",
        "x",
        "--to",
        &place.text("own.db"),
        "--instance",
        &instance,
    ]);
    let page = page_of_rows(&own);
    flip(&own, page);
    let run = sql(
        &place,
        "CREATE DATABASE own ON (FILENAME = 'D:\\own.db') FOR ATTACH
GO
BACKUP DATABASE own TO DISK = 'D:\\own.bak' WITH CHECKSUM",
    );
    assert_eq!(run.numbers(), [824, 3013], "{}", run.err);
    let expected = format!("page (1:{page}) at offset 0x{:x} in", page * PAGE_SIZE);
    assert!(run.err.contains(&expected), "{expected}: {}", run.err);
    let run = sql(
        &place,
        "BACKUP DATABASE own TO DISK = 'D:\\own.bak' WITH CHECKSUM, CONTINUE_AFTER_ERROR
GO
SELECT file_id, page_id FROM msdb.dbo.suspect_pages",
    );
    assert_eq!(
        run.results(),
        [serde_json::json!([{"file_id": 1, "page_id": page}])]
    );
}

#[test]
fn an_import_without_page_checksums_says_so_and_what_gives_them() {
    let place = Place::new();
    assert!(tells_of_no_checksums(&import(&place, "app.db", &[])));
    let data = place.path("x.db");
    assert_eq!(std::fs::read(&data).expect("the data file")[20], 0);
    flip(&data, page_of_rows(&data));
    let run = sql(&place, &format!("USE x\nGO\n{SUM}"));
    assert_eq!(run.code, Some(0), "nothing can tell: {}", run.err);

    // A database with room for checksums keeps them, without a message.
    sql(&place, "DROP DATABASE x");
    let (instance, own) = (place.text("instance"), place.text("own.db"));
    import(&place, "other.db", &["--page-checksums"]);
    place.succeed(&["export", "x", "--to", &own, "--instance", &instance]);
    sql(&place, "DROP DATABASE x");
    assert!(!tells_of_no_checksums(&import(&place, "own.db", &[])));
    assert_eq!(std::fs::read(&data).expect("the data file")[20], 8);
}

#[test]
fn an_import_that_finds_no_room_leaves_nothing() {
    let place = Place::new();
    make_database(&place.path("large.db"), 3000);
    for further in [&[][..], &["--page-checksums"]] {
        let (instance, data) = (place.text("instance"), place.text("x.db"));
        let mut arguments = vec!["import", "large.db", "--into", "x", "--data", &data];
        arguments.extend(["--instance", &instance]);
        arguments.extend(further);
        // No file may grow beyond 1 MB: the write that would do so fails, as on a full disk.
        let command = place.command(&arguments);
        let limited = std::process::Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$0\" \"$@\""])
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(place.path(""))
            .output()
            .expect("the program runs");
        assert_eq!(limited.status.code(), Some(1));
        let said = String::from_utf8_lossy(&limited.stderr);
        assert!(said.contains("50023"), "{said}");
        let left = std::fs::read_dir(place.path("")).expect("the folder");
        let left = left.flatten().map(|entry| entry.file_name());
        let left: Vec<_> = left
            .filter(|name| name.to_string_lossy().starts_with("x."))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
    assert!(!tells_of_no_checksums(&import(
        &place,
        "large.db",
        &["--page-checksums"]
    )));
}

#[test]
fn a_database_that_is_open_under_another_name_is_not_imported() {
    let place = Place::new();
    let path = place.path("app.db");
    let writer = rusqlite::Connection::open(&path).expect("a writer");
    writer
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE late(x)",
        )
        .expect("a commit in the log");
    // The log stays beside the old name.
    std::fs::rename(&path, place.path("moved.db")).expect("another name");
    let run = import(&place, "moved.db", &[]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(
        run.err.contains("is open in another program in WAL mode"),
        "{}",
        run.err
    );
    assert!(!place.path("x.db").exists());
    drop(writer);
}

#[test]
fn what_has_no_name_or_no_place_is_told_in_words_of_the_command_line() {
    let place = Place::new();
    for (line, said) in [
        (
            "import app.db --into x",
            "the new database has no place: name the instance that it belongs to with --instance DIR",
        ),
        ("import app.db --into= --instance i", "--into is empty"),
        (
            "import app.db --into a/b --instance i",
            "--into 'a/b': a file in the instance cannot have this name",
        ),
        (
            "import app.db --into .x --instance i",
            "--into '.x': a file in the instance cannot have this name",
        ),
        (
            "import app.db --into x --data other.db --instance i",
            "--data other.db: there is such a file, and an import overwrites none",
        ),
        (
            "export app --to x.db",
            "name the instance with --instance DIR",
        ),
    ] {
        let run = place.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(run.code, Some(2), "{line}: {}", run.err);
        assert!(run.err.contains(said), "{line}: {}", run.err);
    }
    assert!(!place.path("i").exists(), "no instance is made in vain");
}

#[test]
fn an_export_of_a_sqlite_file_says_how_it_is_copied() {
    let place = crate::support::registered();
    let run = crate::support::on(&place, &["export", "app", "--to", "x.db"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    for said in ["Msg 50005", "windlass backup app --to FILE", "VACUUM INTO"] {
        assert!(run.err.contains(said), "{said}: {}", run.err);
    }
    assert!(!place.path("x.db").exists());
}
