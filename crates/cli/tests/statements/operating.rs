//! Commands for operators: history, retention, settings, metrics, checks, completions.

use serde_json::Value as Json;

use crate::support::{Place, Run};

/// An instance with two full backups and a differential of `app`.
fn place() -> (Place, String) {
    let place = Place::new();
    let instance = place.text("instance");
    let run = place.sql_with(
        &["--instance", &instance],
        "EXEC sp_attach_db 'app', 'd:\\app.db'\n\
         BACKUP DATABASE app TO DISK = 'd:\\temp\\1.bak'\n\
         BACKUP DATABASE app TO DISK = 'd:\\temp\\2a.bak', DISK = 'd:\\temp\\2b.bak' WITH COMPRESSION\n\
         BACKUP DATABASE app TO DISK = 'd:\\temp\\3.bak' WITH DIFFERENTIAL",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    (place, instance)
}

fn array(run: &Run) -> Vec<Json> {
    let results = run.results();
    results[0].as_array().expect("rows").clone()
}

#[test]
fn the_history_is_listed_and_held_against_an_rpo() {
    let (place, instance) = place();
    let rows = array(&place.succeed(&["history", "app", "--instance", &instance, "--json"]));
    let kinds: Vec<&str> = rows
        .iter()
        .map(|row| row["type"].as_str().expect("a type"))
        .collect();
    assert_eq!(kinds, ["full", "full", "differential"]);
    assert_eq!(rows[1]["compression"], "MS_XPRESS");
    let last =
        array(&place.succeed(&["history", "--last", "1", "--instance", &instance, "--json"]));
    assert_eq!(last.len(), 1);
    let rpo =
        array(&place.succeed(&["history", "--rpo", "24h", "--instance", &instance, "--json"]));
    assert_eq!(rpo[0]["rpo"], "kept");
    assert_eq!(place.run(&["history"]).code, Some(2));
}

#[test]
fn expire_tells_before_it_deletes_and_keeps_chains() {
    let (place, _) = place();
    std::fs::write(place.path("temp/other.txt"), "mine").expect("a file");
    let folder = place.text("temp");
    let verdict = |run: &Run, name: &str| -> (String, String) {
        let rows = array(run);
        let row = rows
            .iter()
            .find(|row| {
                row["file"]
                    .as_str()
                    .is_some_and(|file| file.ends_with(name))
            })
            .unwrap_or_else(|| panic!("{name}: {}", run.out))
            .clone();
        let text = |column: &str| row[column].as_str().expect(column).to_owned();
        (text("verdict"), text("reason"))
    };
    let dry = place.succeed(&["expire", &folder, "--last", "1", "--json"]);
    assert_eq!(verdict(&dry, "1.bak").0, "goes");
    assert_eq!(verdict(&dry, "2a.bak").0, "stays");
    assert!(
        verdict(&dry, "2b.bak").1.starts_with("the base of"),
        "{}",
        dry.out
    );
    assert!(
        verdict(&dry, "3.bak")
            .1
            .contains("the newest of its database")
    );
    assert!(
        verdict(&dry, "other.txt")
            .1
            .starts_with("not a Windlass backup")
    );
    assert!(
        place.path("temp/1.bak").exists(),
        "a dry run deletes nothing"
    );
    let wet = place.succeed(&["expire", &folder, "--last", "1", "--delete", "--json"]);
    assert_eq!(verdict(&wet, "1.bak").0, "deleted");
    assert!(!place.path("temp/1.bak").exists());
    for name in ["2a.bak", "2b.bak", "3.bak", "other.txt"] {
        assert!(place.path(&format!("temp/{name}")).exists(), "{name}");
    }
    assert_eq!(
        place.run(&["expire", &folder]).code,
        Some(2),
        "without a rule"
    );
}

/// Three full backups, of which the newest has a flipped bit in its payload.
fn place_with_damage(instance: &str) -> Place {
    let place = Place::new();
    for name in ["1.bak", "2.bak", "3.bak"] {
        let to = format!("temp/{name}");
        let arguments = [
            "backup",
            "app.db",
            "--to",
            &to,
            "--compress",
            "none",
            "--instance",
            instance,
        ];
        place.succeed(&arguments);
        std::thread::sleep(std::time::Duration::from_millis(1100));
    }
    crate::support::flip_bit(&place.path("temp/3.bak"), 200_000);
    place
}

#[test]
fn nothing_is_deleted_for_the_sake_of_a_backup_that_cannot_be_read_back() {
    let place = place_with_damage("instance");
    let on = |arguments: &[&str]| {
        place.run(&[&["expire", "temp", "--instance", "instance"], arguments].concat())
    };
    let verdicts = |run: &Run| -> Vec<String> {
        let rows = array(run);
        let verdict = |row: &Json| row["verdict"].as_str().expect("a verdict").to_owned();
        rows.iter().map(verdict).collect()
    };
    // Headers alone would let the two good ones go.
    let dry = on(&["--last", "1", "--json"]);
    assert_eq!(dry.code, Some(0), "{}", dry.err);
    assert!(
        dry.err
            .contains("what stays in its place would be read back: 1 backup set ("),
        "{}",
        dry.err
    );
    let wet = on(&["--last", "1", "--delete", "--json"]);
    assert_eq!(wet.code, Some(1), "{}", wet.err);
    assert!(wet.numbers().contains(&50047), "{}", wet.err);
    let mut found = verdicts(&wet);
    found.sort();
    assert_eq!(found, ["deleted", "stays", "stays"], "{}", wet.out);
    assert!(!place.path("temp/1.bak").exists());
    place.succeed(&["verify", "temp/2.bak"]);
    // What was verified and has not changed is not read again; the damaged one is.
    place.succeed(&[
        "backup",
        "app.db",
        "--to",
        "temp/4.bak",
        "--instance",
        "instance",
    ]);
    place.succeed(&["verify", "temp/4.bak", "--instance", "instance"]);
    let dry = on(&["--last", "1", "--json"]);
    assert!(!dry.err.contains("read back"), "{}", dry.err);
    let again = on(&["--last", "1", "--verified-within", "0", "--json"]);
    assert!(
        again.err.contains("read back: 1 backup set ("),
        "{}",
        again.err
    );
    // A copy, or a file that was written to, was not what was verified.
    std::fs::copy(place.path("temp/4.bak"), place.path("temp/copy")).expect("a copy");
    std::fs::rename(place.path("temp/copy"), place.path("temp/4.bak")).expect("its place");
    let changed = on(&["--last", "1", "--json"]);
    assert!(
        changed.err.contains("read back: 1 backup set ("),
        "{}",
        changed.err
    );
}

#[test]
fn headers_are_trusted_only_where_that_is_said() {
    let place = place_with_damage("instance");
    place.succeed(&[
        "expire",
        "temp",
        "--last",
        "1",
        "--trust-headers",
        "--delete",
    ]);
    assert!(!place.path("temp/2.bak").exists());
    // The dialect of SQL Backup relies on nothing unread either.
    let place = place_with_damage("instance");
    let command = "BACKUP DATABASE app TO DISK = [temp/4.bak] WITH ERASEFILES_ATSTART = 1b";
    let arguments = ["sqlbackup", "--attach", "app=app.db", "-SQL", command];
    let run = place.run(&arguments);
    assert!(run.out.contains("cannot be read back"), "{}", run.out);
    assert!(place.path("temp/2.bak").exists() && !place.path("temp/1.bak").exists());
    place.run(&[&arguments[..], &["--trust-headers"]].concat());
    assert!(!place.path("temp/2.bak").exists());
}

#[test]
fn a_full_backup_stays_for_a_differential_in_another_folder() {
    let (place, instance) = place();
    std::fs::create_dir(place.path("away")).expect("a folder");
    let run = place.sql_with(
        &["--instance", &instance],
        "BACKUP DATABASE app TO DISK = 'd:\\away\\d.bak' WITH DIFFERENTIAL\n\
         BACKUP DATABASE app TO DISK = 'd:\\temp\\4.bak'",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    std::fs::remove_file(place.path("temp/3.bak")).expect("the other differential goes");
    let folder = place.text("temp");
    let goes = |arguments: &[&str]| -> Vec<String> {
        let mut all = vec!["expire", &folder, "--last", "1", "--json"];
        all.extend(arguments);
        let rows = array(&place.succeed(&all));
        rows.iter()
            .filter(|row| row["verdict"] == "goes")
            .filter_map(|row| row["file"].as_str()?.rsplit('/').next().map(str::to_owned))
            .collect()
    };
    assert_eq!(goes(&["--instance", &instance]), ["1.bak"]);
}

#[test]
fn settings_come_from_where_they_say() {
    let place = Place::new();
    std::fs::write(
        place.path("w.toml"),
        "instance = \"instance\"\non_failure = \"true\"\n[drives]\nd = \"/srv/d\"\n",
    )
    .expect("a file");
    let config = place.text("w.toml");
    let of = |run: &Run, name: &str| -> (String, String) {
        let rows = array(run);
        let row = rows
            .iter()
            .find(|row| row["setting"] == name)
            .expect(name)
            .clone();
        let text = |column: &str| match row[column].as_str() {
            Some(text) => text.to_owned(),
            None => row[column].to_string(),
        };
        (text("value"), text("origin"))
    };
    let shown = place.succeed(&["config", "--effective", "--config", &config, "--json"]);
    assert_eq!(
        of(&shown, "instance"),
        (place.text("instance"), config.clone())
    );
    assert_eq!(of(&shown, "drives.D").0, "/srv/d");
    assert_eq!(of(&shown, "on_success").1, "built in");
    let over = place.succeed(&[
        "config",
        "--effective",
        "--config",
        &config,
        "--json",
        "--instance",
        "/i",
        "--drive",
        "d=/",
    ]);
    assert_eq!(
        of(&over, "instance"),
        ("/i".to_owned(), "command line".to_owned())
    );
    assert_eq!(of(&over, "drives.D").0, "/");
    let mut command = place.command(&["config", "--effective", "--config", &config, "--json"]);
    let output = command
        .env("WINDLASS_INSTANCE", "/e")
        .output()
        .expect("it runs");
    assert!(String::from_utf8_lossy(&output.stdout).contains("environment, WINDLASS_INSTANCE"));
    std::fs::write(place.path("bad.toml"), "instanse = \"x\"\n").expect("a file");
    let bad = place.run(&["config", "--effective", "--config", "bad.toml"]);
    assert_eq!(bad.code, Some(2));
    assert!(bad.err.contains("instanse"), "{}", bad.err);
    assert_eq!(
        place.run(&["doctor", "--config", "nosuch.toml"]).code,
        Some(2)
    );
}

#[test]
fn metrics_are_renewed_by_backups() {
    let (place, instance) = place();
    std::fs::write(place.path("w.toml"), "metrics = \"m.prom\"\n").expect("a file");
    let config = place.text("w.toml");
    place.succeed(&[
        "backup",
        "app",
        "--to",
        "m.bak",
        "--instance",
        &instance,
        "--config",
        &config,
    ]);
    let text = std::fs::read_to_string(place.path("m.prom")).expect("metrics");
    for line in [
        "# TYPE windlass_backup_last_finished_timestamp_seconds gauge",
        "windlass_backups{database=\"app\",type=\"full\"} 3",
        "windlass_backups{database=\"app\",type=\"differential\"} 1",
        "windlass_copies_queued 0",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let printed = place.succeed(&["metrics", "--instance", &instance]);
    assert_eq!(printed.out, text);
}

#[test]
fn the_doctor_finds_what_is_wrong() {
    let (place, instance) = place();
    let of = |run: &Run, what: &str| -> String {
        let rows = array(run);
        let row = rows.iter().find(|row| {
            row["what"]
                .as_str()
                .is_some_and(|found| found.starts_with(what))
        });
        row.unwrap_or_else(|| panic!("{what}: {}", run.out))["state"]
            .as_str()
            .expect("a state")
            .to_owned()
    };
    let well = place.succeed(&["doctor", "--instance", &instance, "--json"]);
    assert_eq!(of(&well, "catalog"), "ok");
    assert_eq!(of(&well, "database app"), "ok");
    std::fs::rename(place.path("app.db"), place.path("gone.db")).expect("it goes");
    // The command line refuses such a drive at once; a configuration file can name one.
    std::fs::write(place.path("w.toml"), "[drives]\nq = \"/nosuch\"\n").expect("a file");
    let config = place.text("w.toml");
    let ill = place.run(&[
        "doctor",
        "--instance",
        &instance,
        "--json",
        "--config",
        &config,
    ]);
    assert_eq!(ill.code, Some(1));
    assert_eq!(of(&ill, "database app"), "ERROR");
    assert_eq!(of(&ill, "drive Q"), "ERROR");
}

#[test]
fn completions_and_manual_pages_are_made() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let run = place.succeed(&["completions", shell]);
        assert!(run.out.contains("WINDLASS_COMPLETE"), "{shell}");
    }
    place.succeed(&["man", "pages"]);
    let page = std::fs::read_to_string(place.path("pages/windlass-expire.1")).expect("a page");
    assert!(
        page.contains("restorable backup of each database"),
        "{page}"
    );
}

/// The full backup may be elsewhere: with it, this is the newest state.
#[test]
fn a_differential_without_its_full_backup_stays_where_it_is_the_newest() {
    let place = Place::new();
    for (name, kind) in [
        ("temp/1.bak", None),
        ("2.bak", None),
        ("temp/3.bak", Some("--differential")),
    ] {
        let backup = ["backup", "app.db", "--to", name, "--instance", "instance"];
        place.succeed(&[&backup[..], kind.as_slice()].concat());
    }
    let expired = place.run(&["expire", "temp", "--last", "1", "--delete", "--json"]);
    assert_eq!(expired.code, Some(1), "{}", expired.out);
    assert!(
        expired.out.contains("newer than anything"),
        "{}",
        expired.out
    );
    assert!(place.path("temp/3.bak").exists());
    place.succeed(&["restore", "2.bak", "temp/3.bak", "--to", "copy.db"]);
}

/// Times of modification can be set back.
#[test]
fn a_medium_that_was_changed_under_its_old_time_is_read_again() {
    let place = Place::new();
    for name in ["temp/1.bak", "temp/2.bak"] {
        place.succeed(&["backup", "app.db", "--to", name, "--instance", "instance"]);
    }
    place.succeed(&["verify", "temp/2.bak", "--instance", "instance"]);
    let path = place.path("temp/2.bak");
    let modified = std::fs::metadata(&path)
        .and_then(|found| found.modified())
        .expect("its time");
    crate::support::flip_bit(&path, 20_000);
    let file = std::fs::File::options()
        .write(true)
        .open(&path)
        .expect("the medium");
    file.set_modified(modified).expect("the old time");
    let arguments = [
        "expire",
        "temp",
        "--last",
        "1",
        "--delete",
        "--instance",
        "instance",
        "--json",
    ];
    let expired = place.run(&arguments);
    assert!(expired.numbers().contains(&50047), "{}", expired.err);
    assert!(place.path("temp/1.bak").exists());
}
