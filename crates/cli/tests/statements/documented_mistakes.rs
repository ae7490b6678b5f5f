//! `docs/mistakes.md`: every command there is run, and must say what the page says.
//!
//! A block of the page has commands (`$ command`) with what they print, and `[exit N]` unless they succeed. `...` stands
//! for any text, on a line of its own for any lines; `/srv` is the folder of the test. A comment above the block says what
//! is done before: `<!-- before: command -->`.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::support::Place;

/// Mistakes on the page.
const COUNT: usize = 44;

#[test]
fn every_mistake_of_the_page_gets_the_message_of_the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mistakes.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let mistakes: Vec<&str> = page.split("\n### ").skip(1).collect();
    assert_eq!(mistakes.len(), COUNT);
    let mut wrong = Vec::new();
    for (index, mistake) in mistakes.iter().enumerate() {
        let number = format!("{}. ", index + 1);
        assert!(mistake.starts_with(&number), "{mistake}");
        if let Err(difference) = played(mistake) {
            wrong.push(format!("### {mistake}\n---- but: ----\n{difference}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Plays the block of a mistake; what it printed, if that is not what the page says.
fn played(mistake: &str) -> Result<(), String> {
    let place = Place::new();
    std::fs::write(place.path("pass"), "a good secret\n").expect("a passphrase");
    std::fs::write(place.path("wrong"), "another secret\n").expect("a passphrase");
    let small = match mistake.contains("small/") {
        true => match SmallDisk::mount(&place) {
            Some(small) => Some(small),
            None => return Ok(()),
        },
        false => None,
    };
    for line in mistake.lines() {
        let before = line.strip_prefix("<!-- before: ");
        if let Some(command) = before.and_then(|line| line.strip_suffix(" -->")) {
            let (printed, code) = run(&place, command);
            assert_eq!(code, 0, "{command}: {printed}");
        }
    }
    let block = mistake.split("```console\n").nth(1).expect("a block");
    let block = block.split("```").next().expect("its end");
    let mut printed = String::new();
    for line in block.lines() {
        let Some(command) = line.strip_prefix("$ ") else {
            continue;
        };
        let (text, code) = run(&place, command);
        for part in ["$ ", command, "\n", &text] {
            printed.push_str(part);
        }
        if code != 0 {
            printed.push_str(&["[exit ", &code.to_string(), "]\n"].concat());
        }
    }
    drop(small);
    let expected: Vec<&str> = block.lines().collect();
    let found: Vec<&str> = printed.lines().collect();
    match are_alike(&expected, &found) {
        true => Ok(()),
        false => Err(printed),
    }
}

/// Runs a command of the page in the shell; what it prints, and its exit code.
fn run(place: &Place, command: &str) -> (String, i32) {
    let program = Path::new(env!("CARGO_BIN_EXE_windlass"));
    let folder = program.parent().expect("its folder").display();
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
        .env("PATH", format!("{folder}:{path}"))
        .env("HOME", place.path("temp"))
        .env("NO_COLOR", "1")
        .env_remove("WINDLASS_INSTANCE")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("a shell");
    let root = place.path("").display().to_string();
    let text = String::from_utf8_lossy(&output.stdout);
    let text = text.replace(root.trim_end_matches('/'), "/srv");
    (text, output.status.code().unwrap_or(-1))
}

/// Whether lines are as expected.
fn are_alike(expected: &[&str], found: &[&str]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((&"...", rest)) => (0..=found.len()).any(|skipped| are_alike(rest, &found[skipped..])),
        Some((line, rest)) => {
            let Some((first, others)) = found.split_first() else {
                return false;
            };
            is_alike(line.trim_end(), first.trim_end()) && are_alike(rest, others)
        }
    }
}

/// Whether a line has the pieces between dots in order, and begins and ends with them.
fn is_alike(expected: &str, found: &str) -> bool {
    let mut rest = found;
    let mut pieces = expected.split("...").peekable();
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

#[test]
fn dots_stand_for_any_text_and_nothing_else_does() {
    assert!(is_alike("in ... s, ... MB/s", "in 0.1 s, 20 MB/s"));
    assert!(!is_alike("in ... s", "in 0.1 ms, 2"));
    assert!(!is_alike("exact", "exactly"));
    assert!(are_alike(&["a", "...", "z"], &["a", "b", "c", "z"]));
    assert!(!are_alike(&["a", "z"], &["a", "b", "z"]));
}

/// A file system of 1 MB in the folder `small`; unmounted when dropped. Needs the right to mount.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    #[expect(
        clippy::disallowed_methods,
        reason = "said past the capture of a test's output"
    )]
    fn mount(place: &Place) -> Option<Self> {
        let folder = place.path("small");
        std::fs::create_dir(&folder).expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=300k", "tmpfs"])
            .arg(&folder)
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(folder));
        }
        let line =
            "SKIPPED: no right to mount a small file system for the mistakes of full disks\n";
        std::io::stderr()
            .write_all(line.as_bytes())
            .expect("standard error");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(&self.0).status());
    }
}
