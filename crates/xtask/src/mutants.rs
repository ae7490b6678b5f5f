//! Mutation tests of the most critical files: each small change to one of them must make a test
//! fail.
//!
//! `cargo-mutants` makes the changes, builds, and runs the tests listed here for each file. Mutants
//! that no test can detect are listed in `.cargo/mutants.toml`, each with the reason.

use std::path::Path;
use std::process::Command;

use crate::tools;

/// Files whose mutants the same tests must detect.
struct Subject {
    files: &'static [&'static str],
    packages: &'static str,
    tests: &'static [&'static str],
}

const SUBJECTS: [Subject; 4] = [
    Subject {
        files: &[
            "crates/pipeline/src/control.rs",
            "crates/pipeline/src/coverage/*.rs",
            "crates/pipeline/src/backup/*.rs",
            "crates/pipeline/src/restore/*.rs",
        ],
        packages: "windlass-pipeline",
        tests: &[
            "--lib",
            "--test",
            "runs",
            "--test",
            "encryption",
            "--test",
            "signing",
        ],
    },
    Subject {
        files: &[
            "crates/media/src/held.rs",
            "crates/media/src/index.rs",
            "crates/media/src/set_walk.rs",
        ],
        packages: "windlass-media",
        tests: &["--lib", "--test", "families", "--test", "bounds"],
    },
    Subject {
        files: &[
            "crates/source/src/sqlite/snapshot.rs",
            "crates/source/src/sqlite/wal.rs",
            "crates/source/src/sqlite/restore/*.rs",
        ],
        packages: "windlass-source",
        tests: &["--lib", "--test", "sqlite"],
    },
    Subject {
        files: &[
            "crates/instance/src/presence.rs",
            "crates/instance/src/chain/*.rs",
            "crates/instance/src/retention/*.rs",
            "crates/instance/src/operation/backup/base.rs",
            "crates/instance/src/operation/history.rs",
        ],
        packages: "windlass-instance,windlass",
        tests: &["--lib", "--test", "statements"],
    },
];

/// Time limit in seconds for the tests of one mutant; a mutant that hangs counts as detected.
const TIMEOUT_SECONDS: &str = "600";

/// What `cargo mutants` ends with when some mutants hung, and all others were noticed.
const ONLY_TIMEOUTS: i32 = 3;

/// Tests the mutants of all subjects, or of the given files. `options` go to `cargo mutants`.
pub(crate) fn run(wanted: &[String], options: &[String]) -> Result<(), String> {
    tools::install_with_cargo("cargo-mutants")?;
    let in_place = is_clean()?;
    let mut trouble = Vec::new();
    for (number, (subject, files)) in selected(wanted)?.into_iter().enumerate() {
        let output = format!("target/mutants/{}", number + 1);
        println!("== mutants of {}: {output}/mutants.out", files.join(", "));
        std::fs::create_dir_all(&output).map_err(|error| format!("{output}: {error}"))?;
        let mut command = Command::new("cargo");
        // Without --workspace only the default member has mutants.
        command.args(["mutants", "--workspace", "--timeout", TIMEOUT_SECONDS]);
        command.args(["--output", &output, "--test-package", subject.packages]);
        if in_place {
            // Reuses what is built already; a copy would build everything.
            command.arg("--in-place");
        }
        for file in &files {
            command.args(["--file", file]);
        }
        command.args(options).arg("--").args(subject.tests);
        let status = command.status();
        let status = status.map_err(|error| format!("cargo mutants: {error}"))?;
        let list = std::fs::read_to_string(format!("{output}/mutants.out/mutants.json"));
        if list.map_or(true, |list| list.trim() == "[]") {
            trouble.push(format!("no mutants of {}", files.join(", ")));
        } else if !status.success() && status.code() != Some(ONLY_TIMEOUTS) {
            trouble.push(format!("{status}: see {output}/mutants.out/missed.txt"));
        }
    }
    match trouble.is_empty() {
        true => Ok(()),
        false => Err(format!("mutants: {}", trouble.join("; "))),
    }
}

/// Whether the mutants may be made where the files are: nothing that is not committed can be lost then.
fn is_clean() -> Result<bool, String> {
    let status = Command::new("git").args(["status", "--porcelain"]).output();
    let status = status.map_err(|error| format!("git: {error}"))?;
    Ok(status.status.success() && status.stdout.is_empty())
}

/// The subjects with files in `wanted`, each with these files; all subjects with all files if it is empty.
fn selected(wanted: &[String]) -> Result<Vec<(&'static Subject, Vec<String>)>, String> {
    let is_unknown = |file: &&String| !SUBJECTS.iter().any(|subject| subject.holds(file));
    if let Some(file) = wanted.iter().find(is_unknown) {
        return Err(format!(
            "'{file}' is not among the files that decide about success"
        ));
    }
    let files_of = |subject: &'static Subject| {
        let files: Vec<String> = match wanted {
            [] => subject.files.iter().map(|&file| file.to_owned()).collect(),
            wanted => wanted
                .iter()
                .filter(|file| subject.holds(file))
                .cloned()
                .collect(),
        };
        (subject, files)
    };
    let all = SUBJECTS.iter().map(files_of);
    Ok(all.filter(|(_, files)| !files.is_empty()).collect())
}

impl Subject {
    fn holds(&self, file: &str) -> bool {
        let folder = |path: &str| Path::new(path).parent().map(Path::to_owned);
        let mut files = self.files.iter();
        files.any(|known| *known == file || (known.contains('*') && folder(known) == folder(file)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_exists_and_a_file_finds_its_own() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for file in SUBJECTS.iter().flat_map(|subject| subject.files) {
            let path = root.join(file);
            let there = match file.contains('*') {
                true => path.parent().is_some_and(Path::is_dir),
                false => path.is_file(),
            };
            assert!(there, "{file}");
        }
        let wanted = ["pipeline/src/backup/movement.rs", "media/src/held.rs"];
        let wanted = wanted.map(|file| format!("crates/{file}"));
        let found = selected(&wanted).unwrap();
        let found: Vec<_> = (found.iter())
            .map(|(subject, files)| (subject.packages, files))
            .collect();
        assert_eq!(
            found,
            [
                ("windlass-pipeline", &vec![wanted[0].clone()]),
                ("windlass-media", &vec![wanted[1].clone()])
            ]
        );
        assert_eq!(selected(&[]).unwrap().len(), SUBJECTS.len());
        assert!(selected(&["crates/pipeline/src/plan.rs".to_owned()]).is_err());
    }
}
