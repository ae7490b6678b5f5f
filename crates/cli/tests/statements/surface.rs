//! What every command has in common: help, closed pipes, JSON, completions, layouts, private files.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value as Json;

use crate::support::{Place, Run, on, registered, succeed, well};
use crate::terminal::Terminal;

/// Every command with arguments that it can follow here, on an instance with a database `app` and its backup `a.bak`.
const COMMANDS: &[&str] = &[
    "backup app --to new.bak",
    "backup app --to new.bak --dry-run",
    "backup --all --to temp",
    "bench compression app.db --rounds 1 --compress none",
    "check",
    "completions zsh",
    "config --effective",
    "copies",
    "credential list",
    "doctor",
    "drill app --scratch temp",
    "expire . --last 1",
    "export app --to out.db",
    "extract a.bak --to out.db",
    "files a.bak",
    "fleet s3://127.0.0.1:1/bucket/prefix/",
    "follow --show temp",
    "header a.bak",
    "history",
    "import other.db --into imported",
    "inspect a.bak",
    "install --to -",
    "jobs",
    "label a.bak",
    "man temp/man",
    "metrics",
    "rekey a.bak --passphrase-file pass --new-passphrase-file pass",
    "repack a.bak --to a.wl",
    "report",
    "restore a.bak --to new.db",
    "serve --tds 0.0.0.0:99999",
    "ship a.bak --of app --to shipped.db --every nothing",
    "signing-key key",
    "sql -Q EXEC(1)",
    "sqlbackup --sql nothing",
    "top --once",
    "tune app.db --to nosuch",
    "unpack a.bak --to out.bak",
    "verify a.bak",
];

/// Commands that run for long, or have no result of their own.
const LEFT_OUT: &[&str] = &["demo"];

fn place() -> Place {
    let place = registered();
    std::fs::write(place.path("pass"), "a good secret\n").expect("a passphrase");
    well(&place, &["backup", "app", "--to", "a.bak"]);
    place
}

/// The commands that the help shows, with the first line of what they do.
fn shown(place: &Place) -> BTreeMap<String, String> {
    let help = place.succeed(&["--help"]).out;
    let commands = help.lines().filter_map(|line| {
        let line = line.strip_prefix("  ")?;
        let (name, about) = line.split_once(' ')?;
        let is_name = name.starts_with(|first: char| first.is_ascii_lowercase());
        (is_name && name != "windlass").then(|| (name.to_owned(), about.trim().to_owned()))
    });
    commands.collect()
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

#[test]
fn the_list_here_has_every_command() {
    let place = Place::new();
    let shown = shown(&place);
    let listed = |name: &str| {
        let mut all = COMMANDS.iter().map(|line| words(line)[0]);
        all.any(|known| known == name) || LEFT_OUT.contains(&name)
    };
    assert!(shown.len() > 30, "{shown:?}");
    for (name, about) in &shown {
        assert!(listed(name), "{name}");
        assert!(!about.is_empty(), "{name}");
    }
}

#[test]
fn no_command_dies_of_a_closed_pipe() {
    let place = place();
    let names: Vec<String> = shown(&place).into_keys().collect();
    let helps = names.iter().map(|name| format!("{name} --help"));
    let all = COMMANDS.iter().map(|line| (*line).to_owned()).chain(helps);
    for line in all.chain(["--help".to_owned(), "nosuch".to_owned()]) {
        let mut command = place.command(&words(&line));
        command.args(["--instance", "instance"]);
        // Nobody reads what it prints.
        let closed = || {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            Stdio::from(writer)
        };
        let status = command
            .stdout(closed())
            .stderr(closed())
            .status()
            .expect("it runs");
        assert!(matches!(status.code(), Some(0..=3)), "{line}: {status}");
    }
}

#[test]
fn every_command_speaks_json() {
    let place = place();
    for line in COMMANDS {
        speaks_json(line, &in_json(&place, line));
    }
    for wrong in [
        "nosuch",
        "backup",
        "backup app --compress x",
        "sql --drive d=/nosuch",
    ] {
        let run = in_json(&place, wrong);
        assert_eq!(run.code, Some(2), "{wrong}");
        assert_eq!(run.messages()[0]["severity"], 16, "{wrong}: {}", run.err);
        assert_eq!(run.messages()[0]["number"], 50336, "{wrong}: {}", run.err);
    }
    let run = on(&place, &["report", "--json"]);
    let report: Json = serde_json::from_str(&run.out).expect("JSON");
    let is_time = |value: &Json| {
        let text = value.as_str().unwrap_or_default();
        text.len() == "YYYY-MM-DDThh:mm:ss.mmm".len() && text.as_bytes()[10] == b'T'
    };
    assert!(is_time(&report["now"]), "{report}");
    assert!(is_time(&report["databases"][0]["last_full"]), "{report}");
    let run = on(&place, &["expire", ".", "--last", "1", "--json"]);
    let expired: Json = serde_json::from_str(&run.out).expect("JSON");
    let of_medium = expired.as_array().expect("files").iter();
    let mut of_medium = of_medium.filter(|file| file["file"] == "./a.bak");
    let backup = &of_medium.next().expect("the medium")["backups"][0];
    assert_eq!(backup["database"], "app");
    assert!(is_time(&backup["finished"]), "{backup}");
    let run = on(&place, &["config", "--effective", "--json"]);
    let settings: Json = serde_json::from_str(&run.out).expect("JSON");
    let value = |name: &str| {
        let mut settings = settings.as_array().expect("settings").iter();
        settings.find(|one| one["setting"] == name).expect(name)["value"].clone()
    };
    assert_eq!(value("json"), Json::Bool(true));
    assert_eq!(value("metrics"), Json::Null);
}

#[test]
fn what_was_done_is_one_value_on_standard_output() {
    let place = place();
    std::fs::write(place.path("phrase"), "a long passphrase\n").expect("a file");
    std::fs::write(place.path("other"), "another passphrase\n").expect("a file");
    for file in ["phrase", "other"] {
        let own = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(place.path(file), own).expect("its mode");
    }
    well(
        &place,
        &[
            "backup",
            "app",
            "--to",
            "e.bak",
            "--passphrase-file",
            "phrase",
        ],
    );
    for (line, key, value) in [
        ("import app.db --into copied", "database", "copied"),
        ("export copied --to exported.db", "operation", "export"),
        ("signing-key own.pem", "operation", "signing-key"),
        (
            "rekey e.bak --passphrase-file phrase --new-passphrase-file other",
            "operation",
            "rekey",
        ),
        (
            "credential set s3://127.0.0.1:9/bucket --managed-identity",
            "operation",
            "set",
        ),
        (
            "credential drop s3://127.0.0.1:9/bucket",
            "operation",
            "drop",
        ),
    ] {
        let run = in_json(&place, line);
        assert_eq!(run.code, Some(0), "{line}: {}", run.err);
        let object: Json = serde_json::from_str(&run.out).expect(line);
        assert_eq!(object[key], value, "{line}: {object}");
    }
    let top = in_json(&place, "top --once");
    let top: Json = serde_json::from_str(&top.out).expect("one object");
    for part in ["requests", "stages", "followers"] {
        assert!(top[part].is_array(), "{part}: {top}");
    }
    let copies = in_json(&place, "copies");
    assert_eq!(copies.out.trim(), "[]");
}

fn in_json(place: &Place, line: &str) -> Run {
    on(place, &words(&format!("{line} --json")))
}

#[track_caller]
fn speaks_json(arguments: &str, run: &Run) {
    for (name, text) in [("out", &run.out), ("err", &run.err)] {
        let parsed: Result<Vec<Json>, _> = serde_json::Deserializer::from_str(text)
            .into_iter()
            .collect();
        assert!(parsed.is_ok(), "{arguments:?}: {name}: {text}");
    }
    for message in run.messages() {
        assert!(message.is_object(), "{arguments:?}: {message}");
    }
}

#[test]
fn the_help_has_the_global_options_apart_and_three_examples() {
    let place = Place::new();
    for name in shown(&place).keys() {
        let help = place.succeed(&[name, "--help"]).out;
        let (own, global) = help.split_once("Global options:").expect(name);
        for option in ["--instance", "--drive", "--json", "--log-file"] {
            let is_in = |part: &str| {
                let mut lines = part.lines();
                lines.any(|line| line.split_whitespace().next() == Some(option))
            };
            assert!(!is_in(own), "{name}: {option}");
            assert!(is_in(global), "{name}: {option}");
        }
        let examples = help.split("Examples:\n").nth(1).expect(name);
        let examples = examples
            .lines()
            .take_while(|line| line.starts_with("  windlass "));
        assert_eq!(examples.count(), 3, "{name}: {help}");
        assert!(!help.contains('`'), "{name}: no Markdown: {help}");
        let all = help.lines().filter(|line| line.starts_with("  windlass "));
        let own = all.filter(|line| line.starts_with(&format!("  windlass {name}")));
        // Notes show what comes behind --, or several commands that belong together.
        let most = 3 + usize::from(matches!(name.as_str(), "follow" | "install"));
        assert!(own.count() <= most, "{name}: {help}");
    }
    let help = place.succeed(&["backup", "--help"]).out;
    for heading in ["Media:", "Speed:", "Log backups:", "Many databases:"] {
        assert!(
            help.contains(&format!("\n{heading}\n")),
            "{heading}: {help}"
        );
    }
}

/// What a shell is told for the last word of a command line.
fn completed(place: &Place, words: &[&str]) -> String {
    let mut command = place.command(&[]);
    command
        .env("WINDLASS_COMPLETE", "fish")
        .arg("--")
        .args(words);
    Run::of(&command.output().expect("it runs")).out
}

#[test]
fn bash_gets_no_name_that_it_would_execute() {
    let place = Place::new();
    for name in ["x$(touch PWNED).db", "x y.db", "x`id`.db", "xplain.db"] {
        std::fs::copy(place.path("app.db"), place.path(name)).expect("copied");
    }
    // As bash does it: the answer becomes a command line without quotes.
    let script = format!(
        "source <(\"{program}\" completions bash)\n\
         COMP_WORDS=(windlass backup x); COMP_CWORD=2\n\
         _clap_complete_windlass windlass x backup\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"\n\
         eval \"true ${{COMPREPLY[*]}}\"",
        program = env!("CARGO_BIN_EXE_windlass")
    );
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_windlass"));
    let folder = program.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .env("PATH", format!("{folder}:{path}"))
        .current_dir(place.path(""))
        .output()
        .expect("bash runs");
    let run = Run::of(&output);
    assert_eq!(run.out.trim(), "xplain.db", "{}", run.err);
    assert!(!place.path("PWNED").exists());
}

#[test]
fn databases_and_sets_are_completed() {
    let place = place();
    well(
        &place,
        &["backup", "app", "--to", "a.bak", "--differential"],
    );
    let of_instance = ["--instance", "instance"];
    let found = completed(
        &place,
        &[&["windlass", "history"], &of_instance[..], &[""]].concat(),
    );
    assert!(
        found.contains("app\n") || found.contains("app\t"),
        "{found}"
    );
    assert!(found.contains("other"), "{found}");
    let found = completed(
        &place,
        &[&["windlass", "backup"], &of_instance[..], &["ap"]].concat(),
    );
    assert!(
        found.contains("app\n") && found.contains("app.db"),
        "{found}"
    );
    let found = completed(&place, &["windlass", "restore", "a.bak", "--set", ""]);
    assert!(found.contains("1\tfull"), "{found}");
    assert!(found.contains("2\tdifferential"), "{found}");
    // Nothing is created where there is no instance.
    completed(&place, &["windlass", "history", "--instance", "nosuch", ""]);
    assert!(!place.path("nosuch").exists());
    let script = place.succeed(&["completions", "bash"]).out;
    assert!(script.contains("WINDLASS_COMPLETE"), "{script}");
}

#[test]
fn words_of_options_are_completed_with_what_they_mean() {
    let place = Place::new();
    let backup = ["windlass", "backup", "app.db", "--to", "a.bak"];
    let after =
        |option: &str, begun: &str| completed(&place, &[&backup[..], &[option, begun]].concat());
    let found = after("--compress", "z");
    for word in ["zstd\t", "zstd:low\t", "zstd:medium\t", "zstd:high\t"] {
        assert!(found.contains(word), "{word}: {found}");
    }
    assert!(!found.contains("none\t"), "{found}");
    assert!(after("--compress", "").contains("auto\t"));
    assert_eq!(after("--io", "io").trim(), "io_uring");
    assert_eq!(after("--threads", "a").trim(), "auto");
    let bench = ["windlass", "bench", "devices", "app.db", "--compress", ""];
    let found = completed(&place, &bench);
    assert!(found.contains("qat_deflate\t"), "{found}");
    assert!(!found.contains("auto"), "it measures one: {found}");
}

#[test]
fn a_prompt_completes_logical_devices_and_databases() {
    let place = place();
    succeed(
        &place,
        "EXEC sp_addumpdevice 'disk', 'nightly_device', 'd:\\n.bak'",
    );
    let mut command = place.command(&["sql", "--instance", "instance", "--drive", "d=."]);
    command.env("XDG_STATE_HOME", place.path("temp"));
    let mut terminal = Terminal::start(&command);
    terminal.wait_for("1> ");
    terminal.press("BACKUP DATABASE othe\t TO nightly_\t\n");
    terminal.wait_for("nightly_device");
    terminal.wait_for("2> ");
    terminal.press("GO\n");
    terminal.wait_for("BACKUP DATABASE successfully processed");
    terminal.press(":quit\n");
    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    assert!(place.path("n.bak").exists());
}

#[test]
fn a_drive_is_a_folder_in_every_place_of_media_and_restored_files() {
    let place = Place::new();
    std::fs::create_dir(place.path("d")).unwrap();
    let on_drive = |words: &[&str]| place.run(&[words, &["--drive", "d=d"]].concat());
    for words in [
        &["backup", "app.db", "--to", r"D:\app.bak"][..],
        &["restore", r"D:\app.bak", "--to", r"D:\copy.db"],
        &["restore", r"D:\app.bak", "--move", r"app=D:\moved.db"],
        &["check", "--media", r"D:\"],
        &["expire", r"D:\", "--last", "1"],
        &["tune", "app.db", "--to", r"D:\", "--time", "1"],
    ] {
        let run = on_drive(words);
        assert_eq!(run.code, Some(0), "{words:?}: {}", run.err);
    }
    assert_eq!(place.files("d"), ["app.bak", "copy.db", "moved.db"]);
    for words in [
        &["restore", r"D:\app.bak", "--to", r"E:\x.db"][..],
        &["restore", r"D:\app.bak", "--move", r"app=E:\x.db"],
        &["check", "--media", r"E:\"],
        &["expire", r"E:\", "--last", "1"],
        &["tune", "app.db", "--to", r"E:\", "--time", "1"],
    ] {
        let run = on_drive(words);
        assert_ne!(run.code, Some(0), "{words:?}");
        let said = run.out + &run.err;
        assert!(
            said.contains("the drive E: is not mapped"),
            "{words:?}: {said}"
        );
    }
    let run = on_drive(&["backup", r"D:\app.db", "--to", "x.bak"]);
    assert!(run.err.contains("is a name of Windows"), "{}", run.err);
}

/// A command on a terminal of some columns.
fn on_terminal(place: &Place, columns: u16, arguments: &[&str]) -> Terminal {
    let program = env!("CARGO_BIN_EXE_windlass");
    let mut command = Command::new("sh");
    let script = format!("stty cols {columns} rows 40; exec \"$0\" \"$@\"");
    command.args(["-c", &script, program]).args(arguments);
    command.current_dir(place.path("."));
    Terminal::start(&command)
}

#[test]
fn headers_are_readable_on_a_terminal() {
    let place = place();
    let query = format!("RESTORE HEADERONLY FROM DISK = '{}'", place.text("a.bak"));
    let (_, shown) = on_terminal(&place, 100, &["sql", "-Q", &query]).end();
    let longest = shown.lines().map(str::len).max();
    assert!(longest.is_some_and(|longest| longest <= 100), "{shown}");
    assert!(
        shown.lines().any(|line| line.starts_with("DatabaseName ")),
        "{shown}"
    );
    let (_, shown) = on_terminal(&place, 100, &["sql", "-o", "wide", "-Q", &query]).end();
    let longest = shown.lines().map(str::len).max();
    assert!(longest.is_some_and(|longest| longest > 1000), "{shown}");
    // Few columns stay a table; into a file, everything does.
    let (_, shown) = on_terminal(&place, 100, &["sql", "-Q", "SELECT 1 AS one, 2 AS two"]).end();
    assert!(shown.contains("one two"), "{shown}");
    let piped = place.succeed(&["sql", "-Q", &query]).out;
    assert!(
        piped.lines().next().is_some_and(|line| line.len() > 1000),
        "{piped}"
    );
    let header = |arguments: &[&str]| place.run(&[&["header", "a.bak"], arguments].concat());
    let chosen = header(&["--columns", "position,DatabaseName"]);
    assert_eq!(
        chosen.out,
        "Position DatabaseName\n-------- ------------\n       1 app\n"
    );
    assert_eq!(header(&["-o", "wide"]).out, header(&["--table"]).out);
    let wrong = header(&["--columns", "Positon"]);
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong.err.contains("Did you mean Position?"),
        "{}",
        wrong.err
    );
    let json = header(&["--columns", "Position", "--json"]).out;
    assert_eq!(json.trim(), "[{\"Position\":1}]");
}

#[test]
fn top_draws_the_screen_again_and_cuts_its_lines() {
    let place = place();
    let mut terminal = on_terminal(&place, 60, &["top", "--instance", "instance"]);
    let clear = "\u{1b}[H\u{1b}[2J";
    terminal.wait_for(clear);
    let screen = terminal.wait_for(clear);
    let longest = screen.lines().map(|line| line.chars().count()).max();
    assert!(longest.is_some_and(|longest| longest <= 60), "{screen}");
    assert!(screen.contains("session_id"), "{screen}");
    terminal.press("\u{3}");
    let (status, shown) = terminal.end();
    assert!(status.success(), "{shown}");
    // Into a pipe, nothing is cleared.
    assert!(!well(&place, &["top", "--once"]).out.contains('\u{1b}'));
}

#[test]
fn the_manual_is_read_by_man() {
    let place = Place::new();
    place.succeed(&["man", "temp"]);
    let pages = place.files("temp");
    for page in [
        "windlass.1",
        "windlass-backup.1",
        "windlass-config.5",
        "windlass-tsql.7",
    ] {
        assert!(pages.iter().any(|found| found == page), "{page}: {pages:?}");
    }
}

#[test]
fn the_catalog_and_the_spool_are_for_their_owner_only() {
    let place = place();
    let mode = |path: &Path| {
        let metadata = path.metadata().expect("it");
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode(&place.path("instance")), 0o700);
    assert_eq!(mode(&place.path("instance/windlass.catalog")), 0o600);
    let user = rusqlite::Connection::open(place.path("wal.db")).expect("a database");
    user.pragma_update(None, "journal_mode", "wal")
        .expect("a mode");
    user.execute_batch("CREATE TABLE t(x)").expect("a table");
    let mut follower = place
        .command(&["follow", "wal.db", "--to", "spool"])
        .spawn()
        .expect("it runs");
    let spool = place.path("spool");
    let has_files = || std::fs::read_dir(&spool).is_ok_and(|entries| entries.count() > 0);
    for _ in 0..200 {
        if has_files() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(mode(&spool), 0o700);
    for name in place.files("spool") {
        assert_eq!(mode(&spool.join(&name)) & 0o077, 0, "{name}");
    }
    follower.kill().expect("it ends");
    follower.wait().expect("it ends");
}
