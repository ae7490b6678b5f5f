//! Where nothing was done or found, no command says that all is well.

use crate::support::{Place, succeed};

/// The command line ends with this code and says this.
fn ends(place: &Place, line: &str, code: i32, said: &str) {
    let run = place.run(&line.split(' ').collect::<Vec<_>>());
    let told = format!("{}{}", run.out, run.err);
    assert_eq!(run.code, Some(code), "{line}: {told}");
    assert!(told.contains(said), "{line}: {told}");
}

#[test]
fn a_restore_that_nobody_began_is_not_ended() {
    let place = Place::new();
    let before = place.files("");
    for (line, code, said) in [
        (
            "restore --no-recovery --to none.db",
            2,
            "no backup is named",
        ),
        ("restore --to none.db", 1, "No backup was named"),
        ("restore a.bak --to b.db --database b", 2, "--instance"),
    ] {
        ends(&place, line, code, said);
    }
    assert_eq!(place.files(""), before);
}

#[test]
fn a_name_that_cannot_be_a_file_is_refused_before_anything_is_written() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "a.bak"]);
    let before = place.files("");
    for (line, code, said) in [
        ("backup app.db --to t.bak/", 1, "50020"),
        ("restore a.bak --to new/", 2, "no folder"),
        (
            "backup app.db --to b.bak --temp-copy-dir nosuch",
            2,
            "no folder",
        ),
        ("repack a.bak --to b.bak", 1, "Msg 50327"),
    ] {
        ends(&place, line, code, said);
    }
    assert_eq!(place.files(""), before);
}

#[test]
fn a_look_makes_no_instance_and_one_that_knows_nothing_is_not_well() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "a.bak"]);
    for line in [
        "header a.bak",
        "verify a.bak",
        "copies",
        "export app --to out.db",
        "tune app.db",
    ] {
        ends(&place, &format!("{line} --instance nosuch"), 1, "Msg 50104");
    }
    ends(&place, "doctor --instance nosuch", 1, "there is none");
    assert!(!place.path("nosuch").exists());
    let made = place.succeed(&["sql", "--instance", "empty", "-Q", "SELECT 1"]);
    assert!(made.err.contains("a new one is made"), "{}", made.err);
    for (line, code, said) in [
        ("drill --scratch temp", 1, "Nothing was proved"),
        ("report", 1, "is it the right one?"),
        ("history --rpo 24h", 1, "is it the right one?"),
        ("history app", 2, "knows no database 'app'"),
    ] {
        ends(&place, &format!("{line} --instance empty"), code, said);
    }
}

#[test]
fn of_many_backups_those_that_are_made_are_told_and_a_pattern_for_none_is_an_error() {
    let place = Place::new();
    std::fs::create_dir(place.path("bak")).expect("a folder");
    let all = "backup --all . --to bak --only app";
    let told = place.succeed(&format!("{all} --tsql").split(' ').collect::<Vec<_>>());
    assert!(told.err.contains("Databases backed up: 1"), "{}", told.err);
    let line = format!("{all} --only ordesr");
    ends(&place, &line, 1, "--only 'ordesr' names no database");
    place.succeed(&["verify", "bak/app.bak", "--set", "2"]);
}

#[test]
fn a_column_that_the_result_does_not_have_gives_no_result() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "a.bak"]);
    for further in [&[][..], &["--json"]] {
        let words = [&["header", "a.bak", "--columns", "Foo"][..], further].concat();
        let run = place.run(&words);
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{}", run.err);
    }
}

#[test]
fn the_recovery_model_is_that_of_the_database_and_nocount_hides_the_counts_of_results() {
    let place = Place::new();
    succeed(
        &place,
        "CREATE DATABASE s ON (FILENAME = 'd:\\s.db') LOG ON (FILENAME = 'd:\\s.ldf');
         CREATE DATABASE t ON (FILENAME = 'd:\\t.db') LOG ON (FILENAME = 'd:\\t.ldf');
         ALTER DATABASE s SET RECOVERY FULL",
    );
    let asked = "SELECT DATABASEPROPERTYEX('s', 'Recovery') + DATABASEPROPERTYEX('t', 'Recovery') AS m; EXEC sp_helpdb";
    let told = succeed(&place, asked).out;
    for said in ["FULLSIMPLE", "Recovery=FULL", "Recovery=SIMPLE"] {
        assert!(told.contains(said), "{said}: {told}");
    }
    let counts = |text: &str| {
        let run = place.succeed(&["sql", "-Q", text]);
        run.err.matches("affected)").count()
    };
    assert_eq!(counts("SELECT 1 AS a"), 1);
    let set = "SET NOCOUNT ON; SELECT 1 AS a; SET NOCOUNT OFF; SELECT 2 AS a";
    assert_eq!(counts(set), 1);
}

#[test]
fn a_database_that_is_being_restored_is_no_alarm() {
    let place = Place::new();
    let instance = place.text("instance");
    let script = "CREATE DATABASE eng; BACKUP DATABASE eng TO DISK = 'eng.bak'; \
                  RESTORE DATABASE copy FROM DISK = 'eng.bak' WITH NORECOVERY, MOVE 'eng' TO 'c.mdf', MOVE 'eng_log' TO 'c.ldf'";
    place.succeed(&["sql", "--instance", &instance, "-Q", script]);
    let check = place.succeed(&["check", "--instance", &instance]);
    assert!(
        check.out.contains("copy: is being restored"),
        "{}",
        check.out
    );
    let doctor = place.succeed(&["doctor", "--instance", &instance]);
    assert!(doctor.out.contains("is being restored"), "{}", doctor.out);
}

#[test]
fn what_an_option_would_not_do_is_refused() {
    let place = Place::new();
    let before = place.files("");
    for (line, said) in [
        ("backup app.db --no-write --to x.bak", "cannot be used with"),
        (
            "backup app.db --no-compress-write --compress none",
            "cannot be used with",
        ),
        ("report --days 0 --instance instance", "invalid value '0'"),
        (
            "restore x.bak --database x --read-only --instance instance",
            "--to <FILE>",
        ),
        ("restore x.bak --to x.db --follow nosuch", "no such folder"),
        ("top --every 0 --instance instance", "invalid value '0'"),
        (
            "credential set shop --managed-identity --instance instance",
            "'shop' is no place in a store",
        ),
    ] {
        ends(&place, line, 2, said);
    }
    assert_eq!(place.files(""), before);
}
