//! Where nothing was done or found, no command says that all is well.

use crate::support::{Place, succeed};

/// Ends with this code and says this.
fn ends(place: &Place, words: &[&str], code: i32, said: &str) {
    let run = place.run(words);
    let told = format!("{}{}", run.out, run.err);
    assert_eq!(run.code, Some(code), "{words:?}: {told}");
    assert!(told.contains(said), "{words:?}: {told}");
}

#[test]
fn a_restore_that_nobody_began_is_not_ended() {
    let place = Place::new();
    let before = place.files("");
    let no_recovery = ["restore", "--no-recovery", "--to", "none.db"];
    ends(&place, &no_recovery, 2, "no backup is named");
    let recovery = ["restore", "--to", "none.db"];
    ends(&place, &recovery, 1, "No backup was named");
    let unregistered = ["restore", "a.bak", "--to", "b.db", "--database", "b"];
    ends(&place, &unregistered, 2, "--instance");
    assert_eq!(place.files(""), before);
}

#[test]
fn a_name_that_cannot_be_a_file_is_refused_before_anything_is_written() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "a.bak"]);
    let before = place.files("");
    ends(&place, &["backup", "app.db", "--to", "t.bak/"], 1, "50020");
    ends(
        &place,
        &["restore", "a.bak", "--to", "new/"],
        2,
        "no folder",
    );
    let copy = [
        "backup",
        "app.db",
        "--to",
        "b.bak",
        "--temp-copy-dir",
        "nosuch",
    ];
    ends(&place, &copy, 2, "no folder");
    ends(
        &place,
        &["repack", "a.bak", "--to", "b.bak"],
        1,
        "Msg 50327",
    );
    assert_eq!(place.files(""), before);
}

#[test]
fn a_look_makes_no_instance_and_one_that_knows_nothing_is_not_well() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "a.bak"]);
    for words in [
        &["header", "a.bak"][..],
        &["verify", "a.bak"],
        &["copies"],
        &["export", "app", "--to", "out.db"],
        &["tune", "app.db"],
    ] {
        let words = [words, &["--instance", "nosuch"]].concat();
        ends(&place, &words, 1, "Msg 50104");
    }
    assert!(!place.path("nosuch").exists());
    let made = place.succeed(&["sql", "--instance", "empty", "-Q", "SELECT 1"]);
    assert!(made.err.contains("a new one is made"), "{}", made.err);
    for (words, code, said) in [
        (&["drill", "--scratch", "temp"][..], 1, "Nothing was proved"),
        (&["report"], 1, "is it the right one?"),
        (&["history", "--rpo", "24h"], 1, "is it the right one?"),
        (&["history", "app"], 2, "knows no database 'app'"),
    ] {
        let words = [words, &["--instance", "empty"]].concat();
        ends(&place, &words, code, said);
    }
}

#[test]
fn of_many_backups_those_that_are_made_are_told_and_a_pattern_for_none_is_an_error() {
    let place = Place::new();
    std::fs::create_dir(place.path("bak")).expect("a folder");
    let all = ["backup", "--all", ".", "--to", "bak", "--only", "app"];
    let told = place.succeed(&[&all[..], &["--tsql"]].concat());
    assert!(told.err.contains("Databases backed up: 1"), "{}", told.err);
    let words = [&all[..], &["--only", "ordesr"]].concat();
    ends(&place, &words, 1, "--only 'ordesr' names no database");
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
    let no_write = ["backup", "app.db", "--no-write", "--to", "x.bak"];
    ends(&place, &no_write, 2, "cannot be used with");
    let none = [
        "backup",
        "app.db",
        "--no-compress-write",
        "--compress",
        "none",
    ];
    ends(&place, &none, 2, "cannot be used with");
    let days = ["report", "--days", "0", "--instance", "instance"];
    ends(&place, &days, 2, "invalid value '0'");
    let no_file = [
        "restore",
        "x.bak",
        "--database",
        "x",
        "--read-only",
        "--instance",
        "instance",
    ];
    ends(&place, &no_file, 2, "--to <FILE>");
    let credential = [
        "credential",
        "set",
        "shop",
        "--managed-identity",
        "--instance",
        "instance",
    ];
    ends(&place, &credential, 2, "'shop' is no place in a store");
    assert_eq!(place.files(""), before);
}
