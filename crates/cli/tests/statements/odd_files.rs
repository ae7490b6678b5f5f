//! FIFOs, links and files of others in the place of files that Windlass opens: a message at once, and
//! nothing of others is written to.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Place, Run, on, sql, succeed};

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo").success());
}

/// Runs the program, which must not wait for the other end of a FIFO.
#[track_caller]
fn run_at_once(mut command: Command) -> Run {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let begun = Instant::now();
    while child.try_wait().expect("it can be asked").is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().expect("it ends");
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Run::of(&child.wait_with_output().expect("it ended"))
}

#[test]
fn a_fifo_beside_a_database_or_in_its_place_is_named_at_once() {
    let place = Place::new();
    place.succeed(&["backup", "other.db", "--to", "other.bak"]);
    for part in ["-journal", "-wal", "-shm"] {
        let path = place.path(&format!("app.db{part}"));
        fifo(&path);
        for arguments in [
            &["backup", "app.db", "--to", "app.bak"][..],
            &["restore", "other.bak", "--to", "app.db", "--replace"],
            &[
                "sql",
                "--attach",
                "app=app.db",
                "-d",
                "app",
                "-Q",
                "SELECT count(*) FROM t",
            ],
        ] {
            let run = run_at_once(place.command(arguments));
            assert_eq!(run.code, Some(1), "{arguments:?} {}", run.out);
            assert!(
                run.err.contains("it is a FIFO"),
                "{arguments:?} {}",
                run.err
            );
        }
        std::fs::remove_file(&path).expect("the FIFO");
    }
    // As a target.
    fifo(&place.path("target"));
    for target in ["target", "temp"] {
        let arguments = ["restore", "other.bak", "--to", target, "--replace"];
        let run = run_at_once(place.command(&arguments));
        assert_eq!(run.code, Some(1), "{}", run.out);
        assert!(run.err.contains("not a regular file"), "{}", run.err);
        assert!(!run.err.contains("backed up"), "{}", run.err);
    }
}

#[test]
fn a_fifo_or_a_device_as_time_zone_or_beside_the_catalog_does_not_hang_a_command() {
    let place = Place::new();
    succeed(&place, "SELECT 1 AS one");
    fifo(&place.path("zone"));
    let zone = format!(":{}", place.text("zone"));
    for zone in [zone.as_str(), ":/dev/zero", ":zone"] {
        let mut command = place.command(&["backup", "app.db", "--to", "zone.bak", "--format"]);
        command.env("TZ", zone);
        let run = run_at_once(command);
        assert_eq!(run.code, Some(0), "{zone} {}", run.err);
    }
    for part in ["-journal", "-wal", "-shm"] {
        let path = place.path(&format!("instance/windlass.catalog{part}"));
        let _there = std::fs::remove_file(&path);
        fifo(&path);
        let instance = place.text("instance");
        let run = run_at_once(place.command(&["sql", "--instance", &instance, "-Q", "SELECT 1"]));
        assert_eq!(run.code, Some(1), "{}", run.out);
        assert!(run.err.contains("it is a FIFO"), "{}", run.err);
        std::fs::remove_file(&path).expect("the FIFO");
    }
}

#[test]
fn a_name_with_a_line_break_forges_no_line_of_a_listing() {
    let place = Place::new();
    let script = format!(
        "CREATE DATABASE [a\nforged] ON (NAME = a, FILENAME = '{}') LOG ON (NAME = l, FILENAME = '{}')",
        place.text("n.mdf"),
        place.text("n.ldf")
    );
    succeed(&place, &script);
    let instance = place.text("instance");
    let listing = [
        "sql",
        "--instance",
        &instance,
        "-Q",
        "SELECT name FROM sys.databases",
    ];
    let run = place.succeed(&listing);
    assert!(
        !run.out.lines().any(|line| line.starts_with("forged")),
        "{}",
        run.out
    );
    // Nor does it name a file.
    let run = sql(&place, "CREATE DATABASE [b\nforged]");
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.numbers().contains(&50005), "{}", run.err);
}

#[test]
fn a_fifo_in_place_of_settings_or_of_a_backup_is_refused_at_once() {
    let place = Place::new();
    fifo(&place.path("fifo"));
    for arguments in [
        &["--config", "fifo", "config"][..],
        &["--config", "/dev/zero", "config"],
        &["repack", "fifo", "--to", "x.bak"],
    ] {
        let run = run_at_once(place.command(arguments));
        assert_ne!(run.code, Some(0), "{arguments:?}: {}", run.out);
    }
    let none = run_at_once(place.command(&["--config", "/dev/null", "config"]));
    assert_eq!(none.code, Some(0), "{}", none.err);
}

#[test]
fn a_script_from_a_fifo_is_waited_for_and_a_signal_ends_that() {
    let place = Place::new();
    fifo(&place.path("fifo"));
    let mut waiting = place.command(&["sql", "-i", "fifo"]);
    let waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = |command: &mut Command| {
        let child = command.spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(700));
        child
    };
    let mut child = start(waiting);
    assert!(child.try_wait().expect("it can be asked").is_none());
    std::fs::write(place.path("fifo"), "PRINT 'from afar'\n").expect("it listens");
    let run = Run::of(&child.wait_with_output().expect("it ends"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    let told = [run.out, run.err].concat();
    assert!(told.contains("from afar"), "{told}");

    let mut child = start(waiting);
    let ended = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(ended.expect("kill").success());
    let begun = Instant::now();
    while child.try_wait().expect("it can be asked").is_none() {
        if begun.elapsed() > Duration::from_secs(30) {
            child.kill().expect("it ends");
            panic!("it waits on");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_page_engine_database_whose_first_page_is_lost_is_not_backed_up_or_exported() {
    let place = Place::new();
    succeed(
        &place,
        "CREATE DATABASE own ON (NAME = a, FILENAME = 'd:\\a.mdf'), (NAME = b, FILENAME = 'd:\\b.ndf')
             LOG ON (NAME = l, FILENAME = 'd:\\l.ldf')
         GO
         USE own
         GO
         CREATE TABLE t(a int)
         INSERT INTO t VALUES (1)
         BACKUP DATABASE own TO DISK = 'd:\\1.bak'",
    );
    let file = std::fs::File::options()
        .write(true)
        .open(place.path("a.mdf"))
        .expect("the file");
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 8192], 0).expect("a lost page");
    let run = on(&place, &["backup", "own", "--to", "2.bak"]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.err.contains("Msg 50050"), "{}", run.err);
    let run = on(&place, &["export", "own", "--to", "x.db"]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(!place.path("x.db").exists());
}
