//! The dialect of SQL Backup Pro.

use serde_json::Value as Json;

use crate::support::{Place, Run, article, make_database, on, registered, rows, succeed};

/// Runs a command on an instance that knows `app` and `other`.
pub(crate) fn run(place: &Place, command: &str) -> Run {
    let instance = place.text("instance");
    if !place.path("instance").exists() {
        let made = place.sql_with(
            &["--instance", &instance],
            "EXEC sp_attach_db 'app', 'd:\\app.db'\nEXEC sp_attach_db 'other', 'd:\\other.db'",
        );
        assert_eq!(made.code, Some(0), "{}", made.err);
    }
    let drive = format!("d={}", place.text(""));
    place.run(&[
        "sqlbackup",
        "-SQL",
        command,
        "--instance",
        &instance,
        "--drive",
        &drive,
        "--json",
    ])
}

/// The lines and the codes of a run.
pub(crate) fn report(run: &Run) -> (String, i64, i64) {
    let results = run.results();
    let [.., lines, codes] = results.as_slice() else {
        panic!("{}\n{}", run.out, run.err);
    };
    let lines = lines.as_array().expect("lines");
    let lines: Vec<&str> = lines
        .iter()
        .map(|line| line["output"].as_str().expect("a line"))
        .collect();
    let code = |name: &str| codes[0][name].as_i64().expect("a code");
    (lines.join("\n"), code("exitcode"), code("sqlerrorcode"))
}

#[track_caller]
pub(crate) fn succeeds(place: &Place, command: &str) -> String {
    let run = run(place, command);
    let (lines, exit, sql) = report(&run);
    assert_eq!((exit, sql), (0, 0), "{command}\n{lines}");
    assert_eq!(run.code, Some(0), "{}", run.err);
    lines
}

#[test]
fn several_databases_are_backed_up_verified_and_copied_by_one_command() {
    let place = Place::new();
    for folder in ["b", "copies"] {
        std::fs::create_dir(place.path(folder)).expect("a folder");
    }
    let lines = succeeds(
        &place,
        "BACKUP DATABASES [*] TO DISK = [d:\\b\\<AUTO>.sqb] WITH COMPRESSION = 1, THREADCOUNT = 2, \
         VERIFY, COPYTO = 'd:\\copies', FILECOUNT = 2, CHECKSUM, NAME = 'nightly'",
    );
    assert_eq!(
        lines.matches("successfully processed").count(),
        2,
        "{lines}"
    );
    assert_eq!(lines.matches("is valid").count(), 2, "{lines}");
    assert_eq!(lines.matches("Copied to").count(), 4, "{lines}");
    assert!(lines.contains("Compression rate"), "{lines}");
    assert_eq!(place.files("b").len(), 4);
    assert_eq!(place.files("b"), place.files("copies"));
    let names = place.files("copies");
    let copies: Vec<String> = names
        .iter()
        .filter(|name| name.contains("_app_"))
        .map(|name| place.text(&format!("copies/{name}")))
        .collect();
    place.succeed(&["restore", &copies[0], &copies[1], "--to", "copy.db"]);
    assert_eq!(rows(&place.path("copy.db")), 400);
}

#[test]
fn levels_of_compression_are_what_the_table_says() {
    let place = Place::new();
    for (level, algorithm, name) in [
        (0, Json::Null, Json::Null),
        (1, "ZSTD".into(), "LOW".into()),
        (2, "ZSTD".into(), "MEDIUM".into()),
        (3, "ZSTD".into(), "HIGH".into()),
        (4, "ZSTD".into(), "HIGH".into()),
    ] {
        let file = format!("d:\\c{level}.bak");
        succeeds(
            &place,
            &format!("BACKUP DATABASE app TO DISK = '{file}' WITH COMPRESSION = {level}"),
        );
        let header = place.succeed(&["header", &place.text(&format!("c{level}.bak")), "--json"]);
        let header = header.results()[0][0].clone();
        assert_eq!(header["CompressionAlgorithm"], algorithm, "{level}");
        assert_eq!(header["CompressionLevel"], name, "{level}");
    }
}

#[test]
fn a_differential_makes_the_full_backup_it_needs() {
    let place = Place::new();
    std::fs::create_dir(place.path("f")).expect("a folder");
    let differential = "BACKUP DATABASE app TO DISK = 'd:\\f\\<AUTO>.bak' WITH DIFFERENTIAL";
    let (_, exit, sql) = report(&run(&place, differential));
    assert_eq!((exit, sql), (1100, 3035));
    let lines = succeeds(&place, &format!("{differential}, FULLIFREQUIRED"));
    assert!(lines.contains("a full backup is made first"), "{lines}");
    succeeds(&place, &format!("{differential}, FULLIFREQUIRED"));
    let made = place.files("f");
    let of = |kind: &str| made.iter().filter(|name| name.starts_with(kind)).count();
    assert!(of("FULL_") >= 1 && of("DIFF_") == 1, "{made:?}");
}

#[test]
fn a_test_restore_finds_the_latest_checks_it_and_drops_it() {
    let place = Place::new();
    succeeds(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\temp\\1.bak' WITH INIT",
    );
    make_database_change(&place);
    succeeds(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\temp\\2.bak' WITH DIFFERENTIAL",
    );
    let restore = "RESTORE DATABASE [trial] FROM DISK = 'd:\\temp\\*.bak' SOURCE = 'app' LATEST_ALL \
        WITH MOVE 'app' TO 'd:\\trial.db', CHECKDB";
    let lines = succeeds(&place, restore);
    assert!(lines.contains("CHECKDB found no errors"), "{lines}");
    assert_eq!(rows(&place.path("trial.db")), 401, "full and differential");
    let lines = succeeds(&place, &format!("{restore}, REPLACE, DROPDBIFSUCCESSFUL"));
    assert!(lines.contains("was dropped"), "{lines}");
    assert!(!place.path("trial.db").exists());
    let lines = succeeds(&place, &restore.replace("LATEST_ALL", "LATEST_FULL"));
    assert!(lines.contains("on file 1"), "{lines}");
    assert_eq!(rows(&place.path("trial.db")), 400, "the full alone");
}

fn make_database_change(place: &Place) {
    let connection = rusqlite::Connection::open(place.path("app.db")).expect("a database");
    connection
        .execute("INSERT INTO t (body) VALUES ('new')", [])
        .expect("a row");
}

#[test]
fn erasefiles_deletes_only_what_the_chain_can_spare() {
    let place = Place::new();
    let full = "BACKUP DATABASE app TO DISK = 'd:\\temp\\f%.bak' WITH INIT";
    let differential = "BACKUP DATABASE app TO DISK = 'd:\\temp\\d%.bak' WITH DIFFERENTIAL, INIT";
    std::fs::write(place.path("temp/notes.txt"), "mine").expect("a file");
    succeeds(
        &place,
        "BACKUP DATABASE other TO DISK = 'd:\\temp\\other.bak'",
    );
    succeeds(&place, &full.replace('%', "1"));
    succeeds(&place, &differential.replace('%', "1"));
    succeeds(&place, &full.replace('%', "2"));
    succeeds(&place, &differential.replace('%', "2"));
    let lines = succeeds(
        &place,
        &format!("{}, ERASEFILES = 1b", full.replace('%', "3")),
    );
    assert_eq!(lines.matches("Deleted").count(), 2, "{lines}");
    assert_eq!(
        place.files("temp"),
        ["d2.bak", "f2.bak", "f3.bak", "notes.txt", "other.bak"],
        "the full below the newest differential stays"
    );
}

#[test]
fn a_copy_that_fails_waits_in_the_queue() {
    let place = Place::new();
    std::fs::write(place.path("wall"), "a file, not a folder").expect("a file");
    let run = run(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\temp\\a.bak' WITH COPYTO = 'd:\\wall\\x'",
    );
    let (lines, exit, sql) = report(&run);
    assert_eq!((exit, sql), (1, 0), "{lines}");
    assert!(lines.contains("stays in the queue"), "{lines}");
    std::fs::remove_file(place.path("wall")).expect("the wall goes");
    let instance = place.text("instance");
    let copies = place.succeed(&["copies", "--instance", &instance, "--json"]);
    assert_eq!(copies.results()[0][0]["attempts"], 1);
    let made = place.succeed(&[
        "copies",
        "--run",
        "--now",
        "--make-folders",
        "--instance",
        &instance,
        "--json",
    ]);
    assert_eq!(made.results()[0].as_array().expect("rows").len(), 0);
    assert_eq!(
        std::fs::read(place.path("wall/x/a.bak")).expect("a copy"),
        std::fs::read(place.path("temp/a.bak")).expect("a backup")
    );
}

#[test]
fn what_waits_to_be_copied_is_not_erased() {
    let place = Place::new();
    std::fs::write(place.path("wall"), "a file, not a folder").expect("a file");
    let night = |name: &str| {
        let command = format!(
            "BACKUP DATABASE app TO DISK = 'd:\\temp\\{name}.bak' WITH COPYTO = 'd:\\wall\\x', ERASEFILES = 1b"
        );
        let run = run(&place, &command);
        assert_eq!(run.code, Some(1), "a copy was not made: {}", run.out);
    };
    for name in ["a", "b", "c"] {
        night(name);
    }
    assert!(
        ["a", "b", "c"]
            .iter()
            .all(|name| place.path(&format!("temp/{name}.bak")).exists())
    );
    std::fs::remove_file(place.path("wall")).expect("the wall goes");
    let instance = place.text("instance");
    let run_now = [
        "copies",
        "--run",
        "--now",
        "--make-folders",
        "--instance",
        &instance,
    ];
    place.succeed(&run_now);
    let erase = "BACKUP DATABASE app TO DISK = 'd:\\temp\\d.bak' WITH ERASEFILES = 1b";
    succeeds(&place, erase);
    assert!(!place.path("temp/a.bak").exists());
    assert!(place.path("wall/x/a.bak").exists());
}

#[test]
fn devices_that_fail_are_tried_again_as_often_as_asked() {
    let place = Place::new();
    let run = run(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\nosuch\\a.bak' WITH DISKRETRYCOUNT = 2, DISKRETRYINTERVAL = 1",
    );
    let (lines, exit, sql) = report(&run);
    assert_eq!((exit, sql), (1100, 3201), "{lines}");
    assert_eq!(lines.matches("Trying again").count(), 2, "{lines}");
    assert_eq!(run.code, Some(1));
}

#[test]
fn what_is_not_built_is_refused_and_named() {
    let place = Place::new();
    for (command, says) in [
        (
            "BACKUP DATABASE app TO DISK = 'x' WITH MAILTO = 'a@b.c'",
            "--on-success",
        ),
        (
            "BACKUP DATABASE app TO DISK = 'x' WITH PASSWORD = '<OBFUSCATEDPASSWORD>eA==</OBFUSCATEDPASSWORD>'",
            "PASSWORDFILE",
        ),
        (
            "BACKUP DATABASE app TO DISK = 'x' WITH KEYSIZE = 256",
            "KEYSIZE needs PASSWORD",
        ),
        (
            "BACKUP DATABASE app TO DISK = 'x' WITH PASSWORD = 'p', KEYSIZE = 192",
            "128 or 256",
        ),
        (
            "RESTORE HEADERONLY FROM DISK = 'x' WITH PASSWORD = 'p'",
            "headers are not encrypted",
        ),
        (
            "BACKUP DATABASE app TO DISK = 'x' WITH THREADPRIORITY = 3",
            "nice",
        ),
        (
            "BACKUP DATABASE app TO DISK = 'x' WITH COMPRESSION = 5",
            "0 to 4",
        ),
        ("BACKUP DATABASE app TO DISK = 'x' WITH NOSUCH", "NOSUCH"),
        (
            "BACKUP DATABASE app TO DISK = 'x' WITH VERIFY = 1",
            "VERIFY takes no value",
        ),
        (
            "RESTORE DATABASE app FROM DISK = 'x' WITH CHECKDB = 'NOINDEX'",
            "CHECKDB takes no value",
        ),
        ("BACKUP DATABASE app TO DISK = 'x' WITH CHECKDB", "CHECKDB"),
        (
            "BACKUP DATABASES [app, other] TO DISK = 'd:\\one.bak'",
            "<DATABASE>",
        ),
        ("BACKUP LOG app TO DISK = 'x'", "no log backups"),
        ("BACKUP NONSENSE", "Incorrect syntax near 'NONSENSE'"),
    ] {
        let run = run(&place, command);
        let (lines, exit, _) = report(&run);
        assert_eq!(exit, 500, "{command}\n{lines}");
        assert!(lines.contains(says), "{command}\n{lines}");
    }
    assert!(!place.path("one.bak").exists());
}

#[test]
fn the_procedure_returns_its_two_codes() {
    let place = Place::new();
    let run = place.sql_with(
        &["--json"],
        "DECLARE @exitcode int, @sqlerrorcode int\n\
         EXECUTE master..sqlbackup '-SQL \"BACKUP DATABASE [app] TO DISK = [d:\\p.bak] WITH COMPRESSION = 2\"',\n\
             @exitcode OUTPUT, @sqlerrorcode OUTPUT\n\
         SELECT @exitcode AS e, @sqlerrorcode AS s\n\
         EXECUTE master..sqlbackup N'-SQL \"BACKUP DATABASE [nosuch] TO DISK = [d:\\p.bak] WITH SINGLERESULTSET\"',\n\
             @exitcode OUT, @sqlerrorcode OUT\n\
         SELECT @exitcode AS e, @sqlerrorcode AS s",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    let results = run.results();
    assert_eq!(results.len(), 5, "two result sets, then one: {}", run.out);
    assert_eq!(results[1][0]["exitcode"], 0);
    assert!(
        results[1][0]["filename01"]
            .as_str()
            .is_some_and(|file| file.ends_with("p.bak"))
    );
    assert_eq!(
        (&results[2][0]["e"], &results[2][0]["s"]),
        (&0.into(), &0.into())
    );
    assert_eq!(
        (&results[4][0]["e"], &results[4][0]["s"]),
        (&1100.into(), &911.into())
    );
}

#[test]
fn the_procedure_fails_if_nobody_takes_its_codes() {
    let place = Place::new();
    let failing =
        "EXECUTE master..sqlbackup '-SQL \"BACKUP DATABASE [nosuch] TO DISK = [d:\\p.bak]\"'";
    let run = place.sql_with(&["--json", "-b"], &format!("{failing}\nGO\nPRINT 'next'"));
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.numbers().contains(&50101), "{}", run.err);
    assert!(!run.err.contains("next") && !run.out.contains("next"));
}

#[test]
fn hooks_get_the_report_and_the_codes() {
    let place = Place::new();
    let hook = format!(
        "cat > {0}; echo $WINDLASS_EXIT_CODE >> {0}",
        place.text("hook.txt")
    );
    let base = [
        "sqlbackup",
        "--attach",
        "app=app.db",
        "--on-success",
        &hook,
        "--on-failure",
        &hook,
    ];
    let sql = |command: &str| {
        let mut arguments = base.to_vec();
        arguments.extend(["--SQL", command]);
        place.run(&arguments)
    };
    assert_eq!(sql("BACKUP DATABASE app TO DISK = 'h.bak'").code, Some(0));
    let reported = std::fs::read_to_string(place.path("hook.txt")).expect("the hook's file");
    assert!(
        reported.contains("successfully processed") && reported.ends_with("0\n"),
        "{reported}"
    );
    assert_eq!(
        sql("BACKUP DATABASE app TO DISK = '/nosuch/h.bak'").code,
        Some(1)
    );
    let reported = std::fs::read_to_string(place.path("hook.txt")).expect("the hook's file");
    assert!(reported.ends_with("1100\n"), "{reported}");
}

#[test]
fn the_tuning_articles_procedure_runs_as_a_script() {
    let Some(text) = article("002_a660bcb9b58589e9.txt") else {
        return;
    };
    for sentence in [
        "A backup was run using\nNOCOMPRESSWRITE",
        "The number of threads was increased to two. Throughput remained at",
        "NOWRITE\n, with compression level 1",
        "The number of threads was then increased to three",
        "The process was then repeated for compression level 2",
        "compression level 2 with two threads",
        "The number of threads was increased to 3, and SQL Server reported a throughput",
    ] {
        assert!(text.contains(sentence), "{sentence}");
    }
    let place = Place::new();
    make_database(&place.path("tuned.db"), 3000);
    let mut script = String::from("DECLARE @exitcode int, @sqlerrorcode int\n");
    let mut run_of = |options: &str| {
        let command = format!(
            "EXECUTE master..sqlbackup '-SQL \"BACKUP DATABASE [tuned] TO DISK = [d:\\tuned.bak] \
             WITH {options}, INIT, SINGLERESULTSET\"', @exitcode OUTPUT, @sqlerrorcode OUTPUT\n\
             SELECT @exitcode AS code\n"
        );
        script.push_str(&command);
    };
    // Stage 1, the read ceiling; stage 2, threads at each level; stage 3, the run itself.
    run_of("NOCOMPRESSWRITE, THREADCOUNT = 1");
    run_of("NOCOMPRESSWRITE, THREADCOUNT = 2");
    for level in 1..=2 {
        for threads in 1..=3 {
            run_of(&format!(
                "NOWRITE, COMPRESSION = {level}, THREADCOUNT = {threads}"
            ));
        }
    }
    run_of("COMPRESSION = 2, THREADCOUNT = 2");
    run_of("COMPRESSION = 2, THREADCOUNT = 3");
    std::fs::write(place.path("tune.sql"), script).expect("the script");
    let drive = format!("d={}", place.text(""));
    let run = place.succeed(&[
        "sql",
        "-b",
        "-i",
        "tune.sql",
        "--attach",
        "tuned=tuned.db",
        "--drive",
        &drive,
        "--json",
    ]);
    let results = run.results();
    let codes: Vec<&Json> = results
        .iter()
        .filter(|result| !result[0]["code"].is_null())
        .collect();
    assert_eq!(codes.len(), 10);
    assert!(codes.iter().all(|code| code[0]["code"] == 0), "{}", run.out);
    assert_eq!(
        run.out.matches("Nothing was written").count(),
        8,
        "{}",
        run.out
    );
    assert_eq!(run.out.matches("successfully processed").count(), 2);
    assert_eq!(
        run.out.matches("MB/sec").count(),
        10,
        "each run reports a throughput"
    );
    assert!(place.path("tuned.bak").exists());
}

/// Names that a tag makes equal: in one command, each backup would take the place of the one before.
#[test]
fn a_command_writes_no_two_databases_to_one_file() {
    let place = Place::new();
    for name in ["a/b", "a_b", "x", "x_2", "É", "é"] {
        let file = place.path(&format!("{}.db", name.replace('/', "-")));
        make_database(&file, 10);
        succeed(
            &place,
            &format!("EXEC sp_attach_db '{name}', '{}'", file.display()),
        );
    }
    std::fs::create_dir(place.path("off")).expect("a folder");
    let run = |command: &str| on(&place, &["sqlbackup", "-SQL", command]);
    let refused = |databases: &str, rest: &str| {
        let run = run(&format!("BACKUP DATABASES {databases} TO {rest}"));
        let said = format!("{}{}", run.out, run.err);
        assert_ne!(run.code, Some(0), "{rest}: {said}");
        assert!(said.contains("Nothing was backed up"), "{rest}: {said}");
        assert!(!place.path("c").exists(), "{rest}: nothing is written");
        said
    };
    let named = place.text("c/<DATABASE>.bak");
    let apart = place.text("c/<DATABASE>/n.bak");
    let off = place.text("off");
    let said = refused("[a/b, a_b]", &format!("DISK=[{named}] WITH INIT"));
    assert!(said.contains("'a/b'") && said.contains("'a_b'"), "{said}");
    refused("[a_b, a/b]", &format!("DISK=[{named}]"));
    refused(
        "[x, x_2]",
        &format!("DISK=[{named}] WITH INIT, FILECOUNT = 2"),
    );
    refused("[É, é]", &format!("DISK=[{named}] WITH INIT"));
    let mirror = place.text("c/mirror.bak");
    refused(
        "[x, x_2]",
        &format!("DISK=[{named}] WITH INIT, MIRRORFILE=[{mirror}]"),
    );
    let copies = format!("DISK=[{apart}] WITH INIT, COPYTO=[{off}], FILEOPTIONS = 4");
    refused("[x, x_2]", &copies);
    // Two names of one file.
    std::fs::create_dir(place.path("d")).expect("a folder");
    std::fs::write(place.path("d/x.bak"), "").expect("a file");
    std::os::unix::fs::symlink(place.path("d/x.bak"), place.path("d/x_2.bak")).expect("a link");
    refused(
        "[x, x_2]",
        &format!("DISK=[{}] WITH INIT", place.text("d/<DATABASE>.bak")),
    );
    // Apart, each has its own.
    std::fs::create_dir(place.path("c")).expect("a folder");
    let made = run(&format!(
        "BACKUP DATABASES [x, x_2] TO DISK=[{apart}] WITH INIT, VERIFY, COPYTO=[{}]",
        place.text("off/<DATABASE>")
    ));
    assert_eq!(made.code, Some(0), "{}{}", made.out, made.err);
    for (file, name) in [("off/x/n.bak", "x"), ("off/x_2/n.bak", "x_2")] {
        let header = place.succeed(&["--json", "header", file]).results();
        assert_eq!(header[0][0]["DatabaseName"], name);
    }
}

#[test]
fn a_database_that_is_left_out_is_named() {
    let place = registered();
    succeed(
        &place,
        "BACKUP DATABASE other TO DISK = 'd:\\o.bak'
         RESTORE DATABASE other FROM DISK = 'd:\\o.bak' WITH REPLACE, NORECOVERY",
    );
    let target = place.text("<DATABASE>.bak");
    let command = |databases: &str| {
        let text = format!("BACKUP DATABASES {databases} TO DISK = [{target}] WITH INIT");
        on(&place, &["sqlbackup", "-SQL", &text])
    };
    let run = command("[*]");
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(
        run.out.contains("Warning: 'other' is not backed up"),
        "{}",
        run.out
    );
    assert!(place.path("app.bak").exists());
    let run = command("[*] EXCEPT [other]");
    assert_eq!(run.code, Some(0), "{}", run.out);
}

#[test]
fn the_hook_for_failures_runs_when_the_instance_cannot_be_opened() {
    let place = registered();
    let catalog = place.path("instance/windlass.catalog");
    std::fs::write(&catalog, "rubbish ".repeat(999)).expect("it");
    std::fs::write(place.path("file"), "").expect("a file");
    let hook = "cat > told; echo $WINDLASS_EXIT_CODE $WINDLASS_SQL_ERROR_CODE >> told";
    let command = "BACKUP DATABASE app TO DISK = [x.bak]";
    let config = place.text("config.toml");
    std::fs::write(&config, format!("on_failure = '{hook}'\n")).expect("settings");
    let by_option = ["--on-failure", hook];
    let by_setting = ["--config", &config];
    for further in [&by_option[..], &by_setting] {
        for instance in ["instance", "file/in"] {
            let base = ["sqlbackup", "-SQL", command, "--instance", instance];
            let run = place.run(&[&base[..], further].concat());
            assert_ne!(run.code, Some(0), "{}", run.out);
            let told = std::fs::read_to_string(place.path("told"));
            let told = told.unwrap_or_else(|_| panic!("{instance} {further:?}: {}", run.err));
            assert!(
                told.contains("SQL error") && !told.ends_with("\n0 0\n"),
                "{told}"
            );
            std::fs::remove_file(place.path("told")).expect("it");
        }
    }
    let attach = [
        "sqlbackup",
        "-SQL",
        command,
        "--attach",
        "app=app.db",
        "--attach",
        "app=other.db",
    ];
    let run = place.run(&[&attach[..], &by_option].concat());
    assert_ne!(run.code, Some(0));
    assert!(place.path("told").exists(), "{}", run.err);
}

#[test]
fn a_file_of_several_sets_is_restored_only_by_words_that_say_which() {
    let place = Place::new();
    for _ in 0..2 {
        place.succeed(&["backup", "app.db", "--to", "two.sqb"]);
        delete(&place, 1);
    }
    let restore = "RESTORE DATABASE app FROM DISK = 'd:\\two.sqb'";
    let refused = |command: &str, says: &str| {
        let (lines, exit, _) = report(&run(&place, command));
        assert_eq!(exit, 500, "{lines}");
        assert!(lines.contains(says), "{lines}");
        assert_eq!(rows(&place.path("app.db")), 398);
    };
    refused(
        &format!("{restore} WITH REPLACE"),
        "holds 2 backup sets. LATEST_ALL",
    );
    let other = restore.replace("app FROM", "trial FROM");
    refused(&format!("{other} LATEST_ALL"), "SOURCE = 'name'");
    succeeds(&place, &format!("{restore} LATEST_ALL WITH REPLACE"));
    assert_eq!(rows(&place.path("app.db")), 399);
}

fn delete(place: &Place, count: u32) {
    let connection = rusqlite::Connection::open(place.path("app.db")).expect("a connection");
    let sql = "DELETE FROM t WHERE id IN (SELECT id FROM t ORDER BY id DESC LIMIT ?)";
    connection.execute(sql, [count]).expect("a change");
}
