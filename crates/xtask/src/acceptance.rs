//! The acceptance runs that take too long for `test`, in parts that can run alone.

use std::time::Instant;

use crate::run;

/// A part: tests of one program, selected by name.
struct Part {
    name: &'static str,
    /// A description for the list.
    shows: &'static str,
    package: &'static str,
    program: &'static str,
    filter: &'static str,
    /// Whether these are the tests marked `#[ignore]`.
    is_long: bool,
}

/// A part with the long tests of a library's test program.
const fn library(
    name: &'static str,
    shows: &'static str,
    package: &'static str,
    program: &'static str,
) -> Part {
    Part {
        name,
        shows,
        package,
        program,
        filter: "slow_",
        is_long: true,
    }
}

/// A part that consists of long tests of the program itself: those of one module of `acceptance`.
const fn program(name: &'static str, shows: &'static str, filter: &'static str) -> Part {
    Part {
        name,
        shows,
        package: "windlass",
        program: "acceptance",
        filter,
        is_long: true,
    }
}

const PARTS: [Part; 13] = [
    library(
        "engine-kills",
        "the page engine keeps acknowledged commits through 300 kills",
        "windlass-engine",
        "kill",
    ),
    library(
        "engine-logs",
        "random moments of 20,000 histories come back through log backups, marks and pages",
        "windlass-engine",
        "logs",
    ),
    library(
        "vfs-kills",
        "the same through SQLite, 300 kills",
        "windlass-vfs",
        "crash",
    ),
    library(
        "vfs-differential",
        "random statements have the answers of stock SQLite",
        "windlass-vfs",
        "differential",
    ),
    library(
        "vfs-stream",
        "a million transactions have the answers of stock SQLite",
        "windlass-vfs",
        "stream",
    ),
    library(
        "vfs-threads",
        "a million transactions of several threads",
        "windlass-vfs",
        "threads",
    ),
    Part {
        is_long: false,
        ..program(
            "databases",
            "every real database survives every algorithm",
            "databases::",
        )
    },
    program(
        "writers",
        "100 copies made under load are committed states",
        "writers::slow_",
    ),
    program(
        "damage",
        "2,000 flipped bits and a cut at every block are reported",
        "damage::slow_",
    ),
    program(
        "crash",
        "100 killed backups and 100 killed restores of SQLite files",
        "crash::slow_",
    ),
    program(
        "engine",
        "100 killed backups, restores and page restores of the page engine",
        "engine::slow_",
    ),
    program(
        "server-kills",
        "100 killed servers lose no acknowledged commit, and their backups verify",
        "server::slow_",
    ),
    program(
        "memory",
        "memory stays within the plan for 2 GB",
        "memory::slow_",
    ),
];

/// Prints the list of parts.
pub(crate) fn list() {
    for part in &PARTS {
        println!("{:18} {}", part.name, part.shows);
    }
}

fn row(name: &str, minutes: u64, seconds: u64, word: &str) -> String {
    format!("{name:18} {minutes:4} min {seconds:2} s  {word}\n")
}

/// Runs the given parts, or all. A failed part does not stop the others.
pub(crate) fn run(names: &[String]) -> Result<(), String> {
    let mut chosen = Vec::new();
    for name in names {
        let part = PARTS.iter().find(|part| part.name == name);
        chosen.push(part.ok_or(format!("there is no part '{name}': see --list"))?);
    }
    if chosen.is_empty() {
        chosen.extend(&PARTS);
    }
    let mut failed = Vec::new();
    let mut table = String::new();
    for part in chosen {
        let begun = Instant::now();
        let outcome = part.run();
        let (seconds, word) = (
            begun.elapsed().as_secs(),
            outcome.map_or("FAILED", |()| "ok"),
        );
        if word != "ok" {
            failed.push(part.name);
        }
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        let name = part.name;
        table.push_str(&row(name, minutes, seconds, word));
    }
    // Includes the build time.
    print!("== acceptance\n{table}");
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("acceptance: {}", failed.join(", "))),
    }
}

impl Part {
    fn run(&self) -> Result<(), String> {
        let mut arguments = vec!["test", "--release", "--package", self.package];
        arguments.extend(["--test", self.program]);
        arguments.extend(["--", "--nocapture", self.filter]);
        if self.is_long {
            arguments.push("--ignored");
        }
        run::step(self.name, "cargo", &arguments)
    }
}
