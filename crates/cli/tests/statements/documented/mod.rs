//! Commands of documents, run as they are written: they must print what the documents show.
//!
//! Blocks of the kind `console` have commands (`$ command`), each followed by what it prints, both streams in one, and by
//! `[exit N]` unless it succeeds. `...` stands for any text, on a line of its own for any lines.

mod mistakes;
mod tutorials;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::Place;

/// A command, and the lines that the document shows for it.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    command: String,
    shown: Vec<String>,
}

/// Whether other figures than the document's are as good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figures {
    Exact,
    /// So may units of sizes, and whether a stage is named as the bottleneck.
    Differ,
}

fn document(name: &str) -> PathBuf {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    docs.join(name)
}

/// The commands of a text, in order.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let blocks = text.split("```console\n").skip(1);
    let blocks = blocks.filter_map(|block| Some(block.split_once("```")?.0));
    for line in blocks.flat_map(str::lines) {
        match line.strip_prefix("$ ") {
            Some(command) => steps.push(Step {
                command: command.to_owned(),
                shown: Vec::new(),
            }),
            None => {
                let step = steps.last_mut().expect("a command before its output");
                step.shown.push(line.to_owned());
            }
        }
    }
    steps
}

/// Runs the commands in a folder of the place, which the document calls `named`; the first that prints something else, with
/// what it prints.
fn play(place: &Place, steps: &[Step], named: &str, figures: Figures) -> Result<(), String> {
    for step in steps {
        if figures == Figures::Differ && step.command.to_lowercase().contains("backup") {
            // Names with the time have the second: no two backups are made in one.
            std::thread::sleep(Duration::from_secs(1));
        }
        let (printed, _) = run(place, &step.command, named);
        let found: Vec<&str> = printed.lines().collect();
        let shown: Vec<&str> = step.shown.iter().map(String::as_str).collect();
        if !are_alike(&shown, &found, figures) {
            return Err(format!(
                "$ {}\nshows\n  {}\nand prints\n  {}",
                step.command,
                shown.join("\n  "),
                found.join("\n  ")
            ));
        }
    }
    Ok(())
}

/// Runs a command in the shell; what it prints with its exit code, as documents show it, and whether it succeeds.
fn run(place: &Place, command: &str, named: &str) -> (String, bool) {
    let program = Path::new(env!("CARGO_BIN_EXE_windlass"));
    let programs = program.parent().expect("its folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    // Root may read everything.
    let mut shell = match rustix::process::geteuid().is_root() {
        true => {
            let mut shell = Command::new("setpriv");
            shell.args(["--bounding-set=-all", "--inh-caps=-all", "bash"]);
            shell
        }
        false => Command::new("bash"),
    };
    let output = shell
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(place.path("."))
        .env("PATH", format!("{programs}:{path}"))
        .env("HOME", place.path("temp"))
        .env("NO_COLOR", "1")
        .env_remove("WINDLASS_INSTANCE")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("a shell");
    let here = place.path("").display().to_string();
    let text = String::from_utf8_lossy(&output.stdout);
    let settings = place.path("temp/.config").display().to_string();
    let mut text = text
        .replace(&settings, "~/.config")
        .replace(here.trim_end_matches('/'), named);
    if let Some(code) = output.status.code().filter(|code| *code != 0) {
        text += &["[exit ", &code.to_string(), "]\n"].concat();
    }
    (text, output.status.success())
}

/// Whether lines are as shown.
fn are_alike(shown: &[&str], found: &[&str], figures: Figures) -> bool {
    match shown.split_first() {
        None => found.is_empty(),
        Some((&"...", rest)) => {
            (0..=found.len()).any(|skipped| are_alike(rest, &found[skipped..], figures))
        }
        Some((line, rest)) => {
            let Some((first, others)) = found.split_first() else {
                return false;
            };
            let is_first = match figures {
                Figures::Exact => is_alike(line.trim_end(), first.trim_end()),
                Figures::Differ => is_alike(&without_figures(line), &without_figures(first)),
            };
            is_first && are_alike(rest, others, figures)
        }
    }
}

/// Whether a line has the pieces between dots in order, and begins and ends with them.
fn is_alike(shown: &str, found: &str) -> bool {
    let mut rest = found;
    let mut pieces = shown.split("...").peekable();
    let first = pieces.next().unwrap_or_default();
    match rest.strip_prefix(first) {
        Some(after) => rest = after,
        None => return false,
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

/// A line with `N` for each figure.
fn without_figures(line: &str) -> String {
    let (before, after) = line.split_once(", bottleneck").unwrap_or((line, ""));
    let after = after.find(", writers").map_or("", |at| &after[at..]);
    let mut words = String::new();
    for character in before.chars().chain(after.trim_end().chars()) {
        let is_part = character.is_ascii_digit() || (character == '.' && words.ends_with('N'));
        match is_part && words.ends_with('N') {
            true => {}
            false if is_part => words.push('N'),
            false => words.push(character),
        }
    }
    // Columns are as wide as what is in them.
    for (mark, once) in [("  ", " "), ("--", "-")] {
        while words.contains(mark) {
            words = words.replace(mark, once);
        }
    }
    // A small backup may take a unit less or more.
    for unit in ["KB", "MB", "GB", "B"] {
        words = words.replace(&format!("N {unit}"), "N unit");
    }
    words
}

#[test]
fn dots_stand_for_any_text_and_nothing_else_does() {
    assert!(is_alike("in ... s, ... MB/s", "in 0.1 s, 20 MB/s"));
    assert!(!is_alike("in ... s", "in 0.1 ms, 2"));
    assert!(!is_alike("exact", "exactly"));
    let are = |shown: &[&str], found: &[&str]| are_alike(shown, found, Figures::Exact);
    assert!(are(&["a", "...", "z"], &["a", "b", "c", "z"]));
    assert!(are(&["a", "..."], &["a"]));
    assert!(!are(&["a", "...", "z"], &["a", "b"]));
    assert!(!are(&["a", "z"], &["a", "b", "z"]));
    assert!(!are(&["a"], &["a", "b"]));
    assert!(!are(&["1 s"], &["2 s"]));
}

#[test]
fn figures_may_differ_where_they_may_and_words_may_not() {
    let are = |shown: &str, found: &str| are_alike(&[shown], &[found], Figures::Differ);
    assert!(are(
        "set 1, 0.1 s, 6 MB/s",
        "set 1, 12 s, 900 KB/s, bottleneck: disk"
    ));
    assert!(are(
        "1 s, 2 MB/s, writers waited",
        "2 s, 3 MB/s, bottleneck: a, b, writers waited"
    ));
    assert!(!are("set 1 is valid", "set 1 is damaged"));
    assert!(are("name   --  1", "name  -----   12"));
}

#[test]
fn commands_are_those_of_console_blocks() {
    let text = "```console\n$ one\n1\n$ two\n```\ntext\n```sh\n$ three\n```\n";
    let commands: Vec<_> = steps(text).into_iter().map(|step| step.command).collect();
    assert_eq!(commands, ["one", "two"]);
}
