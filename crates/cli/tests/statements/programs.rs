//! Backups of databases that a program with the loadable extension has open: the sqlite3 shell is that program.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value as Json;

use crate::support::{Place, Run};

/// The extension; the tests' dependency on it makes Cargo build it.
fn library() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_windlass"));
    let folder = program.parent().expect("a folder");
    folder.join("deps/libwindlass.so")
}

/// A program that runs; killed when dropped.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Shell {
    /// `None`, and a word about it, without a sqlite3 shell.
    fn start() -> Option<Self> {
        let started = Command::new("sqlite3")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else {
            assert!(
                std::env::var_os("CI").is_none(),
                "the sqlite3 shell is absent"
            );
            return None;
        };
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut shell = Self {
            child,
            input,
            output,
        };
        shell.ask(&format!(".load {}", library().display()));
        Some(shell)
    }

    /// Opens a database of the page engine; further parameters of the URI follow.
    fn open(path: &Path, further: &str) -> Option<Self> {
        let mut shell = Self::start()?;
        shell.ask(&format!(
            ".open file:{}?vfs=windlass{further}",
            path.display()
        ));
        Some(shell)
    }

    /// What it prints for some lines.
    fn ask(&mut self, lines: &str) -> String {
        const END: &str = "--the end--";
        writeln!(self.input, "{lines}\n.print {END}").expect("it listens");
        let mut printed = String::new();
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).expect("it prints");
            if read == 0 || line.trim_end() == END {
                return printed;
            }
            printed.push_str(&line);
        }
    }

    /// Ends it, and returns its errors.
    fn end(mut self) -> String {
        self.ask(".quit");
        let mut errors = String::new();
        let mut pipe = self.child.stderr.take().expect("its errors");
        std::io::Read::read_to_string(&mut pipe, &mut errors).expect("text");
        self.child.wait().expect("it ends");
        errors
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // It may have ended.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

const FILL: &str = "CREATE TABLE t(x INTEGER PRIMARY KEY, y);
    INSERT INTO t WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3000)
      SELECT n, hex(randomblob(40)) FROM c;";

/// Restores media to a new database file, and returns what a query says of it.
fn restored(place: &Place, media: &[&str], query: &str) -> String {
    let target = place.text("restored.db");
    let mut arguments = vec!["restore"];
    arguments.extend(media);
    arguments.extend(["--to", &target, "--replace"]);
    place.succeed(&arguments);
    let connection = rusqlite::Connection::open(&target).expect("it opens");
    let answer = connection.query_row(query, [], |row| row.get::<_, String>(0));
    answer.expect("it answers")
}

const CONTENT: &str = "SELECT count(*) || ' ' || sum(length(y)) FROM t";

#[test]
fn a_program_with_the_extension_is_backed_up_while_it_writes() {
    let place = Place::new();
    let path = place.path("live.db");
    let Some(mut shell) = Shell::open(&path, "") else {
        return;
    };
    shell.ask(FILL);
    let (app, full, second) = (
        place.text("live.db"),
        place.text("full.bak"),
        place.text("diff.bak"),
    );
    let run = place.succeed(&["backup", &app, "--to", &full, "--checksum"]);
    assert!(run.out.contains("live: backup set 1"), "{}", run.out);
    assert!(run.err.contains("successfully processed"), "{}", run.err);
    shell.ask("UPDATE t SET y = 'short' WHERE x <= 10; BEGIN; DELETE FROM t;");
    // What is not committed is not in it.
    place.succeed(&["backup", &app, "--to", &second, "--differential"]);
    assert_eq!(shell.ask("ROLLBACK; SELECT count(*) FROM t;"), "3000\n");
    assert_eq!(shell.end(), "");
    assert!(!place.path("live.db-sock").exists());
    assert_eq!(restored(&place, &[&full], CONTENT), "3000 240000");
    assert_eq!(restored(&place, &[&full, &second], CONTENT), "3000 239250");
}

#[test]
fn a_backup_through_a_program_is_in_the_history_of_the_instance() {
    let place = Place::new();
    let path = place.path("live.db");
    let Some(mut shell) = Shell::open(&path, "") else {
        return;
    };
    shell.ask(FILL);
    let (app, media, instance) = (
        place.text("live.db"),
        place.text("a.bak"),
        place.text("instance"),
    );
    place.succeed(&["backup", &app, "--to", &media, "--instance", &instance]);
    let history = place.succeed(&["history", "--instance", &instance, "--json"]);
    assert!(history.out.contains(&media), "{}", history.out);
    // The program only backs its databases up.
    let restore = place.run(&["restore", &media, "--to", &app, "--replace"]);
    assert_ne!(restore.code, Some(0));
    assert_eq!(shell.ask("SELECT count(*) FROM t;"), "3000\n");
}

#[test]
fn what_a_killed_program_left_is_backed_up_without_it() {
    let place = Place::new();
    let path = place.path("live.db");
    let Some(mut shell) = Shell::open(&path, "") else {
        return;
    };
    shell.ask(FILL);
    shell.child.kill().expect("it runs");
    shell.child.wait().expect("it ends");
    assert!(place.path("live.db-sock").exists(), "left behind");
    let (app, media) = (place.text("live.db"), place.text("a.bak"));
    place.succeed(&["backup", &app, "--to", &media]);
    assert_eq!(restored(&place, &[&media], CONTENT), "3000 240000");
    // The next program replaces the socket.
    let Some(shell) = Shell::open(&path, "") else {
        return;
    };
    let again = place.text("b.bak");
    place.succeed(&["backup", &app, "--to", &again]);
    assert_eq!(shell.end(), "");
    assert!(!place.path("live.db-sock").exists());
}

/// The answer of `windlass_sql`, or its error.
fn windlass_sql(shell: &mut Shell, statement: &str) -> Json {
    let quoted = statement.replace('\'', "''");
    let answer = shell.ask(&format!("SELECT windlass_sql('{quoted}');"));
    serde_json::from_str(&answer).unwrap_or(Json::Null)
}

#[test]
fn a_program_backs_its_own_databases_up_with_t_sql() {
    let place = Place::new();
    let path = place.path("live.db");
    let Some(mut shell) = Shell::open(&path, "") else {
        return;
    };
    shell.ask(FILL);
    let media = place.text("own.bak");
    let answer = windlass_sql(
        &mut shell,
        &format!("BACKUP DATABASE live TO DISK = '{media}' WITH CHECKSUM, COMPRESSION"),
    );
    let messages = answer["messages"].as_array().expect("messages").iter();
    let numbers: Vec<_> = messages.map(|message| message["number"].as_u64()).collect();
    assert!(numbers.contains(&Some(3014)), "{answer}");
    let header = windlass_sql(
        &mut shell,
        &format!("RESTORE HEADERONLY FROM DISK = '{media}'"),
    );
    assert_eq!(header["results"][0][0]["DatabaseName"], "live", "{header}");
    let twice = windlass_sql(&mut shell, "SELECT 1 AS a, 2 AS a");
    assert_eq!(twice["results"][0][0]["a2"], 2, "{twice}");
    for refused in [
        format!("RESTORE DATABASE live FROM DISK = '{media}' WITH REPLACE"),
        "DROP DATABASE live".to_owned(),
        "BACKUP DATABASE other TO DISK = 'x.bak'".to_owned(),
        "SELECT 1 FROM".to_owned(),
    ] {
        assert_eq!(windlass_sql(&mut shell, &refused), Json::Null, "{refused}");
    }
    let errors = shell.end();
    assert!(
        errors.contains("windlass_sql: ") || errors.contains("Msg "),
        "{errors}"
    );
    assert_eq!(restored(&place, &[&media], CONTENT), "3000 240000");
}

#[test]
fn a_uri_names_a_database_its_files_and_the_pool() {
    let place = Place::new();
    let (path, second) = (place.path("live.db"), place.text("app2.ndf"));
    let Some(mut shell) = Shell::open(&path, &format!("&name=Sales&data2={second}&pool=64MB"))
    else {
        return;
    };
    shell.ask(FILL);
    assert!(place.path("app2.ndf").exists());
    let media = place.text("own.bak");
    let answer = windlass_sql(
        &mut shell,
        &format!("BACKUP DATABASE Sales TO DISK = '{media}'"),
    );
    assert!(answer["messages"].is_array(), "{answer}");
    let files = windlass_sql(
        &mut shell,
        &format!("RESTORE FILELISTONLY FROM DISK = '{media}'"),
    );
    let rows = files["results"][0].as_array().expect("rows");
    let names: Vec<_> = rows.iter().map(|row| row["LogicalName"].clone()).collect();
    assert_eq!(names, ["Sales", "Sales_log", "Sales_2"]);
    // Another connection of the process must not contradict it.
    let app = path.display();
    for (wrong, reason) in [
        ("&pool=32MB", "pool"),
        ("&pool=much", "pool"),
        ("&name=Other", "name"),
        ("&data2=/nowhere/x.ndf", "data2"),
    ] {
        let opened = shell.ask(&format!(
            "ATTACH 'file:{app}?vfs=windlass{wrong}' AS other; SELECT count(*) FROM other.t;"
        ));
        assert_eq!(opened, "", "{reason}");
        shell.ask("DETACH other;");
    }
    drop(shell);
    // A later program need not repeat where the files are.
    let Some(mut shell) = Shell::open(&path, "") else {
        return;
    };
    assert_eq!(shell.ask("SELECT count(*) FROM t;"), "3000\n");
}

#[test]
fn the_database_of_a_program_is_not_reached_by_others_in_any_other_way() {
    let place = Place::new();
    let path = place.path("live.db");
    let Some(mut shell) = Shell::open(&path, "") else {
        return;
    };
    shell.ask(FILL);
    let instance = place.text("instance");
    let sql = |text: &str| -> Run { place.run(&["sql", "--instance", &instance, "-Q", text]) };
    let (data, log) = (place.text("live.db"), place.text("live.db-log"));
    let attach =
        format!("CREATE DATABASE live ON (FILENAME = '{data}'), (FILENAME = '{log}') FOR ATTACH");
    let attached = sql(&attach);
    assert_ne!(attached.code, Some(0), "{}", attached.out);
    assert_eq!(shell.ask("SELECT count(*) FROM t;"), "3000\n");
}

#[test]
fn the_locks_of_a_programs_own_sqlite_stay_whatever_it_names() {
    let place = Place::new();
    let Some(mut shell) = Shell::open(&place.path("live.db"), "") else {
        return;
    };
    shell.ask(FILL);
    let plain = place.text("other.db");
    shell.ask(&format!(
        "ATTACH 'file:{plain}?vfs=unix' AS plain; BEGIN IMMEDIATE; CREATE TABLE plain.mine(x);"
    ));
    let is_locked = || {
        let other = rusqlite::Connection::open(&plain).expect("it opens");
        other.busy_timeout(std::time::Duration::ZERO).expect("set");
        other.execute_batch("CREATE TABLE theirs(x)").is_err()
    };
    assert!(is_locked());
    let link = place.text("link");
    std::os::unix::fs::symlink(&plain, &link).expect("a link");
    let media = place.text("m.bak");
    for statement in [
        format!("RESTORE HEADERONLY FROM DISK = '{plain}'"),
        format!("RESTORE VERIFYONLY FROM DISK = '{link}'"),
        format!("RESTORE LABELONLY FROM DISK = '{plain}'"),
        format!("BACKUP DATABASE live TO DISK = '{plain}' WITH FORMAT"),
        format!("BACKUP DATABASE live TO DISK = '{media}' WITH SIGN_WITH = '{plain}'"),
        format!("RESTORE VERIFYONLY FROM DISK = '{media}' WITH SIGNED_BY = '{plain}'"),
        format!("CREATE CERTIFICATE c FROM FILE = '{plain}'"),
        format!("EXEC sp_attach_db 'p', '{plain}'; BACKUP DATABASE p TO DISK = '{media}'"),
        format!(
            "EXEC master..sqlbackup '-SQL \"BACKUP DATABASE live TO DISK = ''{media}'' WITH LOGTO = ''{plain}''\"'"
        ),
        format!(
            "EXEC master..sqlbackup '-SQL \"BACKUP DATABASE live TO DISK = ''{media}'' WITH PASSWORDFILE = ''{plain}''\"'"
        ),
    ] {
        let answer = windlass_sql(&mut shell, &statement);
        assert!(is_locked(), "{statement}: {answer}");
    }
    assert_eq!(shell.ask("COMMIT; SELECT count(*) FROM plain.mine;"), "0\n");
    let errors = shell.end();
    assert!(errors.contains("50197"), "{errors}");
}

#[test]
fn a_socket_of_another_file_is_not_asked_for_this_one() {
    let place = Place::new();
    let Some(mut shell) = Shell::open(&place.path("live.db"), "") else {
        return;
    };
    shell.ask(FILL);
    shell.ask(&format!(
        "ATTACH 'file:{}?vfs=windlass' AS second; CREATE TABLE second.mine(x);",
        place.text("second.db")
    ));
    let (live, media) = (place.text("live.db"), place.text("a.bak"));
    let refused = |why: &str| {
        let run = place.run(&["backup", &live, "--to", &media]);
        assert_eq!(run.code, Some(1), "{why}: {}", run.out);
        assert!(
            run.err.contains("is not the database"),
            "{why}: {}",
            run.err
        );
        assert!(!place.path("a.bak").exists(), "{why}");
    };
    let (socket, second) = (place.path("live.db-sock"), place.path("second.db-sock"));
    std::fs::rename(&socket, place.path("kept")).expect("renamed");
    std::fs::rename(&second, &socket).expect("renamed");
    refused("the socket of another database");
    std::fs::rename(place.path("kept"), &socket).expect("renamed");
    std::fs::rename(&live, place.path("moved.db")).expect("renamed");
    std::fs::copy(place.path("other.db"), &live).expect("copied");
    refused("another file of the name");
    std::fs::rename(place.path("moved.db"), &live).expect("renamed");
    place.succeed(&["backup", &live, "--to", &media]);
}
