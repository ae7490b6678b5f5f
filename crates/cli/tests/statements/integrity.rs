//! What is no database, what is damaged, and SQLite's own check: BACKUP, ATTACH, DBCC CHECKDB.

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::sales::MAKE;
use crate::support::{Place, flip_bit, make_database, registered, rows, sql, succeed, well};

/// Puts rubbish over a page in the middle of a file.
fn spoil(path: &Path, page_bytes: u64) {
    let pages = std::fs::metadata(path).expect("the file").len() / page_bytes;
    let file = std::fs::File::options()
        .write(true)
        .open(path)
        .expect("the file");
    let rubbish = vec![0xA5; page_bytes as usize];
    file.write_all_at(&rubbish, pages / 2 * page_bytes)
        .expect("rubbish");
}

fn header(place: &Place, file: &str) -> serde_json::Value {
    let run = place.succeed(&["header", file, "--json"]);
    let rows: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    rows[0].clone()
}

#[test]
fn what_is_no_database_is_refused_and_the_switch_is_named() {
    let place = Place::new();
    std::fs::write(place.path("noise.db"), vec![0x5A; 100_000]).expect("a file");
    std::fs::write(place.path("empty.db"), "").expect("a file");
    place.succeed(&["backup", "app.db", "--to", "real.bak"]);
    for file in ["noise.db", "real.bak"] {
        let run = place.run(&["--json", "backup", file, "--to", "x.bak"]);
        assert!(run.numbers().contains(&50050), "{}", run.err);
        assert!(run.err.contains("--as-is"), "{}", run.err);
        assert!(!place.path("x.bak").exists());
        let attach = format!("CREATE DATABASE x ON (FILENAME = 'D:\\{file}') FOR ATTACH");
        let procedure = format!("EXEC sp_attach_db 'x', 'D:\\{file}'");
        for script in [attach, procedure] {
            let run = sql(&place, &script);
            assert!(run.numbers().contains(&50050), "{script}: {}", run.err);
        }
    }
    place.succeed(&["backup", "empty.db", "--to", "empty.bak"]);
    place.succeed(&["backup", "noise.db", "--to", "noise.bak", "--as-is"]);
    let row = header(&place, "noise.bak");
    assert_eq!(row["IsAsIs"], true, "{row}");
    assert_eq!(header(&place, "real.bak")["IsAsIs"], false);
    place.succeed(&["restore", "noise.bak", "--to", "back.db", "--as-is"]);
    let same = std::fs::read(place.path("back.db")).expect("the copy");
    assert_eq!(same, vec![0x5A; 100_000]);
}

#[test]
fn a_file_attached_as_it_is_is_backed_up_night_after_night() {
    let place = Place::new();
    std::fs::write(place.path("sealed.db"), vec![0x5A; 100_000]).expect("a file");
    succeed(
        &place,
        "CREATE DATABASE sealed ON (FILENAME = 'D:\\sealed.db') FOR ATTACH WITH AS_IS
BACKUP DATABASE sealed TO DISK = 'D:\\s.bak'
BACKUP DATABASE sealed TO DISK = 'D:\\s.bak' WITH DIFFERENTIAL
RESTORE DATABASE again FROM DISK = 'D:\\s.bak' WITH MOVE 'sealed' TO 'D:\\again.db', AS_IS
BACKUP DATABASE again TO DISK = 'D:\\again.bak'",
    );
    assert_eq!(header(&place, "again.bak")["IsAsIs"], true);
    let run = sql(&place, "DBCC CHECKDB ('sealed')");
    assert!(run.numbers().contains(&50050), "{}", run.err);
}

#[test]
fn a_sound_database_is_checked_before_its_copy_and_the_set_says_so() {
    let place = Place::new();
    for (depth, name) in [("quick", "QUICK"), ("full", "FULL")] {
        let media = format!("{depth}.bak");
        place.succeed(&["backup", "app.db", "--to", &media, "--integrity", depth]);
        let row = header(&place, &media);
        assert_eq!(row["IntegrityCheck"], name);
        assert_eq!(row["IntegrityFindings"], 0);
        assert_eq!(row["IsDamaged"], false);
    }
    let run = place.succeed(&["backup", "app.db", "--to", "n.bak", "--checksum"]);
    assert!(run.err.contains("has no page checksums"), "{}", run.err);
    assert_eq!(
        header(&place, "n.bak")["IntegrityCheck"],
        serde_json::Value::Null
    );
}

#[test]
fn damage_that_sqlite_finds_ends_the_backup_unless_it_goes_on() {
    let place = Place::new();
    spoil(&place.path("app.db"), 4096);
    place.succeed(&["backup", "app.db", "--to", "unseen.bak"]);
    for depth in ["quick", "full"] {
        let run = place.run(&[
            "--json",
            "backup",
            "app.db",
            "--to",
            "x.bak",
            "--integrity",
            depth,
        ]);
        assert_eq!(run.code, Some(1));
        assert!(run.numbers().contains(&50052), "{}", run.err);
        assert!(run.numbers().contains(&50051), "{}", run.err);
        assert!(!place.path("x.bak").exists());
    }
    place.succeed(&[
        "backup",
        "app.db",
        "--to",
        "y.bak",
        "--integrity",
        "full",
        "--continue-after-error",
    ]);
    let row = header(&place, "y.bak");
    assert_eq!(row["IsDamaged"], true);
    assert!(row["IntegrityFindings"].as_u64() > Some(0), "{row}");
}

#[test]
fn a_database_that_lost_its_end_is_told_and_not_imported() {
    let place = Place::new();
    let file = std::fs::File::options()
        .write(true)
        .open(place.path("app.db"))
        .expect("it");
    let bytes = file.metadata().expect("its size").len();
    file.set_len(bytes - 1000).expect("it is cut");
    let run = place.run(&["--json", "backup", "app.db", "--to", "x.bak"]);
    assert_eq!(run.code, Some(1));
    assert!(run.numbers().contains(&50053), "{}", run.err);
    assert!(!place.path("x.bak").exists());
    let anyway = [
        "--json",
        "backup",
        "app.db",
        "--to",
        "x.bak",
        "--continue-after-error",
    ];
    let run = place.succeed(&anyway);
    assert!(run.numbers().contains(&50100), "{}", run.err);
    assert_eq!(header(&place, "x.bak")["IsDamaged"], true);
    let (instance, data) = (place.text("instance"), place.text("in.mdf"));
    let run = place.run(&[
        "import",
        "app.db",
        "--into",
        "In",
        "--data",
        &data,
        "--instance",
        &instance,
    ]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(!place.path("in.mdf").exists());
}

#[test]
fn checkdb_finds_nothing_in_a_sound_database_and_says_so_in_sql_server_s_words() {
    let place = Place::new();
    let run = succeed(
        &place,
        &format!(
            "CREATE DATABASE app ON (FILENAME = 'D:\\app.db') FOR ATTACH
DBCC CHECKDB ('app') WITH ALL_ERRORMSGS
DBCC CHECKDB (app, NOINDEX) WITH NO_INFOMSGS
GO
USE app
GO
DBCC CHECKDB
DBCC CHECKDB (0) WITH PHYSICAL_ONLY
GO
{MAKE}DBCC CHECKDB
DBCC CHECKDB (N'Sales') WITH PHYSICAL_ONLY, NO_INFOMSGS"
        ),
    );
    let of = |name: &str| {
        format!("CHECKDB found 0 allocation errors and 0 consistency errors in database '{name}'.")
    };
    assert_eq!(run.err.matches(&of("app")).count(), 3, "{}", run.err);
    assert_eq!(run.err.matches(&of("Sales")).count(), 1, "{}", run.err);
    let numbers = run.numbers();
    assert_eq!(numbers.iter().filter(|number| **number == 8989).count(), 4);
}

#[test]
fn checkdb_finds_damage_in_both_kinds_of_databases() {
    let place = Place::new();
    succeed(
        &place,
        &format!("CREATE DATABASE app ON (FILENAME = 'D:\\app.db') FOR ATTACH\nGO\n{MAKE}"),
    );
    spoil(&place.path("app.db"), 4096);
    flip_bit(&place.path("sales_2.ndf"), 20 * 8192 + 300);
    for name in ["app", "Sales"] {
        let run = sql(&place, &format!("DBCC CHECKDB ('{name}') WITH NO_INFOMSGS"));
        assert_eq!(run.code, Some(1), "{name}");
        let numbers = run.numbers();
        assert!(
            numbers.contains(&50051) && numbers.contains(&8989),
            "{name}: {}",
            run.err
        );
        let backup = format!("BACKUP DATABASE {name} TO DISK = 'D:\\x.bak' WITH INTEGRITY = QUICK");
        let run = sql(&place, &backup);
        assert!(run.numbers().contains(&50052), "{name}: {}", run.err);
    }
    assert_eq!(rows(&place.path("other.db")), 10);
}

#[test]
fn an_empty_file_is_not_taken_for_the_database_that_a_backup_holds() {
    let place = registered();
    let bytes = std::fs::metadata(place.path("app.db")).expect("it").len();
    well(&place, &["backup", "app", "--to", "known.bak"]);
    place.succeed(&["backup", "app.db", "--to", "full.bak"]);
    std::fs::write(place.path("app.db"), "").expect("it is empty");
    let plain = |further: &[&str]| {
        let run = place.run(&[&["--json", "backup"], further].concat());
        let what = format!("{further:?}: {}", run.err);
        assert_eq!(run.code, Some(1), "{what}");
        assert!(run.numbers().contains(&50180), "{what}");
        assert!(run.err.contains(&format!("{bytes} bytes")), "{what}");
    };
    // What the media say that are named.
    plain(&["app.db", "--to", "full.bak"]);
    plain(&["app.db", "--to", "full.bak", "--init"]);
    plain(&["app.db", "--to", "full.bak", "--dry-run"]);
    plain(&["app.db", "--to", "x.bak", "--mirror", "full.bak"]);
    let based = ["--differential", "--base", "full.bak", "--to", "x.bak"];
    plain(&[&["app.db"], &based[..]].concat());
    // What the history says.
    let named = ["--instance", "instance"];
    plain(&[&["app", "--to", "x.bak"], &named[..]].concat());
    plain(&[&["app", "--to", "x.bak", "--differential"], &named[..]].concat());
    let run = sql(
        &place,
        "BACKUP DATABASE app TO DISK = 'D:\\x.bak'\nGO\nDBCC CHECKDB (app)",
    );
    assert!(run.numbers().contains(&50180), "{}", run.err);
    assert!(run.numbers().contains(&50051), "{}", run.err);
    assert!(!place.path("x.bak").exists());

    let anyway = ["--json", "backup", "app", "--to", "x.bak"];
    let anyway = [&anyway[..], &["--continue-after-error"], &named[..]].concat();
    let run = place.succeed(&anyway);
    assert!(run.numbers().contains(&50181), "{}", run.err);
    assert_eq!(header(&place, "x.bak")["IsDamaged"], true);
    // As soon as it holds something again, it is backed up.
    make_database(&place.path("app.db"), 1);
    well(&place, &["backup", "app", "--to", "y.bak"]);
}

#[test]
fn a_new_database_is_backed_up_while_it_is_empty() {
    let place = Place::new();
    std::fs::write(place.path("new.db"), "").expect("a file");
    for name in ["new.bak", "new.bak"] {
        place.succeed(&["backup", "new.db", "--to", name]);
    }
    place.succeed(&["restore", "new.bak", "--to", "back.db"]);
    assert_eq!(std::fs::read(place.path("back.db")).expect("it"), b"");
}
