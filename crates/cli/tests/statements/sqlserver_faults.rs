//! What `extract`, `repack`, `unpack` and RESTORE of SQL Server backups leave where there is no room, where they are killed,
//! and where two of them want one name.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::sqlserver::sample;
use crate::support::{Place, Run};

/// Runs a command that may write no file beyond `blocks` of 512 bytes: it gets an error, or is killed by the signal.
fn within(place: &Place, blocks: u32, is_killed: bool, arguments: &[&str]) -> Run {
    let command = place.command(arguments);
    let how = if is_killed { "" } else { "trap '' XFSZ; " };
    let limited = Command::new("sh")
        .args([
            "-c",
            &format!("{how}ulimit -f {blocks}; exec \"$0\" \"$@\""),
        ])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(place.path(""))
        .output()
        .expect("the program runs");
    Run::of(&limited)
}

const FORMATS: [(&str, &str); 4] = [
    ("sqlite", "x.db"),
    ("csv", "x.csv"),
    ("parquet", "x.parquet"),
    ("files", "x.files"),
];

#[test]
fn a_full_disk_leaves_nothing_of_an_extraction_and_says_where() {
    let Some(file) = sample("sql2016c_TSQL2012.bak") else {
        return;
    };
    let place = Place::new();
    let before = place.files("");
    for (format, to) in FORMATS {
        let words = ["extract", &file, "--format", format, "--to", to];
        let full = within(&place, 8, false, &words);
        assert_eq!(full.code, Some(1), "{format}: {}{}", full.out, full.err);
        assert!(full.err.contains("error"), "{format}: {}", full.err);
        assert_eq!(place.files(""), before, "{format}");
    }
}

#[test]
fn a_killed_extraction_gives_no_file_its_name_and_can_be_repeated() {
    let Some(file) = sample("sql2016c_TSQL2012.bak") else {
        return;
    };
    let place = Place::new();
    for (format, to) in FORMATS {
        let words = ["extract", &file, "--format", format, "--to", to];
        let killed = within(&place, 8, true, &words);
        assert_eq!(killed.code, None, "{format}: {}{}", killed.out, killed.err);
        let again = place.run(&words);
        match format {
            // Its folder is not removed unseen; the error names what to remove.
            "files" => {
                assert_eq!(again.code, Some(1), "{format}: {}", again.err);
                let left = place
                    .files("")
                    .into_iter()
                    .find(|name| name.starts_with(to));
                let left = left.expect("what was left");
                assert!(again.err.contains(&left), "{format}: {}", again.err);
                std::fs::remove_dir_all(place.path(&left)).expect("it");
                place.succeed(&words);
            }
            _ => assert_eq!(again.code, Some(0), "{format}: {}", again.err),
        }
        assert!(place.path(to).exists(), "{format}");
    }
}

#[test]
fn of_two_extractions_at_once_to_one_name_one_is_whole_and_the_other_is_refused() {
    let Some(file) = sample("sql2012_pubs_a.bak") else {
        return;
    };
    let place = Place::new();
    for (format, to) in FORMATS {
        for round in 0..3 {
            let to = format!("{round}{to}");
            let start = || {
                place
                    .command(&["extract", &file, "--format", format, "--to", &to])
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .expect("the program runs")
            };
            let ends = [start(), start()].map(|child| child.wait_with_output().expect("its end"));
            let mut codes = ends.each_ref().map(|end| end.status.code());
            codes.sort();
            let said = ends.map(|end| String::from_utf8_lossy(&end.stderr).into_owned());
            assert_eq!(codes, [Some(0), Some(1)], "{format}: {said:?}");
            match format {
                "sqlite" => {
                    let database = rusqlite::Connection::open(place.path(&to)).expect("it");
                    let count = database.query_row("SELECT count(*) FROM titles", [], |row| {
                        row.get::<_, i64>(0)
                    });
                    assert_eq!(count.expect("a count"), 19);
                }
                "files" => assert!(place.path(&to).join("pubs.mdf").exists()),
                _ => {
                    let entries = std::fs::read_dir(place.path(&to)).expect("the folder");
                    assert_eq!(entries.count(), 15, "{format}");
                }
            }
        }
    }
}

#[test]
fn a_folder_that_cannot_be_written_to_is_said_and_nothing_is_left() {
    let Some(file) = sample("sql2012_pubs_a.bak") else {
        return;
    };
    let place = Place::new();
    std::fs::create_dir(place.path("closed")).expect("a folder");
    let closed = std::fs::Permissions::from_mode(0o555);
    std::fs::set_permissions(place.path("closed"), closed).expect("its mode");
    if std::fs::write(place.path("closed/probe"), "x").is_ok() {
        // Root writes everywhere, but not to a folder of the kernel.
        std::fs::remove_file(place.path("closed/probe")).expect("it");
        let run = place.run(&["extract", &file, "--to", "/proc/x.db"]);
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains("/proc/x.db"), "{}", run.err);
        return;
    }
    for (format, to) in FORMATS {
        let to = format!("closed/{to}");
        let run = place.run(&["extract", &file, "--format", format, "--to", &to]);
        assert_eq!(run.code, Some(1), "{format}: {}", run.err);
        assert!(run.err.contains(&to), "{format}: {}", run.err);
    }
    let left = std::fs::read_dir(place.path("closed")).expect("it").count();
    assert_eq!(left, 0);
}

#[test]
fn a_repack_and_an_unpack_that_break_off_leave_no_file_and_can_be_repeated() {
    let Some(file) = sample("sql2016c_TSQL2012.bak") else {
        return;
    };
    let place = Place::new();
    let before = place.files("");
    let repack = ["repack", &file, "--to", "x.wl", "--compress", "none"];
    let full = within(&place, 64, false, &repack);
    assert_eq!(full.code, Some(1), "{}", full.err);
    assert_eq!(place.files(""), before, "{}", full.err);
    let killed = within(&place, 64, true, &repack);
    assert_eq!(killed.code, None, "{}", killed.err);
    assert!(!place.path("x.wl").exists());
    place.succeed(&repack);
    let made = place.files("");
    let unpack = ["unpack", "x.wl", "--to", "x.bak"];
    let full = within(&place, 64, false, &unpack);
    assert_eq!(full.code, Some(1), "{}", full.err);
    assert_eq!(place.files(""), made, "{}", full.err);
    let killed = within(&place, 64, true, &unpack);
    assert_eq!(killed.code, None, "{}", killed.err);
    assert!(!place.path("x.bak").exists());
    place.succeed(&unpack);
    place.succeed(&["verify", "x.bak"]);
}

#[test]
fn odd_files_and_set_numbers_are_refused_by_every_command() {
    let Some(file) = sample("sql2012_pubs_a.bak") else {
        return;
    };
    let place = Place::new();
    let whole = std::fs::read(&file).expect("a backup");
    let odd: [(&str, &[u8]); 4] = [
        ("empty.bak", b""),
        ("short.bak", b"TAPE"),
        ("head.bak", whole.get(..512).expect("a block")),
        ("cut.bak", whole.get(..whole.len() / 2).expect("a half")),
    ];
    for (name, bytes) in odd {
        std::fs::write(place.path(name), bytes).expect("a file");
        for words in [
            vec!["verify", name],
            vec!["inspect", name, "--summary"],
            vec!["extract", name, "--to", "o.db"],
            vec!["extract", name, "--format", "files", "--to", "o"],
            vec!["repack", name, "--to", "o.wl"],
            vec!["sql", "--on", name, "-Q", "SELECT 1"],
        ] {
            let run = place.run(&words);
            assert!(
                matches!(run.code, Some(1 | 2)) || words[0] == "inspect",
                "{words:?}: {:?} {}{}",
                run.code,
                run.out,
                run.err
            );
            assert!(!run.err.contains("panicked"), "{words:?}: {}", run.err);
        }
        for left in ["o.db", "o", "o.wl"] {
            assert!(!place.path(left).exists(), "{name}: {left}");
        }
    }
    for set in ["0", "2", "65535"] {
        for words in [
            vec!["verify", &file, "--set", set],
            vec!["files", &file, "--set", set],
            vec!["extract", &file, "--set", set, "--to", "o.db"],
        ] {
            let run = place.run(&words);
            assert!(matches!(run.code, Some(1 | 2)), "{words:?}: {}", run.out);
        }
        let script = format!("RESTORE FILELISTONLY FROM DISK = '{file}' WITH FILE = {set}");
        assert_eq!(place.sql(&script).code, Some(1), "{script}");
    }
}
