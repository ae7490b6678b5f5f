"""Windlass: databases of its page engine in Python, and BACKUP and RESTORE for them.

`connect` opens a database with the extension of this package, in the module `sqlite3` if that was built to load
extensions, else in `apsw`. `run` runs T-SQL, such as BACKUP DATABASE. Plain SQLite files need nothing of this: the
program `windlass`, which the package installs, backs them up while they are in use.
"""

from __future__ import annotations

import json
import os
import pathlib
import sqlite3
import urllib.parse
from types import ModuleType
from typing import Any, Dict, List, Mapping, NoReturn, Optional, Union

__all__ = ["EXTENSION", "__version__", "connect", "run"]

# The wheel has its own version here.
__version__ = "unpacked"

#: The loadable extension.
EXTENSION = str(pathlib.Path(__file__).parent / "libwindlass.so")

# One that stays open: SQLite forgets a VFS only with the process, but apsw wants its loader alive.
_loaders: Dict[ModuleType, Any] = {}


def connect(
    path: Union[str, bytes, os.PathLike[Any]],
    *,
    module: Optional[ModuleType] = None,
    parameters: Optional[Mapping[str, Any]] = None,
    **options: Any,
) -> Any:
    """Opens the database of the page engine at `path`; it is created if it is absent. Returns a connection of `module`.

    `module` is `sqlite3` or `apsw`; by default the first that can load extensions. `options` go to the module's own
    function (`timeout` and so on, of sqlite3). `parameters` is a dictionary of:

    - `pool`: the size of the buffer pool, such as "64MB". The first database of the process decides for all.
    - `name`: what the database is called in BACKUP DATABASE; without it, its file without extension.
    - `data2`, `data3`, ...: the paths of further data files.
    - `mode`: "ro" (read only), "rw" (not created if absent) or "rwc" (the default).

    Raises ValueError for a path or a parameter that cannot be meant, TypeError for one of a wrong type, and ImportError
    if no module can load extensions. A database that cannot be opened is the error of the module
    (`sqlite3.OperationalError`, `apsw.CantOpenError`), with the path and the reason that the extension has.
    """
    file = _file(path)
    query = _query(parameters or {})
    if module is None:
        module = _module()
    _load(module)
    # A question mark or a percent sign in a path must not end it, nor two slashes at its start name a host.
    uri = f"file://{urllib.parse.quote(str(file))}?{query}"
    try:
        if module is sqlite3:
            return sqlite3.connect(uri, uri=True, **options)
        flags = module.SQLITE_OPEN_URI | module.SQLITE_OPEN_READWRITE | module.SQLITE_OPEN_CREATE
        return module.Connection(uri, flags=flags, **options)
    except (sqlite3.OperationalError if module is sqlite3 else module.Error) as error:
        _explain(error, file, module)


def run(sql: str, connection: Any) -> Dict[str, Any]:
    """Runs T-SQL, such as BACKUP DATABASE, in this process, and returns when it is done.

    `connection` may be any that was opened after the first `connect`; the statements reach all databases that `connect`
    has open. Other threads go on, but not with this connection. The answer is a dictionary:

    - `messages`: a list of {"number": 3014, "severity": 10, "text": "BACKUP DATABASE successfully processed ..."}
    - `results`: a list with the rows of each result, such as [[{"name": "sales", "database_id": 5}]]. A row is a
      dictionary from columns to values: str, int, float, bool or None. Dates and LSNs are str.
    - `rows_affected`: a list of int

    T-SQL that fails is the error of the module (`sqlite3.OperationalError`, `apsw.SQLError`). Its text has a line
    "Msg NUMBER: TEXT" for each error, such as "Msg 911: Database 'x' does not exist. ...".
    """
    cursor = connection.cursor()
    # What the connection makes of its rows is not for this one.
    if isinstance(cursor, sqlite3.Cursor):
        cursor.row_factory = None
    elif hasattr(cursor, "row_trace"):
        cursor.row_trace = lambda _, row: row
    try:
        (answer,) = cursor.execute("SELECT windlass_sql(?)", (sql,)).fetchone()
    finally:
        cursor.close()
    told: Dict[str, Any] = json.loads(answer)
    return told


def _file(path: Union[str, bytes, os.PathLike[Any]]) -> pathlib.Path:
    name = os.fsdecode(path)
    if name in ("", ":memory:"):
        raise ValueError(f"{name!r} is no file: a database of the page engine is one; open this with sqlite3.connect")
    if name.startswith("file:"):
        raise ValueError(f"{name!r} is a URI: give the path alone, and what follows its question mark as `parameters`")
    if "\0" in name:
        raise ValueError(f"{name!r} has a zero byte, which no path can have")
    file = pathlib.Path(name).absolute()
    try:
        str(file).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{str(file)!r} is not UTF-8, as SQLite wants paths") from error
    return file


def _query(parameters: Mapping[str, Any]) -> str:
    files: List[str] = []
    while f"data{len(files) + 2}" in parameters:
        files.append(f"data{len(files) + 2}")
    given = {"vfs": "windlass"}
    for name, value in parameters.items():
        if name not in ("pool", "name", "mode", *files):
            raise ValueError(
                f"there is no parameter {name!r}: there are pool, name, mode, and data2, data3, ... without a gap"
            )
        if isinstance(value, bool) or not isinstance(value, (str, int, os.PathLike)):
            raise TypeError(f"the parameter {name!r} is a text or a path, not {value!r}")
        given[name] = str(value)
        if "\0" in given[name]:
            raise ValueError(f"the parameter {name!r} has a zero byte: {value!r}")
    if given.get("mode", "rwc") not in ("ro", "rw", "rwc"):
        raise ValueError(f"the parameter 'mode' is 'ro', 'rw' or 'rwc', not {given['mode']!r}")
    # SQLite takes a plus sign for itself, not for a space.
    return urllib.parse.urlencode(given, quote_via=urllib.parse.quote)


def _explain(error: Exception, file: pathlib.Path, module: ModuleType) -> NoReturn:
    # SQLite itself says no more than that the file cannot be opened.
    (reason,) = _loaders[module].cursor().execute("SELECT windlass_error()").fetchone()
    told = type(error)(f"{str(file)!r}: {error}" + (f": {reason}" if reason else ""))
    # The codes, which the modules set from outside.
    told.__dict__.update(error.__dict__)
    raise told from error


def _module() -> ModuleType:
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


def _load(module: ModuleType) -> None:
    if module in _loaders:
        return
    # Every thread asks it for the reason of a failure.
    loader: Any = (
        sqlite3.connect(":memory:", check_same_thread=False) if module is sqlite3 else module.Connection(":memory:")
    )
    loader.enable_load_extension(True)
    # Without its end: SQLite tries again with `.so`, and tells of its last try only.
    loader.load_extension(EXTENSION[: -len(".so")])
    loader.enable_load_extension(False)
    _loaders[module] = loader
