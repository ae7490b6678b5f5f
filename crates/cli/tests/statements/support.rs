//! A folder with databases, and the program run in it.

use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rusqlite::Connection;
use serde_json::Value as Json;
use tempfile::TempDir;

/// A folder mapped to `d:`, with the databases `app.db` and `other.db`.
pub(crate) struct Place {
    folder: TempDir,
}

/// What a run of the program said.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self::empty();
        make_database(&place.path("app.db"), 400);
        make_database(&place.path("other.db"), 10);
        std::fs::create_dir(place.path("temp")).expect("a folder");
        place
    }

    /// Without any file.
    pub(crate) fn empty() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path of a file, as an argument.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// The program with arguments, in the folder, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .env_remove("WINDLASS_INSTANCE");
        command
    }

    /// Runs the program.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&self.command(arguments).output().expect("the program runs"))
    }

    /// The names in a folder, in order.
    pub(crate) fn files(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names
            .map(|name| name.into_string().expect("a name"))
            .collect();
        names.sort();
        names
    }

    /// Runs the program, which must succeed.
    #[track_caller]
    pub(crate) fn succeed(&self, arguments: &[&str]) -> Run {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}\n{}\n{}", run.out, run.err);
        run
    }

    /// Runs the program with text on its standard input.
    pub(crate) fn type_in(&self, arguments: &[&str], text: &str) -> Run {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdin = child.stdin.take().expect("its standard input");
        stdin.write_all(text.as_bytes()).expect("it listens");
        drop(stdin);
        Run::of(&child.wait_with_output().expect("it ends"))
    }

    /// Runs a script with `app` and `other` attached and `d:` mapped.
    pub(crate) fn sql(&self, script: &str) -> Run {
        self.sql_with(&[], script)
    }

    /// The same with further arguments.
    pub(crate) fn sql_with(&self, further: &[&str], script: &str) -> Run {
        let file = self.path("script.sql");
        std::fs::write(&file, script).expect("the script");
        let drive = format!("d={}", self.folder.path().display());
        let mut arguments = vec!["sql", "-i", "script.sql", "--drive", &drive];
        if !further.contains(&"--instance") {
            arguments.extend(["--attach", "app=app.db", "--attach", "other=other.db"]);
        }
        arguments.extend(further);
        self.run(&arguments)
    }

    /// The numbers of the messages of a script, in order, without plain information.
    pub(crate) fn numbers(&self, script: &str) -> Vec<u64> {
        self.sql_with(&["--json"], script).numbers()
    }
}

impl Run {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The messages of a run with `--json`.
    pub(crate) fn messages(&self) -> Vec<Json> {
        self.err
            .lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect()
    }

    /// The numbers of the messages of a run with `--json`, without notes and PRINT.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let numbers = self
            .messages()
            .into_iter()
            .filter_map(|message| message["number"].as_u64());
        numbers
            .filter(|number| !matches!(number, 0 | 50010 | 5701))
            .collect()
    }

    /// The result sets of a run with `--json`, without the reports of backups and restores.
    pub(crate) fn results(&self) -> Vec<Json> {
        let stream = serde_json::Deserializer::from_str(&self.out).into_iter();
        stream
            .map(|json| json.expect("JSON"))
            .filter(Json::is_array)
            .collect()
    }
}

/// Runs a script on the instance of the place, with JSON results.
pub(crate) fn sql(place: &Place, script: &str) -> Run {
    let instance = place.text("instance");
    place.sql_with(&["--json", "--instance", &instance], script)
}

/// The same, which must succeed.
#[track_caller]
pub(crate) fn succeed(place: &Place, script: &str) -> Run {
    let run = sql(place, script);
    assert_eq!(run.code, Some(0), "{}", run.err);
    run
}

/// An instance on which `app` and `other` are registered.
pub(crate) fn registered() -> Place {
    let place = Place::new();
    succeed(
        &place,
        "EXEC sp_attach_db 'app', 'd:\\app.db'\nEXEC sp_attach_db 'other', 'd:\\other.db'",
    );
    place
}

/// Runs a plain command on the instance of the place.
pub(crate) fn on(place: &Place, arguments: &[&str]) -> Run {
    place.run(&[arguments, &["--instance", "instance"]].concat())
}

/// The same, which must succeed.
#[track_caller]
pub(crate) fn well(place: &Place, arguments: &[&str]) -> Run {
    let run = on(place, arguments);
    assert_eq!(run.code, Some(0), "{arguments:?}\n{}\n{}", run.out, run.err);
    run
}

/// The rows of the last result of a script, as JSON.
#[track_caller]
pub(crate) fn ask(place: &Place, instance: &str, text: &str) -> Vec<Json> {
    let run = place.sql_with(&["--json", "--instance", instance], text);
    assert_eq!(run.code, Some(0), "{text}: {}", run.err);
    let result = run.results().pop().expect("a result");
    result.as_array().expect("rows").clone()
}

/// Flips a bit of a byte of a file.
pub(crate) fn flip_bit(path: &Path, at: u64) {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("the file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("the byte");
    file.write_all_at(&[byte[0] ^ 4], at).expect("the byte");
}

/// The pages of a data file of the page engine: without its stamp, which each checkpoint changes.
pub(crate) fn pages(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).expect("a data file");
    for extent in bytes.chunks_mut(65536) {
        if extent.starts_with(b"WLDATA01") {
            extent.fill(0);
        }
    }
    bytes
}

/// A database with a table `t` of `rows` rows of 1000 characters.
pub(crate) fn make_database(path: &Path, rows: u32) {
    let connection = Connection::open(path).expect("a database");
    connection
        .execute_batch(&format!(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
             INSERT INTO t SELECT i, printf('row %d of %s, %s', i, hex(randomblob(20)),
                 substr(replace(hex(zeroblob(500)), '00', 'ab'), 1, 900)) FROM n;"
        ))
        .expect("its rows");
}

/// The rows of `t` in a database.
pub(crate) fn rows(path: &Path) -> i64 {
    let connection = Connection::open(path).expect("a database");
    connection
        .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
        .expect("a count")
}

/// The text of an article, or `None` with a loud line when it is absent.
#[expect(
    clippy::disallowed_methods,
    reason = "said past the capture of a test's output"
)]
pub(crate) fn article(name: &str) -> Option<String> {
    let root = std::env::var_os("WINDLASS_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = root.join("seeds").join(name);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        let line = format!(
            "SKIPPED: {} is absent; set WINDLASS_SHARED\n",
            path.display()
        );
        std::io::stderr()
            .write_all(line.as_bytes())
            .expect("standard error");
    }
    text
}
