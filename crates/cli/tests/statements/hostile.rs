//! Names chosen by an attacker: none acts on the terminal, forges a line, or hides.

use windlass_base::visible::is_hidden;

use crate::support::{Place, Run};

/// Renames the terminal's window, colours it, forges a message, turns the order of letters.
const NAME: &str = "n\u{1b}]0;PWNED\u{7}\u{1b}[31m\r\nMsg 0, OK\u{9b}2J\u{202e}\u{2066}\u{2028}x";

#[track_caller]
fn is_harmless(run: &Run) {
    for text in [&run.out, &run.err] {
        let hidden: Vec<char> = text
            .chars()
            .filter(|character| *character != '\n' && is_hidden(*character))
            .collect();
        assert!(hidden.is_empty(), "{hidden:?} in {text}");
        assert!(
            !text.lines().any(|line| line.starts_with("Msg 0")),
            "{text}"
        );
    }
}

#[test]
fn no_command_shows_a_hostile_name_as_it_is() {
    let place = Place::new();
    let database = format!("{NAME}.db");
    let bracketed = NAME.replace(']', "]]");
    std::fs::copy(place.path("app.db"), place.path(&database)).expect("a copy");
    let backup = [
        "backup",
        &database,
        "--to",
        "h.bak",
        "--name",
        NAME,
        "--description",
        NAME,
        "--media-name",
        NAME,
        "--media-description",
        NAME,
        "--tsql",
        "--plan",
    ];
    let json = ["--json"];
    let mut seen = 0;
    let mut check = |arguments: &[&str]| {
        for further in [&[][..], &json] {
            let run = place.run(&[arguments, further].concat());
            is_harmless(&run);
            seen += usize::from(run.out.contains("PWNED") || run.err.contains("PWNED"));
        }
    };
    check(&backup);
    check(&["header", "h.bak"]);
    check(&["header", "h.bak", "--table"]);
    check(&["files", "h.bak"]);
    check(&["files", "h.bak", "--table"]);
    check(&["label", "h.bak"]);
    check(&["verify", "h.bak", "--stats"]);
    check(&["restore", "h.bak", "--to", "copy.db", "--replace", "--tsql"]);
    check(&["restore", "h.bak", "--to", "nosuch/copy.db"]);
    check(&[
        "restore",
        "h.bak",
        "--to",
        "copy.db",
        "--move",
        &format!("{NAME}=x.db"),
    ]);
    check(&["backup", &format!("{NAME}nosuch.db"), "--to", "x.bak"]);
    check(&["backup", "app.db", "--to", &format!("{NAME}.bak")]);
    check(&["verify", &format!("{NAME}.bak")]);
    check(&[
        "sql",
        "-Q",
        &format!("SELECT '{NAME}' AS [{bracketed}]; USE [{bracketed}]"),
    ]);
    check(&["sql", "-i", &format!("{NAME}.sql")]);
    check(&["expire", ".", "--last", "9"]);
    check(&[
        "sqlbackup",
        "-S",
        &format!("BACKUP DATABASE [{bracketed}] TO DISK = 'x'"),
    ]);
    check(&[&format!("--{NAME}")]);
    check(&["backup", "app.db", "--to", "x.bak", "--compress", NAME]);
    assert!(seen > 20, "the name was shown {seen} times only");
}

#[test]
fn what_the_instance_remembers_of_a_hostile_name_is_shown_harmlessly() {
    let place = Place::new();
    let instance = place.text("instance");
    let script = format!(
        "EXEC sp_attach_db '{NAME}', '{}'\nBACKUP DATABASE [{}] TO DISK = '{}' WITH NAME = '{NAME}'",
        place.text("app.db"),
        NAME.replace(']', "]]"),
        place.text("h.bak")
    );
    let file = place.path("script.sql");
    std::fs::write(&file, script).expect("a script");
    let log = ["--log-file", "w.log", "--log-level", "debug"];
    let on = ["--instance", &instance];
    let with_text = [
        &["sql", "-i", "script.sql"],
        &on[..],
        &log[..],
        &["--log-format", "text"],
    ]
    .concat();
    is_harmless(&place.run(&with_text));
    let with_json = [
        &["sql", "-i", "script.sql"],
        &on[..],
        &log[..],
        &["--log-format", "json"],
    ]
    .concat();
    is_harmless(&place.run(&with_json));
    let text = std::fs::read_to_string(place.path("w.log")).expect("a log");
    assert!(text.contains("PWNED"), "{text}");
    is_harmless(&Run {
        code: None,
        out: text,
        err: String::new(),
    });
    for command in [
        &["history"][..],
        &["history", "--rpo", "24h"],
        &["report"],
        &["metrics"],
        &["doctor"],
        &["sql", "-Q", "SELECT name FROM sys.databases"],
        &["sql", "-Q", "EXEC sp_helpdb"],
    ] {
        for further in [&[][..], &["--json"]] {
            let run = place.run(&[command, &on[..], further].concat());
            is_harmless(&run);
            assert!(
                run.out.contains("PWNED"),
                "{command:?}: {}\n{}",
                run.out,
                run.err
            );
        }
    }
}
