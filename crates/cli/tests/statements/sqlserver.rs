//! Backups that SQL Server wrote, through the program.

use std::path::PathBuf;

use crate::support::Place;

/// Says what is not tested, and why.
#[expect(clippy::print_stderr, reason = "a test that tests nothing must say so")]
fn not_tested(path: &std::path::Path) {
    eprintln!(
        "NOT TESTED: there is no {}; set WINDLASS_SHARED",
        path.display()
    );
}

/// A real backup; `None`, loudly, where the folder is absent.
fn sample(name: &str) -> Option<String> {
    let shared = std::env::var_os("WINDLASS_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = shared.join("data/bak").join(name);
    if path.exists() {
        return Some(path.display().to_string());
    }
    not_tested(&path);
    None
}

#[test]
fn inspect_shows_the_map_and_the_pages_of_a_file_as_text_and_as_json() {
    let Some(file) = sample("sql2022c_CompanyORM.bak") else {
        return;
    };
    let place = Place::new();
    let text = place.succeed(&["inspect", &file]).out;
    assert!(
        text.contains("compressed container: 560640 bytes in "),
        "{text}"
    );
    assert!(text.contains("set 1: Database of 'CompanyORM', SQL Server 16.0.1000, complete"));
    for word in [
        "MSDA",
        "MQDA",
        "CSUM",
        "file header",
        "IAM",
        "allocation unit",
    ] {
        assert_eq!(text.contains(word), word != "CSUM", "{word}");
    }
    let shown = place.succeed(&["--json", "inspect", &file]).out;
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown["container"], "MSSQLBAK");
    assert_eq!(shown["sets"][0]["database"], "CompanyORM");
    assert_eq!(shown["map"][0]["name"], "TAPE");
    let own = place.run(&["inspect", &place.text("app.db")]);
    assert_eq!(own.code, Some(1));
    assert!(own.err.contains("not a SQL Server backup"), "{}", own.err);
}

#[test]
fn extract_writes_tables_or_data_files_and_fails_when_a_row_is_missing() {
    let Some(file) = sample("sql2005_Northwind_a.bak") else {
        return;
    };
    let place = Place::new();
    let told = place.succeed(&[
        "extract",
        &file,
        "--to",
        &place.text("x.db"),
        "--table",
        "Orders",
    ]);
    assert!(told.out.contains("830"), "{}", told.out);
    assert!(
        told.err.contains("neither completed nor undone"),
        "{}",
        told.err
    );
    let database = rusqlite::Connection::open(place.path("x.db")).expect("a database");
    let rows: i64 = database
        .query_row("SELECT count(*) FROM Orders", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(rows, 830);
    let folder = place.text("files");
    place.succeed(&["extract", &file, "--format", "files", "--to", &folder]);
    assert!(place.path("files/Northwind.mdf").exists());
    assert!(place.path("files/Northwind_log.ldf").exists());
    let half = sample("sql2025_Chinook_stripe1of2_only.bak").expect("a file of the same folder");
    let told = place.run(&["extract", &half, "--to", &place.text("half.db")]);
    assert_eq!(told.code, Some(1));
    assert!(
        told.err.contains("Media family 2 of 2 is missing"),
        "{}",
        told.err
    );
    assert!(told.err.contains("the server counted 347"), "{}", told.err);
}
