"""Run by `cargo xtask dist --check` with the Python of a virtual environment: try.py FOLDER"""

import pathlib
import subprocess
import sys

import windlass

folder = pathlib.Path(sys.argv[1])
program = str(pathlib.Path(sys.executable).parent / "windlass")


def run(*arguments):
    subprocess.run([program, *map(str, arguments)], check=True)


# A SQLite file, with the program.
run("backup", folder / "app.db", "--to", folder / "wheel.bak", "--compress", "zstd:low")
run("verify", folder / "wheel.bak")
run("restore", folder / "wheel.bak", "--to", folder / "wheel-copy.db")
assert (folder / "app.db").read_bytes() == (folder / "wheel-copy.db").read_bytes()

# A database of the page engine, in this process. A name with what a URI would take for its own.
path = folder / "sales 100%?.mdf"
db = windlass.connect(path, parameters={"name": "sales"})
db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, what TEXT)")
db.execute("INSERT INTO orders (what) VALUES ('pencil'), ('paper')")
if hasattr(db, "commit"):
    db.commit()
backup = folder / "sales.bak"
print(windlass.run(f"BACKUP DATABASE sales TO DISK = '{backup}' WITH COMPRESSION", db))
db.close()
run("verify", backup)
run("restore", backup, "--to", folder / "sales-copy.mdf")
copy = windlass.connect(folder / "sales-copy.mdf")
assert copy.execute("SELECT group_concat(what) FROM orders").fetchone()[0] == "pencil,paper"
print("wheel: ok")
