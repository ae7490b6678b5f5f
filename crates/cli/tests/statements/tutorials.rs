//! Runs the documents that are marked as tutorials, command by command, and compares what they show.
//!
//! A document is marked by `<!-- tutorial: FOLDER -->`, the folder being the one that its output names. Its blocks of the kind
//! `console` are run in one shell, in order. Figures may differ, and what follows the word "bottleneck"; a line `...` stands for
//! any lines.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Place;

const MARK: &str = "<!-- tutorial: ";

/// Printed between the commands.
const END: &str = "--- end of a command ---";

/// A command, and the lines that the document shows for it.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    command: String,
    shown: Vec<String>,
}

fn tutorials() -> Vec<PathBuf> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let entries = std::fs::read_dir(docs).expect("docs");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_marked = |path: &PathBuf| {
        let is_page = path.extension().is_some_and(|extension| extension == "md");
        is_page && std::fs::read_to_string(path).is_ok_and(|text| text.contains(MARK))
    };
    paths.filter(is_marked).collect()
}

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

/// A line without its figures.
fn comparable(line: &str) -> String {
    let line = line.split(", bottleneck").next().unwrap_or_default();
    let mut words = String::new();
    for character in line.trim_end().chars() {
        let digit = character.is_ascii_digit();
        match digit || (character == '.' && words.ends_with('N')) {
            true if words.ends_with('N') => {}
            true => words.push('N'),
            false => words.push(character),
        }
    }
    // A small backup may take a unit less or more.
    for unit in ["KB", "MB", "GB", " B"] {
        words = words.replace(&format!("N {}", unit.trim()), "N unit");
    }
    words
}

fn is_as_shown(shown: &[String], found: &[String]) -> bool {
    match shown.split_first() {
        None => found.is_empty(),
        Some((line, rest)) if line == "..." => {
            (0..=found.len()).any(|at| is_as_shown(rest, &found[at..]))
        }
        Some((line, rest)) => {
            found
                .first()
                .is_some_and(|first| comparable(line) == comparable(first))
                && is_as_shown(rest, &found[1..])
        }
    }
}

/// What each command prints, both streams in one.
fn run(steps: &[Step], folder: &Path) -> Vec<Vec<String>> {
    let program = Path::new(env!("CARGO_BIN_EXE_windlass"));
    let programs = program.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mark_end = format!("printf '%s\\n' '{END}'");
    let mut lines = vec!["exec 2>&1"];
    for step in steps {
        lines.extend([step.command.as_str(), &mark_end]);
    }
    let script = lines.join("\n");
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder)
        .env("PATH", format!("{programs}:{path}"))
        .env_remove("WINDLASS_INSTANCE")
        .output()
        .expect("bash runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let end = format!("{END}\n");
    let printed = text.split(&end);
    let lines = |printed: &str| printed.lines().map(str::to_owned).collect();
    printed.take(steps.len()).map(lines).collect()
}

#[test]
fn every_command_of_the_tutorials_prints_what_they_show() {
    let tutorials = tutorials();
    assert!(!tutorials.is_empty(), "no document is marked with {MARK}");
    for tutorial in tutorials {
        let text = std::fs::read_to_string(&tutorial).expect("the document");
        let named = text
            .split(MARK)
            .nth(1)
            .and_then(|rest| rest.split(" -->").next());
        let named = named.expect("the folder of the tutorial");
        let place = Place::new();
        let folder = place.path("tutorial");
        std::fs::create_dir(&folder).expect("a folder");
        let steps = steps(&text);
        let found = run(&steps, &folder);
        assert_eq!(
            found.len(),
            steps.len(),
            "{}: a command ends the shell",
            tutorial.display()
        );
        for (step, found) in steps.iter().zip(found) {
            let here = folder.display().to_string();
            let found: Vec<_> = found
                .iter()
                .map(|line| line.replace(&here, named))
                .collect();
            assert!(
                is_as_shown(&step.shown, &found),
                "{}: $ {}\nshows\n  {}\nand prints\n  {}",
                tutorial.display(),
                step.command,
                step.shown.join("\n  "),
                found.join("\n  ")
            );
        }
    }
}

#[test]
fn figures_may_differ_and_words_may_not() {
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let same = |shown: &str, found: &str| is_as_shown(&lines(shown), &lines(found));
    assert!(same(
        "set 1, 0.1 s, 6 MB/s",
        "set 1, 12 s, 900 KB/s, bottleneck: disk"
    ));
    assert!(!same("set 1 is valid", "set 1 is damaged"));
    assert!(same("a\n...\nz", "a\nb\nc\nz"));
    assert!(same("a\n...", "a"));
    assert!(!same("a\n...\nz", "a\nb"));
    assert!(!same("a", "a\nb"));
    let text = "```console\n$ one\n1\n$ two\n```\ntext\n```sh\n$ three\n```\n";
    let commands: Vec<_> = steps(text).into_iter().map(|step| step.command).collect();
    assert_eq!(commands, ["one", "two"]);
}
