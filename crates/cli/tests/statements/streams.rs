//! Standard output that takes nothing.

use std::fs::File;
use std::process::Stdio;

use crate::support::Place;

const COMMANDS: [&[&str]; 11] = [
    &["header", "a.bak"],
    &["header", "a.bak", "--json"],
    &["verify", "a.bak"],
    &["backup", "app.db", "--to", "b.bak"],
    &["restore", "a.bak", "--to", "copy.db", "--replace"],
    &["sql", "-Q", "SELECT 1"],
    &["metrics", "--instance", "instance"],
    &["report", "--instance", "instance", "--json"],
    &["completions", "bash"],
    &["--help"],
    &["config", "--effective"],
];

fn place() -> Place {
    let place = Place::new();
    place.succeed(&[
        "backup",
        "app.db",
        "--to",
        "a.bak",
        "--instance",
        "instance",
    ]);
    place
}

#[test]
fn a_result_that_is_lost_makes_the_command_fail() {
    let place = place();
    for arguments in COMMANDS {
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("a full device");
        let output = place.command(arguments).stdout(Stdio::from(full)).output();
        let output = output.expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(
            said.contains("standard output: No space left"),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn a_closed_pipe_is_no_failure_and_no_panic() {
    let place = place();
    for arguments in COMMANDS {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = place.command(arguments).stdout(writer).output();
        let output = output.expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
        assert!(!said.contains("Broken pipe"), "{arguments:?}: {said}");
    }
}
