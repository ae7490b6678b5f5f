//! Backups that SQL Server wrote, through the program.

use std::path::PathBuf;

use crate::support::Place;

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
    eprintln!(
        "NOT TESTED: there is no {}; set WINDLASS_SHARED",
        path.display()
    );
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
