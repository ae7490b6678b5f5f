//! A differential of which only a part was applied.

use rusqlite::Connection;

use crate::support::{Place, flip_bit, sql, succeed};

const ROWS: &str = "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 6000) \
                    INSERT INTO big SELECT randomblob(4000) FROM n";

/// Both kinds of databases, each with a full backup and a differential of some 24 MB.
fn place() -> Place {
    let place = Place::new();
    let connection = Connection::open(place.path("app.db")).expect("a database");
    connection
        .execute_batch("CREATE TABLE big(b)")
        .expect("a table");
    succeed(
        &place,
        "EXEC sp_attach_db 'app', 'd:\\app.db'
         CREATE DATABASE own
         GO
         USE own
         GO
         CREATE TABLE big(b)
         BACKUP DATABASE own TO DISK = 'd:\\own.bak' WITH NO_COMPRESSION
         BACKUP DATABASE app TO DISK = 'd:\\app.bak' WITH NO_COMPRESSION",
    );
    connection.execute_batch(ROWS).expect("rows");
    drop(connection);
    succeed(
        &place,
        &format!(
            "USE own\nGO\n{ROWS} OPTION (MAXRECURSION 0)\nGO
             BACKUP DATABASE own TO DISK = 'd:\\own_d.bak' WITH DIFFERENTIAL, NO_COMPRESSION
             BACKUP DATABASE app TO DISK = 'd:\\app_d.bak' WITH DIFFERENTIAL, NO_COMPRESSION"
        ),
    );
    place
}

/// For both kinds of databases.
#[test]
fn a_database_to_which_a_differential_was_applied_in_part_is_neither_online_nor_brought_online() {
    let place = place();
    for (name, moves) in [
        ("app", "MOVE 'app' TO 'd:\\copy.db'"),
        (
            "own",
            "MOVE 'own' TO 'd:\\copy.mdf', MOVE 'own_log' TO 'd:\\copy.ldf'",
        ),
    ] {
        let full = format!(
            "RESTORE DATABASE copy FROM DISK = 'd:\\{name}.bak' WITH NORECOVERY, REPLACE, {moves}"
        );
        let differential =
            format!("RESTORE DATABASE copy FROM DISK = 'd:\\{name}_d.bak' WITH {moves}");
        let medium = place.path(&format!("{name}_d.bak"));
        let whole = std::fs::read(&medium).expect("the medium");
        // In its last part, long after the first bytes were applied.
        flip_bit(&medium, whole.len() as u64 * 19 / 20);
        succeed(&place, &full);
        let run = sql(&place, &differential);
        assert_ne!(run.code, Some(0), "{}", run.err);
        assert!(
            !run.err.contains("RESTORE DATABASE successfully"),
            "{}",
            run.err
        );
        for refused in [
            "USE copy",
            "RESTORE DATABASE copy WITH RECOVERY",
            &differential,
        ] {
            let run = sql(&place, refused);
            assert_ne!(run.code, Some(0), "{name}: {refused}: {}", run.out);
            let state = succeed(
                &place,
                "SELECT state_desc FROM sys.databases WHERE name = 'copy'",
            );
            assert!(
                state.out.contains("RESTORING"),
                "{name}: {refused}: {}",
                state.out
            );
        }
        for file in ["copy.db", "copy.mdf", "copy.ldf"] {
            assert!(!place.path(file).exists(), "{file}");
        }
        // Good media, from the start.
        std::fs::write(&medium, &whole).expect("the medium");
        succeed(&place, &format!("{full}\n{differential}"));
        let run = succeed(&place, "USE copy\nGO\nSELECT count(*) AS n FROM big");
        assert!(run.out.contains("6000"), "{}", run.out);
        succeed(&place, "DROP DATABASE copy");
    }
}
