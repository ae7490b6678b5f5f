//! Backups that SQL Server wrote, through the program.

use std::path::PathBuf;

use crate::support::Place;

/// Says what is not tested, and why.
#[expect(clippy::print_stderr, reason = "a test that tests nothing must say so")]
fn not_tested(path: &std::path::Path) {
    eprintln!(
        "NOT TESTED: there is no {}; set WINDLASS_SHARED",
        path.display()
    );
}

/// A real backup; `None`, loudly, where the folder is absent.
pub(crate) fn sample(name: &str) -> Option<String> {
    let shared = std::env::var_os("WINDLASS_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = shared.join("data/bak").join(name);
    if path.exists() {
        return Some(path.display().to_string());
    }
    not_tested(&path);
    None
}

#[test]
fn inspect_shows_the_map_and_the_pages_of_a_file_as_text_and_as_json() {
    let Some(file) = sample("sql2022c_CompanyORM.bak") else {
        return;
    };
    let place = Place::new();
    let text = place.succeed(&["inspect", &file]).out;
    assert!(
        text.contains("compressed container: 560640 bytes in "),
        "{text}"
    );
    assert!(text.contains("set 1: Database of 'CompanyORM', SQL Server 16.0.1000, complete"));
    for word in ["MSDA", "MQDA", "CSUM", "file header", "IAM", "long values"] {
        assert_eq!(text.contains(word), word != "CSUM", "{word}");
    }
    let shown = place.succeed(&["--json", "inspect", &file]).out;
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown["container"], "MSSQLBAK");
    assert_eq!(shown["sets"][0]["database"], "CompanyORM");
    assert_eq!(shown["map"][0]["name"], "TAPE");
    let objects = shown["sets"][0]["objects"].as_array().expect("objects");
    let history = objects
        .iter()
        .find(|object| object["name"] == "__EFMigrationsHistory")
        .expect("a table");
    assert_eq!(
        (&history["schema"], &history["type"]),
        (&"dbo".into(), &"U".into())
    );
    let parts = shown["parts"].as_array().expect("parts");
    let bytes = parts.iter().filter_map(|part| part["bytes"].as_u64());
    assert_eq!(bytes.sum::<u64>(), 560_640);
    let page = place.text("layout.html");
    place.succeed(&["inspect", &file, "--summary", "--report", &page]);
    let text = std::fs::read_to_string(&page).expect("a page");
    for word in [
        "Where in the file what lies",
        "<svg",
        "dbo.__EFMigrationsHistory",
        "<!DOCTYPE",
    ] {
        assert!(text.contains(word), "{word}");
    }
    let copy = place.text("copy.bak");
    std::fs::copy(&file, &copy).expect("a copy");
    let refused = place.run(&["inspect", &copy, "--report", &copy]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    let own = place.run(&["inspect", &place.text("app.db")]);
    assert_eq!(own.code, Some(1));
    assert!(own.err.contains("no backup of SQL Server"), "{}", own.err);
}

#[test]
fn extract_writes_tables_or_data_files_and_fails_when_a_row_is_missing() {
    let Some(file) = sample("sql2005_Northwind_a.bak") else {
        return;
    };
    let place = Place::new();
    let reported = place.succeed(&[
        "extract",
        &file,
        "--to",
        &place.text("x.db"),
        "--table",
        "Orders",
    ]);
    assert!(reported.out.contains("830"), "{}", reported.out);
    assert!(
        reported.err.contains("no transaction was open at its end"),
        "{}",
        reported.err
    );
    let database = rusqlite::Connection::open(place.path("x.db")).expect("a database");
    let rows: i64 = database
        .query_row("SELECT count(*) FROM Orders", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(rows, 830);
    let folder = place.text("files");
    place.succeed(&["extract", &file, "--format", "files", "--to", &folder]);
    assert!(place.path("files/Northwind.mdf").exists());
    assert!(place.path("files/Northwind_log.ldf").exists());
    let half = sample("sql2025_Chinook_stripe1of2_only.bak").expect("a file of the same folder");
    let reported = place.run(&["extract", &half, "--to", &place.text("half.db")]);
    assert_eq!(reported.code, Some(1));
    assert!(
        reported.err.contains("Media family 2 of 2 is missing"),
        "{}",
        reported.err
    );
    assert!(
        reported.err.contains("the server counted 347"),
        "{}",
        reported.err
    );
}

#[test]
fn header_files_label_and_verify_answer_in_the_same_columns() {
    let Some(file) = sample("sql2022c_CompanyORM.bak") else {
        return;
    };
    let place = Place::new();
    let header = place.succeed(&["--json", "header", &file]).results();
    let header = &header[0][0];
    assert_eq!(header["DatabaseName"], "CompanyORM");
    assert_eq!(header["SoftwareVersionMajor"], 16);
    assert_eq!(header["CompressionAlgorithm"], "MS_XPRESS");
    assert_eq!(header["SourceProduct"], "SQL Server");
    let own = place.text("own.bak");
    place.succeed(&["backup", "app.db", "--to", &own]);
    let windlass = place.succeed(&["--json", "header", &own]).results();
    let names = |row: &serde_json::Value| -> Vec<String> {
        let row = row.as_object().expect("a row");
        row.keys().cloned().collect()
    };
    assert_eq!(names(header), names(&windlass[0][0]), "the same columns");
    let files = place.succeed(&["--json", "files", &file]).results();
    assert_eq!(files[0][0]["LogicalName"], "CompanyORM");
    assert_eq!(files[0][1]["Type"], "L");
    let label = place.succeed(&["--json", "label", &file]).results();
    assert_eq!(label[0][0]["SoftwareVendorId"], 4608);
    let verified = place.succeed(&["verify", &file]);
    let said = format!("{}{}", verified.out, verified.err);
    assert!(
        said.contains("The backup set on file 1 is valid."),
        "{said}"
    );
    assert!(said.contains("Not checked: "), "{said}");
    let script = format!(
        "RESTORE HEADERONLY FROM DISK = '{file}'; RESTORE VERIFYONLY FROM DISK = '{file}';"
    );
    let run = place.sql(&script);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.contains("CompanyORM"), "{}", run.out);
}

/// The offset of the first page of rows of a system table in a plain backup, by the numbers in its header.
fn system_page(backup: &[u8], index: u16, object: u32) -> usize {
    let is_it = |at: &usize| {
        let header = &backup[*at..];
        header[..2] == [1, 1]
            && header[6..8] == index.to_le_bytes()
            && header[0x18..0x1C] == object.to_le_bytes()
            && header[0x24..0x26] == [1, 0]
    };
    let mut places = (0..backup.len() - 8192).step_by(512);
    places.find(is_it).expect("a page of the table")
}

#[test]
fn a_lost_page_of_a_system_table_is_never_an_extraction_that_succeeded() {
    let Some(file) = sample("sql2008r2_Northwind.bak") else {
        return;
    };
    let whole = std::fs::read(&file).expect("the backup");
    let place = Place::new();
    let damaged = place.text("damaged.bak");
    let zero = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at..at + 8192].fill(0);
        std::fs::write(&damaged, bytes).expect("a copy");
    };
    // A page of the names: the tables without one are extracted, too.
    zero(system_page(&whole, 1, 34));
    for (format, to) in [("sqlite", "x.db"), ("csv", "x"), ("parquet", "y")] {
        let run = place.run(&["extract", &damaged, "--format", format, "--to", to]);
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains("system tables: page 1:"), "{}", run.err);
        assert!(
            run.err.contains("system tables: sysschobjs:"),
            "{}",
            run.err
        );
        assert!(place.path(to).exists());
        assert!(run.out.contains("2155"), "{}", run.out);
    }
    let run = place.run(&["sql", "--on", &damaged, "-Q", "SELECT 1 AS one"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("system tables: page 1:"), "{}", run.err);
    let run = place.run(&["extract", &damaged, "--to", "w.db", "--table", "None"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(
        run.err.contains("the system tables are damaged (page 1:"),
        "{}",
        run.err
    );
    let run = place.run(&["inspect", &damaged, "--summary"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(
        run.err.contains("set 1: pages of its system tables"),
        "{}",
        run.err
    );
    let told = |file: &str| {
        let run = place.run(&["inspect", file, "--json"]);
        let told: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
        told["sets"][0]["lacks_objects"].clone()
    };
    assert_eq!(told(&damaged), true);
    assert_eq!(told(&file), false);
    // The first page of the rowsets, among them those of the system tables.
    zero(system_page(&whole, 0, 5));
    let run = place.run(&["extract", &damaged, "--to", "z.db"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    let said = "the list of objects (sysschobjs) cannot be read (page 1:18 is damaged";
    assert!(run.err.contains(said), "{}", run.err);
    assert!(!place.path("z.db").exists());
}

#[test]
fn verify_names_the_damaged_page_and_a_missing_half() {
    let Some(file) = sample("sql2008r2_CorruptDB.bak") else {
        return;
    };
    let place = Place::new();
    let run = place.run(&["verify", &file]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.err
            .contains("offset 2326016: page 1:283: its checksum is"),
        "{}",
        run.err
    );
    for (format, to) in [("sqlite", "x.db"), ("csv", "x"), ("parquet", "y")] {
        let run = place.run(&["extract", &file, "--format", format, "--to", to]);
        assert_eq!(run.code, Some(1), "{}", run.err);
        let text = format!("{}{}", run.out, run.err);
        assert!(text.contains("page 1:283 is damaged"), "{text}");
    }
    let half = sample("sql2025_Chinook_stripe1of2_only.bak").expect("a file of the same folder");
    let run = place.run(&["verify", &half]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.err.contains("media family 2 of 2 is missing"),
        "{}",
        run.err
    );
    assert!(!run.err.contains("Damage"), "{}", run.err);
    let run = place.run(&["restore", &half, "--to", &place.text("temp")]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("Msg 3132"), "{}", run.err);
    assert!(run.err.contains("2 of 2 is missing"), "{}", run.err);
}

#[test]
fn restore_writes_data_files_only_where_it_is_told_to() {
    let full = "sql2008r2_lab_DoubleDiffing__difftest-full.bak";
    let (Some(full), Some(differential)) = (
        sample(full),
        sample("sql2008r2_lab_DoubleDiffing__difftest-diff2.bak"),
    ) else {
        return;
    };
    let place = Place::new();
    let refused = place.sql(&format!("RESTORE DATABASE x FROM DISK = '{full}';"));
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(
        refused.err.contains("no target is given for the file"),
        "{}",
        refused.err
    );
    // A restore into one file is what a SQLite database would have.
    for dry in [&[][..], &["--dry-run"]] {
        let run = place.run(&[&["restore", &full, "--to", "x.db"], dry].concat());
        assert_eq!(run.code, Some(1), "{}", run.err);
        for said in ["Msg 50359", "windlass extract", "--to FILE"] {
            assert!(run.err.contains(said), "{said}: {}", run.err);
        }
    }
    std::fs::create_dir(place.path("out")).expect("a folder");
    let script = format!(
        "RESTORE DATABASE x FROM DISK = '{full}', DISK = '{differential}'
         WITH MOVE 'doublediff' TO 'd:\\out\\x.mdf', MOVE 'doublediff_log' TO 'd:\\out\\x.ldf';"
    );
    let run = place.sql(&script);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(place.path("out/x.mdf").exists() && place.path("out/x.ldf").exists());
    assert!(run.err.contains("listed here as OFFLINE"), "{}", run.err);
    std::fs::create_dir(place.path("plain")).expect("a folder");
    let run = place.succeed(&["restore", &full, "--to", &place.text("plain")]);
    assert!(run.err.contains("not registered here"), "{}", run.err);
    assert!(place.path("plain/doublediff.mdf").exists());
}

const MOVES: &str = "MOVE 'doublediff' TO 'd:\\x.mdf', MOVE 'doublediff_log' TO 'd:\\x.ldf'";

fn state_of(place: &Place, instance: &str) -> String {
    let query = "SELECT state_desc, (SELECT count(*) FROM sys.master_files AS f WHERE f.database_id = d.database_id), \
                 DATABASEPROPERTYEX(name, 'Status') FROM sys.databases AS d WHERE name = 'x'";
    let run = place.sql_with(&["--instance", instance], query);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let row = run.out.lines().nth(2).unwrap_or_default();
    row.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_restore_in_steps_gives_the_same_files_as_in_one_and_the_database_is_offline() {
    let lab = "sql2008r2_lab_DoubleDiffing__difftest";
    let (Some(full), Some(first), Some(last), Some(other)) = (
        sample(&format!("{lab}-full.bak")),
        sample(&format!("{lab}-diff1.bak")),
        sample(&format!("{lab}-diff2.bak")),
        sample("sql2016_BackupTestDb_diff.bak"),
    ) else {
        return;
    };
    let place = Place::new();
    let instance = place.text("instance");
    let sql = |text: &str| place.sql_with(&["--instance", &instance], text);
    let succeed = |text: &str| {
        let run = sql(text);
        assert_eq!(run.code, Some(0), "{text}: {}", run.err);
        run.err
    };
    let refuse = |text: &str, why: &str| {
        let run = sql(text);
        assert_eq!(run.code, Some(1), "{text}: {}", run.err);
        assert!(run.err.contains(why), "{text}: {}", run.err);
    };
    let told = succeed(&format!(
        "RESTORE DATABASE x FROM DISK = '{full}' WITH NORECOVERY, {MOVES}"
    ));
    assert!(told.contains("wait for differentials"), "{told}");
    assert_eq!(state_of(&place, &instance), "RESTORING 2 RESTORING");
    refuse("BACKUP DATABASE x TO DISK = 'd:\\x.wl'", "restor");
    refuse("USE x", "restor");
    refuse(
        &format!("RESTORE DATABASE x FROM DISK = '{other}'"),
        "the differential needs backup set",
    );
    let log = other.replace("_diff.bak", "_log.bak");
    refuse(
        &format!("RESTORE LOG x FROM DISK = '{log}'"),
        "only a server can redo its log",
    );
    assert_eq!(state_of(&place, &instance), "RESTORING 2 RESTORING");
    succeed(&format!(
        "RESTORE DATABASE x FROM DISK = '{first}' WITH NORECOVERY"
    ));
    assert_eq!(state_of(&place, &instance), "RESTORING 2 RESTORING");
    let told = succeed(&format!("RESTORE DATABASE x FROM DISK = '{last}'"));
    assert!(told.contains("listed here as OFFLINE"), "{told}");
    assert_eq!(state_of(&place, &instance), "OFFLINE 2 OFFLINE");

    let at_once = Place::new();
    let run = at_once.sql(&format!(
        "RESTORE DATABASE x FROM DISK = '{full}', DISK = '{last}' WITH {MOVES}"
    ));
    assert_eq!(run.code, Some(0), "{}", run.err);
    for name in ["x.mdf", "x.ldf"] {
        let [one, other] = [&place, &at_once].map(|place| std::fs::read(place.path(name)));
        assert!(one.expect("a file") == other.expect("a file"), "{name}");
    }

    let offline = "is one of SQL Server, and offline";
    refuse("USE x", offline);
    refuse("ALTER DATABASE x SET RECOVERY SIMPLE", offline);
    refuse("DBCC CHECKDB (x)", offline);
    refuse("SELECT * FROM x.dbo.t", "x");
    refuse("RESTORE DATABASE x WITH RECOVERY", "already");
    refuse(
        &format!("RESTORE DATABASE x FROM DISK = '{last}'"),
        "differentials",
    );
    refuse(
        &format!("RESTORE DATABASE x FROM DISK = '{full}' WITH {MOVES}"),
        "REPLACE",
    );
    succeed(&format!(
        "RESTORE DATABASE x FROM DISK = '{full}' WITH REPLACE, NORECOVERY, {MOVES}"
    ));
    succeed("RESTORE DATABASE x WITH RECOVERY");
    assert_eq!(state_of(&place, &instance), "OFFLINE 2 OFFLINE");
    succeed("EXEC sp_helpdb x");
    // SQL Server does not delete the files of a database that is offline.
    let told = succeed("DROP DATABASE x");
    assert!(told.contains("x.mdf") && told.contains("x.ldf"), "{told}");
    assert!(place.path("x.mdf").exists() && place.path("x.ldf").exists());
    assert_eq!(state_of(&place, &instance), "");
}

#[test]
fn a_differential_that_breaks_off_leaves_a_database_that_only_a_full_backup_restores() {
    let lab = "sql2008r2_lab_DoubleDiffing__difftest";
    let (Some(full), Some(last)) = (
        sample(&format!("{lab}-full.bak")),
        sample(&format!("{lab}-diff2.bak")),
    ) else {
        return;
    };
    let place = Place::new();
    let instance = place.text("instance");
    let sql = |text: &str| place.sql_with(&["--instance", &instance], text);
    let begin =
        format!("RESTORE DATABASE x FROM DISK = '{full}' WITH REPLACE, NORECOVERY, {MOVES}");
    let broke_off = |text: &str| {
        let run = sql(text);
        assert_eq!(run.code, Some(1), "{}", run.err);
        let why = "Begin again with the full backup";
        assert!(run.err.contains(why), "{}", run.err);
    };
    assert_eq!(sql(&begin).code, Some(0));
    let whole = std::fs::read(place.path("x.mdf")).expect("a file");
    // A damaged differential is found before anything is changed.
    let mut bytes = std::fs::read(&last).expect("a backup");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(place.path("bad.bak"), &bytes).expect("a file");
    let run = sql("RESTORE DATABASE x FROM DISK = 'd:\\bad.bak'");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(std::fs::read(place.path("x.mdf")).expect("a file") == whole);
    assert_eq!(state_of(&place, &instance), "RESTORING 2 RESTORING");
    // It fails as the files are changed, and the process is killed as it changes them: no file may grow beyond 512 KB.
    let go_on = format!("RESTORE DATABASE x FROM DISK = '{last}'");
    for (how, code) in [("trap '' XFSZ; ", Some(1)), ("", None)] {
        assert_eq!(sql(&begin).code, Some(0));
        let command = place.command(&["sql", "--instance", &instance, "-Q", &go_on]);
        let limited = std::process::Command::new("sh")
            .args(["-c", &format!("{how}ulimit -f 1024; exec \"$0\" \"$@\"")])
            .arg(command.get_program())
            .args(command.get_args())
            .output()
            .expect("the program runs");
        let said = String::from_utf8_lossy(&limited.stderr);
        assert_eq!(limited.status.code(), code, "{said}");
        // The backup is whole.
        let names_file = said.contains("x.mdf") && said.contains("File too large");
        assert!(code.is_none() || names_file, "{said}");
        assert!(!said.contains("Damage to the backup set"), "{said}");
        assert_eq!(state_of(&place, &instance), "RESTORING 2 RESTORING");
        broke_off(&go_on);
        broke_off("RESTORE DATABASE x WITH RECOVERY");
    }
    assert_eq!(sql(&begin).code, Some(0));
    assert_eq!(
        sql(&format!("RESTORE DATABASE x FROM DISK = '{last}'")).code,
        Some(0)
    );
    assert_eq!(state_of(&place, &instance), "OFFLINE 2 OFFLINE");
}

#[test]
fn links_at_the_targets_of_a_restore_are_followed_if_named_and_a_second_name_is_refused() {
    let Some(sample) = sample("sql2008r2_Northwind.bak") else {
        return;
    };
    let place = Place::new();
    std::fs::create_dir(place.path("out")).expect("a folder");
    let restore = |how: &str| {
        place.sql(&format!(
            "RESTORE DATABASE nw FROM DISK = '{sample}' WITH MOVE 'Northwind' TO 'd:\\nw.mdf', \
             MOVE 'Northwind_log' TO 'd:\\nw.ldf'{how}"
        ))
    };
    assert_eq!(restore("").code, Some(0));
    let [data, real] = ["nw.mdf", "out/real.mdf"].map(|name| place.path(name));
    let restored = std::fs::read(&data).expect("the file");
    // A symbolic link stays, and the file that it leads to is replaced.
    std::fs::rename(&data, &real).expect("another name");
    std::os::unix::fs::symlink(&real, &data).expect("a link");
    std::fs::write(&real, "old").expect("a file");
    let run = restore("");
    assert_eq!(run.code, Some(1), "not without REPLACE: {}", run.err);
    assert_eq!(std::fs::read(&real).expect("it"), b"old");
    let run = restore(", REPLACE");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(std::fs::symlink_metadata(&data).expect("it").is_symlink());
    assert!(std::fs::read(&real).expect("it") == restored);
    // So does one that leads nowhere yet.
    std::fs::remove_file(&real).expect("it");
    let run = restore(", REPLACE");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(std::fs::read(&real).expect("it") == restored);
    // A second name would keep the old content: for the data file and for the log.
    std::fs::remove_file(&data).expect("the link");
    for name in ["nw.mdf", "nw.ldf"] {
        let _absent = std::fs::remove_file(place.path(name));
        std::fs::write(place.path("second"), "theirs").expect("a file");
        std::fs::hard_link(place.path("second"), place.path(name)).expect("a link");
        let run = restore(", REPLACE");
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains("2 names (hard links)"), "{}", run.err);
        assert_eq!(std::fs::read(place.path(name)).expect("it"), b"theirs");
        std::fs::remove_file(place.path("second")).expect("it");
    }
    // Links planted under the temporary name do no harm: what is there is removed, and what it leads to stays.
    let planted = place.path("nw.mdf.windlass-restoring");
    std::fs::write(place.path("victim"), "theirs").expect("a file");
    for how in ["symbolic", "hard"] {
        match how {
            "hard" => std::fs::hard_link(place.path("victim"), &planted),
            _ => std::os::unix::fs::symlink(place.path("victim"), &planted),
        }
        .expect("a link");
        let run = restore(", REPLACE");
        assert_eq!(run.code, Some(0), "{how}: {}", run.err);
        assert_eq!(std::fs::read(place.path("victim")).expect("it"), b"theirs");
        assert!(!planted.exists(), "{how}");
    }
}

#[test]
fn every_file_that_is_in_the_way_is_told_and_a_move_names_files_of_the_set() {
    let Some(file) = sample("sql2008r2_Northwind.bak") else {
        return;
    };
    let place = Place::new();
    let instance = place.text("instance");
    let sql = |text: &str| place.sql_with(&["--json", "--instance", &instance], text);
    let made = sql(
        "CREATE DATABASE e ON (NAME = e, FILENAME = 'd:\\e.mdf') LOG ON (NAME = l, FILENAME = 'd:\\e.ldf')",
    );
    assert_eq!(made.code, Some(0), "{}", made.err);
    let moves = "MOVE 'Northwind' TO 'd:\\e.mdf', MOVE 'Northwind_log' TO 'd:\\e.ldf'";
    let refused = sql(&format!(
        "RESTORE DATABASE x FROM DISK = '{file}' WITH {moves}, REPLACE"
    ));
    assert_eq!(
        refused.numbers(),
        [1834, 3156, 1834, 3156, 3119, 3013],
        "{}",
        refused.err
    );
    let refused = sql(&format!(
        "RESTORE DATABASE x FROM DISK = '{file}' WITH MOVE 'none' TO 'd:\\n.mdf'"
    ));
    assert_eq!(refused.numbers(), [3234, 3013]);
    let texts = refused.out + &refused.err;
    assert!(texts.contains("not part of database 'x'"), "{texts}");
}

#[test]
fn queries_on_a_backup_read_the_tables_that_they_name_and_leave_nothing() {
    let (Some(file), Some(damaged), Some(other)) = (
        sample("sql2012_pubs_a.bak"),
        sample("sql2008r2_CorruptDB.bak"),
        sample("sql2016c_TSQL2012.bak"),
    ) else {
        return;
    };
    let place = Place::new();
    std::fs::create_dir(place.path("tmp")).expect("a folder");
    let on = |file: &str, query: &str| {
        let mut command = place.command(&["sql", "--on", file, "-Q", query]);
        command.env("TMPDIR", place.path("tmp"));
        crate::support::Run::of(&command.output().expect("the program runs"))
    };
    let run = on(
        &file,
        "SELECT SUM(s.qty) AS total FROM dbo.sales s JOIN [titles] t ON s.title_id = t.title_id",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.contains("442"), "{}", run.out);
    // Only what the query names was extracted; a query that names nothing sees all.
    let count =
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name <> 'windlass_columns'";
    let run = on(&file, &format!("{count} AND 'sales' <> 'titles'"));
    assert_eq!(run.out.split_whitespace().last(), Some("2"), "{}", run.out);
    let run = on(&file, count);
    assert_eq!(run.out.split_whitespace().last(), Some("15"), "{}", run.out);
    let run = on(&other, "SELECT count(*) FROM [HR.Employees]");
    assert_eq!(run.out.split_whitespace().last(), Some("9"), "{}", run.err);
    for change in [
        "DELETE FROM stores",
        "CREATE TABLE stores2 (a int)",
        "UPDATE stores SET city = 'x'",
    ] {
        let run = on(&file, change);
        assert_eq!(run.code, Some(1), "{change}: {}", run.err);
        assert!(run.err.contains("read-only"), "{}", run.err);
    }
    let run = on(&damaged, "SELECT count(*) FROM Orders");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("page 1:283 is damaged"), "{}", run.err);
    let run = on(&place.text("none.bak"), "SELECT 1");
    assert_eq!(run.code, Some(1), "{}", run.err);
    let left = std::fs::read_dir(place.path("tmp")).expect("the folder");
    assert_eq!(left.count(), 0);
}

#[test]
fn a_query_wants_one_of_several_sets_to_be_chosen_and_an_extraction_names_the_others() {
    let Some(file) = sample("sql2008r2_Employee_2sets_4k.bak") else {
        return;
    };
    let place = Place::new();
    let query = "SELECT count(*) FROM sqlite_master";
    let on = |set: &[&str]| place.run(&[&["sql", "--on", &file, "-Q", query], set].concat());
    let several = on(&[]);
    assert_eq!(several.code, Some(1), "{}", several.out);
    for said in ["1 (Database)", "2 (Database)", "--set"] {
        assert!(several.err.contains(said), "{}", several.err);
    }
    for set in ["1", "2"] {
        let chosen = on(&["--set", set]);
        assert_eq!(chosen.code, Some(0), "{}", chosen.err);
    }
    for (set, code) in [("3", 1), ("0", 2), ("65535", 1), ("65536", 2)] {
        let none = on(&["--set", set]);
        assert_eq!(none.code, Some(code), "{set}: {}", none.err);
    }
    let told = place.succeed(&["extract", &file, "--to", "1.db"]);
    assert!(told.err.contains("1 later ones"), "{}", told.err);
    let told = place.succeed(&["extract", &file, "--set", "2", "--to", "2.db"]);
    assert!(!told.err.contains("later ones"), "{}", told.err);
}

#[test]
fn a_killed_query_leaves_a_folder_that_the_next_one_removes() {
    let Some(file) = sample("sql2012_pubs_a.bak") else {
        return;
    };
    let place = Place::new();
    std::fs::create_dir(place.path("tmp")).expect("a folder");
    let folders = || {
        let entries = std::fs::read_dir(place.path("tmp")).expect("the folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.collect::<Vec<_>>()
    };
    let mut command = place.command(&["sql", "--on", &file]);
    command
        .env("TMPDIR", place.path("tmp"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null());
    // It waits for what is typed.
    let mut running = command.spawn().expect("the program runs");
    let has_tables = || {
        folders()
            .iter()
            .any(|folder| folder.join("pubs.db").exists())
    };
    while !has_tables() {
        assert_eq!(running.try_wait().expect("its state"), None, "it runs");
        std::thread::yield_now();
    }
    let next = |left: usize| {
        let mut command =
            place.command(&["sql", "--on", &file, "-Q", "SELECT count(*) FROM titles"]);
        command.env("TMPDIR", place.path("tmp"));
        let run = crate::support::Run::of(&command.output().expect("the program runs"));
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert_eq!(folders().len(), left, "{:?}", folders());
    };
    next(1);
    running.kill().expect("it is killed");
    running.wait().expect("it ends");
    assert_eq!(folders().len(), 1, "a killed one cleans nothing");
    next(0);
}
