//! Which files the program writes, and never writes, whatever exists under a name.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{Place, sql, succeed};

fn make_fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo runs").success());
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("a file").mode() & 0o777
}

#[test]
fn a_fifo_a_folder_and_a_device_as_media_are_refused_at_once() {
    let place = Place::new();
    make_fifo(&place.path("fifo"));
    std::fs::create_dir(place.path("folder")).expect("a folder");
    let begun = Instant::now();
    for (name, kind) in [
        ("fifo", "FIFO"),
        ("folder", "folder"),
        ("/dev/zero", "device"),
    ] {
        for arguments in [
            vec!["header", name],
            vec!["verify", name],
            vec!["label", name],
            vec!["backup", "app.db", "--to", name],
            vec!["backup", "app.db", "--to", name, "--format"],
            vec!["restore", name, "--to", "x.db"],
        ] {
            let run = place.run(&arguments);
            assert_eq!(run.code, Some(1), "{arguments:?}: {}", run.err);
            if name == "folder" && arguments[0] == "restore" {
                assert!(run.err.contains("Msg 50291"), "{}", run.err);
                continue;
            }
            assert!(run.err.contains("Msg 3201"), "{}", run.err);
            let reason = format!("'. It is a {kind}, not a regular file.");
            assert!(run.err.contains(&reason), "{}", run.err);
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "nothing waits");
    let fifo = std::fs::metadata(place.path("fifo")).expect("the FIFO");
    assert!(fifo.file_type().is_fifo());
}

#[test]
fn a_fifo_as_key_file_is_passed_over() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "a.bak"]);
    make_fifo(&place.path("a.bak.keys"));
    place.succeed(&["verify", "a.bak"]);
    make_fifo(&place.path("passphrase"));
    let run = place.run(&["verify", "a.bak", "--passphrase-file", "passphrase"]);
    assert_ne!(run.code, Some(0), "{}", run.err);
}

#[test]
fn a_report_goes_through_a_link_into_a_device_and_keeps_the_mode_of_a_file() {
    let place = Place::new();
    let instance = place.text("instance");
    place.succeed(&["--instance", &instance, "backup", "app.db", "--to", "a.bak"]);
    std::fs::write(place.path("page.html"), "old").expect("a file");
    let shared = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(place.path("page.html"), shared).expect("its mode");
    symlink("page.html", place.path("link")).expect("a link");
    symlink("/dev/null", place.path("null")).expect("a link");
    for command in [["report", "--to"], ["metrics", "--output"]] {
        let run = |to: &str| place.succeed(&["--instance", &instance, command[0], command[1], to]);
        run("link");
        assert!(place.path("link").is_symlink(), "{command:?}");
        assert_eq!(mode(&place.path("page.html")), 0o640, "{command:?}");
        let text = std::fs::read_to_string(place.path("page.html")).expect("the page");
        assert!(text.len() > 100 && !text.starts_with("old"), "{command:?}");
        run("null");
        run("/dev/stdout");
        let null = std::fs::metadata("/dev/null").expect("/dev/null");
        assert!(null.file_type().is_char_device(), "{command:?}");
        assert!(place.path("null").is_symlink(), "{command:?}");
    }
}

#[test]
fn overwritten_media_keep_their_mode_and_links_stay() {
    let place = Place::new();
    symlink("far.bak", place.path("link.bak")).expect("a link");
    place.succeed(&["backup", "app.db", "--to", "link.bak"]);
    assert!(place.path("link.bak").is_symlink());
    let shared = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(place.path("far.bak"), shared).expect("its mode");
    place.succeed(&["backup", "app.db", "--to", "link.bak", "--format"]);
    assert_eq!(mode(&place.path("far.bak")), 0o640);
    place.succeed(&["verify", "far.bak"]);
}

/// A page engine database `e` of several files in its own folder, and its backup `e.bak`.
fn engine_place() -> Place {
    let place = Place::new();
    for folder in ["one", "two"] {
        std::fs::create_dir(place.path(folder)).expect("a folder");
    }
    let numbers = sql(
        &place,
        "CREATE DATABASE e ON (NAME = 'e', FILENAME = 'd:\\one\\e.mdf', SIZE = 8MB)
             LOG ON (NAME = 'e_log', FILENAME = 'd:\\one\\e.ldf', SIZE = 8MB)
         GO
         USE e
         GO
         CREATE TABLE t(a)
         GO
         USE master
         GO
         BACKUP DATABASE e TO DISK = 'd:\\e.bak'",
    )
    .numbers();
    assert!(numbers.ends_with(&[3014]), "{numbers:?}");
    place
}

#[test]
fn a_restore_goes_over_the_replaced_databases_own_files_and_over_no_others() {
    let place = engine_place();
    // Another database takes the places that the backup names, and is detached; `e` lives elsewhere now.
    let script = "EXEC sp_detach_db 'e'
         GO
         RESTORE DATABASE e FROM DISK = 'd:\\e.bak'
             WITH MOVE 'e' TO 'd:\\two\\e.mdf', MOVE 'e_log' TO 'd:\\two\\e.ldf'";
    assert!(sql(&place, script).numbers().ends_with(&[3014]));
    std::fs::write(place.path("one/e.mdf"), "somebody else's").expect("a file");
    std::fs::write(place.path("one/e.ldf"), "somebody else's").expect("a file");
    let restore = "RESTORE DATABASE e FROM DISK = 'd:\\e.bak' WITH REPLACE";
    assert!(sql(&place, restore).numbers().ends_with(&[3014]));
    let over = "RESTORE DATABASE f FROM DISK = 'd:\\e.bak' WITH REPLACE";
    let all = [3142, 3156, 3142, 3156, 3119, 3013];
    assert_eq!(sql(&place, over).numbers(), all);
    for name in ["one/e.mdf", "one/e.ldf"] {
        let content = std::fs::read(place.path(name)).expect("the file");
        assert_eq!(content, b"somebody else's");
    }
    let moved = "RESTORE DATABASE f FROM DISK = 'd:\\e.bak'
         WITH REPLACE, MOVE 'e' TO 'd:\\one\\e.mdf', MOVE 'e_log' TO 'd:\\one\\e.ldf'";
    assert!(sql(&place, moved).numbers().ends_with(&[3014]));
    let other = "RESTORE DATABASE f FROM DISK = 'd:\\e.bak'
         WITH REPLACE, MOVE 'e' TO 'd:\\two\\e.mdf', MOVE 'e_log' TO 'd:\\one\\e.ldf'";
    assert_eq!(sql(&place, other).numbers(), [1834, 3156, 3119, 3013]);
}

#[test]
fn a_sqlite_restore_goes_over_no_other_file_than_its_own_unless_a_move_names_it() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "a.bak"]);
    let before = std::fs::read(place.path("app.db")).expect("the database");
    // No registered database has the backup's own path, but the file exists.
    let script = "RESTORE DATABASE x FROM DISK = 'd:\\a.bak' WITH REPLACE";
    assert_eq!(sql(&place, script).numbers(), [3142, 3156, 3119, 3013]);
    // Neither the medium itself, nor what SQLite would take for a part of another database.
    for target in ["a.bak", "other.db-wal", "new.db-journal"] {
        let run = place.run(&["restore", "a.bak", "--to", target, "--replace"]);
        assert_eq!(run.code, Some(1), "{target}: {}", run.err);
        assert!(run.err.contains("Msg 50020"), "{}", run.err);
    }
    assert_eq!(std::fs::read(place.path("app.db")).expect("it"), before);
    place.succeed(&["verify", "a.bak"]);
    let moved =
        "RESTORE DATABASE x FROM DISK = 'd:\\a.bak' WITH REPLACE, MOVE 'app' TO 'd:\\app.db'";
    assert!(sql(&place, moved).numbers().ends_with(&[3014]));
}

#[test]
fn no_backup_goes_over_a_part_of_a_database() {
    let place = engine_place();
    let magic = |bytes: &[u8]| [bytes, &[0; 4096]].concat();
    let parts: [(&str, Vec<u8>); 4] = [
        ("other.db-wal", magic(b"\x37\x7f\x06\x82")),
        (
            "other.db-journal",
            magic(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"),
        ),
        ("copy-of-wal", magic(b"\x37\x7f\x06\x83")),
        (
            "copy-of-journal",
            magic(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"),
        ),
    ];
    for (name, content) in &parts {
        std::fs::write(place.path(name), content).expect("a file");
    }
    // An encrypted database looks like noise, but its log is next to it.
    std::fs::write(place.path("secret.db"), [0xA5; 8192]).expect("a file");
    std::fs::write(place.path("secret.db-wal"), []).expect("a file");
    std::fs::copy(place.path("one/e.ldf"), place.path("copy-of-log")).expect("a log");
    std::fs::copy(place.path("one/e.mdf"), place.path("copy-of-data")).expect("data");
    for (name, content) in [
        "other.db-wal",
        "other.db-journal",
        "copy-of-wal",
        "copy-of-journal",
        "secret.db",
        "copy-of-log",
        "copy-of-data",
        "one/e.ldf",
        "new.db-journal",
        "new.db-wal",
        "new.db-shm",
    ]
    .map(|name| (name, std::fs::read(place.path(name)).ok()))
    {
        let run = place.run(&["backup", "app.db", "--to", name, "--format"]);
        assert_eq!(run.code, Some(1), "{name}: {}", run.err);
        assert!(run.err.contains("Msg 3201"), "{name}: {}", run.err);
        assert_eq!(std::fs::read(place.path(name)).ok(), content, "{name}");
    }
}

#[test]
fn restored_files_are_readable_for_whom_the_source_was_and_nobody_else() {
    let place = Place::new();
    let restored = |source_mode: u32, further: &[&str]| {
        let source = std::fs::Permissions::from_mode(source_mode);
        std::fs::set_permissions(place.path("app.db"), source).expect("its mode");
        let medium = format!("{source_mode:o}.bak");
        place.succeed(&["backup", "app.db", "--to", &medium]);
        let target = format!("{source_mode:o}.db");
        place.succeed(&[&["restore", &medium, "--to", &target], further].concat());
        mode(&place.path(&target))
    };
    assert_eq!(restored(0o600, &[]), 0o600);
    assert_eq!(restored(0o640, &[]) & !0o640, 0);
    let open = restored(0o666, &[]);
    assert_ne!(open, 0o666, "the umask holds");
    assert_eq!(restored(0o400, &["--replace"]), 0o400);
    // A replaced file keeps its permissions and owner.
    std::fs::set_permissions(place.path("600.db"), std::fs::Permissions::from_mode(0o644))
        .expect("it");
    place.succeed(&["restore", "600.bak", "--to", "600.db", "--replace"]);
    assert_eq!(mode(&place.path("600.db")), 0o644);
}

#[test]
fn restores_go_only_to_the_folders_that_settings_name() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "a.bak"]);
    std::fs::create_dir(place.path("allowed")).expect("a folder");
    symlink(place.path("temp"), place.path("allowed/away")).expect("a link");
    std::fs::write(place.path("c.toml"), "restore_folders = ['allowed']").expect("settings");
    for target in ["x.db", "allowed/../x.db", "allowed/away/x.db"] {
        let run = place.run(&["--config", "c.toml", "restore", "a.bak", "--to", target]);
        assert_eq!(run.code, Some(1), "{target}: {}", run.err);
        assert!(run.err.contains("Msg 50020"), "{target}: {}", run.err);
    }
    place.succeed(&[
        "--config",
        "c.toml",
        "restore",
        "a.bak",
        "--to",
        "allowed/x.db",
    ]);
    let to = |path: &str| {
        format!("RESTORE DATABASE x FROM DISK = 'd:\\a.bak' WITH MOVE 'app' TO 'd:\\{path}'\n")
    };
    let script = [
        "EXEC sp_windlass_restore_folder 'd:\\allowed'\n",
        &to("y.db"),
        &to("allowed\\y.db"),
        "EXEC sp_windlass_restore_folder 'd:\\allowed', 'drop'\n",
    ]
    .concat();
    let script = script.replace("'d:\\allowed'", &format!("'{}'", place.text("allowed")));
    assert_eq!(
        sql(&place, &script).numbers(),
        [50020, 3156, 3119, 3013, 4035, 3014]
    );
}

/// A log or journal beside another name of a file is not seen through this one.
#[test]
fn a_database_with_several_names_is_neither_read_nor_replaced_and_the_message_says_what_to_do() {
    let place = Place::new();
    std::fs::hard_link(place.path("app.db"), place.path("second.db")).expect("a link");
    place.succeed(&["backup", "app.db", "--to", "frozen.bak", "--frozen"]);
    let data = place.text("x.mdf");
    for arguments in [
        &["backup", "second.db", "--to", "a.bak"][..],
        &["import", "second.db", "--into", "x", "--data", &data],
        &["restore", "frozen.bak", "--to", "second.db", "--replace"],
    ] {
        let run = place.run(arguments);
        assert_eq!(run.code, Some(1), "{arguments:?}");
        assert!(run.err.contains("2 names (hard links)"), "{}", run.err);
    }
    assert!(!place.path("a.bak").exists());
    std::fs::remove_file(place.path("second.db")).expect("it");
    place.succeed(&["backup", "app.db", "--to", "a.bak"]);
    let script = "CREATE DATABASE own ON (NAME = a, FILENAME = 'D:\\a.mdf') \
                  LOG ON (NAME = l, FILENAME = 'D:\\l.ldf')\nGO\n\
                  BACKUP DATABASE own TO DISK = 'D:\\own.bak'\nGO\n";
    sql(&place, script);
    for linked in ["a.mdf", "l.ldf"] {
        std::fs::hard_link(place.path(linked), place.path("second")).expect("a link");
        let restore = "RESTORE DATABASE own FROM DISK = 'D:\\own.bak' WITH REPLACE";
        let run = sql(&place, restore);
        assert!(run.err.contains("2 names (hard links)"), "{}", run.err);
        succeed(&place, "USE own\nGO\nSELECT 1");
        std::fs::remove_file(place.path("second")).expect("it");
        assert!(!sql(&place, restore).err.contains("names"), "{linked}");
    }
}

#[test]
fn settings_that_others_may_write_are_not_obeyed() {
    let place = Place::new();
    let file = place.path("c.toml");
    let with = |mode| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("its mode");
        place.run(&["--config", "c.toml", "config"])
    };
    std::fs::write(&file, "on_success = 'id'").expect("settings");
    let run = with(0o646);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(
        run.err.contains("c.toml: everybody may write to it"),
        "{}",
        run.err
    );
    let run = with(0o644);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.contains("on_success"), "{}", run.out);
}
