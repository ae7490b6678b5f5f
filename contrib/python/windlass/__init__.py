"""Windlass: databases of its page engine in Python, and BACKUP and RESTORE for them.

`connect` opens a database with the extension of this package, in the module `sqlite3` if that was built to load
extensions, else in `apsw`. Plain SQLite files need nothing of this: the program `windlass`, which the package installs,
backs them up while they are in use.
"""

import json
import pathlib
import sqlite3
import urllib.parse

__all__ = ["EXTENSION", "connect", "run"]

#: The loadable extension.
EXTENSION = str(pathlib.Path(__file__).parent / "libwindlass.so")

# One that stays open: SQLite forgets a VFS only with the process, but apsw wants its loader alive.
_loaders = {}


def connect(path, *, module=None, parameters=None, **options):
    """Opens the database of the page engine at `path`; it is created if it is absent.

    `module` is `sqlite3` or `apsw`; by default the first that can load extensions. `parameters` go to the URI, such as
    {"pool": "64MB"}; `options` to the module's own function (`timeout` and so on, of sqlite3).
    """
    if module is None:
        module = _module()
    _load(module)
    # Not all of quote's "safe": a question mark or a percent sign in a path must not end it.
    uri = "file:" + urllib.parse.quote(str(pathlib.Path(path).absolute()))
    uri += "?" + urllib.parse.urlencode({"vfs": "windlass", **(parameters or {})})
    if module is sqlite3:
        return sqlite3.connect(uri, uri=True, **options)
    flags = module.SQLITE_OPEN_URI | module.SQLITE_OPEN_READWRITE | module.SQLITE_OPEN_CREATE
    return module.Connection(uri, flags=flags, **options)


def run(sql, connection):
    """Runs T-SQL, such as BACKUP DATABASE, in this process; returns its messages and
    results as a dictionary, or raises the error of the module.
    """
    for (answer,) in connection.execute("SELECT windlass_sql(?)", (sql,)):
        return json.loads(answer)


def _module():
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    try:
        import apsw
    except ImportError:
        raise ImportError(
            "the sqlite3 of this Python cannot load extensions: install apsw, or a Python built with"
            " --enable-loadable-sqlite-extensions"
        ) from None
    return apsw


def _load(module):
    if module in _loaders:
        return
    loader = sqlite3.connect(":memory:") if module is sqlite3 else module.Connection(":memory:")
    loader.enable_load_extension(True)
    loader.load_extension(EXTENSION)
    loader.enable_load_extension(False)
    _loaders[module] = loader
