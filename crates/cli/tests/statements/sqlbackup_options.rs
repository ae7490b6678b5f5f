//! Options of SQL Backup Pro's dialect, each tested by its effect.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value as Json;

use crate::sqlbackup::{report, run, succeeds};
use crate::support::{Place, Run, flip_bit, rows};

fn header(place: &Place, file: &str) -> Json {
    let run = place.succeed(&["header", &place.text(file), "--json"]);
    let sets = run.results()[0].clone();
    sets.as_array()
        .expect("sets")
        .last()
        .expect("a set")
        .clone()
}

/// The reports of backups and restores of a run with `--json`.
fn reported(run: &Run) -> Vec<Json> {
    let stream = serde_json::Deserializer::from_str(&run.out).into_iter();
    stream
        .map(|json: Result<Json, _>| json.expect("JSON"))
        .filter(Json::is_object)
        .collect()
}

#[test]
fn a_password_encrypts_and_only_it_opens_the_backup() {
    let place = Place::new();
    let backup = "BACKUP DATABASE app TO DISK = 'd:\\p%.bak' WITH COMPRESSION = 1, VERIFY";
    for (bits, algorithm) in [
        ("", "aes_256"),
        (", KEYSIZE = 128", "aes_128"),
        (", KEYSIZE = 256", "aes_256"),
    ] {
        let file = backup.replace('%', &bits.replace([',', ' ', '='], ""));
        let lines = succeeds(&place, &format!("{file}, PASSWORD = 'hunter2'{bits}"));
        assert!(lines.contains("is valid"), "VERIFY knows it too: {lines}");
        assert!(!lines.contains("hunter2"), "{lines}");
        let name = place
            .files("")
            .into_iter()
            .find(|name| file.contains(name.as_str()));
        let name = name.expect("the backup");
        assert_eq!(header(&place, &name)["KeyAlgorithm"], algorithm);
        assert_eq!(header(&place, &name)["EncryptorType"], "PASSPHRASE");
    }
    let restore = "RESTORE DATABASE copy FROM DISK = 'd:\\p.bak' WITH MOVE 'app' TO 'd:\\copy.db'";
    let (lines, exit, sql) = report(&run(&place, restore));
    assert_eq!((exit, sql), (1100, 50041), "{lines}");
    let (lines, exit, _) = report(&run(&place, &format!("{restore}, PASSWORD = 'hunter3'")));
    assert_eq!(exit, 1100, "{lines}");
    assert!(!place.path("copy.db").exists());
    succeeds(&place, &format!("{restore}, PASSWORD = 'hunter2'"));
    assert_eq!(rows(&place.path("copy.db")), 400);
    let verify = "RESTORE VERIFYONLY FROM DISK = 'd:\\p.bak'";
    assert_eq!(report(&run(&place, verify)).1, 1100);
    succeeds(&place, &format!("{verify} WITH PASSWORD = [hunter2]"));
    // The same passphrase as of plain commands.
    std::fs::write(place.path("pass"), "hunter2\nnot this\n").expect("a file");
    place.succeed(&["verify", "p.bak", "--passphrase-file", "pass"]);
}

#[test]
fn a_password_may_come_from_a_file_and_chains_need_it_throughout() {
    let place = Place::new();
    std::fs::write(place.path("pass"), "a 'long' passphrase\n").expect("a file");
    let with = "PASSWORDFILE = 'd:\\pass'";
    succeeds(
        &place,
        &format!("BACKUP DATABASE app TO DISK = 'd:\\temp\\1.bak' WITH {with}"),
    );
    succeeds(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\temp\\2.bak' WITH DIFFERENTIAL, PASSWORD = 'FILE:d:\\pass'",
    );
    succeeds(
        &place,
        &format!(
            "RESTORE DATABASE trial FROM DISK = 'd:\\temp\\*.bak' SOURCE = 'app' LATEST_ALL \
             WITH MOVE 'app' TO 'd:\\trial.db', {with}"
        ),
    );
    assert_eq!(rows(&place.path("trial.db")), 400);
    for (file, says) in [("d:\\nosuch", "nosuch"), ("d:\\empty", "empty")] {
        std::fs::write(place.path("empty"), "\n").expect("a file");
        let command =
            format!("BACKUP DATABASE app TO DISK = 'd:\\x.bak' WITH PASSWORDFILE = '{file}'");
        let (lines, exit, _) = report(&run(&place, &command));
        assert_eq!(exit, 500, "{lines}");
        assert!(lines.contains(says), "{lines}");
    }
    assert!(!place.path("x.bak").exists(), "never without the password");
}

#[test]
fn mirrorfile_writes_a_second_backup_that_restores_alone() {
    let place = Place::new();
    std::fs::create_dir(place.path("mirror")).expect("a folder");
    succeeds(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\temp\\<AUTO>.bak' WITH MIRRORFILE = 'd:\\mirror\\<AUTO>.bak'",
    );
    let first = place.files("temp");
    let second = place.files("mirror");
    assert_eq!((first.len(), second.len()), (1, 1));
    std::fs::remove_file(place.path(&format!("temp/{}", first[0]))).expect("the first goes");
    let mirror = place.text(&format!("mirror/{}", second[0]));
    place.succeed(&["restore", &mirror, "--to", "copy.db"]);
    assert_eq!(rows(&place.path("copy.db")), 400);
    let fixed = "BACKUP DATABASE app TO DISK = 'd:\\m1.bak' WITH MIRRORFILE = 'd:\\m2.bak'";
    let (lines, exit, _) = report(&run(&place, fixed));
    assert_eq!(exit, 500, "a mirror begins new media: {lines}");
    succeeds(&place, &format!("{fixed}, INIT"));
    let striped = "BACKUP DATABASE app TO DISK = 'd:\\s1.bak', 'd:\\s2.bak' WITH INIT, MIRRORFILE = 'd:\\s3.bak'";
    assert_eq!(report(&run(&place, striped)).1, 500);
}

#[test]
fn logto_keeps_the_report_and_may_keep_only_failures() {
    let place = Place::new();
    let logged = |name: &str| std::fs::read_to_string(place.path(name)).ok();
    let all = "BACKUP DATABASE app TO DISK = 'd:\\a.bak' WITH LOGTO = 'd:\\logs\\all.log'";
    // The folder may be on a disk that is not mounted, so it is not created.
    assert_eq!(report(&run(&place, all)).1, 1, "a warning");
    assert!(!place.path("logs").exists());
    std::fs::create_dir(place.path("logs")).expect("a folder");
    succeeds(&place, all);
    let text = logged("logs/all.log").expect("a log");
    assert!(text.contains("successfully processed"), "{text}");
    assert!(text.ends_with("SQL Backup exit code: 0\n"), "{text}");
    let mode = std::fs::metadata(place.path("logs/all.log"))
        .expect("it")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let errors = "WITH LOGTO = 'd:\\logs\\errors.log', LOG_ONERRORONLY";
    succeeds(
        &place,
        &format!("BACKUP DATABASE app TO DISK = 'd:\\a.bak' {errors}"),
    );
    assert_eq!(logged("logs/errors.log"), None);
    let failed = format!("BACKUP DATABASE app TO DISK = 'd:\\nosuch\\a.bak' {errors}");
    assert_eq!(report(&run(&place, &failed)).1, 1100);
    let text = logged("logs/errors.log").expect("a log");
    assert!(text.contains("SQL error 3201"), "{text}");
    // A copy that could not be made is a warning.
    std::fs::write(place.path("wall"), "a file").expect("a file");
    for (option, is_kept) in [("LOG_ONERROR", true), ("LOG_ONERRORONLY", false)] {
        let command = format!(
            "BACKUP DATABASE app TO DISK = 'd:\\a.bak' WITH COPYTO = 'd:\\wall\\x', LOGTO = 'd:\\w{is_kept}.log', {option}"
        );
        assert_eq!(report(&run(&place, &command)).1, 1);
        assert_eq!(
            logged(&format!("w{is_kept}.log")).is_some(),
            is_kept,
            "{option}"
        );
    }
    succeeds(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\a.bak' WITH LOGTO = 'd:\\logs\\none.log', NOLOG",
    );
    assert_eq!(logged("logs/none.log"), None);
    succeeds(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\a.bak' WITH LOGTO = 'd:\\logs\\<DATETIME yyyymmdd>.log'",
    );
    assert_eq!(place.files("logs").len(), 3, "{:?}", place.files("logs"));
}

#[test]
fn restores_and_verifications_are_tried_again_too() {
    let place = Place::new();
    for command in [
        "RESTORE DATABASE copy FROM DISK = 'd:\\nosuch.bak' WITH MOVE 'app' TO 'd:\\copy.db', DISKRETRYCOUNT = 2, DISKRETRYINTERVAL = 1",
        "RESTORE VERIFYONLY FROM DISK = 'd:\\nosuch.bak' WITH DISKRETRYCOUNT = 1, DISKRETRYINTERVAL = 1",
    ] {
        let (lines, exit, sql) = report(&run(&place, command));
        assert_eq!((exit, sql), (1100, 3201), "{lines}");
        let tries = if command.contains("COUNT = 2") { 2 } else { 1 };
        assert_eq!(
            lines.matches("Trying again in 1 seconds").count(),
            tries,
            "{lines}"
        );
    }
}

#[test]
fn a_device_that_comes_back_lets_the_backup_succeed() {
    let place = Place::new();
    let command = "BACKUP DATABASE app TO DISK = 'd:\\late\\a.bak' WITH DISKRETRYCOUNT = 20, DISKRETRYINTERVAL = 1";
    let lines = std::thread::scope(|scope| {
        let late = scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(1500));
            std::fs::create_dir(place.path("late")).expect("a folder");
        });
        let lines = succeeds(&place, command);
        late.join().expect("it comes");
        lines
    });
    assert!(lines.contains("Trying again"), "{lines}");
    assert!(lines.contains("successfully processed"), "{lines}");
    assert!(place.path("late/a.bak").exists());
}

#[test]
fn threads_and_transfer_sizes_reach_the_plan() {
    let place = Place::new();
    let command = "BACKUP DATABASE app TO DISK = 'd:\\a.bak' WITH THREADCOUNT = 3, MAXTRANSFERSIZE = 131072, COMPRESSION = 1";
    let run = run(&place, command);
    assert_eq!(report(&run).1, 0);
    let backup = reported(&run)
        .into_iter()
        .find(|reported| reported["operation"] == "backup")
        .expect("a backup");
    let plan = backup["plan"].to_string();
    assert!(plan.contains("131072"), "{plan}");
    assert_eq!(backup["plan"]["threads"]["value"], 3, "{plan}");
}

#[test]
fn options_of_t_sql_reach_the_backup_set() {
    let place = Place::new();
    succeeds(&place, "BACKUP DATABASE app TO DISK = 'd:\\a.bak'");
    succeeds(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\a.bak' WITH NAME = 'it''s', DESCRIPTION = [a [b], CHECKSUM, COPY_ONLY",
    );
    let set = header(&place, "a.bak");
    assert_eq!(set["Position"], 2, "appended");
    assert_eq!(set["BackupName"], "it's");
    assert_eq!(set["BackupDescription"], "a [b");
    assert_eq!(set["HasBackupChecksums"], true);
    assert_eq!(set["IsCopyOnly"], true);
    succeeds(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\a.bak' WITH INIT",
    );
    assert_eq!(header(&place, "a.bak")["Position"], 1, "overwritten");
    let run = run(&place, "RESTORE SQBHEADERONLY FROM DISK = 'd:\\a.bak'");
    assert_eq!(report(&run).1, 0);
    assert_eq!(run.results()[0][0]["DatabaseName"], "app");
    let listed = self::run(&place, "RESTORE FILELISTONLY FROM DISK = 'd:\\a.bak'");
    assert_eq!(listed.results()[0][0]["LogicalName"], "app");
}

#[test]
fn databases_are_named_listed_and_excepted() {
    let place = Place::new();
    let of = |databases: &str| {
        let command =
            format!("BACKUP DATABASES {databases} TO DISK = 'd:\\temp\\<DATABASE>.bak' WITH INIT");
        let lines = succeeds(&place, &command);
        let names = lines
            .lines()
            .filter_map(|line| line.strip_prefix("Backing up "));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of("[*]"), ["app ...", "other ..."]);
    assert_eq!(of("[other, app]"), ["other ...", "app ..."]);
    assert_eq!(of("[*] EXCEPT [app]"), ["other ..."]);
    // One failure does not stop the others, and the codes show it.
    std::fs::rename(place.path("app.db"), place.path("gone.db")).expect("it goes");
    let command = "BACKUP DATABASES [*] TO DISK = 'd:\\temp\\<DATABASE>2.bak'";
    let (lines, exit, sql) = report(&run(&place, command));
    assert_eq!(exit, 1100, "{lines}");
    assert_ne!(sql, 0);
    assert!(place.path("temp/other2.bak").exists());
}

#[test]
fn a_copy_makes_no_folder_that_was_not_asked_for() {
    let place = Place::new();
    let backup = |arguments: &[&str], to: &str| {
        let command = format!(
            "BACKUP DATABASE app TO DISK = '{}' WITH INIT, COPYTO = '{to}'",
            place.text("temp/1.bak")
        );
        let attach = [
            "sqlbackup",
            "--attach",
            "app=app.db",
            "--instance",
            "instance",
            "-S",
            &command,
        ];
        place.run(&[&attach[..], arguments].concat())
    };
    let away = place.text("mnt/nightly");
    let run = backup(&[], &away);
    assert!(
        run.out
            .contains("mount it, or create it with --make-folders"),
        "{}",
        run.out
    );
    assert!(!place.path("mnt").exists());
    // The copy waits until the disk is there.
    std::fs::create_dir_all(place.path("mnt/nightly")).expect("a mount");
    place.succeed(&["copies", "--run", "--now", "--instance", "instance"]);
    assert!(place.path("mnt/nightly/1.bak").exists());
    // What a tag names is made below a folder that is there.
    let tagged = place.text("mnt/<DATABASE>");
    let run = backup(&[], &tagged);
    assert!(place.path("mnt/app/1.bak").exists(), "{}", run.out);
    let asked = place.text("far/away");
    let run = backup(&["--make-folders"], &asked);
    assert!(place.path("far/away/1.bak").exists(), "{}", run.out);
}

#[test]
fn copies_are_erased_and_overwritten_as_asked() {
    let place = Place::new();
    std::fs::create_dir(place.path("copies")).expect("a folder");
    let backup = |file: &str, further: &str| {
        let command = format!(
            "BACKUP DATABASE app TO DISK = 'd:\\temp\\{file}.bak' WITH INIT, COPYTO = 'd:\\copies'{further}"
        );
        report(&run(&place, &command))
    };
    assert_eq!(backup("1", "").1, 0);
    let (lines, exit, _) = backup("1", "");
    assert_eq!(exit, 1, "the copy is there: {lines}");
    assert!(lines.contains("FILEOPTIONS = 4"), "{lines}");
    let instance = place.text("instance");
    rusqlite::Connection::open(place.path("instance/windlass.catalog"))
        .and_then(|catalog| catalog.execute("DELETE FROM own_copy", []))
        .expect("an empty queue");
    // Whoever could read the copy that is overwritten can read the new one.
    let copy = place.path("copies/1.bak");
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o640)).expect("a copy");
    assert_eq!(backup("1", ", FILEOPTIONS = 4").1, 0);
    let mode = std::fs::metadata(&copy)
        .expect("a copy")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    let first = std::fs::read(place.path("temp/1.bak")).expect("a backup");
    assert_eq!(
        std::fs::read(place.path("copies/1.bak")).expect("a copy"),
        first
    );
    assert_eq!(backup("2", ", ERASEFILES_REMOTE = 1b").1, 0);
    assert_eq!(place.files("copies"), ["2.bak"]);
    assert_eq!(
        place.files("temp"),
        ["1.bak", "2.bak"],
        "the first folder keeps both"
    );
    assert_eq!(backup("3", ", ERASEFILES = 1b, FILEOPTIONS = 1").1, 0);
    assert_eq!(place.files("temp"), ["3.bak"]);
    assert_eq!(place.files("copies"), ["3.bak"]);
    // At the start the newest that there is stays, whatever comes.
    assert_eq!(backup("4", ", ERASEFILES_ATSTART = 1b").1, 0);
    assert_eq!(place.files("temp"), ["3.bak", "4.bak"]);
    // Young files stay for days and hours.
    assert_eq!(backup("5", ", ERASEFILES = 1").1, 0);
    assert_eq!(backup("6", ", ERASEFILES = 1h").1, 0);
    assert_eq!(place.files("temp"), ["3.bak", "4.bak", "5.bak", "6.bak"]);
    assert_eq!(
        place
            .succeed(&["copies", "--instance", &instance, "--json"])
            .results()[0],
        serde_json::json!([])
    );
}

/// Changes a byte in the page of `t`'s root, which `integrity_check` notices.
fn damage(path: &std::path::Path) {
    let mut file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("a database");
    let at = SeekFrom::Start(4096 + 3);
    let mut bytes = [0; 2];
    file.seek(at).expect("a page");
    file.read_exact(&mut bytes).expect("its cells");
    bytes[1] ^= 1;
    file.seek(at).expect("a page");
    file.write_all(&bytes).expect("fewer cells");
}

#[test]
fn a_database_that_fails_its_check_stays_unless_it_is_to_go_anyway() {
    let place = Place::new();
    damage(&place.path("app.db"));
    succeeds(&place, "BACKUP DATABASE app TO DISK = 'd:\\a.bak'");
    let restore = "RESTORE DATABASE trial FROM DISK = 'd:\\a.bak' WITH MOVE 'app' TO 'd:\\trial.db', REPLACE, CHECKDB";
    let (lines, exit, sql) = report(&run(&place, &format!("{restore}, DROPDBIFSUCCESSFUL")));
    assert_eq!((exit, sql), (1100, 50000), "{lines}");
    assert!(lines.contains("CHECKDB found errors"), "{lines}");
    assert!(place.path("trial.db").exists(), "to be looked at");
    let (lines, exit, _) = report(&run(&place, &format!("{restore}, DROPDB")));
    assert_eq!(exit, 1100, "{lines}");
    assert!(!place.path("trial.db").exists());
    // A database that was there before, by a slip of the name.
    let slip = "RESTORE DATABASE app FROM DISK = 'd:\\a.bak' WITH DROPDB";
    let (lines, exit, _) = report(&run(&place, slip));
    assert_eq!(exit, 500, "{lines}");
    assert!(lines.contains("'app' exists"), "{lines}");
    assert!(place.path("app.db").exists());
}

#[test]
fn a_restore_with_losses_fails_the_command_and_leaves_what_it_restored() {
    let place = Place::new();
    // Several chunks, which one thread writes in order: the first page is not among what is lost.
    let connection = rusqlite::Connection::open(place.path("app.db")).expect("a database");
    connection
        .execute_batch("CREATE TABLE big AS SELECT randomblob(4000000) AS bytes")
        .expect("a table");
    succeeds(
        &place,
        "BACKUP DATABASE app TO DISK = 'd:\\a.bak' WITH THREADCOUNT = 1",
    );
    let path = place.path("a.bak");
    let bytes = std::fs::metadata(&path).expect("it is there").len();
    flip_bit(&path, bytes / 2);
    let restore = "RESTORE DATABASE trial FROM DISK = 'd:\\a.bak' WITH MOVE 'app' TO 'd:\\trial.db', \
                   CONTINUE_AFTER_ERROR, DROPDBIFSUCCESSFUL";
    let (lines, exit, sql) = report(&run(&place, restore));
    assert_eq!((exit, sql), (1100, 3189), "{lines}");
    assert!(place.path("trial.db").exists(), "{lines}");
}

/// Without FILEOPTIONS = 4, nothing is overwritten but an earlier state of the same file.
#[test]
fn a_copy_of_appended_sets_replaces_only_its_own_earlier_copy() {
    let place = Place::new();
    for folder in ["copies", "a", "b"] {
        std::fs::create_dir(place.path(folder)).expect("a folder");
    }
    let backup = |folder: &str| {
        let command = format!(
            "BACKUP DATABASE app TO DISK = 'd:\\{folder}\\n.bak' WITH COPYTO = 'd:\\copies'"
        );
        report(&run(&place, &command))
    };
    let empty_queue = || {
        rusqlite::Connection::open(place.path("instance/windlass.catalog"))
            .and_then(|catalog| catalog.execute("DELETE FROM own_copy", []))
            .expect("an empty queue");
    };
    let read = |name: &str| std::fs::read(place.path(name)).expect("a file");
    for night in 1..=3 {
        let (lines, exit, _) = backup("a");
        assert_eq!(exit, 0, "night {night}: {lines}");
        assert!(read("copies/n.bak") == read("a/n.bak"), "night {night}");
        // Other media of the same name.
        let (lines, exit, _) = backup("b");
        assert_eq!(exit, 1, "night {night}: {lines}");
        assert!(lines.contains("holds other media"), "{lines}");
        assert!(lines.contains("stays in the queue"), "{lines}");
        assert!(read("copies/n.bak") == read("a/n.bak"), "night {night}");
        empty_queue();
    }
    // The copy has more sets than the file: that was put back to an earlier state and continued.
    let with_three = read("copies/n.bak");
    std::fs::remove_file(place.path("copies/n.bak")).expect("it");
    std::fs::remove_file(place.path("a/n.bak")).expect("it");
    assert_eq!(backup("a").1, 0);
    std::fs::write(place.path("copies/n.bak"), &with_three).expect("a copy");
    let (lines, exit, _) = backup("a");
    assert_eq!(exit, 1, "{lines}");
    assert!(read("copies/n.bak") == with_three);
    empty_queue();
    let early = read("a/n.bak");
    assert_eq!(backup("a").1, 1);
    empty_queue();
    std::fs::rename(place.path("a/n.bak"), place.path("copies/n.bak")).expect("a copy");
    let with_three = read("copies/n.bak");
    std::fs::write(place.path("a/n.bak"), early).expect("an earlier state");
    let (lines, exit, _) = backup("a");
    assert_eq!(exit, 1, "{lines}");
    assert!(lines.contains("does not have"), "{lines}");
    assert!(read("copies/n.bak") == with_three);
    empty_queue();
    // One of the two is damaged in a set that both have; whoever copies does not know which.
    std::fs::remove_file(place.path("copies/n.bak")).expect("it");
    std::fs::remove_file(place.path("a/n.bak")).expect("it");
    assert_eq!(backup("a").1, 0);
    let intact = read("copies/n.bak");
    let mut rotten = intact.clone();
    rotten[40_000] ^= 4;
    std::fs::write(place.path("a/n.bak"), rotten).expect("a file");
    let (lines, exit, _) = backup("a");
    assert_eq!(exit, 1, "{lines}");
    assert!(
        lines.contains("differs from this backup file at byte 40000"),
        "{lines}"
    );
    assert!(read("copies/n.bak") == intact);
    empty_queue();
    // What is no backup at all.
    std::fs::write(place.path("copies/n.bak"), "my thesis").expect("a file");
    let (lines, exit, _) = backup("a");
    assert_eq!(exit, 1, "{lines}");
    assert_eq!(read("copies/n.bak"), b"my thesis");
}
