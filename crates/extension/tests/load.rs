//! The extension in programs with their own SQLite: the sqlite3 shell and Python.
//!
//! A missing tool is reported loudly; the test then proves nothing.
#![expect(clippy::print_stderr, reason = "says what could not be tested")]
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The library. The tests depend on it, so Cargo builds it, beside them; one folder higher is what `cargo build` left.
fn library() -> PathBuf {
    std::env::current_exe()
        .unwrap()
        .with_file_name("libwindlass.so")
}

fn answer(command: &mut Command, input: &str) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(input.as_bytes()).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{input}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn has_shell() -> bool {
    let found = Command::new("sqlite3").arg("-version").output().is_ok();
    if !found {
        eprintln!("\n*** NOT TESTED: there is no sqlite3 shell on this machine ***\n");
    }
    found
}

/// A Python whose sqlite3 module can load extensions; many cannot.
fn python() -> Option<&'static str> {
    let check = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension(True)";
    let found = ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let output = Command::new(python).args(["-c", check]).output();
        output.is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        eprintln!(
            "\n*** NOT TESTED: no Python here has a sqlite3 module that loads extensions ***\n"
        );
    }
    found
}

/// The beginning of a program in Python that has the extension.
fn loaded() -> String {
    let library = library().display().to_string();
    format!(
        "import sqlite3
loader = sqlite3.connect(':memory:')
loader.enable_load_extension(True)
loader.load_extension({library:?})
"
    )
}

#[test]
fn the_sqlite3_shell_works_on_an_engine_database() {
    if !has_shell() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let open = format!(
        ".load {}\n.open file:{}?vfs=windlass\n",
        library().display(),
        path.display()
    );
    let write = "CREATE TABLE t(x, y);
        INSERT INTO t WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000)
          SELECT n, hex(randomblob(30)) FROM c;
        PRAGMA cache_size = 5; BEGIN; UPDATE t SET y = ''; ROLLBACK; DELETE FROM t WHERE x > 4000; VACUUM;
        PRAGMA journal_mode; PRAGMA page_size;\n";
    assert_eq!(
        answer(&mut Command::new("sqlite3"), &format!("{open}{write}")),
        "memory\n8192\n"
    );
    let read = "SELECT count(*), sum(length(y)) FROM t; PRAGMA integrity_check;\n";
    let expected = "4000|240000\nok\n";
    assert_eq!(
        answer(&mut Command::new("sqlite3"), &format!("{open}{read}")),
        expected
    );
    let file = std::fs::read(&path).unwrap();
    assert_eq!(file[20], 8, "bytes reserved for page checksums");
    let ends = file.chunks(8192).map(|page| &page[8184..]);
    assert!(ends.into_iter().all(|end| end != [0; 8]), "and filled");
    // After the last close it is a plain SQLite database.
    assert_eq!(answer(Command::new("sqlite3").arg(&path), read), expected);
}

#[test]
fn python_works_on_an_engine_database_with_threads() {
    let Some(python) = python() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let program = format!(
        "
import threading
{loaded}loader.close()
uri = 'file:{path}?vfs=windlass'
db = sqlite3.connect(uri, uri=True)
db.execute('CREATE TABLE t(x INTEGER PRIMARY KEY, y)')
db.executemany('INSERT INTO t VALUES (?, ?)', [(i, 10) for i in range(200)])
db.commit()
wrong = []
stop = threading.Event()
def read():
    mine = sqlite3.connect(uri, uri=True)
    while not stop.is_set():
        total = mine.execute('SELECT sum(y) FROM t').fetchone()[0]
        if total != 2000:
            wrong.append(total)
    mine.close()
readers = [threading.Thread(target=read) for _ in range(3)]
for reader in readers: reader.start()
for i in range(100):
    with db:
        db.execute('UPDATE t SET y = y - 1 WHERE x = ?', (i,))
        db.execute('UPDATE t SET y = y + 1 WHERE x = ?', (i + 50,))
stop.set()
for reader in readers: reader.join()
try:
    with db:
        db.execute('DELETE FROM t')
        raise KeyError
except KeyError:
    pass
print(wrong, db.execute('SELECT sum(y) FROM t').fetchall(), db.execute('PRAGMA integrity_check').fetchall())
db.close()
print(sqlite3.connect('{path}').execute('SELECT sum(y) FROM t').fetchall())
",
        loaded = loaded(),
        path = folder.path().join("p.db").display(),
    );
    let output = answer(Command::new(python).arg("-"), &program);
    assert_eq!(output, "[] [(2000,)] [('ok',)]\n[(2000,)]\n");
}

/// Nothing of the SQLite that the library has for its catalog mixes with the one that loads it.
#[test]
fn the_library_exports_only_its_entry_point_and_borrows_no_sqlite() {
    let symbols = answer(Command::new("nm").args(["-D"]).arg(library()), "");
    let named = |symbol: &str| symbol.starts_with("sqlite3");
    let symbols: Vec<_> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .filter(|symbol| named(symbol))
        .collect();
    assert_eq!(symbols, ["sqlite3_windlass_init"]);
}

/// Loads the library into Python's SQLite, and then into another copy of SQLite, if there is one.
const TWO_COPIES: &str = "
import ctypes, ctypes.util, shutil, sqlite3, sys
library, folder = sys.argv[1:]
own = sqlite3.connect(':memory:')
own.enable_load_extension(True)
own.load_extension(library)
found = ctypes.util.find_library('sqlite3')
if found is None:
    sys.exit('none')
mapped = [line.split()[-1] for line in open('/proc/self/maps') if 'libsqlite3' in line]
path = mapped[0] if mapped else ctypes.CDLL(found) and [
    line.split()[-1] for line in open('/proc/self/maps') if 'libsqlite3' in line][0]
other = ctypes.CDLL(shutil.copy(path, folder + '/other.so'))
connection, message = ctypes.c_void_p(), ctypes.c_char_p()
assert other.sqlite3_open(b':memory:', ctypes.byref(connection)) == 0
other.sqlite3_enable_load_extension(connection, 1)
code = other.sqlite3_load_extension(connection, library.encode(), None, ctypes.byref(message))
print(code, message.value.decode())
print(own.execute('SELECT 1').fetchone()[0])
";

#[test]
fn a_child_of_fork_neither_changes_nor_hangs_nor_takes_what_its_parent_has_open() {
    let Some(python) = python() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let program = format!(
        "
import os, signal, sys
{loaded}def opened(name):
    return sqlite3.connect(f'file:{path}/{{name}}?vfs=windlass', uri=True, isolation_level=None)
def refusal(act):
    try:
        act()
    except sqlite3.OperationalError:
        return loader.execute('SELECT windlass_error()').fetchone()[0]
# Before its parent has opened one, a child may.
early = os.fork()
if early == 0:
    opened('early.db').execute('CREATE TABLE t(x)')
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(early, 0)[1]))
db = opened('x.db')
db.execute('CREATE TABLE t(x)')
db.execute('BEGIN')
db.execute('INSERT INTO t VALUES (1)')
reader = opened('x.db')
reader.execute('BEGIN')
reader.execute('SELECT * FROM sqlite_schema').fetchall()
child = os.fork()
if child == 0:
    signal.alarm(20)
    for act in [lambda: db.execute('COMMIT'), lambda: reader.execute('SELECT * FROM t').fetchall(), lambda: opened('x.db'), lambda: opened('y.db')]:
        said = refusal(act)
        if f'its parent, process {{os.getppid()}}, has databases open' not in (said or ''):
            print(said)
            os._exit(1)
    try:
        loader.execute('SELECT windlass_sql(?)', ['SELECT 1'])
    except sqlite3.OperationalError as error:
        db.close()
        # Through the end of the interpreter, as programs end.
        sys.exit(7 if 'child of fork' in str(error) else 1)
    os._exit(2)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
db.execute('COMMIT')
print(db.execute('SELECT count(*) FROM t').fetchone()[0], os.path.exists('{path}/x.db-sock'))
reader.close()
db.close()
print(refusal(lambda: opened('no/x.db')) is not None)
print(loader.execute('SELECT windlass_error()').fetchone()[0])
",
        loaded = loaded(),
        path = folder.path().display(),
    );
    assert_eq!(
        answer(Command::new(python).arg("-c").arg(program), ""),
        "7\n7\n1 True\nTrue\nNone\n"
    );
}

#[test]
fn one_copy_of_sqlite_in_a_process_can_have_it() {
    let Some(python) = python() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(python);
    command
        .args(["-c", TWO_COPIES])
        .arg(library())
        .arg(folder.path());
    let output = command.output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    if err.trim() == "none" {
        eprintln!("\n*** NOT TESTED: there is no second SQLite on this machine ***\n");
        return;
    }
    assert!(output.status.success(), "{}: {err}", output.status);
    assert!(out.contains("another copy of SQLite"), "{out}{err}");
}
