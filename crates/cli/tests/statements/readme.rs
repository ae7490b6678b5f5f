//! Runs the examples of README and of the documents as written.

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

/// The commands of a section of a document.
fn section(document: &str, heading: &str) -> String {
    let path = format!("{}/../../docs/{document}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the document");
    let (_, section) = text.split_once(heading).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let blocks = section.split("```sh\n").skip(1);
    let blocks = blocks.filter_map(|block| Some(block.split_once("```")?.0));
    blocks.collect::<Vec<_>>().concat()
}

#[test]
fn the_way_from_nothing_to_a_nightly_job_is_as_docs_server_says() {
    let place = Place::new();
    std::fs::create_dir(place.path("app")).expect("a folder");
    crate::support::make_database(&place.path("app/blog.db"), 100);
    let commands = section("server.md", "## From nothing to a nightly backup");
    assert!(commands.contains("sp_add_jobserver"));
    // Other servers of this test run have the usual ports.
    let commands = commands
        .replace("/srv/", &format!("{}/", place.text(".")))
        .replace(" &\n", " --local-only &\nserver=$!\nsleep 2\n");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_windlass"));
    let folder = program.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let script = format!("trap 'kill $server; wait $server' EXIT\n{commands}");
    let run = std::process::Command::new("bash")
        .args(["-e", "-c", &script])
        .env("PATH", format!("{folder}:{path}"))
        .env_remove("WINDLASS_INSTANCE")
        .output()
        .expect("bash runs");
    let run = Run::of(&run);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let ended = run
        .out
        .lines()
        .find(|line| line.starts_with("Nightly backup"));
    let ended = ended.unwrap_or_else(|| panic!("{}", run.out));
    assert!(ended.contains("succeeded"), "{}", run.out);
    for database in ["shop", "crm", "blog"] {
        place.succeed(&["verify", &place.text(&format!("backup/{database}.bak"))]);
    }
}
