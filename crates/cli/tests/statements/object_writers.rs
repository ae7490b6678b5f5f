//! Many processes write into one bucket at once: none harms another, with nothing between them but the store.

use std::process::Child;

use crate::objects::{place, run, well};
use crate::s3_server::Server;
use crate::support::{Place, Run, rows};

/// Processes at a time: more do not run at once on two cores either.
const AT_ONCE: usize = 25;

/// The runs of these commands, many at a time.
fn all(place: &Place, server: &Server, commands: &[Vec<String>]) -> Vec<Run> {
    let begun = |arguments: &Vec<String>| -> Child {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = place.command(&arguments);
        command.stdout(std::process::Stdio::piped());
        command.stderr(std::process::Stdio::piped());
        server.key_for(&mut command).spawn().expect("the program")
    };
    let mut runs = Vec::new();
    for some in commands.chunks(AT_ONCE) {
        let children: Vec<Child> = some.iter().map(begun).collect();
        for child in children {
            runs.push(Run::of(&child.wait_with_output().expect("its end")));
        }
    }
    runs
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn hundreds_of_writers_in_one_folder_make_a_backup_each() {
    const SERVERS: usize = 10;
    const ROUNDS: usize = 20;
    let (place, server) = place();
    let folder = server.url("fleet/");
    for number in 0..SERVERS {
        let instance = format!("i{number}");
        let first = ["sql", "--instance", &instance, "-Q", "SELECT 1"];
        well(&place, &server, &first);
    }
    let commands: Vec<Vec<String>> = (0..SERVERS * ROUNDS)
        .map(|number| {
            let instance = format!("i{}", number % SERVERS);
            words(&[
                "backup",
                "other.db",
                "--to",
                &folder,
                "--instance",
                &instance,
            ])
        })
        .collect();
    for made in all(&place, &server, &commands) {
        assert_eq!(made.code, Some(0), "{}\n{}", made.out, made.err);
    }
    assert_eq!(server.keys().len(), SERVERS * ROUNDS);
    assert_eq!(server.unfinished_uploads(), 0);
    let shown = well(&place, &server, &["--json", "fleet", &folder]);
    let found: serde_json::Value = serde_json::from_str(&shown.out).expect("JSON");
    let backups = found["databases"].as_array().expect("databases").iter();
    let backups: f64 = backups.filter_map(|row| row["backups"].as_f64()).sum();
    assert_eq!(backups as usize, SERVERS * ROUNDS, "{}", shown.out);
    let newest = ["restore", &folder, "--of", "other", "--to", "r.db"];
    well(&place, &server, &newest);
    assert_eq!(rows(&place.path("r.db")), 10);
}

#[test]
fn of_writers_to_one_name_one_wins_and_the_others_are_told() {
    let (place, server) = place();
    let url = server.url("one.bak");
    // Some by one request, and some by an upload in parts.
    let commands: Vec<Vec<String>> = (0..AT_ONCE)
        .map(|number| {
            let database = ["other.db", "app.db"][usize::from(number % 5 == 0)];
            let how = ["--compress", "none", "--max-transfer-size", "5242880"];
            words(&[&["backup", database, "--to", &url][..], &how].concat())
        })
        .collect();
    let runs = all(&place, &server, &commands);
    let won: Vec<&Run> = runs.iter().filter(|run| run.code == Some(0)).collect();
    assert_eq!(
        won.len(),
        1,
        "{:?}",
        won.iter().map(|run| &run.err).collect::<Vec<_>>()
    );
    for lost in runs.iter().filter(|run| run.code != Some(0)) {
        assert_eq!(lost.code, Some(1), "{}", lost.err);
        assert!(lost.err.contains("FORMAT"), "{}", lost.err);
    }
    well(&place, &server, &["verify", &url]);
    assert_eq!(server.unfinished_uploads(), 0);
    // The winner is whole: what it said it wrote is there.
    let again = run(&place, &server, &["restore", &url, "--to", "r.db"]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert!([10, 14_000].contains(&rows(&place.path("r.db"))));
}
