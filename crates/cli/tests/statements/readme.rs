//! Runs the examples of README as written.

use crate::support::{Place, Run};

/// The lines of README's block with this line in it.
fn block(with: &str) -> Vec<String> {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).expect("README");
    let mut blocks = readme.split("```").skip(1).step_by(2);
    let block = blocks
        .find(|block| block.contains(with))
        .expect("the block");
    block.lines().map(str::to_owned).collect()
}

#[test]
fn the_nightly_script_of_the_readme_runs_every_night() {
    let place = Place::new();
    std::fs::create_dir(place.path("backup")).expect("a folder");
    let here = |text: &str| {
        text.replace("/srv/windlass", &place.text("instance"))
            .replace("/srv/app.db", &place.text("app.db"))
            .replace("/srv/d", &place.text("."))
    };
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut script = String::new();
    for line in block("nightly.sql") {
        match line.strip_prefix("$ ") {
            Some(command) => {
                let command = command.split("  #").next().expect("a command");
                commands.push(shell_words::split(&here(command)).expect("words"));
            }
            None => {
                script += &here(&line);
                script.push('\n');
            }
        }
    }
    commands.retain(|words| words[0] == "windlass");
    std::fs::write(place.path("nightly.sql"), script).expect("the script");
    let run = |words: &[String]| -> Run {
        let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        place.succeed(&words)
    };
    let [once, nightly] = commands.as_slice() else {
        panic!("{commands:?}");
    };
    run(once);
    for night in 1..=3 {
        let reported = run(nightly);
        assert!(
            reported.err.contains("is valid"),
            "night {night}: {}",
            reported.err
        );
        let rows = reported.out.matches("app").count();
        assert_eq!(rows, night, "{}", reported.out);
    }
}
