"""Run by `cargo xtask dist --check` with the Python of a virtual environment: try.py FOLDER [MODULE]"""

import importlib
import importlib.metadata
import os
import pathlib
import sqlite3
import subprocess
import sys
import time

import windlass

folder = pathlib.Path(sys.argv[1]).absolute()
program = str(pathlib.Path(sys.executable).parent / "windlass")
module = importlib.import_module(sys.argv[2]) if len(sys.argv) > 2 else None


def run(*arguments):
    subprocess.run([program, *map(str, arguments)], check=True)


def connect(path, **options):
    return windlass.connect(path, module=module, **options)


def refused(kind, words, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        assert words in str(error), f"{error!r} does not say {words!r}"
        return error
    raise AssertionError(f"{arguments} {options} is not refused: {words}")


def python(code, *arguments, **options):
    options = {"stdout": subprocess.PIPE, "universal_newlines": True, **options}
    chosen = module.__name__ if module else ""
    head = f"import sys, windlass\nmodule = __import__({chosen!r}) if {chosen!r} else None\n"
    return subprocess.Popen([sys.executable, "-I", "-c", head + code, *map(str, arguments)], **options)


# A SQLite file, with the program.
run("backup", folder / "app.db", "--to", folder / "wheel.bak", "--compress", "zstd:low")
run("verify", folder / "wheel.bak")
run("restore", folder / "wheel.bak", "--to", folder / "wheel-copy.db")
assert (folder / "app.db").read_bytes() == (folder / "wheel-copy.db").read_bytes()

# The package knows its version, and is the program.
version = importlib.metadata.version("windlass")
assert windlass.__version__ == version, windlass.__version__
as_module = subprocess.check_output([sys.executable, "-I", "-m", "windlass", "--version"], universal_newlines=True)
assert version in as_module, as_module
assert as_module == subprocess.check_output([program, "--version"], universal_newlines=True)
licences = importlib.metadata.metadata("windlass").get_all("License-File")
files = {str(file) for file in importlib.metadata.files("windlass")}
assert len(licences) == 3, licences
assert {f"windlass-{version}.dist-info/licenses/{name}" for name in licences} <= files, files

# A database of the page engine, in this process. A name with what a URI would take for its own.
path = folder / "sales 100%?#&é.mdf"
db = connect(path, parameters={"name": "my sales"})
db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, what TEXT)")
db.execute("INSERT INTO orders (what) VALUES ('pencil'), ('paper')")
if hasattr(db, "commit"):
    db.commit()
if isinstance(db, sqlite3.Connection):
    # What a program makes of its rows is not for `run`.
    db.row_factory = lambda cursor, row: {"row": row}
else:
    db.row_trace = lambda cursor, row: {"row": row}
backup = folder / "sales.bak"
answer = windlass.run(f"BACKUP DATABASE [my sales] TO DISK = '{backup}' WITH COMPRESSION", db)
print(answer)
assert answer["messages"][-1]["number"] == 3014, answer
answer = windlass.run("SELECT name FROM sys.databases; PRINT 'x'", db)
assert {"name": "my sales"} in answer["results"][0], answer
assert [message["text"] for message in answer["messages"]] == ["x"], answer
error_kind = sqlite3.OperationalError if isinstance(db, sqlite3.Connection) else sys.modules["apsw"].SQLError
refused(error_kind, "Msg 911: Database 'nosuch'", windlass.run, "BACKUP DATABASE nosuch TO DISK = 'x.bak'", db)
db.close()
run("verify", backup)
run("restore", backup, "--to", folder / "sales-copy.mdf")
copy = connect(folder / "sales-copy.mdf")
assert copy.execute("SELECT group_concat(what) FROM orders").fetchone()[0] == "pencil,paper"
copy.close()

# Paths: relative ones mean the folder of their time; bytes; a space in a parameter.
os.chdir(folder)
db = connect("relative.mdf", parameters={"data2": folder / "the second.ndf"})
os.chdir("/")
db.execute("CREATE TABLE t (x)")
db.close()
assert (folder / "relative.mdf").exists() and (folder / "the second.ndf").exists()
connect(os.fsencode(folder / "relative.mdf")).close()
connect(f"/{folder}/relative.mdf").close()

# What does nothing, or something else than it seems to, is refused, and makes no file.
os.chdir(folder)
before = set(os.listdir(folder))
refused(ValueError, "':memory:' is no file", connect, ":memory:")
refused(ValueError, "'' is no file", connect, "")
refused(ValueError, "is a URI", connect, "file:x.mdf")
refused(ValueError, "zero byte", connect, "x\0.mdf")
refused(ValueError, "not UTF-8", connect, b"\xff.mdf")
refused(ValueError, "pool, name, mode, and data2", connect, "x.mdf", parameters={"poll": "64MB"})
refused(ValueError, "without a gap", connect, "x.mdf", parameters={"data3": "x.ndf"})
refused(ValueError, "'vfs'", connect, "x.mdf", parameters={"vfs": "unix"})
refused(ValueError, "'mode'", connect, "x.mdf", parameters={"mode": "memory"})
refused(TypeError, "'pool'", connect, "x.mdf", parameters={"pool": None})

# An opening that fails says why, as the module's error, with its cause and codes.
is_sqlite3 = error_kind is sqlite3.OperationalError
cannot_open = error_kind if is_sqlite3 else sys.modules["apsw"].CantOpenError
error = refused(cannot_open, f"'{folder}/no/x.mdf': No such file", connect, folder / "no" / "x.mdf")
assert type(error.__cause__) is type(error), error.__cause__
codes = "sqlite_errorcode" if is_sqlite3 else "extendedresult"
assert getattr(error, codes, None) == getattr(error.__cause__, codes, None), error.__dict__
refused(cannot_open, "it is a folder", connect, folder)
refused(cannot_open, "opened without the extension", connect, folder / "app.db")
(folder / "link.mdf").symlink_to(folder / "app.db")
refused(cannot_open, f"a log '{folder}/app.db-log'", connect, folder / "link.mdf")
(folder / "link.mdf").unlink()
refused(cannot_open, "name too long", connect, folder / ("x" * 300))
refused(cannot_open, "there is no database", connect, "x.mdf", parameters={"mode": "rw"})
refused(cannot_open, "is no size between", connect, "x.mdf", parameters={"pool": "lots"})
assert set(os.listdir(folder)) == before, set(os.listdir(folder)) - before
connect("alone.mdf").close()
(folder / "alone.mdf").rename(folder / "elsewhere.mdf")
refused(cannot_open, "No such file", connect, "alone.mdf")

# A SQLite file that this process has open keeps its locks when `connect` refuses it.
plain = sqlite3.connect(str(folder / "app.db"), isolation_level=None)
plain.execute("BEGIN IMMEDIATE")
refused(cannot_open, "opened without the extension", connect, folder / "app.db")
taken = python("import sqlite3\nsqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')", folder / "app.db",
               stderr=subprocess.PIPE)
assert "locked" in taken.communicate()[1], "the lock of a plain SQLite is gone"
plain.close()

# A library that cannot be loaded is named, with the reason.
(folder / "broken.so").write_text("no library")
broken = "windlass.EXTENSION = sys.argv[1]\nwindlass.connect('x.mdf', module=module)"
told = python(broken, folder / "broken.so", stderr=subprocess.PIPE).communicate()[1]
assert f"{folder}/broken.so: " in told, told

# Another process has it open.
holds = "db = windlass.connect(sys.argv[1], module=module)\nprint('open', flush=True)\nsys.stdin.read()"
other = python(holds, folder / "busy.mdf", stdin=subprocess.PIPE)
assert other.stdout.readline() == "open\n"
busy = error_kind if is_sqlite3 else sys.modules["apsw"].BusyError
refused(busy, "is in use", connect, folder / "busy.mdf")
other.communicate("")
connect(folder / "busy.mdf").close()

# Without permission. The extension is loaded first, as another user may not be able to read it.
shut = folder / "shut.mdf"
connect(shut).close()
shut.chmod(0o400)
tries = """import os
windlass.connect(sys.argv[1] + "/loaded.mdf", module=module).close()
if os.getuid() == 0:
    os.chdir(sys.argv[1])
    os.setuid(65534)
try:
    windlass.connect(sys.argv[2], module=module)
except Exception as error:
    print(type(error).__name__, error)
"""
told = python(tries, folder, shut).communicate()[0]
assert cannot_open.__name__ in told and "Permission denied" in told, told

# A child of fork() has neither the threads nor the locks.
child = os.fork()
if child == 0:
    try:
        refused(cannot_open, "child of fork()", connect, folder / "child.mdf")
        os._exit(0)
    finally:
        os._exit(1)
for _ in range(600):
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        break
    time.sleep(0.1)
else:
    os.kill(child, 9)
    os.waitpid(child, 0)
assert ended and status == 0, "the child of fork() is not refused"
print("wheel: ok")
