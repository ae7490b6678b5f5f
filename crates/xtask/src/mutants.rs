//! Mutation tests of the most critical files: each small change to one of them must make a test
//! fail.
//!
//! `cargo-mutants` makes the changes, builds, and runs the tests listed here for each file.

use std::path::Path;

use crate::{run, tools};

/// A file, its package, and the tests that must notice.
struct Subject {
    files: &'static str,
    package: &'static str,
    tests: &'static [&'static str],
}

const PIPELINE: &[&str] = &["--lib", "--test", "runs", "--test", "encryption"];
const MEDIA: &[&str] = &["--lib", "--test", "families", "--test", "bounds"];
const SOURCE: &[&str] = &["--lib", "--test", "sqlite"];

const SUBJECTS: [Subject; 12] = [
    subject(
        "crates/pipeline/src/control.rs",
        "windlass-pipeline",
        PIPELINE,
    ),
    subject(
        "crates/pipeline/src/coverage/*.rs",
        "windlass-pipeline",
        PIPELINE,
    ),
    subject(
        "crates/pipeline/src/backup/*.rs",
        "windlass-pipeline",
        PIPELINE,
    ),
    subject(
        "crates/pipeline/src/restore/*.rs",
        "windlass-pipeline",
        PIPELINE,
    ),
    subject("crates/media/src/held.rs", "windlass-media", MEDIA),
    subject("crates/media/src/index.rs", "windlass-media", MEDIA),
    subject("crates/media/src/set_walk.rs", "windlass-media", MEDIA),
    subject(
        "crates/source/src/sqlite/snapshot.rs",
        "windlass-source",
        SOURCE,
    ),
    subject("crates/source/src/sqlite/wal.rs", "windlass-source", SOURCE),
    subject(
        "crates/source/src/sqlite/restore/*.rs",
        "windlass-source",
        SOURCE,
    ),
    subject(
        "crates/instance/src/statement/{base,history}.rs",
        "windlass",
        &["--test", "statements"],
    ),
    subject(
        "crates/instance/src/retention/*.rs",
        "windlass",
        &["--test", "statements"],
    ),
];

const fn subject(
    files: &'static str,
    package: &'static str,
    tests: &'static [&'static str],
) -> Subject {
    Subject {
        files,
        package,
        tests,
    }
}

/// Time limit for the tests of one mutant, in seconds; a mutant that hangs counts as detected.
const TIMEOUT_SECONDS: &str = "300";

/// Tests the mutants of all subjects, or of those that contain a file in `wanted`.
pub(crate) fn run(wanted: &[String]) -> Result<(), String> {
    tools::install_with_cargo("cargo-mutants")?;
    let mut survived = Vec::new();
    for (files, subject) in selected(wanted)? {
        let output = format!("target/mutants/{}", name_of(&files));
        let mut arguments = vec!["mutants", "--no-shuffle", "--timeout", TIMEOUT_SECONDS];
        arguments.extend(["--file", &files, "--output", &output]);
        arguments.extend(["--test-package", subject.package, "--"]);
        arguments.extend(subject.tests);
        std::fs::create_dir_all(&output).map_err(|error| format!("{output}: {error}"))?;
        // The exit code also shows whether mutants survived; the list is in the folder.
        if run::step(&files, "cargo", &arguments).is_err() {
            survived.push(format!("{output}/mutants.out/missed.txt"));
        }
    }
    match survived.is_empty() {
        true => Ok(()),
        false => Err(format!("mutants survived: {}", survived.join(", "))),
    }
}

/// Each requested file with its subject; all subjects if none was requested.
fn selected(wanted: &[String]) -> Result<Vec<(String, &'static Subject)>, String> {
    if wanted.is_empty() {
        let all = SUBJECTS.iter();
        return Ok(all
            .map(|subject| (subject.files.to_owned(), subject))
            .collect());
    }
    let find = |file: &String| {
        let subject = SUBJECTS.iter().find(|subject| subject.holds(file));
        let subject = subject.ok_or(format!(
            "'{file}' is not among the files that decide about success"
        ))?;
        Ok((file.clone(), subject))
    };
    wanted.iter().map(find).collect()
}

impl Subject {
    fn holds(&self, file: &str) -> bool {
        let folder = |path: &str| Path::new(path).parent().map(Path::to_owned);
        self.files == file
            || (self.files.contains(['*', '{']) && folder(self.files) == folder(file))
    }
}

/// A folder name for the results of some files.
fn name_of(files: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '-'
        }
    };
    files
        .trim_start_matches("crates/")
        .chars()
        .map(plain)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_exists_and_a_file_finds_its_own() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for subject in &SUBJECTS {
            let path = root.join(subject.files);
            let there = match subject.files.contains(['*', '{']) {
                true => path.parent().is_some_and(Path::is_dir),
                false => path.is_file(),
            };
            assert!(there, "{}", subject.files);
        }
        let found = selected(&["crates/pipeline/src/backup/movement.rs".to_owned()]);
        assert_eq!(
            found.map(|found| found[0].1.package),
            Ok("windlass-pipeline")
        );
        assert!(selected(&["crates/pipeline/src/plan.rs".to_owned()]).is_err());
    }
}
