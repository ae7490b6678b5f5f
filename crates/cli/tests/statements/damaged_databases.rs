//! Databases that the instance knows to be damaged: what it says of them and of their backups, and when that ends.

use std::os::unix::fs::FileExt as _;

use crate::sales::MAKE;
use crate::support::{Place, Run, flip_bit, on, registered, sql, succeed, well};

/// Puts rubbish over a page in the middle of `app.db`, and returns the intact file.
fn spoil(place: &Place) -> Vec<u8> {
    let path = place.path("app.db");
    let intact = std::fs::read(&path).expect("the file");
    let file = std::fs::File::options().write(true).open(&path);
    let page = intact.len() as u64 / 4096 / 2;
    let spoilt = file.expect("it").write_all_at(&[0xA5; 4096], page * 4096);
    spoilt.expect("rubbish");
    intact
}

fn is_damaged(place: &Place, file: &str) -> bool {
    let run = place.succeed(&["header", file, "--json"]);
    let rows: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    rows[0]["IsDamaged"] == true
}

fn back_up(place: &Place, name: &str, file: &str) -> Run {
    let run = on(place, &["--json", "backup", name, "--to", file]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    run
}

/// Everything says that the database is damaged, and its backups are marked and take the place of none.
#[track_caller]
fn assert_ill(place: &Place, name: &str, number: u32) {
    let check = on(place, &["check", "--database", name, "--json"]);
    assert_eq!(check.code, Some(2), "{}", check.out);
    assert!(check.out.contains("database-damaged"), "{}", check.out);
    let found = format!("message {number}");
    for command in [&["check"][..], &["doctor"], &["report"]] {
        let run = on(place, command);
        assert_ne!(run.code, Some(0), "{command:?}: {}", run.out);
        assert!(
            run.out.contains("the database is damaged"),
            "{command:?}: {}{}",
            run.out,
            run.err
        );
        assert!(run.out.contains(&found), "{command:?}: {}", run.out);
    }
    let run = on(place, &["history", "--rpo", "24h", name]);
    assert!(run.out.contains("database damaged"), "{}", run.out);
    assert_eq!(run.code, Some(1));
    let metrics = on(place, &["metrics"]).out;
    let line = format!("windlass_database_damaged{{database=\"{name}\"}} 1");
    assert!(metrics.contains(&line), "{metrics}");
    let run = back_up(place, name, "b/ill.bak");
    assert!(run.numbers().contains(&50185), "{}", run.err);
    assert!(is_damaged(place, "b/ill.bak"));
    let expire = ["--json", "expire", "b", "--last", "1", "--delete"];
    on(place, &expire);
    assert!(place.path("b/good.bak").exists());
    assert!(place.path("b/older.bak").exists());
}

#[track_caller]
fn assert_sound(place: &Place, name: &str) {
    let run = back_up(place, name, "b/sound.bak");
    assert!(!run.numbers().contains(&50185), "{}", run.err);
    assert!(!is_damaged(place, "b/sound.bak"));
    assert_eq!(on(place, &["check", "--database", name]).code, Some(0));
    well(place, &["expire", "b", "--last", "1", "--delete"]);
    assert!(!place.path("b/good.bak").exists());
}

/// A database with two good backups, and another that its owner has not asked about.
fn kept(name: &str) -> Place {
    let place = registered();
    if name == "Sales" {
        succeed(&place, MAKE);
    }
    std::fs::create_dir(place.path("b")).expect("a folder");
    for file in ["b/older.bak", "b/good.bak"] {
        back_up(&place, name, file);
    }
    place
}

#[test]
fn what_checkdb_has_found_marks_backups_until_it_finds_nothing() {
    let place = kept("app");
    let intact = spoil(&place);
    assert_eq!(sql(&place, "DBCC CHECKDB (app)").code, Some(1));
    assert_ill(&place, "app", 50051);
    std::fs::write(place.path("app.db"), intact).expect("the file");
    // A shallow check does not refute what a deeper one found.
    succeed(&place, "DBCC CHECKDB (app) WITH PHYSICAL_ONLY");
    assert_ill(&place, "app", 50051);
    succeed(&place, "DBCC CHECKDB (app)");
    assert_sound(&place, "app");
}

#[test]
fn what_the_check_of_a_backup_has_found_marks_the_next_ones() {
    let place = kept("app");
    let intact = spoil(&place);
    let checked = |file| {
        on(
            &place,
            &["backup", "app", "--to", file, "--integrity", "quick"],
        )
    };
    assert_eq!(checked("x.bak").code, Some(1));
    assert_ill(&place, "app", 50051);
    std::fs::write(place.path("app.db"), intact).expect("the file");
    assert_eq!(checked("b/x.bak").code, Some(0));
    assert!(!is_damaged(&place, "b/x.bak"));
    assert_sound(&place, "app");
}

#[test]
fn a_query_on_a_malformed_file_is_a_finding() {
    let place = kept("app");
    spoil(&place);
    let run = sql(
        &place,
        "USE app\nGO\nSELECT count(body) AS n, max(body) AS m FROM t",
    );
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert_ill(&place, "app", 50000);
}

#[test]
fn a_suspect_page_marks_backups_until_it_is_restored() {
    let place = kept("Sales");
    flip_bit(&place.path("sales_2.ndf"), 20 * 8192 + 300);
    let run = sql(&place, "USE Sales\nGO\nSELECT max(body) AS m FROM orders");
    assert!(run.numbers().contains(&824), "{}", run.err);
    assert_ill(&place, "Sales", 824);
    let run = sql(
        &place,
        "RESTORE DATABASE Sales PAGE = '3:20' FROM DISK = 'D:\\b\\good.bak'",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_sound(&place, "Sales");
}

#[test]
fn a_page_that_ended_a_backup_with_checksums_marks_the_plain_ones() {
    let place = kept("Sales");
    flip_bit(&place.path("sales_2.ndf"), 20 * 8192 + 300);
    let run = sql(
        &place,
        "BACKUP DATABASE Sales TO DISK = 'D:\\x.bak' WITH CHECKSUM",
    );
    assert!(run.numbers().contains(&824), "{}", run.err);
    assert_ill(&place, "Sales", 824);
}

#[test]
fn a_restore_ends_it_unless_its_backup_is_damaged() {
    for name in ["app", "Sales"] {
        let place = kept(name);
        match name {
            "app" => drop(spoil(&place)),
            _ => flip_bit(&place.path("sales_2.ndf"), 20 * 8192 + 300),
        }
        let check = format!("DBCC CHECKDB ({name})");
        assert_eq!(sql(&place, &check).code, Some(1));
        back_up(&place, name, "b/ill.bak");
        for (file, is_ill) in [
            ("ill", true),
            ("good", false),
            ("ill", true),
            ("good", false),
        ] {
            let restore =
                format!("RESTORE DATABASE {name} FROM DISK = 'D:\\b\\{file}.bak' WITH REPLACE");
            let run = succeed(&place, &restore);
            assert_eq!(run.numbers().contains(&50187), is_ill, "{}", run.err);
            let ill = on(&place, &["check", "--database", name]).code == Some(2);
            assert_eq!(ill, is_ill, "{name} from {file}");
        }
        assert_sound(&place, name);
    }
}

#[test]
fn of_a_damaged_database_no_backup_is_deleted() {
    let place = kept("app");
    spoil(&place);
    // Made before anybody noticed.
    back_up(&place, "app", "b/unnoticed.bak");
    assert_eq!(sql(&place, "DBCC CHECKDB (app)").code, Some(1));
    for dry in [true, false] {
        let delete = if dry { "--dry-run" } else { "--delete" };
        let run = on(&place, &["--json", "expire", "b", "--last", "1", delete]);
        assert_eq!(run.code, Some(1), "{}", run.out);
        assert!(run.numbers().contains(&50186), "{}", run.err);
        assert!(place.path("b/older.bak").exists());
        assert!(place.path("b/good.bak").exists());
    }
    let target = place.text("b/new.bak");
    let command = format!("BACKUP DATABASE app TO DISK = '{target}' WITH ERASEFILES = 1b, INIT");
    let run = on(&place, &["sqlbackup", "-SQL", &command]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.out.contains("marked as damaged"), "{}", run.out);
    assert!(place.path("b/older.bak").exists());
}

#[test]
fn a_database_that_is_backed_up_by_its_path_is_remembered_by_it() {
    let place = Place::new();
    spoil(&place);
    let app = place.text("app.db");
    let run = on(
        &place,
        &["backup", &app, "--to", "x.bak", "--integrity", "full"],
    );
    assert_eq!(run.code, Some(1), "{}", run.err);
    let run = back_up(&place, "app.db", "y.bak");
    assert!(run.numbers().contains(&50185), "{}", run.err);
    assert_eq!(on(&place, &["check"]).code, Some(2));
    // Of a database that is not there any more, it ends with its history.
    std::fs::remove_file(place.path("app.db")).expect("the file");
    succeed(
        &place,
        "EXEC msdb.dbo.sp_delete_database_backuphistory 'app'",
    );
    let run = on(&place, &["metrics"]);
    assert!(
        !run.out.contains("database_damaged{database=\"app\"} 1"),
        "{}",
        run.out
    );
}

#[test]
fn no_differential_counts_from_the_backup_of_a_damaged_database() {
    let place = kept("app");
    let intact = spoil(&place);
    assert_eq!(sql(&place, "DBCC CHECKDB (app)").code, Some(1));
    back_up(&place, "app", "ill.bak");
    let repair = |place: &Place| {
        std::fs::write(place.path("app.db"), &intact).expect("the file");
        succeed(place, "DBCC CHECKDB (app)");
    };
    repair(&place);
    let differential = ["--json", "backup", "app", "--differential", "--to", "d.bak"];
    well(&place, &differential);
    place.succeed(&["restore", "b/good.bak", "d.bak", "--to", "y.db"]);
    assert_eq!(std::fs::read(place.path("y.db")).expect("it"), intact);
    // Nor where it was restored.
    succeed(
        &place,
        "RESTORE DATABASE app FROM DISK = 'D:\\ill.bak' WITH REPLACE",
    );
    repair(&place);
    let run = on(&place, &differential);
    assert!(run.numbers().contains(&50012), "{}", run.err);
}
