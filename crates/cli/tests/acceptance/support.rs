//! Running the program, finding the shared data, making databases.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use rusqlite::Connection;

use crate::s3_server::Server;

/// The algorithms, as `--compress` spells them.
pub(crate) const ALGORITHMS: [&str; 6] = [
    "none",
    "ms_xpress",
    "zstd:low",
    "zstd:medium",
    "zstd:high",
    "qat_deflate",
];

/// The program with arguments, not started yet.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .env_remove("WINDLASS_INSTANCE");
    SERVER.key_for(&mut command);
    command
}

/// Runs the program.
pub(crate) fn windlass(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program starts")
}

/// Runs the program, which must succeed, and returns what it printed.
pub(crate) fn succeed(arguments: &[&str]) -> String {
    let output = windlass(arguments);
    assert!(
        output.status.success(),
        "windlass {}\n{}",
        arguments.join(" "),
        text(&output)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs the program, which must fail without crashing, and returns its output.
pub(crate) fn fail(arguments: &[&str]) -> String {
    let output = windlass(arguments);
    assert!(
        !output.status.success(),
        "windlass {} succeeded",
        arguments.join(" ")
    );
    assert_eq!(
        output.status.code(),
        Some(1),
        "an error, not a crash: {}",
        text(&output)
    );
    text(&output)
}

/// Everything a run said.
pub(crate) fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A folder of the shared data, or `None` with a loud line when it is absent.
pub(crate) fn shared(folder: &str) -> Option<PathBuf> {
    let root = std::env::var_os("WINDLASS_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = root.join("data").join(folder);
    if path.is_dir() {
        return Some(path);
    }
    eprintln!(
        "SKIPPED: {} is absent; set WINDLASS_SHARED to run this test",
        path.display()
    );
    None
}

/// The store of all tests, which tell their objects apart by the names of their folders.
static SERVER: LazyLock<Server> = LazyLock::new(Server::start);

/// Where the media of a test are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Files,
    /// Objects of a store that speaks the protocol of S3.
    Objects,
}

impl Store {
    /// The medium of a name that belongs to a folder: a file in it, or an object whose key begins with its path.
    pub(crate) fn medium(self, folder: &Path, name: &str) -> String {
        let path = shown(&folder.join(name));
        match self {
            Self::Files => path,
            Self::Objects => SERVER.url(path.trim_start_matches('/')),
        }
    }

    /// Media `0.bak`, `1.bak`, ... of a folder.
    pub(crate) fn media(self, folder: &Path, families: usize) -> Vec<String> {
        (0..families)
            .map(|index| self.medium(folder, &format!("{index}.bak")))
            .collect()
    }

    /// A medium as T-SQL names it.
    pub(crate) fn in_sql(self, medium: &str) -> String {
        match self {
            Self::Files => format!("DISK = '{medium}'"),
            Self::Objects => format!("URL = '{medium}'"),
        }
    }

    /// The content of a medium; `None` if there is none.
    pub(crate) fn content(self, medium: &str) -> Option<Vec<u8>> {
        match self {
            Self::Files => std::fs::read(medium).ok(),
            Self::Objects => SERVER.content(key(medium)),
        }
    }

    pub(crate) fn read(self, medium: &str) -> Vec<u8> {
        self.content(medium).expect(medium)
    }

    pub(crate) fn write(self, medium: &str, bytes: &[u8]) {
        match self {
            Self::Files => std::fs::write(medium, bytes).expect(medium),
            Self::Objects => SERVER.put(key(medium), bytes),
        }
    }

    pub(crate) fn remove(self, medium: &str) {
        match self {
            Self::Files => std::fs::remove_file(medium).expect(medium),
            Self::Objects => SERVER.remove(key(medium)),
        }
    }
}

/// The key of an object's URL.
fn key(url: &str) -> &str {
    url.strip_prefix(&SERVER.url("")).expect(url)
}

/// Media files `0.bak`, `1.bak`, ... in a folder.
pub(crate) fn media(folder: &Path, families: usize) -> Vec<String> {
    Store::Files.media(folder, families)
}

/// `backup DATABASE --to A --to B ... EXTRA`.
pub(crate) fn backup_arguments<'a>(
    database: &'a str,
    media: &'a [String],
    extra: &[&'a str],
) -> Vec<&'a str> {
    let mut arguments = vec!["backup", database];
    for device in media {
        arguments.extend(["--to", device]);
    }
    arguments.extend(extra);
    arguments
}

/// `restore A B ... --to TARGET EXTRA`.
pub(crate) fn restore_arguments<'a>(
    media: &'a [String],
    target: &'a str,
    extra: &[&'a str],
) -> Vec<&'a str> {
    let mut arguments = vec!["restore"];
    arguments.extend(media.iter().map(String::as_str));
    arguments.extend(["--to", target]);
    arguments.extend(extra);
    arguments
}

/// A path as the program takes it.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Makes a database of about `megabytes` whose text compresses somewhat, in WAL or rollback mode.
pub(crate) fn make_database(path: &Path, megabytes: usize, journal: &str) {
    let mut connection = Connection::open(path).expect("a database");
    connection
        .pragma_update(None, "journal_mode", journal)
        .expect("the journal mode");
    connection
        .execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT)")
        .expect("a table");
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let transaction = connection.transaction().expect("a transaction");
    let mut insert = transaction
        .prepare("INSERT INTO t(body) VALUES (?1)")
        .expect("a statement");
    for _ in 0..megabytes * 500 {
        let mut body = String::new();
        while body.len() < 2000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            body.push_str(WORDS[(state >> 40) as usize % WORDS.len()]);
            body.push_str(&(state >> 52).to_string());
        }
        insert.execute([body]).expect("a row");
    }
    drop(insert);
    transaction.commit().expect("a commit");
}

const WORDS: [&str; 8] = [
    " select ",
    " the query ",
    " index ",
    " is slow when ",
    " row ",
    " plan ",
    " and then ",
    " why ",
];

/// The `integrity_check` of a database.
pub(crate) fn integrity(path: &Path) -> String {
    let connection = Connection::open(path).expect("a database");
    connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("an answer")
}
