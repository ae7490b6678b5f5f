//! Databases in each of SQLite's text encodings, together with the catalog, which is UTF-8.

use rusqlite::Connection;
use serde_json::json;

use crate::sales::MAKE;
use crate::support::{Place, sql, succeed};

const ENCODINGS: [&str; 3] = ["UTF-8", "UTF-16le", "UTF-16be"];

/// Rows of the user's joined with rows of the catalog, by text that is not ASCII alone.
const JOINED: &str = "
SELECT notes.body, files.name, sets.type, sets.database_name, CAST(sets.position AS INT) AS position
FROM notes
JOIN sys.databases AS files ON files.name = notes.database_name
JOIN msdb.dbo.backupset AS sets ON sets.database_name = files.name
ORDER BY sets.position
SELECT count(*) AS families FROM msdb.dbo.backupset AS s
JOIN msdb.dbo.backupmediafamily AS m ON m.media_set_id = s.media_set_id
WHERE s.database_name = DB_NAME() AND m.physical_device_name LIKE '%.bak'
PRAGMA encoding";

const NOTES: &str = "CREATE TABLE notes (database_name TEXT, body TEXT);
INSERT INTO notes VALUES (DB_NAME(), N'Grüße, 世界 🌍');";

fn joined(place: &Place, name: &str, encoding: &str) {
    let run = succeed(place, &format!("USE [{name}]\nGO\n{JOINED}"));
    let results = run.results();
    let row = |kind: &str, position: u32| {
        json!({"body": "Grüße, 世界 🌍", "name": name, "type": kind, "database_name": name,
               "position": position})
    };
    assert_eq!(results[0], json!([row("D", 1), row("I", 2)]), "{encoding}");
    assert_eq!(results[1], json!([{"families": 2}]), "{encoding}");
    assert_eq!(results[2], json!([{"encoding": encoding}]));
}

#[test]
fn queries_join_the_catalog_with_a_database_of_any_text_encoding() {
    let place = Place::new();
    for encoding in ENCODINGS {
        let name = format!("größe {encoding}");
        let file = place.path(&format!("{encoding}.db"));
        let made = Connection::open(&file).expect("a database");
        made.execute_batch(&format!(
            "PRAGMA encoding = '{encoding}'; CREATE TABLE x(y);"
        ))
        .expect("a table");
        drop(made);
        succeed(
            &place,
            &format!(
                "CREATE DATABASE [{name}] ON (FILENAME = 'D:\\{encoding}.db') FOR ATTACH
GO
USE [{name}]
GO
{NOTES}
GO
BACKUP DATABASE [{name}] TO DISK = 'D:\\{encoding}.bak'
BACKUP DATABASE [{name}] TO DISK = 'D:\\{encoding}.bak' WITH DIFFERENTIAL"
            ),
        );
        joined(&place, &name, encoding);
    }
}

#[test]
fn an_engine_database_takes_its_text_encoding_from_its_first_statement() {
    for encoding in ENCODINGS {
        let place = Place::new();
        let make = MAKE.replace(
            "USE Sales\nGO\n",
            &format!("USE Sales\nGO\nPRAGMA encoding = '{encoding}'\nGO\n"),
        );
        succeed(
            &place,
            &format!(
                "{make}{NOTES}
GO
BACKUP DATABASE Sales TO DISK = 'D:\\s.bak'
BACKUP DATABASE Sales TO DISK = 'D:\\s.bak' WITH DIFFERENTIAL
GO
PRAGMA encoding = 'UTF-8'
PRAGMA encoding = 'UTF-16be'"
            ),
        );
        joined(&place, "Sales", encoding);
    }
}

#[test]
fn an_imported_database_keeps_its_text_encoding() {
    for encoding in ENCODINGS {
        let place = Place::new();
        let made = Connection::open(place.path("plain.db")).expect("a database");
        made.execute_batch(&format!(
            "PRAGMA page_size = 4096; PRAGMA encoding = '{encoding}'; CREATE TABLE x(y);"
        ))
        .expect("a table");
        drop(made);
        let (instance, data) = (place.text("instance"), place.text("in.mdf"));
        place.succeed(&[
            "import",
            "plain.db",
            "--into",
            "In",
            "--data",
            &data,
            "--instance",
            &instance,
        ]);
        succeed(
            &place,
            &format!(
                "USE [In]\nGO\n{NOTES}\nGO
BACKUP DATABASE [In] TO DISK = 'D:\\in.bak'
BACKUP DATABASE [In] TO DISK = 'D:\\in.bak' WITH DIFFERENTIAL"
            ),
        );
        joined(&place, "In", encoding);
    }
}

#[test]
fn the_catalog_s_views_cannot_be_changed_and_hide_what_is_secret() {
    let place = Place::new();
    for refused in [
        "DELETE FROM msdb.dbo.backupset",
        "DROP TABLE msdb.backupset",
        "CREATE TABLE sys.mine (x)",
        "INSERT INTO sys.databases (name) VALUES ('x')",
        "SELECT * FROM sys.own_master_key",
    ] {
        let run = sql(
            &place,
            &format!(
                "CREATE DATABASE app ON (FILENAME = 'D:\\app.db') FOR ATTACH\nGO\nUSE app\nGO\n{refused}"
            ),
        );
        assert!(run.code != Some(0), "{refused}");
        succeed(
            &place,
            "SELECT count(*) FROM sys.databases\nGO\nEXEC sp_detach_db 'app'",
        );
    }
}

#[test]
fn conditions_on_the_catalog_find_what_a_whole_search_finds() {
    let place = Place::new();
    let run = succeed(
        &place,
        "EXEC sp_addumpdevice 'disk', 'Nightly', 'D:\\n.bak'
CREATE DATABASE app ON (FILENAME = 'D:\\app.db') FOR ATTACH
BACKUP DATABASE app TO Nightly
GO
SELECT count(*) AS n FROM sys.backup_devices WHERE name = 'NIGHTLY'
SELECT count(*) AS n FROM msdb.dbo.backupset WHERE position = '1'
SELECT count(*) AS n FROM msdb.dbo.backupset WHERE position = 1.0 AND type = 'D'
SELECT count(*) AS n FROM msdb.dbo.backupset WHERE database_name = 'APP' COLLATE NOCASE
SELECT count(*) AS n FROM msdb.dbo.backupset WHERE database_name IN ('x', 'app') AND position IN (1, 2)
SELECT count(*) AS n FROM msdb.dbo.backupset WHERE database_name = 'APP'
SELECT count(*) AS n FROM msdb.dbo.backupset a JOIN msdb.dbo.backupset b ON a.last_lsn = CAST(b.last_lsn AS TEXT)
SELECT count(*) AS n FROM msdb.dbo.backupset WHERE position = NULL",
    );
    let counts: Vec<_> = run
        .results()
        .iter()
        .map(|rows| rows[0]["n"].clone())
        .collect();
    assert_eq!(counts, [1, 1, 1, 1, 1, 1, 1, 0]);
}
